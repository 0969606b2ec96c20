/* CUPTI, found and loaded at run time: the program's own if it has one, else the newest that the
 * machine knows.
 *
 * STAVE_CUPTI names another one. Nothing of CUPTI is linked, so that the library loads where there
 * is none and says so. */
#include "inject/cuda/cuda.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line at once: other threads of the program write, too. */
void cuda_say(const char *format, ...)
{
    char line[1000];
    va_list list;
    int n = snprintf(line, sizeof line, "stave: cuda: ");
    va_start(list, format);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, format, list);
    va_end(list);
    dprintf(2, "%s\n", line);
}

static void *open_by_name(int flags)
{
    static const char *const names[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                        "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5",
                                        "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2",
                                        "libcupti.so.11.1", "libcupti.so.11.0", "libcupti.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | flags);
        if (library)
            return library;
    }
    return NULL;
}

static void *open_in_toolkit(void)
{
    static const char *const places[] = {
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda/lib*/libcupti.so",
        "/usr/local/cuda-*/extras/CUPTI/lib64/libcupti.so", "/usr/local/cuda-*/lib*/libcupti.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++) {
        glob_t found;
        if (glob(places[i], 0, NULL, &found) == 0)
            for (size_t k = found.gl_pathc; k-- > 0 && !library;)
                library = dlopen(found.gl_pathv[k], RTLD_NOW);
        globfree(&found);
    }
    return library;
}

static void *open_cupti(void)
{
    const char *own = secure_getenv("STAVE_CUPTI");
    if (own && *own)
        return dlopen(own, RTLD_NOW);
    void *library = open_by_name(RTLD_NOLOAD);
    if (!library)
        library = open_by_name(0);
    return library ? library : open_in_toolkit();
}

static const struct symbol {
    const char *name;
    size_t at;
    bool is_optional;
} symbols[] = {
    {"cuptiGetVersion", offsetof(struct cuda_cupti, get_version), false},
    {"cuptiGetResultString", offsetof(struct cuda_cupti, result_string), false},
    {"cuptiSubscribe", offsetof(struct cuda_cupti, subscribe), false},
    {"cuptiUnsubscribe", offsetof(struct cuda_cupti, unsubscribe), false},
    {"cuptiActivityRegisterCallbacks", offsetof(struct cuda_cupti, register_callbacks), false},
    {"cuptiActivityEnable", offsetof(struct cuda_cupti, enable), false},
    {"cuptiActivityDisable", offsetof(struct cuda_cupti, disable), false},
    {"cuptiActivityFlushAll", offsetof(struct cuda_cupti, flush_all), false},
    {"cuptiActivityGetNextRecord", offsetof(struct cuda_cupti, next_record), false},
    {"cuptiActivityGetNumDroppedRecords", offsetof(struct cuda_cupti, dropped), false},
    {"cuptiGetCallbackName", offsetof(struct cuda_cupti, callback_name), false},
    {"cuptiGetTimestamp", offsetof(struct cuda_cupti, timestamp), false},
    {"cuptiActivityRegisterTimestampCallback",
     offsetof(struct cuda_cupti, optional_timestamp_callback), true},
    {"cuptiSetThreadIdType", offsetof(struct cuda_cupti, optional_thread_ids), true},
    {"cuptiActivityFlushPeriod", offsetof(struct cuda_cupti, optional_flush_period), true},
    {"cuptiActivityEnableLatencyTimestamps", offsetof(struct cuda_cupti, optional_latency), true},
    {"cuptiActivityConfigureUnifiedMemoryCounter", offsetof(struct cuda_cupti, optional_unified),
     true},
};

bool cuda_cupti_load(struct cuda_cupti *c)
{
    void *library = open_cupti();
    if (!library) {
        const char *own = secure_getenv("STAVE_CUPTI");
        cuda_say("%s cannot be loaded: GPU work is not recorded; install CUPTI (it is part of "
                 "the CUDA toolkit) or set STAVE_CUPTI to its path",
                 own && *own ? own : "libcupti.so");
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *f = dlsym(library, symbols[i].name);
        if (!f && !symbols[i].is_optional) {
            cuda_say("this libcupti.so lacks %s: GPU work is not recorded; CUPTI of CUDA 11 or "
                     "later is needed",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)c + symbols[i].at, &f, sizeof f); /* C has no cast for this */
    }
    c->get_version(&c->api);
    return true;
}

/* libstave-cuda.so: the CUDA driver loads it by CUDA_INJECTION64_PATH and calls
 * InitializeInjection() before the program's first call is done.
 *
 * Nothing is touched unless Stave records. CUPTI fills buffers of ours, of which there are a
 * bounded number: beyond that it drops records, counts them, and we report the loss. When the
 * recording ends, all kinds are switched off and CUPTI is given back, so that what remains is
 * nothing; a recording that begins later does not start it again. Whatever fails is one line on
 * stderr, and the program runs on. */
#include "inject/cuda/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY __attribute__((visibility("default")))
ENTRY int InitializeInjection(void);

enum { BUFFER_BYTES = 1 << 20, BUFFERS_MAX = 64, KEPT_MAX = 8, FLUSH_MS = 500 };

static struct cuda_cupti cupti;
static struct cuda_decoder decoder = {.cupti = &cupti};
static CUpti_SubscriberHandle subscriber;
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *kept[KEPT_MAX];
static size_t n_kept, n_buffers;
static atomic_bool is_attached;

/* ---- what is recorded ---- */

static const struct kind {
    const char *name;
    uint32_t kind; /* numbers: older headers lack the newer names */
    bool is_default;
} kinds[] = {
    {"device", CUPTI_ACTIVITY_KIND_DEVICE, true},
    {"context", CUPTI_ACTIVITY_KIND_CONTEXT, true},
    {"stream", CUPTI_ACTIVITY_KIND_STREAM, true},
    {"name", CUPTI_ACTIVITY_KIND_NAME, true},
    {"kernel", CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, true},
    {"memcpy", CUPTI_ACTIVITY_KIND_MEMCPY, true},
    {"memcpy", CUPTI_ACTIVITY_KIND_MEMCPY2, true},
    {"memset", CUPTI_ACTIVITY_KIND_MEMSET, true},
    {"runtime", CUPTI_ACTIVITY_KIND_RUNTIME, true},
    {"driver", CUPTI_ACTIVITY_KIND_DRIVER, true},
    {"sync", CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, true},
    {"sync", CUPTI_ACTIVITY_KIND_CUDA_EVENT, true},
    {"external", CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, true},
    {"overhead", CUPTI_ACTIVITY_KIND_OVERHEAD, true},
    {"memory", 49, true}, /* MEMORY2 */
    {"memory", 50, true}, /* MEMORY_POOL */
    {"unified", CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, false},
    {"graph", 51, false}, /* GRAPH_TRACE: whole graphs, and their nodes no more */
    {"link", CUPTI_ACTIVITY_KIND_NVLINK, false},
    {"link", CUPTI_ACTIVITY_KIND_PCIE, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static bool is_enabled[KINDS];

static bool is_listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

/* STAVE_CUDA=kernel,memcpy: these alone; STAVE_CUDA=+unified,graph: these besides the usual
 * ones. */
static bool is_wanted(const struct kind *k)
{
    const char *list = secure_getenv("STAVE_CUDA");
    if (!list || !*list)
        return k->is_default;
    if (*list == '+')
        return k->is_default || is_listed(list + 1, k->name);
    return is_listed(list, k->name) || strcmp(k->name, "device") == 0 ||
           strcmp(k->name, "context") == 0;
}

static const char *text_of(CUptiResult result)
{
    const char *text = NULL;
    cupti.result_string(result, &text);
    return text ? text : "an error without a name";
}

/* ---- buffers ---- */

static void request(uint8_t **buffer, size_t *size, size_t *max_records)
{
    *buffer = NULL;
    *size = *max_records = 0;
    pthread_mutex_lock(&keeping);
    if (n_kept)
        *buffer = kept[--n_kept];
    else if (n_buffers < BUFFERS_MAX && (*buffer = aligned_alloc(64, BUFFER_BYTES)))
        n_buffers++;
    pthread_mutex_unlock(&keeping);
    *size = *buffer ? BUFFER_BYTES : 0;
}

static void give_back(uint8_t *buffer)
{
    pthread_mutex_lock(&keeping);
    if (buffer && n_kept < KEPT_MAX) {
        kept[n_kept++] = buffer;
    } else if (buffer) {
        free(buffer);
        n_buffers--;
    }
    pthread_mutex_unlock(&keeping);
}

/* CUPTI's clock read between two readings of ours. */
static void tie_clock(void)
{
    uint64_t ns = 0;
    int64_t before = stave_now_ns();
    if (!decoder.clock || cupti.timestamp(&ns) != CUPTI_SUCCESS)
        return;
    int64_t after = stave_now_ns();
    stave_gpu_clock_tie(decoder.clock, (int64_t)ns, before + (after - before) / 2,
                        (after - before) / 2);
}

static void detach(void)
{
    if (!atomic_exchange(&is_attached, false))
        return;
    for (size_t i = 0; i < KINDS; i++)
        if (is_enabled[i])
            cupti.disable((CUpti_ActivityKind)kinds[i].kind);
    if (subscriber)
        cupti.unsubscribe(subscriber);
}

static void complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    size_t dropped = 0;
    valid = valid < size ? valid : size;
    pthread_mutex_lock(&reading);
    if (stave_enabled(NULL)) {
        tie_clock();
        if (buffer && valid)
            cuda_decode(&decoder, buffer, valid);
        if (cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
            stave_gpu_lost(cuda_any_device(&decoder), dropped, "dropped by CUPTI");
    }
    pthread_mutex_unlock(&reading);
    give_back(buffer);
    if (!stave_enabled(NULL))
        detach();
}

/* ---- start and end ---- */

/* CUPTI allows one subscriber. Subscribing keeps others out, and fails when another one is
 * there. */
static void on_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                        const void *info)
{
    (void)data, (void)domain, (void)id, (void)info;
}

static bool subscribe(void)
{
    CUptiResult result = cupti.subscribe(&subscriber, on_callback, NULL);
    if (result == CUPTI_SUCCESS)
        return true;
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
        result == CUPTI_ERROR_MAX_LIMIT_REACHED)
        cuda_say("another tool uses CUPTI in this process (Nsight, or the program's own profiler, "
                 "PyTorch's for example): GPU work is not recorded");
    else
        cuda_say("CUPTI does not start: %s: GPU work is not recorded; is there a GPU and its "
                 "driver? (nvidia-smi)",
                 text_of(result));
    return false;
}

static uint64_t monotonic(void)
{
    return (uint64_t)stave_now_ns();
}

/* Best: CUPTI uses our clock. Else its own is tied to ours again and again. */
static void choose_clock(void)
{
    if (cupti.optional_timestamp_callback &&
        cupti.optional_timestamp_callback(monotonic) == CUPTI_SUCCESS)
        return;
    decoder.clock = stave_gpu_clock("CUPTI", 0);
    tie_clock();
}

static void want_unified(void)
{
    CUpti_ActivityUnifiedMemoryCounterConfig c[8] = {0};
    for (unsigned i = 0; i < 8; i++) {
        c[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
        c[i].kind = (CUpti_ActivityUnifiedMemoryCounterKind)(i + 1);
        c[i].deviceId = 0;
        c[i].enable = 1;
    }
    if (cupti.optional_unified)
        cupti.optional_unified(c, 8);
}

/* Kinds that this CUPTI or this GPU lacks are left out; without kernels there is nothing to do. */
static bool enable_kinds(void)
{
    CUptiResult first = CUPTI_SUCCESS;
    char left_out[200] = "";
    size_t n = 0;
    for (size_t i = 0; i < KINDS; i++) {
        if (!is_wanted(&kinds[i]))
            continue;
        if (strcmp(kinds[i].name, "unified") == 0)
            want_unified();
        CUptiResult result = cupti.enable((CUpti_ActivityKind)kinds[i].kind);
        is_enabled[i] = result == CUPTI_SUCCESS;
        n += is_enabled[i];
        if (!is_enabled[i]) {
            first = first ? first : result;
            strncat(left_out, *left_out ? ", " : "", sizeof left_out - strlen(left_out) - 1);
            strncat(left_out, kinds[i].name, sizeof left_out - strlen(left_out) - 1);
        }
    }
    if (n == 0)
        cuda_say("CUPTI records nothing: %s: GPU work is not recorded", text_of(first));
    else if (secure_getenv("STAVE_CUDA") && *left_out)
        cuda_say("CUPTI does not record %s here: %s", left_out, text_of(first));
    return n > 0;
}

static void finish(void)
{
    if (!atomic_load(&is_attached))
        return;
    cupti.flush_all(1); /* what is not complete, too */
    detach();
}

static bool attach(void)
{
    if (!cuda_cupti_load(&cupti) || !subscribe())
        return false;
    if (cupti.optional_thread_ids) /* CUPTI's own are not those of the kernel */
        cupti.optional_thread_ids(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    choose_clock();
    CUptiResult result = cupti.register_callbacks(request, complete);
    if (result != CUPTI_SUCCESS) {
        cuda_say("CUPTI takes no buffers: %s: GPU work is not recorded", text_of(result));
        cupti.unsubscribe(subscriber);
        return false;
    }
    const char *latency =
        secure_getenv("STAVE_CUDA_LATENCY"); /* queued and submitted: costs time */
    if (cupti.optional_latency && latency && *latency && *latency != '0')
        cupti.optional_latency(1);
    if (!enable_kinds()) {
        cupti.unsubscribe(subscriber);
        return false;
    }
    if (cupti.optional_flush_period)
        cupti.optional_flush_period(FLUSH_MS);
    atomic_store(&is_attached, true);
    atexit(finish);
    return true;
}

/* A tool that was to be injected before us comes first, and keeps CUPTI if it takes it. */
static void call_next(void)
{
    const char *path = secure_getenv("STAVE_NEXT_CUDA_INJECTION64_PATH");
    if (!path || !*path)
        return;
    void *library = dlopen(path, RTLD_NOW), *entry;
    int (*initialize)(void) = NULL;
    entry = library ? dlsym(library, "InitializeInjection") : NULL;
    memcpy(&initialize, &entry, sizeof entry);
    if (initialize)
        initialize();
    else
        cuda_say("%s: cannot be loaded before Stave's library", path);
}

static void begin(void)
{
    call_next();
    if (stave_enabled(NULL))
        attach();
}

int InitializeInjection(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin);
    return 1;
}

/* Start and end of a traced server: configuration, directory, file names, the SDK's session.
 *
 * Called once by a server at its start and once at its end. Earlier files of the same names are kept with a number unless the
 * configuration says otherwise. Nothing here prints: what is wrong is in the caller's message. */
#include "serving/tracer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *say(char *message, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static const char *say(char *message, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (message && size)
        vsnprintf(message, size, format, ap);
    va_end(ap);
    return message ? message : "";
}

/* ---- the directory ---- */

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0;
}

const char *stave_serving_check_output(const char *trace_output, char *message, size_t message_size)
{
    struct stat st;
    if (!trace_output)
        return NULL;
    if (!*trace_output)
        return say(message, message_size, "trace_output is empty: give a directory");
    if (strlen(trace_output) > SV_SERVING_PATH_MAX - 64)
        return say(message, message_size, "trace_output is too long");
    if (stat(trace_output, &st) == 0)
        return S_ISDIR(st.st_mode)
                   ? NULL
                   : say(message, message_size,
                         "trace_output must be a directory, and %s is a file: name its directory",
                         trace_output);
    static const char *const files[] = {".json", ".csv", ".pftrace", ".json.gz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (has_suffix(trace_output, files[i]))
            return say(message, message_size,
                       "trace_output must be a directory: leave out the file name of %s",
                       trace_output);
    return NULL;
}

static int make_directories(const char *path)
{
    char part[SV_SERVING_PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return -1;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* ---- the names ---- */

static bool join(char *to, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/";
    return snprintf(to, SV_SERVING_PATH_MAX, "%s%s%s", dir, slash, name) < SV_SERVING_PATH_MAX;
}

static bool name_files(struct stave_serving *s, const char *dir)
{
    bool newer = s->config.names == STAVE_SERVING_NAMES_NEWER;
    return join(s->paths.json, dir, newer ? "perfetto_trace.json" : "batching_trace.json") &&
           join(s->paths.csv, dir, newer ? "trace.csv" : "batching_trace_summary.csv") &&
           join(s->paths.metrics, dir, newer ? "metrics.csv" : "batching_trace_metrics.csv") &&
           join(s->paths.pftrace, dir, newer ? "trace.pftrace" : "batching_trace.pftrace");
}

const char *stave_serving_file(const struct stave_serving *s, unsigned output)
{
    if (!s || !(s->config.outputs & output))
        return "";
    switch (output) {
    case STAVE_SERVING_JSON: return s->paths.json;
    case STAVE_SERVING_CSV: return s->paths.csv;
    case STAVE_SERVING_METRICS: return s->paths.metrics;
    case STAVE_SERVING_PFTRACE: return s->owns_session ? s->paths.pftrace : "";
    default: return "";
    }
}

/* ---- start ---- */

static void resolve(struct stave_serving *s, const struct stave_serving_config *config)
{
    struct stave_serving_config *c = &s->config;
    size_t n = config->size && config->size < sizeof *c ? config->size : sizeof *c;
    memcpy(c, config, n);
    if (!c->outputs)
        c->outputs = STAVE_SERVING_JSON | STAVE_SERVING_CSV | STAVE_SERVING_PFTRACE |
                     (c->names == STAVE_SERVING_NAMES_NEWER ? STAVE_SERVING_METRICS : 0u);
    if (!c->queue_records)
        c->queue_records = 65536;
    if (!c->flush_ms)
        c->flush_ms = 250;
    snprintf(s->server, sizeof s->server, "%s", c->server ? c->server : "StarPU Inference Server");
}

/* A session that runs already (STAVE_OUT, stave record) gets the events; else one of our own begins. */
static int start_session(struct stave_serving *s)
{
    if (!(s->config.outputs & STAVE_SERVING_PFTRACE) || stave_enabled(NULL))
        return 0;
    struct stave_options options = {.size = sizeof options, .out = s->paths.pftrace};
    s->owns_session = stave_start(&options) == 0;
    return s->owns_session ? 0 : -1;
}

struct stave_serving *stave_serving_open(const struct stave_serving_config *config, char *message,
                                         size_t message_size)
{
    say(message, message_size, "%s", "");
    if (!config || !config->trace_enabled)
        return NULL;
    if (stave_serving_check_output(config->trace_output, message, message_size))
        return NULL;
    const char *dir = config->trace_output ? config->trace_output : ".";
    if (make_directories(dir) != 0) {
        say(message, message_size, "cannot make the directory %s: %s", dir, strerror(errno));
        return NULL;
    }
    struct stave_serving *s = calloc(1, sizeof *s);
    if (!s) {
        say(message, message_size, "out of memory");
        return NULL;
    }
    resolve(s, config);
    pthread_mutex_init(&s->names_lock, NULL);
    s->salt = stave_flow_new();
    if (!name_files(s, dir) || start_session(s) != 0) {
        say(message, message_size, "cannot trace to %s", s->paths.pftrace);
        free(s);
        return NULL;
    }
    s->group = stave_track(STAVE_PROCESS, s->server);
    s->life = stave_track(s->group, "life cycle");
    return s;
}

int stave_serving_flush(struct stave_serving *s)
{
    return s ? stave_flush() : 0;
}

void stave_serving_count(const struct stave_serving *s, struct stave_serving_counts *counts)
{
    size_t size = counts->size;
    (void)s;
    memset(counts, 0, size < sizeof *counts ? size : sizeof *counts);
    counts->size = size;
}

int stave_serving_close(struct stave_serving *s, char *message, size_t message_size)
{
    say(message, message_size, "%s", "");
    if (!s)
        return 0;
    int failed = s->owns_session ? stave_stop() : stave_flush();
    if (failed)
        say(message, message_size, "the trace %s could not be finished", s->paths.pftrace);
    for (uint32_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    pthread_mutex_destroy(&s->names_lock);
    free(s);
    return failed;
}

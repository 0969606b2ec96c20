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

/* ---- start ---- */

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
    struct stave_options options = {
        .size = sizeof options, .out = s->paths.pftrace, .full = s->config.full};
    s->owns_session = stave_start(&options) == 0;
    return s->owns_session ? 0 : -1;
}

static void serving_free(struct stave_serving *s)
{
    for (uint32_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    pthread_mutex_destroy(&s->names_lock);
    sv_call_ring_fini(&s->ring);
    free(s);
}

static bool start_all(struct stave_serving *s, const char *dir, char *message, size_t size)
{
    if (!sv_call_ring_init(&s->ring, s->config.queue_records)) {
        say(message, size, "out of memory");
        return false;
    }
    if (!sv_serving_name_files(s, dir)) {
        say(message, size, "cannot name the files in %s: %s", dir, strerror(errno));
        return false;
    }
    if (start_session(s) != 0) {
        say(message, size, "cannot trace to %s", s->paths.pftrace);
        return false;
    }
    s->salt = stave_flow_new();
    s->group = stave_track(STAVE_PROCESS, s->server);
    s->life = stave_track(s->group, "life cycle");
    stave_track_order(s->life, 100);
    if (sv_tracer_thread_start(s, message, size))
        return true;
    if (s->owns_session)
        stave_stop();
    return false;
}

struct stave_serving *stave_serving_open(const struct stave_serving_config *config, char *message,
                                         size_t message_size)
{
    char nowhere[8];
    if (!message || !message_size) {
        message = nowhere;
        message_size = sizeof nowhere;
    }
    message[0] = '\0';
    if (!config || !config->trace_enabled)
        return NULL;
    if (stave_serving_check_output(config->trace_output, message, message_size))
        return NULL;
    const char *dir = config->trace_output ? config->trace_output : ".";
    if (make_directories(dir) != 0) {
        say(message, message_size, "cannot make the directory %s: %s", dir, strerror(errno));
        return NULL;
    }
    struct stave_serving *s = aligned_alloc(64, sizeof *s);
    if (!s) {
        say(message, message_size, "out of memory");
        return NULL;
    }
    memset(s, 0, sizeof *s);
    resolve(s, config);
    pthread_mutex_init(&s->names_lock, NULL);
    s->pid = getpid();
    if (!start_all(s, dir, message, message_size)) {
        serving_free(s);
        return NULL;
    }
    return s;
}

/* A forked child has no thread that would do it. */
static bool is_ours(const struct stave_serving *s)
{
    return s && s->pid == getpid();
}

int stave_serving_flush(struct stave_serving *s)
{
    if (!is_ours(s))
        return 0;
    int error = sv_tracer_thread_flush(s), failed = stave_flush();
    return error || failed ? -1 : 0;
}

void stave_serving_count(const struct stave_serving *s, struct stave_serving_counts *counts)
{
    struct stave_serving_counts c = {0};
    size_t size = counts->size < sizeof c ? counts->size : sizeof c;
    if (is_ours(s))
        sv_tracer_thread_count(s, &c);
    c.size = counts->size;
    memcpy(counts, &c, size);
}

int stave_serving_close(struct stave_serving *s, char *message, size_t message_size)
{
    char nowhere[8];
    if (!message || !message_size) {
        message = nowhere;
        message_size = sizeof nowhere;
    }
    message[0] = '\0';
    if (!is_ours(s))
        return 0;
    int error = sv_tracer_thread_stop(s, message, message_size);
    int failed = s->owns_session ? stave_stop() : stave_flush();
    if (failed && !error)
        say(message, message_size, "the trace %s could not be finished", s->paths.pftrace);
    serving_free(s);
    return error || failed ? -1 : 0;
}

/* Start and end of a traced server: configuration, directory, file names, the SDK's session.
 *
 * Called once by a server at its start and once at its end. Earlier files of the same names are
 * kept with a number unless the configuration says otherwise. Nothing here prints: what is wrong is
 * in the caller's struct stave_error. */
#include "serving/tracer.h"

#include <errno.h>
#include <stave/trace_context.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct stave_error *error, int code, int os_error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int fail(struct stave_error *error, int code, int os_error, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    error->code = code;
    error->os_error = os_error;
    vsnprintf(error->text, sizeof error->text, format, ap);
    va_end(ap);
    return code;
}

/* The caller's, or our own where it gave none; no error yet. */
static struct stave_error *cleared(struct stave_error *given, struct stave_error *own)
{
    struct stave_error *error = given ? given : own;
    *error = (struct stave_error){.code = STAVE_OK};
    return error;
}

/* ---- the directory ---- */

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0;
}

int stave_serving_check_output(const char *trace_output, struct stave_error *error)
{
    struct stave_error own;
    struct stat st;
    error = cleared(error, &own);
    if (!trace_output)
        return 0;
    if (!*trace_output)
        return fail(error, STAVE_EUSAGE, 0, "trace_output is empty: give a directory");
    if (strlen(trace_output) > SV_SERVING_PATH_MAX - 64)
        return fail(error, STAVE_EUSAGE, 0, "trace_output is too long");
    if (stat(trace_output, &st) == 0)
        return S_ISDIR(st.st_mode)
                   ? 0
                   : fail(error, STAVE_EUSAGE, 0,
                          "trace_output must be a directory, and %s is a file: name its directory",
                          trace_output);
    static const char *const files[] = {".json", ".csv", ".pftrace", ".json.gz"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (has_suffix(trace_output, files[i]))
            return fail(error, STAVE_EUSAGE, 0,
                        "trace_output must be a directory: leave out the file name of %s",
                        trace_output);
    return 0;
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

/* ---- what is kept ---- */

static int refuse_rule(const char *keep, struct stave_error *error)
{
    return fail(error, STAVE_EUSAGE, 0, "keep: '%.80s': expected " SV_KEEP_WORDS, keep);
}

/* What was recorded under a rule is judged by it, also after "all". */
static int set_rule(struct stave_serving *s, const char *keep, struct stave_error *error)
{
    struct sv_keep_rule rule;
    if (!sv_keep_parse(keep, &rule))
        return refuse_rule(keep, error);
    if (rule.is_on) {
        atomic_store(&s->slow_ns, rule.slow_ns);
        atomic_store(&s->slow_percent, rule.percent);
    }
    atomic_store(&s->holds, rule.is_on);
    return 0;
}

int stave_serving_keep(struct stave_serving *s, const char *keep, struct stave_error *error)
{
    struct stave_error own;
    struct sv_keep_rule rule;
    error = cleared(error, &own);
    if (s && keep)
        return set_rule(s, keep, error);
    return !keep || sv_keep_parse(keep, &rule) ? 0 : refuse_rule(keep, error);
}

/* ---- what is recorded at all ---- */

void stave_serving_sample(struct stave_serving *s, uint32_t rate, bool by_parent)
{
    if (!s)
        return;
    atomic_store(&s->by_parent, by_parent);
    atomic_store(&s->rate, rate);
}

struct stave_serving *stave_serving_sampled(struct stave_serving *s,
                                            const struct stave_trace_context *caller)
{
    if (!s)
        return NULL;
    if (caller && atomic_load_explicit(&s->by_parent, memory_order_relaxed))
        return caller->flags & 1 ? s : NULL;
    uint32_t rate = atomic_load_explicit(&s->rate, memory_order_relaxed);
    bool is_one = rate < 2 ||
                  atomic_fetch_add_explicit(&s->turn, 1, memory_order_relaxed) % rate == 0;
    return is_one ? s : NULL;
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

/* A session that runs already (STAVE_OUT, stave record) gets the events; else one of our own
 * begins. */
static int start_session(struct stave_serving *s, struct stave_error *error)
{
    if (!(s->config.outputs & STAVE_SERVING_PFTRACE) || stave_enabled(NULL))
        return 0;
    struct stave_options options = {.size = sizeof options,
                                    .out = s->paths.pftrace,
                                    .full = s->config.full,
                                    .rotate_bytes = s->config.rotate_bytes,
                                    .rotate_ns = s->config.rotate_ns,
                                    .rotate_parts = s->config.rotate_parts};
    struct stave_error why;
    s->owns_session = stave_start(&options, &why) == 0;
    return s->owns_session
               ? 0
               : fail(error, why.code, why.os_error, "cannot trace to %s", s->paths.pftrace);
}

static void serving_free(struct stave_serving *s)
{
    for (uint32_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    pthread_mutex_destroy(&s->names_lock);
    sv_call_ring_fini(&s->ring);
    free(s);
}

static int start_all(struct stave_serving *s, const char *dir, struct stave_error *error)
{
    if (s->config.keep && set_rule(s, s->config.keep, error) != 0)
        return error->code;
    if (!sv_call_ring_init(&s->ring, s->config.queue_records))
        return fail(error, STAVE_EMEMORY, 0, "out of memory");
    if (!sv_serving_name_files(s, dir))
        return fail(error, STAVE_EOUTPUT, errno, "cannot name the files in %s: %s", dir,
                    strerror(errno));
    if (start_session(s, error) != 0)
        return error->code;
    s->opened_ns = stave_now_ns();
    s->salt = stave_flow_new();
    s->group = stave_track(STAVE_PROCESS, s->server);
    s->life = stave_track(s->group, "life cycle");
    stave_set_track_order(s->life, 100);
    if (sv_tracer_thread_start(s, error->text, sizeof error->text))
        return 0;
    error->code = STAVE_EOUTPUT;
    if (s->owns_session)
        stave_stop();
    return error->code;
}

struct stave_serving *stave_serving_open(const struct stave_serving_config *config,
                                         struct stave_error *error)
{
    struct stave_error own;
    error = cleared(error, &own);
    if (!config || !config->trace_enabled ||
        stave_serving_check_output(config->trace_output, error) != 0)
        return NULL;
    const char *dir = config->trace_output ? config->trace_output : ".";
    if (make_directories(dir) != 0) {
        fail(error, STAVE_EOUTPUT, errno, "cannot make the directory %s: %s", dir, strerror(errno));
        return NULL;
    }
    struct stave_serving *s = aligned_alloc(64, sizeof *s);
    if (!s) {
        fail(error, STAVE_EMEMORY, 0, "out of memory");
        return NULL;
    }
    memset(s, 0, sizeof *s);
    resolve(s, config);
    pthread_mutex_init(&s->names_lock, NULL);
    s->pid = getpid();
    if (start_all(s, dir, error) != 0) {
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
    return error || failed ? STAVE_EOUTPUT : 0;
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

int stave_serving_close(struct stave_serving *s, struct stave_error *error)
{
    struct stave_error own;
    error = cleared(error, &own);
    if (!is_ours(s))
        return 0;
    error->os_error = sv_tracer_thread_stop(s, error->text, sizeof error->text);
    if (error->os_error != 0)
        error->code = STAVE_EOUTPUT;
    int failed = s->owns_session ? stave_stop() : stave_flush();
    if (failed && error->code == STAVE_OK)
        fail(error, STAVE_EOUTPUT, 0, "the trace %s could not be finished", s->paths.pftrace);
    serving_free(s);
    return error->code;
}

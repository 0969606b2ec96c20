/* The thread behind the life-cycle calls: moves their ring into the life cycle, and what that
 * reports into files and time line.
 *
 * Started by open, stopped by close. It alone touches the life cycle, the files and the time line.
 * It rests while there is little to do, sleeps while there is nothing, and lets the SDK's writer
 * catch up after a burst of slices, since its own ring must not overflow. While all processors are
 * busy it only moves the calls into a backlog: what it makes of them can wait, the requests cannot.
 * An exhausted heap ends the files as they were after the last flush, not the program: the thread
 * then skips what is recorded, and flush and close return ENOMEM. */
#include "serving/tracer.h"

#include "core/base/mem.h"
#include "core/serving/batching_json.h"
#include "core/serving/summary_csv.h"
#include "serving/backlog.h"
#include "serving/engine_tracks.h"
#include "serving/growing_file.h"
#include "serving/held_calls.h"
#include "serving/processors.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    REST_MS = 5,
    REST_BUSY_MS = 25,  /* moving calls is quick, waking up is what costs */
    REST_IDLE_MS = 300, /* after IDLE_ROUNDS rests without a call */
    IDLE_ROUNDS = 100,
    CELLS_FOR_REST = 32768, /* of a queue that holds what comes in that time */
    CALLS_WHILE_FREE = 64,  /* of the backlog, before it looks again whether a processor is free */
    CALLS_WHILE_BUSY = 32,  /* of it in every REST_MS in any case: half a percent of a processor */
    NICENESS = 5,
    SLICES_AT_ONCE = 4096,
    TEXT_AT_ONCE = 256 << 10, /* a quarter of the ring that the SDK gives a thread */
    OUT_BYTES = 256 << 10,
    CALLS_AT_ONCE = 1024
};

struct sv_tracer_thread {
    struct stave_serving *server;
    struct sv_life *life;       /* what is kept */
    struct sv_life *all;        /* where requests may be left out: all of them, for the counters */
    struct sv_held_calls *held; /* then only */
    struct sv_batching_json json;
    struct sv_summary_csv csv;
    struct sv_metrics_csv metrics;
    struct sv_growing_file json_file, csv_file, metrics_file;
    struct sv_timeline timeline;
    uint64_t *words; /* of the call that was taken from the ring */
    struct sv_backlog backlog;
    struct sv_processors processors;
    uint64_t n_deferred;
    bool may_defer; /* the calls are in a trace, too */
    bool is_busy;   /* the processors are, as of this round */
    unsigned idle;  /* rests in a row before which there was no call */
    uint64_t told_lost_steps, told_lost_held;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    uint64_t wanted, flushed;           /* flushes asked for and made; under the lock */
    bool stop;                          /* under the lock */
    bool is_without_memory;             /* the thread's, after it its joiner's */
    int error;                          /* errno of the first failure of a file; under the lock */
    struct stave_serving_counts counts; /* under the lock; as of the last rest */
};

/* ---- moments ---- */

static void count_moment(struct sv_tracer_thread *t, struct sv_life *l, enum sv_life_moment moment,
                         int64_t time_ns, const struct sv_life_batch *b)
{
    if (t->metrics_file.fd >= 0)
        sv_metrics_csv_report(&t->metrics, l, moment, time_ns);
    sv_timeline_count_moment(&t->timeline, l, moment, time_ns, b);
}

static void on_any_moment(void *ctx, struct sv_life *l, enum sv_life_moment moment, int64_t time_ns,
                          const struct sv_life_request *r, const struct sv_life_batch *b)
{
    (void)r;
    count_moment(ctx, l, moment, time_ns, b);
}

static void on_moment(void *ctx, struct sv_life *l, enum sv_life_moment moment, int64_t time_ns,
                      const struct sv_life_request *r, const struct sv_life_batch *b)
{
    struct sv_tracer_thread *t = ctx;
    if (t->json_file.fd >= 0)
        sv_batching_json_report(&t->json, l, moment, time_ns, r, b);
    if (t->csv_file.fd >= 0)
        sv_summary_csv_report(&t->csv, l, moment, r, b);
    sv_timeline_record(&t->timeline, l, moment, time_ns, r, b);
    sv_serving_ended(t->server, l, moment, r, b);
    if (!t->all)
        count_moment(t, l, moment, time_ns, b);
}

static void put_step(struct sv_tracer_thread *t, const struct sv_call_cell *c,
                     const uint64_t *words)
{
    struct sv_life_step step = {.id = c->id,
                                .start_ns = c->start_ns < c->time_ns ? c->start_ns : c->time_ns,
                                .end_ns = c->time_ns,
                                .engine = (uint32_t)c->worker,
                                .kv_used = c->model,
                                .kv_total = c->samples,
                                .waiting = (uint32_t)c->device,
                                .graph = c->flags >> 8,
                                .flags = c->flags & 0xff,
                                .n = c->n,
                                .members = (const struct sv_engine_member *)(const void *)words};
    if (t->all)
        sv_life_step(t->all, &step);
    sv_engine_step_begin(&t->timeline);
    sv_life_step(t->life, &step);
    if (t->json_file.fd >= 0)
        sv_batching_json_step(&t->json, &step);
    sv_engine_step_end(&t->timeline, &step);
}

static void put_into(struct sv_life *l, const struct sv_call_cell *c, const uint64_t *words)
{
    char text[SV_CALL_WORDS_MAX * 8 + 1];
    struct sv_life_call call = {.time_ns = c->time_ns,
                                .start_ns = c->start_ns,
                                .id = c->id,
                                .model = c->model,
                                .samples = c->samples,
                                .worker = c->worker,
                                .device = c->device,
                                .op = c->op,
                                .flags = c->flags,
                                .n = c->n,
                                .members = words};
    if (c->op == SV_LIFE_MODEL || c->op == SV_LIFE_WORKER) {
        memcpy(text, words, c->words * sizeof *words);
        text[c->words * sizeof *words] = '\0';
        call.text = text;
    }
    sv_life_put(l, &call);
}

/* A call that is kept: it gets its event now, if it has none. */
static void put_kept(void *ctx, const struct sv_call_cell *c, const uint64_t *words)
{
    struct sv_tracer_thread *t = ctx;
    if (c->is_held) {
        sv_serving_record(t->server, c, words);
        t->timeline.n_events++;
    }
    if (c->op == SV_LIFE_OPERATORS)
        sv_timeline_operators(&t->timeline, t->life, c->id,
                              (const struct stave_serving_operator *)(const void *)words, c->n);
    else if (c->op == SV_LIFE_STEP)
        put_step(t, c, words);
    else
        put_into(t->life, c, words);
}

static void put(struct sv_tracer_thread *t, const struct sv_call_cell *c, const uint64_t *words)
{
    const struct stave_serving *s = t->server;
    if (c->is_held && !t->held) {
        t->held = sv_held_new(put_kept, t);
        t->all = sv_life_new(NULL, on_any_moment, t);
    }
    if (!t->held) {
        put_kept(t, c, words);
        return;
    }
    const struct sv_keep_rule rule = {
        .is_on = true,
        .slow_ns = atomic_load_explicit(&s->slow_ns, memory_order_relaxed),
        .percent = atomic_load_explicit(&s->slow_percent, memory_order_relaxed)};
    if (c->op != SV_LIFE_STEP && c->op != SV_LIFE_OPERATORS)
        put_into(t->all, c, words);
    sv_held_put(t->held, &rule, c, words);
}

/* What was left out since the last time, of each model. */
static void put_left_out(struct sv_tracer_thread *t)
{
    uint64_t n[SV_N_LEFT_OUT];
    struct sv_life_call call = {.op = SV_LIFE_LEFT_OUT, .n = SV_N_LEFT_OUT, .members = n};
    for (uint32_t model = 0; t->held && model < sv_held_models(t->held); model++) {
        if (!sv_held_left_out(t->held, model, n, &call.time_ns))
            continue;
        call.model = model;
        SV_INSTANT_AT(t->server->life, call.time_ns, SV_LIFE_CATEGORY, "left out", "model", model,
                      "requests", n[SV_LEFT_REQUESTS], "batches", n[SV_LEFT_BATCHES], "samples",
                      n[SV_LEFT_SAMPLES], "sum_ns", n[SV_LEFT_SUM_NS], "most_ns",
                      n[SV_LEFT_MOST_NS], "span_ns", n[SV_LEFT_SPAN_NS]);
        t->timeline.n_events++;
        sv_life_put(t->life, &call);
        if (t->json_file.fd >= 0)
            sv_batching_json_left_out(&t->json, t->life, &call);
    }
}

/* ---- files ---- */

static void flush_files(struct sv_tracer_thread *t)
{
    sv_growing_flush(&t->json_file, &t->json.out);
    sv_growing_flush(&t->csv_file, &t->csv.out);
    sv_growing_flush(&t->metrics_file, &t->metrics.out);
}

static bool is_full(const struct sv_tracer_thread *t)
{
    return t->json.out.len > OUT_BYTES || t->csv.out.len > OUT_BYTES ||
           t->metrics.out.len > OUT_BYTES;
}

static int first_error(const struct sv_tracer_thread *t)
{
    return t->is_without_memory ? ENOMEM
           : t->json_file.error ? t->json_file.error
           : t->csv_file.error  ? t->csv_file.error
                                : t->metrics_file.error;
}

/* ---- the loop ---- */

/* What the SDK's ring has no space for waits until its writer has been there. */
static bool has_much(const struct sv_tracer_thread *t)
{
    return t->timeline.n_events > SLICES_AT_ONCE || t->timeline.n_bytes >= TEXT_AT_ONCE;
}

static void pass_on(struct sv_tracer_thread *t)
{
    if (is_full(t))
        flush_files(t);
    if (has_much(t)) {
        stave_flush();
        t->timeline.n_events = t->timeline.n_bytes = 0;
    }
}

/* At most n calls of the backlog; false: it is empty. */
static bool catch_up(struct sv_tracer_thread *t, uint64_t n)
{
    struct sv_call_cell call;
    const uint64_t *words;
    uint64_t lost = 0;
    while (n-- > 0 && sv_backlog_take(&t->backlog, &call, &words, &lost)) {
        put(t, &call, words);
        if (has_much(t))
            pass_on(t);
    }
    atomic_fetch_add_explicit(&t->server->ring.lost, lost, memory_order_relaxed);
    return t->backlog.n > 0;
}

/* Steps and calls that may be left out are nowhere but in the ring: they do not wait. Everything
 * else is in the trace already. */
static void put_or_defer(struct sv_tracer_thread *t, const struct sv_call_cell *call)
{
    bool waits = (t->is_busy || t->backlog.n > 0) && call->op != SV_LIFE_STEP && !call->is_held;
    if (waits && sv_backlog_put(&t->backlog, call, t->words)) {
        t->n_deferred++;
        return;
    }
    catch_up(t, UINT64_MAX); /* in their order */
    put(t, call, t->words);
}

/* How many calls it took; CALLS_AT_ONCE: there may be more. */
static size_t empty_ring(struct sv_tracer_thread *t)
{
    struct sv_call_cell call;
    size_t n = 0;
    while (n < CALLS_AT_ONCE && t->timeline.n_bytes < TEXT_AT_ONCE &&
           sv_call_ring_take(&t->server->ring, &call, t->words)) {
        put_or_defer(t, &call);
        n++;
    }
    bool is_long = t->timeline.n_bytes >= TEXT_AT_ONCE;
    pass_on(t);
    return is_long ? CALLS_AT_ONCE : n;
}

static void empty_ring_wholly(struct sv_tracer_thread *t)
{
    while (empty_ring(t) == CALLS_AT_ONCE)
        ;
}

static bool may_rest_long(const struct sv_tracer_thread *t)
{
    return t->is_busy && t->server->ring.n_cells >= CELLS_FOR_REST;
}

/* The backlog as far as a processor is free for it, or to its end; the ring in between. A little of
 * it in any case: whoever shares its machine with others that are busy all the time, and is not
 * busy itself, is never far behind. */
static void work_off(struct sv_tracer_thread *t, bool is_urgent)
{
    while (t->backlog.n > 0) {
        t->is_busy = !is_urgent && sv_processors_are_busy(&t->processors);
        if (t->is_busy) {
            catch_up(t, may_rest_long(t) ? CALLS_WHILE_BUSY * REST_BUSY_MS / REST_MS
                                         : CALLS_WHILE_BUSY);
            pass_on(t);
            return;
        }
        catch_up(t, is_urgent ? CALLS_AT_ONCE : CALLS_WHILE_FREE);
        pass_on(t);
        empty_ring_wholly(t);
    }
}

/* A step that found the ring full is in no file, and so is a call that would have been held: the
 * trace says how many. */
static void tell_losses(struct sv_tracer_thread *t)
{
    uint64_t lost = atomic_load_explicit(&t->server->ring.lost_steps, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&t->server->ring.lost_held, memory_order_relaxed);
    if (lost != t->told_lost_steps)
        sv_engine_lost(&t->timeline, lost - t->told_lost_steps);
    if (held != t->told_lost_held)
        SV_LOSS(t->server->life, "calls: the queue of the tracer was full", SV_LIFE_CATEGORY,
                held - t->told_lost_held);
    t->told_lost_steps = lost;
    t->told_lost_held = held;
}

/* With the lock held. */
static void take_stock(struct sv_tracer_thread *t)
{
    struct sv_life *l = t->all ? t->all : t->life;
    const struct sv_life_counts *c = sv_life_count(l), *kept = sv_life_count(t->life);
    t->counts = (struct stave_serving_counts){.calls = c->calls,
                                              .requests = c->requests,
                                              .batches = c->batches,
                                              .rejected = c->rejected,
                                              .failed = c->failed + c->cancelled,
                                              .open_requests = sv_life_open_requests(l),
                                              .open_batches = sv_life_open_batches(l),
                                              .forgotten = c->forgotten,
                                              .steps = c->steps,
                                              .step_members = c->step_members,
                                              .tokens_in = c->tokens_in,
                                              .tokens_out = c->tokens_out,
                                              .unexpected = c->unexpected,
                                              .deferred = t->n_deferred,
                                              .left_out = kept->left_out[SV_LEFT_REQUESTS],
                                              .left_out_batches = kept->left_out[SV_LEFT_BATCHES]};
    t->error = first_error(t);
}

static int64_t now_ms(void)
{
    return stave_now_ns() / 1000000;
}

/* Waits a little, or until a request comes. False: the end. */
static bool rest(struct sv_tracer_thread *t, uint64_t flush)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (may_rest_long(t) ? REST_BUSY_MS : REST_MS) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&t->lock);
    take_stock(t);
    if (t->flushed < flush) {
        t->flushed = flush;
        pthread_cond_broadcast(&t->done);
    }
    bool may_rest = !t->stop && t->wanted == t->flushed, is_idle = t->idle >= IDLE_ROUNDS;
    if (may_rest && is_idle)
        sv_call_ring_will_sleep(&t->server->ring);
    else if (may_rest)
        pthread_cond_timedwait(&t->wake, &t->lock, &until);
    bool goes_on = !t->stop || t->wanted != t->flushed;
    pthread_mutex_unlock(&t->lock);
    if (may_rest && is_idle) /* then it goes on: whoever asks for the end wakes it */
        sv_call_ring_sleep(&t->server->ring, REST_IDLE_MS);
    return goes_on;
}

/* With the lock held, or not. */
static void wake_up(struct sv_tracer_thread *t)
{
    pthread_cond_signal(&t->wake);
    sv_call_ring_wake(&t->server->ring);
}

static uint64_t wanted_flush(struct sv_tracer_thread *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t wanted = t->wanted;
    pthread_mutex_unlock(&t->lock);
    return wanted;
}

static void finish(struct sv_tracer_thread *t)
{
    t->is_busy = false;
    while (empty_ring(t) > 0 || catch_up(t, CALLS_AT_ONCE))
        pass_on(t);
    tell_losses(t);
    if (t->held) {
        sv_held_release(t->held); /* they have no end */
        sv_life_end(t->all);
    }
    put_left_out(t);
    sv_life_end(t->life);
    sv_timeline_settle(&t->timeline);
    flush_files(t);
    pthread_mutex_lock(&t->lock);
    take_stock(t);
    pthread_mutex_unlock(&t->lock);
}

static void write_files(struct sv_tracer_thread *t)
{
    int64_t flushed_ms = now_ms();
    uint64_t flush;
    do {
        flush = wanted_flush(t); /* what was put before it was asked for is in the ring by now */
        bool has_calls = sv_call_ring_n(&t->server->ring) > 0 || t->backlog.n > 0;
        t->idle = has_calls ? 0 : t->idle + 1;
        t->is_busy = t->may_defer && flush == t->flushed && has_calls &&
                     sv_processors_are_busy(&t->processors);
        empty_ring_wholly(t);
        work_off(t, flush > t->flushed || sv_backlog_is_long(&t->backlog));
        t->timeline.n_events = t->timeline.n_bytes = 0;
        tell_losses(t);
        if (flush > t->flushed || now_ms() - flushed_ms >= (int64_t)t->server->config.flush_ms) {
            put_left_out(t);
            sv_timeline_settle(&t->timeline);
            flush_files(t);
            flushed_ms = now_ms();
        }
    } while (rest(t, flush));
    finish(t);
}

/* What is recorded from now on is lost and counted; no caller waits for it. */
static void pass_over(struct sv_tracer_thread *t)
{
    struct sv_call_cell call;
    uint64_t flush;
    t->is_without_memory = true;
    do {
        uint64_t n = 0;
        flush = wanted_flush(t);
        while (sv_call_ring_take(&t->server->ring, &call, t->words))
            n++;
        atomic_fetch_add_explicit(&t->server->ring.lost, n, memory_order_relaxed);
    } while (rest(t, flush));
}

static void *run(void *arg)
{
    struct sv_tracer_thread *t = arg;
    jmp_buf jump;
    prctl(PR_SET_NAME, "stave-serving");
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* of this thread: requests come first */
    sv_no_memory = &jump;
    if (setjmp(jump) == 0)
        write_files(t);
    else
        pass_over(t);
    sv_no_memory = NULL;
    return NULL;
}

/* ---- start and end ---- */

static bool open_file(struct sv_growing_file *f, bool is_wanted, const char *path,
                      const char *closing, struct sv_buf *head, char *message, size_t size)
{
    f->fd = -1;
    if (!is_wanted)
        return true;
    if (!sv_growing_open(f, path, closing)) {
        snprintf(message, size, "cannot write %s: %s", path, strerror(errno));
        return false;
    }
    sv_growing_flush(f, head); /* readable from the first moment */
    return true;
}

static bool open_files(struct sv_tracer_thread *t, char *message, size_t size)
{
    const struct stave_serving *s = t->server;
    unsigned outputs = s->config.outputs;
    struct timespec real;
    int64_t origin_ns = stave_now_ns();
    clock_gettime(CLOCK_REALTIME, &real);
    bool is_newer = s->config.names == STAVE_SERVING_NAMES_NEWER;
    struct sv_batching_json_options o = {.server = s->server,
                                         .origin_ns = origin_ns,
                                         .origin_unix_ns = (int64_t)real.tv_sec * 1000000000 +
                                                           real.tv_nsec,
                                         .is_newer = is_newer,
                                         .without_spans = s->config.without_request_spans};
    sv_batching_json_init(&t->json, &o);
    sv_summary_csv_init(&t->csv, is_newer);
    sv_metrics_csv_init(&t->metrics, origin_ns);
    return open_file(&t->json_file, outputs & STAVE_SERVING_JSON, s->paths.json,
                     SV_BATCHING_JSON_CLOSING, &t->json.out, message, size) &&
           open_file(&t->csv_file, outputs & STAVE_SERVING_CSV, s->paths.csv, "", &t->csv.out,
                     message, size) &&
           open_file(&t->metrics_file, outputs & STAVE_SERVING_METRICS, s->paths.metrics, "",
                     &t->metrics.out, message, size);
}

static void thread_free(struct sv_tracer_thread *t)
{
    sv_growing_close(&t->json_file);
    sv_growing_close(&t->csv_file);
    sv_growing_close(&t->metrics_file);
    sv_batching_json_fini(&t->json);
    sv_summary_csv_fini(&t->csv);
    sv_metrics_csv_fini(&t->metrics);
    sv_timeline_fini(&t->timeline);
    sv_backlog_fini(&t->backlog);
    sv_processors_fini(&t->processors);
    sv_life_free(t->life);
    sv_life_free(t->all);
    sv_held_free(t->held);
    free(t->words);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->done);
    free(t);
}

/* Signals are for the server's own threads. */
static int start(struct sv_tracer_thread *t)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&t->thread, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* What allocates, so that an exhausted heap comes back here. */
static bool prepare(struct sv_tracer_thread *t, char *message, size_t message_size)
{
    struct stave_serving *s = t->server;
    jmp_buf jump, *outer = sv_no_memory;
    volatile bool is_open = false;
    sv_no_memory = &jump;
    if (setjmp(jump) == 0) {
        t->life = sv_life_new(NULL, on_moment, t);
        /* Not zeroed: what no step needs takes no memory. */
        t->words = sv_realloc(NULL, sv_call_ring_words(&s->ring) * sizeof *t->words);
        sv_timeline_init(&t->timeline, s, s->group);
        sv_backlog_init(&t->backlog, s->paths.dir);
        sv_processors_init(&t->processors);
        t->may_defer = stave_enabled(SV_LIFE_CATEGORY);
        is_open = open_files(t, message, message_size);
    } else {
        snprintf(message, message_size, "out of memory");
    }
    sv_no_memory = outer;
    return is_open;
}

bool sv_tracer_thread_start(struct stave_serving *s, char *message, size_t message_size)
{
    struct sv_tracer_thread *t = calloc(1, sizeof *t);
    if (!t) {
        snprintf(message, message_size, "out of memory");
        return false;
    }
    pthread_condattr_t monotonic;
    t->server = s;
    t->json_file.fd = t->csv_file.fd = t->metrics_file.fd = -1;
    t->backlog.fd = t->processors.fd = -1;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_cond_init(&t->done, NULL);
    pthread_condattr_destroy(&monotonic);
    bool is_open = prepare(t, message, message_size);
    int error = is_open ? start(t) : 0;
    if (!is_open || error) {
        if (error)
            snprintf(message, message_size, "no thread: %s", strerror(error));
        thread_free(t);
        return false;
    }
    s->thread = t;
    return true;
}

int sv_tracer_thread_flush(struct stave_serving *s)
{
    struct sv_tracer_thread *t = s->thread;
    pthread_mutex_lock(&t->lock);
    uint64_t mine = ++t->wanted;
    wake_up(t);
    while (t->flushed < mine)
        pthread_cond_wait(&t->done, &t->lock);
    int error = t->error;
    pthread_mutex_unlock(&t->lock);
    return error;
}

int sv_tracer_thread_stop(struct stave_serving *s, char *message, size_t message_size)
{
    struct sv_tracer_thread *t = s->thread;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    wake_up(t);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    int error = first_error(t);
    if (error)
        snprintf(message, message_size, "the files beside %s are not complete: %s", s->paths.json,
                 strerror(error));
    s->thread = NULL;
    thread_free(t);
    return error;
}

void sv_tracer_thread_count(const struct stave_serving *s, struct stave_serving_counts *counts)
{
    struct sv_tracer_thread *t = s->thread;
    pthread_mutex_lock(&t->lock);
    *counts = t->counts;
    pthread_mutex_unlock(&t->lock);
    counts->lost = atomic_load_explicit(&s->ring.lost, memory_order_relaxed);
    counts->lost_steps = atomic_load_explicit(&s->ring.lost_steps, memory_order_relaxed);
}

/* See otlp_live.h. put() is called by the thread of libstave-serving that writes the trace, the
 * rest by the program's main thread; metrics by the fronts.
 *
 * Spans are those of `stave export --to otlp`: a request has the ids of its trace context or made
 * ones, and a link to its batch, which is a trace of its own. */
#include "server/run/otlp_live.h"

#include "server/run/otlp_way.h"

#include "cli/console.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/now.h"
#include "core/base/wire.h"
#include "core/serving/engine_words.h"
#include "core/stream/trace_context.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/reader.h"
#include "formats/otlp/schema.h"
#include "server/server_metrics.h"

#include <pthread.h>
#include <stave/trace_context.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    QUEUE_BYTES = 4 << 20,
    SEND_BYTES = 256 << 10, /* no longer than a second for this much */
    SEND_MS = 1000,
    ANSWER_MS = 5000,
    FIRST_WAIT_MS = 250,
    LONGEST_WAIT_MS = 30000,
    PIECE_BYTES = 1 << 20, /* of a request: gRPC servers take 4 MiB, unless told otherwise */
    CLOSE_MS = 3000
};

/* Spans, one after the other, each as a field of ScopeSpans. */
struct batch {
    struct sv_buf bytes;
    uint64_t n;
};

struct sv_otlp_live {
    struct sv_otlp_way *way;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch queue;            /* under the lock, as is all that follows */
    uint64_t sent, lost, repeated; /* lost: also what the collector refused */
    bool stops;
    int64_t until_ms; /* when it stops */
    uint64_t salt;    /* of made ids */
    uint64_t chance;  /* the sender's */
    bool has_complained;
    stave_track_t lost_track;
};

/* ---- a span ---- */

struct ids {
    uint8_t trace[SV_TRACE_ID_BYTES], span[SV_SPAN_ID_BYTES];
};

static void put_word(uint8_t *to, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        to[i] = (uint8_t)v;
}

static struct ids make_ids(const struct sv_otlp_live *o, uint64_t id, bool is_batch)
{
    struct ids made;
    uint64_t seed = sv_mix64(sv_mix64(id + 1) ^ (is_batch ? ~o->salt : o->salt));
    put_word(made.span, seed | 1);
    put_word(made.trace, sv_mix64(seed + 1));
    put_word(made.trace + 8, sv_mix64(seed + 2) | 1);
    return made;
}

static struct ids ids_of(const struct sv_otlp_live *o, const struct stave_serving_ended *e)
{
    struct ids own = make_ids(o, e->id, e->is_batch);
    if (e->trace_id)
        memcpy(own.trace, e->trace_id, sizeof own.trace);
    if (e->span_id)
        memcpy(own.span, e->span_id, sizeof own.span);
    return own;
}

static void put_text(struct sv_buf *b, const char *key, const char *text)
{
    sv_otlp_put_text(b, OTLP_SPAN_ATTRIBUTES, key, text, strlen(text));
}

static void put_seconds(struct sv_buf *b, const char *key, int64_t from_ns, int64_t to_ns)
{
    if (from_ns && to_ns >= from_ns)
        sv_otlp_put_double(b, OTLP_SPAN_ATTRIBUTES, key, (double)(to_ns - from_ns) / 1e9);
}

static void put_request(const struct sv_otlp_live *o, struct sv_buf *b,
                        const struct stave_serving_ended *e)
{
    sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, "gen_ai.request.id", (int64_t)e->id);
    put_text(b, "gen_ai.request.model", e->model);
    put_seconds(b, "gen_ai.latency.time_in_queue", e->start_ns,
                e->dequeued_ns ? e->dequeued_ns : INT64_MIN);
    put_seconds(b, "gen_ai.latency.e2e", e->start_ns, e->end_ns);
    put_text(b, SV_LLM_OUTCOME, e->outcome);
    if (!e->has_batch)
        return;
    struct ids batch = make_ids(o, e->batch, true);
    sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, SV_LLM_BATCH, (int64_t)e->batch);
    size_t link = sv_put_begin(b, OTLP_SPAN_LINKS);
    sv_put_bytes(b, OTLP_LINK_TRACE_ID, batch.trace, sizeof batch.trace);
    sv_put_bytes(b, OTLP_LINK_SPAN_ID, batch.span, sizeof batch.span);
    sv_put_end(b, link);
}

static void put_batch(struct sv_buf *b, const struct stave_serving_ended *e)
{
    sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, OTLP_STAVE_BATCH, (int64_t)e->id);
    put_text(b, "model_name", e->model);
    sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, "batch_size", e->samples);
    sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, "worker_id", e->worker);
    if (strcmp(e->outcome, "failed") == 0)
        put_text(b, SV_LLM_OUTCOME, e->outcome);
}

static void put_status(struct sv_buf *b, const char *outcome)
{
    bool is_good = strcmp(outcome, "responded") == 0 || strcmp(outcome, "done") == 0;
    size_t status = sv_put_begin(b, OTLP_SPAN_STATUS);
    if (!is_good)
        sv_put_text(b, OTLP_STATUS_MESSAGE, outcome, strlen(outcome));
    sv_put_u64(b, OTLP_STATUS_CODE, is_good ? OTLP_STATUS_UNSET : OTLP_STATUS_ERROR);
    sv_put_end(b, status);
}

static uint64_t wall(int64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)(ns + (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - stave_now_ns());
}

static void put_span(const struct sv_otlp_live *o, struct sv_buf *b,
                     const struct stave_serving_ended *e)
{
    struct ids own = ids_of(o, e);
    const char *name = e->is_batch ? "batch" : "request";
    uint64_t start = wall(e->start_ns);
    size_t span = sv_put_begin(b, OTLP_SS_SPANS);
    sv_put_bytes(b, OTLP_SPAN_TRACE_ID, own.trace, sizeof own.trace);
    sv_put_bytes(b, OTLP_SPAN_ID, own.span, sizeof own.span);
    if (e->state[0])
        sv_put_text(b, OTLP_SPAN_TRACE_STATE, e->state, strlen(e->state));
    if (e->parent_id && sv_is_id(e->parent_id, SV_SPAN_ID_BYTES))
        sv_put_bytes(b, OTLP_SPAN_PARENT_ID, e->parent_id, SV_SPAN_ID_BYTES);
    sv_put_text(b, OTLP_SPAN_NAME, name, strlen(name));
    sv_put_u64(b, OTLP_SPAN_KIND, e->is_batch ? OTLP_KIND_INTERNAL : OTLP_KIND_SERVER);
    sv_put_fixed64(b, OTLP_SPAN_START, start);
    sv_put_fixed64(b, OTLP_SPAN_END, start + (uint64_t)(e->end_ns - e->start_ns));
    if (e->is_batch)
        put_batch(b, e);
    else
        put_request(o, b, e);
    if (e->flags & STAVE_SERVING_WARMUP)
        sv_otlp_put_int(b, OTLP_SPAN_ATTRIBUTES, OTLP_STAVE_WARMUP, 1);
    put_status(b, e->outcome);
    sv_put_end(b, span);
}

/* ---- the queue ---- */

/* With the lock. The trace says how many there are so far. */
static void lose(struct sv_otlp_live *o, uint64_t n)
{
    o->lost += n;
    STAVE_COUNTER_ON(o->lost_track, "serving", o->lost);
}

void sv_otlp_live_put(void *live, const struct stave_serving_ended *what)
{
    struct sv_otlp_live *o = live;
    pthread_mutex_lock(&o->lock);
    size_t before = o->queue.bytes.len;
    if (before < QUEUE_BYTES)
        put_span(o, &o->queue.bytes, what);
    if (before >= QUEUE_BYTES || o->queue.bytes.failed) {
        o->queue.bytes.len = before;
        o->queue.bytes.failed = false;
        lose(o, 1);
    } else {
        o->queue.n++;
    }
    if (before < SEND_BYTES && o->queue.bytes.len >= SEND_BYTES)
        pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

/* With the lock: for so long, or until there is something to do. */
static void wait_ms(struct sv_otlp_live *o, int64_t ms)
{
    int64_t until = sv_now_ms() + ms;
    struct timespec t = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    pthread_cond_timedwait(&o->changed, &o->lock, &t);
}

/* Waits until there is enough, or something for a second. False: the end, and nothing is left. */
static bool take(struct sv_otlp_live *o, struct batch *to)
{
    pthread_mutex_lock(&o->lock);
    int64_t until = sv_now_ms() + SEND_MS;
    while (!o->stops && o->queue.bytes.len < SEND_BYTES && sv_now_ms() < until)
        wait_ms(o, until - sv_now_ms());
    struct batch empty = *to;
    *to = o->queue;
    o->queue = empty;
    bool goes_on = !o->stops || to->n > 0;
    pthread_mutex_unlock(&o->lock);
    return goes_on;
}

/* ---- sending ---- */

/* The whole request: what every span has in common, and the spans. */
static void wrap(const uint8_t *spans, size_t len, struct sv_buf *out)
{
    const char *version = stave_version();
    sv_buf_clear(out);
    size_t request = sv_put_begin(out, OTLP_RESOURCE_SPANS);
    size_t resource = sv_put_begin(out, OTLP_RS_RESOURCE);
    sv_otlp_put_text(out, OTLP_RESOURCE_ATTRIBUTES, "service.name", "stave-server", 12);
    sv_put_end(out, resource);
    size_t scope_spans = sv_put_begin(out, OTLP_RS_SCOPE_SPANS);
    size_t scope = sv_put_begin(out, OTLP_SS_SCOPE);
    sv_put_text(out, OTLP_SCOPE_NAME, "stave", 5);
    sv_put_text(out, OTLP_SCOPE_VERSION, version, strlen(version));
    sv_put_end(out, scope);
    sv_buf_add(out, spans, len);
    sv_put_end(out, scope_spans);
    sv_put_end(out, request);
}

/* One attempt. SV_EAGAIN: it may be taken later, not before *asked_s. */
static int send_once(struct sv_otlp_live *o, uint64_t n, const struct sv_buf *request,
                     int64_t limit_ms, unsigned *asked_s, struct sv_err *err)
{
    uint64_t rejected;
    int code = sv_otlp_way_send(o->way, request, limit_ms, &rejected, asked_s, err);
    if (code < 0)
        return code;
    rejected = rejected < n ? rejected : n;
    pthread_mutex_lock(&o->lock);
    o->sent += n - rejected;
    if (rejected)
        lose(o, rejected);
    pthread_mutex_unlock(&o->lock);
    return 0;
}

/* Once for each time that it is away. */
static void complain(struct sv_otlp_live *o, const char *why)
{
    if (!o->has_complained)
        sv_print(stderr, "stave-server: trace_otlp: %s; what finds the queue full is lost\n", why);
    o->has_complained = true;
}

/* With the lock. Half to all of twice the time before; at least as long as it asks for. */
static int64_t pause_of(struct sv_otlp_live *o, unsigned tries, unsigned asked_s)
{
    int64_t longest = tries < 7 ? (int64_t)FIRST_WAIT_MS << tries : LONGEST_WAIT_MS;
    o->chance = sv_mix64(o->chance + 1);
    int64_t ms = longest / 2 + (int64_t)(o->chance % (uint64_t)(longest / 2 + 1));
    return ms > (int64_t)asked_s * 1000 ? ms : (int64_t)asked_s * 1000;
}

/* With the lock: for so long, or until the end of all sending is near. False: it is. */
static bool rest(struct sv_otlp_live *o, int64_t ms)
{
    int64_t until = sv_now_ms() + ms;
    for (int64_t now; (now = sv_now_ms()) < until;) {
        if (o->stops && until >= o->until_ms)
            return false;
        wait_ms(o, until - now);
    }
    return !o->stops || sv_now_ms() < o->until_ms;
}

static int64_t limit_of(struct sv_otlp_live *o)
{
    pthread_mutex_lock(&o->lock);
    int64_t left = o->stops ? o->until_ms - sv_now_ms() : ANSWER_MS;
    pthread_mutex_unlock(&o->lock);
    return left < 1 ? 1 : left < ANSWER_MS ? left : ANSWER_MS;
}

/* A request with n spans, until it is taken, refused for good, or the time is over. */
static void send_piece(struct sv_otlp_live *o, uint64_t n, const struct sv_buf *request)
{
    for (unsigned tries = 0;; tries++) {
        struct sv_err err = {0};
        unsigned asked_s = 0;
        int code = send_once(o, n, request, limit_of(o), &asked_s, &err);
        if (code == 0) {
            o->has_complained = false;
            return;
        }
        complain(o, err.msg);
        pthread_mutex_lock(&o->lock);
        o->repeated += code == SV_EAGAIN;
        bool again = code == SV_EAGAIN && rest(o, pause_of(o, tries, asked_s));
        if (!again)
            lose(o, n);
        pthread_mutex_unlock(&o->lock);
        if (!again)
            return;
    }
}

/* Whole spans, at most PIECE_BYTES of them at once. */
static void send_batch(struct sv_otlp_live *o, const struct batch *b, struct sv_buf *request)
{
    const uint8_t *begin = b->bytes.data;
    struct sv_pb w = sv_pb_at(begin, b->bytes.len);
    struct sv_pb_field f;
    uint64_t n = 0;
    while (sv_pb_next(&w, &f)) {
        const uint8_t *end = f.bytes + f.u;
        n++;
        if (end - begin < PIECE_BYTES && end < b->bytes.data + b->bytes.len)
            continue;
        wrap(begin, (size_t)(end - begin), request);
        send_piece(o, n, request);
        begin = end;
        n = 0;
    }
}

static void *run(void *arg)
{
    struct sv_otlp_live *o = arg;
    struct batch b = {0};
    struct sv_buf request;
    sv_buf_init(&b.bytes, QUEUE_BYTES + (1 << 20));
    sv_buf_init(&request, QUEUE_BYTES + (2 << 20));
    while (take(o, &b)) {
        if (b.n > 0)
            send_batch(o, &b, &request);
        sv_buf_clear(&b.bytes);
        b.n = 0;
    }
    sv_buf_fini(&b.bytes);
    sv_buf_fini(&request);
    return NULL;
}

/* ---- begin and end ---- */

int sv_otlp_live_open(const char *url, struct sv_otlp_live **out, struct sv_err *err)
{
    struct sv_otlp_live *o = sv_alloc(sizeof *o);
    pthread_condattr_t monotonic;
    int code = sv_otlp_way_open(url, &o->way, err);
    if (code < 0) {
        free(o);
        return code;
    }
    sv_buf_init(&o->queue.bytes, QUEUE_BYTES + (1 << 20));
    o->salt = stave_flow_new();
    struct stave_trace_context random;
    stave_trace_context_new(NULL, &random);
    for (int i = 0; i < 8; i++)
        o->salt = o->salt << 8 ^ random.trace_id[i] ^ o->salt >> 56;
    o->chance = o->salt;
    o->lost_track = stave_counter(STAVE_PROCESS, "OTLP spans lost", "spans");
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    code = pthread_create(&o->thread, NULL, run, o);
    if (code != 0) {
        sv_otlp_way_close(o->way);
        sv_buf_fini(&o->queue.bytes);
        free(o);
        return sv_error(err, SV_EIO, "trace_otlp: no thread: %s", strerror(code));
    }
    *out = o;
    return 0;
}

void sv_otlp_live_close(struct sv_otlp_live *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->stops = true;
    o->until_ms = sv_now_ms() + CLOSE_MS;
    pthread_cond_signal(&o->changed);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->thread, NULL);
    if (o->lost)
        sv_print(stderr, "stave-server: trace_otlp: %llu spans did not get to the collector\n",
                 (unsigned long long)o->lost);
    sv_otlp_way_close(o->way);
    sv_buf_fini(&o->queue.bytes);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->changed);
    free(o);
}

void sv_otlp_live_metrics(struct sv_otlp_live *o, struct sv_buf *out)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    const struct sv_metric rows[] = {
        {"otlp_spans_sent_total", "counter", "spans that the collector took", NULL,
         (double)o->sent},
        {"otlp_spans_lost_total", "counter",
         "spans that found the queue full or that the collector refused", NULL, (double)o->lost},
        {"otlp_requests_repeated_total", "counter", "attempts that failed and were repeated", NULL,
         (double)o->repeated},
        {"otlp_queue_bytes", "gauge", "spans that wait for the collector", NULL,
         (double)o->queue.bytes.len}};
    pthread_mutex_unlock(&o->lock);
    sv_metrics_put(out, rows, sizeof rows / sizeof *rows);
}

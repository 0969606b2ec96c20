/* The life-cycle calls.
 *
 * Called by the server in any thread. Each is one event of the SDK, with the server's own numbers
 * as arguments, and one record for the thread that writes the files. The event lies in the ring of
 * its thread when the call returns, and so outlives the process; the record does not, but
 * everything can be made again from the events. Where requests may be left out the thread makes the
 * event when it is known that they are not. No lock, no allocation here; a system call only
 * where the configuration says to wait for space, and to wake the thread where the ring fills after
 * a time without any call. */
#include "serving/tracer.h"

#include "core/base/map.h"

#include <stave/trace_context.h>
#include <string.h>
#include <time.h>

/* ---- into the ring ---- */

static void put_when_full(struct stave_serving *s, const struct sv_call_cell *call,
                          const uint64_t *words, uint32_t n_words)
{
    /* What is larger than the ring never fits. */
    while (s->config.full == STAVE_FULL_BLOCK && n_words <= sv_call_ring_words(&s->ring)) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (sv_call_ring_put(&s->ring, call, words, n_words))
            return;
    }
    atomic_fetch_add_explicit(&s->ring.lost, 1, memory_order_relaxed);
    if (call->is_held)
        atomic_fetch_add_explicit(&s->ring.lost_held, 1, memory_order_relaxed);
    if (call->op == SV_LIFE_STEP)
        atomic_fetch_add_explicit(&s->ring.lost_steps, 1, memory_order_relaxed);
}

void sv_serving_put(struct stave_serving *s, const struct sv_call_cell *call, const uint64_t *words,
                    uint32_t n_words)
{
    if (!sv_call_ring_put(&s->ring, call, words, n_words))
        put_when_full(s, call, words, n_words);
}

void sv_serving_put_text(struct stave_serving *s, const struct sv_call_cell *call, const char *text)
{
    uint64_t words[SV_CALL_WORDS_MAX] = {0};
    size_t len = strnlen(text, sizeof words - 1);
    memcpy(words, text, len);
    sv_serving_put(s, call, words, (uint32_t)(len / 8 + 1));
}

/* ---- the events ---- */

/* Eight numbers per event: a long list is several of them, all before the event "collected", which
 * has the last ones. */
enum { MEMBERS = 8 };

#define MEMBER_ARGS(q)                                                                        \
    "r0", (q)[0], "r1", (q)[1], "r2", (q)[2], "r3", (q)[3], "r4", (q)[4], "r5", (q)[5], "r6", \
        (q)[6], "r7", (q)[7]

static void record_members(const struct stave_serving *s, const struct sv_call_cell *c,
                           const uint64_t *q)
{
    SV_INSTANT_AT(s->life, c->time_ns, SV_LIFE_CATEGORY, "members", "batch", c->id, "n", MEMBERS,
                  MEMBER_ARGS(q));
}

/* c->worker: how many requests there are in all. */
static void record_collected(const struct stave_serving *s, const struct sv_call_cell *c,
                             const uint64_t *requests, size_t n)
{
    uint64_t r[MEMBERS] = {0};
    size_t i = 0;
    for (; n - i > MEMBERS; i += MEMBERS)
        record_members(s, c, requests + i);
    for (size_t k = i; k < n; k++)
        r[k - i] = requests[k];
    SV_INSTANT_AT(s->life, c->time_ns, SV_LIFE_CATEGORY, "collected", "batch", c->id, "model",
                  c->model, "requests", (size_t)c->worker, "samples", c->samples, "flags", c->flags,
                  "took_ns", sv_serving_took(c->start_ns, c->time_ns), "n", n - i, MEMBER_ARGS(r));
}

#define RECORD(...) SV_INSTANT_AT(s->life, c->time_ns, SV_LIFE_CATEGORY, __VA_ARGS__)

/* What is known of the call when this is compiled is decided then. */
static inline __attribute__((always_inline)) void record(const struct stave_serving *s,
                                                         const struct sv_call_cell *c,
                                                         const uint64_t *words, const char *reason)
{
    switch (c->op) {
    case SV_LIFE_ENQUEUED:
        RECORD("enqueued", "request", c->id, "model", c->model, "flags", (unsigned)c->flags);
        break;
    case SV_LIFE_REJECTED:
        RECORD("rejected", "request", c->id, "model", c->model, "flags", (unsigned)c->flags);
        break;
    case SV_LIFE_DEQUEUED: RECORD("dequeued", "request", c->id); break;
    case SV_LIFE_RESPONDED: RECORD("responded", "request", c->id); break;
    case SV_LIFE_FAILED: RECORD("failed", "request", c->id, "reason", reason); break;
    case SV_LIFE_CANCELLED: RECORD("cancelled", "request", c->id); break;
    case SV_LIFE_MEMBERS:
        for (uint32_t i = 0; i < c->n; i += MEMBERS)
            record_members(s, c, words + i);
        break;
    case SV_LIFE_COLLECTED: record_collected(s, c, words, c->n); break;
    case SV_LIFE_SUBMITTED: RECORD("submitted", "batch", c->id); break;
    case SV_LIFE_STARTED: RECORD("started", "batch", c->id, "worker", c->worker); break;
    case SV_LIFE_FINISHED: RECORD("finished", "batch", c->id); break;
    case SV_LIFE_CALLBACK:
        RECORD("callback", "batch", c->id, "took_ns", sv_serving_took(c->start_ns, c->time_ns));
        break;
    case SV_LIFE_TRANSPORT:
        RECORD("transport", "request", c->id, "read_ns", (int64_t)words[SV_TRANSPORT_READ],
               "parse_ns", (int64_t)words[SV_TRANSPORT_PARSE], "serialise_ns",
               (int64_t)words[SV_TRANSPORT_SERIALISE], "write_ns",
               (int64_t)words[SV_TRANSPORT_WRITE]);
        break;
    case SV_LIFE_BATCH_FAILED: RECORD("batch failed", "batch", c->id, "reason", reason); break;
    default: break;
    }
}

void sv_serving_record(const struct stave_serving *s, const struct sv_call_cell *c,
                       const uint64_t *words)
{
    record(s, c, words, c->words ? (const char *)words : "");
}

/* The call: its event and its record. Where it may be left out it has no event yet, and the record
 * has the reason. */
static inline __attribute__((always_inline)) void put_call(struct stave_serving *s,
                                                           struct sv_call_cell c,
                                                           const uint64_t *words, uint32_t n_words,
                                                           const char *reason)
{
    if (!s)
        return;
    c.time_ns = sv_serving_at(c.time_ns);
    if (!atomic_load_explicit(&s->holds, memory_order_relaxed)) {
        record(s, &c, words, reason);
        sv_serving_put(s, &c, words, n_words);
        return;
    }
    c.is_held = 1;
    if (reason)
        sv_serving_put_text(s, &c, reason);
    else
        sv_serving_put(s, &c, words, n_words);
}

/* (server, .member = value, …) */
#define CALL(s, ...) put_call((s), (struct sv_call_cell){__VA_ARGS__}, NULL, 0, NULL)

/* ---- requests ---- */

void stave_serving_enqueued(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_ENQUEUED, .id = request, .time_ns = time_ns, .model = model,
         .flags = (uint16_t)flags);
}

void stave_serving_rejected(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_REJECTED, .id = request, .time_ns = time_ns, .model = model,
         .flags = (uint16_t)flags);
}

void stave_serving_dequeued(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_DEQUEUED, .id = request, .time_ns = time_ns);
}

void stave_serving_responded(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_RESPONDED, .id = request, .time_ns = time_ns);
}

void stave_serving_failed(struct stave_serving *s, uint64_t request, const char *reason,
                          int64_t time_ns)
{
    put_call(s, (struct sv_call_cell){.op = SV_LIFE_FAILED, .id = request, .time_ns = time_ns},
             NULL, 0, reason ? reason : "");
}

void stave_serving_cancelled(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_CANCELLED, .id = request, .time_ns = time_ns);
}

/* A record only: the slice has the ids. */
void stave_serving_context(struct stave_serving *s, uint64_t request,
                           const struct stave_trace_context *own,
                           const struct stave_trace_context *caller, const char *state)
{
    uint64_t words[SV_LIFE_CONTEXT_WORDS + SV_LIFE_STATE_MAX / 8] = {0};
    struct sv_life_context *c = (struct sv_life_context *)(void *)words;
    if (!s || !own)
        return;
    memcpy(c->trace_id, own->trace_id, sizeof c->trace_id);
    memcpy(c->span_id, own->span_id, sizeof c->span_id);
    if (caller)
        memcpy(c->parent_id, caller->span_id, sizeof c->parent_id);
    size_t len = state ? strnlen(state, SV_LIFE_STATE_MAX) : 0;
    if (len)
        memcpy(words + SV_LIFE_CONTEXT_WORDS, state, len);
    uint32_t n = SV_LIFE_CONTEXT_WORDS + (uint32_t)((len + 7) / 8);
    put_call(s, (struct sv_call_cell){.op = SV_LIFE_CONTEXT, .id = request, .time_ns = 1, .n = n},
             words, n, NULL);
}

/* An event only: nothing else is made of it. */
void stave_serving_transport(struct stave_serving *s, uint64_t request, int64_t read_ns,
                             int64_t parse_ns, int64_t serialise_ns, int64_t write_ns,
                             int64_t time_ns)
{
    const uint64_t words[SV_N_TRANSPORT] = {(uint64_t)read_ns, (uint64_t)parse_ns,
                                            (uint64_t)serialise_ns, (uint64_t)write_ns};
    struct sv_call_cell c = {.op = SV_LIFE_TRANSPORT,
                             .id = request,
                             .time_ns = sv_serving_at(time_ns),
                             .n = SV_N_TRANSPORT,
                             .is_held = 1};
    if (!s)
        return;
    if (atomic_load_explicit(&s->holds, memory_order_relaxed))
        sv_serving_put(s, &c, words, SV_N_TRANSPORT);
    else
        sv_serving_record(s, &c, words);
}

/* ---- batches ---- */

/* As many members at once as a record holds. */
void stave_serving_collected(struct stave_serving *s, uint64_t batch, uint32_t model,
                             const uint64_t *requests, size_t n, uint32_t samples, unsigned flags,
                             int64_t start_ns, int64_t end_ns)
{
    size_t i = 0;
    if (!s)
        return;
    end_ns = sv_serving_at(end_ns);
    for (; n - i > SV_CALL_WORDS_MAX; i += SV_CALL_WORDS_MAX)
        put_call(s,
                 (struct sv_call_cell){
                     .op = SV_LIFE_MEMBERS, .id = batch, .time_ns = end_ns, .n = SV_CALL_WORDS_MAX},
                 requests + i, SV_CALL_WORDS_MAX, NULL);
    put_call(s,
             (struct sv_call_cell){.op = SV_LIFE_COLLECTED,
                                   .id = batch,
                                   .time_ns = end_ns,
                                   .start_ns = start_ns,
                                   .model = model,
                                   .samples = samples ? samples : (uint32_t)n,
                                   .worker = (int32_t)n,
                                   .flags = (uint16_t)flags,
                                   .n = (uint32_t)(n - i)},
             requests + i, (uint32_t)(n - i), NULL);
}

void stave_serving_submitted(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_SUBMITTED, .id = batch, .time_ns = time_ns);
}

void stave_serving_started(struct stave_serving *s, uint64_t batch, int32_t worker, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_STARTED, .id = batch, .time_ns = time_ns, .worker = worker);
}

void stave_serving_finished(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    CALL(s, .op = SV_LIFE_FINISHED, .id = batch, .time_ns = time_ns);
}

enum { OPERATORS_MAX = 1024, OPERATOR_WORDS = sizeof(struct stave_serving_operator) / 8 };

/* A record only. */
void stave_serving_operators(struct stave_serving *s, uint64_t batch,
                             const struct stave_serving_operator *operators, size_t n)
{
    uint32_t k = n < OPERATORS_MAX ? (uint32_t)n : OPERATORS_MAX;
    put_call(s, (struct sv_call_cell){.op = SV_LIFE_OPERATORS, .id = batch, .time_ns = 1, .n = k},
             (const uint64_t *)(const void *)operators, k * OPERATOR_WORDS, NULL);
}

void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                            int64_t end_ns)
{
    CALL(s, .op = SV_LIFE_CALLBACK, .id = batch, .time_ns = end_ns, .start_ns = start_ns);
}

void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch, const char *reason,
                                int64_t time_ns)
{
    put_call(s, (struct sv_call_cell){.op = SV_LIFE_BATCH_FAILED, .id = batch, .time_ns = time_ns},
             NULL, 0, reason ? reason : "");
}

/* ---- besides ---- */

void stave_serving_congestion(struct stave_serving *s, bool is_congested, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "congestion", "congested", is_congested);
    SV_SERVING_PUT(s, .op = SV_LIFE_CONGESTION, .time_ns = time_ns, .flags = is_congested ? 1 : 0);
}

uint64_t stave_serving_batch_flow(const struct stave_serving *s, uint64_t batch)
{
    return s ? sv_mix64(sv_mix64(batch + 1) ^ s->salt) : 0;
}

uint64_t stave_serving_request_flow(const struct stave_serving *s, uint64_t request)
{
    return s ? sv_mix64(sv_mix64(request + 1) ^ ~s->salt) : 0;
}

/* The life-cycle calls.
 *
 * Called by the server in any thread. Each is one event of the SDK, with the server's own numbers
 * as arguments, and one record for the thread that writes the files. The event lies in the ring of
 * its thread when the call returns, and so outlives the process; the record does not, but
 * everything can be made again from the events. No lock, no allocation here; a system call only
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

/* ---- requests ---- */

void stave_serving_enqueued(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "enqueued", "request", request, "model", model, "flags", flags);
    SV_SERVING_PUT(s, .op = SV_LIFE_ENQUEUED, .id = request, .time_ns = time_ns, .model = model,
                   .flags = (uint16_t)flags);
}

void stave_serving_rejected(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "rejected", "request", request, "model", model, "flags", flags);
    SV_SERVING_PUT(s, .op = SV_LIFE_REJECTED, .id = request, .time_ns = time_ns, .model = model,
                   .flags = (uint16_t)flags);
}

void stave_serving_dequeued(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "dequeued", "request", request);
    SV_SERVING_PUT(s, .op = SV_LIFE_DEQUEUED, .id = request, .time_ns = time_ns);
}

void stave_serving_responded(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "responded", "request", request);
    SV_SERVING_PUT(s, .op = SV_LIFE_RESPONDED, .id = request, .time_ns = time_ns);
}

void stave_serving_failed(struct stave_serving *s, uint64_t request, const char *reason,
                          int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "failed", "request", request, "reason", reason);
    SV_SERVING_PUT(s, .op = SV_LIFE_FAILED, .id = request, .time_ns = time_ns);
}

void stave_serving_cancelled(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "cancelled", "request", request);
    SV_SERVING_PUT(s, .op = SV_LIFE_CANCELLED, .id = request, .time_ns = time_ns);
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
    sv_serving_put(s, &(struct sv_call_cell){.op = SV_LIFE_CONTEXT, .id = request, .n = n}, words,
                   n);
}

/* ---- batches ---- */

/* Eight numbers per event: a long list is several of them, all before the event "collected", which
 * has the last ones. */
enum { MEMBERS = 8 };

static void record_collected(const struct stave_serving *s, const struct sv_call_cell *c,
                             const uint64_t *requests, size_t n)
{
    uint64_t r[MEMBERS] = {0};
    size_t i = 0;
    for (; n - i > MEMBERS; i += MEMBERS) {
        const uint64_t *q = requests + i;
        SV_INSTANT_AT(s->life, c->time_ns, SV_LIFE_CATEGORY, "members", "batch", c->id, "n",
                      MEMBERS, "r0", q[0], "r1", q[1], "r2", q[2], "r3", q[3], "r4", q[4], "r5",
                      q[5], "r6", q[6], "r7", q[7]);
    }
    for (size_t k = i; k < n; k++)
        r[k - i] = requests[k];
    SV_INSTANT_AT(s->life, c->time_ns, SV_LIFE_CATEGORY, "collected", "batch", c->id, "model",
                  c->model, "requests", n, "samples", c->samples, "flags", c->flags, "took_ns",
                  sv_serving_took(c->start_ns, c->time_ns), "n", n - i, "r0", r[0], "r1", r[1],
                  "r2", r[2], "r3", r[3], "r4", r[4], "r5", r[5], "r6", r[6], "r7", r[7]);
}

/* The same for the files, as many at once as a record holds. */
static void put_collected(struct stave_serving *s, struct sv_call_cell *c, const uint64_t *requests,
                          size_t n)
{
    size_t i = 0;
    for (; n - i > SV_CALL_WORDS_MAX; i += SV_CALL_WORDS_MAX) {
        struct sv_call_cell m = {
            .op = SV_LIFE_MEMBERS, .id = c->id, .time_ns = c->time_ns, .n = SV_CALL_WORDS_MAX};
        sv_serving_put(s, &m, requests + i, SV_CALL_WORDS_MAX);
    }
    c->n = (uint32_t)(n - i);
    sv_serving_put(s, c, requests + i, c->n);
}

void stave_serving_collected(struct stave_serving *s, uint64_t batch, uint32_t model,
                             const uint64_t *requests, size_t n, uint32_t samples, unsigned flags,
                             int64_t start_ns, int64_t end_ns)
{
    if (!s)
        return;
    struct sv_call_cell c = {.op = SV_LIFE_COLLECTED,
                             .id = batch,
                             .time_ns = sv_serving_at(end_ns),
                             .start_ns = start_ns,
                             .model = model,
                             .samples = samples ? samples : (uint32_t)n,
                             .flags = (uint16_t)flags};
    record_collected(s, &c, requests, n);
    put_collected(s, &c, requests, n);
}

void stave_serving_submitted(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "submitted", "batch", batch);
    SV_SERVING_PUT(s, .op = SV_LIFE_SUBMITTED, .id = batch, .time_ns = time_ns);
}

void stave_serving_started(struct stave_serving *s, uint64_t batch, int32_t worker, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "started", "batch", batch, "worker", worker);
    SV_SERVING_PUT(s, .op = SV_LIFE_STARTED, .id = batch, .time_ns = time_ns, .worker = worker);
}

void stave_serving_finished(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "finished", "batch", batch);
    SV_SERVING_PUT(s, .op = SV_LIFE_FINISHED, .id = batch, .time_ns = time_ns);
}

void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                            int64_t end_ns)
{
    SV_SERVING_RECORD(s, end_ns, "callback", "batch", batch, "took_ns",
                      sv_serving_took(start_ns, end_ns));
    SV_SERVING_PUT(s, .op = SV_LIFE_CALLBACK, .id = batch, .time_ns = end_ns, .start_ns = start_ns);
}

void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch, const char *reason,
                                int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "batch failed", "batch", batch, "reason", reason);
    SV_SERVING_PUT(s, .op = SV_LIFE_BATCH_FAILED, .id = batch, .time_ns = time_ns);
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

/* The life-cycle calls.
 *
 * Called by the server in any thread. Each is one event of the SDK, with the server's own numbers as arguments: it lies in the ring
 * of its thread when the call returns, and so outlives the process. No lock, no allocation, no system call here. */
#include "serving/tracer.h"

static int64_t at(int64_t time_ns)
{
    return time_ns ? time_ns : stave_now_ns();
}

void stave_serving_enqueued(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "enqueued", "request", request, "model", model,
                  "flags", flags);
}

void stave_serving_rejected(struct stave_serving *s, uint64_t request, uint32_t model,
                            unsigned flags, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "rejected", "request", request, "model", model,
                  "flags", flags);
}

void stave_serving_dequeued(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "dequeued", "request", request);
}

void stave_serving_responded(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "responded", "request", request);
}

void stave_serving_failed(struct stave_serving *s, uint64_t request, const char *reason,
                          int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "failed", "request", request, "reason",
                  reason);
}

void stave_serving_cancelled(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "cancelled", "request", request);
}

/* Eight numbers per event: a long list is several of them, all before the event "collected". */
enum { MEMBERS = 8 };

static void tell_members(const struct stave_serving *s, uint64_t batch, const uint64_t *requests,
                         size_t n, int64_t time_ns)
{
    for (size_t i = 0; i < n; i += MEMBERS) {
        uint64_t r[MEMBERS] = {0};
        size_t k = n - i < MEMBERS ? n - i : MEMBERS;
        for (size_t j = 0; j < k; j++)
            r[j] = requests[i + j];
        SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "members", "batch", batch, "n", k, "r0",
                      r[0], "r1", r[1], "r2", r[2], "r3", r[3], "r4", r[4], "r5", r[5], "r6", r[6],
                      "r7", r[7]);
    }
}

void stave_serving_collected(struct stave_serving *s, uint64_t batch, uint32_t model,
                             const uint64_t *requests, size_t n, uint32_t samples, unsigned flags,
                             int64_t start_ns, int64_t end_ns)
{
    if (!s)
        return;
    end_ns = at(end_ns);
    tell_members(s, batch, requests, n, end_ns);
    SV_INSTANT_AT(s->life, end_ns, SV_SERVING_LIFE, "collected", "batch", batch, "model", model,
                  "requests", n, "samples", samples ? samples : (uint32_t)n, "flags", flags,
                  "start_ns", start_ns);
}

void stave_serving_submitted(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "submitted", "batch", batch);
}

void stave_serving_started(struct stave_serving *s, uint64_t batch, int32_t worker, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "started", "batch", batch, "worker", worker);
}

void stave_serving_finished(struct stave_serving *s, uint64_t batch, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "finished", "batch", batch);
}

void stave_serving_callback(struct stave_serving *s, uint64_t batch, int64_t start_ns,
                            int64_t end_ns)
{
    if (!s)
        return;
    end_ns = at(end_ns);
    SV_INSTANT_AT(s->life, end_ns, SV_SERVING_LIFE, "callback", "batch", batch, "start_ns",
                  start_ns);
}

void stave_serving_batch_failed(struct stave_serving *s, uint64_t batch, const char *reason,
                                int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "batch failed", "batch", batch, "reason",
                  reason);
}

void stave_serving_congestion(struct stave_serving *s, bool is_congested, int64_t time_ns)
{
    if (!s)
        return;
    time_ns = at(time_ns);
    SV_INSTANT_AT(s->life, time_ns, SV_SERVING_LIFE, "congestion", "congested", is_congested);
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t stave_serving_batch_flow(const struct stave_serving *s, uint64_t batch)
{
    return s ? mix(mix(batch) ^ s->salt) : 0;
}

uint64_t stave_serving_request_flow(const struct stave_serving *s, uint64_t request)
{
    return s ? mix(mix(request) ^ ~s->salt) : 0;
}

/* The calls of engines with continuous batching.
 *
 * Called by the engine's thread. What happens to a request is one event of the SDK and one record,
 * as in life_cycle.c. A step is one record with its members as they are: cells of the ring are
 * filled by copies of a known length, which is all that the engine waits for. The writing thread
 * makes the event of it. So a process that is killed loses the steps that its ring holds, those of
 * the last milliseconds. */
#include "serving/tracer.h"

#include "core/serving/engine_words.h"

#include <stdio.h>

_Static_assert(sizeof(struct stave_serving_member) == sizeof(struct sv_engine_member) &&
                   offsetof(struct stave_serving_member, tokens_in) ==
                       offsetof(struct sv_engine_member, tokens_in) &&
                   offsetof(struct stave_serving_member, position) ==
                       offsetof(struct sv_engine_member, position) &&
                   offsetof(struct stave_serving_member, accepted) ==
                       offsetof(struct sv_engine_member, accepted) &&
                   offsetof(struct stave_serving_member, phase) ==
                       offsetof(struct sv_engine_member, is_decode),
               "members are copied as they are");

uint32_t stave_serving_engine(struct stave_serving *s, const char *name)
{
    if (!s)
        return 0;
    char cut[SV_SERVING_NAME_MAX];
    snprintf(cut, sizeof cut, "%s", name && *name ? name : "engine");
    pthread_mutex_lock(&s->names_lock);
    uint32_t n = atomic_load_explicit(&s->n_engines, memory_order_relaxed);
    if (n == 0) {
        s->engines_group = stave_track(s->group, "engines");
        stave_set_track_order(s->engines_group, 50);
    }
    stave_track_t track = stave_track(s->engines_group, cut); /* the same for the same name */
    uint32_t engine = 0;
    while (engine < n && s->engines[engine] != track)
        engine++;
    if (engine == SV_SERVING_ENGINES_MAX) {
        engine--;
    } else if (engine == n) {
        s->engines[n] = track;
        /* Pairs with the acquire in sv_engine_step_end(). */
        atomic_store_explicit(&s->n_engines, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&s->names_lock);
    return engine;
}

void stave_serving_step(struct stave_serving *s, const struct stave_serving_step *step)
{
    if (!s || !step)
        return;
    size_t n = step->members ? step->n : 0;
    int64_t end_ns = sv_serving_at(step->end_ns);
    struct sv_call_cell c = {.op = SV_LIFE_STEP,
                             .id = step->step,
                             .time_ns = end_ns,
                             .start_ns = step->start_ns ? step->start_ns : end_ns,
                             .model = step->kv_used,
                             .samples = step->kv_total,
                             .worker = (int32_t)step->engine,
                             .device = (int32_t)step->waiting,
                             .flags = (uint16_t)((step->flags & 0xff) | (step->graph & 0xff) << 8),
                             .n = (uint32_t)n};
    /* One that is too large is refused by the ring, and counted there. */
    uint32_t words = n <= SV_STEP_MEMBERS_MAX ? (uint32_t)n * SV_MEMBER_WORDS : UINT32_MAX;
    sv_serving_put(s, &c, (const uint64_t *)(const void *)step->members, words);
}

/* ---- requests ---- */

void stave_serving_scheduled(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "scheduled", SV_REQUEST, request);
    SV_SERVING_PUT(s, .op = SV_LIFE_SCHEDULED, .id = request, .time_ns = time_ns);
}

void stave_serving_preempted(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "preempted", SV_REQUEST, request);
    SV_SERVING_PUT(s, .op = SV_LIFE_PREEMPTED, .id = request, .time_ns = time_ns);
}

void stave_serving_resumed(struct stave_serving *s, uint64_t request, int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "resumed", SV_REQUEST, request);
    SV_SERVING_PUT(s, .op = SV_LIFE_RESUMED, .id = request, .time_ns = time_ns);
}

void stave_serving_transferred(struct stave_serving *s, uint64_t request, uint32_t from_engine,
                               uint32_t to_engine, uint64_t bytes, int64_t start_ns, int64_t end_ns)
{
    SV_SERVING_RECORD(s, end_ns, "transferred", SV_REQUEST, request, SV_LIFE_FROM_ENGINE,
                      from_engine, SV_LIFE_TO_ENGINE, to_engine, SV_LIFE_BYTES, bytes, SV_LIFE_TOOK,
                      sv_serving_took(start_ns, end_ns));
    SV_SERVING_PUT(s, .op = SV_LIFE_TRANSFERRED, .id = request, .time_ns = end_ns,
                   .start_ns = start_ns);
}

void stave_serving_streamed(struct stave_serving *s, uint64_t request, uint32_t tokens,
                            int64_t time_ns)
{
    SV_SERVING_RECORD(s, time_ns, "streamed", SV_REQUEST, request, SV_LIFE_TOKENS, tokens);
    SV_SERVING_PUT(s, .op = SV_LIFE_STREAMED, .id = request, .time_ns = time_ns, .samples = tokens);
}

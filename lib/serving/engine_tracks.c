/* Steps and requests of engines to slices, flows and counters of the SDK.
 *
 * Called by the tracer's writing thread only. A step is one slice whose members are one text: a
 * thousand of them cost a thousand short words and not a thousand arguments. A flow leads from a
 * request to the first step after it was scheduled, resumed or transferred, not to each: a request
 * of a thousand tokens has two arrows and not a thousand. */
#include "serving/engine_tracks.h"

#include "core/base/sat.h"
#include "core/serving/engine_words.h"
#include "serving/tracer.h"

/* A text of the SDK ends at 32 kB. */
enum { TEXT_MAX = 32000, TEXT_LIMIT = TEXT_MAX + SV_MEMBER_TEXT_MAX, TRACK_ORDER = 60 };

void sv_engine_tracks_init(struct sv_timeline *t)
{
    sv_buf_init(&t->engine.members, TEXT_LIMIT + 1);
}

void sv_engine_tracks_fini(struct sv_timeline *t)
{
    sv_buf_fini(&t->engine.members);
}

/* A server without engines has no rows of them. */
static void need_counters(struct sv_timeline *t)
{
    struct sv_engine_timeline *e = &t->engine;
    if (e->has_counters)
        return;
    e->has_counters = true;
    e->running.track = stave_counter(t->group, "requests in step", "requests");
    e->tokens.track = stave_counter(t->group, "tokens in step", "tokens");
    e->kv.track = stave_counter(t->group, "KV blocks", "blocks");
    e->waiting.track = stave_counter(t->group, "waiting", "requests");
    const stave_track_t order[] = {e->running.track, e->tokens.track, e->kv.track,
                                   e->waiting.track};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        stave_set_track_order(order[i], TRACK_ORDER + (int64_t)i);
}

/* ---- steps ---- */

void sv_engine_step_begin(struct sv_timeline *t)
{
    t->engine.n_flows = 0;
}

void sv_engine_request_joined(struct sv_timeline *t, const struct sv_life_request *r)
{
    struct sv_engine_timeline *e = &t->engine;
    if (e->n_flows < SV_ENGINE_FLOWS)
        e->flows[e->n_flows++] = stave_serving_request_flow(t->server, r->id);
}

struct sums {
    uint64_t decode, tokens_in, tokens_out, cached, proposed, accepted;
};

static struct sums sums_of(const struct sv_life_step *s)
{
    struct sums sums = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_engine_member *m = &s->members[i];
        sums.decode += m->is_decode != 0;
        sums.tokens_in += m->tokens_in;
        sums.tokens_out += m->tokens_out;
        sums.cached += m->cached;
        sums.proposed += m->proposed;
        sums.accepted += m->accepted;
    }
    return sums;
}

static void describe(struct stave_args *a, const struct sv_life_step *s, const struct sums *sums)
{
    static const char *const graphs[] = {NULL, "eager", "piecewise", "full"};
    stave_args_init(a);
    stave_args_limit(a, SV_ENGINE_FLOWS);
    stave_args_uint(a, SV_STEP_NUMBER, s->id);
    stave_args_uint(a, SV_STEP_REQUESTS, s->n);
    stave_args_uint(a, SV_STEP_PREFILL, s->n - sums->decode);
    stave_args_uint(a, SV_STEP_DECODE, sums->decode);
    stave_args_uint(a, SV_STEP_TOKENS_IN, sums->tokens_in);
    stave_args_uint(a, SV_STEP_TOKENS_OUT, sums->tokens_out);
    stave_args_uint(a, SV_STEP_WAITING, s->waiting);
    if (sums->cached)
        stave_args_uint(a, SV_STEP_CACHED, sums->cached);
    if (sums->proposed) {
        stave_args_uint(a, SV_STEP_PROPOSED, sums->proposed);
        stave_args_uint(a, SV_STEP_ACCEPTED, sums->accepted);
    }
    if (s->kv_total) {
        stave_args_uint(a, SV_STEP_KV_USED, s->kv_used);
        stave_args_uint(a, SV_STEP_KV_TOTAL, s->kv_total);
    }
    if (s->graph && s->graph < sizeof graphs / sizeof *graphs)
        stave_args_text(a, SV_STEP_GRAPH, graphs[s->graph]);
    if (s->flags)
        stave_args_uint(a, SV_STEP_FLAGS, s->flags);
}

/* The members from `i` on, as many as one text has space for. */
static uint32_t take_members(struct sv_buf *text, const struct sv_life_step *s, uint32_t i)
{
    sv_buf_clear(text);
    for (; i < s->n && text->len < TEXT_MAX - SV_MEMBER_TEXT_MAX; i++)
        sv_engine_member_put(text, &s->members[i]);
    return i;
}

static void count_step(struct sv_timeline *t, const struct sv_life_step *s, uint64_t tokens)
{
    struct sv_engine_timeline *e = &t->engine;
    sv_timeline_count(t, &e->running, s->start_ns, s->n);
    sv_timeline_count(t, &e->tokens, s->start_ns, tokens);
    sv_timeline_count(t, &e->waiting, s->start_ns, s->waiting);
    if (s->kv_total)
        sv_timeline_count(t, &e->kv, s->start_ns, s->kv_used);
}

static void put_tokens(struct sv_timeline *t, const struct sv_life_step *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_engine_member *m = &s->members[i];
        for (uint32_t k = 0; k < m->tokens_out; k++)
            SV_INSTANT_AT(t->engine.token_track, s->end_ns, SV_LLM_CATEGORY, SV_LLM_TOKEN,
                          SV_REQUEST, m->request, SV_STEP_NUMBER, s->id);
        t->n_events += m->tokens_out;
    }
}

void sv_engine_step_end(struct sv_timeline *t, const struct sv_life_step *s)
{
    struct sv_engine_timeline *e = &t->engine;
    const struct stave_serving *server = t->server;
    uint32_t n_engines = atomic_load_explicit(&server->n_engines, memory_order_acquire);
    uint32_t engine = s->engine < n_engines ? s->engine : 0;
    stave_track_t track = n_engines ? server->engines[engine] : t->group;
    struct sums sums = sums_of(s);
    need_counters(t);
    describe(&t->args, s, &sums);
    for (uint32_t i = 0; i < e->n_flows; i++)
        stave_args_flow(&t->args, STAVE_FLOW_IN, e->flows[i]);
    uint32_t done = take_members(&e->members, s, 0);
    stave_complete(track, SV_ENGINE_CATEGORY, SV_ENGINE_STEP, s->start_ns,
                   sv_sat_sub(s->end_ns, s->start_ns), "", &t->args, SV_STEP_MEMBERS,
                   sv_buf_cstr(&e->members));
    t->n_bytes += e->members.len + t->args.len;
    while (done < s->n) {
        done = take_members(&e->members, s, done);
        SV_INSTANT_AT(track, s->start_ns, SV_ENGINE_CATEGORY, SV_ENGINE_MEMBERS, SV_STEP_NUMBER,
                      s->id, SV_STEP_MEMBERS, sv_buf_cstr(&e->members));
        t->n_bytes += e->members.len;
    }
    t->n_events++;
    count_step(t, s, sums.tokens_in);
    if (server->config.outputs & STAVE_SERVING_TOKENS) {
        if (!e->token_track)
            e->token_track = stave_track(t->group, "tokens");
        put_tokens(t, s);
    }
}

void sv_engine_lost(struct sv_timeline *t, uint64_t steps)
{
    SV_LOSS(t->group, "engine steps: the queue of the tracer was full", SV_ENGINE_CATEGORY, steps);
}

/* ---- requests ---- */

/* A call place for each phase: their names are in the dictionary once. */
static void put_phase(stave_track_t track, enum sv_engine_phase phase, int64_t start, int64_t dur)
{
    switch (phase) {
    case SV_ENGINE_QUEUE: stave_complete(track, SV_LLM_CATEGORY, "queue", start, dur); break;
    case SV_ENGINE_PREFILL: stave_complete(track, SV_LLM_CATEGORY, "prefill", start, dur); break;
    case SV_ENGINE_DECODE: stave_complete(track, SV_LLM_CATEGORY, "decode", start, dur); break;
    case SV_ENGINE_PREEMPTED:
        stave_complete(track, SV_LLM_CATEGORY, "preempted", start, dur);
        break;
    case SV_ENGINE_TRANSFER: stave_complete(track, SV_LLM_CATEGORY, "transfer", start, dur); break;
    default: stave_complete(track, SV_LLM_CATEGORY, "respond", start, dur); break;
    }
}

static void put_phases(struct sv_timeline *t, stave_track_t track, const struct sv_life_request *r)
{
    for (uint32_t i = 0; i < r->n_marks; i++) {
        enum sv_engine_phase phase = (enum sv_engine_phase)(r->marks[i] & 7);
        int64_t start = r->marks[i] >> 3,
                end = i + 1 < r->n_marks ? r->marks[i + 1] >> 3 : r->end_ns;
        if (i + 1 == r->n_marks && phase == SV_ENGINE_DECODE && r->last_token_ns >= start &&
            r->last_token_ns < end) {
            put_phase(track, SV_ENGINE_RESPOND, r->last_token_ns,
                      sv_sat_sub(end, r->last_token_ns));
            end = r->last_token_ns;
        }
        if (end > start)
            put_phase(track, phase, start, sv_sat_sub(end, start));
    }
    t->n_events += r->n_marks + 1;
}

void sv_engine_request_over(struct sv_timeline *t, struct sv_life *l,
                            const struct sv_life_request *r)
{
    stave_track_t track = sv_timeline_request_track(t, r->row);
    int64_t start = r->enqueued_ns ? r->enqueued_ns : r->marks[0] >> 3;
    int64_t ttft = r->first_token_ns ? sv_sat_sub(r->first_token_ns, start) : 0;
    stave_args_init(&t->args);
    sv_timeline_context(&t->args, r->context);
    stave_complete(track, SV_LLM_CATEGORY, SV_LLM_REQUEST, start,
                   r->end_ns > start ? sv_sat_sub(r->end_ns, start) : 0, SV_REQUEST, r->id,
                   SV_LLM_MODEL, sv_life_model(l, r->model), SV_LLM_OUTCOME,
                   sv_life_fate_names[r->fate], SV_LLM_PROMPT_TOKENS, r->prompt,
                   SV_LLM_CACHED_TOKENS, r->cached, SV_LLM_OUTPUT_TOKENS, r->output, SV_LLM_TTFT_NS,
                   ttft, SV_LLM_PREEMPTIONS, r->preemptions, STAVE_FLOW_OUT,
                   stave_serving_request_flow(t->server, r->id), "", &t->args);
    t->n_events++;
    put_phases(t, track, r);
}

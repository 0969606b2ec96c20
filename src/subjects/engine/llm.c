/* Requests, steps and tokens from what a trace says about an engine, in three passes: events are
 * collected, put into the order of time, and played through the phases of each request. Called by
 * report llm, by SQL and by the plots. */
#include "subjects/engine/llm.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/engine/llm_events.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sv_llm_making {
    struct sv_llm *l;
    const struct sv_llm_events *events;
    struct sv_map by_id, by_name; /* → index of the newest request + 1 */
    /* Of each request: */
    struct state {
        int64_t since_ns, made_ns; /* of the phase; of the newest token */
        int64_t first_made_ns;
        uint32_t streamed; /* tokens that have the time of their way to the client */
        uint32_t n_streamed;
        uint8_t phase;
    } * states;
    size_t cap_requests, cap_states, cap_tokens, cap_spans, n_states;
    uint32_t n_open;
    /* Streams, in the order of time: tokens get their times when all are known. */
    struct stream {
        int64_t ts_ns;
        uint32_t request, tokens;
    } * streams;
    size_t n_streams, cap_streams;
};

/* ---- requests ---- */

static uint32_t new_request(struct sv_llm_making *m, uint64_t id, sv_str name)
{
    struct sv_llm *l = m->l;
    l->requests = sv_grow(l->requests, &m->cap_requests, l->n_requests + 1, sizeof *l->requests);
    m->states = sv_grow(m->states, &m->cap_states, l->n_requests + 1, sizeof *m->states);
    m->states[l->n_requests] = (struct state){0};
    l->requests[l->n_requests] = (struct sv_llm_request){.id = id,
                                                         .name = name,
                                                         .arrival_ns = SV_LLM_UNKNOWN,
                                                         .scheduled_ns = SV_LLM_UNKNOWN,
                                                         .end_ns = SV_LLM_UNKNOWN,
                                                         .first_token_ns = SV_LLM_UNKNOWN,
                                                         .last_token_ns = SV_LLM_UNKNOWN,
                                                         .row = SV_NO_ROW};
    memset(l->requests[l->n_requests].transport_ns, 0xff,
           sizeof l->requests[l->n_requests].transport_ns);
    *sv_map_add(name ? &m->by_name : &m->by_id, name ? name : id, NULL) = l->n_requests + 1;
    return (uint32_t)l->n_requests++;
}

static uint32_t find_request(const struct sv_llm_making *m, uint64_t id, sv_str name)
{
    const uint64_t *at = sv_map_find(name ? &m->by_name : &m->by_id, name ? name : id);
    return at ? (uint32_t)(*at - 1) : SV_LLM_NONE;
}

static struct state *state_of(const struct sv_llm_making *m, uint32_t request)
{
    assert(m->states && request < m->l->n_requests); /* each request has one */
    return &m->states[request];
}

/* One that never arrived (the trace began later) has a row, too. */
static uint32_t request_of(struct sv_llm_making *m, uint64_t id, sv_str name)
{
    uint32_t r = find_request(m, id, name);
    if (r != SV_LLM_NONE)
        return r;
    m->l->odd.unknown++;
    return new_request(m, id, name);
}

/* ---- phases ---- */

static void add_span(struct sv_llm_making *m, uint32_t request, enum sv_engine_phase phase,
                     int64_t start_ns, int64_t end_ns)
{
    struct sv_llm *l = m->l;
    if (phase == SV_ENGINE_NONE || end_ns <= start_ns)
        return;
    int64_t *sum = &l->requests[request].phase_ns[phase];
    *sum = sv_sat_add(*sum, sv_sat_sub(end_ns, start_ns));
    SV_APPEND(l->spans, l->n_spans, m->cap_spans) =
        (struct sv_llm_span){start_ns, end_ns, request, (uint8_t)phase};
}

static void change_phase(struct sv_llm_making *m, uint32_t request, enum sv_engine_event event,
                         int64_t ts_ns)
{
    struct state *s = state_of(m, request);
    enum sv_engine_phase next = sv_engine_next(s->phase, event, s->first_made_ns != 0);
    if (next == s->phase || m->l->requests[request].end_ns != SV_LLM_UNKNOWN)
        return;
    add_span(m, request, s->phase, s->since_ns, ts_ns);
    if (s->phase == SV_ENGINE_NONE || ts_ns > s->since_ns)
        s->since_ns = ts_ns;
    s->phase = (uint8_t)next;
}

/* ---- the life of a request ---- */

static void arrive(struct sv_llm_making *m, const struct sv_llm_call *c)
{
    uint32_t n = find_request(m, c->id, c->name);
    if (n == SV_LLM_NONE || m->l->requests[n].arrival_ns != SV_LLM_UNKNOWN)
        n = new_request(m, c->id, c->name); /* a number that is used again is another request */
    struct sv_llm_request *r = &m->l->requests[n];
    r->arrival_ns = c->ts_ns;
    r->row = c->row;
    r->model = c->model;
    r->is_warmup = c->flags & SV_LIFE_WARMUP;
    r->is_untimed = c->flags & SV_LIFE_UNTIMED;
    r->load = ++m->n_open;
    change_phase(m, n, SV_ENGINE_ARRIVES, c->ts_ns);
}

static void end(struct sv_llm_making *m, uint32_t n, enum sv_life_fate fate, int64_t ts_ns)
{
    struct sv_llm_request *r = &m->l->requests[n];
    struct state *s = state_of(m, n);
    if (r->end_ns != SV_LLM_UNKNOWN) {
        m->l->odd.ended++;
        return;
    }
    r->fate = (uint8_t)fate;
    if (s->phase != SV_ENGINE_NONE && ts_ns < s->since_ns)
        ts_ns = s->since_ns;
    if (s->phase == SV_ENGINE_DECODE && s->made_ns >= s->since_ns && s->made_ns <= ts_ns) {
        add_span(m, n, SV_ENGINE_DECODE, s->since_ns, s->made_ns);
        add_span(m, n, SV_ENGINE_RESPOND, s->made_ns, ts_ns);
    } else {
        add_span(m, n, s->phase, s->since_ns, ts_ns);
    }
    r->end_ns = ts_ns;
    m->n_open -= r->arrival_ns != SV_LLM_UNKNOWN;
}

static void reject(struct sv_llm_making *m, const struct sv_llm_call *c)
{
    uint32_t n = find_request(m, c->id, c->name);
    if (n == SV_LLM_NONE || m->l->requests[n].end_ns != SV_LLM_UNKNOWN) {
        arrive(m, c); /* a request that was refused at once need not be enqueued */
        n = find_request(m, c->id, c->name);
    }
    end(m, n, SV_FATE_REJECTED, c->ts_ns);
}

static void stream(struct sv_llm_making *m, uint32_t n, const struct sv_llm_call *c)
{
    SV_APPEND(m->streams, m->n_streams, m->cap_streams) = (struct stream){c->ts_ns, n, c->tokens};
    state_of(m, n)->n_streamed += c->tokens;
}

static void schedule(struct sv_llm_making *m, uint32_t n, int64_t ts_ns)
{
    struct sv_llm_request *r = &m->l->requests[n];
    r->scheduled_ns = r->scheduled_ns == SV_LLM_UNKNOWN ? ts_ns : r->scheduled_ns;
}

static void put_call(struct sv_llm_making *m, const struct sv_llm_call *c)
{
    if (c->op == SV_LIFE_ENQUEUED) {
        arrive(m, c);
        return;
    }
    if (c->op == SV_LIFE_REJECTED) {
        reject(m, c);
        return;
    }
    uint32_t n = request_of(m, c->id, c->name);
    bool is_late = m->l->requests[n].end_ns != SV_LLM_UNKNOWN && c->op >= SV_LIFE_SCHEDULED &&
                   c->op != SV_LIFE_STREAMED;
    m->l->odd.ended += is_late;
    if (is_late)
        return;
    switch (c->op) {
    case SV_LIFE_SCHEDULED:
    case SV_LIFE_DEQUEUED:
        schedule(m, n, c->ts_ns);
        change_phase(m, n, SV_ENGINE_SCHEDULED, c->ts_ns);
        break;
    case SV_LIFE_PREEMPTED:
        m->l->requests[n].preemptions += state_of(m, n)->phase != SV_ENGINE_PREEMPTED;
        change_phase(m, n, SV_ENGINE_IS_PREEMPTED, c->ts_ns);
        break;
    case SV_LIFE_RESUMED: change_phase(m, n, SV_ENGINE_RESUMES, c->ts_ns); break;
    case SV_LIFE_TRANSFERRED:
        change_phase(m, n, SV_ENGINE_IS_SENT, c->start_ns ? c->start_ns : c->ts_ns);
        change_phase(m, n, SV_ENGINE_IS_RECEIVED, c->ts_ns);
        break;
    case SV_LIFE_STREAMED: stream(m, n, c); break;
    case SV_LIFE_RESPONDED: end(m, n, SV_FATE_RESPONDED, c->ts_ns); break;
    case SV_LIFE_FAILED: end(m, n, SV_FATE_FAILED, c->ts_ns); break;
    case SV_LIFE_CANCELLED: end(m, n, SV_FATE_CANCELLED, c->ts_ns); break;
    default: break;
    }
}

static void put_any_call(struct sv_llm_making *m, const struct sv_llm_events *e,
                         const struct sv_llm_call *c)
{
    if (c->op != SV_LIFE_TRANSPORT) {
        put_call(m, c);
        return;
    }
    uint32_t n = find_request(m, c->id, c->name); /* of one that is cut away there is no row */
    if (n != SV_LLM_NONE)
        memcpy(m->l->requests[n].transport_ns, e->transports[c->transport].ns,
               sizeof e->transports->ns);
}

/* ---- steps ---- */

static void begin_step(struct sv_llm_making *m, const struct sv_llm_step *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct sv_llm_member *k = &m->l->members[s->first_member + i];
        k->request = request_of(m, k->m.request, 0);
        struct sv_llm_request *r = &m->l->requests[k->request];
        if (r->end_ns != SV_LLM_UNKNOWN && r->end_ns < s->ts_ns)
            m->l->odd.ended++;
        r->is_warmup |= s->is_warmup;
        r->n_members++;
        schedule(m, k->request, s->ts_ns);
        change_phase(m, k->request, k->m.is_decode ? SV_ENGINE_STEP_DECODE : SV_ENGINE_STEP_PREFILL,
                     s->ts_ns);
    }
}

static void add_tokens(struct sv_llm_making *m, const struct sv_llm_member *k, uint32_t step,
                       int64_t made_ns)
{
    struct sv_llm *l = m->l;
    uint32_t n = k->m.tokens_out;
    if (n > SV_LLM_MEMBER_TOKENS || l->n_tokens + n > SV_LLM_TOKENS) {
        n = l->n_tokens + SV_LLM_MEMBER_TOKENS <= SV_LLM_TOKENS ? SV_LLM_MEMBER_TOKENS : 0;
        l->odd.cut += k->m.tokens_out - n;
    }
    l->tokens = sv_grow(l->tokens, &m->cap_tokens, l->n_tokens + n, sizeof *l->tokens);
    for (uint32_t i = 0; i < n; i++)
        l->tokens[l->n_tokens++] = (struct sv_llm_token){made_ns, made_ns, k->request, step,
                                                         l->requests[k->request].n_tokens++};
}

static void end_step(struct sv_llm_making *m, uint32_t number)
{
    const struct sv_llm_step *s = &m->l->steps[number];
    int64_t end_ns = sv_sat_add(s->ts_ns, s->dur_ns);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_llm_member *k = &m->l->members[s->first_member + i];
        struct sv_llm_request *r = &m->l->requests[k->request];
        struct state *state = state_of(m, k->request);
        uint64_t known = (uint64_t)k->m.position + k->m.cached + k->m.tokens_in;
        if (!state->first_made_ns && !k->m.is_decode && known > r->prompt && known <= UINT32_MAX)
            r->prompt = (uint32_t)known; /* computed again after a preemption, it counts once */
        r->cached += k->m.cached;
        r->proposed += k->m.proposed;
        r->accepted += k->m.accepted;
        r->output += k->m.tokens_out;
        if (!k->m.tokens_out)
            continue;
        change_phase(m, k->request, SV_ENGINE_TOKEN, end_ns);
        state->first_made_ns = state->first_made_ns ? state->first_made_ns : end_ns;
        state->made_ns = end_ns;
        add_tokens(m, k, number, end_ns);
    }
}

/* ---- orders ---- */

/* Groups of items by request, stable; `of` gives the request of an item. */
#define GROUP_BY_REQUEST(m, items, n, first, count)      \
    do {                                                 \
        struct sv_llm *l_ = (m)->l;                      \
        uint32_t at_ = 0;                                \
        for (size_t i_ = 0; i_ < l_->n_requests; i_++)   \
            l_->requests[i_].count = 0;                  \
        for (size_t i_ = 0; i_ < (n); i_++)              \
            l_->requests[(items)[i_].request].count++;   \
        for (size_t i_ = 0; i_ < l_->n_requests; i_++) { \
            l_->requests[i_].first = at_;                \
            at_ += l_->requests[i_].count;               \
            l_->requests[i_].count = 0;                  \
        }                                                \
    } while (0)

static void group_tokens(struct sv_llm_making *m)
{
    struct sv_llm *l = m->l;
    GROUP_BY_REQUEST(m, l->tokens, l->n_tokens, first_token, n_tokens);
    struct sv_llm_token *to = sv_realloc(NULL, (l->n_tokens + 1) * sizeof *to);
    for (size_t i = 0; i < l->n_tokens; i++) {
        struct sv_llm_request *r = &l->requests[l->tokens[i].request];
        to[r->first_token + r->n_tokens++] = l->tokens[i];
    }
    free(l->tokens);
    l->tokens = to;
}

static void group_spans(struct sv_llm_making *m)
{
    struct sv_llm *l = m->l;
    GROUP_BY_REQUEST(m, l->spans, l->n_spans, first_span, n_spans);
    struct sv_llm_span *to = sv_realloc(NULL, (l->n_spans + 1) * sizeof *to);
    for (size_t i = 0; i < l->n_spans; i++) {
        struct sv_llm_request *r = &l->requests[l->spans[i].request];
        to[r->first_span + r->n_spans++] = l->spans[i];
    }
    free(l->spans);
    l->spans = to;
}

static void group_members(struct sv_llm_making *m)
{
    struct sv_llm *l = m->l;
    GROUP_BY_REQUEST(m, l->members, l->n_members, first_member, n_members);
    l->by_request = sv_realloc(NULL, (l->n_members + 1) * sizeof *l->by_request);
    for (size_t i = 0; i < l->n_members; i++) {
        struct sv_llm_request *r = &l->requests[l->members[i].request];
        l->by_request[r->first_member + r->n_members++] = (uint32_t)i;
    }
}

/* Tokens have the time at which they left, where the server reports it: the k-th streamed token is
 * the k-th that was made. */
static void use_streams(struct sv_llm_making *m)
{
    struct sv_llm *l = m->l;
    for (size_t i = 0; i < m->n_streams; i++) {
        const struct stream *s = &m->streams[i];
        struct sv_llm_request *r = &l->requests[s->request];
        struct state *state = &m->states[s->request];
        for (uint32_t k = 0; k < s->tokens && state->streamed < r->n_tokens; k++) {
            struct sv_llm_token *t = &l->tokens[r->first_token + state->streamed++];
            t->ts_ns = s->ts_ns > t->made_ns ? s->ts_ns : t->made_ns;
        }
    }
    for (size_t i = 0; i < l->n_requests; i++) {
        struct sv_llm_request *r = &l->requests[i];
        if (!r->n_tokens)
            continue;
        r->first_token_ns = l->tokens[r->first_token].ts_ns;
        r->last_token_ns = l->tokens[r->first_token + r->n_tokens - 1].ts_ns;
    }
}

/* ---- requests that are one slice ---- */

static void put_whole(struct sv_llm_making *m, const struct sv_llm_whole *w)
{
    uint32_t known = find_request(m, w->id, w->name);
    if (known != SV_LLM_NONE && (w->name || !m->l->requests[known].is_whole ||
                                 m->l->requests[known].arrival_ns == w->ts_ns))
        return; /* its life counts; a number that is used again is another request */
    uint32_t n = new_request(m, w->id, w->name); /* may move them */
    struct sv_llm_request *r = &m->l->requests[n];
    r->is_whole = true;
    r->arrival_ns = w->ts_ns;
    r->end_ns = sv_sat_add(w->ts_ns, w->dur_ns);
    r->model = w->model;
    r->fate = w->fate;
    r->batch = w->batch;
    r->is_warmup = w->is_warmup;
    r->prompt = w->prompt;
    r->cached = w->cached;
    r->output = w->output;
    r->preemptions = w->preemptions;
    memcpy(r->phase_ns, w->phase_ns, sizeof r->phase_ns);
    memcpy(r->transport_ns, w->transport_ns, sizeof r->transport_ns);
    if (w->phase_ns[SV_ENGINE_QUEUE] > 0)
        r->scheduled_ns = w->ts_ns + w->phase_ns[SV_ENGINE_QUEUE];
    if (w->ttft_ns >= 0) {
        r->first_token_ns = w->ts_ns + w->ttft_ns;
        int64_t decode = w->phase_ns[SV_ENGINE_DECODE];
        r->last_token_ns = decode > 0 ? sv_sat_add(r->first_token_ns, decode) : r->end_ns;
    }
}

/* ---- all of it ---- */

static void play(struct sv_llm_making *m)
{
    const struct sv_llm_events *e = m->events;
    for (size_t i = 0; i < e->n_order; i++) {
        const struct sv_llm_moment *o = &e->order[i];
        if (o->what == SV_LLM_CALL)
            put_any_call(m, e, &e->calls[o->number]);
        else if (o->what == SV_LLM_STEP_BEGINS)
            begin_step(m, &m->l->steps[o->number]);
        else
            end_step(m, o->number);
    }
    for (size_t i = 0; i < e->n_wholes; i++)
        put_whole(m, &e->wholes[i]);
    for (size_t i = 0; i < e->n_memberships; i++) {
        uint32_t n = find_request(m, e->memberships[i].request, 0);
        if (n != SV_LLM_NONE)
            m->l->requests[n].batch = e->memberships[i].batch + 1;
    }
}

/* What was open when the trace ended has spans until there. */
static void close_open(struct sv_llm_making *m)
{
    for (uint32_t i = 0; i < m->l->n_requests; i++) {
        const struct state *s = state_of(m, i);
        if (m->l->requests[i].end_ns == SV_LLM_UNKNOWN)
            add_span(m, i, s->phase, s->since_ns, m->l->trace->last_ns);
    }
}

void sv_llm_make(struct sv_llm *l, const struct sv_trace *t)
{
    struct sv_llm_events e;
    struct sv_llm_making m = {.l = l, .events = &e};
    memset(l, 0, sizeof *l);
    l->trace = t;
    l->strings = sv_dict_new();
    sv_llm_events_read(&e, l, t);
    play(&m);
    close_open(&m);
    group_tokens(&m);
    group_spans(&m);
    group_members(&m);
    use_streams(&m);
    sv_llm_divide(l);
    sv_llm_events_fini(&e);
    sv_map_fini(&m.by_id);
    sv_map_fini(&m.by_name);
    free(m.states);
    free(m.streams);
}

void sv_llm_fini(struct sv_llm *l)
{
    free(l->requests);
    free(l->steps);
    free(l->members);
    free(l->by_request);
    free(l->tokens);
    free(l->spans);
    free(l->loads);
    sv_dict_free(l->strings);
}

/* ---- asking ---- */

const char *sv_llm_label(const struct sv_llm *l, const struct sv_llm_request *r,
                         char label[SV_LLM_LABEL_MAX])
{
    struct sv_text name = sv_dict_text(l->strings, r->name);
    if (r->name)
        snprintf(label, SV_LLM_LABEL_MAX, "%.*s", (int)(name.len < 120 ? name.len : 120),
                 name.bytes);
    else
        snprintf(label, SV_LLM_LABEL_MAX, "%" PRIu64, r->id);
    return label;
}

const struct sv_llm_request *sv_llm_find(const struct sv_llm *l, const char *name)
{
    char label[SV_LLM_LABEL_MAX];
    for (size_t i = l->n_requests; i-- > 0;)
        if (strcmp(sv_llm_label(l, &l->requests[i], label), name) == 0)
            return &l->requests[i];
    return NULL;
}

static int64_t between(int64_t from, int64_t to)
{
    return from == SV_LLM_UNKNOWN || to == SV_LLM_UNKNOWN || to < from ? -1 : sv_sat_sub(to, from);
}

int64_t sv_llm_ttft(const struct sv_llm_request *r)
{
    return between(r->arrival_ns, r->first_token_ns);
}

int64_t sv_llm_tpot(const struct sv_llm_request *r)
{
    int64_t all = between(r->first_token_ns, r->last_token_ns);
    return all < 0 || r->output < 2 ? -1 : (int64_t)((uint64_t)all / (r->output - 1));
}

int64_t sv_llm_e2e(const struct sv_llm_request *r)
{
    return between(r->arrival_ns, r->end_ns);
}

int64_t sv_llm_gap(const struct sv_llm *l, const struct sv_llm_token *k)
{
    const struct sv_llm_request *r = &l->requests[k->request];
    return between(k->number ? l->tokens[r->first_token + k->number - 1].ts_ns : r->arrival_ns,
                   k->ts_ns);
}

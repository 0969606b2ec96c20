/* The events of engines and their requests, out of a trace. What they say is another program's
 * word: numbers are bounded, what is no member is counted and passed over. Called by sv_llm_make()
 * once. */
#include "subjects/engine/llm_events.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/sort.h"
#include "core/serving/engine_words.h"
#include "core/serving/events.h"
#include "store/index.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

enum number {
    STEP,
    TOKENS_IN,
    TOKENS_OUT,
    CACHED,
    PROPOSED,
    ACCEPTED,
    DECODE,
    PREFILL,
    KV_USED,
    KV_TOTAL,
    WAITING,
    FLAGS,
    PROMPT,
    OUTPUT,
    QUEUE,
    TTFT,
    PREFILL_TIME,
    DECODE_TIME,
    PREEMPTED,
    PREEMPTIONS,
    BATCH,
    WARMUP,
    TRANSPORT,
    N_NUMBERS = TRANSPORT + SV_N_TRANSPORT
};
static const char *const number_words[N_NUMBERS] = {
    SV_STEP_NUMBER,       SV_STEP_TOKENS_IN,    SV_STEP_TOKENS_OUT,  SV_STEP_CACHED,
    SV_STEP_PROPOSED,     SV_STEP_ACCEPTED,     SV_STEP_DECODE,      SV_STEP_PREFILL,
    SV_STEP_KV_USED,      SV_STEP_KV_TOTAL,     SV_STEP_WAITING,     SV_STEP_FLAGS,
    SV_LLM_PROMPT_TOKENS, SV_LLM_OUTPUT_TOKENS, SV_LLM_QUEUE_NS,     SV_LLM_TTFT_NS,
    SV_LLM_PREFILL_NS,    SV_LLM_DECODE_NS,     SV_LLM_PREEMPTED_NS, SV_LLM_PREEMPTIONS,
    SV_LLM_BATCH,         SV_LLM_WARMUP,        SV_TRANSPORT_KEYS};

enum text { MEMBERS, GRAPH, MODEL, OUTCOME, REQUEST, N_TEXTS };
static const char *const text_words[N_TEXTS] = {SV_STEP_MEMBERS, SV_STEP_GRAPH, SV_LLM_MODEL,
                                                SV_LLM_OUTCOME, SV_REQUEST};

struct reading {
    struct sv_llm_events *e;
    struct sv_llm *l;
    const struct sv_trace *t;
    struct sv_life_words life;
    sv_str annotation_cat, engine_cat, step_name, members_name, llm_cat, request_name, load_cat;
    sv_str numbers[N_NUMBERS], texts[N_TEXTS];
    struct sv_batch scratch;
    struct sv_life_in *in;
    struct sv_map models; /* number → its name */
    struct sv_map tracks; /* with steps */
    size_t cap_steps, cap_members, cap_loads, cap_more, n_more, next_more;
    /* Members that did not fit their step, in the order of the trace. */
    struct more {
        uint64_t step;
        sv_track track;
        const char *text;
        size_t len;
        int64_t ts_ns;
    } * more;
};

/* The arguments of one row that have a meaning here. */
struct found {
    int64_t numbers[N_NUMBERS]; /* -1: not there */
    const char *texts[N_TEXTS];
    size_t lens[N_TEXTS];
    uint64_t id;
};

static sv_str word(const struct reading *r, const char *text)
{
    return sv_dict_find_str(r->t->dict, text, strlen(text));
}

/* The dictionary stays as it is: others may be reading it. A word that it does not have is 0 and
 * matches nothing. */
static void find_words(struct reading *r)
{
    sv_life_words_find(&r->life, r->t->dict);
    for (int i = 0; i < N_NUMBERS; i++)
        r->numbers[i] = word(r, number_words[i]);
    for (int i = 0; i < N_TEXTS; i++)
        r->texts[i] = word(r, text_words[i]);
    r->annotation_cat = word(r, "user_annotation");
    r->engine_cat = word(r, SV_ENGINE_CATEGORY);
    r->step_name = word(r, SV_ENGINE_STEP);
    r->members_name = word(r, SV_ENGINE_MEMBERS);
    r->llm_cat = word(r, SV_LLM_CATEGORY);
    r->request_name = word(r, SV_LLM_REQUEST);
    r->load_cat = word(r, SV_LOAD_CATEGORY);
}

static void find_arg(const struct reading *r, const struct sv_arg *a, struct found *f)
{
    if (a->type == SV_ARG_TEXT) {
        for (int i = 0; i < N_TEXTS; i++)
            if (a->key == r->texts[i]) {
                f->texts[i] = a->text;
                f->lens[i] = a->size;
            }
    } else if (a->type == SV_ARG_INT || a->type == SV_ARG_UINT) {
        if (a->key == r->texts[REQUEST])
            f->id = a->u;
        for (int i = 0; i < N_NUMBERS; i++)
            if (a->key == r->numbers[i])
                f->numbers[i] = a->i < 0 ? INT64_MAX : a->i;
    }
}

static const struct sv_arg *args_of(struct reading *r, uint32_t row, size_t *n)
{
    sv_batch_reset(&r->scratch);
    return sv_trace_args(r->t, r->t->slices.args[row], &r->scratch, n);
}

static struct found find_args(struct reading *r, uint32_t row)
{
    struct found f = {0};
    size_t n;
    for (int i = 0; i < N_NUMBERS; i++)
        f.numbers[i] = -1;
    const struct sv_arg *a = args_of(r, row, &n), *end = a + n;
    for (; a && a < end; a = sv_arg_next(a))
        if (a->key)
            find_arg(r, a, &f);
    return f;
}

static sv_str text_of(const struct reading *r, const struct found *f, enum text i)
{
    return f->texts[i] && f->lens[i] ? sv_dict_str(r->l->strings, f->texts[i], f->lens[i]) : 0;
}

static uint32_t small(int64_t v)
{
    return v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

/* ---- steps ---- */

static uint32_t add_members(struct reading *r, const char *text, size_t len, uint32_t step)
{
    struct sv_llm *l = r->l;
    const char *at = text, *end = text + len;
    uint32_t n = 0;
    int is_member;
    for (struct sv_engine_member m; (is_member = sv_engine_member_next(&at, end, &m)) != 0;) {
        if (is_member < 0) {
            l->odd.damaged++;
            continue;
        }
        SV_APPEND(l->members, l->n_members, r->cap_members) =
            (struct sv_llm_member){.m = m, .step = step, .request = SV_LLM_NONE};
        n++;
    }
    return n;
}

/* Members that came as instants at its begin: of its track and number. */
static uint32_t add_more(struct reading *r, const struct sv_llm_step *s, uint32_t step)
{
    uint32_t n = 0;
    while (r->next_more < r->n_more && r->more[r->next_more].ts_ns < s->ts_ns)
        r->next_more++; /* steps come in the order of time */
    for (size_t i = r->next_more; i < r->n_more && r->more[i].ts_ns == s->ts_ns; i++)
        if (r->more[i].step == s->id && r->more[i].track == s->track)
            n += add_members(r, r->more[i].text, r->more[i].len, step);
    return n;
}

static void sum_members(const struct sv_llm *l, struct sv_llm_step *s)
{
    s->n_prefill = s->n_decode = 0;
    s->tokens_in = s->tokens_out = s->cached = s->proposed = s->accepted = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_engine_member *m = &l->members[s->first_member + i].m;
        s->n_decode += m->is_decode != 0;
        s->n_prefill += m->is_decode == 0;
        s->tokens_in += m->tokens_in;
        s->tokens_out += m->tokens_out;
        s->cached += m->cached;
        s->proposed += m->proposed;
        s->accepted += m->accepted;
    }
}

static uint64_t whole_number(int64_t v)
{
    return v < 0 ? 0 : (uint64_t)v;
}

/* How many steps the engine had before. */
static uint64_t meet_engine(struct reading *r, sv_track track)
{
    bool is_new;
    uint64_t *n = sv_map_add(&r->tracks, track, &is_new);
    r->l->n_engines += is_new;
    return (*n)++;
}

static void add_step(struct reading *r, uint32_t row)
{
    const struct sv_slices *slices = &r->t->slices;
    struct sv_llm *l = r->l;
    struct found f = find_args(r, row);
    meet_engine(r, slices->track[row]);
    l->steps = sv_grow(l->steps, &r->cap_steps, l->n_steps + 1, sizeof *l->steps);
    struct sv_llm_step *s = &l->steps[l->n_steps];
    *s = (struct sv_llm_step){.id = whole_number(f.numbers[STEP]),
                              .ts_ns = slices->ts_ns[row],
                              .dur_ns = sv_sat_sub(sv_trace_end_ns(r->t, row), slices->ts_ns[row]),
                              .row = row,
                              .track = slices->track[row],
                              .graph = text_of(r, &f, GRAPH),
                              .first_member = (uint32_t)l->n_members,
                              .n_prefill = small(f.numbers[PREFILL]),
                              .n_decode = small(f.numbers[DECODE]),
                              .tokens_in = whole_number(f.numbers[TOKENS_IN]),
                              .tokens_out = whole_number(f.numbers[TOKENS_OUT]),
                              .cached = whole_number(f.numbers[CACHED]),
                              .proposed = whole_number(f.numbers[PROPOSED]),
                              .accepted = whole_number(f.numbers[ACCEPTED]),
                              .kv_used = f.numbers[KV_USED],
                              .kv_total = f.numbers[KV_TOTAL],
                              .waiting = f.numbers[WAITING],
                              .is_warmup = f.numbers[FLAGS] > 0 && (f.numbers[FLAGS] & 1)};
    if (f.texts[MEMBERS])
        s->n = add_members(r, f.texts[MEMBERS], f.lens[MEMBERS], (uint32_t)l->n_steps);
    s->n += add_more(r, s, (uint32_t)l->n_steps);
    if (s->n)
        sum_members(l, s);
    l->odd.empty += s->n == 0 && s->tokens_in == 0;
    l->n_steps++;
}

/* ---- steps of vLLM in files of PyTorch's profiler ---- */

static bool skip_word(struct sv_text *t, const char *word)
{
    size_t n = strlen(word);
    if (t->len < n || memcmp(t->bytes, word, n) != 0)
        return false;
    t->bytes += n;
    t->len -= (uint32_t)n;
    return true;
}

static bool skip_number(struct sv_text *t, uint32_t *out)
{
    uint64_t v = 0;
    uint32_t n = 0;
    for (; n < t->len && n < 9 && t->bytes[n] >= '0' && t->bytes[n] <= '9'; n++)
        v = v * 10 + (uint64_t)(t->bytes[n] - '0');
    t->bytes += n;
    t->len -= n;
    *out = (uint32_t)v;
    return n > 0;
}

/* "execute_context_2(512)_generation_30(30)": requests and tokens in prefill and in decode. Who
 * they are it does not say. */
static void add_annotation(struct reading *r, uint32_t row)
{
    struct sv_llm *l = r->l;
    struct sv_text name = sv_dict_text(r->t->dict, r->t->slices.name[row]);
    uint32_t prefill, prefill_tokens, decode, decode_tokens;
    if (!skip_word(&name, "execute_context_") || !skip_number(&name, &prefill) ||
        !skip_word(&name, "(") || !skip_number(&name, &prefill_tokens) ||
        !skip_word(&name, ")_generation_") || !skip_number(&name, &decode) ||
        !skip_word(&name, "(") || !skip_number(&name, &decode_tokens) || !skip_word(&name, ")") ||
        name.len)
        return;
    sv_track track = r->t->slices.track[row];
    l->steps = sv_grow(l->steps, &r->cap_steps, l->n_steps + 1, sizeof *l->steps);
    l->steps[l->n_steps++] = (struct sv_llm_step){
        .id = meet_engine(r, track),
        .ts_ns = r->t->slices.ts_ns[row],
        .dur_ns = sv_sat_sub(sv_trace_end_ns(r->t, row), r->t->slices.ts_ns[row]),
        .row = row,
        .track = track,
        .first_member = (uint32_t)l->n_members,
        .n_prefill = prefill,
        .n_decode = decode,
        .tokens_in = (uint64_t)prefill_tokens + decode_tokens,
        .tokens_out = decode,
        .kv_used = -1,
        .kv_total = -1,
        .waiting = -1};
}

static void add_late_members(struct reading *r, uint32_t row)
{
    struct found f = find_args(r, row);
    if (!f.texts[MEMBERS])
        return;
    SV_APPEND(r->more, r->n_more, r->cap_more) =
        (struct more){.step = whole_number(f.numbers[STEP]),
                      .track = r->t->slices.track[row],
                      .text = f.texts[MEMBERS],
                      .len = f.lens[MEMBERS],
                      .ts_ns = r->t->slices.ts_ns[row]};
}

/* ---- requests ---- */

static void add_whole(struct reading *r, uint32_t row)
{
    struct sv_llm_events *e = r->e;
    struct found f = find_args(r, row);
    int64_t dur = sv_sat_sub(sv_trace_end_ns(r->t, row), r->t->slices.ts_ns[row]);
    uint8_t fate = SV_FATE_RESPONDED;
    for (uint8_t i = SV_FATE_RESPONDED; f.texts[OUTCOME] && i < SV_N_FATES; i++)
        if (f.lens[OUTCOME] == strlen(sv_life_fate_names[i]) &&
            memcmp(f.texts[OUTCOME], sv_life_fate_names[i], f.lens[OUTCOME]) == 0)
            fate = i;
    e->wholes = sv_grow(e->wholes, &e->cap_wholes, e->n_wholes + 1, sizeof *e->wholes);
    struct sv_llm_whole *w = &e->wholes[e->n_wholes++];
    *w = (struct sv_llm_whole){.ts_ns = r->t->slices.ts_ns[row],
                               .dur_ns = dur,
                               .ttft_ns = f.numbers[TTFT] <= dur ? f.numbers[TTFT] : dur,
                               .id = f.id,
                               .name = text_of(r, &f, REQUEST),
                               .model = text_of(r, &f, MODEL),
                               .prompt = small(f.numbers[PROMPT]),
                               .cached = small(f.numbers[CACHED]),
                               .output = small(f.numbers[OUTPUT]),
                               .preemptions = small(f.numbers[PREEMPTIONS]),
                               .batch = f.numbers[BATCH] < 0 ? 0 : (uint64_t)f.numbers[BATCH] + 1,
                               .is_warmup = f.numbers[WARMUP] > 0,
                               .fate = fate};
    static const struct {
        enum number number;
        enum sv_engine_phase phase;
    } phases[] = {{QUEUE, SV_ENGINE_QUEUE},
                  {PREFILL_TIME, SV_ENGINE_PREFILL},
                  {DECODE_TIME, SV_ENGINE_DECODE},
                  {PREEMPTED, SV_ENGINE_PREEMPTED}};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        int64_t v = f.numbers[phases[i].number];
        w->phase_ns[phases[i].phase] = v < 0 ? 0 : v < dur ? v : dur;
    }
    for (int i = 0; i < SV_N_TRANSPORT; i++)
        w->transport_ns[i] = f.numbers[TRANSPORT + i] < INT64_MAX ? f.numbers[TRANSPORT + i] : -1;
}

static void keep_call(struct sv_llm_events *e, const struct sv_llm_call *c)
{
    SV_APPEND(e->calls, e->n_calls, e->cap_calls) = *c;
}

static uint32_t keep_transport(struct sv_llm_events *e, const struct sv_life_call *c)
{
    struct sv_llm_transport t;
    memcpy(t.ns, c->members, sizeof t.ns);
    SV_APPEND(e->transports, e->n_transports, e->cap_transports) = t;
    return (uint32_t)(e->n_transports - 1);
}

static void add_call(struct reading *r, uint32_t row)
{
    size_t n;
    const struct sv_arg *args = args_of(r, row, &n);
    struct sv_event event = {.ts_ns = r->t->slices.ts_ns[row],
                             .name = r->t->slices.name[row],
                             .cat = r->t->slices.cat[row],
                             .kind = SV_INSTANT,
                             .n_args = (uint16_t)n,
                             .args = args};
    if (!sv_life_read(&r->life, &event, r->in))
        return;
    const struct sv_life_call *c = &r->in->call;
    if (c->op == SV_LIFE_MODEL && c->text) {
        *sv_map_add(&r->models, c->id, NULL) = sv_dict_cstr(r->l->strings, c->text);
        return;
    }
    if (c->op == SV_LIFE_LEFT_OUT) {
        r->l->n_left_out += c->members[SV_LEFT_REQUESTS];
        return;
    }
    const uint64_t *model = sv_map_find(&r->models, c->model);
    struct sv_arg name;
    bool has_name = sv_trace_arg(r->t, r->t->slices.args[row], r->texts[REQUEST], &name) &&
                    name.type == SV_ARG_TEXT && name.size;
    struct sv_llm_call call = {.ts_ns = event.ts_ns,
                               .start_ns = c->start_ns,
                               .id = has_name ? 0 : c->id,
                               .name = has_name ? sv_dict_str(r->l->strings, name.text, name.size)
                                                : 0,
                               .model = model ? (sv_str)*model : 0,
                               .op = c->op,
                               .flags = c->flags};
    if (c->op == SV_LIFE_ENQUEUED || c->op == SV_LIFE_REJECTED)
        call.row = row;
    else if (c->op == SV_LIFE_TRANSPORT)
        call.transport = keep_transport(r->e, c);
    else
        call.tokens = c->samples;
    keep_call(r->e, &call);
}

static bool is_of_request(uint16_t op)
{
    return op == SV_LIFE_ENQUEUED || op == SV_LIFE_REJECTED || op == SV_LIFE_DEQUEUED ||
           (op >= SV_LIFE_RESPONDED && op <= SV_LIFE_CANCELLED) ||
           (op >= SV_LIFE_SCHEDULED && op <= SV_LIFE_STREAMED) || op == SV_LIFE_TRANSPORT;
}

/* ---- all rows ---- */

static void add_load(struct reading *r, uint32_t row)
{
    struct sv_llm *l = r->l;
    SV_APPEND(l->loads, l->n_loads, r->cap_loads) = (struct sv_llm_load){
        r->t->slices.ts_ns[row], sv_trace_end_ns(r->t, row), r->t->slices.name[row]};
}

static void read_row(struct reading *r, uint32_t row)
{
    const struct sv_slices *s = &r->t->slices;
    sv_str cat = s->cat[row];
    bool is_slice = s->kind[row] == SV_SLICE;
    if (cat == r->life.cat && !is_slice)
        add_call(r, row);
    else if (cat == r->engine_cat && is_slice && s->name[row] == r->step_name)
        add_step(r, row);
    else if (cat == r->llm_cat && is_slice && s->name[row] == r->request_name)
        add_whole(r, row);
    else if (cat == r->annotation_cat && is_slice)
        add_annotation(r, row);
    else if (cat == r->load_cat && is_slice)
        add_load(r, row);
}

static bool is_wanted(const struct reading *r, sv_str cat)
{
    return cat && (cat == r->life.cat || cat == r->engine_cat || cat == r->llm_cat ||
                   cat == r->load_cat || cat == r->annotation_cat);
}

static inline bool is_before(const struct sv_llm_moment *a, const struct sv_llm_moment *b,
                             const void *ctx)
{
    (void)ctx;
    return a->ts_ns != b->ts_ns ? a->ts_ns < b->ts_ns : a->what < b->what;
}
SV_SORT_DEFINE(sort_moments, struct sv_llm_moment, is_before)

static void put_in_order(struct sv_llm_events *e, const struct sv_llm *l)
{
    size_t n = e->n_calls + 2 * l->n_steps, at = 0;
    e->order = sv_realloc(NULL, (n + 1) * sizeof *e->order);
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct sv_llm_step *s = &l->steps[i];
        /* A step without duration ends after it began. */
        int64_t end_ns = sv_sat_add(s->ts_ns, s->dur_ns > 0 ? s->dur_ns : 1);
        e->order[at++] = (struct sv_llm_moment){s->ts_ns, i, SV_LLM_STEP_BEGINS};
        e->order[at++] = (struct sv_llm_moment){end_ns, i, SV_LLM_STEP_ENDS};
    }
    for (uint32_t i = 0; i < e->n_calls; i++)
        if (is_of_request(e->calls[i].op))
            e->order[at++] = (struct sv_llm_moment){e->calls[i].ts_ns, i, SV_LLM_CALL};
    e->n_order = at;
    struct sv_llm_moment *spare = sv_realloc(NULL, SV_SORT_SPARE(at) * sizeof *spare + 16);
    sort_moments(e->order, at, spare, NULL);
    free(spare);
}

/* ---- a server's JSON ---- */

/* Requests of an engine are one slice each there, with their tokens. */
static void add_json_wholes(struct reading *r, struct sv_map *seen)
{
    sv_str cat = word(r, "request"), name = word(r, "request"), id = word(r, "request_id");
    struct sv_arg a;
    for (uint64_t row = 0; cat && id && r->numbers[PROMPT] && row < r->t->slices.n; row++) {
        uint32_t args = r->t->slices.args[row];
        if (r->t->slices.cat[row] != cat || r->t->slices.name[row] != name ||
            !sv_trace_arg(r->t, args, r->numbers[PROMPT], &a) || !sv_trace_arg(r->t, args, id, &a))
            continue;
        add_whole(r, (uint32_t)row);
        r->e->wholes[r->e->n_wholes - 1].id = a.u;
        *sv_map_add(seen, a.u, NULL) = r->e->n_wholes;
    }
}

struct json_calls {
    struct reading *r;
    struct sv_map engine; /* requests that are one slice each → which of them, + 1 */
};

static void add_json_call(void *ctx, const struct sv_life_call *c, uint32_t row)
{
    struct json_calls *j = ctx;
    struct reading *r = j->r;
    if (c->op == SV_LIFE_MODEL && c->text)
        *sv_map_add(&r->models, c->id, NULL) = sv_dict_cstr(r->l->strings, c->text);
    if (c->op == SV_LIFE_LEFT_OUT)
        r->l->n_left_out += c->members[SV_LEFT_REQUESTS];
    if (!is_of_request(c->op))
        return;
    const uint64_t *model = sv_map_find(&r->models, c->model);
    const uint64_t *whole = sv_map_find(&j->engine, c->id);
    struct sv_llm_call call = {.ts_ns = c->time_ns,
                               .start_ns = c->start_ns,
                               .id = c->id,
                               .model = model ? (sv_str)*model : 0,
                               .op = c->op,
                               .flags = c->flags};
    if (c->op == SV_LIFE_ENQUEUED || c->op == SV_LIFE_REJECTED)
        call.row = row;
    if (!whole)
        keep_call(r->e, &call);
    else if (c->op == SV_LIFE_ENQUEUED)
        r->e->wholes[*whole - 1].model = call.model;
}

/* What the file of a server without a life cycle says about requests. */
static void read_json(struct reading *r)
{
    struct json_calls j = {.r = r};
    add_json_wholes(r, &j.engine);
    sv_serving_from_json(r->t, add_json_call, &j);
    sv_map_fini(&j.engine);
}

/* ---- dynamic batching ---- */

/* A batch is one step of its worker, and each of its requests a member that computes one and gives
 * one: the answer. */
static void add_batch(struct reading *r, const struct sv_serving_report *b,
                      const struct sv_served_batch *batch)
{
    struct sv_llm *l = r->l;
    l->steps = sv_grow(l->steps, &r->cap_steps, l->n_steps + 1, sizeof *l->steps);
    struct sv_llm_step *s = &l->steps[l->n_steps];
    *s = (struct sv_llm_step){.id = batch->id,
                              .worker = batch->worker,
                              .ts_ns = batch->started_ns,
                              .dur_ns = sv_sat_sub(batch->finished_ns, batch->started_ns),
                              .row = SV_NO_ROW,
                              .first_member = (uint32_t)l->n_members,
                              .n = batch->n,
                              .kv_used = -1,
                              .kv_total = -1,
                              .waiting = -1,
                              .is_warmup = batch->is_warmup};
    l->members = sv_grow(l->members, &r->cap_members, l->n_members + batch->n, sizeof *l->members);
    for (uint32_t i = 0; i < batch->n; i++)
        l->members[l->n_members++] = (struct sv_llm_member){
            .m = {.request = b->requests[b->members[batch->first_member + i]].id,
                  .tokens_in = 1,
                  .tokens_out = 1},
            .step = (uint32_t)l->n_steps,
            .request = SV_LLM_NONE};
    sum_members(l, s);
    l->n_steps++;
}

static int by_start(const void *a, const void *b)
{
    const struct sv_served_batch *x = a, *y = b;
    return (x->started_ns > y->started_ns) - (x->started_ns < y->started_ns);
}

static void add_batches(struct reading *r)
{
    struct sv_serving_report b;
    sv_serving_report_tables(&b, r->t);
    struct sv_served_batch *sorted = sv_alloc((b.n_batches + 1) * sizeof *sorted);
    if (b.n_batches)
        memcpy(sorted, b.batches, b.n_batches * sizeof *sorted);
    if (b.n_batches > 1)
        qsort(sorted, b.n_batches, sizeof *sorted, by_start);
    for (size_t i = 0; i < b.n_batches; i++)
        if (sorted[i].n && sorted[i].started_ns && !sorted[i].is_untimed &&
            sorted[i].finished_ns > sorted[i].started_ns)
            add_batch(r, &b, &sorted[i]);
    free(sorted);
    for (size_t i = 0; i < b.n_requests; i++) {
        struct sv_llm_events *e = r->e;
        if (b.requests[i].batch == SV_SERVED_NONE)
            continue;
        SV_APPEND(e->memberships, e->n_memberships, e->cap_memberships) =
            (struct sv_llm_membership){b.requests[i].id, b.batches[b.requests[i].batch].id};
    }
    r->l->is_batches = r->l->n_steps > 0;
    sv_serving_report_fini(&b);
}

void sv_llm_events_read(struct sv_llm_events *e, struct sv_llm *l, const struct sv_trace *t)
{
    struct reading r = {.e = e, .l = l, .t = t, .in = sv_alloc(sizeof *r.in)};
    struct sv_index *index = sv_index_new(t);
    memset(e, 0, sizeof *e);
    find_words(&r);
    sv_batch_init(&r.scratch);
    /* A trace without such words is not put in order for it. */
    bool has_words = r.engine_cat || r.life.cat || r.request_name || r.annotation_cat;
    const uint32_t *order = has_words ? sv_index_order(index) : NULL;
    for (uint64_t i = 0; order && r.members_name && i < t->slices.n; i++) {
        uint32_t row = order[i];
        if (t->slices.cat[row] == r.engine_cat && t->slices.name[row] == r.members_name)
            add_late_members(&r, row); /* in the order of time they may come after their step */
    }
    for (uint64_t i = 0; order && i < t->slices.n; i++)
        if (is_wanted(&r, t->slices.cat[order[i]]))
            read_row(&r, order[i]);
    if (e->n_calls == 0)
        read_json(&r);
    if (l->n_steps == 0 && e->n_calls > 0)
        add_batches(&r);
    put_in_order(e, l);
    sv_batch_fini(&r.scratch);
    sv_index_free(index);
    sv_map_fini(&r.models);
    sv_map_fini(&r.tracks);
    free(r.more);
    free(r.in);
}

void sv_llm_events_fini(struct sv_llm_events *e)
{
    free(e->calls);
    free(e->wholes);
    free(e->order);
    free(e->memberships);
    free(e->transports);
}

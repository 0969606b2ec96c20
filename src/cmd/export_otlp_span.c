/* A slice as a span of OTLP: see export_otlp.h.
 *
 * What the reader of OTLP made of a span goes back to where it was (docs/otlp.md has the table);
 * other arguments become attributes. Requests of LLM engines have the keys of OpenTelemetry's
 * conventions for generative AI, in seconds and tokens. */
#include "cmd/export_otlp.h"
#include "core/base/wire.h"
#include "core/serving/engine_words.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/schema.h"

/* ---- words ---- */

static const struct {
    const char *word, *key;
    bool is_ns;
} request_words[] =
    {
        {SV_REQUEST, "gen_ai.request.id", false},
        {SV_LLM_MODEL, "gen_ai.request.model", false},
        {SV_LLM_PROMPT_TOKENS, "gen_ai.usage.input_tokens", false},
        {SV_LLM_OUTPUT_TOKENS, "gen_ai.usage.output_tokens", false},
        {SV_LLM_CACHED_TOKENS, "gen_ai.usage.cache_read.input_tokens", false},
        {SV_LLM_QUEUE_NS, "gen_ai.latency.time_in_queue", true},
        {SV_LLM_TTFT_NS, "gen_ai.latency.time_to_first_token", true},
        {SV_LLM_PREFILL_NS, "gen_ai.latency.time_in_model_prefill", true},
        {SV_LLM_DECODE_NS, "gen_ai.latency.time_in_model_decode", true},
},
  step_words[] = {
      {SV_STEP_TOKENS_IN, "gen_ai.usage.input_tokens", false},
      {SV_STEP_TOKENS_OUT, "gen_ai.usage.output_tokens", false},
};

static const struct sv_arg *find(const struct sv_arg *args, size_t n, sv_str key)
{
    for (const struct sv_arg *a = args; key && a < args + n; a = sv_arg_next(a))
        if (a->key == key)
            return a;
    return NULL;
}

bool otlp_is_request(const struct otlp_export *x, uint32_t row)
{
    return x->word.request_name && x->t->slices.name[row] == x->word.request_name &&
           x->t->slices.cat[row] == x->word.request_cat;
}

bool otlp_is_step(const struct otlp_export *x, uint32_t row)
{
    return x->word.step_name && x->t->slices.name[row] == x->word.step_name &&
           x->t->slices.cat[row] == x->word.step_cat && x->t->slices.kind[row] == SV_SLICE;
}

/* ---- attributes ---- */

/* Is this argument one that has a field of the span, or none? */
static bool is_field(const struct otlp_export *x, const struct sv_arg *a)
{
    const sv_str keys[] = {x->key.trace_id,       x->key.span_id,
                           x->key.parent_id,      x->key.kind,
                           x->key.status,         x->key.status_message,
                           x->key.trace_state,    x->key.scope,
                           x->key.scope_version,  x->key.dropped_attributes,
                           x->key.dropped_events, x->key.dropped_links,
                           x->key.name,           x->key.links,
                           x->key.flags};
    if (a->type >= SV_ARG_FLOW_BEGIN && a->type <= SV_ARG_FLOW_END)
        return true;
    for (size_t i = 0; a->key && i < sizeof keys / sizeof *keys; i++)
        if (keys[i] == a->key)
            return true;
    return false;
}

/* Arguments with a meaning of their own have no key. */
static const char *name_of(const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_CORRELATION: return "correlation";
    case SV_ARG_SOURCE: return "code";
    case SV_ARG_STACK: return "code.stacktrace";
    case SV_ARG_THREAD_TIME: return "thread.cpu_time_ns";
    case SV_ARG_THREAD_DUR: return "thread.cpu_dur_ns";
    default: return "value";
    }
}

/* The gen_ai key for a word of an engine's trace, NULL: none. */
static const char *gen_ai_key(const struct otlp_export *x, uint32_t row, struct sv_text word,
                              bool *is_ns)
{
    bool is_request = otlp_is_request(x, row), is_step = otlp_is_step(x, row);
    for (size_t i = 0; is_request && i < sizeof request_words / sizeof *request_words; i++) {
        *is_ns = request_words[i].is_ns;
        if (sv_text_is(word, request_words[i].word))
            return request_words[i].key;
    }
    for (size_t i = 0; is_step && i < sizeof step_words / sizeof *step_words; i++) {
        *is_ns = step_words[i].is_ns;
        if (sv_text_is(word, step_words[i].word))
            return step_words[i].key;
    }
    return NULL;
}

static void put_attribute(const struct otlp_export *x, struct sv_buf *out, uint32_t row,
                          const struct sv_arg *a, bool is_from_otlp)
{
    struct sv_text key = sv_dict_text(x->dict, a->key);
    bool is_ns = false;
    const char *gen_ai = a->key ? gen_ai_key(x, row, key, &is_ns) : NULL;
    if (gen_ai && is_from_otlp) /* the reader made it of an attribute that is there */
        return;
    if (gen_ai && is_ns && a->type == SV_ARG_INT)
        sv_otlp_put_double(out, OTLP_SPAN_ATTRIBUTES, gen_ai, (double)a->i / 1e9);
    else if (gen_ai)
        sv_otlp_put_arg(out, OTLP_SPAN_ATTRIBUTES, gen_ai, strlen(gen_ai), a, x->dict);
    else if (a->key)
        sv_otlp_put_arg(out, OTLP_SPAN_ATTRIBUTES, key.bytes, key.len, a, x->dict);
    else
        sv_otlp_put_arg(out, OTLP_SPAN_ATTRIBUTES, name_of(a), strlen(name_of(a)), a, x->dict);
}

static void put_count(struct sv_buf *out, uint32_t id, const struct sv_arg *count)
{
    if (count && count->type == SV_ARG_INT && count->i > 0)
        sv_put_u64(out, id, (uint64_t)count->i);
}

static void put_flags(struct sv_buf *out, uint32_t id, const struct sv_arg *flags)
{
    uint32_t bits = flags && flags->type == SV_ARG_INT ? (uint32_t)flags->i : 0;
    if (bits == 0)
        return;
    sv_put_varint(out, (uint64_t)id << 3 | SV_PB_FIXED32);
    sv_buf_add(out, &bits, sizeof bits);
}

/* ---- events and links ---- */

static void put_event(struct otlp_export *x, struct sv_buf *out, uint32_t row)
{
    const struct sv_slices *s = &x->t->slices;
    size_t n;
    struct sv_batch scratch;
    struct sv_text name = sv_dict_text(x->dict, s->name[row]);
    sv_batch_init(&scratch);
    const struct sv_arg *args = sv_trace_args(x->t, s->args[row], &scratch, &n);
    size_t mark = sv_put_begin(out, OTLP_SPAN_EVENTS);
    sv_put_fixed64(out, OTLP_EVENT_TIME, wall_of(x, s->ts_ns[row]));
    sv_put_text(out, OTLP_EVENT_NAME, name.bytes, name.len);
    for (const struct sv_arg *a = args; a < args + n; a = sv_arg_next(a)) {
        struct sv_text key = sv_dict_text(x->dict, a->key);
        if (a->key && a->key != x->key.span_id && a->key != x->key.dropped_attributes)
            sv_otlp_put_arg(out, OTLP_EVENT_ATTRIBUTES, key.bytes, key.len, a, x->dict);
    }
    put_count(out, OTLP_EVENT_DROPPED, find(args, n, x->key.dropped_attributes));
    sv_put_end(out, mark);
    sv_batch_fini(&scratch);
}

void otlp_put_link(struct sv_buf *out, const struct otlp_chosen *to)
{
    size_t mark = sv_put_begin(out, OTLP_SPAN_LINKS);
    sv_put_bytes(out, OTLP_LINK_TRACE_ID, to->trace_id, sizeof to->trace_id);
    sv_put_bytes(out, OTLP_LINK_SPAN_ID, to->id, sizeof to->id);
    sv_put_end(out, mark);
}

/* Slices that lead to this one by an arrow, but for its parent. */
static void put_flow_links(const struct otlp_export *x, struct sv_buf *out, uint32_t row,
                           const uint8_t *parent_id)
{
    uint64_t first, n = sv_trace_flows_in(x->t, row, &first);
    for (uint64_t i = first; i < first + n; i++) {
        uint32_t from = x->of_row[x->t->flows.from[x->t->flows.by_to[i]]];
        if (from == OTLP_NONE)
            continue;
        const struct otlp_chosen *c = &x->chosen[from];
        if (!parent_id || memcmp(parent_id, c->id, sizeof c->id) != 0)
            otlp_put_link(out, c);
    }
}

/* A link of a span that was read from OTLP. */
static void put_kept_link(const struct otlp_export *x, struct sv_buf *out,
                          const struct sv_arg *link)
{
    uint8_t trace_id[SV_TRACE_ID_BYTES], id[SV_SPAN_ID_BYTES];
    size_t n = link->size;
    const struct sv_arg *trace = find(link + 1, n, x->key.trace_id);
    const struct sv_arg *span = find(link + 1, n, x->key.span_id);
    const struct sv_arg *state = find(link + 1, n, x->key.trace_state);
    const struct sv_arg *attributes = find(link + 1, n, x->key.attributes);
    if (!trace || !span || !sv_otlp_id(trace, trace_id, sizeof trace_id) ||
        !sv_otlp_id(span, id, sizeof id))
        return;
    size_t mark = sv_put_begin(out, OTLP_SPAN_LINKS);
    sv_put_bytes(out, OTLP_LINK_TRACE_ID, trace_id, sizeof trace_id);
    sv_put_bytes(out, OTLP_LINK_SPAN_ID, id, sizeof id);
    if (state && state->type == SV_ARG_TEXT)
        sv_put_text(out, OTLP_LINK_TRACE_STATE, state->text, state->size);
    for (const struct sv_arg *a = attributes ? attributes + 1 : NULL;
         attributes && a < attributes + 1 + attributes->size; a = sv_arg_next(a)) {
        struct sv_text key = sv_dict_text(x->dict, a->key);
        sv_otlp_put_arg(out, OTLP_LINK_ATTRIBUTES, key.bytes, key.len, a, x->dict);
    }
    put_count(out, OTLP_LINK_DROPPED, find(link + 1, n, x->key.dropped_attributes));
    put_flags(out, OTLP_LINK_FLAGS, find(link + 1, n, x->key.flags));
    sv_put_end(out, mark);
}

static void put_kept_links(const struct otlp_export *x, struct sv_buf *out,
                           const struct sv_arg *links)
{
    for (const struct sv_arg *a = links + 1; a < links + 1 + links->size; a = sv_arg_next(a))
        if (a->type == SV_ARG_DICT)
            put_kept_link(x, out, a);
}

/* "412p512@128~64 413d1+1@77": the requests that a step serves. */
static void put_member_links(const struct otlp_export *x, struct sv_buf *out, uint32_t handle)
{
    struct sv_arg a;
    if (!x->word.members || !sv_trace_arg(x->t, handle, x->word.members, &a) ||
        a.type != SV_ARG_TEXT)
        return;
    const char *p = a.text, *end = a.text + a.size;
    int is_member;
    for (struct sv_engine_member m; (is_member = sv_engine_member_next(&p, end, &m)) != 0;) {
        const uint64_t *request = is_member > 0 ? sv_map_find(&x->requests, m.request) : NULL;
        if (request)
            otlp_put_link(out, &x->chosen[*request - 1]);
    }
}

/* Steps with many members have them in instants at their begin, too. */
static void put_step_links(const struct otlp_export *x, struct sv_buf *out, uint32_t row)
{
    const struct sv_slices *s = &x->t->slices;
    put_member_links(x, out, s->args[row]);
    for (uint32_t i = row + 1; i < x->t->tracks[s->track[row]].end && s->ts_ns[i] == s->ts_ns[row];
         i++)
        if (s->kind[i] == SV_INSTANT && s->cat[i] == s->cat[row])
            put_member_links(x, out, s->args[i]);
}

/* ---- the span ---- */

/* The outcome that the reader of OTLP put before the attributes, one of which may have its name. */
static const struct sv_arg *made_outcome(const struct otlp_export *x, uint32_t row,
                                         const struct sv_arg *args, size_t n)
{
    for (const struct sv_arg *a = args; otlp_is_request(x, row) && a < args + n; a = sv_arg_next(a))
        if (a->key && sv_text_is(sv_dict_text(x->dict, a->key), SV_LLM_OUTCOME))
            return a;
    return NULL;
}

static void put_attributes(const struct otlp_export *x, struct sv_buf *out,
                           const struct otlp_chosen *c, const struct sv_arg *args, size_t n)
{
    bool is_from_otlp = find(args, n, x->key.name) != NULL;
    if (otlp_is_life(c)) {
        otlp_put_life(x, out, c);
        return;
    }
    const struct sv_arg *made = is_from_otlp ? made_outcome(x, c->row, args, n) : NULL;
    for (const struct sv_arg *a = args; a < args + n; a = sv_arg_next(a))
        if (!is_field(x, a) && a != made)
            put_attribute(x, out, c->row, a, is_from_otlp);
}

static uint32_t kind_of(const struct otlp_export *x, const struct otlp_chosen *c,
                        const struct sv_arg *kind)
{
    static const char *const kinds[] = {"unspecified", "internal", "server",
                                        "client",      "producer", "consumer"};
    for (uint32_t i = 0; kind && kind->type == SV_ARG_TEXT && i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == kind->size && memcmp(kinds[i], kind->text, kind->size) == 0)
            return i;
    bool is_request = c->life != OTLP_NONE || otlp_is_request(x, c->row);
    return is_request && c->batch == OTLP_NONE ? OTLP_KIND_SERVER : OTLP_KIND_INTERNAL;
}

static void put_status(const struct otlp_export *x, struct sv_buf *out, const struct sv_arg *args,
                       size_t n)
{
    const struct sv_arg *status = find(args, n, x->key.status);
    const struct sv_arg *message = find(args, n, x->key.status_message);
    bool is_ok = status && status->type == SV_ARG_TEXT && status->size == 2;
    if (!status && !message)
        return;
    size_t mark = sv_put_begin(out, OTLP_SPAN_STATUS);
    if (message && message->type == SV_ARG_TEXT)
        sv_put_text(out, OTLP_STATUS_MESSAGE, message->text, message->size);
    if (status)
        sv_put_u64(out, OTLP_STATUS_CODE, is_ok ? OTLP_STATUS_OK : OTLP_STATUS_ERROR);
    sv_put_end(out, mark);
}

static void put_name(const struct otlp_export *x, struct sv_buf *out, const struct otlp_chosen *c,
                     const struct sv_arg *own)
{
    struct sv_text name = sv_dict_text(x->dict, x->t->slices.name[c->row]);
    const char *life = otlp_is_life(c) ? otlp_life_name(x, c) : NULL;
    if (life) /* the row is that of its arrival */
        sv_put_text(out, OTLP_SPAN_NAME, life, strlen(life));
    else if (own && own->type == SV_ARG_TEXT)
        sv_put_text(out, OTLP_SPAN_NAME, own->text, own->size);
    else
        sv_put_text(out, OTLP_SPAN_NAME, name.len ? name.bytes : "slice", name.len ? name.len : 5);
}

/* Its parent: as its arguments say, else the slice that it lies in. NULL: none. */
static const uint8_t *parent_of(const struct otlp_export *x, const struct otlp_chosen *c,
                                const struct sv_arg *own, uint8_t space[SV_SPAN_ID_BYTES])
{
    if (c->has_own)
        return own && sv_otlp_id(own, space, SV_SPAN_ID_BYTES) ? space : NULL;
    return c->parent != OTLP_NONE ? x->chosen[c->parent].id : NULL;
}

/* An argument of the slice that has the span's ids. */
static const struct sv_arg *find_context(const struct otlp_export *x, const struct otlp_chosen *c,
                                         sv_str key, struct sv_arg *space)
{
    return key && sv_trace_arg(x->t, x->t->slices.args[c->ids_row], key, space) ? space : NULL;
}

void otlp_put_span(struct otlp_export *x, struct sv_buf *out, uint32_t chosen)
{
    const struct otlp_chosen *c = &x->chosen[chosen];
    const struct sv_slices *s = &x->t->slices;
    uint8_t space[SV_SPAN_ID_BYTES];
    size_t n;
    uint32_t row = c->row;
    sv_batch_reset(&x->scratch);
    const struct sv_arg *args = sv_trace_args(x->t, s->args[row], &x->scratch, &n);
    struct sv_arg context[2];
    const struct sv_arg *state = find_context(x, c, x->key.trace_state, &context[0]);
    const struct sv_arg *name = find(args, n, x->key.name);
    const uint8_t *parent =
        parent_of(x, c, find_context(x, c, x->key.parent_id, &context[1]), space);
    size_t mark = sv_put_begin(out, OTLP_SS_SPANS);
    sv_put_bytes(out, OTLP_SPAN_TRACE_ID, c->trace_id, sizeof c->trace_id);
    sv_put_bytes(out, OTLP_SPAN_ID, c->id, sizeof c->id);
    if (state && state->type == SV_ARG_TEXT)
        sv_put_text(out, OTLP_SPAN_TRACE_STATE, state->text, state->size);
    if (parent)
        sv_put_bytes(out, OTLP_SPAN_PARENT_ID, parent, SV_SPAN_ID_BYTES);
    put_name(x, out, c, name);
    sv_put_u64(out, OTLP_SPAN_KIND, kind_of(x, c, find(args, n, x->key.kind)));
    int64_t start = s->ts_ns[row], end = sv_trace_end_ns(x->t, row);
    if (otlp_is_life(c))
        otlp_life_times(x, c, &start, &end);
    sv_put_fixed64(out, OTLP_SPAN_START, wall_of(x, start));
    sv_put_fixed64(out, OTLP_SPAN_END, wall_of(x, end));
    put_attributes(x, out, c, args, n);
    if (!otlp_is_life(c) && s->dur_ns[row] == SV_UNFINISHED)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "stave.unfinished", 1);
    put_count(out, OTLP_SPAN_DROPPED_ATTRIBUTES, find(args, n, x->key.dropped_attributes));
    for (uint32_t e = c->first_event; e != OTLP_NONE; e = x->events[e].next)
        put_event(x, out, x->events[e].row);
    put_count(out, OTLP_SPAN_DROPPED_EVENTS, find(args, n, x->key.dropped_events));
    const struct sv_arg *links = find(args, n, x->key.links);
    if (links && links->type == SV_ARG_ARRAY)
        put_kept_links(x, out, links);
    else
        put_flow_links(x, out, row, parent);
    if (otlp_is_life(c))
        otlp_put_life_links(x, out, c);
    else if (otlp_is_step(x, row))
        put_step_links(x, out, row);
    put_count(out, OTLP_SPAN_DROPPED_LINKS, find(args, n, x->key.dropped_links));
    put_status(x, out, args, n);
    put_flags(out, OTLP_SPAN_FLAGS, find(args, n, x->key.flags));
    sv_put_end(out, mark);
}

/* Requests that a trace knows by their life (instants of category serving.life) as spans: see
 * export_otlp.h.
 *
 * As report llm finds them (subjects/engine/llm.h), from "enqueued" to their end; warm-up and what
 * has no end are left out. Where a slice says the same about a request, that is its span. Where a
 * server's slice of a request has the trace context of its caller, its span has these ids: the
 * caller's trace goes on in it. */
#include "cmd/export_otlp.h"
#include "core/serving/engine_words.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/schema.h"

static bool has_slice(const struct otlp_export *x, const struct sv_llm_request *r)
{
    const uint64_t *chosen = r->name ? NULL : sv_map_find(&x->requests, r->id);
    return chosen && x->chosen[*chosen - 1].life == OTLP_NONE;
}

/* A request is used once a time: the same number may be another server's. */
static uint64_t request_key(uint64_t number, int64_t arrival_ns)
{
    return sv_mix64(sv_mix64(number + 1) + (uint64_t)arrival_ns);
}

static bool has_number(const struct otlp_export *x, uint64_t row, sv_str key, uint64_t *number)
{
    struct sv_arg a;
    if (!key || !sv_trace_arg(x->t, x->t->slices.args[row], key, &a) ||
        (a.type != SV_ARG_INT && a.type != SV_ARG_UINT))
        return false;
    *number = a.u;
    return true;
}

/* The slices of a server's requests that were called with a context: of its trace, and of its
 * JSON. */
static void find_called(struct otlp_export *x)
{
    const struct sv_slices *s = &x->t->slices;
    struct sv_arg a;
    uint64_t number;
    for (uint64_t row = 0; x->key.trace_id && row < s->n; row++)
        if (s->kind[row] == SV_SLICE && sv_trace_arg(x->t, s->args[row], x->key.trace_id, &a) &&
            (has_number(x, row, x->word.request, &number) ||
             has_number(x, row, x->word.request_id, &number)))
            *sv_map_add(&x->called, request_key(number, s->ts_ns[row]), NULL) = row + 1;
}

void otlp_find_requests(struct otlp_export *x)
{
    sv_llm_make(&x->llm, x->t);
    find_called(x);
    for (size_t i = 0; i < x->llm.n_requests; i++) {
        const struct sv_llm_request *r = &x->llm.requests[i];
        if (r->row == SV_NO_ROW || r->fate == SV_FATE_OPEN || r->is_whole || r->is_warmup ||
            has_slice(x, r))
            continue;
        const uint64_t *called =
            sv_map_find(&x->called, request_key(r->id, x->t->slices.ts_ns[r->row]));
        otlp_choose(x, r->row, called ? (uint32_t)(*called - 1) : r->row, (uint32_t)i);
    }
}

/* ---- the span's attributes ---- */

static void put_seconds(struct sv_buf *out, const char *key, int64_t from_ns, int64_t to_ns)
{
    if (to_ns != SV_LLM_UNKNOWN && to_ns >= from_ns)
        sv_otlp_put_double(out, OTLP_SPAN_ATTRIBUTES, key, (double)(to_ns - from_ns) / 1e9);
}

static void put_str(const struct otlp_export *x, struct sv_buf *out, const char *key, sv_str s)
{
    struct sv_text text = sv_dict_text(x->llm.strings, s);
    sv_otlp_put_text(out, OTLP_SPAN_ATTRIBUTES, key, text.bytes, text.len);
}

void otlp_put_life(const struct otlp_export *x, struct sv_buf *out, const struct otlp_chosen *c)
{
    const struct sv_llm_request *r = &x->llm.requests[c->life];
    bool has_tokens =
        !x->llm.is_batches; /* a batch is a step that gives one token, but says none */
    const char *outcome = sv_life_fate_names[r->fate];
    if (r->name)
        put_str(x, out, "gen_ai.request.id", r->name);
    else
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "gen_ai.request.id", (int64_t)r->id);
    if (r->model)
        put_str(x, out, "gen_ai.request.model", r->model);
    if (r->prompt && has_tokens)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "gen_ai.usage.input_tokens", r->prompt);
    if (r->output && has_tokens)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "gen_ai.usage.output_tokens",
                        (int64_t)r->output);
    put_seconds(out, "gen_ai.latency.time_in_queue", r->arrival_ns, r->scheduled_ns);
    if (has_tokens)
        put_seconds(out, "gen_ai.latency.time_to_first_token", r->arrival_ns, r->first_token_ns);
    put_seconds(out, "gen_ai.latency.e2e", r->arrival_ns, r->end_ns);
    sv_otlp_put_text(out, OTLP_SPAN_ATTRIBUTES, SV_LLM_OUTCOME, outcome, strlen(outcome));
}

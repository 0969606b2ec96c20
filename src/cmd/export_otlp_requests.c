/* Requests that a trace knows by their life (instants of category serving.life) as spans: see export_otlp.h.
 *
 * As report llm finds them (analysis/llm.h), from "enqueued" to their end; one without an end is left out. Where a slice says the same about a request, that
 * is its span. */
#include "cmd/export_otlp.h"
#include "core/serving/engine_words.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/schema.h"

static bool has_slice(const struct otlp_export *x, const struct sv_llm_request *r)
{
    const uint64_t *chosen = r->name ? NULL : sv_map_find(&x->requests, r->id);
    return chosen && x->chosen[*chosen - 1].life == OTLP_NONE;
}

void otlp_find_requests(struct otlp_export *x)
{
    sv_llm_make(&x->llm, x->t);
    for (size_t i = 0; i < x->llm.n_requests; i++) {
        const struct sv_llm_request *r = &x->llm.requests[i];
        if (r->row != SV_NO_ROW && r->fate != SV_FATE_OPEN && !r->is_whole && !has_slice(x, r))
            otlp_choose(x, r->row, (uint32_t)i);
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

/* Requests and batches that a trace knows by their life (instants of category serving.life) as
 * spans: see export_otlp.h.
 *
 * Requests are those of report llm (subjects/engine/llm.h), from "enqueued" to their end; what has
 * no end is left out, warm-up is marked. Batches are those of report batch; each is a trace of its
 * own, with links to its requests, and they have one to it. Where a slice says the same about a
 * request, that is its span. Where a server's slice of a request has the trace context of its
 * caller, its span has these ids: the caller's trace goes on in it. */
#include "cmd/export_otlp.h"
#include "core/base/mem.h"
#include "core/serving/engine_words.h"
#include "formats/otlp/encode.h"
#include "formats/otlp/reader.h"
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

/* A batch has the row of a request of it, which says whose it is. NULL: none was exported. */
static const struct otlp_chosen *request_of(const struct otlp_export *x,
                                            const struct sv_served_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t id = x->served.requests[x->served.members[b->first_member + i]].id;
        const uint64_t *request = sv_map_find(&x->requests, id);
        if (request)
            return &x->chosen[*request - 1];
    }
    return NULL;
}

static int64_t batch_start(const struct sv_served_batch *b)
{
    return b->edges[SV_PHASE_BATCH]; /* its collection, as in the table */
}

static void find_batches(struct otlp_export *x)
{
    sv_serving_report_tables(&x->served, x->t);
    for (size_t i = 0; i < x->served.n_batches; i++) {
        const struct sv_served_batch *b = &x->served.batches[i];
        const struct otlp_chosen *request = b->is_untimed ? NULL : request_of(x, b);
        if (!request)
            continue;
        uint32_t row = request->row;
        uint64_t uuid = x->dict->tracks[x->t->slices.track[row]].uuid;
        x->chosen = sv_grow(x->chosen, &x->cap, x->n + 1, sizeof *x->chosen);
        struct otlp_chosen *c = &x->chosen[x->n];
        *c = (struct otlp_chosen){.row = row,
                                  .parent = OTLP_NONE,
                                  .first_event = OTLP_NONE,
                                  .ids_row = row,
                                  .life = OTLP_NONE,
                                  .batch = (uint32_t)i};
        otlp_make_ids(x, c, sv_mix64(sv_mix64(uuid ^ b->id) + wall_of(x, batch_start(b))) | 1);
        *sv_map_add(&x->batches, b->id, NULL) = ++x->n;
    }
}

void otlp_find_requests(struct otlp_export *x)
{
    sv_llm_make(&x->llm, x->t);
    find_called(x);
    for (size_t i = 0; i < x->llm.n_requests; i++) {
        const struct sv_llm_request *r = &x->llm.requests[i];
        if (r->row == SV_NO_ROW || r->fate == SV_FATE_OPEN || r->is_whole || has_slice(x, r))
            continue;
        const uint64_t *called =
            sv_map_find(&x->called, request_key(r->id, x->t->slices.ts_ns[r->row]));
        otlp_choose(x, r->row, called ? (uint32_t)(*called - 1) : r->row, (uint32_t)i);
    }
    if (x->llm.is_batches)
        find_batches(x);
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

static void put_batch(const struct otlp_export *x, struct sv_buf *out, uint32_t batch)
{
    const struct sv_served_batch *b = &x->served.batches[batch];
    const char *model = sv_served_model(&x->served, b->model);
    sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, OTLP_STAVE_BATCH, (int64_t)b->id);
    sv_otlp_put_text(out, OTLP_SPAN_ATTRIBUTES, "model_name", model, strlen(model));
    sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "batch_size", b->samples);
    sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, "worker_id", b->worker);
    if (b->is_warmup)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, OTLP_STAVE_WARMUP, 1);
    if (b->is_failed)
        sv_otlp_put_text(out, OTLP_SPAN_ATTRIBUTES, SV_LLM_OUTCOME, "failed", 6);
}

void otlp_put_life_links(const struct otlp_export *x, struct sv_buf *out,
                         const struct otlp_chosen *c)
{
    const struct sv_llm_request *r = c->life != OTLP_NONE ? &x->llm.requests[c->life] : NULL;
    const uint64_t *batch = r && r->batch ? sv_map_find(&x->batches, r->batch - 1) : NULL;
    if (batch)
        otlp_put_link(out, &x->chosen[*batch - 1]);
    if (c->batch == OTLP_NONE)
        return;
    const struct sv_served_batch *b = &x->served.batches[c->batch];
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t id = x->served.requests[x->served.members[b->first_member + i]].id;
        const uint64_t *request = sv_map_find(&x->requests, id);
        if (request)
            otlp_put_link(out, &x->chosen[*request - 1]);
    }
}

/* A server without tokens is none of an LLM. */
const char *otlp_life_name(const struct otlp_export *x, const struct otlp_chosen *c)
{
    bool is_llm = !x->llm.is_batches && x->llm.n_steps > 0;
    return c->batch != OTLP_NONE ? "batch" : is_llm ? SV_LLM_REQUEST : "request";
}

void otlp_life_times(const struct otlp_export *x, const struct otlp_chosen *c, int64_t *start_ns,
                     int64_t *end_ns)
{
    if (c->batch != OTLP_NONE) {
        *start_ns = batch_start(&x->served.batches[c->batch]);
        *end_ns = x->served.batches[c->batch].edges[SV_N_PHASES];
    } else {
        *start_ns = x->llm.requests[c->life].arrival_ns;
        *end_ns = x->llm.requests[c->life].end_ns;
    }
}

void otlp_put_life(const struct otlp_export *x, struct sv_buf *out, const struct otlp_chosen *c)
{
    if (c->batch != OTLP_NONE) {
        put_batch(x, out, c->batch);
        return;
    }
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
    for (int i = 0; i < SV_N_TRANSPORT; i++)
        if (r->transport_ns[i] >= 0)
            sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, sv_transport_keys[i], r->transport_ns[i]);
    if (r->batch)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, SV_LLM_BATCH, (int64_t)(r->batch - 1));
    if (r->is_warmup)
        sv_otlp_put_int(out, OTLP_SPAN_ATTRIBUTES, OTLP_STAVE_WARMUP, 1);
}

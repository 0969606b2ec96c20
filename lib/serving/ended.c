/* What has become of requests and batches, for a server that passes it on while it runs. Called by
 * the writing thread for those that are recorded. */
#include "serving/tracer.h"

#include <stave/trace_context.h>

static void report_request(const struct stave_serving *s, struct sv_life *l,
                           const struct sv_life_request *r, const struct sv_life_batch *b)
{
    const struct sv_life_context *c = r->context;
    int64_t start_ns = r->enqueued_ns ? r->enqueued_ns : r->end_ns;
    const struct stave_serving_ended e = {.size = sizeof e,
                                          .id = r->id,
                                          .has_batch = b != NULL,
                                          .batch = b ? b->id : 0,
                                          .model = sv_life_model(l, r->model),
                                          .outcome = sv_life_fate_names[r->fate],
                                          .flags = r->flags,
                                          .start_ns = start_ns,
                                          .dequeued_ns = r->dequeued_ns,
                                          .end_ns = r->end_ns > start_ns ? r->end_ns : start_ns,
                                          .worker = b ? b->worker : -1,
                                          .trace_id = c ? c->trace_id : NULL,
                                          .span_id = c ? c->span_id : NULL,
                                          .parent_id = c ? c->parent_id : NULL,
                                          .state = c ? c->state : ""};
    s->config.ended(s->config.ended_ctx, &e);
}

static void report_batch(const struct stave_serving *s, struct sv_life *l,
                         const struct sv_life_batch *b)
{
    int64_t edges[SV_N_PHASES + 1];
    sv_life_batch_edges(b, edges);
    const struct stave_serving_ended e = {.size = sizeof e,
                                          .is_batch = true,
                                          .id = b->id,
                                          .model = sv_life_model(l, b->model),
                                          .outcome = b->is_failed ? "failed" : "done",
                                          .flags = b->flags,
                                          .start_ns = edges[SV_PHASE_BATCH],
                                          .end_ns = edges[SV_N_PHASES],
                                          .worker = b->worker,
                                          .samples = b->samples,
                                          .state = ""};
    s->config.ended(s->config.ended_ctx, &e);
}

void sv_serving_ended(const struct stave_serving *s, struct sv_life *l, enum sv_life_moment moment,
                      const struct sv_life_request *r, const struct sv_life_batch *b)
{
    if (!s->config.ended)
        return;
    if (moment == SV_MOMENT_REQUEST_OVER || moment == SV_MOMENT_REJECTED)
        report_request(s, l, r, b);
    else if (moment == SV_MOMENT_BATCH_OVER)
        report_batch(s, l, b);
}

/* See inference.h. Called by http_front.c and grpc_front.c for each request. */
#include "server/run/inference.h"

#include "server/run/trace_control.h"

#include <stdlib.h>

void sv_inference_begin(struct sv_inference *i, const struct sv_caller_headers *headers,
                        bool (*is_gone)(const struct sv_served *r),
                        void (*done)(struct sv_served *r), void *owner)
{
    struct sv_engine *e = i->model->engine;
    struct sv_caller *caller =
        sv_caller_new(e, headers->parent, headers->parent_len, headers->state, headers->state_len);
    struct stave_serving *trace = sv_trace_for(i->model, caller ? &caller->caller : NULL);
    if (!trace) { /* then it has no span that an answer could name */
        free(caller);
        caller = NULL;
    }
    i->served = (struct sv_served){.id = atomic_fetch_add(&e->next_request, 1),
                                   .rows = i->asked.rows,
                                   .in = i->asked.in,
                                   .worker = -1,
                                   .trace = trace,
                                   .caller = caller,
                                   .is_gone = is_gone,
                                   .done = done,
                                   .owner = owner};
}

bool sv_inference_traceparent(const struct sv_inference *i, char text[STAVE_TRACEPARENT_SIZE])
{
    if (i->served.caller)
        stave_traceparent_write(&i->served.caller->own, text);
    return i->served.caller != NULL;
}

struct sv_infer_answer sv_inference_answer(const struct sv_inference *i)
{
    const struct sv_served *s = &i->served;
    return (struct sv_infer_answer){.id = i->asked.id,
                                    .rows = s->rows,
                                    .out = s->out,
                                    .request_asks = &i->asked,
                                    .request = s->id,
                                    .batch = s->batch,
                                    .batch_rows = s->batch_rows,
                                    .worker = s->worker};
}

const char *sv_inference_refusal(const struct sv_inference *i, bool *is_full)
{
    *is_full = atomic_load(&i->model->engine->is_ready);
    return *is_full ? "Inference queue is full" : SV_SAYS_UNREADY;
}

static int64_t known(int64_t ns)
{
    return ns > 0 ? ns : -1;
}

void sv_inference_over(const struct sv_inference *i, bool is_written)
{
    if (!i->served.trace)
        return;
    int64_t now_ns = stave_now_ns();
    int64_t write_ns = is_written && i->sending_ns ? now_ns - i->sending_ns : -1;
    stave_serving_transport(i->served.trace, i->served.id, known(i->read_ns), known(i->parse_ns),
                            known(i->serialise_ns), known(write_ns), now_ns);
}

void sv_inference_fini(struct sv_inference *i)
{
    sv_infer_request_free(&i->asked);
    for (uint32_t k = 0; k < SV_IO_MAX; k++)
        free(i->served.out[k].bytes);
    free(i->served.caller);
}

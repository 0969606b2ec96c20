/* Rows of batches from a trace, by way of the serving report, which knows what a trace says about
 * them. Called by `plot batch`. */
#include "subjects/serving/report.h"
#include "subjects/serving/rows.h"

#include <string.h>

static int64_t span(int64_t from, int64_t to)
{
    return from && to && to > from ? to - from : 0;
}

static void fill_columns(struct sv_batch_row *r, const struct sv_served_batch *s)
{
    int64_t *c = r->column_ns;
    c[SV_BATCH_QUEUE] = span(s->first_arrival_ns, s->first_dequeued_ns);
    c[SV_BATCH_BATCH] = span(s->collect_start_ns, s->collect_end_ns);
    c[SV_BATCH_SUBMIT] = span(s->collect_start_ns, s->submitted_ns);
    c[SV_BATCH_SCHEDULING] = span(s->submitted_ns, s->started_ns);
    c[SV_BATCH_CODELET] = span(s->started_ns, s->finished_ns);
    c[SV_BATCH_INFERENCE] =
        span(s->started_ns, s->callback_start_ns ? s->callback_start_ns : s->finished_ns);
    c[SV_BATCH_CALLBACK] = span(s->callback_start_ns, s->callback_end_ns);
}

/* The time between the worker's end and the callback belongs to neither. */
static void split_callback(struct sv_batch_row *r)
{
    int64_t all = r->phase_ns[SV_PHASE_CALLBACK], own = r->column_ns[SV_BATCH_CALLBACK];
    r->phase_ns[SV_PHASE_CALLBACK] = own < all ? own : all;
    r->phase_ns[SV_BATCH_REST] = all - r->phase_ns[SV_PHASE_CALLBACK];
}

static void add_row(struct sv_batch_rows *b, const struct sv_serving_report *r,
                    const struct sv_served_batch *s)
{
    struct sv_batch_row *row = sv_batch_row_add(b);
    const char *model = sv_served_model(r, s->model);
    const struct sv_served_worker *w = s->worker >= 0 ? sv_served_worker(r, s->worker) : NULL;
    const char *type = w && w->type[0] ? w->type : "unknown";
    row->id = s->id;
    row->model = sv_dict_str(b->names, model, strlen(model));
    row->worker = sv_batch_worker_of(b, s->worker, type, strlen(type));
    row->size = s->samples;
    row->n_requests = s->n ? s->n : 1;
    row->n_known = s->n;
    row->is_congested = s->is_congested;
    row->arrival_ns = s->is_untimed ? SV_BATCH_UNKNOWN : s->edges[0];
    row->end_ns = s->is_untimed ? SV_BATCH_UNKNOWN : s->edges[SV_N_PHASES];
    row->total_ns = s->edges[SV_N_PHASES] - s->edges[0];
    fill_columns(row, s);
    for (size_t i = 0; i < SV_PHASE_RESPOND; i++)
        row->phase_ns[i] = s->edges[i + 1] - s->edges[i];
    split_callback(row);
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_served_request *q = &r->requests[r->members[s->first_member + i]];
        sv_batch_request_add(b, q->id, s->is_untimed ? SV_BATCH_UNKNOWN : q->edges[0],
                             q->edges[SV_N_PHASES] - q->edges[0]);
    }
}

/* The queue's steps, and how many had been rejected by then; requests are in the order of their
 * ends. */
static void add_metrics(struct sv_batch_rows *b, const struct sv_serving_report *r)
{
    size_t next = 0;
    double rejected = 0;
    for (size_t i = 0; i < r->n_queue; i++) {
        for (; next < r->n_requests && r->requests[next].edges[SV_N_PHASES] <= r->queue[i].time_ns;
             next++)
            rejected += r->requests[next].fate == SV_FATE_REJECTED && !r->requests[next].is_warmup;
        sv_batch_metric_add(b, r->queue[i].time_ns, (double)r->queue[i].depth, rejected);
    }
}

void sv_batch_rows_from_trace(struct sv_batch_rows *b, const struct sv_trace *t)
{
    struct sv_serving_report r;
    bool is_untimed = false;
    sv_serving_report_tables(&r, t);
    for (size_t i = 0; i < r.n_batches; i++)
        if (!r.batches[i].is_warmup && !r.batches[i].is_failed &&
            r.batches[i].edges[SV_N_PHASES] > r.batches[i].edges[0])
            add_row(b, &r, &r.batches[i]);
    for (size_t i = 0; i < r.n_batches; i++)
        is_untimed |= r.batches[i].is_untimed;
    b->has_phases = true;
    b->has_congestion = r.n_congestion > 0;
    if (!is_untimed) {
        sv_serving_queue(&r);
        add_metrics(b, &r);
    }
    sv_serving_report_fini(&r);
    sv_batch_rows_finish(b);
}

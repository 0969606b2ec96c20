/* Summary and metrics as CSV. Called by the tracer's writing thread and by `stave convert --dialect
 * batching`. */
#include "core/serving/summary_csv.h"

#include "core/base/csv_text.h"

#include <inttypes.h>
#include <string.h>

enum { OUT_LIMIT = 256 << 20 };

/* ---- the summary ---- */

void sv_summary_csv_init(struct sv_summary_csv *c, bool is_newer)
{
    c->is_newer = is_newer;
    sv_buf_init(&c->out, OUT_LIMIT);
    sv_buf_str(&c->out,
               "batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,"
               "request_arrival_us,queue_ms,batch_ms,submit_ms,scheduling_ms,codelet_ms,"
               "inference_ms,callback_ms,total_ms,warmup");
    if (is_newer)
        sv_buf_str(&c->out, ",congested");
    for (size_t i = 0; i < SV_PHASE_RESPOND; i++)
        sv_buf_printf(&c->out, ",excl_%s_ms", sv_life_phase_names[i]);
    sv_buf_str(&c->out, ",failed,request_arrival_ns,request_queue_ns,request_total_ns,"
                        "request_outcome\n");
}

void sv_summary_csv_fini(struct sv_summary_csv *c)
{
    sv_buf_fini(&c->out);
}

static void put_quoted(struct sv_buf *b, const char *text)
{
    sv_buf_csv_line(b, text, strlen(text));
    sv_buf_byte(b, ',');
}

/* Milliseconds with `decimals` (3: rounded; 6: exact), never below 0. */
static void put_ms(struct sv_buf *b, int64_t ns, unsigned decimals)
{
    ns = ns < 0 ? 0 : ns;
    uint64_t v = decimals == 6 ? (uint64_t)ns : ((uint64_t)ns + 500) / 1000;
    uint64_t one = decimals == 6 ? 1000000 : 1000;
    sv_buf_u64(b, v / one);
    sv_buf_printf(b, ".%0*" PRIu64, (int)decimals, v % one);
}

static void put_phase(struct sv_buf *b, int64_t start_ns, int64_t end_ns)
{
    put_ms(b, start_ns && end_ns ? end_ns - start_ns : 0, 3);
    sv_buf_byte(b, ',');
}

/* One value of each member, in quotes and with semicolons between them. */
static void put_list(struct sv_buf *out, const struct sv_life_member *m, uint32_t n,
                     void (*put)(struct sv_buf *out, const struct sv_life_member *m))
{
    sv_buf_byte(out, '"');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            sv_buf_byte(out, ';');
        put(out, &m[i]);
    }
    sv_buf_byte(out, '"');
}

static void put_id(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_u64(out, m->id);
}

static void put_arrival_us(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_i64(out, m->arrival_ns / 1000);
}

static void put_arrival_ns(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_i64(out, m->arrival_ns);
}

/* -1: it was never taken out of the queue; that it has no end. */
static void put_queue_ns(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_i64(out, m->dequeued_ns && m->arrival_ns ? m->dequeued_ns - m->arrival_ns : -1);
}

static void put_total_ns(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_i64(out, m->end_ns && m->arrival_ns ? m->end_ns - m->arrival_ns : -1);
}

static void put_outcome(struct sv_buf *out, const struct sv_life_member *m)
{
    sv_buf_str(out, sv_life_fate_names[m->fate]);
}

/* What existing scripts read: identity and members. */
static void put_head(struct sv_buf *out, int64_t batch, const char *model,
                     const struct sv_life_worker *w, uint32_t samples)
{
    sv_buf_i64(out, batch);
    sv_buf_byte(out, ',');
    put_quoted(out, model);
    sv_buf_i64(out, w ? w->number : -1);
    sv_buf_byte(out, ',');
    put_quoted(out, w ? w->type : "unknown");
    sv_buf_printf(out, "%d,%u,", w ? w->device : -1, samples);
}

static void put_request_columns(struct sv_buf *out, const struct sv_life_member *m, uint32_t n)
{
    put_list(out, m, n, put_id);
    sv_buf_byte(out, ',');
    put_list(out, m, n, put_arrival_us);
    sv_buf_byte(out, ',');
}

/* The columns after total_ms. */
static void put_tail(struct sv_summary_csv *c, const int64_t *edges, bool is_congested,
                     bool is_failed, const struct sv_life_member *m, uint32_t n)
{
    struct sv_buf *out = &c->out;
    sv_buf_str(out, "false");
    if (c->is_newer)
        sv_buf_str(out, is_congested ? ",true" : ",false");
    for (size_t i = 0; i < SV_PHASE_RESPOND; i++) {
        sv_buf_byte(out, ',');
        put_ms(out, edges[i + 1] - edges[i], 6);
    }
    sv_buf_str(out, is_failed ? ",true," : ",false,");
    put_list(out, m, n, put_arrival_ns);
    sv_buf_byte(out, ',');
    put_list(out, m, n, put_queue_ns);
    sv_buf_byte(out, ',');
    put_list(out, m, n, put_total_ns);
    sv_buf_byte(out, ',');
    bool is_plain = true;
    for (uint32_t i = 0; i < n; i++)
        is_plain &= m[i].fate == SV_FATE_RESPONDED;
    put_list(out, m, is_plain ? 0 : n, put_outcome); /* empty: each of them has its answer */
    sv_buf_byte(out, '\n');
}

static void put_batch(struct sv_summary_csv *c, struct sv_life *l, const struct sv_life_batch *b)
{
    struct sv_buf *out = &c->out;
    int64_t edges[SV_N_PHASES + 1];
    sv_life_batch_edges(b, edges);
    put_head(out, (int64_t)b->id, sv_life_model(l, b->model),
             b->worker >= 0 ? sv_life_worker(l, b->worker) : NULL, b->samples);
    put_request_columns(out, b->members, b->n);
    put_phase(out, b->first_arrival_ns, b->first_dequeued_ns ? b->first_dequeued_ns : edges[1]);
    put_phase(out, b->collect_start_ns, b->collect_end_ns);
    put_phase(out, b->collect_start_ns, b->submitted_ns);
    put_phase(out, b->submitted_ns, b->started_ns);
    put_phase(out, b->started_ns, b->finished_ns);
    put_phase(out, b->started_ns, b->callback_start_ns ? b->callback_start_ns : b->finished_ns);
    put_phase(out, b->callback_start_ns, b->callback_end_ns);
    put_phase(out, edges[0], edges[SV_N_PHASES]);
    put_tail(c, edges, b->is_congested, b->is_failed, b->members, b->n);
}

/* A request that never was in a batch: rejected, left by its client, failed in the queue. */
static void put_alone(struct sv_summary_csv *c, struct sv_life *l, const struct sv_life_request *r)
{
    struct sv_buf *out = &c->out;
    int64_t edges[SV_N_PHASES + 1];
    sv_life_request_edges(r, NULL, edges);
    for (int i = 1; i < SV_N_PHASES; i++) /* all of it was waiting */
        edges[i] = edges[SV_N_PHASES];
    const struct sv_life_member m = {r->id, edges[0], r->dequeued_ns, r->end_ns, r->fate};
    put_head(out, -1, sv_life_model(l, r->model), NULL, 0);
    put_request_columns(out, &m, 1);
    put_phase(out, edges[0], edges[1]);
    for (int i = 0; i < 6; i++)
        put_phase(out, 0, 0);
    put_phase(out, edges[0], edges[SV_N_PHASES]);
    put_tail(c, edges, false, false, &m, 1);
}

void sv_summary_csv_report(struct sv_summary_csv *c, struct sv_life *l, enum sv_life_moment moment,
                           const struct sv_life_request *r, const struct sv_life_batch *b)
{
    bool is_alone = moment == SV_MOMENT_REJECTED || (moment == SV_MOMENT_REQUEST_OVER && !b);
    if (moment == SV_MOMENT_BATCH_CLOSED && !(b->flags & SV_LIFE_WARMUP))
        put_batch(c, l, b);
    else if (is_alone && !(r->flags & SV_LIFE_WARMUP) && r->phase == SV_ENGINE_NONE)
        put_alone(c, l, r);
}

/* ---- metrics ---- */

void sv_metrics_csv_init(struct sv_metrics_csv *m, int64_t origin_ns)
{
    m->origin_ns = origin_ns;
    sv_buf_init(&m->out, OUT_LIMIT);
    sv_buf_str(&m->out, "timestamp_us,queue_size,rejected_total\n");
}

void sv_metrics_csv_fini(struct sv_metrics_csv *m)
{
    sv_buf_fini(&m->out);
}

void sv_metrics_csv_report(struct sv_metrics_csv *m, const struct sv_life *l,
                           enum sv_life_moment moment, int64_t time_ns)
{
    if (moment != SV_MOMENT_ENQUEUED && moment != SV_MOMENT_DEQUEUED &&
        moment != SV_MOMENT_REJECTED)
        return;
    const struct sv_life_counts *c = sv_life_count(l);
    sv_buf_i64(&m->out, time_ns > m->origin_ns ? (time_ns - m->origin_ns) / 1000 : 0);
    sv_buf_byte(&m->out, ',');
    sv_buf_u64(&m->out, c->queued);
    sv_buf_byte(&m->out, ',');
    sv_buf_u64(&m->out, c->rejected);
    sv_buf_byte(&m->out, '\n');
}

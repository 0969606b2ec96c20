/* Summary and metrics as CSV. Called by the tracer's writing thread and by `stave convert --dialect batching`. */
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
    sv_buf_str(&c->out, "\n");
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

static void put_members(struct sv_buf *out, const struct sv_life_batch *b)
{
    sv_buf_byte(out, '"');
    for (uint32_t i = 0; i < b->n; i++) {
        if (i)
            sv_buf_byte(out, ';');
        sv_buf_u64(out, b->members[i].id);
    }
    sv_buf_str(out, "\",\"");
    for (uint32_t i = 0; i < b->n; i++) {
        if (i)
            sv_buf_byte(out, ';');
        sv_buf_i64(out, b->members[i].arrival_ns / 1000);
    }
    sv_buf_str(out, "\",");
}

void sv_summary_csv_report(struct sv_summary_csv *c, struct sv_life *l, enum sv_life_moment moment,
                           const struct sv_life_batch *b)
{
    if (moment != SV_MOMENT_BATCH_OVER || b->is_failed || (b->flags & SV_LIFE_WARMUP))
        return;
    struct sv_buf *out = &c->out;
    const struct sv_life_worker *w = b->worker >= 0 ? sv_life_worker(l, b->worker) : NULL;
    int64_t edges[SV_N_PHASES + 1];
    sv_life_batch_edges(b, edges);
    sv_buf_u64(out, b->id);
    sv_buf_byte(out, ',');
    put_quoted(out, sv_life_model(l, b->model));
    sv_buf_i64(out, b->worker);
    sv_buf_byte(out, ',');
    put_quoted(out, w ? w->type : "unknown");
    sv_buf_printf(out, "%d,%u,", w ? w->device : -1, b->samples);
    put_members(out, b);
    put_phase(out, b->first_arrival_ns, b->first_dequeued_ns ? b->first_dequeued_ns : edges[1]);
    put_phase(out, b->collect_start_ns, b->collect_end_ns);
    put_phase(out, b->collect_start_ns, b->submitted_ns);
    put_phase(out, b->submitted_ns, b->started_ns);
    put_phase(out, b->started_ns, b->finished_ns);
    put_phase(out, b->started_ns, b->callback_start_ns ? b->callback_start_ns : b->finished_ns);
    put_phase(out, b->callback_start_ns, b->callback_end_ns);
    put_phase(out, edges[0], edges[SV_N_PHASES]);
    sv_buf_str(out, "false");
    if (c->is_newer)
        sv_buf_str(out, b->is_congested ? ",true" : ",false");
    for (size_t i = 0; i < SV_PHASE_RESPOND; i++) {
        sv_buf_byte(out, ',');
        put_ms(out, edges[i + 1] - edges[i], 6);
    }
    sv_buf_byte(out, '\n');
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

/* The table served_batch, of which the view `batch` is made: the batches of an inference server as report batch finds them (analysis/report_batch.h), the same
 * ones from whichever of its files. Requests are in engine.c. */
#include "analysis/sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "analysis/report_batch.h"
#include "analysis/sql/impl.h"
#include "core/base/mem.h"

#include <stdlib.h>

static const struct sv_serving_report *served_of(struct sv_sql *q)
{
    if (!q->served) {
        q->served = sv_alloc(sizeof *q->served);
        sv_serving_report_tables(q->served, q->trace);
    }
    return q->served;
}

void sv_sql_forget_served(struct sv_sql *q)
{
    if (q->served)
        sv_serving_report_fini(q->served);
    free(q->served);
}

bool sv_sql_is_served(struct sv_sql *q)
{
    const struct sv_serving_report *r = served_of(q);
    return r->n_batches || r->n_requests || r->n_open;
}

static uint64_t batch_rows(struct sv_sql *q)
{
    return q->served ? q->served->n_batches : 1000;
}

static int batch_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                       size_t n)
{
    (void)order, (void)conds, (void)n;
    sv_sql_range(c, 0, served_of(c->q)->n_batches);
    return SQLITE_OK;
}

enum batch_column { B_ID, B_TS, B_DUR, B_BATCH, B_MODEL, B_SIZE, B_WORKER, B_IS_WARMUP };

/* It begins with its collection and ends with its callback. How long is known of some, when is not. */
static void batch_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_serving_report *r = c->q->served;
    const struct sv_served_batch *b = &r->batches[c->row];
    int64_t start_ns = b->edges[SV_PHASE_BATCH];
    switch (column) {
    case B_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case B_TS:
        if (!b->is_untimed)
            sqlite3_result_int64(ctx, start_ns);
        break;
    case B_DUR: sqlite3_result_int64(ctx, b->edges[SV_N_PHASES] - start_ns); break;
    case B_BATCH: sqlite3_result_int64(ctx, (sqlite3_int64)b->id); break;
    case B_MODEL: sqlite3_result_text(ctx, sv_served_model(r, b->model), -1, SQLITE_STATIC); break;
    case B_SIZE: sqlite3_result_int64(ctx, b->samples); break;
    case B_WORKER:
        if (b->worker >= 0)
            sqlite3_result_int64(ctx, b->worker);
        break;
    default: sqlite3_result_int(ctx, b->is_warmup); break;
    }
}

const struct sv_sql_table sv_sql_served_batch = {
    .name = "served_batch",
    .columns = "id INTEGER, ts INTEGER, dur INTEGER, batch_id INTEGER, model TEXT, size INTEGER, "
               "worker INTEGER, is_warmup INTEGER",
    .rows = batch_rows,
    .start = batch_start,
    .column = batch_column,
};
#endif

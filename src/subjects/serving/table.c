/* The table served_batch, of which the view `batch` is made: the batches of an inference server as
 * report batch finds them (subjects/serving/report.h), the same ones from whichever of its files.
 * Requests are in subjects/engine/table.c. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "subjects/serving/report.h"

#include <stdlib.h>

static const void *served_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_serving_tables);
    if (!*kept) {
        *kept = sv_alloc(sizeof(struct sv_serving_report));
        sv_serving_report_tables(*kept, q->trace);
    }
    return *kept;
}

static void forget(void *kept)
{
    sv_serving_report_fini(kept);
    free(kept);
}

/* is_served(): whether the trace has a server's requests or batches, whatever the form: then its
 * slices are no second source of them. */
static void is_served(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc, (void)argv;
    const struct sv_serving_report *r = served_of(sqlite3_user_data(ctx));
    sqlite3_result_int(ctx, r->n_batches || r->n_requests || r->n_open);
}

static int add_functions(struct sv_sql *q)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    return sqlite3_create_function(q->db, "is_served", 0, flags, q, is_served, NULL, NULL);
}

static uint64_t batch_rows(struct sv_sql *q)
{
    const struct sv_serving_report *r = *sv_sql_kept(q, &sv_serving_tables);
    return r ? r->n_batches : 1000;
}

enum batch_column {
    B_ID,
    B_TS,
    B_DUR,
    B_BATCH,
    B_MODEL,
    B_SIZE,
    B_REQUESTS,
    B_WORKER,
    B_IS_WARMUP
};

/* It begins with its collection and ends with its callback. How long is known of some, when is
 * not. */
static void batch_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_serving_report *r = served_of(c->q);
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
    case B_REQUESTS: sqlite3_result_int64(ctx, b->n); break;
    case B_WORKER:
        if (b->worker >= 0)
            sqlite3_result_int64(ctx, b->worker);
        break;
    default: sqlite3_result_int(ctx, b->is_warmup); break;
    }
}

static const struct sv_sql_table sv_sql_served_batch = {
    .name = "served_batch",
    .columns = "id INTEGER, ts INTEGER, dur INTEGER, batch_id INTEGER, model TEXT, size INTEGER, "
               "requests INTEGER, worker INTEGER, is_warmup INTEGER",
    .rows = batch_rows,
    .make = served_of,
    .column = batch_column,
};

const struct sv_sql_set sv_serving_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_served_batch, NULL},
    .add_functions = add_functions,
    .forget = forget,
};
#endif

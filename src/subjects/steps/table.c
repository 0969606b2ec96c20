/* The table `step`: training steps as the command steps finds them, with their time by kind of
 * work. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "why/steps.h"

#include <stdlib.h>

static const void *steps_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_steps_tables);
    if (!*kept) {
        struct sv_steps *s = *kept = sv_alloc(sizeof *s);
        sv_steps_find(s, q->trace, NULL);
        sv_steps_divide(s, q->trace);
    }
    return *kept;
}

static uint64_t step_rows(struct sv_sql *q)
{
    const struct sv_steps *s = *sv_sql_kept(q, &sv_steps_tables);
    return s ? s->n : 100;
}

enum { FIRST_WORK = 7 };

static void step_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_steps *steps = steps_of(c->q);
    const struct sv_step *s = &steps->steps[c->row];
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: sqlite3_result_int64(ctx, s->number); break;
    case 2: sqlite3_result_int64(ctx, s->ts_ns); break;
    case 3: sqlite3_result_int64(ctx, s->dur_ns); break;
    case 4: sqlite3_result_int64(ctx, s->track); break;
    case 5: sqlite3_result_int64(ctx, sv_index_id(c->q->index, s->row)); break;
    case 6: sqlite3_result_int(ctx, s->is_outlier); break;
    default:
        if (column < FIRST_WORK + SV_N_WORK)
            sqlite3_result_int64(ctx, s->work_ns[column - FIRST_WORK]);
        else if (column < FIRST_WORK + SV_N_WORK + SV_N_DEVICE)
            sqlite3_result_int64(ctx, s->device_ns[column - FIRST_WORK - SV_N_WORK]);
        break;
    }
}

/* The columns of work have the order of enum sv_work and sv_device_work. */
static const struct sv_sql_table sv_sql_step = {
    .name = "step",
    .rows = step_rows,
    .make = steps_of,
    .column = step_column,
};

static void forget(void *kept)
{
    sv_steps_fini(kept);
    free(kept);
}

const struct sv_sql_set sv_steps_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_step, NULL},
    .forget = forget,
};
#endif

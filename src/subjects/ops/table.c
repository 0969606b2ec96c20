/* The table `gpu_work`: each kernel, copy and fill with the operator, module and phase it belongs
 * to, as the report ops finds them. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "subjects/ops/figures.h"

#include <stdlib.h>

static const void *ops_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_ops_tables);
    if (!*kept) {
        struct sv_ops_report *r = *kept = sv_alloc(sizeof *r);
        sv_ops_report_make(r, q->trace);
    }
    return *kept;
}

static uint64_t work_rows(struct sv_sql *q)
{
    const struct sv_ops_report *r = *sv_sql_kept(q, &sv_ops_tables);
    return r ? r->n_work : 10000;
}

static int work_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n)
{
    const struct sv_ops_report *r = ops_of(c->q);
    (void)order;
    (void)conds;
    (void)n;
    sv_sql_range(c, 0, r->n_work);
    return SQLITE_OK;
}

static void put_row(struct sv_sql_cursor *c, sqlite3_context *ctx, uint32_t row)
{
    if (row != SV_NO_ROW)
        sqlite3_result_int64(ctx, sv_index_id(c->q->index, row));
}

static void put_name(const struct sv_ops_report *r, sqlite3_context *ctx, sv_str s)
{
    struct sv_text t = sv_dict_text(r->names, s);
    if (s)
        sv_sql_result_text(ctx, t.bytes, t.len);
}

enum {
    ID,
    TS,
    DUR,
    TRACK,
    KIND,
    KERNEL,
    NAME,
    LAUNCH,
    OPERATOR_ID,
    OPERATOR,
    MODULE,
    PHASE,
    SHAPES
};

static void work_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    static const char *const kinds[SV_GPU_CLASSES] = {
        [SV_GPU_KERNEL] = "kernel", [SV_GPU_COPY] = "copy", [SV_GPU_SET] = "fill"};
    const struct sv_ops_report *r = ops_of(c->q);
    const struct sv_ops_work *w = &r->work[c->row];
    const struct sv_slices *s = &r->trace->slices;
    switch (column) {
    case ID: put_row(c, ctx, w->row); break;
    case TS: sqlite3_result_int64(ctx, s->ts_ns[w->row]); break;
    case DUR:
        sqlite3_result_int64(ctx, sv_trace_end_ns(r->trace, w->row) - s->ts_ns[w->row]);
        break;
    case TRACK: sqlite3_result_int64(ctx, s->track[w->row]); break;
    case KIND: sqlite3_result_text(ctx, kinds[w->class_], -1, SQLITE_STATIC); break;
    case KERNEL: put_name(r, ctx, w->kernel); break;
    case NAME: put_name(r, ctx, w->exact); break;
    case LAUNCH: put_row(c, ctx, w->launch); break;
    case OPERATOR_ID: put_row(c, ctx, w->op_row); break;
    case OPERATOR: put_name(r, ctx, w->op); break;
    case MODULE: put_name(r, ctx, w->module); break;
    case PHASE: sqlite3_result_text(ctx, sv_ops_phase_names[w->phase], -1, SQLITE_STATIC); break;
    case SHAPES: put_name(r, ctx, w->dims); break;
    default: break;
    }
}

static const struct sv_sql_table sv_sql_gpu_work = {
    .name = "gpu_work",
    .columns = "id INTEGER, ts INTEGER, dur INTEGER, track_id INTEGER, kind TEXT, kernel TEXT, "
               "name TEXT, launch_id INTEGER, operator_id INTEGER, operator TEXT, module TEXT, "
               "phase TEXT, shapes TEXT",
    .rows = work_rows,
    .start = work_start,
    .column = work_column,
};

static void forget(void *kept)
{
    sv_ops_report_fini(kept);
    free(kept);
}

const struct sv_sql_set sv_ops_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_gpu_work, NULL},
    .forget = forget,
};
#endif

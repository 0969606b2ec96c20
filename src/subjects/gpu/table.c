/* The table `gpu_gap`: the parts of idle gaps of devices by their cause, as the report gpu has
 * them. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "sql/impl.h"
#include "subjects/gpu/figures.h"

#include <stdlib.h>

/* What one gap has of one cause. */
struct gap_part {
    uint32_t device, cause, row; /* row: the work that ends the gap */
    int64_t from_ns, to_ns, part_ns;
};

struct gap_parts {
    struct gap_part *items;
    size_t n, cap;
};

static void add_cause(struct gap_parts *all, const struct sv_spans *s, uint32_t device,
                      uint32_t cause)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_span *span = &s->items[i];
        struct gap_part *last = all->n ? &all->items[all->n - 1] : NULL;
        if (!last || last->device != device || last->cause != cause || last->row != span->row) {
            all->items = sv_grow(all->items, &all->cap, all->n + 1, sizeof *all->items);
            last = &all->items[all->n++];
            *last = (struct gap_part){device, cause, span->row, span->from_ns, span->to_ns, 0};
        }
        last->to_ns = span->to_ns;
        last->part_ns = sv_sat_add(last->part_ns, span->to_ns - span->from_ns);
    }
}

static const void *gaps_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_gpu_tables);
    if (*kept)
        return *kept;
    struct gap_parts *all = *kept = sv_alloc(sizeof *all);
    struct sv_gpu_report r;
    sv_gpu_report_make(&r, q->trace, NULL);
    for (uint32_t i = 0; i < r.n_devices; i++)
        for (uint32_t k = 0; k < SV_N_GAPS; k++)
            add_cause(all, &r.devices[i].idle[k], i, k);
    sv_gpu_report_fini(&r);
    return all;
}

static uint64_t gap_rows(struct sv_sql *q)
{
    const struct gap_parts *all = *sv_sql_kept(q, &sv_gpu_tables);
    return all ? all->n : 1000;
}

static int gap_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n)
{
    const struct gap_parts *all = gaps_of(c->q);
    (void)order;
    (void)conds;
    (void)n;
    sv_sql_range(c, 0, all->n);
    return SQLITE_OK;
}

static void gap_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct gap_parts *all = gaps_of(c->q);
    const struct gap_part *p = &all->items[c->row];
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: sqlite3_result_int64(ctx, p->from_ns); break;
    case 2: sqlite3_result_int64(ctx, p->to_ns - p->from_ns); break;
    case 3: sqlite3_result_int64(ctx, p->device); break;
    case 4: sqlite3_result_text(ctx, sv_gpu_gap_names[p->cause], -1, SQLITE_STATIC); break;
    case 5: sqlite3_result_int64(ctx, p->part_ns); break;
    case 6: sqlite3_result_int64(ctx, sv_index_id(c->q->index, p->row)); break;
    default: break;
    }
}

static const struct sv_sql_table sv_sql_gpu_gap = {
    .name = "gpu_gap",
    .columns = "id INTEGER, ts INTEGER, dur INTEGER, device INTEGER, cause TEXT, part_ns INTEGER, "
               "next_id INTEGER",
    .rows = gap_rows,
    .start = gap_start,
    .column = gap_column,
};

static void forget(void *kept)
{
    struct gap_parts *all = kept;
    free(all->items);
    free(all);
}

const struct sv_sql_set sv_gpu_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_gpu_gap, NULL},
    .forget = forget,
};
#endif

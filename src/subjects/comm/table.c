/* The table `collective`: calls of collectives as the report comm finds them, each rank's own, with
 * the figures of the whole. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "sql/impl.h"
#include "subjects/comm/figures.h"

#include <stdlib.h>

struct sv_sql_comm {
    struct sv_comm_report report;
    uint32_t *order; /* calls in the order of their slices */
    uint32_t *whole; /* by call: its collective */
};

static int by_row(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_call *calls = ctx;
    uint32_t x = calls[*(const uint32_t *)a].row, y = calls[*(const uint32_t *)b].row;
    return (x > y) - (x < y);
}

static const struct sv_sql_comm *comm_of(struct sv_sql *q)
{
    void **kept = sv_sql_kept(q, &sv_comm_tables);
    if (*kept)
        return *kept;
    struct sv_sql_comm *c = *kept = sv_alloc(sizeof *c);
    sv_comm_report_make(&c->report, q->trace);
    c->order = sv_alloc((c->report.n_calls + 1) * sizeof *c->order);
    c->whole = sv_alloc((c->report.n_calls + 1) * sizeof *c->whole);
    for (size_t i = 0; i < c->report.n; i++)
        for (size_t k = 0; k < c->report.collectives[i].n; k++)
            c->whole[c->report.collectives[i].first + k] = (uint32_t)i;
    for (uint32_t i = 0; i < c->report.n_calls; i++)
        c->order[i] = i;
    qsort_r(c->order, c->report.n_calls, sizeof *c->order, by_row, c->report.calls);
    return c;
}

static uint64_t collective_rows(struct sv_sql *q)
{
    const struct sv_sql_comm *c = *sv_sql_kept(q, &sv_comm_tables);
    return c ? c->report.n_calls : 1000;
}

static int collective_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                            size_t n)
{
    (void)order;
    (void)conds;
    (void)n;
    sv_sql_range(c, 0, comm_of(c->q)->report.n_calls);
    return SQLITE_OK;
}

enum column {
    ID,
    NAME,
    TS,
    DUR,
    OP,
    GROUP,
    SEQ,
    BYTES,
    GROUP_SIZE,
    PEER,
    RANK,
    TRACK,
    SLICE,
    ARGS,
    GROUP_NAME,
    UTID,
    WAIT,
    SKEW,
    TRANSFER,
    IS_LAST
};

static void known(sqlite3_context *ctx, int64_t value)
{
    if (value >= 0)
        sqlite3_result_int64(ctx, value);
}

static void of_whole(const struct sv_sql_comm *m, uint32_t number, sqlite3_context *ctx, int column)
{
    const struct sv_comm_call *call = &m->report.calls[number];
    const struct sv_comm_collective *whole = &m->report.collectives[m->whole[number]];
    const struct sv_comm_group *g = &m->report.groups[call->group];
    struct sv_text name = sv_dict_text(m->report.strings, g->name);
    if (column == GROUP || column == GROUP_NAME) {
        if (g->name)
            sv_sql_result_text(ctx, name.bytes, name.len);
    } else if (column == GROUP_SIZE)
        known(ctx, g->size);
    else if (column == RANK)
        known(ctx, m->report.ranks[call->rank].number);
    else if (column == WAIT)
        known(ctx, call->wait_ns);
    else if (column == SKEW)
        known(ctx, whole->skew_ns);
    else if (column == TRANSFER)
        known(ctx, whole->transfer_ns);
    else if (column == IS_LAST && whole->last != SV_COMM_NO_RANK)
        sqlite3_result_int(ctx, whole->last == call->rank);
}

static void collective_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql_comm *m = comm_of(c->q);
    uint32_t number = m->order[c->row];
    const struct sv_comm_call *call = &m->report.calls[number];
    const struct sv_slices *s = &c->q->trace->slices;
    switch (column) {
    case ID:
    case SLICE: sqlite3_result_int64(ctx, sv_index_id(c->q->index, call->row)); break;
    case NAME: sv_sql_result_str(c->q, ctx, s->name[call->row]); break;
    case TS: sqlite3_result_int64(ctx, s->ts_ns[call->row]); break;
    case DUR: sqlite3_result_int64(ctx, s->dur_ns[call->row]); break;
    case OP: sqlite3_result_text(ctx, sv_comm_op_name(call->op), -1, SQLITE_STATIC); break;
    case SEQ: sqlite3_result_int64(ctx, call->seq); break;
    case BYTES: known(ctx, call->bytes); break;
    case TRACK: sqlite3_result_int64(ctx, s->track[call->row]); break;
    case ARGS:
        if (s->args[call->row] && sv_sql_has_args(c->q, s->args[call->row]))
            sqlite3_result_int64(ctx, s->args[call->row]);
        break;
    case UTID:
        if (c->q->thread_of[s->track[call->row]])
            sqlite3_result_int64(ctx, c->q->thread_of[s->track[call->row]] - 1);
        break;
    default: of_whole(m, number, ctx, column); break;
    }
}

static const struct sv_sql_table sv_sql_collective = {
    .name = "collective",
    .columns = "id INTEGER, name TEXT, ts INTEGER, dur INTEGER, op TEXT, \"group\" TEXT, "
               "seq INTEGER, bytes INTEGER, group_size INTEGER, peer INTEGER, rank INTEGER, "
               "track_id INTEGER, slice_id INTEGER, arg_set_id INTEGER, group_name TEXT, "
               "utid INTEGER, wait_ns INTEGER, skew_ns INTEGER, transfer_ns INTEGER, "
               "is_last INTEGER",
    .rows = collective_rows,
    .start = collective_start,
    .column = collective_column,
};

static void forget(void *kept)
{
    struct sv_sql_comm *c = kept;
    sv_comm_report_fini(&c->report);
    free(c->order);
    free(c->whole);
    free(c);
}

const struct sv_sql_set sv_comm_tables = {
    .tables = (const struct sv_sql_table *const[]){&sv_sql_collective, NULL},
    .forget = forget,
};
#endif

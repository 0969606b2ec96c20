/* The tables `counter`, `flow` and `loss`: what the store has besides slices.
 *
 * The id of a counter value or of a flow is its row in the store: which is unique. Flows are found
 * from both ends. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/search.h"
#include "sql/impl.h"

/* ---- counter ---- */

enum { C_ID, C_TS, C_TRACK, C_VALUE, C_ARGS };
enum { TIME = 1, TIME_DOWN };

static uint64_t counter_rows(struct sv_sql *q)
{
    return q->trace->counters.n;
}

static int counter_order(struct sv_sql *q, sqlite3_index_info *info, bool has_conds)
{
    (void)q;
    (void)has_conds;
    if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn == C_TS)
        return info->aOrderBy[0].desc ? TIME_DOWN : TIME;
    return 0;
}

/* The part of all values in the order of time that lies in [from, to]. */
static void start_window(struct sv_sql_cursor *c, int64_t from, int64_t to)
{
    const struct sv_counters *v = &c->q->trace->counters;
    const uint32_t *order = sv_index_counter_order(c->q->index);
    uint64_t bounds[2];
    for (int side = 0; side < 2; side++) {
        uint64_t *low = &bounds[side];
        SV_SEARCH(*low, mid, 0, v->n,
                  side ? v->ts_ns[order[mid]] <= to : v->ts_ns[order[mid]] < from);
    }
    sv_sql_list(c, order, bounds[0], bounds[1]);
}

static void start_track(struct sv_sql_cursor *c, sqlite3_value *value, int64_t from, int64_t to)
{
    const struct sv_trace *t = c->q->trace;
    int64_t id;
    if (!sv_sql_value_int(value, SV_OP_EQ, &id) || id < 0 || id >= t->n_tracks || from > to)
        return;
    const struct sv_trace_track *k = &t->tracks[id];
    uint32_t first = from == INT64_MIN ? k->counter_first
                                       : sv_trace_counter_from(t, (sv_track)id, from);
    uint32_t end = to == INT64_MAX ? k->counter_end
                                   : sv_trace_counter_from(t, (sv_track)id, to + 1);
    sv_sql_range(c, first, end);
}

static int counter_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                         size_t n)
{
    const struct sv_sql_cond *cond;
    int64_t from = INT64_MIN, to = INT64_MAX, id;
    c->is_backward = order == TIME_DOWN;
    for (size_t i = 0; i < n; i++)
        if (conds[i].column == C_TS && conds[i].op != SV_OP_NULL)
            sv_sql_narrow(&conds[i], &from, &to);
    if ((cond = sv_sql_find_cond(conds, n, C_ID, SV_OP_EQ))) {
        if (sv_sql_value_int(cond->value, SV_OP_EQ, &id) && id >= 0 &&
            (uint64_t)id < c->q->trace->counters.n)
            sv_sql_range(c, (uint64_t)id, (uint64_t)id + 1);
    } else if ((cond = sv_sql_find_cond(conds, n, C_TRACK, SV_OP_EQ))) {
        start_track(c, cond->value, from, to);
    } else if (order < 0) {
        sv_sql_range(c, 0, c->q->trace->counters.n);
    } else {
        start_window(c, from, to);
    }
    return SQLITE_OK;
}

static void counter_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_counters *v = &c->q->trace->counters;
    switch (column) {
    case C_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case C_TS: sqlite3_result_int64(ctx, v->ts_ns[c->row]); break;
    case C_TRACK: sqlite3_result_int64(ctx, v->track[c->row]); break;
    case C_VALUE: sqlite3_result_double(ctx, v->value[c->row]); break;
    default: break;
    }
}

static const struct sv_sql_key counter_keys[] = {
    {C_ID, "e", 0}, {C_TRACK, "e", 0.01}, {C_TS, "gGlLe", 0.05}};

const struct sv_sql_table sv_sql_counter = {
    .name = "counter",
    .columns = "id INTEGER, ts INTEGER, track_id INTEGER, value DOUBLE, arg_set_id INTEGER",
    .keys = counter_keys,
    .n_keys = sizeof counter_keys / sizeof counter_keys[0],
    .rows = counter_rows,
    .order = counter_order,
    .start = counter_start,
    .column = counter_column,
};

/* ---- flow ---- */

enum { F_ID, F_OUT, F_IN, F_TRACE_ID, F_ARGS };

static uint64_t flow_rows(struct sv_sql *q)
{
    return q->trace->flows.n;
}

uint32_t sv_sql_slice_of(struct sv_sql *q, sqlite3_value *value)
{
    int64_t id;
    if (!sv_sql_value_int(value, SV_OP_EQ, &id) || id < 0)
        return SV_NO_ROW;
    return sv_index_row(q->index, (uint64_t)id);
}

static int flow_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n)
{
    (void)order;
    const struct sv_trace *t = c->q->trace;
    const struct sv_sql_cond *id = sv_sql_find_cond(conds, n, F_ID, SV_OP_EQ);
    const struct sv_sql_cond *out = sv_sql_find_cond(conds, n, F_OUT, SV_OP_EQ);
    const struct sv_sql_cond *in = sv_sql_find_cond(conds, n, F_IN, SV_OP_EQ);
    uint64_t first = 0, count;
    int64_t number;
    if (id) {
        if (sv_sql_value_int(id->value, SV_OP_EQ, &number) && number >= 0 &&
            (uint64_t)number < t->flows.n)
            sv_sql_range(c, (uint64_t)number, (uint64_t)number + 1);
    } else if (out || in) {
        uint32_t row = sv_sql_slice_of(c->q, (out ? out : in)->value);
        if (row == SV_NO_ROW)
            return SQLITE_OK;
        count = out ? sv_trace_flows_out(t, row, &first) : sv_trace_flows_in(t, row, &first);
        sv_sql_list(c, out ? NULL : t->flows.by_to, first, first + count);
    } else {
        sv_sql_range(c, 0, t->flows.n);
    }
    return SQLITE_OK;
}

void sv_sql_flow_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_flows *f = &c->q->trace->flows;
    switch (column) {
    case F_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case F_OUT: sqlite3_result_int64(ctx, sv_index_id(c->q->index, f->from[c->row])); break;
    case F_IN: sqlite3_result_int64(ctx, sv_index_id(c->q->index, f->to[c->row])); break;
    case F_TRACE_ID: sqlite3_result_int64(ctx, (sqlite3_int64)f->id[c->row]); break;
    default: break;
    }
}

static const struct sv_sql_key flow_keys[] = {
    {F_ID, "e", 0}, {F_OUT, "e", 1e-6}, {F_IN, "e", 1e-6}};

const struct sv_sql_table sv_sql_flow = {
    .name = "flow",
    .keys = flow_keys,
    .n_keys = sizeof flow_keys / sizeof flow_keys[0],
    .rows = flow_rows,
    .start = flow_start,
    .column = sv_sql_flow_column,
};

/* ---- loss ---- */

static uint64_t loss_rows(struct sv_sql *q)
{
    return q->trace->losses.n;
}

static void loss_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_losses *l = &c->q->trace->losses;
    switch (column) {
    case 0: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case 1: sqlite3_result_int64(ctx, l->ts_ns[c->row]); break;
    case 2: sqlite3_result_int64(ctx, l->dur_ns[c->row]); break;
    case 3: sqlite3_result_int64(ctx, l->track[c->row]); break;
    case 4: sv_sql_result_str(c->q, ctx, l->cause[c->row]); break;
    case 5:
        if (l->count[c->row])
            sqlite3_result_int64(ctx, (sqlite3_int64)l->count[c->row]);
        break;
    default: break;
    }
}

const struct sv_sql_table sv_sql_loss = {
    .name = "loss",
    .rows = loss_rows,
    .column = loss_column,
};
#endif

/* Functions that give rows: ancestor_slice(id), descendant_slice(id) (and both with the slice
 * itself), slice_during(ts, dur[, track_id]) and, along flows, directly_connected_flow(id),
 * following_flow(id), preceding_flow(id).
 *
 * Each is a table whose hidden columns are the arguments. The rows are collected when the iteration
 * begins; walks along flows remember the slices they met, so cycles end. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/sort.h"
#include "sql/impl.h"

#include <stdlib.h>

struct list {
    uint32_t *items;
    size_t n, cap;
};

static void add(struct list *l, uint32_t item)
{
    SV_APPEND(l->items, l->n, l->cap) = item;
}

static uint64_t few_rows(struct sv_sql *q)
{
    (void)q;
    return 10;
}

static sqlite3_value *argument(const struct sv_sql_cond *conds, size_t n, int column)
{
    const struct sv_sql_cond *c = sv_sql_find_cond(conds, n, column, SV_OP_EQ);
    return c ? c->value : NULL;
}

static uint32_t slice_argument(struct sv_sql *q, const struct sv_sql_cond *conds, size_t n,
                               int column)
{
    sqlite3_value *value = argument(conds, n, column);
    return value ? sv_sql_slice_of(q, value) : SV_NO_ROW;
}

static void slice_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    if (column < SV_SLICE_ARGUMENT)
        sv_sql_slice_column(c, ctx, column);
}

/* A table's start() that walks `how` says. */
#define STARTS_BY(walk, name, how)                                                                 \
    static int name(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n) \
    {                                                                                              \
        (void)order;                                                                               \
        return walk(c, conds, n, how);                                                             \
    }

/* ---- nesting ---- */

/* What is above `root`, outermost first. */
static void add_ancestors(const struct sv_trace *t, uint32_t root, struct list *l)
{
    size_t from = l->n;
    for (uint32_t row = root; (row = t->slices.parent[row]) != SV_NO_ROW;)
        add(l, row);
    for (size_t i = from, k = l->n; i + 1 < k; i++) {
        uint32_t other = l->items[i];
        l->items[i] = l->items[--k];
        l->items[k] = other;
    }
}

/* What is below `root`, in the order of rows: parents come before their children, so each asks only
 * its parent. */
static void add_descendants(const struct sv_trace *t, uint32_t root, struct list *l)
{
    uint32_t end = t->tracks[t->slices.track[root]].end, last = root;
    int64_t end_ns = sv_trace_end_ns(t, root);
    while (last + 1 < end && t->slices.ts_ns[last + 1] <= end_ns)
        last++;
    bool *is_below = sv_alloc((size_t)(last - root) + 1);
    is_below[0] = true;
    for (uint32_t row = root + 1; row <= last; row++) {
        uint32_t parent = t->slices.parent[row];
        if (parent == SV_NO_ROW || parent < root || !is_below[parent - root])
            continue;
        is_below[row - root] = true;
        add(l, row);
    }
    free(is_below);
}

enum { UP = 1, DOWN = 2, SELF = 4 };

static int relatives_start(struct sv_sql_cursor *c, const struct sv_sql_cond *conds, size_t n,
                           unsigned how)
{
    uint32_t root = slice_argument(c->q, conds, n, SV_SLICE_ARGUMENT);
    struct list l = {0};
    if (root == SV_NO_ROW)
        return SQLITE_OK;
    if (how & SELF)
        add(&l, root);
    if (how & DOWN)
        add_descendants(c->q->trace, root, &l);
    else
        add_ancestors(c->q->trace, root, &l);
    sv_sql_own(c, l.items, l.n);
    return SQLITE_OK;
}

STARTS_BY(relatives_start, ancestor_start, UP)
STARTS_BY(relatives_start, descendant_start, DOWN)
STARTS_BY(relatives_start, ancestor_and_self_start, UP | SELF)
STARTS_BY(relatives_start, descendant_and_self_start, DOWN | SELF)

/* ---- time ---- */

static void add_window(const struct sv_trace *t, sv_track track, int64_t from, int64_t to,
                       struct list *l)
{
    struct sv_window w = sv_trace_window(t, track, from, to);
    for (uint32_t row; sv_window_next(&w, &row);)
        add(l, row);
}

static int during_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                        size_t n)
{
    (void)order;
    const struct sv_trace *t = c->q->trace;
    sqlite3_value *ts = argument(conds, n, SV_SLICE_ARGUMENT);
    sqlite3_value *dur = argument(conds, n, SV_SLICE_ARGUMENT + 1);
    sqlite3_value *track = argument(conds, n, SV_SLICE_ARGUMENT + 2);
    int64_t from, length, id;
    struct list l = {0};
    if (!ts || !dur || !sv_sql_value_int(ts, SV_OP_GE, &from) ||
        !sv_sql_value_int(dur, SV_OP_GE, &length))
        return SQLITE_OK;
    int64_t to = length < 0 ? t->last_ns : from;
    if (length > 0 && __builtin_add_overflow(from, length, &to))
        to = INT64_MAX;
    if (track) {
        if (sv_sql_value_int(track, SV_OP_EQ, &id) && id > 0 && id < t->n_tracks)
            add_window(t, (sv_track)id, from, to, &l);
    } else {
        for (sv_track k = 0; k < t->n_tracks; k++)
            add_window(t, k, from, to, &l);
        sv_index_sort_rows(c->q->index, l.items, l.n);
    }
    sv_sql_own(c, l.items, l.n);
    return SQLITE_OK;
}

/* ---- flows ---- */

enum { AFTER = 1, BEFORE = 2, RELATIVES = 4 };

struct tour {
    const struct sv_trace *t;
    struct list flows, slices; /* slices: met, in the order in which they are visited */
    struct list by_flow; /* … and whether by a flow: the relatives of a relative are met already */
    struct sv_map seen;
};

static void meet(struct tour *v, uint32_t row, bool is_by_flow)
{
    bool is_new;
    sv_map_add(&v->seen, row, &is_new);
    if (is_new) {
        add(&v->slices, row);
        add(&v->by_flow, is_by_flow);
    }
}

/* From a reached slice one continues to its descendants (forwards) or ancestors (backwards): work
 * that it contains was caused by it, and what it is part of waited for it. */
static void meet_relatives(struct tour *v, uint32_t row, unsigned how)
{
    const struct sv_slices *s = &v->t->slices;
    if (how & BEFORE)
        while ((row = s->parent[row]) != SV_NO_ROW)
            meet(v, row, false);
    if (!(how & AFTER))
        return;
    struct list below = {0};
    add_descendants(v->t, row, &below);
    for (size_t i = 0; i < below.n; i++)
        meet(v, below.items[i], false);
    free(below.items);
}

static void visit(struct tour *v, uint32_t row, unsigned how)
{
    uint64_t first, n;
    if (how & AFTER) {
        n = sv_trace_flows_out(v->t, row, &first);
        for (uint64_t i = first; i < first + n; i++) {
            add(&v->flows, (uint32_t)i);
            meet(v, v->t->flows.to[i], true);
        }
    } else {
        n = sv_trace_flows_in(v->t, row, &first);
        for (uint64_t i = first; i < first + n; i++) {
            add(&v->flows, v->t->flows.by_to[i]);
            meet(v, v->t->flows.from[v->t->flows.by_to[i]], true);
        }
    }
}

static void travel(struct tour *v, uint32_t root, unsigned how)
{
    sv_map_clear(&v->seen);
    v->slices.n = 0;
    v->by_flow.n = 0;
    meet(v, root, true);
    for (size_t i = 0; i < v->slices.n; i++) {
        visit(v, v->slices.items[i], how);
        if ((how & RELATIVES) && v->by_flow.items[i])
            meet_relatives(v, v->slices.items[i], how);
    }
}

static size_t unique(uint32_t *items, size_t n)
{
    size_t kept = 0;
    qsort(items, n, sizeof *items, sv_compare_u32);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || items[i] != items[i - 1])
            items[kept++] = items[i];
    return kept;
}

static int flows_start(struct sv_sql_cursor *c, const struct sv_sql_cond *conds, size_t n,
                       unsigned how)
{
    uint32_t root = slice_argument(c->q, conds, n, 5);
    struct tour v = {.t = c->q->trace};
    if (root == SV_NO_ROW)
        return SQLITE_OK;
    if (how & AFTER)
        travel(&v, root, how & ~(unsigned)BEFORE);
    if (how & BEFORE)
        travel(&v, root, how & ~(unsigned)AFTER);
    sv_map_fini(&v.seen);
    free(v.slices.items);
    free(v.by_flow.items);
    if (v.flows.n)
        sv_sql_own(c, v.flows.items, unique(v.flows.items, v.flows.n));
    return SQLITE_OK;
}

STARTS_BY(flows_start, connected_start, AFTER | BEFORE)
STARTS_BY(flows_start, following_start, AFTER | RELATIVES)
STARTS_BY(flows_start, preceding_start, BEFORE | RELATIVES)

#define SLICE_FUNCTION(table, sql_name, arguments, count, begin) \
    const struct sv_sql_table table = {                          \
        .name = sql_name,                                        \
        .columns = SV_SQL_SLICE_SHOWN arguments,                 \
        .rows = few_rows,                                        \
        .start = begin,                                          \
        .column = slice_column,                                  \
        .n_arguments = count,                                    \
        .first_argument = SV_SLICE_ARGUMENT,                     \
    }
SLICE_FUNCTION(sv_sql_ancestor, "ancestor_slice", ", start_id INTEGER HIDDEN", 1, ancestor_start);
SLICE_FUNCTION(sv_sql_descendant, "descendant_slice", ", start_id INTEGER HIDDEN", 1,
               descendant_start);
SLICE_FUNCTION(sv_sql_ancestor_and_self, "_slice_ancestor_and_self", ", start_id INTEGER HIDDEN", 1,
               ancestor_and_self_start);
SLICE_FUNCTION(sv_sql_descendant_and_self, "_slice_descendant_and_self",
               ", start_id INTEGER HIDDEN", 1, descendant_and_self_start);
SLICE_FUNCTION(sv_sql_during, "slice_during",
               ", from_ts INTEGER HIDDEN, for_dur INTEGER HIDDEN, on_track INTEGER HIDDEN", 3,
               during_start);

#define FLOW_FUNCTION(table, sql_name, begin)                                                \
    const struct sv_sql_table table = {                                                      \
        .name = sql_name,                                                                    \
        .columns =                                                                           \
            "id INTEGER, slice_out INTEGER, slice_in INTEGER, trace_id INTEGER, arg_set_id " \
            "INTEGER, start_id INTEGER HIDDEN",                                              \
        .rows = few_rows,                                                                    \
        .start = begin,                                                                      \
        .column = sv_sql_flow_column,                                                        \
        .n_arguments = 1,                                                                    \
        .first_argument = 5,                                                                 \
    }
FLOW_FUNCTION(sv_sql_connected, "directly_connected_flow", connected_start);
FLOW_FUNCTION(sv_sql_following, "following_flow", following_start);
FLOW_FUNCTION(sv_sql_preceding, "preceding_flow", preceding_start);
#endif

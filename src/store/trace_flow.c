/* The store, finish: flow points find their slices.
 *
 * Many formats record flows as points apart from slices. A point at the start of its slice (nearly
 * all of them) becomes an argument of it, so that only the others remain points. Most were given to
 * the slice that they followed while loading; here, when rows are in order, those for which that
 * was wrong become points again, and all points are bound by time. */
#include "store/trace_impl.h"

#include "core/base/sort.h"

#include <stdlib.h>

/* ---- points that were bound while loading ---- */

/* Is this the row that a point at its start would find, without looking at others that begin at the
 * same time? */
static bool is_alone(const struct sv_trace *t, uint32_t row, bool binds_next)
{
    const struct sv_slices *s = &t->slices;
    const struct sv_trace_track *k = &t->tracks[s->track[row]];
    if (binds_next)
        return row == k->first || s->ts_ns[row - 1] != s->ts_ns[row];
    return row + 1 == k->end || s->ts_ns[row + 1] != s->ts_ns[row];
}

int sv_trace_doubt(struct sv_trace *t, struct sv_err *err)
{
    struct sv_carriers *c = &t->impl->carrier;
    for (uint64_t i = 0; i < c->n; i++) {
        bool binds_next = c->how[i] == SV_BY_POINT_NEXT;
        uint32_t row = c->row[i];
        if ((c->how[i] != SV_BY_POINT && !binds_next) || is_alone(t, row, binds_next))
            continue;
        struct sv_event e = {.ts_ns = t->slices.ts_ns[row],
                             .track = t->slices.track[row],
                             .flags = binds_next ? SV_BIND_NEXT : 0};
        struct sv_arg a = {.type = c->type[i], .u = c->id[i]};
        if (!sv_trace_add_point(t, &e, &a))
            return sv_trace_no_memory(t, err);
        t->slices.args[row] = sv_lists_drop_flow(&t->impl->args, t->slices.args[row], a.type, a.u);
        c->row[i] = SV_NO_ROW;
    }
    return 0;
}

/* ---- points ---- */

/* A point that becomes an argument. */
struct fold {
    uint32_t row, point;
};

static bool fold_before(const struct fold *a, const struct fold *b, const void *unused)
{
    (void)unused;
    return a->row < b->row;
}
SV_SORT_DEFINE(sort_folds, struct fold, fold_before)

static void bind_points(struct sv_trace *t)
{
    struct sv_flow_points *p = &t->points;
    uint32_t *hints = sv_alloc(t->n_tracks * sizeof *hints);
    for (sv_track k = 0; k < t->n_tracks; k++)
        hints[k] = t->tracks[k].first;
    for (uint64_t i = 0; i < p->n; i++) {
        sv_track k = p->track[i];
        p->row[i] = p->flags[i] & SV_BIND_NEXT ? sv_trace_bind_next(t, k, p->ts_ns[i], &hints[k])
                                               : sv_trace_bind_at(t, k, p->ts_ns[i], &hints[k]);
        if (p->row[i] == SV_NO_ROW)
            sv_oddity_note(&t->impl->unbound, p->ts_ns[i], k);
    }
    free(hints);
}

static bool is_at_start(const struct sv_trace *t, uint64_t point)
{
    const struct sv_flow_points *p = &t->points;
    uint32_t row = p->row[point];
    return row != SV_NO_ROW &&
           (p->flags[point] & SV_BIND_NEXT || p->ts_ns[point] == t->slices.ts_ns[row]);
}

/* Appends the flows of n points to the arguments of their row. False when there is no space for so
 * many: they stay points. */
static bool fold_into_row(struct sv_trace *t, const struct fold *folds, size_t n,
                          struct sv_arg *args)
{
    struct sv_trace_impl *x = t->impl;
    struct sv_carriers *c = &x->carrier;
    uint32_t row = folds[0].row;
    unsigned flags;
    if (sv_lists_count(&x->args, t->slices.args[row]) + n > SV_ARGS_MAX ||
        !sv_table_reserve(&x->carriers, c->n + n))
        return false;
    for (size_t i = 0; i < n; i++) {
        uint32_t point = folds[i].point;
        args[i] = (struct sv_arg){.type = t->points.type[point], .u = t->points.id[point]};
        c->id[c->n] = args[i].u;
        c->row[c->n] = row;
        c->type[c->n] = t->points.type[point];
        c->how[c->n++] = SV_BY_BEGIN;
        t->points.type[point] = 0; /* gone */
    }
    uint32_t more = sv_lists_add(&x->args, args, n, &flags);
    t->slices.args[row] = sv_lists_append(&x->args, t->slices.args[row], more);
    return true;
}

static void fold_all(struct sv_trace *t, struct fold *folds, size_t n)
{
    struct sv_arg *args = NULL;
    size_t cap = 0;
    sort_folds(folds, n, folds + n, NULL);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && folds[end].row == folds[i].row; end++)
            ;
        if (end - i > SV_ARGS_MAX)
            continue;
        args = sv_grow(args, &cap, end - i, sizeof *args);
        fold_into_row(t, folds + i, end - i, args);
    }
    free(args);
}

/* Closes the gaps that folded points left. */
static void keep_points(struct sv_trace *t)
{
    struct sv_flow_points *p = &t->points;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        if (p->type[i] == 0)
            continue;
        p->ts_ns[kept] = p->ts_ns[i];
        p->id[kept] = p->id[i];
        p->track[kept] = p->track[i];
        p->row[kept] = p->row[i];
        p->type[kept] = p->type[i];
        p->flags[kept++] = p->flags[i];
    }
    p->n = kept;
    sv_table_trim(&t->impl->points, kept);
}

int sv_trace_bind(struct sv_trace *t, struct sv_err *err)
{
    struct sv_flow_points *p = &t->points;
    struct sv_block block = {0};
    size_t n = 0;
    if (p->n == 0)
        return 0;
    bind_points(t);
    if (!sv_block_reserve(&block, (p->n + SV_SORT_SPARE(p->n)) * sizeof(struct fold)))
        return sv_trace_no_memory(t, err);
    struct fold *folds = block.at;
    for (uint64_t i = 0; i < p->n; i++)
        if (is_at_start(t, i))
            folds[n++] = (struct fold){.row = p->row[i], .point = (uint32_t)i};
    fold_all(t, folds, n);
    sv_block_fini(&block);
    keep_points(t);
    return t->impl->args.failed ? sv_trace_no_memory(t, err) : 0;
}

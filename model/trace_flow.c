/* The store, finish, last steps: flow points find their slices, and carriers of one number become arrows.
 *
 * Many formats record flows as points apart from slices. A point at the start of its slice (nearly all of them) becomes an argument of
 * it, so that only the others remain points. Then all carriers (arguments of slices, bound points) are grouped by number,
 * sorted by time and connected, see struct sv_flows for the rules. Carriers of equal number and time are taken as begin, pass, end, then by row:
 * the order in which they came would not survive leaving the store. */
#include "model/trace_impl.h"

#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>

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

/* Appends the flows of n points to the arguments of their row. False when there is no room for so many: they stay points. */
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
        c->at_end[c->n++] = false;
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

/* ---- arrows ---- */

struct carrier {
    uint64_t id;
    int64_t ts_ns;
    uint32_t row;
    uint32_t type;
};

_Static_assert(SV_ARG_FLOW_BEGIN < SV_ARG_FLOW && SV_ARG_FLOW < SV_ARG_FLOW_END,
               "types sort as begin, pass, end");

static bool carrier_before(const struct carrier *a, const struct carrier *b, const void *unused)
{
    (void)unused;
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns;
    return a->type != b->type ? a->type < b->type : a->row < b->row;
}
SV_SORT_DEFINE(sort_carriers, struct carrier, carrier_before)

static size_t collect(const struct sv_trace *t, struct carrier *out)
{
    const struct sv_carriers *c = &t->impl->carrier;
    const struct sv_slices *s = &t->slices;
    size_t n = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        uint32_t row = c->row[i];
        if (row == SV_NO_ROW)
            continue;
        bool at_end = c->at_end[i] && t->tracks[s->track[row]].has_edges;
        out[n++] = (struct carrier){.id = c->id[i],
                                    .ts_ns = at_end ? sv_row_end(s, row) : s->ts_ns[row],
                                    .row = row,
                                    .type = c->type[i]};
    }
    const struct sv_flow_points *p = &t->points;
    for (uint64_t i = 0; i < p->n; i++)
        if (p->row[i] != SV_NO_ROW)
            out[n++] = (struct carrier){
                .id = p->id[i], .ts_ns = p->ts_ns[i], .row = p->row[i], .type = p->type[i]};
    return n;
}

static void add_arrow(struct sv_trace *t, uint64_t id, uint32_t old, uint32_t new)
{
    struct sv_flows *f = &t->flows;
    bool forward = t->slices.ts_ns[old] <= t->slices.ts_ns[new];
    f->id[f->n] = id;
    f->from[f->n] = forward ? old : new;
    f->to[f->n++] = forward ? new : old;
}

/* Carriers of one number, in order. There are fewer arrows than carriers, so the table has room. */
static void connect(struct sv_trace *t, const struct carrier *c, size_t n)
{
    uint32_t origin = SV_NO_ROW;
    bool has_begun = false;
    for (size_t i = 0; i < n; i++) {
        if (c[i].type == SV_ARG_FLOW_BEGIN) {
            origin = c[i].row;
            has_begun = true;
            continue;
        }
        if (origin != SV_NO_ROW)
            add_arrow(t, c[i].id, origin, c[i].row);
        if (c[i].type == SV_ARG_FLOW) {
            has_begun = origin == SV_NO_ROW ? false : has_begun;
            origin = c[i].row;
        } else if (!has_begun) {
            origin = SV_NO_ROW;
        }
    }
}

/* ---- the table of flows ---- */

struct arrow {
    uint64_t id;
    uint32_t from, to;
};

static bool arrow_before(const struct arrow *a, const struct arrow *b, const void *unused)
{
    (void)unused;
    if (a->from != b->from)
        return a->from < b->from;
    return a->to != b->to ? a->to < b->to : a->id < b->id;
}
SV_SORT_DEFINE(sort_arrows, struct arrow, arrow_before)

/* Flows are sorted by (from, to, id), so a stable sort by `to` completes the order. */
static bool arrives_before(const uint32_t *a, const uint32_t *b, const void *to)
{
    return ((const uint32_t *)to)[*a] < ((const uint32_t *)to)[*b];
}
SV_SORT_DEFINE(sort_arriving, uint32_t, arrives_before)

static void sort_flows(struct sv_trace *t, struct arrow *room)
{
    struct sv_flows *f = &t->flows;
    for (uint64_t i = 0; i < f->n; i++)
        room[i] = (struct arrow){.id = f->id[i], .from = f->from[i], .to = f->to[i]};
    sort_arrows(room, f->n, room + f->n, NULL);
    for (uint64_t i = 0; i < f->n; i++) {
        f->id[i] = room[i].id;
        f->from[i] = room[i].from;
        f->to[i] = room[i].to;
        f->by_to[i] = (uint32_t)i;
    }
    sort_arriving(f->by_to, f->n, (uint32_t *)room, f->to);
}

/* Brings carriers of one number together, numbers in the order of their first carrier: counting instead of sorting, since most
 * flows have two carriers. The result is in `to`; ends[i] is where the carriers of the i-th number end. */
static size_t group(const struct carrier *from, size_t n, struct carrier *to, uint32_t *chain,
                    uint32_t *ends)
{
    struct sv_map numbers = {0};
    size_t n_chains = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_new;
        uint64_t *slot = sv_map_add(&numbers, from[i].id, &is_new);
        if (is_new) {
            *slot = n_chains;
            ends[n_chains++] = 0;
        }
        chain[i] = (uint32_t)*slot;
        ends[chain[i]]++;
    }
    sv_map_fini(&numbers);
    uint32_t at = 0;
    for (size_t i = 0; i < n_chains; i++) {
        uint32_t count = ends[i];
        ends[i] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++)
        to[ends[chain[i]]++] = from[i];
    return n_chains;
}

/* The carriers of each number in order of time, connected. `room` is for sorting. */
static void connect_all(struct sv_trace *t, struct carrier *c, const uint32_t *ends,
                        size_t n_chains, struct carrier *room)
{
    for (size_t i = 0, first = 0; i < n_chains; first = ends[i++]) {
        sort_carriers(c + first, ends[i] - first, room, NULL);
        connect(t, c + first, ends[i] - first);
    }
}

int sv_trace_chain(struct sv_trace *t, struct sv_err *err)
{
    struct sv_trace_impl *x = t->impl;
    struct sv_block carriers = {0}, grouped = {0}, numbers = {0};
    size_t n = (size_t)(x->carrier.n + t->points.n);
    if (n == 0)
        return 0;
    bool ok = sv_block_reserve(&carriers, n * sizeof(struct carrier)) &&
              sv_block_reserve(&grouped, n * sizeof(struct carrier)) &&
              sv_block_reserve(&numbers, 2 * n * sizeof(uint32_t)) &&
              sv_table_reserve(&x->flows, n);
    if (ok) {
        uint32_t *chain = numbers.at, *ends = chain + n;
        n = collect(t, carriers.at);
        size_t n_chains = group(carriers.at, n, grouped.at, chain, ends);
        connect_all(t, grouped.at, ends, n_chains, carriers.at);
        sort_flows(t, carriers.at); /* an arrow and a half are as large as a carrier */
        sv_table_trim(&x->flows, t->flows.n);
    }
    sv_block_fini(&carriers);
    sv_block_fini(&grouped);
    sv_block_fini(&numbers);
    return ok ? 0 : sv_trace_no_memory(t, err);
}

/* ---- questions ---- */

/* Where `row` begins in a column of n ascending rows, looked at through `through` if that is given. */
static uint64_t first_at(const uint32_t *rows, const uint32_t *through, uint64_t n, uint64_t row)
{
    uint64_t from = 0, to = n;
    while (from < to) {
        uint64_t mid = from + (to - from) / 2;
        if (rows[through ? through[mid] : mid] < row)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

uint64_t sv_trace_flows_out(const struct sv_trace *t, uint32_t row, uint64_t *first)
{
    const struct sv_flows *f = &t->flows;
    *first = first_at(f->from, NULL, f->n, row);
    return first_at(f->from, NULL, f->n, (uint64_t)row + 1) - *first;
}

uint64_t sv_trace_flows_in(const struct sv_trace *t, uint32_t row, uint64_t *first)
{
    const struct sv_flows *f = &t->flows;
    *first = first_at(f->to, f->by_to, f->n, row);
    return first_at(f->to, f->by_to, f->n, (uint64_t)row + 1) - *first;
}

/* The store, finish, second step: parents and depths, and the index of ends that windows and
 * lookups use.
 *
 * On a track of edges the depth is known since the rows were paired, and the parent is the last row
 * one level up. On the others, rows are in the order (start, longest first), so the enclosing slice
 * of a row is the nearest row before it that ends no earlier: one pass with a stack of decreasing
 * ends, whatever overlaps. The index holds the latest end of every 64 rows, of every 64 of those,
 * and so on; searching for a row that is still open at some time skips all blocks that ended
 * before. */
#include "store/trace_impl.h"

#include "core/base/sat.h"
#include "core/base/search.h"

#include <assert.h>
#include <stdlib.h>

#define FANOUT_BITS SV_FANOUT_BITS
#define FANOUT      (1u << FANOUT_BITS)

/* ---- parents ---- */

struct nester {
    struct sv_trace *trace;
    struct sv_block stack; /* rows; of a track that is not made of edges */
    uint32_t *level;       /* the last row of each depth; of one that is */
    size_t n_levels;
};

static void set_parent(struct nester *e, struct sv_trace_track *track, uint32_t row,
                       uint32_t parent)
{
    struct sv_slices *s = &e->trace->slices;
    uint16_t depth = 0;
    if (parent != SV_NO_ROW) {
        depth = s->depth[parent];
        depth = depth < UINT16_MAX ? (uint16_t)(depth + 1) : depth;
    }
    s->parent[row] = parent;
    s->depth[row] = depth;
    if (depth > track->depth_max)
        track->depth_max = depth;
}

/* Room for the depths of a track; what other tracks left there is not needed. */
static void reserve_levels(struct nester *e, const struct sv_trace_track *track)
{
    const uint16_t *depth = e->trace->slices.depth;
    size_t deepest = 0;
    for (uint32_t row = track->first; row < track->end; row++)
        deepest = depth[row] > deepest ? depth[row] : deepest;
    if (deepest < e->n_levels)
        return;
    free(e->level);
    e->n_levels = 2 * deepest + 64;
    e->level = sv_alloc(e->n_levels * sizeof *e->level);
}

static void nest_edges(struct nester *e, struct sv_trace_track *track)
{
    struct sv_slices *s = &e->trace->slices;
    reserve_levels(e, track);
    for (uint32_t row = track->first; row < track->end; row++) {
        uint16_t depth = s->depth[row];
        set_parent(e, track, row, depth ? e->level[depth - 1] : SV_NO_ROW);
        if (s->kind[row] == SV_SLICE)
            e->level[depth] = row;
    }
}

static bool nest_slices(struct nester *e, struct sv_trace_track *track)
{
    struct sv_slices *s = &e->trace->slices;
    size_t n = 0;
    for (uint32_t row = track->first; row < track->end; row++) {
        int64_t ts = s->ts_ns[row], end = sv_row_end(s, row);
        int64_t need = end > ts || ts == INT64_MAX ? end : ts + 1;
        uint32_t *stack = e->stack.at;
        while (n && sv_row_end(s, stack[n - 1]) < need) {
            if (sv_row_end(s, stack[n - 1]) > ts)
                track->has_overlap = true;
            n--;
        }
        set_parent(e, track, row, n ? stack[n - 1] : SV_NO_ROW);
        if (s->kind[row] != SV_SLICE)
            continue;
        if (!sv_block_reserve(&e->stack, (n + 1) * sizeof *stack))
            return false;
        ((uint32_t *)e->stack.at)[n++] = row;
    }
    return true;
}

/* ---- the index ---- */

/* Instants are never open, and lie before everything in the index. */
static inline int64_t open_until(const struct sv_slices *s, uint64_t row)
{
    if (s->kind[row] != SV_SLICE)
        return INT64_MIN;
    int64_t end = sv_row_end(s, row);
    return end == INT64_MIN ? INT64_MIN + 1 : end;
}

static bool add_level(struct sv_trace_impl *x, size_t n)
{
    assert(x->n_levels < sizeof x->ends / sizeof x->ends[0]);
    return sv_block_reserve(&x->ends[x->n_levels++], n * sizeof(int64_t));
}

/* The lowest level, of which each thread takes a range of blocks. */
struct indexing {
    struct sv_trace *trace;
    int64_t *ends;
    size_t n, n_ranges;
};

static void index_range(void *ctx, size_t i)
{
    const struct indexing *x = ctx;
    const struct sv_slices *s = &x->trace->slices;
    size_t first, end;
    sv_workers_share(x->n, i, x->n_ranges, &first, &end);
    for (size_t block = first; block < end; block++) {
        uint64_t from = (uint64_t)block << FANOUT_BITS, to = from + FANOUT;
        int64_t latest = INT64_MIN;
        for (uint64_t row = from; row < (to < s->n ? to : s->n); row++) {
            int64_t until = open_until(s, row);
            latest = until > latest ? until : latest;
        }
        x->ends[block] = latest;
    }
}

static bool build_index(struct sv_trace *t)
{
    struct sv_trace_impl *x = t->impl;
    size_t n = (size_t)sv_trace_level_size(t->slices.n);
    if (n == 0)
        return true;
    if (!add_level(x, n))
        return false;
    struct indexing lowest = {t, x->ends[0].at, n, sv_trace_ranges(x->workers, t->slices.n)};
    sv_workers_each(x->workers, lowest.n_ranges, index_range, &lowest);
    while (n > FANOUT) {
        size_t n_up = (size_t)sv_trace_level_size(n);
        if (!add_level(x, n_up))
            return false;
        int64_t *up = x->ends[x->n_levels - 1].at, *down = x->ends[x->n_levels - 2].at;
        for (size_t i = 0; i < n; i++) {
            int64_t *block = &up[i >> FANOUT_BITS];
            *block = i % FANOUT == 0 || down[i] > *block ? down[i] : *block;
        }
        n = n_up;
    }
    return true;
}

/* ---- the span ---- */

static void see(struct sv_trace *t, int64_t from_ns, int64_t to_ns)
{
    t->first_ns = from_ns < t->first_ns ? from_ns : t->first_ns;
    t->last_ns = to_ns > t->last_ns ? to_ns : t->last_ns;
}

/* The span of a range of slices, and those that never ended. */
struct measured {
    int64_t first_ns, last_ns;
    struct sv_oddity unfinished;
};

struct measuring {
    const struct sv_trace *trace;
    struct measured *ranges;
    size_t n_ranges;
};

static void measure_range(void *ctx, size_t i)
{
    struct measuring *m = ctx;
    const struct sv_slices *s = &m->trace->slices;
    struct measured all = {.first_ns = INT64_MAX, .last_ns = INT64_MIN};
    size_t first, end;
    sv_workers_share(s->n, i, m->n_ranges, &first, &end);
    for (size_t row = first; row < end; row++) {
        int64_t ts = s->ts_ns[row], dur = s->dur_ns[row];
        int64_t until = dur == SV_UNFINISHED ? ts : ts + dur;
        all.first_ns = ts < all.first_ns ? ts : all.first_ns;
        all.last_ns = until > all.last_ns ? until : all.last_ns;
        if (__builtin_expect(dur == SV_UNFINISHED, 0))
            sv_oddity_note(&all.unfinished, ts, s->track[row]);
    }
    m->ranges[i] = all;
}

static void measure_slices(struct sv_trace *t)
{
    size_t n = sv_trace_ranges(t->impl->workers, t->slices.n);
    struct measuring m = {t, sv_alloc(n * sizeof *m.ranges), n};
    struct sv_oddity *unfinished = &t->impl->unfinished;
    sv_workers_each(t->impl->workers, n, measure_range, &m);
    for (size_t i = 0; i < n; i++) { /* in order: the first one is the first of all */
        const struct measured *r = &m.ranges[i];
        see(t, r->first_ns, r->last_ns);
        uint64_t count = unfinished->count + r->unfinished.count;
        if (unfinished->count == 0)
            *unfinished = r->unfinished;
        unfinished->count = count;
    }
    free(m.ranges);
}

/* Only what is in the tables counts: not an end that found no begin, not a flow point. */
static void measure_span(struct sv_trace *t)
{
    t->first_ns = INT64_MAX;
    t->last_ns = INT64_MIN;
    measure_slices(t);
    for (uint64_t i = 0; i < t->counters.n; i++)
        see(t, t->counters.ts_ns[i], t->counters.ts_ns[i]);
    for (uint64_t i = 0; i < t->losses.n; i++)
        see(t, t->losses.ts_ns[i], t->losses.ts_ns[i] + t->losses.dur_ns[i]);
    if (t->first_ns > t->last_ns)
        t->first_ns = t->last_ns = 0;
}

/* Tracks are nested beside each other; each has its rows to itself. A thread takes those that begin
 * in a range of rows. */
struct nesting {
    struct sv_trace *trace;
    size_t n_ranges;
    bool failed;
};

/* The first track whose rows begin at `row` or later; tracks follow each other in the table. */
static uint32_t track_from(const struct sv_trace *t, uint64_t row)
{
    uint32_t track;
    SV_SEARCH(track, mid, 0, t->n_tracks, t->tracks[mid].first < row);
    return track;
}

static void nest_range(void *ctx, size_t i)
{
    struct nesting *all = ctx;
    struct sv_trace *t = all->trace;
    struct nester e = {.trace = t};
    size_t first, end;
    bool ok = true;
    sv_workers_share(t->slices.n, i, all->n_ranges, &first, &end);
    uint32_t last = i + 1 == all->n_ranges ? t->n_tracks : track_from(t, end);
    for (uint32_t k = track_from(t, first); ok && k < last; k++) {
        if (t->tracks[k].has_edges)
            nest_edges(&e, &t->tracks[k]);
        else
            ok = nest_slices(&e, &t->tracks[k]);
    }
    if (!ok)
        __atomic_store_n(&all->failed, true, __ATOMIC_RELAXED);
    free(e.level);
    sv_block_fini(&e.stack);
}

static bool nest_all(struct sv_trace *t)
{
    struct nesting all = {.trace = t, .n_ranges = sv_trace_ranges(t->impl->workers, t->slices.n)};
    if (t->slices.n == 0)
        return true;
    if (!sv_table_add_column(&t->impl->slices, t->slices.n, &t->impl->places))
        return false;
    sv_workers_each(t->impl->workers, all.n_ranges, nest_range, &all);
    return !all.failed && build_index(t);
}

int sv_trace_nest(struct sv_trace *t, struct sv_err *err)
{
    measure_span(t);
    return nest_all(t) ? 0 : sv_trace_no_memory(t, err);
}

/* ---- searching ---- */

/* Rows that the largest aligned block before or after `row` lets a search skip, since nothing in it
 * is open after ts_ns. */
static uint64_t skippable(const struct sv_trace_impl *x, uint64_t row, int64_t ts_ns, bool back)
{
    uint64_t skip = 0, size = FANOUT;
    for (size_t level = 0; level < x->n_levels && row % size == 0; level++, size <<= FANOUT_BITS) {
        const int64_t *ends = x->ends[level].at;
        if (ends[row / size - back] > ts_ns)
            break;
        skip = size;
    }
    return skip;
}

/* The first row of [row, end) that is a slice open after ts_ns; `end` when there is none. */
static uint32_t next_open(const struct sv_trace *t, uint64_t row, uint32_t end, int64_t ts_ns)
{
    while (row < end) {
        uint64_t skip = skippable(t->impl, row, ts_ns, false);
        if (skip == 0 && open_until(&t->slices, row) > ts_ns)
            return (uint32_t)row;
        row += skip ? skip : 1;
    }
    return end;
}

_Static_assert(SV_TRACE_BLOCK_ROWS == FANOUT, "the lowest level of the index");

uint64_t sv_trace_may_last(const struct sv_trace *t, uint64_t row, uint64_t end, int64_t dur_ns)
{
    while (row < end) {
        /* The rows after it begin later, so one that lasts as long ends later than this. */
        int64_t least = sv_sat_add(t->slices.ts_ns[row], dur_ns - 1);
        uint64_t skip = skippable(t->impl, row, least, false);
        if (skip == 0)
            return row;
        row += skip;
    }
    return end;
}

/* The last row of [first, row) that is a slice open after ts_ns, or SV_NO_ROW. */
static uint32_t last_open(const struct sv_trace *t, uint32_t first, uint64_t row, int64_t ts_ns)
{
    while (row > first) {
        uint64_t skip = skippable(t->impl, row, ts_ns, true);
        if (skip == 0 && open_until(&t->slices, row - 1) > ts_ns)
            return (uint32_t)(row - 1);
        skip += skip == 0;
        row = row > skip ? row - skip : 0;
    }
    return SV_NO_ROW;
}

/* The first of ts_ns[from..to) that is at or after `at`. */
static uint32_t lower_bound(const int64_t *ts_ns, uint32_t from, uint32_t to, int64_t at)
{
    uint32_t row;
    SV_SEARCH(row, mid, from, to, ts_ns[mid] < at);
    return row;
}

static struct sv_trace_track track_of(const struct sv_trace *t, sv_track track)
{
    return sv_trace_has_track(t, track) ? t->tracks[track] : (struct sv_trace_track){0};
}

uint32_t sv_trace_row_from(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    struct sv_trace_track k = track_of(t, track);
    return lower_bound(t->slices.ts_ns, k.first, k.end, ts_ns);
}

uint32_t sv_trace_counter_from(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    struct sv_trace_track k = track_of(t, track);
    return lower_bound(t->counters.ts_ns, k.counter_first, k.counter_end, ts_ns);
}

struct sv_window sv_trace_window(const struct sv_trace *t, sv_track track, int64_t from_ns,
                                 int64_t to_ns)
{
    struct sv_trace_track k = track_of(t, track);
    struct sv_window w = {.trace = t, .from_ns = from_ns, .next = k.first};
    w.begins = lower_bound(t->slices.ts_ns, k.first, k.end, from_ns);
    w.end = lower_bound(t->slices.ts_ns, w.begins, k.end, to_ns);
    if (from_ns >= to_ns)
        w.next = w.begins = w.end;
    return w;
}

bool sv_window_next(struct sv_window *w, uint32_t *row)
{
    if (w->next < w->begins)
        w->next = next_open(w->trace, w->next, w->begins, w->from_ns);
    if (w->next >= w->end)
        return false;
    *row = w->next++;
    return true;
}

/* The innermost slice of the track that is open at ts_ns, given the first row that begins there or
 * later. */
static uint32_t slice_at(const struct sv_trace *t, const struct sv_trace_track *k, uint32_t here,
                         int64_t ts_ns)
{
    uint32_t after = here;
    while (after < k->end && after - here < 8 && t->slices.ts_ns[after] == ts_ns)
        after++; /* few rows begin at one time */
    if (after - here == 8 && ts_ns < INT64_MAX)
        after = lower_bound(t->slices.ts_ns, after, k->end, ts_ns + 1);
    else if (after - here == 8)
        after = k->end;
    uint32_t row = last_open(t, here, after, INT64_MIN);
    return row != SV_NO_ROW ? row : last_open(t, k->first, here, ts_ns);
}

uint32_t sv_trace_slice_at(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    struct sv_trace_track k = track_of(t, track);
    return slice_at(t, &k, lower_bound(t->slices.ts_ns, k.first, k.end, ts_ns), ts_ns);
}

uint32_t sv_trace_bind_at(const struct sv_trace *t, sv_track track, int64_t ts_ns, uint32_t *hint)
{
    struct sv_trace_track k = track_of(t, track);
    uint32_t here = sv_search_near(t->slices.ts_ns, *hint, k.end, ts_ns);
    uint32_t row = slice_at(t, &k, here, ts_ns);
    *hint = here;
    if (row != SV_NO_ROW || ts_ns == INT64_MIN)
        return row;
    return last_open(t, k.first, here, ts_ns - 1);
}

uint32_t sv_trace_bind_next(const struct sv_trace *t, sv_track track, int64_t ts_ns, uint32_t *hint)
{
    struct sv_trace_track k = track_of(t, track);
    *hint = sv_search_near(t->slices.ts_ns, *hint, k.end, ts_ns);
    uint32_t row = next_open(t, *hint, k.end, INT64_MIN);
    return row < k.end ? row : SV_NO_ROW;
}

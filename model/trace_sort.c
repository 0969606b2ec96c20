/* The store, finish, first step: the final order of rows, and the columns brought into it.
 *
 * A counting sort by track gives the rows of each track in the order of arrival. That is the final order for most tracks; a track
 * that is out of order is sorted by itself, and one whose edges went back in time is paired anew: its edges are regenerated
 * from the rows that were paired so far, put in stable time order, and matched again. Rows that were never slices (ends) drop out
 * here. Carriers of flows follow their rows. Then each column is gathered, one at a time. */
#include "model/trace_impl.h"

#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>

/* What an edge does to the stack of open slices. */
enum edge { OPENS, STANDS, CLOSES, CLOSES_PAIRED };

struct key {
    int64_t ts_ns;
    uint32_t row;
    uint32_t
        edge; /* CLOSES: row is that of the end; CLOSES_PAIRED: that of the begin it was paired with */
};

struct sorter {
    struct sv_trace *trace;
    struct sv_trace_impl *impl;
    uint32_t *order;
    struct sv_block keys, rows;
    struct sv_map end_args; /* begin row → list of its end; of the track at hand */
    struct sv_map moved; /* begin row → begin row that its end belongs to now, if another one */
};

static bool earlier(const struct key *a, const struct key *b, const void *unused)
{
    (void)unused;
    return a->ts_ns < b->ts_ns;
}

/* The order of rows on a track that is not made of edges. */
static bool before(const struct key *a, const struct key *b, const void *slices)
{
    const struct sv_slices *s = slices;
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns;
    return sv_sort_dur(s->dur_ns[a->row]) > sv_sort_dur(s->dur_ns[b->row]);
}

SV_SORT_DEFINE(sort_earlier, struct key, earlier)
SV_SORT_DEFINE(sort_before, struct key, before)

/* Room for n keys and for sorting them. */
static struct key *key_room(struct sorter *o, size_t n)
{
    return sv_block_reserve(&o->keys, (n + SV_SORT_SPARE(n)) * sizeof(struct key)) ? o->keys.at
                                                                                   : NULL;
}

/* Sorts row numbers by the time in `ts_ns`; with slices, by their full order. */
static bool sort_rows(struct sorter *o, uint32_t *rows, size_t n, const int64_t *ts_ns,
                      const struct sv_slices *slices)
{
    struct key *keys = key_room(o, n);
    if (!keys)
        return false;
    for (size_t i = 0; i < n; i++)
        keys[i] = (struct key){.ts_ns = ts_ns[rows[i]], .row = rows[i]};
    if (slices)
        sort_before(keys, n, keys + n, slices);
    else
        sort_earlier(keys, n, keys + n, NULL);
    for (size_t i = 0; i < n; i++)
        rows[i] = keys[i].row;
    return true;
}

/* ---- pairing anew ---- */

/* The edges of one track while they are regenerated: `open` holds the rows whose end has not been regenerated yet. */
struct regen {
    struct sorter *sorter;
    struct key *keys;
    size_t n;
    uint32_t *open;
    size_t n_open;
};

static void regen_edge(struct regen *g, enum edge edge, uint32_t row, int64_t ts_ns)
{
    g->keys[g->n++] = (struct key){.ts_ns = ts_ns, .row = row, .edge = edge};
}

/* Regenerates the ends of all open rows past `depth` that had one. Rows that are still open lie below those. */
static void regen_ends(struct regen *g, size_t depth)
{
    const struct sv_slices *s = &g->sorter->trace->slices;
    while (g->n_open > depth) {
        uint32_t row = g->open[g->n_open - 1];
        if (s->dur_ns[row] == SV_UNFINISHED)
            return;
        regen_edge(g, CLOSES_PAIRED, row, sv_row_end(s, row));
        g->n_open--;
    }
}

/* A row that was begun while the track was in order, and perhaps paired. */
static void regen_paired(struct regen *g, uint32_t row)
{
    struct sorter *o = g->sorter;
    struct sv_slices *s = &o->trace->slices;
    uint32_t begin, end;
    regen_ends(g, s->depth[row]);
    regen_edge(g, OPENS, row, s->ts_ns[row]);
    g->open[g->n_open++] = row;
    sv_lists_split(&o->impl->args, s->args[row], &begin, &end);
    if (end) {
        s->args[row] = begin;
        *sv_map_add(&o->end_args, row, NULL) = end;
    }
}

/* All edges of a track in the order in which they came; whole slices stay in rows[0..returned). */
static size_t regenerate(struct regen *g, uint32_t *rows, size_t n)
{
    struct sv_slices *s = &g->sorter->trace->slices;
    size_t whole = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        switch (s->kind[row]) {
        case SV_SLICE:
            if (s->depth[row] == SV_WHOLE)
                rows[whole++] = row;
            else
                regen_paired(g, row);
            break;
        case SV_INSTANT:
            regen_ends(g, s->depth[row]);
            regen_edge(g, STANDS, row, s->ts_ns[row]);
            break;
        case SV_BEGIN:
            regen_ends(g, 0);
            regen_edge(g, OPENS, row, s->ts_ns[row]);
            break;
        default: regen_ends(g, 0); regen_edge(g, CLOSES, row, s->ts_ns[row]);
        }
    }
    regen_ends(g, 0);
    return whole;
}

/* Ends the slice `begin` by a regenerated edge, whose arguments and flows come along. */
static void close_slice(struct sorter *o, const struct key *k, uint32_t begin)
{
    struct sv_slices *s = &o->trace->slices;
    uint32_t end_args = 0;
    if (k->edge == CLOSES) {
        end_args = s->args[k->row];
        s->dur_ns[k->row] = begin; /* for the carriers of the end */
    } else {
        uint64_t *list = sv_map_find(&o->end_args, k->row);
        end_args = list ? (uint32_t)*list : 0;
        if (list && k->row != begin)
            *sv_map_add(&o->moved, k->row, NULL) = begin;
    }
    if (k->edge == CLOSES && s->name[begin] == 0)
        s->name[begin] = s->name[k->row];
    if (k->edge == CLOSES && s->cat[begin] == 0)
        s->cat[begin] = s->cat[k->row];
    int64_t dur;
    s->dur_ns[begin] = __builtin_sub_overflow(k->ts_ns, s->ts_ns[begin], &dur) ? INT64_MAX : dur;
    if (end_args)
        s->args[begin] = sv_lists_join(&o->impl->args, s->args[begin], end_args);
}

/* Matches the sorted edges by a stack; the rows they leave follow rows[0..n). */
static size_t pair_edges(struct sorter *o, struct regen *g, sv_track track, uint32_t *rows,
                         size_t n)
{
    struct sv_slices *s = &o->trace->slices;
    g->n_open = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct key *k = &g->keys[i];
        if (k->edge == CLOSES || k->edge == CLOSES_PAIRED) {
            if (g->n_open)
                close_slice(o, k, g->open[--g->n_open]);
            else
                sv_oddity_note(&o->impl->unmatched, k->ts_ns, track);
            continue;
        }
        if (g->n_open >= SV_WHOLE)
            o->impl->states[track].flags |= SV_T_DEEP | SV_T_UNSORTED;
        s->depth[k->row] = (uint16_t)(g->n_open < SV_WHOLE ? g->n_open : SV_WHOLE - 1);
        rows[n++] = k->row;
        if (k->edge == OPENS) {
            s->kind[k->row] = SV_SLICE;
            s->dur_ns[k->row] = SV_UNFINISHED;
            g->open[g->n_open++] = k->row;
        }
    }
    return n;
}

/* Puts the edges of a track in time order and pairs them; returns the number of rows left, or SIZE_MAX without memory. */
static size_t pair_anew(struct sorter *o, sv_track track, uint32_t *rows, size_t n)
{
    struct regen g = {.sorter = o, .keys = key_room(o, 2 * n)};
    if (!g.keys || !sv_block_reserve(&o->rows, n * sizeof *g.open))
        return SIZE_MAX;
    g.open = o->rows.at;
    sv_map_clear(&o->end_args);
    size_t whole = regenerate(&g, rows, n);
    sort_earlier(g.keys, g.n, g.keys + 2 * n, NULL);
    return pair_edges(o, &g, track, rows, whole);
}

/* ---- the order ---- */

static size_t drop_ends(struct sorter *o, uint32_t *rows, size_t n)
{
    const struct sv_slices *s = &o->trace->slices;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (s->kind[rows[i]] == SV_END)
            sv_oddity_note(&o->impl->unmatched, s->ts_ns[rows[i]], s->track[rows[i]]);
        else
            rows[kept++] = rows[i];
    }
    return kept;
}

/* The rows of a track in their final order; returns how many are left, or SIZE_MAX without memory. */
static size_t arrange_track(struct sorter *o, sv_track track, uint32_t *rows, size_t n)
{
    const struct sv_slices *s = &o->trace->slices;
    const uint8_t *flags = &o->impl->states[track].flags;
    if (*flags & SV_T_EDGES && *flags & SV_T_RAW)
        n = pair_anew(o, track, rows, n);
    else if (*flags & SV_T_ENDS)
        n = drop_ends(o, rows, n);
    if (n == SIZE_MAX || sv_track_keeps_edges(*flags) || !(*flags & SV_T_UNSORTED))
        return n;
    return sort_rows(o, rows, n, s->ts_ns, s) ? n : SIZE_MAX;
}

/* Counting sort: order[first of the track …] = its rows as they came. first[] ends up at the end of each track. */
static void count_into(uint32_t *order, uint32_t *next, const sv_track *track, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[next[track[i]]++] = (uint32_t)i;
}

static bool is_identity(const uint32_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (order[i] != i)
            return false;
    return true;
}

static bool order_slices(struct sorter *o, uint32_t *next)
{
    struct sv_trace *t = o->trace;
    uint32_t from = 0, kept = 0;
    for (uint32_t k = 0; k < t->n_tracks; k++) {
        next[k] = from;
        from += o->impl->states[k].n_rows;
    }
    count_into(o->order, next, t->slices.track, t->slices.n);
    from = 0;
    for (uint32_t k = 0; k < t->n_tracks; k++) {
        size_t n = arrange_track(o, k, o->order + from, next[k] - from);
        if (n == SIZE_MAX)
            return false;
        if (kept != from)
            memmove(o->order + kept, o->order + from, n * sizeof *o->order);
        t->tracks[k].first = kept;
        t->tracks[k].end = kept += (uint32_t)n;
        t->tracks[k].has_edges = sv_track_keeps_edges(o->impl->states[k].flags);
        from = next[k];
    }
    return true;
}

/* ---- carriers ---- */

/* The row in arrival order whose slice a carrier belongs to, or SV_NO_ROW. */
static uint32_t carrier_row(const struct sorter *o, uint64_t carrier)
{
    const struct sv_slices *s = &o->trace->slices;
    uint32_t row = o->impl->carrier.row[carrier];
    if (s->kind[row] == SV_END)
        return s->dur_ns[row] == SV_UNFINISHED ? SV_NO_ROW : (uint32_t)s->dur_ns[row];
    uint64_t *to = o->impl->carrier.at_end[carrier] ? sv_map_find(&o->moved, row) : NULL;
    return to ? (uint32_t)*to : row;
}

static bool order_carriers(struct sorter *o, size_t n_arrived, size_t n)
{
    struct sv_carriers *c = &o->impl->carrier;
    struct sv_block block = {0};
    if (c->n == 0)
        return true;
    if (!sv_block_reserve(&block, n_arrived * sizeof(uint32_t)))
        return false;
    uint32_t *place = block.at;
    for (size_t i = 0; i < n; i++)
        place[o->order[i]] = (uint32_t)i;
    for (uint64_t i = 0; i < c->n; i++) {
        uint32_t row = carrier_row(o, i);
        c->row[i] = row == SV_NO_ROW ? SV_NO_ROW : place[row];
    }
    sv_block_fini(&block);
    return true;
}

/* ---- tables ---- */

static size_t column_of(const struct sv_table *b, const void *pointer)
{
    size_t i = 0;
    while (b->blocks[i].at != pointer)
        i++;
    return i;
}

static bool sort_slices(struct sorter *o, uint32_t *next)
{
    struct sv_trace *t = o->trace;
    struct sv_table *b = &o->impl->slices;
    size_t n_arrived = t->slices.n;
    if (n_arrived == 0)
        return true;
    if (!sv_block_reserve(&o->impl->order, n_arrived * sizeof *o->order))
        return false;
    o->order = o->impl->order.at;
    if (!order_slices(o, next))
        return false;
    size_t n = t->tracks[t->n_tracks - 1].end;
    sv_block_fini(&o->keys);
    if (!order_carriers(o, n_arrived, n))
        return false;
    if (!is_identity(o->order, n)) {
        /* The column of tracks is known without gathering. */
        if (!sv_table_gather(b, o->order, n, 1u << column_of(b, t->slices.track)))
            return false;
        for (uint32_t k = 0; k < t->n_tracks; k++)
            for (uint32_t row = t->tracks[k].first; row < t->tracks[k].end; row++)
                t->slices.track[row] = k;
    }
    t->slices.n = n;
    sv_table_trim(b, n);
    return true;
}

static bool sort_counters(struct sorter *o, uint32_t *next)
{
    struct sv_trace *t = o->trace;
    size_t n = t->counters.n;
    uint32_t from = 0;
    if (n == 0)
        return true;
    if (!sv_block_reserve(&o->impl->order, n * sizeof *o->order))
        return false;
    o->order = o->impl->order.at;
    for (uint32_t k = 0; k < t->n_tracks; k++) {
        t->tracks[k].counter_first = next[k] = from;
        t->tracks[k].counter_end = from += o->impl->states[k].n_counters;
    }
    count_into(o->order, next, t->counters.track, n);
    for (uint32_t k = 0; k < t->n_tracks; k++) {
        const struct sv_trace_track *track = &t->tracks[k];
        if (o->impl->states[k].flags & SV_T_COUNTERS_UNSORTED &&
            !sort_rows(o, o->order + track->counter_first,
                       track->counter_end - track->counter_first, t->counters.ts_ns, NULL))
            return false;
    }
    if (!is_identity(o->order, n) && !sv_table_gather(&o->impl->counters, o->order, n, 0))
        return false;
    sv_table_trim(&o->impl->counters, n);
    return true;
}

/* A small table that is sorted by time alone. */
static bool sort_by_time(struct sorter *o, struct sv_table *b, const int64_t *ts_ns, size_t n)
{
    if (n == 0)
        return true;
    if (!sv_block_reserve(&o->impl->order, n * sizeof *o->order))
        return false;
    o->order = o->impl->order.at;
    for (size_t i = 0; i < n; i++)
        o->order[i] = (uint32_t)i;
    if (!sort_rows(o, o->order, n, ts_ns, NULL))
        return false;
    return is_identity(o->order, n) || sv_table_gather(b, o->order, n, 0);
}

int sv_trace_sort(struct sv_trace *t, struct sv_err *err)
{
    struct sv_trace_impl *x = t->impl;
    struct sorter o = {.trace = t, .impl = x};
    t->n_tracks = t->dict->n_tracks;
    t->tracks = sv_alloc(t->n_tracks * sizeof *t->tracks);
    uint32_t *next = sv_alloc(t->n_tracks * sizeof *next);
    bool ok = sort_counters(&o, next) &&
              sort_by_time(&o, &x->points, t->points.ts_ns, t->points.n) &&
              sort_by_time(&o, &x->losses, t->losses.ts_ns, t->losses.n) && sort_slices(&o, next);
    free(next);
    sv_block_fini(&o.keys);
    sv_block_fini(&o.rows);
    sv_map_fini(&o.end_args);
    sv_map_fini(&o.moved);
    return ok ? 0 : sv_trace_no_memory(t, err);
}

/* The store, finish, first step: the final order of rows, and the columns brought into it.
 *
 * Rows go to their track, in the order of arrival. That is the final order for most tracks; a track
 * that is out of order is sorted by itself, and one whose edges went back in time is paired anew:
 * its edges are regenerated from the rows that were paired so far, put in stable time order, and
 * matched again. Rows that were never slices (ends) drop out here. Carriers of flows follow their
 * rows. Then each column is read from front to back and its values are written to their places, one
 * column at a time: with few tracks these are few streams, and no cache line is fetched twice. */
#include "store/trace_impl.h"

#include "core/base/sort.h"

#include <assert.h>
#include <stdlib.h>

/* What an edge does to the stack of open slices. */
enum edge { OPENS, IS_INSTANT, CLOSES, CLOSES_PAIRED };

struct key {
    int64_t ts_ns;
    uint32_t row;
    /* CLOSES: row is that of the end; CLOSES_PAIRED: that of the begin it was paired with */
    uint32_t edge;
};

struct sorter {
    struct sv_trace *trace;
    struct sv_trace_impl *impl;
    bool counters;          /* the table at hand: counters or slices */
    uint32_t *place;        /* arrived row → final row; in impl->places */
    uint32_t *next, *kept;  /* per track */
    struct sv_block keys;   /* for sorting a track */
    struct sv_block open;   /* for pairing one */
    struct sv_block list;   /* the rows of messy tracks */
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

/* Space for n keys and for sorting them. */
static struct key *key_buffer(struct sorter *o, size_t n)
{
    return sv_block_reserve(&o->keys, (n + SV_SORT_SPARE(n)) * sizeof(struct key)) ? o->keys.at
                                                                                   : NULL;
}

/* Sorts row numbers by the time in `ts_ns`; with slices, by their full order. */
static bool sort_rows(struct sorter *o, uint32_t *rows, size_t n, const int64_t *ts_ns,
                      const struct sv_slices *slices)
{
    struct key *keys = key_buffer(o, n);
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

/* The edges of one track while they are regenerated: `open` holds the rows whose end has not been
 * regenerated yet. */
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

/* Regenerates the ends of all open rows past `depth` that had one. Rows that are still open lie
 * below those. */
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
            regen_edge(g, IS_INSTANT, row, s->ts_ns[row]);
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
    s->dur_ns[begin] = sv_trace_span(o->impl, s->ts_ns[begin], k->ts_ns, s->track[begin]);
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

/* Puts the edges of a track in time order and pairs them; returns the number of rows left, or
 * SIZE_MAX without memory. */
static size_t pair_anew(struct sorter *o, sv_track track, uint32_t *rows, size_t n)
{
    struct regen g = {.sorter = o, .keys = key_buffer(o, 2 * n)};
    if (!g.keys || !sv_block_reserve(&o->open, n * sizeof *g.open))
        return SIZE_MAX;
    g.open = o->open.at;
    sv_map_clear(&o->end_args);
    size_t whole = regenerate(&g, rows, n);
    sort_earlier(g.keys, g.n, g.keys + 2 * n, NULL);
    return pair_edges(o, &g, track, rows, whole);
}

/* ---- places ---- */

/* Both tables with rows of tracks are placed alike; these are the differences. */
static uint32_t rows_of(const struct sorter *o, sv_track track)
{
    const struct sv_track_state *k = &o->impl->states[track];
    return o->counters ? k->n_counters : k->n_rows;
}

/* The rows of most tracks are where they belong once the track's place is known; those of others
 * must be looked at. */
static bool is_messy(const struct sorter *o, sv_track track)
{
    unsigned flags = o->impl->states[track].flags;
    if (o->counters)
        return flags & SV_T_COUNTERS_UNSORTED;
    if (flags & SV_T_ENDS || (flags & SV_T_EDGES && flags & SV_T_RAW))
        return true;
    return flags & SV_T_UNSORTED && !sv_track_keeps_edges(flags);
}

static void set_range(const struct sorter *o, sv_track track, uint32_t first, uint32_t end)
{
    struct sv_trace_track *k = &o->trace->tracks[track];
    if (o->counters) {
        k->counter_first = first;
        k->counter_end = end;
        return;
    }
    k->first = first;
    k->end = end;
    k->has_edges = sv_track_keeps_edges(o->impl->states[track].flags);
}

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

/* The rows of a messy track in their final order; returns how many are left, or SIZE_MAX without
 * memory. */
static size_t arrange_track(struct sorter *o, sv_track track, uint32_t *rows, size_t n)
{
    const struct sv_slices *s = &o->trace->slices;
    const uint8_t *flags = &o->impl->states[track].flags;
    if (o->counters)
        return sort_rows(o, rows, n, o->trace->counters.ts_ns, NULL) ? n : SIZE_MAX;
    if (*flags & SV_T_EDGES && *flags & SV_T_RAW)
        n = pair_anew(o, track, rows, n);
    else if (*flags & SV_T_ENDS)
        n = drop_ends(o, rows, n);
    if (n == SIZE_MAX || sv_track_keeps_edges(*flags) || !(*flags & SV_T_UNSORTED))
        return n;
    return sort_rows(o, rows, n, s->ts_ns, s) ? n : SIZE_MAX;
}

/* Tracks that only have to be sorted: they touch nothing but their own rows. */
static bool is_only_unsorted(const struct sorter *o, sv_track track)
{
    return o->counters || !(o->impl->states[track].flags & (SV_T_ENDS | SV_T_RAW));
}

struct arranging {
    struct sorter *sorter;
    uint32_t *list;
    size_t n_shares;
    bool failed;
};

static bool arrange_one(struct sorter *o, uint32_t *list, sv_track k)
{
    uint32_t listed = o->kept[k];
    size_t kept = arrange_track(o, k, list + (o->next[k] - listed), listed);
    o->kept[k] = kept == SIZE_MAX ? 0 : (uint32_t)kept;
    return kept != SIZE_MAX;
}

static void arrange_beside(void *ctx, size_t i)
{
    struct arranging *a = ctx;
    struct sorter own = *a->sorter;
    size_t k, end;
    bool ok = true;
    own.keys = (struct sv_block){0};
    sv_workers_share(own.trace->n_tracks, i, a->n_shares, &k, &end);
    for (; ok && k < end; k++)
        if (is_messy(&own, (sv_track)k) && is_only_unsorted(&own, (sv_track)k))
            ok = arrange_one(&own, a->list, (sv_track)k);
    if (!ok)
        __atomic_store_n(&a->failed, true, __ATOMIC_RELAXED);
    sv_block_fini(&own.keys);
}

/* Several tracks at once need the space of several: under a limit it is one after the other. */
static bool arrange_all(struct sorter *o, uint32_t *list)
{
    size_t threads = sv_workers_count(o->impl->workers), n = o->trace->n_tracks;
    struct arranging a = {
        .sorter = o, .list = list, .n_shares = n < 64 * threads ? n : 64 * threads};
    bool is_beside = threads > 1 && o->impl->memory_limit == 0;
    if (is_beside)
        sv_workers_each(o->impl->workers, a.n_shares, arrange_beside, &a);
    bool ok = !a.failed;
    for (sv_track k = 0; ok && k < o->trace->n_tracks; k++)
        if (is_messy(o, k) && !(is_beside && is_only_unsorted(o, k)))
            ok = arrange_one(o, list, k);
    return ok;
}

/* Lists the rows of messy tracks, track by track, and arranges them; o->kept says how many are left
 * of each. */
static bool arrange_messy(struct sorter *o, const sv_track *track, size_t n)
{
    size_t n_listed = 0;
    for (sv_track k = 0; k < o->trace->n_tracks; k++) {
        o->next[k] = (uint32_t)n_listed;
        o->kept[k] = rows_of(o, k);
        n_listed += is_messy(o, k) ? o->kept[k] : 0;
    }
    if (n_listed == 0)
        return true;
    if (!sv_block_reserve(&o->list, n_listed * sizeof(uint32_t)))
        return false;
    uint32_t *list = o->list.at;
    for (size_t i = 0; i < n; i++)
        if (is_messy(o, track[i]))
            list[o->next[track[i]]++] = (uint32_t)i;
    return arrange_all(o, list);
}

/* Where each row goes. Sets the ranges of tracks, returns the number of rows left. */
static size_t place_rows(struct sorter *o, const sv_track *track, size_t n)
{
    const uint32_t *list = o->list.at;
    uint32_t from = 0;
    for (sv_track k = 0; k < o->trace->n_tracks; k++) {
        bool messy = is_messy(o, k);
        set_range(o, k, from, from + o->kept[k]);
        if (messy) {
            assert(list);
            for (uint32_t i = 0; i < o->kept[k]; i++)
                o->place[list[i]] = from + i;
            list += rows_of(o, k);
        }
        o->next[k] = messy ? SV_NO_ROW : from;
        from += o->kept[k];
    }
    for (size_t i = 0; i < n; i++)
        if (o->next[track[i]] != SV_NO_ROW)
            o->place[i] = o->next[track[i]]++;
    return from;
}

static bool is_identity(const uint32_t *place, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (place[i] != i)
            return false;
    return true;
}

/* Fills o->place for a table, SV_NO_ROW for rows that drop out; *left is the number of those that
 * stay. */
static bool find_places(struct sorter *o, const sv_track *track, size_t n, size_t *left)
{
    if (!arrange_messy(o, track, n) || !sv_block_reserve(&o->impl->places, n * sizeof *o->place))
        return false;
    sv_block_fini(&o->keys);
    o->place = o->impl->places.at;
    if (o->list.at) /* only messy tracks lose rows */
        memset(o->place, 0xff, n * sizeof *o->place);
    *left = place_rows(o, track, n);
    sv_block_fini(&o->list);
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
    bool at_end = o->impl->carrier.how[carrier] == SV_BY_END;
    uint64_t *to = at_end ? sv_map_find(&o->moved, row) : NULL;
    return to ? (uint32_t)*to : row;
}

static void place_carriers(struct sorter *o)
{
    struct sv_carriers *c = &o->impl->carrier;
    for (uint64_t i = 0; i < c->n; i++) {
        uint32_t row = carrier_row(o, i);
        c->row[i] = row == SV_NO_ROW ? SV_NO_ROW : o->place[row];
    }
}

/* ---- tables ---- */

static bool sort_slices(struct sorter *o)
{
    struct sv_trace *t = o->trace;
    size_t n_arrived = t->slices.n, n;
    if (n_arrived == 0)
        return true;
    o->counters = false;
    if (!find_places(o, t->slices.track, n_arrived, &n))
        return false;
    place_carriers(o);
    if (!(n == n_arrived && is_identity(o->place, n)) &&
        !sv_table_scatter(&o->impl->slices, o->place, n_arrived, n, o->impl->workers))
        return false;
    t->slices.n = n;
    sv_table_trim(&o->impl->slices, n);
    return true;
}

static bool sort_counters(struct sorter *o)
{
    struct sv_trace *t = o->trace;
    size_t n = t->counters.n;
    if (n == 0)
        return true;
    o->counters = true;
    if (!find_places(o, t->counters.track, n, &n))
        return false;
    if (!is_identity(o->place, n) &&
        !sv_table_scatter(&o->impl->counters, o->place, n, n, o->impl->workers))
        return false;
    sv_table_trim(&o->impl->counters, n);
    return true;
}

/* A small table that is sorted only by time. */
static bool sort_by_time(struct sorter *o, struct sv_table *b, const int64_t *ts_ns, size_t n)
{
    if (n == 0)
        return true;
    if (!sv_block_reserve(&o->list, n * sizeof(uint32_t)) ||
        !sv_block_reserve(&o->impl->places, n * sizeof *o->place))
        return false;
    uint32_t *list = o->list.at;
    o->place = o->impl->places.at;
    for (size_t i = 0; i < n; i++)
        list[i] = (uint32_t)i;
    if (!sort_rows(o, list, n, ts_ns, NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        o->place[list[i]] = (uint32_t)i;
    sv_block_fini(&o->list);
    return is_identity(o->place, n) || sv_table_scatter(b, o->place, n, n, o->impl->workers);
}

int sv_trace_sort(struct sv_trace *t, struct sv_err *err)
{
    struct sv_trace_impl *x = t->impl;
    struct sorter o = {.trace = t, .impl = x};
    t->n_tracks = t->dict->n_tracks;
    t->tracks = sv_alloc(t->n_tracks * sizeof *t->tracks);
    o.next = sv_alloc(t->n_tracks * sizeof *o.next);
    o.kept = sv_alloc(t->n_tracks * sizeof *o.kept);
    /* Slices last: the parents will use the space of their places. */
    bool ok = sort_counters(&o) && sort_by_time(&o, &x->losses, t->losses.ts_ns, t->losses.n) &&
              sort_slices(&o);
    free(o.next);
    free(o.kept);
    sv_block_fini(&o.keys);
    sv_block_fini(&o.open);
    sv_block_fini(&o.list);
    sv_map_fini(&o.end_args);
    sv_map_fini(&o.moved);
    return ok ? 0 : sv_trace_no_memory(t, err);
}

int sv_trace_sort_points(struct sv_trace *t, struct sv_err *err)
{
    struct sorter o = {.trace = t, .impl = t->impl};
    bool ok = sort_by_time(&o, &t->impl->points, t->points.ts_ns, t->points.n);
    sv_block_fini(&o.keys);
    sv_block_fini(&o.list);
    return ok ? 0 : sv_trace_no_memory(t, err);
}

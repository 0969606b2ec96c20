/* Self time for every slice, in one pass over the rows.
 *
 * Used by the statistics, the SQL column self_dur, diff and the flame graph. On tracks whose slices
 * nest, children of one parent do not overlap and their durations are subtracted as they are. Where
 * slices overlap, and on a track with lanes, the children of a parent come in the order of time, so
 * the time already covered is one number per parent. */
#include "stats/self.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/sort.h"
#include "threads/workers.h"

#include <stdlib.h>

#define THREADS_FROM ((uint64_t)1 << 18) /* slices */
#define SHARES       8u                  /* of each thread: tracks differ in length */

static int64_t length(const struct sv_trace *t, uint64_t row)
{
    int64_t dur = t->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? sv_sat_sub(t->last_ns, t->slices.ts_ns[row]) : dur;
}

static void subtract_nested(const struct sv_trace *t, const struct sv_trace_track *k, int64_t *self)
{
    const uint32_t *parent = t->slices.parent;
    for (uint32_t row = k->first; row < k->end; row++)
        if (parent[row] != SV_NO_ROW)
            self[parent[row]] -= self[row];
}

/* A slice of a track or of one of its lanes. */
struct piece {
    int64_t ts_ns, end_ns, covered_ns;
    uint32_t row, parent; /* parent: number of a piece */
};

static bool piece_before(const struct piece *a, const struct piece *b, const void *ctx)
{
    (void)ctx;
    return a->ts_ns < b->ts_ns || (a->ts_ns == b->ts_ns && a->end_ns > b->end_ns);
}
SV_SORT_DEFINE(sort_pieces, struct piece, piece_before)

/* The latest piece that begins no later and ends no earlier: each piece remembers its encloser, so
 * the way up is short. */
static void subtract_pieces(struct piece *p, size_t n, int64_t *self)
{
    uint32_t last = SV_NO_ROW;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t up = last;
        while (up != SV_NO_ROW && p[up].end_ns < p[i].end_ns)
            up = p[up].parent;
        p[i].parent = up;
        p[i].covered_ns = p[i].ts_ns;
        if (p[i].end_ns > p[i].ts_ns)
            last = i;
        /* Every encloser up the chain is covered by it through its child; a piece that only
         * overlaps its elder sibling covers what that one left. */
        if (up == SV_NO_ROW)
            continue;
        int64_t from = p[i].ts_ns > p[up].covered_ns ? p[i].ts_ns : p[up].covered_ns;
        if (p[i].end_ns > from) {
            self[p[up].row] -= p[i].end_ns - from;
            p[up].covered_ns = p[i].end_ns;
        }
    }
}

static struct piece piece_of(const struct sv_trace *t, uint32_t row)
{
    int64_t ts = t->slices.ts_ns[row];
    return (struct piece){ts, ts + length(t, row), ts, row, SV_NO_ROW};
}

static size_t add_pieces(const struct sv_trace *t, sv_track track, struct piece *to)
{
    const struct sv_trace_track *k = &t->tracks[track];
    for (uint32_t row = k->first; row < k->end; row++)
        *to++ = piece_of(t, row);
    return k->end - k->first;
}

/* tracks[0] and its lanes together. */
static void subtract_overlapping(const struct sv_trace *t, const sv_track *tracks, size_t n_tracks,
                                 int64_t *self)
{
    size_t n = 0;
    for (size_t i = 0; i < n_tracks; i++)
        n += t->tracks[tracks[i]].end - t->tracks[tracks[i]].first;
    struct piece *pieces = sv_alloc((n + 1) * sizeof *pieces);
    struct piece *spare = sv_alloc(SV_SORT_SPARE(n) * sizeof *spare);
    n = 0;
    for (size_t i = 0; i < n_tracks; i++)
        n += add_pieces(t, tracks[i], pieces + n);
    sort_pieces(pieces, n, spare, NULL);
    subtract_pieces(pieces, n, self);
    free(pieces);
    free(spare);
}

/* The track whose slices a lane holds: lanes may have lanes. */
static sv_track lane_home(const struct sv_dict *d, sv_track track)
{
    for (unsigned steps = 0; steps < 64 && d->tracks[track].kind == SV_TRACK_LANE; steps++) {
        if (d->tracks[track].parent == 0)
            break;
        track = d->tracks[track].parent;
    }
    return track;
}

struct homed {
    sv_track home, track;
};

static int by_home(const void *a, const void *b)
{
    const struct homed *x = a, *y = b;
    if (x->home != y->home)
        return x->home < y->home ? -1 : 1;
    return x->track < y->track ? -1 : x->track > y->track;
}

static void subtract_group(const struct sv_trace *t, const struct homed *group, size_t n,
                           int64_t *self)
{
    const struct sv_trace_track *k = &t->tracks[group[0].track];
    if (n == 1 && !k->has_overlap) {
        subtract_nested(t, k, self);
        return;
    }
    sv_track *tracks = sv_alloc(n * sizeof *tracks);
    for (size_t i = 0; i < n; i++)
        tracks[i] = group[i].track;
    subtract_overlapping(t, tracks, n, self);
    free(tracks);
}

/* ---- by all threads ---- */

struct subtracting {
    const struct sv_trace *t;
    int64_t *self;
    const struct homed *homed;
    size_t n_homed, n_shares;
};

static void fill_share(void *ctx, size_t i)
{
    const struct subtracting *x = ctx;
    size_t row, end;
    sv_workers_share(x->t->slices.n, i, x->n_shares, &row, &end);
    for (; row < end; row++)
        x->self[row] = length(x->t, row);
}

/* The groups that begin in a share of the tracks. Each has rows of its own. */
static void subtract_share(void *ctx, size_t i)
{
    const struct subtracting *x = ctx;
    const struct homed *h = x->homed;
    size_t at, stop;
    sv_workers_share(x->n_homed, i, x->n_shares, &at, &stop);
    while (at > 0 && at < stop && h[at].home == h[at - 1].home)
        at++;
    for (size_t end; at < stop; at = end) {
        for (end = at + 1; end < x->n_homed && h[end].home == h[at].home; end++) {}
        subtract_group(x->t, h + at, end - at, x->self);
    }
}

int64_t *sv_self_times(const struct sv_trace *t)
{
    int64_t *self = sv_alloc_aligned((t->slices.n + 1) * sizeof *self, 64);
    sv_advise_huge(self, (t->slices.n + 1) * sizeof *self);
    struct homed *homed = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *homed);
    size_t n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++)
        if (t->tracks[k].first < t->tracks[k].end)
            homed[n++] = (struct homed){lane_home(t->dict, k), k};
    qsort(homed, n, sizeof *homed, by_home);
    struct sv_workers *w = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    size_t threads = sv_workers_count(w);
    struct subtracting x = {t, self, homed, n, threads == 1 ? 1 : SHARES * threads};
    sv_workers_each(w, x.n_shares, fill_share, &x);
    sv_workers_each(w, x.n_shares, subtract_share, &x);
    sv_workers_free(w);
    free(homed);
    return self;
}

/* ---- one slice ---- */

static int64_t self_of_nested(const struct sv_trace *t, uint32_t slice)
{
    const struct sv_slices *c = &t->slices;
    int64_t self = length(t, slice), end_ns = c->ts_ns[slice] + self;
    uint32_t last = t->tracks[c->track[slice]].end;
    for (uint32_t row = slice + 1; row < last && c->ts_ns[row] <= end_ns; row++)
        if (c->parent[row] == slice)
            self -= length(t, row);
    return self;
}

struct pieces {
    struct piece *items;
    size_t n, cap;
};

/* The first row of a track that begins at `ts_ns` or later. */
static uint32_t first_from(const struct sv_trace *t, const struct sv_trace_track *k, int64_t ts_ns)
{
    uint32_t low = k->first, high = k->end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->slices.ts_ns[middle] < ts_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What began before the slice encloses nothing that the slice encloses more closely: it is left
 * out. */
static int64_t self_of_overlapping(const struct sv_trace *t, sv_track home, uint32_t slice)
{
    struct piece own = piece_of(t, slice);
    struct pieces p = {0};
    int64_t self = length(t, slice);
    for (sv_track k = 0; k < t->n_tracks; k++) {
        const struct sv_trace_track *of = &t->tracks[k];
        if (of->first == of->end || lane_home(t->dict, k) != home)
            continue;
        for (uint32_t row = first_from(t, of, own.ts_ns); row < of->end; row++) {
            if (t->slices.ts_ns[row] > own.end_ns)
                break;
            SV_APPEND(p.items, p.n, p.cap) = piece_of(t, row);
        }
    }
    struct piece *spare = sv_alloc(SV_SORT_SPARE(p.n) * sizeof *spare);
    int64_t *lengths = sv_alloc((p.n + 1) * sizeof *lengths);
    sort_pieces(p.items, p.n, spare, NULL);
    size_t at = 0;
    for (size_t i = 0; i < p.n; i++) {
        at = p.items[i].row == slice ? i : at;
        p.items[i].row = (uint32_t)i;
    }
    lengths[at] = self;
    subtract_pieces(p.items, p.n, lengths);
    self = lengths[at];
    free(lengths);
    free(spare);
    free(p.items);
    return self;
}

int64_t sv_self_time(const struct sv_trace *t, uint32_t slice)
{
    sv_track track = t->slices.track[slice], home = lane_home(t->dict, track);
    bool is_alone = !t->tracks[track].has_overlap && track == home;
    for (sv_track k = 0; is_alone && k < t->n_tracks; k++)
        is_alone = k == track || t->tracks[k].first == t->tracks[k].end ||
                   lane_home(t->dict, k) != home;
    return is_alone ? self_of_nested(t, slice) : self_of_overlapping(t, home, slice);
}

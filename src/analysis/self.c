/* Self time for every slice, in one pass over the rows.
 *
 * Used by the statistics, the SQL column self_dur, diff and the flame graph. On tracks whose slices nest, children of one
 * parent do not overlap and their durations are subtracted as they are. Where slices overlap, and on a track with
 * lanes, the children of a parent come in the order of time, so the time already covered is one number per parent. */
#include "analysis/self.h"

#include "core/base/mem.h"
#include "core/base/sort.h"

#include <stdlib.h>
#include <string.h>

static int64_t length(const struct sv_trace *t, uint64_t row)
{
    int64_t dur = t->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? t->last_ns - t->slices.ts_ns[row] : dur;
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

/* The latest piece that begins no later and ends no earlier: each piece remembers its encloser, so the way up is short. */
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
        /* Every encloser up the chain is covered by it through its child; a piece that only overlaps its elder sibling
         * covers what that one left. */
        if (up == SV_NO_ROW)
            continue;
        int64_t from = p[i].ts_ns > p[up].covered_ns ? p[i].ts_ns : p[up].covered_ns;
        if (p[i].end_ns > from) {
            self[p[up].row] -= p[i].end_ns - from;
            p[up].covered_ns = p[i].end_ns;
        }
    }
}

static size_t add_pieces(const struct sv_trace *t, sv_track track, struct piece *to)
{
    const struct sv_trace_track *k = &t->tracks[track];
    for (uint32_t row = k->first; row < k->end; row++) {
        int64_t ts = t->slices.ts_ns[row];
        *to++ = (struct piece){ts, ts + length(t, row), ts, row, SV_NO_ROW};
    }
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

int64_t *sv_self_times(const struct sv_trace *t)
{
    int64_t *self = sv_alloc_aligned((t->slices.n + 1) * sizeof *self, 64);
    sv_advise_huge(self, (t->slices.n + 1) * sizeof *self);
    for (uint64_t row = 0; row < t->slices.n; row++)
        self[row] = length(t, row);
    struct homed *homed = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *homed);
    size_t n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++)
        if (t->tracks[k].first < t->tracks[k].end)
            homed[n++] = (struct homed){lane_home(t->dict, k), k};
    qsort(homed, n, sizeof *homed, by_home);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && homed[end].home == homed[i].home; end++) {}
        subtract_group(t, homed + i, end - i, self);
    }
    free(homed);
    return self;
}

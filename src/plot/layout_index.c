/* The layout's index: a summary of every 64 slices of a track, and of every 4,096: the lines that they lie on, and the longest of them.
 *
 * Made once per trace, used by every layout of it. Costs one pass over two columns and less than half a byte per slice. */
#include "plot/layout_impl.h"

#include "core/base/mem.h"

#include <stdlib.h>

static uint32_t line_of(uint16_t depth)
{
    return depth < SV_LINES_MAX ? depth : SV_LINES_MAX - 1;
}

static void summarise_track(struct sv_layout_index *x, sv_track track)
{
    const struct sv_trace_track *k = &x->trace->tracks[track];
    const int64_t *dur = x->trace->slices.dur_ns;
    const uint16_t *lines = x->rows->track_lines[track];
    const uint16_t *depth = lines ? lines : x->trace->slices.depth + k->first;
    for (uint64_t row = (k->first + 63u) & ~63ull; row + 64 <= k->end; row += 64) {
        const uint16_t *d = depth + (row - k->first);
        uint64_t mask = 0, most = (uint64_t)dur[row];
        unsigned longest = 0;
        for (unsigned i = 0; i < 64; i++) {
            mask |= 1ull << line_of(d[i]);
            longest = (uint64_t)dur[row + i] > most ? i : longest;
            most = (uint64_t)dur[row + i] > most ? (uint64_t)dur[row + i] : most;
        }
        x->blocks->small[row >> 6] =
            (struct sv_layout_block){mask, most, (uint32_t)row + longest, line_of(d[longest])};
    }
}

/* A large block may hold rows of several tracks, then nobody asks for it. */
static void summarise(struct sv_layout_index *x)
{
    const struct sv_trace *t = x->trace;
    struct sv_layout_blocks *b = x->blocks = sv_alloc(sizeof *b);
    size_t n = (size_t)(t->slices.n >> 6), n_large = n >> 6;
    b->small = sv_alloc((n + 1) * sizeof *b->small);
    b->large = sv_alloc((n_large + 1) * sizeof *b->large);
    for (sv_track track = 1; track < t->n_tracks; track++)
        summarise_track(x, track);
    for (size_t i = 0; i < n_large; i++) {
        struct sv_layout_block large = b->small[i << 6];
        for (size_t j = (i << 6) + 1; j < (i + 1) << 6; j++) {
            uint64_t lines = large.lines | b->small[j].lines;
            if (b->small[j].dur_ns > large.dur_ns)
                large = b->small[j];
            large.lines = lines;
        }
        b->large[i] = large;
    }
}

struct sv_layout_index *sv_layout_index_new(const struct sv_trace *t)
{
    struct sv_layout_index *x = sv_alloc(sizeof *x);
    x->trace = t;
    x->rows = sv_track_rows_new(t);
    summarise(x);
    return x;
}

void sv_layout_index_free(struct sv_layout_index *x)
{
    if (!x)
        return;
    sv_track_rows_free(x->rows);
    free(x->blocks->small);
    free(x->blocks->large);
    free(x->blocks);
    free(x);
}

/* Records of another process, copied before they are read: it may change them while we look, or
 * take the memory away.
 *
 * One window serves all rings of a reader, one after the other. What a batch refers to is in the
 * window, so that it moves only between batches. */
#pragma once

#include "sdk/drain/drain.h"

struct sv_ring_view {
    uint8_t *bytes;                   /* made at first use */
    const struct sv_drain_ring *ring; /* whose records these are */
    uint64_t from, to;                /* positions */
};

void sv_ring_view_fini(struct sv_ring_view *w);
/* Does it show the record at r->pos? Positions are whole words. */
bool sv_ring_view_has(const struct sv_ring_view *w, const struct sv_drain_ring *r);
void sv_ring_view_move(struct sv_ring_view *w,
                       const struct sv_drain_ring *r); /* to r->pos, which is before r->end */

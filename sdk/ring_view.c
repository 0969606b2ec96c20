/* The window on other processes' rings: see ring_view.h. Called by the ring source. */
#include "sdk/ring_view.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void sv_ring_view_fini(struct sv_ring_view *w)
{
    free(w->bytes);
    *w = (struct sv_ring_view){0};
}

bool sv_ring_view_has(const struct sv_ring_view *w, const struct sv_drain_ring *r)
{
    return w->ring == r && r->pos >= w->from && r->pos < w->to &&
           (w->to == r->end || w->to - r->pos >= SV_RECORD_BYTES_MAX);
}

/* The ring is mapped twice in a row: what runs over its end is one piece. */
void sv_ring_view_move(struct sv_ring_view *w, const struct sv_drain_ring *r)
{
    uint64_t n = r->end - r->pos < SV_RING_VIEW_BYTES ? r->end - r->pos : SV_RING_VIEW_BYTES;
    if (!w->bytes)
        w->bytes = sv_realloc(NULL, SV_RING_VIEW_BYTES);
    memcpy(w->bytes, r->data + (r->pos & (r->size - 1)), (size_t)n);
    w->ring = r;
    w->from = r->pos;
    w->to = r->pos + n;
}

/* The window on other processes' rings: see ring_view.h. Called by the ring source. */
#include "sdk/ring/ring_view.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { STEP = 16 << 10 }; /* small enough to be read from the nearest cache afterwards */

void sv_ring_view_fini(struct sv_ring_view *w)
{
    free(w->bytes);
    *w = (struct sv_ring_view){0};
}

/* Of the record at `pos`, as it says; the window shows its first word. */
static uint64_t bytes_at(const struct sv_ring_view *w, uint64_t pos)
{
    uint64_t word;
    memcpy(&word, w->bytes + (pos - w->from), sizeof word);
    return sv_word_bytes(word);
}

bool sv_ring_view_has(const struct sv_ring_view *w, const struct sv_drain_ring *r)
{
    return w->ring == r && r->pos >= w->from && r->pos < w->to &&
           (w->to == r->end || bytes_at(w, r->pos) <= w->to - r->pos);
}

/* The ring is mapped twice in a row: what runs over its end is one piece. */
static void copy(struct sv_ring_view *w, const struct sv_drain_ring *r, uint64_t n)
{
    n = r->end - r->pos < n ? r->end - r->pos : n;
    memcpy(w->bytes, r->data + (r->pos & (r->size - 1)), (size_t)n);
    w->to = r->pos + n;
}

void sv_ring_view_move(struct sv_ring_view *w, const struct sv_drain_ring *r)
{
    if (!w->bytes)
        w->bytes = sv_realloc(NULL, SV_RECORD_BYTES_MAX);
    w->ring = r;
    w->from = r->pos;
    copy(w, r, STEP);
    if (bytes_at(w, r->pos) > STEP)
        copy(w, r, SV_RECORD_BYTES_MAX);
}

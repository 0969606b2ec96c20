/* The slices that a thread opened and closed itself, as far as a slice that was measured elsewhere
 * could cross them.
 *
 *     sv_own_begin(&r->own, ns);  sv_own_end(&r->own, ns);          // its begins and ends, as they
 *         come
 *     if (sv_own_crosses(&r->own, begin_ns, end_ns, now_ns)) …      // give the other slice a lane
 *         of its own
 *
 * Kept are the begins of what is open and, for each of them, the spans of what was closed in it.
 * That is bounded: past it the answer is "crosses", which costs a lane and is never wrong. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SV_OWN_OPEN = 32, SV_OWN_CLOSED = 512 }; /* powers of two */

struct sv_own_spans {
    uint32_t depth;      /* open slices; INT32_MAX: unknown, in a ring that is read on */
    uint32_t n_closed;   /* in all open ones together */
    uint32_t known_from; /* what was closed before it is forgotten */
    struct {
        int64_t ns;
        uint32_t n_closed; /* before it */
    } open[SV_OWN_OPEN];   /* by depth */
    struct {
        int64_t begin_ns, end_ns;
    } closed[SV_OWN_CLOSED];
};

static inline void sv_own_begin(struct sv_own_spans *o, int64_t ns)
{
    uint32_t at = o->depth++ % SV_OWN_OPEN;
    o->open[at].ns = ns;
    o->open[at].n_closed = o->n_closed;
}

/* There must be an open one. */
static inline void sv_own_end(struct sv_own_spans *o, int64_t ns)
{
    uint32_t at = --o->depth % SV_OWN_OPEN, n = o->open[at].n_closed;
    if (n < o->known_from)
        o->known_from = n;
    if (n >= SV_OWN_CLOSED && n - SV_OWN_CLOSED + 1 > o->known_from)
        o->known_from = n - SV_OWN_CLOSED + 1;
    o->closed[n % SV_OWN_CLOSED].begin_ns = o->open[at].ns;
    o->closed[n % SV_OWN_CLOSED].end_ns = ns;
    o->n_closed = n + 1;
}

/* Whether [begin_ns, end_ns], recorded at now_ns, does not nest with them, or may not. Where times
 * are equal, what was recorded first comes first. */
static inline bool sv_own_crosses(const struct sv_own_spans *o, int64_t begin_ns, int64_t end_ns,
                                  int64_t now_ns)
{
    if (end_ns > now_ns || (o->depth > 0 && begin_ns < o->open[(o->depth - 1) % SV_OWN_OPEN].ns))
        return true;
    for (uint32_t i = o->n_closed; i > o->known_from; i--) {
        int64_t x = o->closed[(i - 1) % SV_OWN_CLOSED].begin_ns;
        int64_t y = o->closed[(i - 1) % SV_OWN_CLOSED].end_ns;
        if (y <= begin_ns)
            return false;
        if (x <= begin_ns || (x <= end_ns && end_ns < y))
            return true;
    }
    return o->known_from > 0 || o->depth > INT32_MAX / 2;
}

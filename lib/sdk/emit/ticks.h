/* From the counter to the trace clock: pairs read together, and lines between neighbouring pairs.
 *
 * The line is continuous and rising, so that times of one thread keep their order; its error is the
 * width of the bracket in which a pair was read, a few tens of nanoseconds, however long the
 * run. */
#pragma once

#include "core/stream/clock.h"
#include "sdk/ring/session_layout.h"

#include <stdbool.h>
#include <stddef.h>

__extension__ typedef unsigned __int128 sv_u128;
__extension__ typedef __int128 sv_i128;

struct sv_ticks {
    struct sv_tick first;
    struct sv_tick at[SV_TICKS_MAX]; /* rising */
    size_t n;
    /* The line in use: boot = base_ns + (raw - base_raw) × mult / 2^32 for raw in [base_raw,
     * base_raw + span). */
    uint64_t base_raw, span, mult;
    int64_t base_ns;
};

enum sv_counter sv_ticks_counter(void); /* which one this machine offers; asks once */
uint64_t sv_ticks_raw(enum sv_counter counter);
struct sv_tick sv_ticks_read(enum sv_counter counter);
/* All clocks at once, for the file. */
void sv_ticks_snapshot(struct sv_snapshot *s, const struct sv_tick *t);

bool sv_ticks_add(struct sv_ticks *t, const struct sv_tick *tick); /* false: it is no reading */
int64_t sv_ticks_find(struct sv_ticks *t, uint64_t raw); /* the slow way: chooses the line */

static inline int64_t sv_ticks_ns(struct sv_ticks *t, uint64_t raw)
{
    uint64_t d = raw - t->base_raw;
    if (__builtin_expect(d >= t->span, 0))
        return sv_ticks_find(t, raw);
    return t->base_ns + (int64_t)(uint64_t)((sv_u128)d * t->mult >> 32);
}

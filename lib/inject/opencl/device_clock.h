/* A device's clock tied to the host's by bracketing: each reading of the device's clock between two
 * readings of the host's bounds the distance of the two, and the bounds of many readings overlap in
 * a narrow one. Pure arithmetic; the caller locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cl_clock {
    bool is_set;
    int64_t low, high; /* host minus device lies between them … */
    int64_t at;        /* … at this time of the host */
    uint64_t readings, jumps;
};

/* Two clocks of one machine differ by less: what time spent away from a reading adds to the
 * uncertainty. */
#define CL_CLOCK_DRIFT_PPM 50

/* Clocks further apart (146 years) are no clocks. */
#define CL_CLOCK_FAR (INT64_MAX / 2)

/* false: it says nothing (the bracket is not one). A reading that contradicts the earlier ones
 * replaces them: a jump. */
static inline bool cl_clock_add(struct cl_clock *c, int64_t before, uint64_t device, int64_t after)
{
    if (after < before)
        return false;
    int64_t low = (int64_t)((uint64_t)before - device);
    if (low > CL_CLOCK_FAR || low < -CL_CLOCK_FAR || after - before > CL_CLOCK_FAR)
        return false;
    int64_t high = low + (after - before);
    c->readings++;
    if (c->is_set) {
        int64_t away = after > c->at ? after - c->at : c->at - after;
        int64_t drift = away / 1000000 * CL_CLOCK_DRIFT_PPM + 1;
        int64_t old_low = c->low - drift, old_high = c->high + drift;
        if (old_low > high || old_high < low) {
            c->jumps++;
        } else {
            low = old_low > low ? old_low : low;
            high = old_high < high ? old_high : high;
        }
    }
    *c = (struct cl_clock){true, low, high, after, c->readings, c->jumps};
    return true;
}

/* The middle of what is known; without a reading the device's time as it is. */
static inline int64_t cl_clock_host(const struct cl_clock *c, uint64_t device)
{
    return (int64_t)(device + (uint64_t)c->low + (uint64_t)(c->high - c->low) / 2);
}

static inline int64_t cl_clock_uncertainty(const struct cl_clock *c)
{
    return (c->high - c->low + 1) / 2;
}

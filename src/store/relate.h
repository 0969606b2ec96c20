/* Relating clocks: how the times of several inputs come onto one axis, or why they cannot.
 *
 * The wall clock (REALTIME) is the same everywhere; every other clock belongs to one machine, and
 * SV_CLOCK_UNKNOWN only to its input. Inputs of one machine share their snapshots: one that knows
 * only MONOTONIC is related by what another one of that machine read. */
#pragma once

#include "core/base/err.h"
#include "core/stream/clock.h"

struct sv_relate_input {
    const char *name; /* for messages: the path */
    const struct sv_clocks *clocks;
    uint32_t machine; /* equal numbers: the same machine, since its last boot */
    const char *host; /* for messages; NULL: unknown */
    /* Added to its times: as a correction when its clock can be related, else to the times as they
     * are. */
    bool has_offset;
    int64_t offset_ns;
};

struct sv_clock_point {
    int64_t from_ns, to_ns;
};

/* From the clock of one input to the common one: linear between the points, by the nearest one
 * outside. Never goes backwards. */
struct sv_shift {
    /* both columns grow; none: the clock is the common one already */
    struct sv_clock_point *points;
    size_t n;
    int64_t offset_ns;
    int64_t uncertainty_ns; /* of the snapshots it was made from, -1 unknown */
    bool is_assumed; /* nothing relates it: the caller allowed to take its times as they are */
    size_t at;       /* the segment used last: times come in order */
};

/* False: there is no such time on the common clock. */
bool sv_shift_apply(struct sv_shift *s, int64_t ns, int64_t *out);
void sv_shift_fini(struct sv_shift *s);

/* Offsets between two clocks that differ by no more than this over the whole time are taken as one:
 * durations stay exact. */
#define SV_RELATE_STEADY_NS ((int64_t)1000)

/* Fills shifts[n], the clock that they lead to, and the number of the machine whose it is (unless
 * it is the wall clock). Refuses with SV_EUSAGE and an explanation (which inputs, which clocks,
 * what to do) when some input cannot be related, unless `assume` is set. */
int sv_relate(const struct sv_relate_input *inputs, size_t n, bool assume, struct sv_shift *shifts,
              uint32_t *common_clock, uint32_t *machine, struct sv_err *err);

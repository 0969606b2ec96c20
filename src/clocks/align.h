/* Alignment by collectives: an estimate of how the clocks of hosts relate, where nothing was
 * measured.
 *
 * A collective that waits for all of its members ends on all of them at nearly the same time, so
 * the differences between its ends on two hosts scatter around the offset of their clocks. Their
 * median in windows of time is the estimate. It has no bound: a host that always leaves later by
 * some microseconds looks as if its clock were ahead by them. So it is only made when it is asked
 * for, and says of itself what it is.
 *
 *     sv_ends_see() for each event of each input → sv_align(), which gives relations (relation.h,
 *     is_estimate) to the first host */
#pragma once

#include "clocks/relation.h"
#include "core/base/report.h"
#include "core/stream/dict.h"

/* The end of one collective on one input. */
struct sv_end {
    uint64_t key; /* of group, number and operation: the same on all ranks */
    int64_t end_ns;
};

/* Of an input: all, or those whose key ends in zeros, so that all inputs keep the same ones.
 * Zeroed: none. */
struct sv_ends {
    struct sv_end *all;
    size_t n, cap;
    uint64_t mask;
    sv_str category, op, group, seq; /* strings of the dictionary, as of n_searched */
    uint32_t n_searched;
};

void sv_ends_see(struct sv_ends *ends, const struct sv_dict *dict, const struct sv_event *e);
void sv_ends_fini(struct sv_ends *ends);

struct sv_align_input {
    const char *name;
    struct sv_clock_owner owner; /* whose clock; inputs with the same one are of one host */
    const struct sv_clocks *clocks;
    struct sv_ends *ends; /* sorted here */
};

/* Relations of all hosts that share collectives with the first one, over others if need be; those
 * that do not are named in the report. `clock` is the one that the rounds are on: BOOTTIME, or the
 * wall clock where not all inputs have that; each host's own. SV_EUSAGE: an input has neither. */
int sv_align(const struct sv_align_input *inputs, size_t n, struct sv_report *report,
             uint32_t *clock, struct sv_relation **out, size_t *n_out, struct sv_err *err);

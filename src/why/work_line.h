/* Kinds of work along the line of time: spans with a kind and a rank. Where spans overlap the one
 * of the lowest rank counts.
 *
 *     struct sv_work_line l = {0};
 *     sv_work_line_add(&l, from_ns, to_ns, kind, rank);     // in any order
 *     sv_work_line_settle(&l);
 *     sv_work_line_sum(&l, from_ns, to_ns, sums);           // adds the time of each kind in that
 *                                                           window
 *     sv_work_line_fini(&l);
 *
 * Settling sorts; a sum is two binary searches, however much the window covers. */
#ifndef SV_WHY_WORK_LINE_H
#define SV_WHY_WORK_LINE_H

#include "why/steps.h"

struct sv_work_span {
    int64_t from_ns, to_ns;
    uint32_t rank;
    uint8_t kind; /* enum sv_work */
};

struct sv_work_line {
    struct sv_work_span *spans;
    size_t n, cap;
    int64_t (*before)[SV_N_WORK]; /* of each span: the time of each kind before it; n + 1 of them */
};

void sv_work_line_fini(struct sv_work_line *l); /* a zeroed struct is an empty line */
void sv_work_line_add(struct sv_work_line *l, int64_t from_ns, int64_t to_ns, uint8_t kind,
                      uint32_t rank);
void sv_work_line_settle(struct sv_work_line *l);
void sv_work_line_sum(const struct sv_work_line *l, int64_t from_ns, int64_t to_ns,
                      int64_t sums[SV_N_WORK]);

#endif

/* The difference of two traces: slices matched by track path, the names of their parents, and their
 * own name.
 *
 * Numbers in track paths and in step markers are ignored, since pids, tids and step numbers differ
 * from run to run. Whether durations differ by more than chance is decided by the Mann-Whitney rank
 * test (two-sided, normal approximation, corrected for ties). */
#pragma once

#include "core/base/buf.h"
#include "store/trace.h"

enum sv_diff_state { SV_DIFF_SAME, SV_DIFF_CHANGED, SV_DIFF_ADDED, SV_DIFF_REMOVED };
extern const char *const sv_diff_state_names[];

struct sv_diff_side {
    uint64_t count;
    int64_t total_ns, self_ns;
    double p50_ns, p99_ns;
    uint32_t row; /* the first such slice; SV_NO_ROW: none */
};

struct sv_diff_row {
    enum sv_diff_state state;
    struct sv_diff_side side[2]; /* A, B */
    double p;                    /* of the rank test: 1 when one side has too few */
    double change;               /* total per step of B over A, minus 1; 0 when a side is empty */
};

struct sv_diff_options {
    double threshold; /* changes of the total below this fraction are `same` */
    double alpha;     /* and those whose p is not below this */
    bool ignore_steps;
};

struct sv_diff {
    struct sv_diff_row *rows; /* what differs most in total time first */
    size_t n;
    uint64_t steps[2]; /* totals were divided by these; 1 and 1 without steps */
    int64_t span_ns[2];
};

void sv_diff_make(struct sv_diff *d, const struct sv_trace *a, const struct sv_trace *b,
                  const struct sv_diff_options *options);
void sv_diff_fini(struct sv_diff *d);

/* The names above a slice, outermost first, joined by '/'. */
void sv_diff_parents(const struct sv_trace *t, uint32_t row, struct sv_buf *to);

/* p of the rank test of two samples, which are sorted by it. */
double sv_rank_test(int64_t *a, size_t n_a, int64_t *b, size_t n_b);

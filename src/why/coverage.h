/* What a trace could show: which kinds of facts its recording had, and with which limits. Asked
 * before anything is said about what is not in the trace.
 *
 *     struct sv_coverage c;
 *     sv_coverage_of(&c, trace);
 *     if (c.parts[SV_COVERAGE_STATES].is == SV_COVERAGE_HAS_ALL) …
 *
 * Recordings say it in their metadata (why/words.h). In older ones, and in traces of others, a part
 * whose events are there counts as recorded, and of the rest nothing is known. A merged trace has
 * what its files say, together. Cost: one pass over the categories. */
#ifndef SV_WHY_COVERAGE_H
#define SV_WHY_COVERAGE_H

#include "store/trace.h"
#include "why/words.h"

enum sv_coverage_is {
    SV_COVERAGE_UNKNOWN,
    SV_COVERAGE_HAS_NONE, /* it was not recorded */
    SV_COVERAGE_HAS_SOME, /* in some of the files that were merged */
    SV_COVERAGE_HAS_ALL   /* it was recorded, within the limits below */
};

/* Of several files the widest limits, and the path of the last. Texts are those of the trace. */
struct sv_coverage_limits {
    enum sv_coverage_is is;
    bool is_stated;   /* by the metadata, not by the presence of events */
    int64_t min_ns;   /* shorter ones are left out; 0: none */
    int64_t every_ns; /* the interval of samples; 0: none */
    /* For so long nothing, or less than the limits say, was recorded (--budget), of of_ns. */
    int64_t off_ns, less_ns, of_ns;
    struct sv_text by;   /* "kernel", "proc", "program"; empty: not known */
    struct sv_text only; /* "files,maps": groups of system calls; empty: all */
    struct sv_text path; /* only files below it; empty: all */
};

struct sv_coverage {
    struct sv_coverage_limits parts[SV_N_COVERAGE_PARTS]; /* by enum sv_coverage_part */
};

void sv_coverage_of(struct sv_coverage *c, const struct sv_trace *t);
/* By the metadata alone. */
void sv_coverage_stated(struct sv_coverage *c, const struct sv_dict *d);
/* States are looks at /proc, not the kernel's switches: sums are right, the order between two looks
 * is not known. */
bool sv_coverage_is_looked(const struct sv_dict *d);

extern const char *const sv_coverage_names[SV_N_COVERAGE_PARTS]; /* "states" … */

#endif

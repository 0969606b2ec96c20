/* The report on waits: where the time of each step, epoch, phase or thread went, and what is behind
 * the longest waits.
 *
 *     struct sv_wait_report r;
 *     sv_wait_report_make(&r, trace, &(struct sv_wait_options){.limit = 10});
 *     … r.spans[i].class_ns[SV_TIME_DATA] …
 *     sv_wait_report_fini(&r);
 *
 * A span is a unit of the ledger (why/ledger.h), and its classes are sums over the ledger's: every
 * nanosecond belongs to one class. docs/why.md has the rules. */
#ifndef SV_WHY_WAIT_H
#define SV_WHY_WAIT_H

#include "why/critical_path.h"
#include "why/ledger.h"

/* clang-format off */
/* CLASS(member, text) */
#define SV_WAIT_CLASSES(CLASS) \
    CLASS(COMPUTE, "compute")  \
    CLASS(DATA, "data")        \
    CLASS(GPU, "gpu")          \
    CLASS(LOCK, "lock")        \
    CLASS(DISK, "disk")        \
    CLASS(CPU, "cpu")          \
    CLASS(RANK, "rank")        \
    CLASS(PEER, "peer")        \
    CLASS(QUEUE, "queue")      \
    CLASS(SLEEP, "sleep")      \
    CLASS(OTHER, "other")
/* clang-format on */
enum sv_wait_class {
#define SV_WAIT_CLASS_MEMBER(member, text) SV_TIME_##member,
    SV_WAIT_CLASSES(SV_WAIT_CLASS_MEMBER)
#undef SV_WAIT_CLASS_MEMBER
        SV_N_WAIT_CLASSES
};
extern const char *const sv_wait_class_names[SV_N_WAIT_CLASSES];

struct sv_wait_span {
    enum sv_unit_kind kind;
    int64_t number; /* of a step; else -1 */
    uint32_t row;   /* the marker; SV_NO_ROW: none */
    uint32_t thread;
    int64_t ts_ns, dur_ns;
    int64_t class_ns[SV_N_WAIT_CLASSES]; /* adds up to dur_ns */
    int64_t gil_ns;                      /* the part of LOCK that is the interpreter lock */
    int64_t fault_ns;                    /* the part of DISK that is page faults on mappings */
    int64_t copy_ns;                     /* the part of GPU that is the host in a copy */
    int64_t longest_ns;                  /* wait */
    enum sv_wait_class longest_class;
};

/* What a wait ends at: the part of its chain that takes most of its time. */
struct sv_wait_cause {
    sv_track track;
    enum sv_segment_kind kind;
    enum sv_wait_reason reason;
    uint32_t row;        /* a call or slice; SV_NO_ROW: none */
    struct sv_text path; /* empty: none */
    struct sv_text last; /* where there is none: the data file that the thread used last before */
    int64_t ts_ns;       /* of its longest part */
    int64_t ns;
    uint32_t block; /* the longest block request of that process meanwhile; SV_NO_ROW: none */
};

struct sv_wait {
    uint32_t span;
    int64_t ts_ns, dur_ns;
    enum sv_wait_class class;
    enum sv_wait_reason reason;
    uint32_t row, call; /* state and call of the part that lasts longest; SV_NO_ROW: none */
    struct sv_path chain;
    struct sv_wait_cause cause;
};

/* Reading of the same data files for the first time, the second time … */
struct sv_wait_pass {
    uint64_t files, bytes, missed_bytes;
    int64_t read_ns, from_ns, to_ns;
};
#define SV_WAIT_PASSES 8
#define SV_WAIT_SMALL  16384

#define SV_WAIT_ADVICES 6
struct sv_wait_advice {
    const char *what;
    char evidence[240];
    const char *sure; /* "high", "medium", "low" */
};

struct sv_wait_report {
    const struct sv_trace *trace;
    struct sv_ledger ledger;
    struct sv_wait_span *spans; /* by kind as they come, then time */
    size_t n_spans;
    struct sv_wait *waits; /* the longest first */
    size_t n_waits;
    struct sv_wait_span
        total; /* of steps and the time between them, or of all spans of the first kind */
    enum sv_unit_kind kind;           /* what `total` is made of */
    uint64_t small_reads, file_reads; /* of data files; small: less than SV_WAIT_SMALL bytes */
    int64_t small_reads_ns;
    struct sv_wait_pass passes[SV_WAIT_PASSES];
    size_t n_passes;
    struct sv_wait_advice advice[SV_WAIT_ADVICES];
    size_t n_advice;
    bool is_assumed; /* no states are recorded: waits follow from system calls and slices alone */
};

struct sv_wait_options {
    struct sv_ledger *ledger; /* made already: the report takes it; NULL: it makes one */
    const char *marker;       /* of steps; NULL: the usual ones */
    int64_t step;             /* only the step of this number; -1: all */
    size_t n_waits;           /* so many of the longest; 0: none */
};

void sv_wait_report_make(struct sv_wait_report *r, const struct sv_trace *t,
                         const struct sv_wait_options *o);
void sv_wait_report_fini(struct sv_wait_report *r);

/* ---- the parts, for each other ---- */

void sv_wait_find_passes(struct sv_wait_report *r);
void sv_wait_explain(struct sv_wait_report *r, size_t n);
void sv_wait_advise(struct sv_wait_report *r);

#endif

/* Training steps: found by their markers, taken apart by kind of work.
 *
 * A step is a slice whose name says so (ProfilerStep#N, "step 3", "Iteration 7", …, or what the
 * caller names), or the time between two instants of such a name; where there are none, the time of
 * all slices of a process whose argument `step` has one value. The time of a step is divided
 * among the kinds of work exactly (why/steps_work.c), by the ledger and by the names of slices. How
 * long devices were busy is a separate figure. */
#ifndef SV_WHY_STEPS_H
#define SV_WHY_STEPS_H

#include "store/trace.h"

enum sv_work {
    SV_WORK_OTHER,
    SV_WORK_DATA,
    SV_WORK_COPY,
    SV_WORK_FORWARD,
    SV_WORK_BACKWARD,
    SV_WORK_OPTIMIZER,
    SV_WORK_COMM,
    SV_WORK_CHECKPOINT,
    SV_WORK_IDLE,     /* it waits */
    SV_WORK_DISK,     /* in calls on files, and nothing names it */
    SV_WORK_UNTRACED, /* nothing says what happened */
    SV_N_WORK
};
extern const char *const sv_work_names[SV_N_WORK];

/* What a name says, beyond the kinds that a step is divided into: nothing, or waiting for a
 * device. */
enum { SV_WORK_UNKNOWN = SV_N_WORK, SV_WORK_WAIT, SV_N_WORK_KINDS };
uint8_t *sv_work_of_strings(const struct sv_dict *d); /* by string; free() it */

enum sv_device_work { SV_DEVICE_KERNEL, SV_DEVICE_COPY, SV_DEVICE_COMM, SV_N_DEVICE };
extern const char *const sv_device_names[SV_N_DEVICE];

struct sv_step {
    uint32_t row; /* the marker, or the first slice on its track */
    sv_track track;
    int64_t number; /* from its name, else counted from 0 on its track */
    int64_t ts_ns, dur_ns;
    int64_t work_ns[SV_N_WORK]; /* adds up to dur_ns */
    int64_t device_ns
        [SV_N_DEVICE]; /* at least one such piece of work was running, any device of the process */
    bool is_outlier;
    bool is_slow_first; /* the first of its track, and by SV_SLOW_FIRST longer than the others */
    /* of the tracks with a step of this number the one that works longest, by a tenth over the
     * middle one */
    bool is_straggler;
};
#define SV_SLOW_FIRST 1.5

struct sv_steps {
    struct sv_step *steps; /* by track, then time */
    size_t n, n_tracks;
    const char *marker; /* the glob that found them */
    /* They were found by an argument: the rows are no markers, but the first slices of the steps */
    bool has_no_markers;
    double median_ns, limit_ns; /* of durations; outliers are above the limit */
    /* the first step over the median of its track's others; 0: fewer than three */
    double first_ratio;
};

/* marker: a glob, or NULL: what is usual. No steps: n is 0. */
void sv_steps_find(struct sv_steps *s, const struct sv_trace *t, const char *marker);
/* Outliers, slow first steps and stragglers of steps that lie by track, then time; n and n_tracks
 * are set. sv_steps_find() does it, too. */
void sv_steps_judge(struct sv_steps *s);
/* Without its time in communication: where steps end in a collective all ranks take equally long.
 * Before sv_steps_divide() that is not known. */
int64_t sv_step_own_ns(const struct sv_step *s);
void sv_steps_judge_stragglers(struct sv_steps *s);
/* Fills work_ns and device_ns, and judges stragglers by them. */
void sv_steps_divide(struct sv_steps *s, const struct sv_trace *t);
void sv_steps_fini(struct sv_steps *s);

#endif

/* What a job of many ranks would take without its stragglers: the replay of why/replay.h, made from
 * a trace.
 *
 *     struct sv_replay_result r;
 *     if (sv_replay_job(&r, trace))
 *         … r.slowdown, r.culprits[0].name, r.culprits[0].explains …
 *     else
 *         … r.reason …
 *     sv_replay_result_fini(&r);
 *
 * Two kinds of traces are understood. In a timeline of operations (threads called "PP rank 1, TP
 * rank 0", arguments `step` and `seq_id`) each slice is an operation of a pipeline. In all others
 * the collectives of the communication report are operations, and so is what a rank does between
 * them. docs/whatif.md has the rules. */
#ifndef SV_SUBJECTS_COMM_JOB_H
#define SV_SUBJECTS_COMM_JOB_H

#include "core/base/map.h"
#include "store/trace.h"
#include "why/replay.h"

/* A replay that misses the measured time by more says nothing. */
#define SV_REPLAY_ERROR_MAX 0.05
/* A culprit costs this share of the time, explains this share of the slowdown, and so many times
 * what its middle peer explains. */
#define SV_REPLAY_GAIN_MIN     0.02
#define SV_REPLAY_EXPLAINS_MIN 0.25
#define SV_REPLAY_PEERS        3.0

struct sv_replay_named {
    enum sv_replay_by by;
    const char *name; /* "rank 3", "DP rank 0", "stage 0", "DP rank 0, stage 0", a host, a kind */
    uint32_t number;
    double slowdown, explains, gain;
};

struct sv_replay_list {
    struct sv_replay_named *items; /* by slowdown */
    size_t n, left_off;            /* not replayed: they take less beyond the ideal than these */
};

struct sv_replay_result {
    bool is_job;      /* there is something to replay: ranks with collectives, or a pipeline */
    bool is_told;     /* … and the replay gives the measured time */
    char reason[200]; /* where nothing is said: why */
    size_t n_ranks, n_steps, n_ops;             /* no steps: the times are of the whole run */
    size_t steps_left_out;                      /* steps whose operations do not fit together */
    int64_t measured_ns, replayed_ns, ideal_ns; /* of a step, mean */
    double error;                               /* replayed over measured, less 1 */
    double slowdown;
    struct sv_replay_list by[SV_N_REPLAY_BY]; /* empty where there are not two */
    /* The cause, the greatest first: groups (host, stage) where no single one of them explains as
     * much, never kinds. None: nobody stands out. */
    struct sv_replay_named *culprits; /* names are those of `by` */
    size_t n_culprits;
    /* What --as-median asked for; -1: nothing */
    int64_t as_median_ns;
    struct sv_dict *strings; /* of the names */
};

/* False: r->reason says why nothing can be said. */
bool sv_replay_job(struct sv_replay_result *r, const struct sv_trace *t);
/* The same, and the time of a step if each operation took the median over ranks, hosts, stages, or
 * of its kind; SV_N_REPLAY_BY: that is not asked. */
bool sv_replay_job_as(struct sv_replay_result *r, const struct sv_trace *t,
                      enum sv_replay_by as_median);
void sv_replay_result_fini(struct sv_replay_result *r);
/* Leaves out the culprits of which the arrivals in collectives say that it may be chance, or one
 * disturbance (slow.c). */
void sv_comm_confirm(struct sv_replay_result *result, const struct sv_trace *t);

/* ---- the parts, for each other ---- */

/* Operations of a trace, and what their numbers are called. */
struct sv_job {
    struct sv_replay replay;
    struct sv_dict *strings;
    struct sv_map numbers[SV_N_REPLAY_BY]; /* string → number */
    sv_str *names[SV_N_REPLAY_BY];         /* by number */
    size_t n_names[SV_N_REPLAY_BY], cap_names[SV_N_REPLAY_BY];
    struct sv_map same, groups; /* hash of what makes operations equal, or one group → number */
    size_t n_ranks, steps_left_out;
    char reason[200];
};
/* Both return false where the trace is not of their kind; `reason` says what is missing if it looks
 * like one. */
bool sv_job_of_pipeline(struct sv_job *j, const struct sv_trace *t);
bool sv_job_of_collectives(struct sv_job *j, const struct sv_trace *t);
/* The number of a name, new ones count up. */
uint32_t sv_job_number(struct sv_job *j, enum sv_replay_by by, const char *name);
/* The same for a name that others may have, too: always a new number. */
uint32_t sv_job_add_name(struct sv_job *j, enum sv_replay_by by, const char *name);
/* The number of a key in one of the two maps, new ones count up. */
uint32_t sv_job_key(struct sv_map *m, const void *key, size_t size);

#endif

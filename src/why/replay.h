/* Replay of a job of many ranks: when could each operation begin, and how long would the job take
 * if some of them took as long as their like usually do?
 *
 *     struct sv_replay r = {0};
 *     uint32_t a = sv_replay_add(&r, &(struct sv_replay_op){…}), b = …;
 *     sv_replay_after(&r, b, a);                       // b begins when a has ended
 *     if (sv_replay_order(&r))                         // else they wait for each other
 *         sv_replay_solve(&r);                         // r.replayed_ns, r.ideal_ns
 *     parts = sv_replay_parts(&r, SV_REPLAY_RANK, &n, &left_off);
 *     sv_replay_fini(&r);
 *
 * An operation begins when all that it follows have ended, at 0 if it follows none. Operations of
 * one group (a collective, a send with its receive) end together: at the latest begin of its
 * members plus each one's transfer. Ideal is the mean of equal operations for computing, the median
 * for communication. Who makes the operations is not known here: see subjects/comm/job.h. One
 * replay is linear in operations and edges. docs/whatif.md has the method. */
#ifndef SV_WHY_REPLAY_H
#define SV_WHY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What operations are summed by. A worker is one rank of one stage, where there are both. */
enum sv_replay_by {
    SV_REPLAY_RANK,
    SV_REPLAY_WORKER,
    SV_REPLAY_STAGE,
    SV_REPLAY_HOST,
    SV_REPLAY_KIND,
    SV_N_REPLAY_BY
};
extern const char *const sv_replay_by_names[SV_N_REPLAY_BY];

#define SV_REPLAY_NONE UINT32_MAX

struct sv_replay_op {
    int64_t begin_ns, end_ns;    /* as measured */
    uint32_t segment;            /* segments are replayed apart; their times are added */
    uint32_t step, nth;          /* nth of its like in its step, for --as-median */
    uint32_t same;               /* equal operations have equal numbers, from 0 */
    uint32_t group;              /* SV_REPLAY_NONE: nobody waits for it, and it for nobody */
    uint32_t at[SV_N_REPLAY_BY]; /* its rank, stage, …, from 0; SV_REPLAY_NONE: has none */
    bool is_comm;
};

struct sv_replay {
    struct sv_replay_op *ops; /* sv_replay_order() brings them into the order of replay */
    size_t n;
    size_t n_steps;     /* for means; set by the caller */
    bool has_no_clocks; /* begins of different ranks cannot be compared; set by the caller */
    int64_t measured_ns, replayed_ns, ideal_ns; /* all segments together */
    uint32_t n_segments, n_same, n_groups, n_at[SV_N_REPLAY_BY];
    struct sv_replay_impl *impl;
};

uint32_t sv_replay_add(struct sv_replay *r, const struct sv_replay_op *op);
void sv_replay_after(struct sv_replay *r, uint32_t later, uint32_t earlier);
bool sv_replay_order(struct sv_replay *r);
void sv_replay_solve(struct sv_replay *r);

struct sv_replay_part {
    uint32_t number;
    double slowdown; /* its operations as measured, all others ideal, over all ideal */
    double explains; /* of the slowdown: what is gone when its operations are ideal */
    /* of the time of the job: what is gone when its computing takes as long as that of its peers */
    double gain;
};
/* The ones that may cost most, at most SV_REPLAY_PARTS (in very large jobs fewer, but
 * SV_REPLAY_LEAST), by slowdown; free() them. Of more than that those are replayed that take most
 * time beyond the ideal; *left_off counts the others. */
#define SV_REPLAY_PARTS 64
#define SV_REPLAY_LEAST 8
struct sv_replay_part *sv_replay_parts(const struct sv_replay *r, enum sv_replay_by by, size_t *n,
                                       size_t *left_off);

/* The time of the job if each operation took the median of its peers: those that differ only in
 * `by` (rank, stage, host), or all of its kind. */
int64_t sv_replay_as_median(const struct sv_replay *r, enum sv_replay_by by);

void sv_replay_fini(struct sv_replay *r);

#endif

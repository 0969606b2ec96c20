/* --budget: which detail is given up when a recording costs more than its share, and when it is
 * taken back. Decisions only: spend.c measures and carries them out.
 *
 *     sv_budget_open → per measurement: sv_budget_measure() */
#ifndef SV_RECORD_SESSION_BUDGET_H
#define SV_RECORD_SESSION_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which it is given up. */
enum sv_budget_what {
    SV_BUDGET_SAMPLES, /* a second; 0: off */
    SV_BUDGET_STACKS,  /* of waits and of who ends them: 1 or 0 */
    SV_BUDGET_WAITS,   /* the shortest that is recorded, in ns */
    SV_BUDGET_CALLS,   /* the same */
    SV_BUDGET_PROBES,  /* of calls: 1 attached, 0 not */
    SV_N_BUDGET
};

/* What there is in the beginning; without `has` it is not recorded at all. */
struct sv_budget_start {
    struct {
        bool has;
        uint64_t value;
    } of[SV_N_BUDGET];
};

struct sv_budget_step {
    enum sv_budget_what what;
    uint64_t from, to;
};

/* Of the time since the last one. */
struct sv_budget_cost {
    int64_t took_ns;     /* that time */
    int64_t cost_ns;     /* CPU of the recorder and of its kernel programs */
    int64_t workload_ns; /* CPU of the processes that are recorded */
};

/* Kinds of events of which a part, or all, was not recorded for a while. */
enum sv_budget_part {
    SV_BUDGET_OF_SAMPLES,
    SV_BUDGET_OF_WAITS,
    SV_BUDGET_OF_CALLS,
    SV_N_BUDGET_PARTS
};
struct sv_budget_gap {
    int64_t off_ns;  /* nothing was recorded */
    int64_t less_ns; /* less than in the beginning, but something */
};

enum {
    SV_BUDGET_STEPS = 24,
    SV_BUDGET_WINDOW = 5,
    SV_BUDGET_QUIET = 10,
    SV_BUDGET_QUIET_MOST = 160
};

struct sv_budget {
    double share; /* 0.01: 1 % */
    struct sv_budget_step steps[SV_BUDGET_STEPS];
    size_t n_steps, n_taken;
    struct sv_budget_cost window[SV_BUDGET_WINDOW]; /* since the last step, the newest */
    size_t n_measured;
    unsigned n_quiet; /* measurements below half of the budget, one after the other */
    /* How many of them a step back needs: more after a step back that had to be undone at once. */
    unsigned n_patience;
    unsigned n_since_back; /* measurements since the last step back */
    bool was_back;         /* the last step was one */
    size_t n_due;          /* steps that the last measurement asks for */
    uint64_t start[SV_N_BUDGET], values[SV_N_BUDGET];
    struct sv_budget_gap gaps[SV_N_BUDGET_PARTS];
    int64_t all_ns; /* of all measurements */
    double cost;    /* share of the workload's CPU, over the window; as of the last measurement */
    unsigned n_gave_up, n_took_back;
};

void sv_budget_open(struct sv_budget *b, double share, const struct sv_budget_start *start);
/* Takes what was measured. True: `step` is to be carried out now; a step back has from and to the
 * other way round. */
bool sv_budget_measure(struct sv_budget *b, const struct sv_budget_cost *cost,
                       struct sv_budget_step *step);
/* Where the cost is far above the budget one measurement asks for several steps: true while there
 * is another one. */
bool sv_budget_more(struct sv_budget *b, struct sv_budget_step *step);
/* Time that passed since the last measurement, at the end. */
void sv_budget_passed(struct sv_budget *b, int64_t took_ns);

/* "1%", "0.5%"; false: it is not a share above 0 and up to 100%. */
bool sv_budget_parse(const char *text, double *share);

#endif

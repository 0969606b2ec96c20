/* The communication report: collectives matched across ranks, who arrives last, and where ranks
 * differ.
 *
 *     struct sv_comm_report r;
 *     sv_comm_report_make(&r, trace);
 *     for (size_t i = 0; i < r.n; i++) … r.collectives[i].skew_ns …
 *     for (size_t i = 0; i < r.n_ranks; i++) … r.ranks[i].is_slow …
 *     sv_comm_report_fini(&r);
 *
 * A collective is one operation of a group of ranks; a call is one rank's part in it. Calls of one
 * collective have the same group and the same number. docs/comm.md has the rules by which a rank is
 * called slow, and the cases in which nothing is said. */
#ifndef SV_SUBJECTS_COMM_FIGURES_H
#define SV_SUBJECTS_COMM_FIGURES_H

#include "core/base/map.h"
#include "store/trace.h"
#include "subjects/comm/words.h"
#include "why/steps.h"

/* What a rank did before it arrived. */
enum sv_comm_before {
    SV_BEFORE_COMPUTE,
    SV_BEFORE_IO,
    SV_BEFORE_LOADER,
    SV_BEFORE_COPY,
    SV_BEFORE_COMM,      /* in other operations of communication */
    SV_BEFORE_OTHER,     /* in slices that say nothing of it */
    SV_BEFORE_IDLE,      /* in none, though the trace has states of its threads */
    SV_BEFORE_RUN_QUEUE, /* its thread could run and had no CPU */
    SV_BEFORE_UNKNOWN,   /* in none, and no states were recorded */
    SV_N_BEFORE
};
extern const char *const sv_comm_before_names[SV_N_BEFORE];

/* How arrivals were compared. */
enum sv_comm_method {
    SV_COMM_BY_NOTHING,
    SV_COMM_BY_BEGINS,   /* the clocks of the ranks are related */
    SV_COMM_BY_DURATIONS /* they are not: who arrived last stayed shortest */
};
extern const char *const sv_comm_method_names[];

/* Why arrivals of a collective are not compared, or who was last not said. */
enum sv_comm_doubt {
    SV_COMM_TOLD,
    SV_COMM_ALONE,      /* one rank only */
    SV_COMM_MISSING,    /* not all ranks of the group have it */
    SV_COMM_UNFINISHED, /* it did not end */
    SV_COMM_DIFFERS,    /* kinds or sizes differ */
    SV_COMM_CLOCKS,     /* the skew is within the error of the clocks */
    /* clocks are unrelated, and the operation lets ranks leave at different times */
    SV_COMM_UNRELATED,
    SV_COMM_BROKEN, /* a rank left before another one arrived: clocks or numbers are wrong */
    SV_N_COMM_DOUBTS
};
extern const char *const sv_comm_doubt_names[SV_N_COMM_DOUBTS];
extern const char *const sv_comm_doubt_reasons[SV_N_COMM_DOUBTS];

#define SV_COMM_NO_RANK UINT32_MAX

struct sv_comm_call {
    int64_t seq;
    int64_t bytes;        /* -1: not known */
    int64_t wait_ns;      /* for the last one to arrive; -1: not known */
    uint32_t group, rank; /* numbers of the report */
    uint32_t row;
    uint8_t op;      /* enum sv_comm_op */
    bool is_pending; /* it did not end */
    bool is_counted; /* the source gives no number: it is the n-th of its group on this rank */
};

struct sv_comm_collective {
    uint32_t group;
    uint8_t op; /* of its first call */
    uint8_t doubt, method;
    bool
        is_passed_on; /* who was last had waited elsewhere, or left the collective before it late */
    int64_t seq, bytes;
    size_t first, n;       /* calls, by rank */
    int64_t ts_ns, end_ns; /* of the first begin and the last end */
    int64_t skew_ns;       /* last begin − first begin; -1: cannot tell */
    int64_t transfer_ns;   /* end − last begin; -1: cannot tell */
    int64_t error_ns;      /* of both; -1: not known */
    int64_t lead_ns; /* last begin − the one before it: what it cost that one rank was late */
    uint32_t last;   /* rank, SV_COMM_NO_RANK: cannot tell */
    uint32_t first_rank, second; /* who arrived first, and next to last, where `last` is known */
    /* The same of hosts: the last one, SV_COMM_NO_RANK: cannot tell, or it only passed lateness on;
     * and by how much its last rank was later than the last of all other hosts. */
    uint32_t last_host;
    int64_t host_lead_ns;
    /* since when those two were on their way: the end of the group's collective before */
    int64_t last_from_ns, first_from_ns;
    int64_t before_ns[SV_N_BEFORE]; /* what the last one did meanwhile … */
    int64_t excess_ns[SV_N_BEFORE]; /* … and how much more of it than the first one */
    int64_t own_wait_ns; /* how much longer than that one it waited for what is no rank's doing */
};

struct sv_comm_group {
    sv_str name, desc;   /* of the report's strings; 0: none */
    sv_str members_text; /* "[0, 1, 2]", as the source has it; 0: none */
    int64_t size;        /* -1: not known */
    uint32_t *members;   /* numbers of ranks, those of the trace; rising */
    size_t n_members;
    int64_t *absent; /* ranks that are members and not in the trace */
    size_t n_absent;
    size_t first, n; /* collectives */
    size_t n_told;   /* of them who was last is told */
    bool is_counted;
    int64_t ts_ns, end_ns;
};

struct sv_comm_rank {
    int64_t number;         /* -1: not known */
    sv_track process;       /* or the topmost track; 0: none */
    uint64_t calls, judged; /* collectives, and those in which it is known who was last */
    uint64_t last;
    int64_t lost_ns;        /* by how much others had been earlier, where it was last */
    int64_t lead_median_ns; /* of those */
    int64_t wait_ns;        /* for others */
    int64_t before_ns[SV_N_BEFORE], excess_ns[SV_N_BEFORE]; /* sums, where it was last */
    bool has_before;                                        /* its trace says what it did */
    bool has_states; /* … and when its threads waited for a CPU */
    uint32_t host;   /* number of the report, SV_COMM_NO_RANK: not known */
    double expected; /* how often equal ranks would be last */
    double
        /* of `last` among equal ranks, the smallest of its groups, corrected; 1: not tested */
        p_value;
    double lost_share; /* of the time of that group */
    double gain;       /* of the job's time, if it were as fast as its peers; 0: the replay does not
                        * name it */
    bool is_slow;
    bool is_likely;     /* it costs much all the time or for a reason, and the replay decides */
    uint64_t n_reasons; /* how often its own waits explain that it was last, twice; the run queue
                         * once … */
    int64_t reasons_ns; /* … and what that cost */
};

/* Ranks of one machine, judged together: that all of them are slow is seen of none of them. */
struct sv_comm_host {
    const char *name;
    size_t n_ranks;
    uint64_t judged, last;
    int64_t lost_ns;
    double expected, p_value, lost_share, gain;
    bool is_slow; /* and none of its ranks alone explains it */
    bool is_likely;
};

enum sv_comm_difference_kind {
    SV_DIFFERENCE_MISSING, /* some wait in it, others have no record of it */
    SV_DIFFERENCE_KIND,
    SV_DIFFERENCE_SIZE,
    SV_DIFFERENCE_STUCK, /* others have finished it */
    SV_N_DIFFERENCES
};
extern const char *const sv_comm_difference_names[SV_N_DIFFERENCES];

struct sv_comm_difference {
    enum sv_comm_difference_kind kind;
    size_t collective;
    int64_t ts_ns;
    uint32_t *ranks; /* those that differ from the most, rising */
    size_t n_ranks;
    uint32_t *waiting; /* MISSING: those that wait in it */
    size_t n_waiting;
};

struct sv_comm_report {
    const struct sv_trace *trace;
    struct sv_dict *strings; /* names of groups */
    struct sv_comm_call *calls;
    size_t n_calls;
    struct sv_comm_collective *collectives; /* by group and number */
    size_t n;
    struct sv_comm_group *groups;
    size_t n_groups;
    struct sv_comm_rank *ranks; /* by number */
    size_t n_ranks;
    struct sv_comm_host *hosts; /* none where there are not two, or each has one rank */
    size_t n_hosts;
    uint32_t *rank_of_track;                /* by track, SV_COMM_NO_RANK: none */
    struct sv_comm_difference *differences; /* in the order of time */
    size_t n_differences;
    /* Of a hang: ranks that others wait for and that wait for nobody; rising. None though there are
     * differences: they wait for each other. */
    uint32_t *culprits;
    size_t n_culprits;
    uint64_t by_doubt[SV_N_COMM_DOUBTS];
    uint64_t n_passed_on;
    uint64_t n_repeated;    /* calls that have the number of one before: put together with it */
    int64_t clock_error_ns; /* between ranks; -1: not known */
    double skew_median_ns, transfer_median_ns; /* -1: none */
    int64_t wait_ns;
};

void sv_comm_report_make(struct sv_comm_report *r, const struct sv_trace *t);
/* Its first part: arrivals, and nobody judged. */
void sv_comm_report_begin(struct sv_comm_report *r, const struct sv_trace *t);
void sv_comm_report_fini(struct sv_comm_report *r);

/* For qsort_r() of numbers of ranks, ctx is the array: those that cost most first. */
int sv_comm_by_loss(const void *a, const void *b, void *ctx);
/* "rank 3", else the name of the process. */
const char *sv_comm_rank_name(const struct sv_comm_report *r, uint32_t rank, char *to, size_t size);

/* Is the track of a rank that is slow, or of one on a slow host? */
bool sv_comm_is_held_up_by(const struct sv_comm_report *r, sv_track track);
/* Steps are stragglers only of such ranks, if arrivals can be compared: whose step takes longest
 * without holding the others up is none. */
void sv_comm_keep_stragglers(struct sv_steps *s, const struct sv_trace *t);

/* The rule: a rank is slow if it is last more often than equal ranks are by chance, and it costs
 * time; or if it costs much, and more than is lost to equal ranks by chance. */
#define SV_COMM_CHANCE      1e-6 /* over all ranks of all groups together */
#define SV_COMM_LOST_SHARE  0.01 /* of the time of the group */
#define SV_COMM_COST_SHARE  0.05
#define SV_COMM_COST_CHANCE 1e-3
#define SV_COMM_MUCH_SHARE  0.25 /* of what costs so much, this chance is small enough: */
#define SV_COMM_MUCH_CHANCE 1e-2
/* One that costs much is slow also by this chance, if it explains most of the slowdown of the
 * replay. */
#define SV_COMM_LIKELY_CHANCE   5e-2
#define SV_COMM_LIKELY_EXPLAINS 0.75
/* What costs so much is no chance either if the ledger has the reason three times: the rank slept,
 * or was in calls on files … for most of the time by which it came later. A wait for a CPU, which
 * may be anybody's, counts half. */
#define SV_COMM_REASONS       6
#define SV_COMM_REASONS_SHARE 0.7

/* P(X ≥ k) of n draws with probability p. */
double sv_binomial_tail(double n, double k, double p);
/* The logarithm of a bound of P(X ≥ cost), where X is the sum of those of n weights (0 … 1) that
 * are drawn with probability p each. */
double sv_cost_tail(const double *weights, size_t n, double cost, double p);

/* ---- the parts, for each other ---- */

/* The call of a rank in a collective, NULL: it has none. */
const struct sv_comm_call *sv_comm_call_of(const struct sv_comm_report *r,
                                           const struct sv_comm_collective *c, uint32_t rank);

void sv_comm_find_calls(struct sv_comm_report *r);
void sv_comm_find_before(struct sv_comm_report *r);
void sv_comm_find_differences(struct sv_comm_report *r);
void sv_comm_judge_ranks(struct sv_comm_report *r);
void sv_comm_judge_by_replay(struct sv_comm_report *r);

#endif

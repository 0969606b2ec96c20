/* What slows a run down: a few findings in plain sentences, each with its culprit, its share, the
 * chain that leads to it and how sure it is.
 *
 *     struct sv_explanation e;
 *     sv_explain(&e, trace, "run.pftrace", NULL);
 *     for (size_t i = 0; i < e.n; i++) … e.findings[i].sentence …
 *
 * All of them are sums over one ledger (why/ledger.h), and over what devices, ranks and requests
 * say of themselves. A finding needs a share of the time below which nobody would look
 * (SV_EXPLAIN_LEAST). docs/why.md lists the causes and their rules. */
#ifndef SV_EXPLAIN_EXPLAIN_H
#define SV_EXPLAIN_EXPLAIN_H

#include "why/coverage.h"
#include "why/ledger.h"

#define SV_EXPLAIN_MAX   5
#define SV_EXPLAIN_LEAST 0.05
#define SV_EXPLAIN_FORM  1 /* of the JSON: grows when a member changes its meaning */

/* clang-format off */
/* CAUSE(member, word, what to try): the words of `cause` in JSON. */
#define SV_EXPLAIN_CAUSES(CAUSE)                                                                   \
    CAUSE(SLOW_FILE, "slow_file", "Look at that file: its size, its format, the disk it is on.")   \
    CAUSE(COLD_CACHE, "cold_cache", "Read the files before, or copy them to a faster disk.")       \
    CAUSE(SLOW_WORKER, "slow_worker", "Look at what that loader does and the others do not.")      \
    CAUSE(SMALL_READS, "small_reads", "Read through a larger buffer, or use larger files.")        \
    CAUSE(SMALL_FILES, "small_files", "Pack the samples into fewer, larger files.")                \
    CAUSE(FEW_LOADERS, "too_few_loaders", "Use more loaders, or do less work per sample.")         \
    CAUSE(DATA, "data", "Make it earlier or elsewhere, or do less work for it.")                   \
    CAUSE(LOCK, "lock", "Hold the lock for a shorter time; do the slow part without it.")          \
    CAUSE(GIL, "gil", "Use processes instead of threads, or code that releases the lock.")         \
    CAUSE(CPU, "cpu", "Use fewer threads, or give the program CPUs of its own.")                   \
    CAUSE(CHECKPOINT, "checkpoint", "Write checkpoints in another thread, or less often.")         \
    CAUSE(DISK, "disk", "Use a faster disk, fewer syncs, or another thread for it.")               \
    CAUSE(PAGE_FAULT, "page_fault", "Read the mapped file before it is needed (MADV_WILLNEED).")   \
    CAUSE(PIPE, "pipe", "Look at what the process at the other end does.")                         \
    CAUSE(PEER, "peer", "Look at the server: record it, too. Ask for more at once.")               \
    CAUSE(CHILD, "child", "Do it once, in the background, or without a new process.")              \
    CAUSE(SLEEP, "sleep", "The program chose this time itself: wait for what it needs instead.")   \
    CAUSE(STOPPED, "stopped", "Run it without the debugger or tracer that stops it.")              \
    CAUSE(GPU_DATA, "gpu_data", "Load data ahead of time, with more loaders.")                     \
    CAUSE(GPU_GAP, "gpu_gap", "Look at what the host did in that gap.")                            \
    CAUSE(GPU_LAUNCH, "gpu_launch", "Use larger batches, fused kernels or CUDA graphs.")           \
    CAUSE(GPU_COPY, "gpu_copy", "Use pinned memory, and copy ahead of time.")                      \
    CAUSE(GPU_SYNC, "gpu_sync", "Read results less often: each such call empties the queue.")      \
    CAUSE(EXPOSED_COMM, "exposed_comm", "Overlap communication with computing.")                   \
    CAUSE(STRAGGLER_RANK, "straggler_rank", "Look at that rank alone: its data, its CPUs, its GPU.") \
    CAUSE(STRAGGLER_HOST, "straggler_host", "Look at that host: clocks, other jobs, its network.") \
    CAUSE(STRAGGLER_STAGE, "straggler_stage", "Move layers from that stage to the others.")        \
    CAUSE(COMM, "comm", "Overlap communication with computing, or send less.")                     \
    CAUSE(QUEUE, "queue", "Use more workers or larger batches, or refuse earlier.")                \
    CAUSE(REJECTED, "rejected", "The queue is full: use more workers, or a longer queue.")         \
    CAUSE(COMPUTE, "compute", "Sample it (record --sample 99), and compare the functions.")         \
    CAUSE(MEMORY, "memory", "Find what keeps the memory: it would run out in the end.")
/* clang-format on */
enum sv_explain_cause {
#define SV_EXPLAIN_MEMBER(member, word, advice) SV_CAUSE_##member,
    SV_EXPLAIN_CAUSES(SV_EXPLAIN_MEMBER)
#undef SV_EXPLAIN_MEMBER
        SV_N_CAUSES
};
extern const char *const sv_explain_words[SV_N_CAUSES];
extern const char *const sv_explain_advice[SV_N_CAUSES];

/* Who or what it is. Empty texts, -1 and 0 mean that nothing is known. */
struct sv_culprit {
    const char *kind; /* "thread", "process", "file", "function", "rank", "host", "device" … */
    char name[96], function[96], file[64], path[200], lock[64], host[64], device[64], cgroup[200];
    int64_t pid, tid, rank; /* -1 */
    uint32_t line;
};
#define SV_NOBODY                                      \
    (struct sv_culprit)                                \
    {                                                  \
        .kind = NULL, .pid = -1, .tid = -1, .rank = -1 \
    }

struct sv_worst {
    int64_t number; /* of the unit; -1: it has none */
    int64_t ts_ns, dur_ns;
};

#define SV_EXPLAIN_LINKS 4
#define SV_EXPLAIN_WORST 3

struct sv_answer {
    enum sv_explain_cause cause;
    char sentence[512];
    char command[192];
    const char *sure;   /* "high", "medium", "low" */
    const char *advice; /* where that of the cause does not fit; NULL */
    double share;       /* of the time that is looked at; findings are in its order */
    double gain;        /* what the units would save if it were gone */
    uint32_t group;     /* of the ledger's pieces; UINT32_MAX: it is of something else */
    struct sv_culprit culprit;
    char chain[SV_EXPLAIN_LINKS][160];
    size_t n_chain;
    struct sv_worst worst[SV_EXPLAIN_WORST];
    size_t n_worst, n_units;
    int64_t in_rank; /* the rank, and the host, that nearly all of it is of; -1: of several */
    char in_host[64];
};

/* What to try. */
static inline const char *sv_answer_advice(const struct sv_answer *a)
{
    return a->advice ? a->advice : sv_explain_advice[a->cause];
}

/* The units that take more than 1.5 times as long as the one in the middle, and what they have more
 * of: shares are of what they take longer than the middle half does. */
#define SV_EXPLAIN_SLOW 3
struct sv_slow_units {
    size_t n, of; /* how many, of how many */
    double mean_ns, usual_ns, longest_ns;
    struct sv_answer findings[SV_EXPLAIN_SLOW];
    size_t n_findings;
};

/* What was observed, as shares of the time that is looked at. */
struct sv_observed {
    double states, calls, slices; /* of the units' own threads */
    bool has_stacks, has_flows, has_gpu, has_ranks, has_requests;
    bool is_looked; /* states are looks at /proc, not the kernel's switches */
    uint64_t lost;  /* events that the recording lost */
    bool is_lossy;  /* so many that what is not there may have happened */
    uint8_t recorded[SV_N_COVERAGE_PARTS]; /* enum sv_coverage_is: what the recording says */
    bool has_all_sockets;                  /* calls on them, whether they waited or not */
    char given_up[200]; /* by --budget: which parts, and for how long; "": none */
};

/* A function that the units compute in, and its share of the samples. */
#define SV_EXPLAIN_HOT 3
struct sv_hot {
    char function[160];
    double share;
};

#define SV_EXPLAIN_ROWS 4

struct sv_explanation {
    struct sv_answer findings[SV_EXPLAIN_MAX]; /* the most important first */
    size_t n;
    int64_t dur_ns;        /* the time that is looked at */
    const char *of;        /* what that is, for people */
    const char *unit_kind; /* "step" … */
    size_t n_units;
    double median_ns;
    bool is_against; /* another trace: findings are what is more */
    double change;   /* of the time of a unit, over that of the other trace, less 1 */
    bool is_found;   /* nobody marked the units: they were found by what repeats */
    double shares[SV_N_WHY_CLASSES]; /* where the time went */
    struct sv_observed observed;
    bool can_say;       /* there is evidence for an answer */
    size_t n_suspended; /* findings that were left off */
    size_t n_ignored;   /* findings that the options left out */
    struct sv_slow_units slow;
    struct sv_hot hot[SV_EXPLAIN_HOT];
    size_t n_hot;
    struct sv_explanation *also; /* units of another kind, beside these; NULL: none */
    /* of the time line: those that come first; sv_explain_rows() finds them */
    uint32_t rows[SV_EXPLAIN_ROWS];
    size_t n_rows;
};

struct sv_explain_options {
    const char *unit;   /* the marker of units; NULL: the usual ones */
    const char *ignore; /* "CAUSE" or "CAUSE:CULPRIT", line ends between them; NULL: none */
};

/* path: how the commands call the trace. Freed by sv_explanation_fini. */
void sv_explain(struct sv_explanation *e, const struct sv_trace *t, const char *path,
                const struct sv_explain_options *o);

void sv_explanation_fini(struct sv_explanation *e);

/* Keeps of `e` what a unit has more of than in `before`: shares and gains are then of the time of
 * a unit of `e`. */
void sv_explain_against(struct sv_explanation *e, const struct sv_explanation *before);

/* The rows of those whom the first findings name, and of their longest unit. */
struct sv_track_rows;
void sv_explain_rows(struct sv_explanation *e, const struct sv_track_rows *r);

/* Nearly all of the time is known: what is not found is not there. */
bool sv_explain_is_whole(const struct sv_explanation *e);

#define SV_EXPLAIN_MISSING 6
struct sv_missing {
    const char *what, *how; /* how: what would show it */
    const char *record;     /* the command; NULL: none would */
};
/* Fills `to` with what would have to be known to say more; returns how many. */
size_t sv_explain_missing(const struct sv_explanation *e, struct sv_missing to[SV_EXPLAIN_MISSING]);

/* Appends it as JSON of at most 16 KiB. Names of other programs may need escapes: the last findings
 * are left off until the rest fits. */
struct sv_buf;
void sv_explain_json(struct sv_explanation *e, struct sv_buf *b);

/* ---- the parts, for each other ---- */

/* What the recorder and the kernel counted of threads that could run: rows, found once. */
struct sv_cpu_counts {
    uint32_t *rivals, *stats;
    size_t n_rivals, n_stats;
};

struct sv_explaining {
    struct sv_explanation *e;
    const struct sv_trace *trace;
    const struct sv_ledger *ledger;
    const char *path;
    const struct sv_explain_options *options;
    const struct sv_wait_groups *groups; /* of the ledger's pieces */
    const bool *asked;                   /* by unit; NULL: all that count */
    const struct sv_cpu_counts *counts;
};

/* A finding that waits for its sentence. */
struct sv_answer sv_answer_of(enum sv_explain_cause cause, double share, const char *sure);
void sv_answer_command(struct sv_answer *a, const char *verb, const char *path,
                       const char *options);
__attribute__((format(printf, 2, 3))) void sv_answer_say(struct sv_answer *a, const char *fmt, ...);
/* Keeps it in its place, unless it is to be ignored. */
void sv_explain_add(struct sv_explaining *x, const struct sv_answer *a);

void sv_explain_waits(struct sv_explaining *x);
void sv_explain_queued(struct sv_explaining *x);
void sv_cpu_counts_find(struct sv_cpu_counts *c, const struct sv_trace *t);
void sv_cpu_counts_fini(struct sv_cpu_counts *c);
void sv_explain_hot(struct sv_explaining *x);
void sv_explain_gpu(struct sv_explaining *x);
void sv_explain_ranks(struct sv_explaining *x);
/* True: the units are requests of which only the phases are known, and they are explained. */
bool sv_explain_serving(struct sv_explaining *x);
void sv_explain_memory(struct sv_explaining *x);

/* A thread or process, for people: "locker", "python3 (pid 12)". */
void sv_explain_name(const struct sv_trace *t, sv_track thread, char *to, size_t size);
/* Function, file and line of a frame's text. */
void sv_culprit_frame(struct sv_culprit *c, struct sv_text frame);

#endif

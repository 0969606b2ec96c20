/* What matters most in a trace: a few findings in plain sentences, each with its figures, the
 * command that shows it and how sure it is.
 *
 *     struct sv_explanation e;
 *     sv_explain(&e, trace, "run.pftrace");
 *     for (size_t i = 0; i < e.n; i++) … e.findings[i].sentence …
 *
 * A finding needs a share of the time below which nobody would look (SV_EXPLAIN_LEAST); no finding
 * is an answer, too. docs/why.md lists the causes and their rules. */
#ifndef SV_EXPLAIN_EXPLAIN_H
#define SV_EXPLAIN_EXPLAIN_H

#include "store/trace.h"

#define SV_EXPLAIN_MAX   5
#define SV_EXPLAIN_LEAST 0.05

/* clang-format off */
/* CAUSE(member, word): the words of `cause` in JSON. */
#define SV_EXPLAIN_CAUSES(CAUSE)              \
    CAUSE(SLOW_FILE, "slow_file")             \
    CAUSE(COLD_CACHE, "cold_cache")           \
    CAUSE(STRAGGLER_LOADER, "straggler_loader") \
    CAUSE(SMALL_READS, "small_reads")         \
    CAUSE(SMALL_FILES, "small_files")         \
    CAUSE(SLOW_LOADERS, "slow_loaders")       \
    CAUSE(DATA, "data")                       \
    CAUSE(LOCK, "lock")                       \
    CAUSE(GIL, "gil")                         \
    CAUSE(CPU, "cpu")                         \
    CAUSE(CHECKPOINT, "checkpoint")           \
    CAUSE(DISK, "disk")                       \
    CAUSE(GPU_LAUNCH, "gpu_launch")           \
    CAUSE(GPU_COPY, "gpu_copy")               \
    CAUSE(STRAGGLER_RANK, "straggler_rank")   \
    CAUSE(PEER, "peer")                       \
    CAUSE(MEMORY, "memory")
/* clang-format on */
enum sv_explain_cause {
#define SV_EXPLAIN_MEMBER(member, word) SV_CAUSE_##member,
    SV_EXPLAIN_CAUSES(SV_EXPLAIN_MEMBER)
#undef SV_EXPLAIN_MEMBER
        SV_N_CAUSES
};
extern const char *const sv_explain_words[SV_N_CAUSES];

struct sv_answer {
    enum sv_explain_cause cause;
    char sentence[512];
    char command[192];
    const char *sure; /* "high", "medium", "low" */
    double share;     /* of the time that is looked at; findings are in its order */
};

struct sv_explanation {
    struct sv_answer findings[SV_EXPLAIN_MAX]; /* the most important first */
    size_t n;
    int64_t dur_ns;     /* the time that is looked at */
    const char *of;     /* what that is */
    bool has_states;    /* states of threads are recorded */
    size_t n_suspended; /* findings that were left off */
};

/* path: how the commands call the trace. */
void sv_explain(struct sv_explanation *e, const struct sv_trace *t, const char *path);

/* ---- the parts, for each other ---- */

struct sv_wait_report;
/* Files and loaders behind waits for data. */
void sv_explain_data(struct sv_explanation *e, const struct sv_wait_report *w, const char *path);
/* Keeps a finding in its place; `fmt` makes the sentence, command is followed by the trace. */
void sv_explain_add(struct sv_explanation *e, enum sv_explain_cause cause, double share,
                    const char *sure, const char *command, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

#endif

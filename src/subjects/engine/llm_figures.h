/* Figures of continuous batching: latencies of requests and tokens, by the size of steps and by
 * load, goodput, and what made a token slow.
 *
 * Times: TTFT is arrival to first token, TPOT (last - first token) / (tokens - 1), ITL the time
 * between two deliveries to a client (tokens that leave together are one), E2E arrival to end. Only
 * answered requests count, warm-up does not. */
#pragma once

#include "subjects/engine/llm.h"

enum sv_llm_measure { SV_LLM_TTFT, SV_LLM_TPOT, SV_LLM_ITL, SV_LLM_E2E, SV_N_LLM_MEASURES };
extern const char *const sv_llm_measure_names[SV_N_LLM_MEASURES]; /* "ttft" … */

/* Limits that a request must keep, 0: none. ITL: of each of its deliveries. */
struct sv_llm_slo {
    int64_t limit_ns[SV_N_LLM_MEASURES];
};

/* Steps or requests whose size or load is in [from, to]. */
struct sv_llm_group {
    uint64_t from, to;
    uint64_t n; /* steps, requests */
    uint64_t tokens_in, tokens_out;
    int64_t dur_ns;
    struct sv_latency dur, ttft, tpot, itl, e2e; /* those that the group has */
};

struct sv_llm_groups {
    struct sv_llm_group *groups;
    size_t n;
};

struct sv_llm_figures {
    uint64_t answered, rejected, failed, cancelled, open, warmup;
    uint64_t steps, prompt_tokens, cached_tokens, output_tokens, preemptions, proposed, accepted;
    uint64_t tokens_in;        /* computed: with what was computed again */
    int64_t first_ns, last_ns; /* first arrival or step … last end */
    int64_t busy_ns;           /* at least one step ran */
    uint64_t members;
    int64_t kernel_ns, io_ns;
    double kv_peak; /* share of the blocks; -1: unknown */
    struct sv_latency measures[SV_N_LLM_MEASURES], phases[SV_N_ENGINE_PHASES];
    struct sv_llm_groups by_size, by_load; /* powers of two */
};

void sv_llm_figures_make(struct sv_llm_figures *f, const struct sv_llm *l);
void sv_llm_figures_fini(struct sv_llm_figures *f);

/* Answered requests that keep each limit, and all of them; requests that were rejected or failed
 * keep none. */
struct sv_llm_goodput {
    uint64_t within[SV_N_LLM_MEASURES], good, all;
};
struct sv_llm_goodput sv_llm_goodput(const struct sv_llm *l, const struct sv_llm_slo *slo);

/* ---- why a token was slow ---- */

enum sv_llm_cause {
    SV_LLM_BY_QUEUE,
    SV_LLM_BY_PREEMPTION, /* preempted, or computed again after it */
    SV_LLM_BY_TRANSFER,
    SV_LLM_BY_LOAD,     /* something was being loaded (cold start) */
    SV_LLM_BY_STEP,     /* steps with it took so long */
    SV_LLM_BY_OTHERS,   /* it was scheduled, and steps without it ran */
    SV_LLM_BY_IDLE,     /* it was scheduled, and no step ran */
    SV_LLM_BY_DELIVERY, /* made, and not sent */
    SV_N_LLM_CAUSES
};
extern const char *const sv_llm_cause_names[SV_N_LLM_CAUSES];

struct sv_llm_slow {
    uint32_t token;                    /* index */
    int64_t gap_ns;                    /* since the token before it, or the arrival */
    int64_t cause_ns[SV_N_LLM_CAUSES]; /* sum to gap_ns */
    enum sv_llm_cause cause;           /* the largest of them */
    uint32_t step;  /* the longest one with it; where the queue is the cause, while it waited */
    uint32_t blame; /* of that step: the member with the most tokens that is not it; SV_LLM_NONE */
    uint32_t load;  /* index of the load, SV_LLM_NONE */
    /* What the engine's thread waited for meanwhile, by the ledger: the class that took most time.
     * Texts are of the trace; empty: not known. */
    const char *wait; /* "lock" …; NULL: it did not, or nothing is known */
    int64_t wait_ns;
    struct sv_text wait_by, wait_in; /* who had it, and the function of that one */
};

/* The slowest deliveries, at most `most` first tokens and as many later ones, the slowest first;
 * free() the result. */
struct sv_llm_slow *sv_llm_slowest(const struct sv_llm *l, size_t most, size_t *n);

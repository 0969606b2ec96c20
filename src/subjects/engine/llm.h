/* Continuous batching: requests, engine steps, their members and tokens, as tables made from a
 * trace.
 *
 *     struct sv_llm l;
 *     sv_llm_make(&l, trace);
 *     for (size_t i = 0; i < l.n_steps; i++)
 *         for (uint32_t k = 0; k < l.steps[i].n; k++) … l.members[l.steps[i].first_member +
 *         k].share_ns …
 *     sv_llm_fini(&l);
 *
 * It reads the words of core/serving/engine_words.h, whoever wrote them. Where a request is known
 * only as one slice (spans of OTLP, logs), it has a row without members. A batch of a server with
 * dynamic batching is a step of its worker. Phases of a request do not overlap and sum to its
 * time. */
#pragma once

#include "core/serving/engine.h"
#include "store/trace.h"
#include "subjects/serving/report.h"

#define SV_LLM_NONE    UINT32_MAX
#define SV_LLM_UNKNOWN INT64_MIN /* a time */

struct sv_llm_request {
    uint64_t id;
    sv_str name;  /* 0: it has a number only */
    sv_str model; /* 0: unknown */
    int64_t arrival_ns, scheduled_ns, end_ns;
    int64_t first_token_ns, last_token_ns; /* as the client gets them */
    int64_t phase_ns[SV_N_ENGINE_PHASES];
    int64_t transport_ns[SV_N_TRANSPORT]; /* below 0: not known */
    int64_t share_ns, kernel_ns, io_ns;   /* its shares of steps, and of kernels and I/O in them */
    uint64_t cached, output, proposed, accepted; /* tokens */
    uint32_t prompt, preemptions;
    uint32_t first_member, n_members; /* in `by_request` */
    uint32_t first_token, n_tokens;   /* in `tokens` */
    uint32_t first_span, n_spans;     /* in `spans` */
    uint32_t load;                    /* requests that were open when it came, itself included */
    uint64_t batch;                   /* of a server with dynamic batching: its number + 1 */
    uint32_t row;                     /* of the instant of its arrival; SV_NO_ROW: none */
    uint8_t fate;                     /* enum sv_life_fate */
    bool is_warmup;
    bool is_untimed; /* how long is known, when is not */
    bool is_whole;   /* known as one slice: what it did between is not */
};

struct sv_llm_step {
    uint64_t id;
    int64_t ts_ns, dur_ns;
    int64_t kernel_ns, io_ns; /* of slices inside */
    uint32_t row;             /* of its slice; SV_NO_ROW: it is a batch */
    sv_track track;           /* of its engine */
    int32_t worker;           /* of a batch; -1: not known */
    sv_str graph;
    uint32_t first_member, n;     /* members that are known */
    uint32_t n_prefill, n_decode; /* requests in it: of its members, else as it says */
    uint64_t tokens_in, tokens_out, cached, proposed, accepted;
    int64_t kv_used, kv_total, waiting; /* -1: unknown */
    bool is_warmup;
};

struct sv_llm_member {
    struct sv_engine_member m;
    uint32_t step, request; /* indexes */
    int64_t share_ns, kernel_ns, io_ns;
};

struct sv_llm_token {
    int64_t ts_ns;                  /* when the client got it: streamed, else made */
    int64_t made_ns;                /* end of its step */
    uint32_t request, step, number; /* number: from 0 */
};

/* A phase of a request. */
struct sv_llm_span {
    int64_t start_ns, end_ns;
    uint32_t request;
    uint8_t phase; /* enum sv_engine_phase */
};

/* A time in which the server loaded something (category SV_LOAD_CATEGORY). */
struct sv_llm_load {
    int64_t start_ns, end_ns;
    sv_str name; /* of the trace */
};

/* What does not fit together; none of it stops the rest. */
struct sv_llm_oddities {
    uint64_t unknown; /* members and calls about requests that never arrived */
    uint64_t ended;   /* ends of requests that had ended, members after the end */
    uint64_t damaged; /* words that are no members */
    uint64_t empty;   /* steps without members */
    uint64_t cut;     /* tokens without a row: more than 32 of one member, or too many */
};

struct sv_llm {
    const struct sv_trace *trace;
    struct sv_dict *strings;         /* names and models of requests, graph modes */
    struct sv_llm_request *requests; /* by arrival, those without one by their first event */
    struct sv_llm_step *steps;       /* by begin */
    struct sv_llm_member *members;   /* by step */
    uint32_t *by_request;            /* members by request, then time */
    struct sv_llm_token *tokens;     /* by request, then number */
    struct sv_llm_span *spans;       /* by request, then time */
    struct sv_llm_load *loads;       /* by begin */
    size_t n_requests, n_steps, n_members, n_tokens, n_spans, n_loads;
    uint32_t n_engines; /* tracks with steps */
    struct sv_llm_oddities odd;
    uint64_t n_left_out; /* answered requests that the recording left out: in no table here */
    bool is_batches;     /* steps are batches of dynamic batching */
};

void sv_llm_make(struct sv_llm *l, const struct sv_trace *t);
void sv_llm_fini(struct sv_llm *l);

/* ---- asking ---- */

/* The newest request of this number or name, NULL: none. */
const struct sv_llm_request *sv_llm_find(const struct sv_llm *l, const char *name);
/* "412" or its name; in the caller's space. */
enum { SV_LLM_LABEL_MAX = 128 };
const char *sv_llm_label(const struct sv_llm *l, const struct sv_llm_request *r,
                         char label[SV_LLM_LABEL_MAX]);

/* All -1 when not known. TPOT: (last token - first token) / (tokens - 1). */
int64_t sv_llm_ttft(const struct sv_llm_request *r);
int64_t sv_llm_tpot(const struct sv_llm_request *r);
int64_t sv_llm_e2e(const struct sv_llm_request *r);
/* Time since the token before it, of the first one since the arrival; -1: not known. */
int64_t sv_llm_gap(const struct sv_llm *l, const struct sv_llm_token *k);

/* ---- the parts, for each other ---- */

struct sv_llm_making;
/* Divides each step among its members, and what ran inside it (llm_shares.c). */
void sv_llm_divide(struct sv_llm *l);

/* What a trace says about engines and their requests, as events in the order of time: the first
 * pass of subjects/engine/llm.h. */
#pragma once

#include "subjects/engine/llm.h"

/* Rows of the table of tokens, of one member and of all: a few bytes of a trace must not become
 * gigabytes here. */
enum { SV_LLM_MEMBER_TOKENS = 32, SV_LLM_TOKENS = 1 << 26 };

/* A call of the life cycle. */
struct sv_llm_call {
    int64_t ts_ns, start_ns;
    uint64_t id;
    sv_str name, model;
    union {
        uint32_t tokens;    /* streamed */
        uint32_t row;       /* enqueued, rejected */
        uint32_t transport; /* transport: which of them */
    };
    uint16_t op, flags;
};

struct sv_llm_transport {
    int64_t ns[SV_N_TRANSPORT]; /* below 0: not known */
};

/* A request that is one slice. */
struct sv_llm_whole {
    int64_t ts_ns, dur_ns, ttft_ns; /* -1: unknown */
    int64_t phase_ns[SV_N_ENGINE_PHASES];
    int64_t transport_ns[SV_N_TRANSPORT]; /* below 0: not known */
    uint64_t id;
    sv_str name, model;
    uint32_t prompt, cached, output, preemptions;
    uint64_t batch; /* its number + 1 */
    uint8_t fate;
    bool is_warmup;
};

/* At one time steps end first, then calls come in the order of the trace, then steps begin. */
enum sv_llm_what { SV_LLM_STEP_ENDS, SV_LLM_CALL, SV_LLM_STEP_BEGINS };

struct sv_llm_moment {
    int64_t ts_ns;
    uint32_t number, what;
};

/* A request was in a batch of dynamic batching. */
struct sv_llm_membership {
    uint64_t request, batch;
};

struct sv_llm_events {
    struct sv_llm_call *calls;
    struct sv_llm_whole *wholes;
    struct sv_llm_moment *order;
    struct sv_llm_membership *memberships;
    struct sv_llm_transport *transports;
    size_t n_calls, n_wholes, n_order, n_memberships, n_transports;
    size_t cap_calls, cap_wholes, cap_memberships, cap_transports;
};

/* Fills steps and members of `l`, too: members have no request and no share yet. */
void sv_llm_events_read(struct sv_llm_events *e, struct sv_llm *l, const struct sv_trace *t);
void sv_llm_events_fini(struct sv_llm_events *e);

/* Engine steps: members as text, the share of each member in a step, and the phases of a request.
 * Shared by libstave-serving, which writes them, and by the reports, which read them; the words are
 * in core/serving/engine_words.h. */
#pragma once

#include "core/base/buf.h"

#include <stdint.h>

/* A request in a step; the same layout as struct stave_serving_member. */
struct sv_engine_member {
    uint64_t request;
    uint32_t tokens_in, tokens_out, cached, position;
    uint16_t proposed, accepted;
    uint32_t is_decode;
};

/* ---- as text ---- */

enum { SV_MEMBER_TEXT_MAX = 96 }; /* bytes of one member, its blank included */

/* Appends one word, with a blank before it when there is something in the buffer. */
void sv_engine_member_put(struct sv_buf *to, const struct sv_engine_member *m);
/* The next word of the text [*at, end), which *at passes. 1: `m` has it; 0: there is none; -1: it
 * is not a member. */
int sv_engine_member_next(const char **at, const char *end, struct sv_engine_member *m);

/* ---- shares ---- */

/* Divides `whole` among n members by weight: shares[i] = whole · weights[i] / sum, rounded down,
 * and what is left goes, 1 each, to the largest remainders (the first of equal ones). They sum to
 * `whole`. If all weights are 0, members have equal weights. Negative wholes count as 0. scratch:
 * space for 2 n numbers. */
void sv_engine_shares(int64_t whole, const uint64_t *weights, size_t n, int64_t *shares,
                      uint64_t *scratch);
/* The weight of a member: the tokens that the step computed for it. */
static inline uint64_t sv_engine_weight(const struct sv_engine_member *m)
{
    return m->tokens_in;
}

/* ---- phases of a request ---- */

/* Time between arrival and end belongs to exactly one of them. */
enum sv_engine_phase {
    SV_ENGINE_NONE, /* before the arrival */
    SV_ENGINE_QUEUE,
    SV_ENGINE_PREFILL, /* scheduled → the step with its first token ends */
    SV_ENGINE_DECODE,
    SV_ENGINE_PREEMPTED, /* preempted → resumed, or the next step with it begins */
    SV_ENGINE_TRANSFER,  /* of its KV cache to another engine */
    SV_ENGINE_RESPOND,   /* last token → end */
    SV_N_ENGINE_PHASES
};
extern const char *const sv_engine_phase_names[SV_N_ENGINE_PHASES];

enum sv_engine_event {
    SV_ENGINE_ARRIVES,
    SV_ENGINE_SCHEDULED,
    SV_ENGINE_IS_PREEMPTED,
    SV_ENGINE_RESUMES,
    SV_ENGINE_IS_SENT,      /* the transfer begins */
    SV_ENGINE_IS_RECEIVED,  /* and ends */
    SV_ENGINE_STEP_PREFILL, /* a step begins with it in prefill, in decode */
    SV_ENGINE_STEP_DECODE,
    SV_ENGINE_TOKEN /* a step ends that gave a token */
};

/* The phase after an event; the phase before it lasts until then. */
enum sv_engine_phase sv_engine_next(enum sv_engine_phase phase, enum sv_engine_event event,
                                    bool has_token);

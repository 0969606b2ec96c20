/* Calls that wait until it is known whether their request is kept.
 *
 *     struct sv_held_calls *h = sv_held_new(out, ctx);
 *     sv_held_put(h, rule, &call, words);     each call, in the order in which they were made
 *     sv_held_left_out(h, model, &n) …        what has not been kept
 *     sv_held_release(h);                     all that waits is kept
 *
 * A batch and its requests are kept together, or not at all: when the batch is over and all of its
 * requests have ended, one of them was slow, failed or cancelled, or none. Rejected requests, those
 * of the warm-up and of engines with continuous batching are kept; so is what has no end when the
 * server stops. The tracer's thread alone uses it. */
#pragma once

#include "serving/call_ring.h"
#include "serving/keep_rule.h"

struct sv_held_calls;
/* A call that is kept; its order is that of the calls of its batch. */
typedef void sv_held_out(void *ctx, const struct sv_call_cell *call, const uint64_t *words);

struct sv_held_calls *sv_held_new(sv_held_out *out, void *ctx);
void sv_held_free(struct sv_held_calls *h);
void sv_held_put(struct sv_held_calls *h, const struct sv_keep_rule *rule,
                 const struct sv_call_cell *call, const uint64_t *words);
void sv_held_release(struct sv_held_calls *h);

/* What of the model was left out since the last call: numbers as in enum sv_left_out, and the last
 * end. False: nothing. */
uint32_t sv_held_models(const struct sv_held_calls *h);
bool sv_held_left_out(struct sv_held_calls *h, uint32_t model, uint64_t numbers[SV_N_LEFT_OUT],
                      int64_t *last_ns);

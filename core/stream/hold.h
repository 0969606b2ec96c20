/* What stages share: events held back, and the outbox through which they leave.
 *
 * A held event is one block of a pool with its arguments and texts. The outbox collects events for
 * `next` in batches. What it was given may point to three kinds of memory, all valid until it
 * flushes: the caller's batch (so write() must end in a flush), arguments made on the spot
 * (sv_outbox_args), and held events that are on their way out (sv_outbox_spend). Errors are sticky:
 * the first failed write is kept and nothing is written after it. */
#pragma once

#include "core/base/pool.h"
#include "core/stream/stream.h"

struct sv_held {
    struct sv_held *next; /* the list it is on: below, or later */
    size_t bytes;
    uint64_t tag; /* the holder's own */
    struct sv_event event;
};

struct sv_held *sv_hold(struct sv_pool *pool, const struct sv_event *e);

static inline void sv_held_free(struct sv_pool *pool, struct sv_held *h)
{
    sv_pool_put(pool, h, h->bytes);
}

struct sv_outbox {
    struct sv_sink *next;
    struct sv_pool *pool; /* of the events that are spent */
    struct sv_held *spent;
    struct sv_arena scratch;
    struct sv_err *err; /* of the call that is running */
    int code;
    size_t n;
    struct sv_event events[SV_BATCH];
};

void sv_outbox_init(struct sv_outbox *o, struct sv_pool *pool, struct sv_sink *next);
/* Closes `next` with failed when a write failed or `failed` is given, and answers for both. */
int sv_outbox_close(struct sv_outbox *o, bool failed, struct sv_err *err);

int sv_outbox_flush(struct sv_outbox *o); /* returns the sticky code */

/* A copy in the outbox, which the caller may change until the next call. */
static inline struct sv_event *sv_outbox_emit(struct sv_outbox *o, const struct sv_event *e)
{
    if (o->n == SV_BATCH)
        sv_outbox_flush(o);
    struct sv_event *out = &o->events[o->n++];
    *out = *e;
    return out;
}

/* Space for the arguments of the next event to emit. */
static inline struct sv_arg *sv_outbox_args(struct sv_outbox *o, size_t n)
{
    if (o->n == SV_BATCH) /* else emit would flush, and they would be gone */
        sv_outbox_flush(o);
    return sv_arena_get(&o->scratch, n * sizeof(struct sv_arg), _Alignof(struct sv_arg));
}

/* `h` goes back to the pool once what was emitted so far has been written. */
static inline void sv_outbox_spend(struct sv_outbox *o, struct sv_held *h)
{
    h->next = o->spent;
    o->spent = h;
}

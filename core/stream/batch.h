/* A batch: up to SV_BATCH events with the arguments and texts they need, reused from call to call.
 *
 *     struct sv_event *e = sv_batch_event(b);      // zeroed slot; the batch has space while b->n <
 *                                                  SV_BATCH
 *     struct sv_arg *a = sv_batch_arg(b);          // zeroed slot, appended to the arguments being
 *                                                  built
 *     a->key = …; a->type = SV_ARG_TEXT; a->text = sv_batch_text(b, bytes, len); a->size = …;
 *     sv_batch_finish(b, e);                       // e->args, e->n_args: all arguments since the
 *                                                  last finish
 *
 * Slots returned by sv_batch_arg() may move when the next one is taken: fill one before taking
 * another, and remember a parent (DICT, ARRAY) by its number: sv_batch_open() / sv_batch_close().
 * Pointers of finished events stay valid until sv_batch_reset(). */
#pragma once

#include "core/base/mem.h"
#include "core/stream/event.h"

#include <stdbool.h>
#include <string.h>

#define SV_BATCH 256

struct sv_batch {
    struct sv_event events[SV_BATCH];
    size_t n;
    struct sv_arg *args, *arg, *args_end; /* open list: first, next free, end of space */
    bool overflow;         /* more than SV_ARGS_MAX were asked for since the last finish */
    struct sv_arena arena; /* argument blocks and copied texts */
};

void sv_batch_init(struct sv_batch *b);
void sv_batch_fini(struct sv_batch *b);
void sv_batch_reset(struct sv_batch *b);
void sv_batch_more_args(struct sv_batch *b);

static inline struct sv_event *sv_batch_event(struct sv_batch *b)
{
    struct sv_event *e = &b->events[b->n++];
    memset(e, 0, sizeof *e);
    return e;
}

/* The same with its fields; sv_batch_finish() follows after the arguments. */
static inline struct sv_event *sv_batch_put(struct sv_batch *b, unsigned kind, int64_t ts_ns,
                                            sv_track track, sv_str name, sv_str cat)
{
    struct sv_event *e = sv_batch_event(b);
    e->kind = (uint8_t)kind;
    e->ts_ns = ts_ns;
    e->track = track;
    e->name = name;
    e->cat = cat;
    return e;
}

static inline struct sv_arg *sv_batch_arg(struct sv_batch *b)
{
    if (__builtin_expect(b->arg == b->args_end, 0))
        sv_batch_more_args(b);
    struct sv_arg *a = b->arg++;
    memset(a, 0, sizeof *a);
    return a;
}

/* Whole arguments. A text is borrowed: it must live as long as the batch (sv_batch_text()
 * copies). */
static inline void sv_batch_int(struct sv_batch *b, sv_str key, int64_t i)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = SV_ARG_INT;
    a->i = i;
}

static inline void sv_batch_str(struct sv_batch *b, sv_str key, const char *text, size_t len)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = SV_ARG_TEXT;
    a->text = text;
    a->size = (uint32_t)len & 0xffffff;
}

/* A container: everything added until the matching close belongs to it. */
static inline size_t sv_batch_open(struct sv_batch *b, sv_str key, unsigned type)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    a->type = type & 0xff;
    return (size_t)(a - b->args);
}

static inline void sv_batch_close(struct sv_batch *b, size_t opened)
{
    b->args[opened].size = (uint32_t)((size_t)(b->arg - b->args) - opened - 1) & 0xffffff;
}

/* Forgets the arguments added since the last finish. */
static inline void sv_batch_drop_args(struct sv_batch *b)
{
    b->arg = b->args;
    b->overflow = false;
}

/* False when arguments past SV_ARGS_MAX were dropped (containers cut to what is left): report
 * it. */
bool sv_batch_finish(struct sv_batch *b, struct sv_event *e);

static inline const char *sv_batch_text(struct sv_batch *b, const void *bytes, size_t len)
{
    return sv_arena_copy(&b->arena, bytes, len);
}

/* The batch: argument lists built in blocks of an arena, so that finished events keep valid
 * pointers.
 *
 * Sources fill it, the pump hands it on and resets it. Blocks are large against the usual list, so
 * moving the open list to a new block is rare. */
#include "core/stream/batch.h"

#define BLOCK_ARGS SV_TABLE(4096u, 128u)

void sv_batch_init(struct sv_batch *b)
{
    b->n = 0;
    b->args = b->arg = b->args_end = NULL;
    b->overflow = false;
    sv_arena_init(&b->arena, (size_t)1 << 18);
}

void sv_batch_fini(struct sv_batch *b)
{
    sv_arena_fini(&b->arena);
    b->args = b->arg = b->args_end = NULL;
    b->n = 0;
}

void sv_batch_reset(struct sv_batch *b)
{
    sv_arena_reset(&b->arena);
    b->n = 0;
    b->args = b->arg = b->args_end = NULL;
    b->overflow = false;
}

void sv_batch_more_args(struct sv_batch *b)
{
    size_t open = (size_t)(b->arg - b->args);
    if (open > SV_ARGS_MAX) { /* the one slot past the limit takes all further writes */
        b->overflow = true;
        b->arg--;
        return;
    }
    size_t cap = open * 2 > BLOCK_ARGS ? open * 2 : BLOCK_ARGS;
    if (cap > SV_ARGS_MAX + 1)
        cap = SV_ARGS_MAX + 1;
    struct sv_arg *block = sv_arena_get(&b->arena, cap * sizeof *block, _Alignof(struct sv_arg));
    if (open)
        memcpy(block, b->args, open * sizeof *block);
    b->args = block;
    b->arg = block + open;
    b->args_end = block + cap;
}

/* Containers must not claim slots that were cut off. */
static void clamp_containers(struct sv_arg *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sv_arg_next(&args[i]) > args + n)
            args[i].size = (uint32_t)(n - i - 1) & 0xffffff;
}

bool sv_batch_finish(struct sv_batch *b, struct sv_event *e)
{
    size_t n = (size_t)(b->arg - b->args);
    bool whole = !b->overflow && n <= SV_ARGS_MAX;
    if (!whole) {
        n = SV_ARGS_MAX;
        clamp_containers(b->args, n);
        b->arg = b->args + n;
    }
    e->args = n ? b->args : NULL;
    e->n_args = (uint16_t)n;
    b->args = b->arg;
    b->overflow = false;
    return whole;
}

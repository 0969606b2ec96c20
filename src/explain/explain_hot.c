/* The functions that units compute in, where stacks were sampled. Called by explain/explain.c. */
#include "explain/waits.h"

#include "core/base/mem.h"
#include "subjects/io/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The frame of the program's own code in a sample; empty: it has none. */
static struct sv_text frame_of(const struct sv_trace *t, uint64_t row, struct sv_batch *scratch)
{
    size_t n;
    sv_batch_reset(scratch);
    const struct sv_arg *a = sv_trace_args(t, t->slices.args[row], scratch, &n), *end = a + n;
    for (; a < end; a = sv_arg_next(a))
        if (a->type == SV_ARG_STACK)
            return sv_stack_frame(a);
    return (struct sv_text){"", 0};
}

/* By thread: the units' own. To be freed. */
static bool *own_threads(const struct sv_ledger *l)
{
    bool *is_own = sv_alloc((size_t)l->states.n + 1);
    for (size_t i = 0; i < l->n_units; i++)
        if (l->units[i].counts && l->units[i].thread != SV_NO_THREAD)
            is_own[l->units[i].thread] = true;
    return is_own;
}

void sv_explain_hot(struct sv_explaining *x)
{
    const struct sv_ledger *l = x->ledger;
    const struct sv_trace *t = x->trace;
    sv_str cat = sv_dict_find_str(t->dict, SV_CAT_CPU_SAMPLE, strlen(SV_CAT_CPU_SAMPLE));
    struct sv_why_sums sums = {0};
    struct sv_batch scratch;
    int64_t all = 0;
    if (!cat)
        return;
    bool *is_own = own_threads(l);
    sv_batch_init(&scratch);
    for (uint32_t row = 0; row < t->slices.n; row++) {
        uint32_t thread = t->slices.cat[row] == cat ? sv_thread_of(&l->states, t->slices.track[row])
                                                    : SV_NO_THREAD;
        if (thread == SV_NO_THREAD || !is_own[thread])
            continue;
        struct sv_text frame = frame_of(t, row, &scratch);
        all++;
        if (frame.len)
            sv_why_sums_add(&sums, sv_hash_bytes(frame.bytes, frame.len, 3), row, 1);
    }
    for (size_t k = 0; k < SV_EXPLAIN_HOT; k++) {
        const struct sv_why_sum *most = sv_why_sums_most(&sums);
        if (!most || (double)most->ns < SV_EXPLAIN_LEAST * (double)all)
            break;
        struct sv_hot *h = &x->e->hot[x->e->n_hot++];
        struct sv_text frame = frame_of(t, most->piece, &scratch);
        snprintf(h->function, sizeof h->function, "%.*s",
                 (int)(frame.len < sizeof h->function ? frame.len : sizeof h->function - 1),
                 frame.bytes);
        h->share = (double)most->ns / (double)all;
        sums.items[most - sums.items].ns = 0;
    }
    sv_batch_fini(&scratch);
    sv_why_sums_fini(&sums);
    free(is_own);
}

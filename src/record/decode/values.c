/* Sampled values as counter events. Called by record/sample/usage.c and record/sample/gpus.c. */
#include "record/decode/values.h"
#include "core/base/mem.h"

#include <stdbool.h>
#include <stdlib.h>

struct sv_value {
    sv_track track;
    double v;
};

void sv_values_begin(struct sv_values *v, int64_t now_ns)
{
    v->n = v->at = 0;
    v->now_ns = now_ns;
}

void sv_values_put(struct sv_values *v, sv_track track, double value)
{
    v->all = sv_grow(v->all, &v->cap, v->n + 1, sizeof *v->all);
    v->all[v->n++] = (struct sv_value){track, value};
}

int sv_values_next(struct sv_values *v, struct sv_batch *b)
{
    while (b->n < SV_BATCH && v->at < v->n) {
        const struct sv_value *x = &v->all[v->at++];
        struct sv_event *e = sv_batch_event(b);
        *e = (struct sv_event){.ts_ns = v->now_ns, .track = x->track, .kind = SV_COUNTER};
        struct sv_arg *a = sv_batch_arg(b);
        bool is_whole = x->v >= 0 && x->v < 1e15 && (double)(int64_t)x->v == x->v;
        a->type = is_whole ? SV_ARG_INT : SV_ARG_DOUBLE;
        if (is_whole)
            a->i = (int64_t)x->v;
        else
            a->d = x->v;
        sv_batch_finish(b, e);
    }
    return (int)b->n;
}

void sv_values_fini(struct sv_values *v)
{
    free(v->all);
    *v = (struct sv_values){0};
}

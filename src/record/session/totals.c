/* Counts events by the category of their probe. Pulled by the recorder, once per round, instead of
 * the decoder. */
#include "record/session/totals.h"
#include "subjects/io/words.h"

#include <stdlib.h>

static uint64_t bytes_of(const struct sv_event *e, sv_str key)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < e->n_args; i++)
        if (e->args[i].key == key && e->args[i].type == SV_ARG_INT)
            n += (uint64_t)e->args[i].i;
    return n;
}

/* Number 0 counts what belongs to no probe. */
static void count(struct sv_totals *t, const struct sv_event *e)
{
    struct sv_total *sum = &t->of[e->cat < t->n_cats ? t->by_cat[e->cat] : 0];
    sum->events++;
    sum->begins += e->kind == SV_BEGIN;
    if (sum->has_bytes)
        sum->bytes += bytes_of(e, t->bytes);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_totals *t = (struct sv_totals *)source;
    int n = t->from->next(t->from, b, err);
    for (int i = 0; i < n; i++)
        count(t, &b->events[i]);
    return n;
}

static void close_source(struct sv_source *source)
{
    struct sv_totals *t = (struct sv_totals *)source;
    t->from->close(t->from);
}

struct sv_source *sv_totals_init(struct sv_totals *t, struct sv_source *from)
{
    sv_str cats[SV_N_PROBES];
    *t = (struct sv_totals){.from = from, .source = *from};
    t->source.next = next;
    t->source.close = close_source;
    t->bytes = sv_dict_cstr(from->dict, "bytes");
    for (unsigned i = 0; i < SV_N_PROBES; i++) {
        cats[i] = sv_dict_cstr(from->dict, sv_probes[i]->cat);
        t->n_cats = cats[i] >= t->n_cats ? (size_t)cats[i] + 1 : t->n_cats;
        for (unsigned k = 0; k < SV_PROBE_SUMS; k++)
            t->of[i + 1].has_bytes |= sv_probes[i]->sums[k].of == SV_SUM_BYTES;
    }
    t->by_cat = sv_alloc(t->n_cats);
    for (unsigned i = SV_N_PROBES; i-- > 0;)
        t->by_cat[cats[i]] = (uint8_t)(i + 1);
    return &t->source;
}

void sv_totals_fini(struct sv_totals *t)
{
    free(t->by_cat);
    t->by_cat = NULL;
    t->n_cats = 0;
}

uint64_t sv_totals_sum(const struct sv_totals *t, enum sv_probe_number probe,
                       enum sv_probe_sum_of of)
{
    const struct sv_total *x = &t->of[probe + 1];
    return of == SV_SUM_EVENTS ? x->events : of == SV_SUM_UNFINISHED ? x->begins : x->bytes;
}

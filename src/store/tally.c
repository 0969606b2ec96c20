/* The tally: counts what passes, and is a drain when nothing follows it.
 *
 * Used by commands that print totals and by tests. It looks at nothing that would cost more than a
 * pass over the arguments. */
#include "core/stream/stages.h"

#include <stdlib.h>

struct tally {
    struct sv_sink sink;
    struct sv_tally *counts;
    struct sv_sink *next;
};

static uint64_t count_flows(const struct sv_event *e)
{
    uint64_t flows = 0;
    for (size_t i = 0; i < e->n_args; i++)
        flows += e->args[i].type >= SV_ARG_FLOW_BEGIN && e->args[i].type <= SV_ARG_FLOW_END;
    return flows;
}

static void count(struct sv_tally *t, const struct sv_event *e)
{
    int64_t end_ns = e->ts_ns;
    if (e->dur_ns > 0 && __builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns))
        end_ns = INT64_MAX;
    if (t->events == 0 || e->ts_ns < t->first_ns)
        t->first_ns = e->ts_ns;
    if (t->events == 0 || end_ns > t->last_ns)
        t->last_ns = end_ns;
    t->events++;
    t->by_kind[e->kind & 15]++;
    t->args += e->n_args;
    t->flows += count_flows(e);
    if (e->kind == SV_LOSS && e->n_args > 0 && e->args[0].i > 0)
        t->lost += (uint64_t)e->args[0].i;
}

void sv_tally_count(struct sv_tally *tally, const struct sv_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        count(tally, &events[i]);
}

static int tally_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct tally *t = (struct tally *)s;
    sv_tally_count(t->counts, events, n);
    return t->next ? t->next->write(t->next, events, n, err) : 0;
}

static int tally_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct tally *t = (struct tally *)s;
    int code = t->next ? t->next->close(t->next, failed, err) : 0;
    free(t);
    return code;
}

struct sv_sink *sv_tally_new(struct sv_tally *tally, struct sv_sink *next)
{
    struct tally *t = sv_alloc(sizeof *t);
    t->sink =
        (struct sv_sink){.write = tally_write, .close = tally_close, .takes = SV_HAS_ANYTHING};
    if (next)
        sv_sink_takes_as(&t->sink, next, SV_IN_NO_ORDER);
    t->counts = tally;
    t->next = next;
    return &t->sink;
}

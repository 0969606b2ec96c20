/* Memory that grows. Called by explain/explain.c. */
#include "explain/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The least and the most of a stretch of a counter's values. */
struct range {
    double least, most;
};

static struct range range_of(const struct sv_trace *t, uint32_t from, uint32_t to)
{
    struct range r = {t->counters.value[from], t->counters.value[from]};
    for (uint32_t i = from; i < to; i++) {
        double v = t->counters.value[i];
        r.least = v < r.least ? v : r.least;
        r.most = v > r.most ? v : r.most;
    }
    return r;
}

/* Steady growth: each quarter lies above the one before it, and the last half has a good part of
 * it. Filling of buffers at the beginning is no growth. The growth in bytes; 0: none. */
static double growth_of(const struct sv_trace *t, const struct sv_trace_track *k)
{
    enum { QUARTERS = 4, LEAST_BYTES = 16 << 20 };
    uint32_t n = k->counter_end - k->counter_first;
    double grown = 0, late = 0;
    struct range before = {0, 0};
    for (uint32_t q = 0; q < QUARTERS; q++) {
        struct range r = range_of(t, k->counter_first + n * q / QUARTERS,
                                  k->counter_first + n * (q + 1) / QUARTERS);
        if (q > 0 && (r.most <= before.most || r.least < before.least))
            return 0;
        grown += q > 0 ? r.most - before.most : 0;
        late += q > 1 ? r.most - before.most : 0;
        before = r;
    }
    double first = t->counters.value[k->counter_first];
    return grown > LEAST_BYTES && grown > 0.2 * first && late > 0.3 * grown ? grown : 0;
}

void sv_explain_memory(struct sv_explaining *x)
{
    enum { VALUES = 8 };
    static const char *const names[] = {"memory_anon", "memory"};
    const struct sv_trace *t = x->trace;
    double most = 0;
    if (x->ledger->kind == SV_UNIT_IS_THREAD && !x->e->observed.has_requests)
        return; /* what does one thing may need more and more for it */
    sv_track who = 0, which = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !who; i++) {
        sv_str name = sv_dict_find_str(t->dict, names[i], strlen(names[i]));
        for (sv_track k = 1; name && k < t->n_tracks; k++) {
            const struct sv_trace_track *c = &t->tracks[k];
            sv_track up = t->dict->tracks[k].parent;
            if (t->dict->tracks[k].name != name || c->counter_end - c->counter_first < VALUES ||
                !up || t->dict->tracks[up].kind != SV_TRACK_PROCESS)
                continue;
            double grown = growth_of(t, c);
            if (grown > most) {
                most = grown;
                who = up;
                which = k;
            }
        }
    }
    if (!who)
        return;
    struct sv_answer a = sv_answer_of(SV_CAUSE_MEMORY, 0, "medium");
    const struct sv_trace_track *c = &t->tracks[which];
    a.culprit.kind = "process";
    a.culprit.pid = t->dict->tracks[who].pid;
    sv_explain_name(t, who, a.culprit.name, sizeof a.culprit.name);
    sv_answer_say(&a,
                  "The memory of %s (pid %" PRId64 ") grows all the time, from %.0f to %.0f MiB.",
                  a.culprit.name, a.culprit.pid, t->counters.value[c->counter_first] / 1048576,
                  t->counters.value[c->counter_end - 1] / 1048576);
    sv_answer_command(&a, "plot counter", x->path, "");
    sv_explain_add(x, &a);
}

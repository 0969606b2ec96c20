/* What has become slower: the findings of one trace against those of another, per unit. Called by
 * the command explain --against. */
#include "explain/explain.h"

#include <stdio.h>
#include <string.h>

static double unit_ns(const struct sv_explanation *e)
{
    return e->n_units ? (double)e->dur_ns / (double)e->n_units : 0;
}

static bool is_same(const struct sv_answer *a, const struct sv_answer *b)
{
    const struct sv_culprit *x = &a->culprit, *y = &b->culprit;
    /* Numbers and folders of another run differ; names of threads, functions and files do not. */
    const char *own = strrchr(x->path, '/'), *its = strrchr(y->path, '/');
    return a->cause == b->cause && strcmp(x->function, y->function) == 0 &&
           strcmp(x->name, y->name) == 0 && strcmp(own ? own : x->path, its ? its : y->path) == 0;
}

/* How long a finding takes in a unit of the other trace, ns: the same cause with the same culprit,
 * else the same cause. */
static double before_ns(const struct sv_answer *a, const struct sv_explanation *before)
{
    double any = 0;
    for (size_t i = 0; i < before->n; i++) {
        double ns = before->findings[i].share * unit_ns(before);
        if (is_same(a, &before->findings[i]))
            return ns;
        any = before->findings[i].cause == a->cause && ns > any ? ns : any;
    }
    return any;
}

static void add_compute(struct sv_explanation *e, const struct sv_explanation *before)
{
    double now = unit_ns(e), more = e->shares[SV_WHY_COMPUTE] * now -
                                    before->shares[SV_WHY_COMPUTE] * unit_ns(before);
    if (now <= 0 || more < SV_EXPLAIN_LEAST * now || e->n == SV_EXPLAIN_MAX)
        return;
    struct sv_answer *a = &e->findings[e->n++];
    *a = sv_answer_of(SV_CAUSE_COMPUTE, more / now, "high");
    sv_answer_say(a, "Computing takes %.3f ms more.", more / 1e6);
}

void sv_explain_against(struct sv_explanation *e, const struct sv_explanation *before)
{
    double now = unit_ns(e), then = unit_ns(before);
    size_t kept = 0;
    sv_explanation_fini(e); /* only the units that both have are compared, and on average */
    e->slow = (struct sv_slow_units){0};
    e->is_against = true;
    e->change = then > 0 ? now / then - 1 : 0;
    for (size_t i = 0; i < e->n; i++) {
        struct sv_answer a = e->findings[i];
        double was = before_ns(&a, before), more = a.share * now - was;
        char sentence[sizeof a.sentence];
        if (now <= 0 || more < SV_EXPLAIN_LEAST * now)
            continue;
        memcpy(sentence, a.sentence, sizeof sentence);
        snprintf(a.sentence, sizeof a.sentence, "%.3f ms more, %.3f before. %.440s", more / 1e6,
                 was / 1e6, sentence);
        a.share = a.gain = more / now;
        e->findings[kept++] = a;
    }
    e->n = kept;
    add_compute(e, before);
    for (size_t i = 1; i < e->n; i++)
        for (size_t k = i; k > 0 && e->findings[k - 1].share < e->findings[k].share; k--) {
            struct sv_answer a = e->findings[k];
            e->findings[k] = e->findings[k - 1];
            e->findings[k - 1] = a;
        }
}

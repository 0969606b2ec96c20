/* Ranks, hosts and stages that the others wait for, by what the job would gain without them
 * (subjects/comm/job.h). Called by explain/explain.c. */
#include "explain/explain.h"

#include "store/ranks.h"
#include "subjects/comm/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum sv_explain_cause cause_of(enum sv_replay_by by)
{
    return by == SV_REPLAY_HOST    ? SV_CAUSE_STRAGGLER_HOST
           : by == SV_REPLAY_STAGE ? SV_CAUSE_STRAGGLER_STAGE
                                   : SV_CAUSE_STRAGGLER_RANK;
}

/* "rank 3" and "DP rank 0, stage 1" are rank 3 and rank 0. */
static int64_t rank_in(const char *name)
{
    const char *at = strstr(name, "rank ");
    return at ? strtoll(at + 5, NULL, 10) : -1;
}

/* "mpirun (12)", of a process whose rank is not known, is pid 12. */
static int64_t pid_in(const char *name)
{
    const char *at = strrchr(name, '(');
    return at && at[1] ? strtoll(at + 1, NULL, 10) : -1;
}

/* What takes a straggler's time, where its own units say so: it is why the others wait for it. */
static void take_reason(struct sv_explaining *x, struct sv_answer *a)
{
    struct sv_explanation *e = x->e;
    for (size_t i = 0; i < e->n;) {
        struct sv_answer *f = &e->findings[i];
        bool is_its = f->in_rank >= 0
                          ? a->culprit.rank == f->in_rank ||
                                (a->culprit.host[0] && strcmp(a->culprit.host, f->in_host) == 0)
                          : a->culprit.pid >= 0 && a->culprit.pid == f->culprit.pid;
        if (!is_its) {
            i++;
            continue;
        }
        if (a->n_chain < SV_EXPLAIN_LINKS)
            snprintf(a->chain[a->n_chain++], sizeof *a->chain, "%.24s: %s: %.100s", a->culprit.name,
                     sv_explain_words[f->cause], f->sentence);
        memmove(f, f + 1, (--e->n - i) * sizeof *f);
    }
}

void sv_explain_ranks(struct sv_explaining *x)
{
    struct sv_replay_result r;
    bool is_told = sv_replay_job(&r, x->trace);
    x->e->observed.has_ranks = r.is_job;
    sv_comm_confirm(&r, x->trace);
    for (size_t i = 0; is_told && i < r.n_culprits; i++) {
        const struct sv_replay_named *c = &r.culprits[i];
        if (c->gain < SV_EXPLAIN_LEAST)
            continue;
        struct sv_answer a = sv_answer_of(cause_of(c->by), c->gain, "high");
        a.culprit.kind = sv_replay_by_names[c->by];
        snprintf(a.culprit.name, sizeof a.culprit.name, "%s", c->name);
        if (c->by == SV_REPLAY_HOST)
            snprintf(a.culprit.host, sizeof a.culprit.host, "%s", c->name);
        else
            a.culprit.rank = rank_in(c->name);
        if (a.culprit.rank < 0 && c->by == SV_REPLAY_RANK)
            a.culprit.pid = pid_in(c->name);
        a.n_units = r.n_steps;
        sv_answer_say(&a,
                      "The job waits for %s%s: it would take %.0f %% less time if that were as "
                      "fast as its peers. It explains %.0f %% of a slowdown of %.2f.",
                      c->by == SV_REPLAY_HOST ? "host " : "", c->name, c->gain * 100,
                      c->explains * 100, r.slowdown);
        sv_answer_command(&a, "whatif", x->path, "");
        take_reason(x, &a);
        sv_explain_add(x, &a);
    }
    sv_replay_result_fini(&r);
}

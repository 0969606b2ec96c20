/* Which ranks hold the job up: the judgement by arrivals and what the replay says
 * (subjects/comm/job.h), together, so that the report, explain and steps name the same ranks. Equal
 * ranks with much noise and one long disturbance look like a culprit to the replay alone; few long
 * delays may be chance to the arrivals alone. Called once, after the judgement by arrivals. */
#include "subjects/comm/figures.h"
#include "subjects/comm/job.h"

#include <string.h>

/* What the arrivals say of a culprit of the replay. */
struct arrivals {
    bool *is_slow, is_likely;
    double *gain;
};

/* It costs something for one reason again and again, which the ledger knows. */
static bool has_reasons(const struct sv_comm_rank *k)
{
    return k->n_reasons >= SV_COMM_REASONS && k->lost_share >= SV_COMM_COST_SHARE &&
           (double)k->reasons_ns >= SV_COMM_REASONS_SHARE * (double)k->lost_ns;
}

static bool find(struct sv_comm_report *r, const struct sv_replay_named *c, struct arrivals *to)
{
    char name[96];
    for (uint32_t i = 0; c->by == SV_REPLAY_RANK && i < r->n_ranks; i++)
        if (strcmp(sv_comm_rank_name(r, i, name, sizeof name), c->name) == 0) {
            struct sv_comm_rank *k = &r->ranks[i];
            *to = (struct arrivals){&k->is_slow, k->is_likely || has_reasons(k), &k->gain};
            return k->judged > 0;
        }
    for (size_t i = 0; c->by == SV_REPLAY_HOST && i < r->n_hosts; i++)
        if (strcmp(r->hosts[i].name, c->name) == 0) {
            struct sv_comm_host *h = &r->hosts[i];
            *to = (struct arrivals){&h->is_slow, h->is_likely, &h->gain};
            return h->judged > 0;
        }
    return false;
}

static bool is_confirmed(const struct arrivals *a, const struct sv_replay_named *c)
{
    return *a->is_slow || (a->is_likely && c->explains >= SV_COMM_LIKELY_EXPLAINS);
}

void sv_comm_judge_by_replay(struct sv_comm_report *r)
{
    struct sv_replay_result result;
    struct arrivals a;
    if (r->n_ranks < 2)
        return;
    sv_replay_job(&result, r->trace);
    for (size_t i = 0; result.is_told && i < result.n_culprits; i++) {
        const struct sv_replay_named *c = &result.culprits[i];
        if (c->gain >= SV_COMM_COST_SHARE && find(r, c, &a) && is_confirmed(&a, c)) {
            *a.is_slow = true;
            *a.gain = c->gain;
        }
    }
    sv_replay_result_fini(&result);
}

void sv_comm_confirm(struct sv_replay_result *result, const struct sv_trace *t)
{
    struct sv_comm_report r;
    struct arrivals a;
    size_t n = 0;
    if (!result->n_culprits)
        return;
    sv_comm_report_begin(&r, t);
    sv_comm_judge_ranks(&r);
    sv_comm_find_before(&r);
    for (size_t i = 0; i < result->n_culprits; i++)
        if (!find(&r, &result->culprits[i], &a) || is_confirmed(&a, &result->culprits[i]))
            result->culprits[n++] = result->culprits[i];
    result->n_culprits = n;
    sv_comm_report_fini(&r);
}

bool sv_comm_is_held_up_by(const struct sv_comm_report *r, sv_track track)
{
    uint32_t rank = r->rank_of_track[track];
    const struct sv_comm_rank *k = rank != SV_COMM_NO_RANK ? &r->ranks[rank] : NULL;
    return k && (k->is_slow || (k->host != SV_COMM_NO_RANK && r->hosts[k->host].is_slow));
}

void sv_comm_keep_stragglers(struct sv_steps *s, const struct sv_trace *t)
{
    struct sv_comm_report r;
    if (s->n_tracks < 2)
        return;
    sv_comm_report_make(&r, t);
    size_t n_told = 0;
    for (size_t i = 0; i < r.n_groups; i++)
        n_told += r.groups[i].n_told;
    for (size_t i = 0; i < s->n && n_told > 0; i++)
        s->steps[i].is_straggler &= sv_comm_is_held_up_by(&r, s->steps[i].track);
    sv_comm_report_fini(&r);
}

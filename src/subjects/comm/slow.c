/* Which ranks hold the job up: what the replay says (subjects/comm/job.h) is added to the judgement
 * by arrivals, so that the report, explain and steps name the same ranks. Called once, after that
 * judgement. */
#include "subjects/comm/figures.h"
#include "subjects/comm/job.h"

#include <string.h>

#include "store/ranks.h"

static void mark(struct sv_comm_report *r, const struct sv_replay_named *c)
{
    char name[96];
    for (uint32_t i = 0; c->by == SV_REPLAY_RANK && i < r->n_ranks; i++)
        if (strcmp(sv_comm_rank_name(r, i, name, sizeof name), c->name) == 0) {
            r->ranks[i].is_slow = true;
            r->ranks[i].gain = c->gain;
        }
    for (size_t i = 0; c->by == SV_REPLAY_HOST && i < r->n_hosts; i++)
        if (strcmp(r->hosts[i].name, c->name) == 0) {
            r->hosts[i].is_slow = true;
            r->hosts[i].gain = c->gain;
        }
}

void sv_comm_judge_by_replay(struct sv_comm_report *r)
{
    struct sv_replay_result result;
    if (r->n_ranks < 2)
        return;
    sv_replay_job(&result, r->trace);
    for (size_t i = 0; result.is_told && i < result.n_culprits; i++)
        if (result.culprits[i].gain >= SV_COMM_COST_SHARE)
            mark(r, &result.culprits[i]);
    sv_replay_result_fini(&result);
}

bool sv_comm_is_held_up_by(const struct sv_comm_report *r, sv_track track)
{
    int64_t number = sv_rank_of_track(r->trace, track);
    for (size_t i = 0; i < r->n_ranks; i++) {
        const struct sv_comm_rank *k = &r->ranks[i];
        if (number >= 0 && k->number == number)
            return k->is_slow || (k->host != SV_COMM_NO_RANK && r->hosts[k->host].is_slow);
    }
    return false;
}

void sv_comm_keep_stragglers(struct sv_steps *s, const struct sv_trace *t)
{
    struct sv_comm_report r;
    if (s->n_tracks < 2)
        return;
    sv_comm_report_make(&r, t);
    for (size_t i = 0; i < s->n && r.n > 0; i++)
        s->steps[i].is_straggler &= sv_comm_is_held_up_by(&r, s->steps[i].track);
    sv_comm_report_fini(&r);
}

/* What a job would take without its stragglers: the replay of its operations, and who costs most.
 * Called by `stave whatif`, `stave explain` and the communication report. Order: operations
 * (job_pipeline.c or job_calls.c), replay (why/replay.c), the check against the measured time,
 * lists, culprits. */
#include "subjects/comm/job.h"

#include "core/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CULPRITS_MAX = 8, CANDIDATES_MAX = 16 };

uint32_t sv_job_add_name(struct sv_job *j, enum sv_replay_by by, const char *name)
{
    sv_str *names = sv_grow(j->names[by], &j->cap_names[by], j->n_names[by] + 1, sizeof *names);
    j->names[by] = names;
    names[j->n_names[by]] = sv_dict_str(j->strings, name, strlen(name));
    return (uint32_t)j->n_names[by]++;
}

uint32_t sv_job_number(struct sv_job *j, enum sv_replay_by by, const char *name)
{
    bool is_new;
    sv_str s = sv_dict_str(j->strings, name, strlen(name));
    uint64_t *slot = sv_map_add(&j->numbers[by], s, &is_new);
    if (is_new)
        *slot = sv_job_add_name(j, by, name);
    return (uint32_t)*slot;
}

uint32_t sv_job_key(struct sv_map *m, const void *key, size_t size)
{
    bool is_new;
    uint64_t *slot = sv_map_add(m, sv_hash_bytes(key, size, 0), &is_new);
    if (is_new)
        *slot = m->n - 1;
    return (uint32_t)*slot;
}

/* ---- lists ---- */

static void fill_list(struct sv_replay_list *list, const struct sv_job *j, enum sv_replay_by by)
{
    size_t n = j->n_names[by];
    if (n < 2 || (by == SV_REPLAY_WORKER &&
                  (n == j->n_names[SV_REPLAY_RANK] || n == j->n_names[SV_REPLAY_STAGE])))
        return;
    struct sv_replay_part *parts = sv_replay_parts(&j->replay, by, &n, &list->left_off);
    list->items = sv_alloc((n + 1) * sizeof *list->items);
    list->n = n;
    for (size_t i = 0; i < n; i++)
        list->items[i] = (struct sv_replay_named){
            .by = by,
            .name = sv_dict_text(j->strings, j->names[by][parts[i].number]).bytes,
            .number = parts[i].number,
            .slowdown = parts[i].slowdown,
            .explains = parts[i].explains,
            .gain = parts[i].gain,
        };
    free(parts);
}

/* ---- culprits ---- */

static int by_explains(const void *a, const void *b)
{
    const struct sv_replay_named *x = a, *y = b;
    if (x->explains != y->explains)
        return x->explains > y->explains ? -1 : 1;
    if (x->by != y->by)
        return x->by < y->by ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What the middle one of the others explains. */
static double middle_peer(const struct sv_replay_list *list, size_t without)
{
    double v[SV_REPLAY_PARTS];
    size_t n = 0;
    for (size_t i = 0; i < list->n; i++)
        if (i != without)
            v[n++] = list->items[i].explains;
    qsort(v, n, sizeof *v, by_value);
    return n ? v[n / 2] : 0;
}

/* Is one of them a part of the other: a worker of a rank or stage, a rank of a host? */
static bool contains(const struct sv_replay *r, const struct sv_replay_named *large,
                     const struct sv_replay_named *small)
{
    if (large->by == small->by || small->by == SV_REPLAY_STAGE || small->by == SV_REPLAY_HOST ||
        large->by == SV_REPLAY_WORKER ||
        (large->by == SV_REPLAY_STAGE && small->by == SV_REPLAY_RANK))
        return false;
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i].at[large->by] == large->number && r->ops[i].at[small->by] == small->number)
            return true;
    return false;
}

/* The smaller one where it explains nearly as much as the larger one, else the larger one. */
static bool is_better_said(const struct sv_replay *r, const struct sv_replay_named *all, size_t n,
                           size_t i)
{
    for (size_t k = 0; k < n; k++) {
        if (contains(r, &all[i], &all[k]) && all[k].explains >= 0.9 * all[i].explains)
            return true;
        if (contains(r, &all[k], &all[i]) && all[i].explains < 0.9 * all[k].explains)
            return true;
    }
    return false;
}

static void find_culprits(struct sv_replay_result *r, const struct sv_replay *replay)
{
    struct sv_replay_named *all = sv_alloc((4u * SV_REPLAY_PARTS + 1) * sizeof *all);
    size_t n = 0;
    for (unsigned by = 0; by < SV_REPLAY_KIND; by++)
        for (size_t i = 0; i < r->by[by].n; i++) {
            const struct sv_replay_named *x = &r->by[by].items[i];
            double peer = middle_peer(&r->by[by], i);
            if (x->gain >= SV_REPLAY_GAIN_MIN && x->explains >= SV_REPLAY_EXPLAINS_MIN &&
                x->explains >= SV_REPLAY_PEERS * peer)
                all[n++] = *x;
        }
    qsort(all, n, sizeof *all, by_explains);
    n = n < CANDIDATES_MAX ? n : CANDIDATES_MAX;
    r->culprits = sv_alloc((CULPRITS_MAX + 1) * sizeof *r->culprits);
    for (size_t i = 0; i < n && r->n_culprits < CULPRITS_MAX; i++)
        if (!is_better_said(replay, all, n, i))
            r->culprits[r->n_culprits++] = all[i];
    free(all);
}

/* ---- the whole ---- */

static bool judge(struct sv_replay_result *r, struct sv_job *j, enum sv_replay_by as_median)
{
    struct sv_replay *p = &j->replay;
    int64_t n = p->n_steps ? (int64_t)p->n_steps : 1;
    sv_replay_solve(p);
    r->measured_ns = p->measured_ns / n;
    r->replayed_ns = p->replayed_ns / n;
    r->ideal_ns = p->ideal_ns / n;
    if (p->measured_ns <= 0 || p->ideal_ns <= 0) {
        snprintf(r->reason, sizeof r->reason, "its operations take no time");
        return false;
    }
    r->error = (double)p->replayed_ns / (double)p->measured_ns - 1;
    r->slowdown = (double)p->replayed_ns / (double)p->ideal_ns;
    if (fabs(r->error) > SV_REPLAY_ERROR_MAX) {
        snprintf(r->reason, sizeof r->reason,
                 "the replay with measured lengths misses the measured time by %+.1f %%, more than "
                 "%.0f %%: the trace lacks operations or dependencies",
                 100 * r->error, 100 * SV_REPLAY_ERROR_MAX);
        return false;
    }
    if (r->slowdown < 1 - SV_REPLAY_ERROR_MAX / 2) {
        snprintf(r->reason, sizeof r->reason,
                 "the job of mean operations would take longer than the measured one (slowdown "
                 "%.3f): operations that count as equal are not, or ranks lack some",
                 r->slowdown);
        return false;
    }
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++)
        fill_list(&r->by[by], j, by);
    find_culprits(r, p);
    if (as_median < SV_N_REPLAY_BY)
        r->as_median_ns = sv_replay_as_median(p, as_median) / n;
    return true;
}

bool sv_replay_job_as(struct sv_replay_result *r, const struct sv_trace *t,
                      enum sv_replay_by as_median)
{
    struct sv_job j = {.strings = sv_dict_new()};
    *r = (struct sv_replay_result){.as_median_ns = -1, .slowdown = 1};
    r->is_job = sv_job_of_pipeline(&j, t) || (!j.reason[0] && sv_job_of_collectives(&j, t));
    r->n_ranks = j.n_ranks;
    r->n_ops = j.replay.n;
    r->n_steps = j.replay.n_steps;
    r->steps_left_out = j.steps_left_out;
    r->strings = j.strings;
    snprintf(r->reason, sizeof r->reason, "%s", j.reason);
    if (r->is_job && !sv_replay_order(&j.replay))
        snprintf(r->reason, sizeof r->reason,
                 "its operations wait for each other in a circle: sequence numbers or clocks are "
                 "wrong");
    else if (r->is_job)
        r->is_told = judge(r, &j, as_median);
    sv_replay_fini(&j.replay);
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++) {
        sv_map_fini(&j.numbers[by]);
        free(j.names[by]);
    }
    sv_map_fini(&j.same);
    sv_map_fini(&j.groups);
    return r->is_told;
}

bool sv_replay_job(struct sv_replay_result *r, const struct sv_trace *t)
{
    return sv_replay_job_as(r, t, SV_N_REPLAY_BY);
}

void sv_replay_result_fini(struct sv_replay_result *r)
{
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++)
        free(r->by[by].items);
    free(r->culprits);
    if (r->strings)
        sv_dict_free(r->strings);
    *r = (struct sv_replay_result){0};
}

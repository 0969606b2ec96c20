/* The communication report's judgement: which ranks are last more often than chance explains, and
 * at a cost. Called once, after arrivals were compared.
 *
 * Among k equal ranks each is the last of n collectives in n/k of them, give or take; the number is
 * binomial. Collectives that follow each other are not independent (a rank that is late in a step
 * is late in each of its collectives): n and the count are reduced by the first autocorrelation of
 * "it was last". The result is corrected for the number of ranks and groups that were tested. */
#include "subjects/comm/figures.h"

#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 4 }; /* of a run, in each of which a slow rank is slow */

/* lgamma() leaves the sign in a variable that all threads share. */
static double log_factorial(double n)
{
    int sign;
    return lgamma_r(n + 1, &sign);
}

double sv_binomial_tail(double n, double k, double p)
{
    double sum = 0;
    if (k <= 0)
        return 1;
    if (k > n || p <= 0)
        return 0;
    if (p >= 1)
        return 1;
    /* From the largest term on, which is at k or at the mean, until nothing changes. */
    for (double i = k; i <= n; i++) {
        double term = exp(log_factorial(n) - log_factorial(i) - log_factorial(n - i) + i * log(p) +
                          (n - i) * log1p(-p));
        sum += term;
        if (i > n * p && term < sum * 1e-15)
            break;
    }
    return sum < 1 ? sum : 1;
}

/* The first autocorrelation of "this rank was last", 0 … 0.99. */
static double persistence(const uint32_t *last, size_t n, uint32_t rank, double share)
{
    double both = 0, own = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (last[i] == rank ? 1 : 0) - share;
        own += x * x;
        if (i + 1 < n)
            both += x * ((last[i + 1] == rank ? 1 : 0) - share);
    }
    double rho = own > 0 ? both / own : 0;
    return rho < 0 ? 0 : rho > 0.99 ? 0.99 : rho;
}

struct trial {
    uint32_t *last; /* of the collectives that are told, in their order */
    size_t n;
    /* by rank, of the group's members */
    size_t *count;
    int64_t *lost_ns;
};

/* Is it last in each part of the run at least half as often as in all of it? One long disturbance
 * is no slow rank. */
static bool is_lasting(const struct trial *t, uint32_t rank, double share)
{
    for (size_t part = 0; part < PARTS; part++) {
        size_t from = t->n * part / PARTS, to = t->n * (part + 1) / PARTS, count = 0;
        for (size_t i = from; i < to; i++)
            count += t->last[i] == rank;
        if ((double)count < share / 2 * (double)(to - from))
            return false;
    }
    return true;
}

static void judge(struct sv_comm_report *r, const struct sv_comm_group *g, const struct trial *t,
                  uint32_t rank, double n_tests)
{
    struct sv_comm_rank *is = &r->ranks[rank];
    int64_t span = sv_sat_sub(g->end_ns, g->ts_ns);
    double share = (double)t->count[rank] / (double)t->n, by_chance = 1.0 / (double)g->n_members;
    double p = sv_binomial_tail((double)t->n, (double)t->count[rank], by_chance) * n_tests;
    if (p < SV_COMM_CHANCE) { /* the correction only makes it larger */
        double rho = persistence(t->last, t->n, rank, share);
        double n = floor((double)t->n * (1 - rho) / (1 + rho));
        p = sv_binomial_tail(n, floor(share * n), by_chance) * n_tests;
    }
    double lost_share = span > 0 ? (double)t->lost_ns[rank] / (double)span : 0;
    bool is_slow = p < SV_COMM_CHANCE && lost_share >= SV_COMM_LOST_SHARE &&
                   is_lasting(t, rank, share);
    /* The group that says most against it is the one that is shown. */
    if ((is_slow && !is->is_slow) || (is_slow == is->is_slow && p < is->p_value)) {
        is->p_value = p < 1 ? p : 1;
        is->lost_share = lost_share;
    }
    is->is_slow |= is_slow;
}

static void judge_group(struct sv_comm_report *r, const struct sv_comm_group *g, struct trial *t,
                        double n_tests)
{
    t->last = sv_alloc((g->n_told + 1) * sizeof *t->last);
    t->n = 0;
    for (size_t k = 0; k < g->n_members; k++) {
        t->count[g->members[k]] = 0;
        t->lost_ns[g->members[k]] = 0;
    }
    for (size_t i = g->first; i < g->first + g->n; i++) {
        const struct sv_comm_collective *c = &r->collectives[i];
        if (c->last == SV_COMM_NO_RANK || c->is_passed_on)
            continue;
        t->last[t->n++] = c->last;
        t->count[c->last]++;
        t->lost_ns[c->last] = sv_sat_add(t->lost_ns[c->last], c->lead_ns);
    }
    for (size_t k = 0; k < g->n_members; k++)
        if (t->count[g->members[k]])
            judge(r, g, t, g->members[k], n_tests);
    free(t->last);
}

/* Of each rank, over all groups. */
static void find_median_leads(struct sv_comm_report *r)
{
    size_t *at = sv_alloc((r->n_ranks + 2) * sizeof *at);
    int64_t *leads = sv_alloc((r->n + 1) * sizeof *leads);
    for (size_t k = 0; k < r->n_ranks; k++)
        at[k + 1] = at[k] + r->ranks[k].last;
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_comm_collective *c = &r->collectives[i];
        if (c->last != SV_COMM_NO_RANK && !c->is_passed_on)
            leads[at[c->last]++] = c->lead_ns;
    }
    for (size_t k = 0; k < r->n_ranks; k++)
        if (r->ranks[k].last)
            r->ranks[k].lead_median_ns =
                (int64_t)sv_percentile(leads + at[k] - r->ranks[k].last, r->ranks[k].last, 0.5);
    free(at);
    free(leads);
}

void sv_comm_judge_ranks(struct sv_comm_report *r)
{
    struct trial t = {.count = sv_alloc((r->n_ranks + 1) * sizeof *t.count),
                      .lost_ns = sv_alloc((r->n_ranks + 1) * sizeof *t.lost_ns)};
    double n_tests = 0;
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].n_told)
            n_tests += (double)r->groups[i].n_members;
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].n_told && r->groups[i].n_members > 1)
            judge_group(r, &r->groups[i], &t, n_tests);
    free(t.count);
    free(t.lost_ns);
    find_median_leads(r);
}

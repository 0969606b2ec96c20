/* The communication report's judgement: which ranks and hosts are last more often than chance
 * explains, and at a cost; and which cost more than chance explains, however often they are last.
 * Called once, after arrivals were compared.
 *
 * Among k equal ranks each is the last of n collectives in n/k of them, give or take; the number is
 * binomial. Collectives that follow each other are not independent (a rank that is late in a step
 * is late in each of its collectives): n and the count are reduced by the first autocorrelation of
 * "it was last". The result is corrected for the number of ranks and groups that were tested.
 *
 * By cost: of equal ranks each is the one that a lead is lost to with the same probability. How
 * likely the sum of the leads is lost to one is bounded by Chernoff; few long ones count as much as
 * many short ones. */
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
    uint64_t more = (uint64_t)(n - k);
    for (uint64_t j = 0; j <= more; j++) {
        double i = k + (double)j;
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

/* Who was last, by how much: of ranks, or of hosts. */
struct trial {
    uint32_t *last; /* of the collectives that are told, in their order */
    int64_t *lead_ns;
    double *weights; /* leads over the greatest */
    size_t n;
    /* by rank or host */
    size_t *count;
    int64_t *lost_ns;
};

/* Is it last in each part of the run at least half as often as in all of it, or (by_cost) does it
 * cost at least a quarter? One long disturbance is no slow rank. */
static bool is_lasting(const struct trial *t, uint32_t who, bool by_cost)
{
    double all = by_cost ? (double)t->lost_ns[who] : (double)t->count[who];
    for (size_t part = 0; part < PARTS; part++) {
        size_t from = t->n * part / PARTS, to = t->n * (part + 1) / PARTS;
        double sum = 0, even = all * (double)(to - from) / (double)t->n;
        for (size_t i = from; i < to; i++)
            sum += t->last[i] != who ? 0 : by_cost ? (double)t->lead_ns[i] : 1;
        if (sum < even / (by_cost ? 4 : 2))
            return false;
    }
    return true;
}

/* The derivative of the bound's exponent. */
static double slope(const double *weights, size_t n, double cost, double p, double at)
{
    double sum = -cost;
    for (size_t i = 0; i < n; i++) {
        double grown = p * exp(at * weights[i]);
        sum += weights[i] * grown / (1 - p + grown);
    }
    return sum;
}

/* Chernoff's bound, at its least: its exponent is convex. */
double sv_cost_tail(const double *weights, size_t n, double cost, double p)
{
    double low = 0, high = 500, sum = 0;
    if (slope(weights, n, cost, p, 0) >= 0)
        return 0;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (slope(weights, n, cost, p, middle) < 0)
            low = middle;
        else
            high = middle;
    }
    for (size_t i = 0; i < n; i++)
        sum += log(1 - p + p * exp(low * weights[i]));
    return sum - low * cost;
}

struct finding {
    double p_value, lost_share;
    bool is_slow, is_likely;
};

/* by_chance: how likely one of equal ones is the last. */
static struct finding weigh(const struct trial *t, uint32_t who, double by_chance, int64_t span,
                            double n_tests)
{
    double share = (double)t->count[who] / (double)t->n;
    double p = sv_binomial_tail((double)t->n, (double)t->count[who], by_chance) * n_tests;
    double lost_share = span > 0 ? (double)t->lost_ns[who] / (double)span : 0;
    double rho = persistence(t->last, t->n, who, share);
    if (p < SV_COMM_CHANCE) { /* the correction only makes it larger */
        double n = floor((double)t->n * (1 - rho) / (1 + rho));
        p = sv_binomial_tail(n, floor(share * n), by_chance) * n_tests;
    }
    bool is_slow = p < SV_COMM_CHANCE && lost_share >= SV_COMM_LOST_SHARE &&
                   is_lasting(t, who, false);
    bool is_likely = is_slow;
    if (!is_slow && lost_share >= SV_COMM_COST_SHARE && is_lasting(t, who, true)) {
        double greatest = 0, cost = 0;
        for (size_t i = 0; i < t->n; i++)
            greatest = fmax(greatest, (double)t->lead_ns[i]);
        for (size_t i = 0; i < t->n; i++) {
            t->weights[i] = greatest > 0 ? (double)t->lead_ns[i] / greatest : 0;
            cost += t->last[i] == who ? t->weights[i] : 0;
        }
        double by_cost = sv_cost_tail(t->weights, t->n, cost, by_chance) * (1 - rho) / (1 + rho);
        p = fmin(p, exp(by_cost) * n_tests);
        is_slow = exp(by_cost) * n_tests <
                  (lost_share >= SV_COMM_MUCH_SHARE ? SV_COMM_MUCH_CHANCE : SV_COMM_COST_CHANCE);
        is_likely = exp(by_cost) * n_tests < SV_COMM_LIKELY_CHANCE;
    }
    return (struct finding){fmin(p, 1), lost_share, is_slow, is_likely};
}

/* The group that says most against it is the one that is shown. */
static void keep(struct finding f, bool *is_slow, bool *is_likely, double *p_value,
                 double *lost_share)
{
    bool is_more = f.p_value < *p_value || (f.p_value == *p_value && f.lost_share > *lost_share);
    if ((f.is_slow && !*is_slow) || (f.is_slow == *is_slow && is_more)) {
        *p_value = f.p_value;
        *lost_share = f.lost_share;
    }
    *is_slow |= f.is_slow;
    *is_likely |= f.is_likely;
}

static void begin_trial(struct trial *t, size_t n, size_t n_who)
{
    t->last = sv_alloc((n + 1) * sizeof *t->last);
    t->lead_ns = sv_alloc((n + 1) * sizeof *t->lead_ns);
    t->weights = sv_alloc((n + 1) * sizeof *t->weights);
    t->count = sv_alloc((n_who + 1) * sizeof *t->count);
    t->lost_ns = sv_alloc((n_who + 1) * sizeof *t->lost_ns);
}

static void end_trial(struct trial *t)
{
    free(t->last);
    free(t->lead_ns);
    free(t->weights);
    free(t->count);
    free(t->lost_ns);
}

static void add_to_trial(struct trial *t, uint32_t who, int64_t lead_ns)
{
    t->last[t->n] = who;
    t->lead_ns[t->n++] = lead_ns;
    t->count[who]++;
    t->lost_ns[who] = sv_sat_add(t->lost_ns[who], lead_ns);
}

static void judge_group(struct sv_comm_report *r, const struct sv_comm_group *g, struct trial *t,
                        double n_tests)
{
    int64_t span = sv_sat_sub(g->end_ns, g->ts_ns);
    t->n = 0;
    for (size_t k = 0; k < g->n_members; k++) {
        t->count[g->members[k]] = 0;
        t->lost_ns[g->members[k]] = 0;
    }
    for (size_t i = g->first; i < g->first + g->n; i++) {
        const struct sv_comm_collective *c = &r->collectives[i];
        if (c->last != SV_COMM_NO_RANK && !c->is_passed_on)
            add_to_trial(t, c->last, c->lead_ns);
    }
    for (size_t k = 0; k < g->n_members; k++) {
        struct sv_comm_rank *rank = &r->ranks[g->members[k]];
        if (t->count[g->members[k]])
            keep(weigh(t, g->members[k], 1.0 / (double)g->n_members, span, n_tests), &rank->is_slow,
                 &rank->is_likely, &rank->p_value, &rank->lost_share);
    }
}

/* ---- hosts ---- */

static void judge_hosts_of(struct sv_comm_report *r, const struct sv_comm_group *g, struct trial *t,
                           double n_tests)
{
    int64_t span = sv_sat_sub(g->end_ns, g->ts_ns);
    double *share = sv_alloc((r->n_hosts + 1) * sizeof *share); /* of the group's ranks */
    t->n = 0;
    for (size_t h = 0; h < r->n_hosts; h++) {
        t->count[h] = 0;
        t->lost_ns[h] = 0;
    }
    for (size_t k = 0; k < g->n_members; k++)
        if (r->ranks[g->members[k]].host != SV_COMM_NO_RANK)
            share[r->ranks[g->members[k]].host] += 1.0 / (double)g->n_members;
    for (size_t i = g->first; i < g->first + g->n; i++)
        if (r->collectives[i].last_host != SV_COMM_NO_RANK)
            add_to_trial(t, r->collectives[i].last_host, r->collectives[i].host_lead_ns);
    for (uint32_t h = 0; h < r->n_hosts && t->n; h++) {
        struct sv_comm_host *host = &r->hosts[h];
        host->judged += share[h] > 0 ? t->n : 0;
        host->expected += share[h] * (double)t->n;
        host->last += t->count[h];
        host->lost_ns = sv_sat_add(host->lost_ns, t->lost_ns[h]);
        if (t->count[h])
            keep(weigh(t, h, share[h], span, n_tests), &host->is_slow, &host->is_likely,
                 &host->p_value, &host->lost_share);
    }
    free(share);
}

static void judge_hosts(struct sv_comm_report *r)
{
    struct trial t = {0};
    begin_trial(&t, r->n, r->n_hosts);
    for (size_t i = 0; i < r->n_groups; i++)
        judge_hosts_of(r, &r->groups[i], &t, (double)(r->n_groups * r->n_hosts));
    /* One slow rank makes its host the last: then the rank is meant. */
    for (size_t i = 0; i < r->n_ranks; i++)
        if (r->ranks[i].is_slow && r->ranks[i].host != SV_COMM_NO_RANK &&
            (double)r->ranks[i].lost_ns > 0.8 * (double)r->hosts[r->ranks[i].host].lost_ns)
            r->hosts[r->ranks[i].host].is_slow = false;
    end_trial(&t);
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
    struct trial t = {0};
    double n_tests = 0;
    begin_trial(&t, r->n, r->n_ranks);
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].n_told)
            n_tests += (double)r->groups[i].n_members;
    for (size_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].n_told && r->groups[i].n_members > 1)
            judge_group(r, &r->groups[i], &t, n_tests);
    end_trial(&t);
    if (r->n_hosts)
        judge_hosts(r);
    find_median_leads(r);
}

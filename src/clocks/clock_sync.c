/* The estimator: see clock_sync.h. Called by whoever exchanged pings, and by merge with the rounds
 * that a file holds.
 *
 * Numbers may come from files of others: times are clamped to ±2^62 before anything is computed, so
 * that differences fit, and distances are doubles where they are only multiplied by a rate. */
#include "clocks/clock_sync.h"
#include "core/base/mem.h"

#include <stdlib.h>

#define TIME_MAX ((int64_t)1 << 61)

static int64_t clamp_time(int64_t ns)
{
    return ns > TIME_MAX ? TIME_MAX : ns < -TIME_MAX ? -TIME_MAX : ns;
}

static double distance(int64_t a, int64_t b)
{
    return a > b ? (double)(a - b) : (double)(b - a);
}

/* Rounded up; all of a doubtful number is INT64_MAX. */
static int64_t to_bound(double ns)
{
    return ns >= 0 && ns < 0x1p61 ? (int64_t)ns + 1 : INT64_MAX;
}

static int64_t add_bound(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- a round ---- */

static bool is_usable(const struct sv_ping *p)
{
    return p->t1 <= p->t4 && p->t2 <= p->t3 && p->t1 > -TIME_MAX && p->t4 < TIME_MAX &&
           p->t2 > -TIME_MAX && p->t3 < TIME_MAX && p->t4 - p->t1 >= p->t3 - p->t2;
}

static int64_t drifted(int64_t from, int64_t to)
{
    return to_bound(distance(from, to) * SV_SYNC_RATE_PPM * 1e-6);
}

bool sv_sync_round_of(const struct sv_ping *pings, size_t n, struct sv_sync_round *out)
{
    const struct sv_ping *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (is_usable(&pings[i]) && (!best || pings[i].t4 - pings[i].t1 < best->t4 - best->t1))
            best = &pings[i];
    if (!best)
        return false;
    int64_t at = best->t1 + (best->t4 - best->t1) / 2;
    int64_t low = INT64_MIN, high = INT64_MAX, least = INT64_MAX, most = INT64_MIN;
    for (size_t i = 0; i < n; i++) {
        const struct sv_ping *p = &pings[i];
        if (!is_usable(p))
            continue;
        int64_t above = p->t2 - p->t1 + drifted(p->t1, at);
        int64_t below = p->t3 - p->t4 - drifted(p->t4, at);
        high = above < high ? above : high;
        low = below > low ? below : low;
        most = above > most ? above : most;
        least = below < least ? below : least;
    }
    /* No offset fits all: a clock was set in the meantime, and any of them may be the one
     * afterwards. */
    bool is_stepped = low > high;
    *out = (struct sv_sync_round){
        .at_ns = at, .low_ns = is_stepped ? least : low, .high_ns = is_stepped ? most : high};
    return true;
}

/* ---- rounds ---- */

static int compare_rounds(const void *a, const void *b)
{
    const struct sv_sync_round *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->low_ns < y->low_ns ? -1 : x->low_ns > y->low_ns;
}

/* Sorted, without those that are none; of several at one time the intersection, or all of it where
 * they contradict each other. */
static size_t tidy(struct sv_sync_round *r, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        r[i].at_ns = clamp_time(r[i].at_ns);
        r[i].low_ns = clamp_time(r[i].low_ns);
        r[i].high_ns = clamp_time(r[i].high_ns);
        if (r[i].low_ns <= r[i].high_ns)
            r[kept++] = r[i];
    }
    if (kept > 1)
        qsort(r, kept, sizeof *r, compare_rounds);
    n = kept;
    kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct sv_sync_round *last = kept ? &r[kept - 1] : NULL;
        if (!last || last->at_ns != r[i].at_ns) {
            r[kept++] = r[i];
            continue;
        }
        if (r[i].low_ns > last->high_ns) {
            last->high_ns = r[i].high_ns;
            continue;
        }
        last->low_ns = r[i].low_ns; /* by their order it is the higher one */
        last->high_ns = r[i].high_ns < last->high_ns ? r[i].high_ns : last->high_ns;
    }
    return kept;
}

__extension__ typedef __int128 wide;

/* From the middle of one interval to that of another: offsets between machines are large, their
 * changes small. */
static double rise_of(const struct sv_sync_round *a, const struct sv_sync_round *b)
{
    return (double)((wide)b->low_ns + b->high_ns - a->low_ns - a->high_ns) / 2;
}

static double half_of(const struct sv_sync_round *r)
{
    return distance(r->high_ns, r->low_ns) / 2;
}

struct gap {
    double run, slope, doubt; /* duration, rate, and how far the rate may be off */
};

static struct gap gap_of(const struct sv_sync_round *a, const struct sv_sync_round *b)
{
    struct gap g = {.run = distance(a->at_ns, b->at_ns)};
    g.slope = rise_of(a, b) / g.run;
    g.doubt = (half_of(a) + half_of(b)) / g.run + SV_SYNC_WANDER_PPM * 1e-6;
    return g;
}

/* How far the offset may be from the line of its gap if the rate of another gap is the true one: 0
 * when both may have the same. */
static double contradiction(const struct gap *g, const struct gap *other)
{
    double apart = g->slope > other->slope ? g->slope - other->slope : other->slope - g->slope;
    return apart > g->doubt + other->doubt ? (apart + g->doubt + other->doubt) * g->run : 0;
}

/* The neighbour on one side, and the nearest one there that is long enough to say more than its own
 * noise. */
static double contradicted_by(const struct sv_sync_round *r, size_t n_gaps, size_t i, int step)
{
    struct gap g = gap_of(&r[i], &r[i + 1]);
    double worst = 0;
    enum { REACH = 256 }; /* ranks of one host make their rounds one after the other */
    for (int k = 1; k <= REACH; k++) {
        size_t at = i + (size_t)((long)step * k); /* beyond the first: wraps to a large number */
        if (at >= n_gaps)
            break;
        struct gap other = gap_of(&r[at], &r[at + 1]);
        double c = contradiction(&g, &other);
        worst = c > worst ? c : worst;
        if (other.run * 2 >= g.run)
            break;
    }
    return worst;
}

/* Beyond the ends' own bounds. */
static double excess_of(const struct sv_sync_round *r, size_t n_gaps, size_t i)
{
    struct gap g = gap_of(&r[i], &r[i + 1]);
    double before = contradicted_by(r, n_gaps, i, -1), after = contradicted_by(r, n_gaps, i, 1);
    double worst = before > after ? before : after;
    double rate = g.slope < 0 ? -g.slope : g.slope;
    if (rate - g.doubt > SV_SYNC_RATE_PPM * 1e-6 && rate * g.run > worst)
        worst = rate * g.run; /* no clock is that fast: it was set */
    return worst;
}

/* Does the line from a to c say more about b than b does? Only where both agree. */
static bool is_superfluous(const struct sv_sync_round *a, const struct sv_sync_round *b,
                           const struct sv_sync_round *c)
{
    struct gap g = gap_of(a, c);
    double share = distance(b->at_ns, a->at_ns) / g.run;
    double half = half_of(a) > half_of(c) ? half_of(a) : half_of(c);
    double bound = half + g.run * SV_SYNC_WANDER_PPM * 1e-6 / 2;
    double apart = rise_of(a, c) * share - rise_of(a, b);
    apart = apart < 0 ? -apart : apart;
    return bound < half_of(b) && apart <= half_of(b) - bound;
}

static size_t leave_out(struct sv_sync_round *r, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        r[kept++] = r[i];
        while (kept >= 2 && i + 1 < n && is_superfluous(&r[kept - 2], &r[kept - 1], &r[i + 1]))
            kept--;
    }
    return kept;
}

void sv_sync_fit(struct sv_sync *s, struct sv_sync_round *rounds, size_t n)
{
    *s = (struct sv_sync){0};
    n = leave_out(rounds, tidy(rounds, n));
    if (n == 0)
        return;
    s->points = sv_alloc(n * sizeof *s->points);
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        struct sv_sync_point *p = &s->points[i];
        p->at_ns = rounds[i].at_ns;
        p->offset_ns = rounds[i].low_ns + (rounds[i].high_ns - rounds[i].low_ns) / 2;
        p->bound_ns = to_bound(half_of(&rounds[i]));
    }
    for (size_t i = 0; i + 1 < n; i++) {
        struct sv_sync_point *p = &s->points[i];
        double excess = excess_of(rounds, n - 1, i);
        double run = distance(p[0].at_ns, p[1].at_ns);
        int64_t ends = p[0].bound_ns > p[1].bound_ns ? p[0].bound_ns : p[1].bound_ns;
        s->is_stepped |= excess > 0;
        p->gap_ns = add_bound(ends, to_bound(excess + run * SV_SYNC_WANDER_PPM * 1e-6 / 2));
    }
    s->points[n - 1].gap_ns = s->points[n - 1].bound_ns;
    if (n > 1)
        s->drift = rise_of(&rounds[0], &rounds[n - 1]) /
                   distance(rounds[n - 1].at_ns, rounds[0].at_ns);
}

void sv_sync_fini(struct sv_sync *s)
{
    free(s->points);
    *s = (struct sv_sync){0};
}

/* ---- asking ---- */

/* Outside the rounds: on with the rate so far, but the clocks may run apart as fast as clocks
 * may. */
static struct sv_sync_point beyond(const struct sv_sync *s, const struct sv_sync_point *end,
                                   int64_t at_ns)
{
    double run = distance(end->at_ns, clamp_time(at_ns));
    double rate = s->is_stepped ? 0 : s->drift;
    if (rate > SV_SYNC_RATE_PPM * 1e-6 || rate < -SV_SYNC_RATE_PPM * 1e-6)
        rate = 0;
    double moved = at_ns < end->at_ns ? -rate * run : rate * run;
    double apart = run * (SV_SYNC_RATE_PPM * 1e-6 + (rate < 0 ? -rate : rate));
    struct sv_sync_point p = {.at_ns = at_ns, .offset_ns = end->offset_ns + (int64_t)moved};
    p.bound_ns = p.gap_ns = add_bound(end->bound_ns, to_bound(apart));
    return p;
}

struct sv_sync_point sv_sync_at(const struct sv_sync *s, int64_t local_ns)
{
    size_t i = 0;
    while (i + 1 < s->n && s->points[i + 1].at_ns <= local_ns)
        i++;
    const struct sv_sync_point *p = &s->points[i];
    if (local_ns < p->at_ns || (i + 1 == s->n && local_ns > p->at_ns))
        return beyond(s, p, local_ns);
    if (local_ns == p->at_ns)
        return *p;
    double share = distance(local_ns, p->at_ns) / distance(p[1].at_ns, p->at_ns);
    double offset = (double)(p[1].offset_ns - p->offset_ns) * share;
    return (struct sv_sync_point){.at_ns = local_ns,
                                  .offset_ns = p->offset_ns + (int64_t)offset,
                                  .bound_ns = p->gap_ns,
                                  .gap_ns = p->gap_ns};
}

int64_t sv_sync_bound(const struct sv_sync *s, int64_t from_ns, int64_t to_ns)
{
    int64_t first = sv_sync_at(s, from_ns).bound_ns, last = sv_sync_at(s, to_ns).bound_ns;
    int64_t worst = first > last ? first : last;
    for (size_t i = 0; i + 1 < s->n; i++)
        if (s->points[i].at_ns < to_ns && s->points[i + 1].at_ns > from_ns &&
            s->points[i].gap_ns > worst)
            worst = s->points[i].gap_ns;
    return worst;
}

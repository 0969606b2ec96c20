/* The estimator of clock offsets against a simulated pair of clocks and a simulated network between
 * them. */
#include "clocks/clock_sync.h"

#include "core/base/map.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>

#define SECOND 1e9
enum { MOST = 1024 }; /* rounds */

/* ---- chance ---- */

struct chance {
    uint64_t state;
};

static double uniform(struct chance *c, double from, double to)
{
    c->state = sv_mix64(c->state + 0x9e3779b97f4a7c15u);
    return from + (to - from) * ((double)(c->state >> 11) * 0x1p-53);
}

/* ---- two clocks ---- */

struct clock_model {
    double offset_ns, rate; /* of its crystal: ns per ns beyond true time */
    double wander, period;  /* the rate swings by so much, so slowly */
    double step_ns, step_at;
};

static int64_t reading(const struct clock_model *m, double true_ns)
{
    double swing = m->period > 0 ? m->wander * m->period / 6.283185307179586 *
                                       sin(true_ns / m->period * 6.283185307179586)
                                 : 0;
    double value = true_ns * (1 + m->rate) + m->offset_ns + swing;
    if (m->step_ns != 0 && true_ns >= m->step_at)
        value += m->step_ns;
    return (int64_t)floor(value);
}

/* ---- a network ---- */

struct net {
    double there, back; /* the least delays of the two ways */
    double scale;       /* of what queues add: the tail is heavy */
};

static double delay(struct chance *c, double least, double scale)
{
    double queued = scale * (pow(uniform(c, 1e-6, 1), -1 / 1.1) - 1);
    return least + (queued > 2 * SECOND ? 2 * SECOND : queued);
}

struct world {
    struct chance chance;
    struct clock_model local, remote;
    struct net net;
    struct sv_sync_round rounds[MOST];
    double began[MOST], ended[MOST]; /* true times */
    int64_t best[MOST];              /* the shortest round trip of each round */
    size_t n;
};

enum { PINGS = 16 };

static void exchange(struct world *w, double now)
{
    w->began[w->n] = now;
    struct sv_ping pings[PINGS];
    int64_t best = INT64_MAX;
    for (int i = 0; i < PINGS; i++) {
        struct sv_ping *p = &pings[i];
        p->t1 = reading(&w->local, now);
        now += delay(&w->chance, w->net.there, w->net.scale);
        p->t2 = reading(&w->remote, now);
        now += uniform(&w->chance, 500, 20000);
        p->t3 = reading(&w->remote, now);
        now += delay(&w->chance, w->net.back, w->net.scale);
        p->t4 = reading(&w->local, now);
        int64_t trip = p->t4 - p->t1;
        best = trip < best ? trip : best;
        now += uniform(&w->chance, 0, 1e6);
    }
    w->ended[w->n] = now;
    w->best[w->n] = best;
    if (CHECK(sv_sync_round_of(pings, PINGS, &w->rounds[w->n])))
        w->n++;
}

/* Rounds every 30 s (of one rank and `ranks` more of its host, one after the other) and one at the
 * end; offsets up to 10 ms (and the difference of two boot times), drift up to 50 ppm. */
static void simulate(struct world *w, uint64_t seed, bool has_step, int ranks)
{
    *w = (struct world){.chance = {sv_mix64(seed)}};
    struct chance *c = &w->chance;
    double boot = uniform(c, 0, 1) < 0.5 ? 0 : uniform(c, -1e15, 1e15);
    w->remote = (struct clock_model){.offset_ns = boot + uniform(c, -1e7, 1e7),
                                     .rate = uniform(c, -50e-6, 50e-6),
                                     .wander = uniform(c, 0, 0.4e-6),
                                     .period = uniform(c, 60, 3600) * SECOND};
    w->local = (struct clock_model){.offset_ns = 1e14, .rate = uniform(c, -50e-6, 50e-6)};
    w->net = (struct net){.there = uniform(c, 1000, 200000),
                          .back = uniform(c, 1000, 200000),
                          .scale = uniform(c, 100, 300000)};
    if (seed % 4 ==
        /* all of the way is one way, and always the same: the truth is at the edge of the
         * intervals */
        1)
        w->net = (struct net){.there = seed % 8 == 1 ? uniform(c, 1000, 50000) : 0,
                              .back = seed % 8 == 1 ? 0 : uniform(c, 1000, 50000),
                              .scale = 1};
    if (seed % 4 == 2) { /* a fast network does not hide what the clocks do */
        w->net = (struct net){.there = 1000, .back = 1000, .scale = 10};
        w->remote.wander = 0.4e-6;
        w->remote.period = 80 * SECOND;
    }
    int n = has_step ? 4 + (int)uniform(c, 0, 20) : 1 + (int)uniform(c, 0, 20);
    double now = uniform(c, 0, 5) * SECOND;
    if (has_step) {
        w->remote.step_ns = uniform(c, 0, 1) < 0.5 ? uniform(c, 5e6, 1e8) : -uniform(c, 5e6, 1e8);
        w->remote.step_at = now + uniform(c, 0.1, (n - 1) * 30.0) * SECOND;
    }
    for (int i = 0; i < n; i++) {
        for (int r = 0; r <= ranks; r++)
            exchange(w, now + (double)r * 0.01 * SECOND);
        now += 30 * SECOND;
    }
    exchange(w, now - uniform(c, 0, 27) * SECOND);
}

/* Is the true offset within the bound at many moments of the run? Returns the widest bound that was
 * stated. */
static int64_t judge(struct world *w, const struct sv_sync *s, double margin, unsigned *n_bad)
{
    double first = w->ended[0] - margin, last = w->began[w->n - 1] + margin;
    int64_t widest = 0;
    bool is_bad = false;
    for (int i = 0; i < 400; i++) {
        double t = uniform(&w->chance, first, last);
        int64_t local = reading(&w->local, t), truth = reading(&w->remote, t) - local;
        struct sv_sync_point p = sv_sync_at(s, local);
        int64_t off = llabs(truth - p.offset_ns);
        is_bad |= off > p.bound_ns;
        widest = p.bound_ns > widest ? p.bound_ns : widest;
    }
    int64_t from = reading(&w->local, first), to = reading(&w->local, last);
    CHECK(sv_sync_bound(s, from, to) >= widest);
    *n_bad += is_bad;
    return widest;
}

TEST(the_true_offset_is_within_the_bound_in_1000_of_1000_runs)
{
    unsigned n_bad = 0, n_useless = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct world w;
        struct sv_sync s;
        simulate(&w, seed, false, 0);
        int64_t trip = 0;
        for (size_t i = 0; i < w.n; i++)
            trip = w.best[i] > trip ? w.best[i] : trip;
        sv_sync_fit(&s, w.rounds, w.n);
        int64_t widest = judge(&w, &s, 0, &n_bad);
        /* Half of the shortest round trip of the worst round, what 30 s of wander add, and what the
         * clocks ran apart within a round. */
        n_useless += widest > trip / 2 + 20000 + trip / 100;
        CHECK(!s.is_stepped);
        sv_sync_fini(&s);
    }
    CHECK_UINT_EQ(n_bad, 0);
    CHECK_UINT_EQ(n_useless, 0);
}

TEST(a_step_between_rounds_is_found_and_covered)
{
    unsigned n_bad = 0, n_missed = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct world w;
        struct sv_sync s;
        simulate(&w, seed * 7919, true, seed % 5 == 0 ? 20 : 0);
        sv_sync_fit(&s, w.rounds, w.n);
        judge(&w, &s, 0, &n_bad);
        n_missed += !s.is_stepped;
        sv_sync_fini(&s);
    }
    CHECK_UINT_EQ(n_bad, 0);
    CHECK(n_missed < 10); /* a step within a round makes that round wide instead */
}

TEST(outside_the_rounds_the_bound_grows_and_holds)
{
    unsigned n_bad = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w;
        struct sv_sync s;
        simulate(&w, seed * 104729, false, seed % 5 == 0 ? 20 : 0);
        sv_sync_fit(&s, w.rounds, w.n);
        int64_t inside = sv_sync_at(&s, s.points[0].at_ns).bound_ns;
        int64_t outside = judge(&w, &s, 100 * SECOND, &n_bad);
        CHECK(outside > inside + 10000000);
        sv_sync_fini(&s);
    }
    CHECK_UINT_EQ(n_bad, 0);
}

TEST(one_ping_gives_half_of_its_round_trip)
{
    struct sv_ping p = {1000, 5600, 5700, 1300};
    struct sv_sync_round r;
    REQUIRE(sv_sync_round_of(&p, 1, &r));
    CHECK_INT_EQ(r.at_ns, 1150);
    /* 5700 − 1300 and 5600 − 1000, a nanosecond wider for the way to the middle */
    CHECK_INT_EQ(r.low_ns, 4400 - 1);
    CHECK_INT_EQ(r.high_ns, 4600 + 1);
}

TEST(uneven_pings_narrow_each_other)
{
    /* One is fast on the way there, the other on the way back. */
    struct sv_ping p[] = {{0, 1010, 1010, 500}, {1000, 2490, 2490, 1500}};
    struct sv_sync_round r;
    REQUIRE(sv_sync_round_of(p, 2, &r));
    CHECK(r.high_ns <= 1010 + 2 && r.low_ns >= 990 - 2);
    CHECK(r.low_ns <= 1000 && r.high_ns >= 1000);
}

TEST(pings_that_cannot_be_are_left_out)
{
    static const struct sv_ping rows[] = {
        {100, 50, 60, 90},            /* it came back before it went */
        {100, 60, 50, 200},           /* answered before it came */
        {100, 1000, 1200, 200},       /* the answer took longer than the whole way */
        {INT64_MIN, 0, 0, INT64_MAX}, /* no times */
        {0, INT64_MIN, INT64_MIN, 10},
    };
    struct sv_sync_round r;
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK(!sv_sync_round_of(&rows[i], 1, &r));
    }
    CHECK(!sv_sync_round_of(rows, 0, &r));
}

TEST(a_step_within_a_round_makes_it_wide)
{
    struct sv_ping p[] = {{0, 5000010, 5000010, 20}, {100, 110, 110, 120}};
    struct sv_sync_round r;
    REQUIRE(sv_sync_round_of(p, 2, &r));
    CHECK(r.low_ns <= 0 && r.high_ns >= 5000000);
}

TEST(a_wide_round_between_narrow_ones_is_left_out)
{
    const int64_t s = 1000000000;
    struct sv_sync_round r[] = {
        {0, 100, 200}, {30 * s, -5000000, 9000000}, {60 * s, 150, 250}, {90 * s, 100, 200}};
    struct sv_sync sync;
    sv_sync_fit(&sync, r, 4);
    CHECK_UINT_EQ(sync.n, 3);
    CHECK(sv_sync_bound(&sync, 0, 90 * s) < 100000);
    sv_sync_fini(&sync);
}

TEST(rounds_from_files_may_be_anything)
{
    struct sv_sync_round r[] = {{INT64_MAX, INT64_MIN, INT64_MAX},
                                {INT64_MIN, INT64_MAX, INT64_MIN},
                                {INT64_MIN, INT64_MIN, INT64_MIN},
                                {5, 10, 0},
                                {5, 1, 2},
                                {5, 7, 9},
                                {5, 8, 20}};
    struct sv_sync s;
    sv_sync_fit(&s, r, TEST_COUNT(r));
    for (size_t i = 0; i + 1 < s.n; i++)
        CHECK(s.points[i].at_ns < s.points[i + 1].at_ns);
    CHECK(sv_sync_at(&s, 5).bound_ns >= 0);
    CHECK(sv_sync_at(&s, INT64_MIN).bound_ns > 0);
    CHECK(sv_sync_at(&s, INT64_MAX).bound_ns > 0);
    CHECK(sv_sync_bound(&s, INT64_MIN, INT64_MAX) > 0);
    sv_sync_fini(&s);
    sv_sync_fit(&s, r, 0);
    CHECK_UINT_EQ(s.n, 0);
    sv_sync_fini(&s);
}

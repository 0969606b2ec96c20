/* The communication report: simulated jobs whose slow rank is known, and small traces whose answers
 * can be counted by hand. */
#include "subjects/comm/figures.h"

#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- simulated jobs ---- */

/* The jobs are our own: with a sanitizer a tenth shows what it can see. */
enum { JOBS = TEST_HAS_SANITIZER ? 100 : 1000, RANKS_MAX = 16 };

/* splitmix64: the same numbers everywhere. */
struct dice {
    uint64_t state;
};

static double roll(struct dice *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct dice *d)
{
    double a = roll(d), b = roll(d);
    return sqrt(-2 * log(a)) * cos(6.283185307179586 * b);
}

enum noise { NORMAL, EXPONENTIAL, LONG_TAIL, PERSISTENT, N_NOISES };

struct job {
    unsigned n_ranks, n_steps;
    int slow;        /* -1: none */
    double delay_ns; /* of the slow one */
    double compute_ns, noise_ns, transfer_ns;
    enum noise noise;
    unsigned until;      /* the slow one is no longer from this step on; 0: always */
    double spared;       /* this share of its steps, by chance, is not slow */
    bool has_own_clocks; /* each rank's is off by up to 10 ms, and nothing relates them */
    struct dice dice;
};

/* With mean 0 and deviation 1. */
static double noise_of(struct job *j, double *memory)
{
    double x = normal(&j->dice);
    switch (j->noise) {
    case EXPONENTIAL: return -log(roll(&j->dice)) - 1;
    case LONG_TAIL: return (exp(x) - 1.6487) / 2.1612;
    case PERSISTENT: return *memory = 0.8 * *memory + 0.6 * x;
    default: return x;
    }
}

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
    struct sv_comm_report report;
};

static void unmake(struct made *m)
{
    sv_comm_report_fini(&m->report);
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
}

struct writer {
    struct made *m;
    struct sv_batch batch;
    sv_track threads[RANKS_MAX];
    sv_str name, cat, op, group, seq, rank;
};

static void put(struct writer *w, unsigned rank, double from_ns, double to_ns, int64_t seq)
{
    struct sv_err err = {0};
    struct sv_event *e =
        sv_batch_put(&w->batch, SV_SLICE, (int64_t)from_ns, w->threads[rank], w->name, w->cat);
    e->dur_ns = (int64_t)to_ns - (int64_t)from_ns;
    sv_batch_str(&w->batch, w->op, "allreduce", 9);
    sv_batch_str(&w->batch, w->group, "world", 5);
    sv_batch_int(&w->batch, w->seq, seq);
    sv_batch_int(&w->batch, w->rank, (int64_t)rank);
    sv_batch_finish(&w->batch, e);
    struct sv_sink *sink = sv_trace_sink(w->m->trace);
    REQUIRE(sink->write(sink, w->batch.events, w->batch.n, &err) == 0);
    sv_batch_reset(&w->batch);
}

static void run_steps(struct job *j, struct writer *w)
{
    double now[RANKS_MAX] = {0}, off[RANKS_MAX] = {0}, memory[RANKS_MAX] = {0};
    for (unsigned k = 0; k < j->n_ranks; k++)
        off[k] = 1e9 + (j->has_own_clocks ? (roll(&j->dice) - 0.5) * 2e7 : 0);
    for (unsigned step = 0; step < j->n_steps; step++) {
        double last = 0;
        double begin[RANKS_MAX];
        for (unsigned k = 0; k < j->n_ranks; k++) {
            double work = j->compute_ns + j->noise_ns * noise_of(j, &memory[k]);
            if ((int)k == j->slow && (!j->until || step < j->until) && roll(&j->dice) >= j->spared)
                work += j->delay_ns;
            begin[k] = now[k] + (work > 1 ? work : 1);
            last = begin[k] > last ? begin[k] : last;
        }
        for (unsigned k = 0; k < j->n_ranks; k++) {
            now[k] = last + j->transfer_ns * (0.9 + 0.1 * roll(&j->dice));
            put(w, k, begin[k] + off[k], now[k] + off[k], step);
        }
    }
}

static struct made simulate(struct job *j)
{
    struct made m = {.dict = sv_dict_new()};
    struct sv_err err = {0};
    sv_report_init(&m.findings);
    m.trace = sv_trace_new(m.dict, &m.findings, 0);
    struct writer w = {.m = &m,
                       .name = sv_dict_cstr(m.dict, "MPI_Allreduce"),
                       .cat = sv_dict_cstr(m.dict, SV_CAT_COLLECTIVE),
                       .op = sv_dict_cstr(m.dict, SV_COMM_OP),
                       .group = sv_dict_cstr(m.dict, SV_COMM_GROUP),
                       .seq = sv_dict_cstr(m.dict, SV_COMM_SEQ),
                       .rank = sv_dict_cstr(m.dict, SV_COMM_RANK)};
    for (unsigned k = 0; k < j->n_ranks; k++)
        w.threads[k] = sv_dict_thread(m.dict, j->has_own_clocks ? k : 0, 100 + k, 100 + k);
    sv_batch_init(&w.batch);
    run_steps(j, &w);
    sv_batch_fini(&w.batch);
    struct sv_sink *sink = sv_trace_sink(m.trace);
    REQUIRE(sink->close(sink, false, &err) == 0);
    sv_comm_report_make(&m.report, m.trace);
    return m;
}

static struct job job_of(uint64_t seed)
{
    struct job j = {.slow = -1, .dice = {seed * 7919 + 1}};
    j.n_ranks = 2 + (unsigned)(roll(&j.dice) * (RANKS_MAX - 1));
    j.n_steps = 60 + (unsigned)(roll(&j.dice) * 100);
    j.compute_ns = 1e7;
    j.noise_ns = j.compute_ns * (0.01 + 0.04 * roll(&j.dice));
    j.transfer_ns = 2e5;
    j.noise = (enum noise)(seed % N_NOISES);
    return j;
}

static unsigned n_slow(const struct sv_comm_report *r)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->n_ranks; i++)
        n += r->ranks[i].is_slow;
    return n;
}

TEST(an_injected_slow_rank_is_found)
{
    unsigned found = 0, wrong = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job j = job_of(i);
        j.slow = (int)(roll(&j.dice) * j.n_ranks);
        j.delay_ns = j.noise_ns * (3 + 2 * roll(&j.dice));
        struct made m = simulate(&j);
        REQUIRE(m.report.n == j.n_steps && m.report.n_ranks == j.n_ranks);
        found += m.report.ranks[j.slow].is_slow;
        wrong += n_slow(&m.report) - m.report.ranks[j.slow].is_slow;
        unmake(&m);
    }
    CHECK(found >= JOBS * 99 / 100);
    CHECK_UINT_EQ(wrong, 0);
}

TEST(equal_ranks_give_no_culprit)
{
    unsigned accused = 0, told = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job j = job_of(i);
        struct made m = simulate(&j);
        accused += n_slow(&m.report) > 0;
        told += m.report.groups[0].n_told > j.n_steps / 2;
        unmake(&m);
    }
    CHECK_UINT_EQ(accused, 0);
    CHECK(told > JOBS * 9 / 10); /* it had something to judge */
}

/* Rank 3 is always a little later, as one with a longer way to the switch: not worth a word. */
TEST(what_costs_nothing_is_no_culprit)
{
    struct job j = job_of(4);
    j.n_ranks = 4;
    j.slow = 3;
    j.noise_ns = 10;
    j.transfer_ns = 1000;
    j.delay_ns = 2000;
    struct made m = simulate(&j);
    CHECK_UINT_EQ(m.report.ranks[3].last, j.n_steps);
    CHECK(m.report.ranks[3].p_value < SV_COMM_CHANCE);
    CHECK_UINT_EQ(n_slow(&m.report), 0);
    unmake(&m);
}

/* A rank that was disturbed for most of a run, or in half of its steps there, is not slow; one that
 * is disturbed until the end is. */
TEST(one_long_disturbance_is_no_culprit)
{
    static const struct {
        unsigned until;
        double spared;
        bool is_slow;
    } rows[] = {{100, 0, false}, {150, 0.4, false}, {0, 0.5, true}, {0, 0, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job j = job_of(0);
        j.n_ranks = 8;
        j.n_steps = 200;
        j.slow = 5;
        j.until = rows[i].until;
        j.spared = rows[i].spared;
        j.delay_ns = 20 * j.noise_ns;
        CONTEXT("row %zu", i);
        struct made m = simulate(&j);
        CHECK(m.report.ranks[5].last > 30);
        CHECK(m.report.ranks[5].lost_share > SV_COMM_LOST_SHARE);
        CHECK_UINT_EQ(n_slow(&m.report), rows[i].is_slow);
        unmake(&m);
    }
}

/* In each tenth step, by chance, it takes sixteen times as long: seldom last, it costs most. */
TEST(who_costs_most_is_found_however_seldom_it_is_last)
{
    unsigned found = 0, wrong = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct job j = job_of(i);
        j.n_ranks = 4 + i % 8;
        j.n_steps = 200;
        j.slow = 2;
        j.spared = 0.9;
        j.delay_ns = 15 * j.compute_ns;
        struct made m = simulate(&j);
        found += m.report.ranks[2].is_slow;
        wrong += n_slow(&m.report) - m.report.ranks[2].is_slow;
        unmake(&m);
    }
    CHECK(found >= 95); /* in some, a quarter of the run is spared */
    CHECK_UINT_EQ(wrong, 0);
}

/* Much is lost to equal ranks whose noise is half of their work, and to none of them more than by
 * chance. */
TEST(equal_ranks_with_much_noise_give_hardly_a_culprit)
{
    unsigned accused = 0, costly = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job j = job_of(i);
        j.noise_ns = 0.5 * j.compute_ns;
        struct made m = simulate(&j);
        accused += n_slow(&m.report) > 0;
        for (size_t k = 0; k < m.report.n_ranks; k++)
            costly += m.report.ranks[k].lost_share >= SV_COMM_COST_SHARE;
        unmake(&m);
    }
    CHECK(accused <= 2);      /* the rule allows one in a hundred of those that cost a quarter */
    CHECK(costly > JOBS / 2); /* the rule by cost had something to judge */
}

TEST(the_bound_of_a_cost)
{
    double equal[12], one[10] = {1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01};
    for (size_t i = 0; i < 12; i++)
        equal[i] = 1;
    /* All of twelve equal ones: exactly p to the twelfth. */
    CHECK(fabs(sv_cost_tail(equal, 12, 12, 0.25) - 12 * log(0.25)) < 1e-6);
    /* Not below the tail of the binomial distribution, and near to it. */
    double bound = exp(sv_cost_tail(equal, 12, 9, 0.25)), exact = sv_binomial_tail(12, 9, 0.25);
    CHECK(bound >= exact && bound < 10 * exact);
    CHECK_DOUBLE_EQ(sv_cost_tail(equal, 12, 3, 0.25), 0); /* as expected */
    /* One great one is lost to each of four in a quarter of all cases. */
    CHECK(exp(sv_cost_tail(one, 10, 1, 0.25)) >= 0.25);
}

TEST(without_related_clocks_durations_are_compared)
{
    unsigned found = 0, wrong = 0, accused = 0;
    for (unsigned i = 0; i < JOBS / 4; i++) {
        struct job j = job_of(i);
        j.has_own_clocks = true;
        struct made equal = simulate(&j);
        CHECK_INT_EQ(equal.report.clock_error_ns, -1);
        accused += n_slow(&equal.report);
        unmake(&equal);
        j = job_of(i);
        j.has_own_clocks = true;
        j.slow = (int)(roll(&j.dice) * j.n_ranks);
        j.delay_ns = j.noise_ns * 4 + 2 * j.transfer_ns;
        struct made m = simulate(&j);
        CHECK_INT_EQ(m.report.collectives[0].method, SV_COMM_BY_DURATIONS);
        found += m.report.ranks[j.slow].is_slow;
        wrong += n_slow(&m.report) - m.report.ranks[j.slow].is_slow;
        unmake(&m);
    }
    CHECK(found >= JOBS / 4 * 99 / 100);
    CHECK_UINT_EQ(wrong, 0);
    CHECK_UINT_EQ(accused, 0);
}

/* The merge states a bound: what is below it is not told, what is above it is. */
TEST(a_stated_error_of_clocks_counts)
{
    static const struct {
        const char *axis;
        int64_t error_ns;
    } rows[] = {
        {"{\"clock\": \"boottime\", \"within_host_ns\": 100, \"between_hosts_ns\": 5000, "
         "\"is_estimate\": false}",
         5100},
        {"{\"between_hosts_ns\": 5000, \"is_estimate\": true}", -1},
        {"{\"between_hosts_ns\": null, \"is_estimate\": false}", -1},
        {"{\"between", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job j = job_of(0);
        j.has_own_clocks = true;
        CONTEXT("%s", rows[i].axis);
        struct made m = simulate(&j);
        sv_comm_report_fini(&m.report);
        sv_dict_set_meta(m.dict, "clock_axis", rows[i].axis, strlen(rows[i].axis), true);
        sv_comm_report_make(&m.report, m.trace);
        CHECK_INT_EQ(m.report.clock_error_ns, rows[i].error_ns);
        unmake(&m);
    }
}

TEST(the_tail_of_the_binomial_distribution)
{
    static const struct {
        double n, k, p, is;
    } rows[] = {
        {10, 0, 0.5, 1},
        {10, 10, 0.5, 1.0 / 1024},
        {10, 9, 0.5, 11.0 / 1024},
        {4, 3, 0.25, 13.0 / 256},
        {4, 5, 0.25, 0},
        {1000, 1000, 0.5, 9.332636185032189e-302},
        {100, 1, 0.5, 1 - 7.888609052210118e-31},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double is = sv_binomial_tail(rows[i].n, rows[i].k, rows[i].p);
        CHECK(fabs(is - rows[i].is) <= 1e-9 * rows[i].is);
    }
}

/* ---- small traces ---- */

#define TRACKS                                           \
    "track #1 process uuid=0x1 pid=10 name=\"a\"\n"      \
    "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n" \
    "track #3 process uuid=0x3 pid=20 name=\"b\"\n"      \
    "track #4 thread uuid=0x4 parent=#3 pid=20 tid=20\n" \
    "track #5 process uuid=0x5 pid=30 name=\"c\"\n"      \
    "track #6 thread uuid=0x6 parent=#5 pid=30 tid=30\n"

static struct made make(const char *body)
{
    static char text[65536];
    struct made m = {.dict = sv_dict_new()};
    snprintf(text, sizeof text, "# stave text 1\nclock boottime\n" TRACKS "%s", body);
    m.trace = text_trace(text, m.dict, &m.findings);
    sv_comm_report_make(&m.report, m.trace);
    return m;
}

/* A call: times in ms. */
#define CALL(begin, dur, track, op, rank, seq, bytes)                                  \
    begin " slice #" #track " \"MPI_" op "\" cat=\"collective\" dur=" dur " {op=\"" op \
          "\" group=\"world\" seq=" #seq " bytes=" #bytes " group_size=3 rank=" #rank "}\n"
#define PENDING(begin, track, op, rank, seq, bytes)                                       \
    begin " slice #" #track " \"MPI_" op "\" cat=\"collective\" dur=unfinished {op=\"" op \
          "\" group=\"world\" seq=" #seq " bytes=" #bytes " group_size=3 rank=" #rank "}\n"
/* One that all three finish. */
#define WHOLE(s, seq)                                               \
    CALL(#s ".000000000", "0.001000000", 2, "allreduce", 0, seq, 8) \
    CALL(#s ".000200000", "0.000800000", 4, "allreduce", 1, seq, 8) \
    CALL(#s ".000500000", "0.000500000", 6, "allreduce", 2, seq, 8)

TEST(skew_and_transfer)
{
    struct made m = make(WHOLE(1, 7));
    const struct sv_comm_collective *c = m.report.collectives;
    REQUIRE(m.report.n == 1 && c->n == 3);
    CHECK_INT_EQ(c->doubt, SV_COMM_TOLD);
    CHECK_INT_EQ(c->skew_ns, 500000);
    CHECK_INT_EQ(c->transfer_ns, 500000);
    CHECK_INT_EQ(c->lead_ns, 300000);
    CHECK_INT_EQ(m.report.ranks[c->last].number, 2);
    CHECK_INT_EQ(m.report.ranks[0].wait_ns, 500000);
    CHECK_INT_EQ(m.report.ranks[2].wait_ns, 0);
    CHECK_UINT_EQ(m.report.n_differences, 0);
    unmake(&m);
}

/* Ranks without numbers are told apart by their processes, and none of them is absent. */
TEST(ranks_without_numbers)
{
    struct made m =
        make("1.000000000 slice #2 \"A\" cat=\"collective\" dur=0.003000000 {op=\"allreduce\" "
             "group=\"world\" seq=0 group_size=2}\n"
             "1.002000000 slice #4 \"A\" cat=\"collective\" dur=0.001000000 {op=\"allreduce\" "
             "group=\"world\" seq=0 group_size=2}\n");
    char name[64];
    REQUIRE(m.report.n == 1 && m.report.n_ranks == 2);
    CHECK_INT_EQ(m.report.collectives[0].doubt, SV_COMM_TOLD);
    CHECK_INT_EQ(m.report.collectives[0].skew_ns, 2000000);
    CHECK_STR_EQ(sv_comm_rank_name(&m.report, m.report.collectives[0].last, name, sizeof name),
                 "b (20)");
    unmake(&m);
}

TEST(nothing_is_said_of_what_cannot_be)
{
    /* rank 0 leaves before rank 2 arrives */
    struct made m = make(CALL("1.000000000", "0.000100000", 2, "allreduce", 0, 0, 8)
                             CALL("1.000000000", "0.001000000", 4, "allreduce", 1, 0, 8)
                                 CALL("1.000500000", "0.000500000", 6, "allreduce", 2, 0, 8));
    CHECK_INT_EQ(m.report.collectives[0].doubt, SV_COMM_BROKEN);
    CHECK_INT_EQ(m.report.collectives[0].skew_ns, -1);
    unmake(&m);
    /* of a broadcast it may */
    m = make(CALL("1.000000000", "0.000100000", 2, "broadcast", 0, 0, 8)
                 CALL("1.000000000", "0.001000000", 4, "broadcast", 1, 0, 8)
                     CALL("1.000500000", "0.000500000", 6, "broadcast", 2, 0, 8));
    CHECK_INT_EQ(m.report.collectives[0].doubt, SV_COMM_TOLD);
    CHECK_INT_EQ(m.report.collectives[0].skew_ns, 500000);
    unmake(&m);
}

static const char *ranks_of(const struct made *m, const uint32_t *ranks, size_t n)
{
    static char text[64];
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "",
                 (int)m->report.ranks[ranks[i]].number);
    return text;
}

TEST(a_missing_rank_is_named)
{
    struct made m = make(
        WHOLE(1, 0) WHOLE(2, 1) WHOLE(3, 2) PENDING("4.000000000", 2, "allreduce", 0, 3, 8)
            PENDING("4.000100000", 4, "allreduce", 1, 3, 8) "60.000000000 instant #2 \"killed\"\n");
    REQUIRE(m.report.n_differences == 1);
    const struct sv_comm_difference *d = m.report.differences;
    CHECK_INT_EQ(d->kind, SV_DIFFERENCE_MISSING);
    CHECK_INT_EQ(m.report.collectives[d->collective].seq, 3);
    CHECK_STR_EQ(ranks_of(&m, d->ranks, d->n_ranks), "2");
    CHECK_STR_EQ(ranks_of(&m, d->waiting, d->n_waiting), "0 1");
    CHECK_STR_EQ(ranks_of(&m, m.report.culprits, m.report.n_culprits), "2");
    CHECK_UINT_EQ(n_slow(&m.report), 0);
    unmake(&m);
}

/* The recording ended while two ranks had waited for no longer than usual. */
TEST(the_end_of_a_recording_is_no_hang)
{
    struct made m = make(
        WHOLE(1, 0) WHOLE(2, 1) WHOLE(3, 2) PENDING("4.000000000", 2, "allreduce", 0, 3, 8)
            PENDING("4.000100000", 4, "allreduce", 1, 3, 8) "4.000900000 instant #2 \"the end\"\n");
    CHECK_UINT_EQ(m.report.n_differences, 0);
    CHECK_UINT_EQ(m.report.n_culprits, 0);
    unmake(&m);
}

TEST(other_kinds_and_sizes_are_named)
{
    struct made m = make(WHOLE(1, 0) PENDING("2.000000000", 2, "allreduce", 0, 1, 8) PENDING(
        "2.000100000", 4, "broadcast", 1, 1, 8) PENDING("2.000100000", 6, "allreduce", 2, 1, 8));
    REQUIRE(m.report.n_differences == 1);
    CHECK_INT_EQ(m.report.differences[0].kind, SV_DIFFERENCE_KIND);
    CHECK_STR_EQ(ranks_of(&m, m.report.differences[0].ranks, m.report.differences[0].n_ranks), "1");
    CHECK_INT_EQ(m.report.collectives[1].doubt, SV_COMM_DIFFERS);
    unmake(&m);
    m = make(WHOLE(1, 0) PENDING("2.000000000", 2, "allreduce", 0, 1, 16) PENDING(
        "2.000100000", 4, "allreduce", 1, 1, 16) PENDING("2.000100000", 6, "allreduce", 2, 1, 12));
    REQUIRE(m.report.n_differences == 1);
    CHECK_INT_EQ(m.report.differences[0].kind, SV_DIFFERENCE_SIZE);
    CHECK_STR_EQ(ranks_of(&m, m.report.differences[0].ranks, m.report.differences[0].n_ranks), "2");
    unmake(&m);
    /* each rank of these has a size of its own */
    m = make(CALL("1.000000000", "0.001000000", 2, "allgatherv", 0, 0, 1)
                 CALL("1.000000000", "0.001000000", 4, "allgatherv", 1, 0, 2)
                     CALL("1.000000000", "0.001000000", 6, "allgatherv", 2, 0, 3));
    CHECK_UINT_EQ(m.report.n_differences, 0);
    unmake(&m);
}

/* What others have finished is no fault of theirs. */
TEST(a_stuck_rank_is_named)
{
    struct made m = make(CALL("1.000000000", "0.001000000", 2, "allreduce", 0, 0, 8) CALL(
        "1.000000000", "0.001000000", 4, "allreduce", 1, 0,
        8) PENDING("1.000000000", 6, "allreduce", 2, 0, 8) "60.000000000 instant #2 \"killed\"\n");
    REQUIRE(m.report.n_differences == 1);
    CHECK_INT_EQ(m.report.differences[0].kind, SV_DIFFERENCE_STUCK);
    CHECK_STR_EQ(ranks_of(&m, m.report.differences[0].ranks, m.report.differences[0].n_ranks), "2");
    unmake(&m);
}

/* Rank 0 is late in the group of 0 and 1 because it waited for rank 2 in the group of 0 and 2. */
TEST(lateness_that_is_passed_on_is_not_its_own)
{
    static char text[16384];
    size_t n = 0;
    for (int i = 0; i < 40; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%d.000000000 slice #2 \"A\" cat=\"collective\" dur=0.500000000 "
                              "{op=\"allreduce\" group=\"02\" seq=%d "
                              "rank=0}\n"
                              "%d.400000000 slice #6 \"A\" cat=\"collective\" dur=0.100000000 "
                              "{op=\"allreduce\" group=\"02\" seq=%d "
                              "rank=2}\n"
                              "%d.100000000 slice #4 \"A\" cat=\"collective\" dur=0.600000000 "
                              "{op=\"allreduce\" group=\"01\" seq=%d "
                              "rank=1}\n"
                              "%d.600000000 slice #2 \"A\" cat=\"collective\" dur=0.100000000 "
                              "{op=\"allreduce\" group=\"01\" seq=%d "
                              "rank=0}\n",
                              i, i, i, i, i, i, i, i);
    struct made m = make(text);
    REQUIRE(m.report.n == 80);
    CHECK_UINT_EQ(m.report.n_passed_on, 40);
    CHECK(m.report.ranks[2].is_slow);
    CHECK(!m.report.ranks[0].is_slow);
    CHECK_UINT_EQ(m.report.ranks[0].last, 0);
    unmake(&m);
}

/* Rank 0 leaves each one last and comes to the next at once, as the others do. */
TEST(who_leaves_late_arrives_late)
{
    static char text[32768];
    size_t n = 0;
    for (int i = 0; i < 60; i++)
        for (int k = 0; k < 3; k++)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "%d.%09d slice #%d \"A\" cat=\"collective\" dur=0.%09d "
                                  "{op=\"allreduce\" group=\"w\" seq=%d rank=%d}\n",
                                  i, k == 0 ? 200000000 : 100000000 + k, 2 + 2 * k,
                                  k == 0 ? 999000000 : 899000000, i, k);
    struct made m = make(text);
    REQUIRE(m.report.n == 60);
    CHECK_INT_EQ(m.report.ranks[m.report.collectives[5].last].number, 0);
    CHECK_UINT_EQ(m.report.n_passed_on, 59);
    CHECK_UINT_EQ(n_slow(&m.report), 0);
    unmake(&m);
}

/* Rank 1 reads a file for 300 ms, then loads for 100 ms; rank 0 computes for 50 ms. */
TEST(what_ranks_did_before)
{
    struct made m = make(
        CALL("1.000000000", "0.100000000", 2, "allreduce", 0, 0, 8)
            CALL("1.000000000", "0.100000000", 4, "allreduce", 1, 0, 8)
                CALL("1.000000000", "0.100000000", 6, "allreduce", 2, 0,
                     8) "1.100000000 slice #2 \"forward\" dur=0.050000000\n"
                        "1.100000000 slice #6 \"forward\" dur=0.060000000\n"
                        "1.100000000 slice #4 \"epoch\" dur=0.500000000\n"
                        "1.110000000 slice #4 \"read\" cat=\"syscall\" dur=0.300000000 {fd=3 "
                        "path=\"/d/a\" bytes=9}\n"
                        "1.450000000 slice #4 \"dataloader next\" dur=0.100000000\n"
                        "1.560000000 slice #4 \"futex\" cat=\"syscall\" dur=0.020000000\n" CALL(
                            "1.150000000", "0.500000000", 2, "allreduce", 0, 1, 8)
                            CALL("1.600000000", "0.050000000", 4, "allreduce", 1, 1, 8)
                                CALL("1.160000000", "0.490000000", 6, "allreduce", 2, 1, 8));
    const struct sv_comm_collective *c = &m.report.collectives[1];
    REQUIRE(m.report.n == 2);
    CHECK_INT_EQ(m.report.ranks[c->last].number, 1);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_IO], 300000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_LOADER], 100000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_OTHER], 100000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_IDLE], 0);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_COMPUTE], 0);
    CHECK_INT_EQ(c->excess_ns[SV_BEFORE_COMPUTE], -50000000);
    CHECK_INT_EQ(c->excess_ns[SV_BEFORE_IO], 300000000);
    unmake(&m);
}

/* Rank 1 computes for 400 ms, for 250 of which it has no CPU; then it sleeps for 100 ms. What rank
 * 0 did in the last 20 ms is not recorded. */
TEST(the_run_queue_is_apart_and_known_with_states_only)
{
    struct made m = make(
        "track #9 custom uuid=0x99 parent=#4 name=\"thread state\"\n" CALL(
            "1.000000000", "0.100000000", 2, "allreduce", 0, 0,
            8) CALL("1.000000000", "0.100000000", 4, "allreduce", 1, 0, 8)
            CALL("1.000000000", "0.100000000", 6, "allreduce", 2, 0,
                 8) "1.100000000 slice #2 \"forward\" dur=0.050000000\n"
                    "1.100000000 slice #6 \"forward\" dur=0.080000000\n"
                    "1.100000000 slice #4 \"forward\" dur=0.400000000\n"
                    "1.100000000 slice #9 \"Running\" cat=\"thread_state\" dur=0.100000000\n"
                    "1.200000000 slice #9 \"Runnable\" cat=\"thread_state\" dur=0.250000000\n"
                    "1.450000000 slice #9 \"Running\" cat=\"thread_state\" dur=0.050000000\n"
                    "1.500000000 slice #9 \"Sleeping\" cat=\"thread_state\" dur=0.060000000 "
                    "{reason=\"data\"}\n"
                    "1.560000000 slice #9 \"Sleeping\" cat=\"thread_state\" dur=0.040000000\n" CALL(
                        "1.170000000", "0.480000000", 2, "allreduce", 0, 1, 8)
                        CALL("1.180000000", "0.470000000", 6, "allreduce", 2, 1, 8)
                            CALL("1.600000000", "0.050000000", 4, "allreduce", 1, 1, 8));
    const struct sv_comm_collective *c = &m.report.collectives[1];
    REQUIRE(m.report.n == 2);
    CHECK_INT_EQ(m.report.ranks[c->last].number, 1);
    CHECK(m.report.ranks[1].has_states);
    CHECK(!m.report.ranks[0].has_states);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_COMPUTE], 150000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_RUN_QUEUE], 250000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_LOADER], 60000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_IDLE], 40000000);
    CHECK_INT_EQ(c->before_ns[SV_BEFORE_UNKNOWN], 0);
    CHECK_INT_EQ(c->excess_ns[SV_BEFORE_UNKNOWN], -20000000);
    unmake(&m);
}

TEST(names_of_operations)
{
    static const struct {
        const char *name;
        enum sv_comm_op op;
    } rows[] = {
        {"MPI_Iallreduce", SV_COMM_ALLREDUCE},
        {"nccl:_all_gather_base", SV_COMM_ALLGATHER},
        {"nccl:_reduce_scatter_base", SV_COMM_REDUCE_SCATTER},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
         SV_COMM_ALLREDUCE},
        {"ncclKernel_ReduceScatter_RING_LL_Sum_half", SV_COMM_REDUCE_SCATTER},
        {"nccl:all_to_all", SV_COMM_ALLTOALL},
        {"nccl:all_reduce_barrier", SV_COMM_BARRIER},
        {"MPI_Bcast", SV_COMM_BROADCAST},
        {"MPI_Reduce", SV_COMM_REDUCE},
        {"MPI_Exscan", SV_COMM_SCAN},
        {"nccl:send 0->3", SV_COMM_SEND},
        {"nccl:recv 3<-0", SV_COMM_RECV},
        {"", SV_COMM_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_STR_EQ(sv_comm_op_name(sv_comm_op_of(rows[i].name, strlen(rows[i].name))),
                     sv_comm_op_name(rows[i].op));
}

/* The ledger, replays of its units, and slow units, on traces that can be counted by hand. Real
 * programs are judged by tests/why. */
#include "explain/explain.h"
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"
#include "why/unit_replay.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000000)
enum { STEPS = 60 };

struct scene {
    char text[400000];
    size_t n;
    int64_t at; /* ms */
};

__attribute__((format(printf, 2, 3))) static void put(struct scene *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    s->n += (size_t)vsnprintf(s->text + s->n, sizeof s->text - s->n, fmt, args);
    va_end(args);
    REQUIRE(s->n < sizeof s->text);
}

static void put_at(struct scene *s, int64_t ms, const char *what)
{
    put(s, "%" PRId64 ".%03" PRId64 "000000 %s\n", ms / 1000, ms % 1000, what);
}

static const char tracks[] = "# stave text 1\nclock boottime\n"
                             "track #1 process uuid=0x1 pid=10 name=\"train\"\n"
                             "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"
                             "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"
                             "track #4 custom uuid=0x4 parent=#2 name=\"system calls\"\n"
                             "track #5 process uuid=0x5 pid=20 name=\"feeder\"\n"
                             "track #6 thread uuid=0x6 parent=#5 pid=20 tid=20\n"
                             "track #7 custom uuid=0x7 parent=#6 name=\"state\"\n"
                             "track #8 custom uuid=0x8 parent=#6 name=\"system calls\"\n";

static const char woken[] =
    "begin #3 \"Runnable\" cat=\"thread_state\" {waker_tid=20 waker=\"feeder\"}";

/* One step: the trainer gets a CPU after 1 ms, runs for 9, and waits at a pipe for the feeder. That
 * one reads a file for `reads` ms and runs for 10. */
static void put_step(struct scene *s, int number, int64_t reads)
{
    int64_t from = s->at, to = from + reads + 10;
    char begin[80];
    snprintf(begin, sizeof begin, "begin #2 \"step %d\" cat=\"step\"", number);
    put_at(s, from, begin);
    put_at(s, from, woken);
    put_at(s, from + 1, "end #3");
    put_at(s, from + 1, "begin #3 \"Running\" cat=\"thread_state\"");
    put_at(s, from, "begin #8 \"read\" cat=\"syscall\" {fd=4 path=\"/data/a.bin\" bytes=4096}");
    put_at(s, from, "begin #7 \"Blocked on I/O\" cat=\"thread_state\"");
    put_at(s, from + 10, "end #3");
    put_at(s, from + 10, "begin #4 \"read\" cat=\"syscall\" {fd=3 path=\"pipe:[7]\"}");
    put_at(s, from + 10, "begin #3 \"Sleeping\" cat=\"thread_state\" {reason=\"pipe\"}");
    put_at(s, from + reads, "end #7");
    put_at(s, from + reads, "end #8");
    put_at(s, from + reads, "begin #7 \"Running\" cat=\"thread_state\"");
    put_at(s, to, "end #7");
    put_at(s, to, "end #3");
    put_at(s, to, "end #4");
    put_at(s, to, "end #2");
    s->at = to;
}

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
    struct scene *scene;
};

static struct made make(struct scene *s)
{
    struct made m = {.dict = sv_dict_new(), .scene = s};
    m.trace = text_trace(s->text, m.dict, &m.findings);
    return m;
}

/* Each nth step reads for longer; 0: none does. */
static struct made make_n_steps(int n, int each)
{
    struct scene *s = calloc(1, sizeof *s);
    REQUIRE(s);
    put(s, "%s", tracks);
    for (int i = 0; i < n; i++)
        put_step(s, i, each && i % each == each - 1 ? 190 : 30);
    put_at(s, s->at, woken);
    put_at(s, s->at + 1, "end #3");
    return make(s);
}

static void unmake(struct made *m)
{
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
    free(m->scene);
}

static const struct sv_ledger_options usual = {.step = -1};

static struct made make_steps(int each)
{
    return make_n_steps(STEPS, each);
}

TEST(replay_of_units)
{
    struct made m = make_steps(0);
    struct sv_ledger l;
    struct sv_replayed to[6];
    struct sv_without w[6];
    for (int i = 0; i < 6; i++)
        w[i] = SV_WITHOUT_NOTHING;
    w[1].file = "*.bin";
    w[2].thread = "feeder";
    w[3].file = "/data/*";
    w[3].keep = 0.5;
    w[4].class = SV_WHY_COMPUTE;
    w[5].file = "*.npy";
    sv_ledger_make(&l, m.trace, &usual);
    CHECK_INT_EQ(l.n_counted, STEPS);
    sv_units_replay(&l, w, 6, to);
    CHECK_INT_EQ((int64_t)to[0].ns, STEPS * 40 * MS); /* as it was measured */
    CHECK_INT_EQ((int64_t)to[1].ns, STEPS * 10 * MS); /* both take 10 ms */
    CHECK_INT_EQ((int64_t)to[1].gone_ns, STEPS * 30 * MS);
    CHECK_INT_EQ((int64_t)to[2].ns, STEPS * 10 * MS);
    CHECK_INT_EQ((int64_t)to[3].ns, STEPS * 25 * MS); /* 15 of reading, 10 of running */
    CHECK_INT_EQ((int64_t)to[4].ns, STEPS * 40 * MS); /* the feeder is not faster */
    CHECK_INT_EQ((int64_t)to[5].gone_ns, 0);
    sv_ledger_fini(&l);
    unmake(&m);
}

/* A state of a thread, in ms. */
static void put_state(struct scene *s, int track, int64_t from, int64_t to, const char *state,
                      const char *more)
{
    put(s, "%" PRId64 ".%03" PRId64 "000000 slice #%d %s dur=%" PRId64 ".%03" PRId64 "000000 %s\n",
        from / 1000, from % 1000, track, state, (to - from) / 1000, (to - from) % 1000, more);
}

#define SLEEPS     "\"Sleeping\" cat=\"thread_state\"", "{reason=\"lock\"}"
#define RUNS       "\"Running\" cat=\"thread_state\"", ""
#define WOKEN(tid) "\"Runnable\" cat=\"thread_state\"", "{waker_tid=" #tid "}"

/* A step of 50 ms that three threads work on: they end after 26, 16 and 44 ms. The last one reads a
 * file for 34 ms. */
static void put_pool_step(struct scene *s, int number)
{
    static const int ends[] = {26, 16, 44};
    int64_t at = number * 50;
    put(s, "%" PRId64 ".%03" PRId64 "000000 slice #2 \"step %d\" cat=\"step\" dur=0.050000000\n",
        at / 1000, at % 1000, number);
    put_state(s, 3, at, at + 2, RUNS);
    put_state(s, 3, at + 2, at + 44, SLEEPS);
    put_state(s, 3, at + 44, at + 45, WOKEN(13));
    put_state(s, 3, at + 45, at + 50, RUNS);
    for (int i = 0; i < 3; i++) {
        put_state(s, 11 + 3 * i, at + 2, at + 3, WOKEN(10));
        put_state(s, 11 + 3 * i, at + 3, at + ends[i], RUNS);
        put_state(s, 11 + 3 * i, at + ends[i], at + 52, SLEEPS);
    }
    put_state(s, 18, at + 9, at + 43, "\"read\" cat=\"syscall\"", "{fd=4 path=\"/data/a.bin\"}");
}

static struct made make_pool(void)
{
    struct scene *s = calloc(1, sizeof *s);
    REQUIRE(s);
    put(s, "%s", tracks);
    for (int i = 0; i < 3; i++)
        put(s,
            "track #%d thread uuid=0x%d parent=#1 pid=10 tid=%d\n"
            "track #%d custom uuid=0x%d parent=#%d name=\"state\"\n"
            "track #%d custom uuid=0x%d parent=#%d name=\"system calls\"\n",
            10 + 3 * i, 50 + 3 * i, 11 + i, 11 + 3 * i, 51 + 3 * i, 10 + 3 * i, 12 + 3 * i,
            52 + 3 * i, 10 + 3 * i);
    for (int i = 0; i < 3; i++)
        put_state(s, 11 + 3 * i, 0, 2, SLEEPS);
    for (int i = 0; i < STEPS; i++)
        put_pool_step(s, i);
    return make(s);
}

/* Without the file the thread that came last comes first: the step ends with the one after it. */
TEST(a_unit_ends_with_its_last_thread)
{
    struct made m = make_pool();
    struct sv_ledger l;
    struct sv_without w[3] = {SV_WITHOUT_NOTHING, SV_WITHOUT_NOTHING, SV_WITHOUT_NOTHING};
    struct sv_replayed to[3];
    w[1].file = "a.bin";
    w[2].thread = "11";
    sv_ledger_make(&l, m.trace, &usual);
    CHECK_INT_EQ(l.n_counted, STEPS);
    sv_units_replay(&l, w, 3, to);
    CHECK_INT_EQ((int64_t)to[0].ns, STEPS * 50 * MS);
    CHECK_INT_EQ((int64_t)to[1].ns, STEPS * 32 * MS); /* 26, and 6 of the trainer */
    CHECK_INT_EQ((int64_t)to[2].ns, STEPS * 50 * MS); /* nobody waits for it */
    sv_ledger_fini(&l);
    unmake(&m);
}

static void check_equal(const struct sv_ledger *a, const struct sv_ledger *b)
{
    REQUIRE(a->n_units == b->n_units && a->n_pieces == b->n_pieces && a->n_edges == b->n_edges);
    CHECK_INT_EQ(a->is_summed, b->is_summed);
    CHECK(memcmp(a->pieces, b->pieces, a->n_pieces * sizeof *a->pieces) == 0);
    CHECK(memcmp(a->class_ns, b->class_ns, sizeof a->class_ns) == 0);
    for (size_t i = 0; i < a->n_units; i++)
        CHECK(a->units[i].first == b->units[i].first && a->units[i].end == b->units[i].end);
    for (size_t i = 0; i < a->n_edges; i++) {
        const struct sv_why_edge *x = &a->edges[i], *y = &b->edges[i];
        CHECK(x->before == y->before && x->thread == y->thread && x->to == y->to &&
              x->row == y->row && x->call == y->call && x->reason == y->reason);
    }
}

/* Each edge is that of a piece of its own unit. */
static void check_edges(const struct sv_ledger *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_pieces; i++) {
        uint32_t e = l->pieces[i].edge;
        if (e == SV_NO_EDGE)
            continue;
        CHECK(e == n || e + 1 == n);
        n = e + 1;
    }
    CHECK_INT_EQ(n, l->n_edges);
}

/* Units that are far longer than PIECES_OF_UNIT, so that pieces are summed from some unit on. */
static struct sv_ledger ledger_of_tens(const struct sv_trace *t, unsigned threads, size_t most)
{
    struct sv_given_unit units[STEPS];
    struct sv_ledger l, usual_one;
    sv_ledger_make(&usual_one, t, &usual);
    for (int i = 0; i < STEPS; i++)
        units[i] = (struct sv_given_unit){.number = i,
                                          .from_ns = 0,
                                          .run_ns = 0,
                                          .done_ns = (i + 1) * 5 * 40 * MS,
                                          .to_ns = (i + 1) * 5 * 40 * MS,
                                          .thread = usual_one.units[0].thread};
    sv_ledger_make(&l, t,
                   &(struct sv_ledger_options){.step = -1,
                                               .given = units,
                                               .n_given = STEPS,
                                               .given_kind = SV_UNIT_IS_TURN,
                                               .threads = threads,
                                               .pieces_max = most});
    sv_ledger_fini(&usual_one);
    return l;
}

TEST(a_ledger_does_not_depend_on_the_number_of_threads)
{
    struct made m = make_n_steps(5 * STEPS, 0);
    static const size_t most[] = {0, 10000, 300, 1};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        struct sv_ledger one = ledger_of_tens(m.trace, 1, most[i]),
                         four = ledger_of_tens(m.trace, 4, most[i]);
        check_equal(&one, &four);
        CHECK_INT_EQ(one.is_summed, most[i] > 0);
        check_edges(&one);
        sv_ledger_fini(&one);
        sv_ledger_fini(&four);
    }
    unmake(&m);
}

TEST(sums_of_very_many_pieces)
{
    struct made m = make_steps(0);
    struct sv_ledger all, few;
    struct sv_ledger_options o = usual;
    sv_ledger_make(&all, m.trace, &usual);
    CHECK(!all.is_summed);
    /* One unit of many pieces: the whole thread. */
    o.given = &(struct sv_given_unit){.from_ns = 0,
                                      .run_ns = 0,
                                      .done_ns = STEPS * 40 * MS,
                                      .to_ns = STEPS * 40 * MS,
                                      .thread = all.units[0].thread};
    o.n_given = 1;
    o.given_kind = SV_UNIT_IS_TURN;
    o.pieces_max = 1;
    sv_ledger_make(&few, m.trace, &o);
    CHECK_INT_EQ(few.dur_ns, all.dur_ns);
    for (int k = 0; k < SV_N_WHY_CLASSES; k++)
        CHECK_INT_EQ(few.class_ns[k], all.class_ns[k]);
    size_t n = few.n_pieces;
    sv_ledger_sum(&few, 0, 0);
    /* What the trainer does is in slices of different names; what the feeder does is not. */
    CHECK(few.is_summed);
    CHECK_INT_EQ(n, STEPS * 4);
    CHECK_INT_EQ(few.n_pieces, STEPS * 2 + 2);
    CHECK_INT_EQ(few.n_edges, 1);
    int64_t ns = 0;
    for (size_t i = 0; i < few.n_pieces; i++) {
        ns += few.pieces[i].dur_ns;
        CHECK(few.pieces[i].edge == SV_NO_EDGE || few.pieces[i].edge < few.n_edges);
    }
    CHECK_INT_EQ(ns, all.dur_ns);
    sv_ledger_fini(&few);
    sv_ledger_fini(&all);
    unmake(&m);
}

TEST(slow_units_are_explained_apart)
{
    struct made m = make_steps(10);
    struct sv_explanation e;
    sv_explain(&e, m.trace, "t", NULL);
    CHECK_INT_EQ(e.slow.n, STEPS / 10);
    CHECK_INT_EQ(e.slow.of, STEPS);
    CHECK_INT_EQ((int64_t)e.slow.usual_ns, 40 * MS);
    CHECK_INT_EQ((int64_t)e.slow.mean_ns, 200 * MS);
    REQUIRE(e.slow.n_findings == 1);
    CHECK(e.slow.findings[0].share > 0.99 && e.slow.findings[0].share <= 1);
    CHECK_STR_EQ(e.slow.findings[0].culprit.path, "/data/a.bin");
    sv_explanation_fini(&e);
    unmake(&m);
}

TEST(equal_units_are_not_slow)
{
    struct made m = make_steps(0);
    struct sv_explanation e;
    sv_explain(&e, m.trace, "t", NULL);
    CHECK_INT_EQ(e.slow.n, 0);
    CHECK(!e.also);
    sv_explanation_fini(&e);
    unmake(&m);
}

/* A loop over descriptors that another process wakes: it waits for an answer if it has connected to
 * that one, and may have nothing to do otherwise. */
static int64_t socket_ns(const char *fact)
{
    struct scene *s = calloc(1, sizeof *s);
    struct sv_ledger l;
    REQUIRE(s);
    put(s, "%s", tracks);
    if (fact)
        put_at(s, 0, fact);
    if (fact)
        put_at(s, 0, "end #8");
    for (int64_t i = 0; i < 20; i++) {
        put_at(s, i * 20, woken);
        put_at(s, i * 20, "begin #7 \"Running\" cat=\"thread_state\"");
        put_at(s, i * 20 + 1, "end #3");
        put_at(s, i * 20 + 1, "begin #3 \"Running\" cat=\"thread_state\"");
        put_at(s, i * 20 + 10, "end #3");
        put_at(s, i * 20 + 10, "begin #4 \"epoll_wait\" cat=\"syscall\" {fd=3}");
        put_at(s, i * 20 + 10, "begin #3 \"Sleeping\" cat=\"thread_state\" {reason=\"poll\"}");
        put_at(s, i * 20 + 20, "end #3");
        put_at(s, i * 20 + 20, "end #4");
        put_at(s, i * 20 + 20, "end #7");
    }
    put_at(s, 400, woken);
    put_at(s, 401, "end #3");
    struct made m = make(s);
    sv_ledger_make(&l, m.trace, &usual);
    int64_t ns = l.class_ns[SV_WHY_SOCKET];
    sv_ledger_fini(&l);
    unmake(&m);
    return ns;
}

TEST(an_event_loop_may_be_idle)
{
    CHECK_INT_EQ(socket_ns(NULL), 0);
    CHECK_INT_EQ(socket_ns("begin #8 \"accept4\" cat=\"syscall\" {fd=3 peer=\"10.0.0.1:40000\" "
                           "peer_pid=10}"),
                 200 * MS);
    CHECK_INT_EQ(socket_ns("begin #8 \"connect\" cat=\"syscall\" {fd=3 peer=\"10.0.0.1:8000\" "
                           "peer_pid=10}"),
                 0); /* the other one is the client */
}

/* One step of 100 ms, of which the trainer sleeps 80 as `wait` says, and is woken by the feeder. */
static void explain_wait(const char *state, const char *reason, const char *wait,
                         struct sv_explanation *e)
{
    struct scene *s = calloc(1, sizeof *s);
    REQUIRE(s);
    put(s, "%s%s", tracks,
        "track #9 custom uuid=0x9 parent=#2 name=\"off CPU\"\n"
        "track #10 custom uuid=0xa parent=#6 name=\"off CPU\"\n");
    put(s,
        "0.000000000 begin #2 \"step 0\" cat=\"step\"\n"
        "0.000000000 slice #3 \"Running\" cat=\"thread_state\" dur=0.020000000\n"
        "0.000000000 slice #7 \"Sleeping\" cat=\"thread_state\" dur=0.010000000 "
        "{reason=\"lock\"}\n"
        "0.010000000 slice #7 \"Running\" cat=\"thread_state\" dur=0.090000000\n"
        "0.020000000 slice #3 \"%s\" cat=\"thread_state\" dur=0.079990000 {%s}\n%s"
        "0.099990000 slice #3 \"Runnable\" cat=\"thread_state\" dur=0.000010000 "
        "{waker_tid=20 waker=\"feeder\"}\n"
        "0.100000000 end #2\n",
        state, reason, wait);
    struct made m = make(s);
    sv_explain(e, m.trace, "x", NULL);
    unmake(&m);
}

TEST(what_is_waited_for_is_in_the_stack)
{
    static const struct {
        const char *frame;
        enum sv_explain_cause cause;
    } cases[] = {{"__flock", SV_CAUSE_LOCK},        {"__GI___fcntl64_nocancel", SV_CAUSE_LOCK},
                 {"__libc_fcntl64", SV_CAUSE_LOCK}, {"semop", SV_CAUSE_LOCK},
                 {"flock_of_birds", SV_CAUSE_PIPE}, {"mq_receive", SV_CAUSE_PIPE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sv_explanation e;
        char wait[400];
        snprintf(wait, sizeof wait,
                 "0.020000000 instant #9 \"other\" cat=\"offcpu_sample\" {dur=79990000 "
                 "reason=\"other\" waker_tid=20 waker=\"feeder\" @stack[\"main\" \"update\" "
                 "\"%s\"]}\n",
                 cases[i].frame);
        explain_wait("Sleeping", "reason=\"other\"", wait, &e);
        REQUIRE(e.n == 1);
        CHECK_INT_EQ(e.findings[0].cause, cases[i].cause);
        CHECK_STR_EQ(e.findings[0].culprit.name, "feeder");
        sv_explanation_fini(&e);
    }
}

TEST(a_stopped_thread_has_somebody_who_lets_it_go_on)
{
    struct sv_explanation e;
    explain_wait("Stopped", "reason=\"stopped\"", "", &e);
    REQUIRE(e.n == 1);
    CHECK_INT_EQ(e.findings[0].cause, SV_CAUSE_STOPPED);
    CHECK_INT_EQ((int64_t)(e.findings[0].share * 100 + 0.5), 80);
    CHECK_INT_EQ(e.findings[0].culprit.pid, 20);
    sv_explanation_fini(&e);
}

/* A semaphore that the poster waits for itself is held; else what it posts is made. */
TEST(who_waits_for_a_semaphore_that_it_posts_holds_it)
{
    for (int is_pool = 0; is_pool < 2; is_pool++) {
        struct sv_explanation e;
        char wait[700];
        snprintf(wait, sizeof wait,
                 "0.000000000 instant #10 \"lock\" cat=\"offcpu_sample\" {dur=10000000 "
                 "reason=\"lock\" lock=%d @stack[\"rent\" \"sem_wait\"]}\n"
                 "0.020000000 instant #9 \"lock\" cat=\"offcpu_sample\" {dur=79990000 "
                 "reason=\"lock\" lock=64 waker_tid=20 waker=\"feeder\" @stack[\"main\" "
                 "\"borrow\" \"sem_wait\"]}\n",
                 is_pool ? 64 : 128);
        explain_wait("Sleeping", "reason=\"lock\"", wait, &e);
        REQUIRE(e.n == 1);
        CHECK_INT_EQ(e.findings[0].cause, is_pool ? SV_CAUSE_LOCK : SV_CAUSE_DATA);
        sv_explanation_fini(&e);
    }
}

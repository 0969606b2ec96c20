/* Pair: edges become slices, arguments of begin and end are joined, what does not match is
 * counted. */
#include "core/stream/args.h"
#include "stage_fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sv_event edge(int64_t ts_ns, unsigned kind, sv_track track, sv_str name)
{
    return (struct sv_event){.ts_ns = ts_ns, .kind = (uint8_t)kind, .track = track, .name = name};
}

static void setup(struct fixture *f)
{
    setup_stage(f);
    f->x = sv_dict_cstr(f->dict, "x");
    f->y = sv_dict_cstr(f->dict, "y");
    f->k = sv_dict_cstr(f->dict, "k");
    f->l = sv_dict_cstr(f->dict, "l");
}

static void run(struct fixture *f, const struct sv_event *events, size_t n)
{
    struct sv_err err = {0};
    struct sv_sink *s = sv_pair_new(f->dict, &f->report, collect_sink(&f->out, SV_HAS_ANYTHING));
    CHECK_INT_EQ(push_events(events, n, s, &err), 0);
    CHECK(f->out.closed && !f->out.failed);
}

static void check_slice(const struct sv_event *e, int64_t ts_ns, int64_t dur_ns, sv_track track,
                        sv_str name)
{
    CHECK_UINT_EQ(e->kind, SV_SLICE);
    CHECK_INT_EQ(e->ts_ns, ts_ns);
    CHECK_INT_EQ(e->dur_ns, dur_ns);
    CHECK_UINT_EQ(e->track, track);
    CHECK_UINT_EQ(e->name, name);
}

TEST(stacks_are_per_track)
{
    struct fixture f;
    setup(&f);
    const struct sv_event events[] = {
        edge(10, SV_BEGIN, f.a, f.x), edge(11, SV_BEGIN, f.b, f.y), edge(12, SV_BEGIN, f.a, f.y),
        edge(13, SV_INSTANT, f.a, 0), edge(14, SV_END, f.a, 0),     edge(15, SV_END, f.b, 0),
        edge(16, SV_END, f.a, 0),
    };
    run(&f, events, TEST_COUNT(events));
    REQUIRE(f.out.n == 4);
    CHECK_UINT_EQ(f.out.events[0].kind, SV_INSTANT);
    check_slice(&f.out.events[1], 12, 2, f.a, f.y);
    check_slice(&f.out.events[2], 11, 4, f.b, f.y);
    check_slice(&f.out.events[3], 10, 6, f.a, f.x);
    CHECK_UINT_EQ(f.report.n, 0);
    teardown(&f);
}

TEST(what_does_not_match_is_counted)
{
    struct fixture f;
    setup(&f);
    const struct sv_event events[] = {
        edge(5, SV_END, f.a, 0),      edge(10, SV_BEGIN, f.a, f.x), edge(20, SV_BEGIN, f.a, f.y),
        edge(30, SV_BEGIN, f.b, f.x), edge(25, SV_END, f.b, 0),     edge(40, SV_END, f.b, 0),
    };
    run(&f, events, TEST_COUNT(events));
    REQUIRE(f.out.n == 3);
    check_slice(&f.out.events[0], 30, 0, f.b, f.x); /* its end came before it */
    check_slice(&f.out.events[1], 10, SV_UNFINISHED, f.a, f.x);
    check_slice(&f.out.events[2], 20, SV_UNFINISHED, f.a, f.y);
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_DAMAGE),
                  3); /* two ends without begin, one backwards */
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_NOTE), 2);
    teardown(&f);
}

TEST(a_name_may_come_with_the_end)
{
    struct fixture f;
    setup(&f);
    const struct sv_event events[] = {edge(1, SV_BEGIN, f.a, 0), edge(2, SV_END, f.a, f.y),
                                      edge(3, SV_BEGIN, f.a, f.x), edge(4, SV_END, f.a, f.y)};
    run(&f, events, TEST_COUNT(events));
    REQUIRE(f.out.n == 2);
    CHECK_UINT_EQ(f.out.events[0].name, f.y);
    CHECK_UINT_EQ(f.out.events[1].name, f.x);
    teardown(&f);
}

TEST(arguments_of_both_ends)
{
    struct fixture f;
    setup(&f);
    const struct sv_arg begin[] = {
        {.key = f.k, .type = SV_ARG_DICT, .size = 1},
        {.key = f.x, .type = SV_ARG_INT, .i = 1},
        {.type = SV_ARG_THREAD_TIME, .i = 1000},
        {.key = f.l, .type = SV_ARG_TEXT, .size = 3, .text = "old"},
    };
    const struct sv_arg end[] = {
        {.key = f.l, .type = SV_ARG_TEXT, .size = 3, .text = "new"},
        {.key = f.x,
         .type = SV_ARG_INT,
         .i = 2}, /* the x of begin is a member of k, not this one */
        {.type = SV_ARG_THREAD_TIME, .i = 1600},
        {.type = SV_ARG_FLOW, .u = 9},
    };
    struct sv_event events[] = {edge(1, SV_BEGIN, f.a, f.x), edge(2, SV_END, f.a, 0)};
    events[0].args = begin;
    events[0].n_args = TEST_COUNT(begin);
    events[1].args = end;
    events[1].n_args = TEST_COUNT(end);
    run(&f, events, 2);
    REQUIRE(f.out.n == 1);
    struct sv_buf text;
    sv_buf_init(&text, SIZE_MAX);
    f.dict->tracks[f.a].uuid = 0xa;
    CHECK_STR_EQ(
        dump(&text, f.dict, f.out.events, 1),
        "1 1 slice A#000000000000000a x  k=dict(1) x=int:1 thread_time:1000 l='new' x=int:2 "
        "thread_dur:600 flow:9\n");
    sv_buf_fini(&text);
    teardown(&f);
}

TEST(long_argument_lists_are_joined_by_key)
{
    enum { N = 500 };
    struct sv_arg begin[N], end[N], joined[2 * N + 1];
    for (uint32_t i = 0; i < N; i++) {
        begin[i] = (struct sv_arg){.key = i + 1, .type = SV_ARG_INT, .i = 1};
        end[i] = (struct sv_arg){.key = i + 1 + N / 2, .type = SV_ARG_INT, .i = 2};
    }
    CHECK_UINT_EQ(sv_args_join(joined, begin, N, end, N), N + N / 2);
    for (uint32_t i = 0; i < N + N / 2; i++) {
        CHECK_UINT_EQ(joined[i].key, i + 1);
        CHECK_INT_EQ(joined[i].i, i < N / 2 ? 1 : 2);
    }
}

TEST(too_many_arguments_keep_those_of_the_begin)
{
    struct fixture f;
    setup(&f);
    struct sv_arg *args = sv_alloc(40000 * sizeof *args);
    for (size_t i = 0; i < 40000; i++)
        args[i] = (struct sv_arg){.type = SV_ARG_FLOW, .u = i};
    struct sv_event events[] = {edge(1, SV_BEGIN, f.a, f.x), edge(2, SV_END, f.a, 0)};
    events[0].args = events[1].args = args;
    events[0].n_args = events[1].n_args = 40000;
    run(&f, events, 2);
    REQUIRE(f.out.n == 1);
    CHECK_UINT_EQ(f.out.events[0].n_args, 40000);
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_SKIPPED), 1);
    free(args);
    teardown(&f);
}

/* Every edge is in the result or in a count, for damaged streams too. */
TEST(random_edges_are_all_accounted_for)
{
    for (unsigned seed = 0; seed < 30; seed++) {
        CONTEXT("seed %u", seed);
        struct gen g;
        gen_make(&g, &(struct gen_options){.seed = seed,
                                           .n = 2000,
                                           .shape = SV_HAS_EDGES,
                                           .extras = GEN_ALL | GEN_UNMATCHED,
                                           .depth = 30});
        size_t begins = 0, ends = 0, slices = 0, unfinished = 0;
        for (size_t i = 0; i < g.n; i++) {
            begins += g.events[i].kind == SV_BEGIN;
            ends += g.events[i].kind == SV_END;
        }
        struct collect c = {0};
        struct sv_report report;
        sv_report_init(&report);
        CHECK_INT_EQ(
            gen_push(&g, sv_pair_new(g.dict, &report, collect_sink(&c, SV_HAS_ANYTHING)), NULL), 0);
        for (size_t i = 0; i < c.n; i++) {
            slices += c.events[i].kind == SV_SLICE;
            unfinished += c.events[i].kind == SV_SLICE && c.events[i].dur_ns == SV_UNFINISHED;
        }
        CHECK_UINT_EQ(slices, begins);
        CHECK_UINT_EQ(c.n - slices, g.n - begins - ends);
        CHECK_UINT_EQ(sv_report_count(&report, SV_NOTE), unfinished);
        CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), ends - (begins - unfinished));
        sv_report_fini(&report);
        collect_fini(&c);
        gen_fini(&g);
    }
}

static struct sv_sink *pair_before(struct sv_dict *dict, struct sv_sink *next)
{
    return sv_pair_new(dict, NULL, next);
}

TEST(failures_are_passed_on)
{
    check_failure_is_passed_on(SV_HAS_EDGES, pair_before);
}

/* A stream of weeks: what was open and is closed costs nothing. Large blocks come from the heap,
 * where a leak is seen by the sanitizer; small ones from the pool, where it is seen by the
 * growth. */
TEST(memory_does_not_grow_with_the_stream)
{
    struct fixture f;
    setup(&f);
    static char text[6000];
    const struct sv_arg small = {.key = f.k, .type = SV_ARG_TEXT, .size = 200, .text = text};
    const struct sv_arg large = {
        .key = f.k, .type = SV_ARG_TEXT, .size = sizeof text, .text = text};
    struct sv_tally tally = {0};
    struct sv_sink *s = sv_pair_new(f.dict, NULL, sv_tally_new(&tally, NULL));
    size_t held_early = 0;
    for (int64_t round = 0; round < 20000; round++) {
        struct sv_event events[] = {edge(round, SV_BEGIN, f.a, f.x),
                                    edge(round, SV_BEGIN, f.a, f.y), edge(round, SV_END, f.a, 0),
                                    edge(round, SV_END, f.a, 0)};
        events[0].args = &small;
        events[1].args = &large;
        events[0].n_args = events[1].n_args = 1;
        CHECK_INT_EQ(s->write(s, events, TEST_COUNT(events), NULL), 0);
        if (round == 100)
            held_early = mallinfo2().uordblks;
    }
    CHECK(mallinfo2().uordblks <= held_early + (64 << 10));
    CHECK_INT_EQ(s->close(s, false, NULL), 0);
    CHECK_UINT_EQ(tally.by_kind[SV_SLICE], 40000);
    teardown(&f);
}

/* ---- spans: the same limit where edges stay edges ---- */

#define BEGIN(at, on)                                  \
    {                                                  \
        .ts_ns = (at), .kind = SV_BEGIN, .track = (on) \
    }
#define END(at, on)                                  \
    {                                                \
        .ts_ns = (at), .kind = SV_END, .track = (on) \
    }

struct span_row {
    size_t n;
    struct sv_event events[8];
    int64_t at_ns; /* where the slice begins that is refused */
    bool is_fine;
};

static int run_spans(struct fixture *f, const struct span_row *row, struct sv_err *err)
{
    struct sv_sink *s = sv_spans_new(f->dict, collect_sink(&f->out, SV_HAS_EDGES));
    int code = 0;
    for (size_t i = 0; i < row->n && code == 0; i++) /* each in a batch of its own */
        code = s->write(s, &row->events[i], 1, err);
    int closed = s->close(s, code < 0, err);
    return code < 0 ? code : closed;
}

TEST(spans_refuses_edges_too_far_apart)
{
    const int64_t first = INT64_MIN, last = INT64_MAX;
    enum { A = 1, B = 2 };
    const struct span_row rows[] = {
        {2, {BEGIN(first, A), END(-1, A)}, 0, true},
        {2, {BEGIN(first, A), END(0, A)}, first, false},
        {2, {BEGIN(0, A), END(last, A)}, 0, true},
        {2, {BEGIN(-1, A), END(last, A)}, -1, false},
        /* another track, an instant, an end without a begin, a begin without an end */
        {6,
         {BEGIN(first, A),
          BEGIN(first, B),
          END(-1, B),
          {.ts_ns = 5, .kind = SV_INSTANT, .track = A},
          END(last, B),
          BEGIN(last, B)},
         0,
         true},
        /* the inner one is short, the outer one is not; and the other way round */
        {4, {BEGIN(-9, B), BEGIN(7, B), END(last, B), END(last, B)}, -9, false},
        {5, {BEGIN(-9, B), BEGIN(-8, B), END(-7, B), END(3, B), END(last, B)}, 0, true},
        {7,
         {BEGIN(-9, A), END(-8, A), BEGIN(-7, B), BEGIN(-6, A), BEGIN(-5, B), END(1, B),
          END(last, B)},
         -7,
         false},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct fixture f;
        struct sv_err err = {0};
        char at[64];
        CONTEXT("row %zu", i);
        setup(&f);
        int code = run_spans(&f, &rows[i], &err);
        snprintf(at, sizeof at, "at %lld ns on ", (long long)rows[i].at_ns);
        CHECK_INT_EQ(code, rows[i].is_fine ? 0 : SV_ELIMIT);
        CHECK(rows[i].is_fine || strstr(err.msg, at) != NULL);
        CHECK_UINT_EQ(f.out.n, rows[i].is_fine ? rows[i].n : rows[i].n - 1);
        CHECK(f.out.closed && f.out.failed == !rows[i].is_fine);
        teardown(&f);
    }
}

/* The pump puts it before every sink that takes edges, whatever the source and the other stages. */
TEST(the_pump_refuses_edges_too_far_apart)
{
    static const unsigned takes[] = {SV_HAS_EDGES, SV_HAS_EDGES | SV_IN_TRACK_ORDER,
                                     SV_HAS_EDGES | SV_HAS_NESTED, SV_HAS_ANYTHING & ~SV_ORDER_BITS,
                                     SV_HAS_SLICES | SV_IN_NO_ORDER};
    static const unsigned gives[] = {SV_HAS_EDGES, SV_HAS_EDGES | SV_IN_TRACK_ORDER,
                                     SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER,
                                     SV_HAS_ANYTHING};
    for (size_t i = 0; i < TEST_COUNT(takes) * TEST_COUNT(gives); i++) {
        struct fixture f;
        struct sv_err err = {0};
        setup(&f);
        CONTEXT("row %zu", i);
        const struct sv_event events[] = {edge(-5, SV_BEGIN, f.b, f.x),
                                          edge(INT64_MAX, SV_END, f.b, 0)};
        struct sv_sink *s = collect_sink(&f.out, takes[i / TEST_COUNT(gives)]);
        s = sv_pump_adapt(gives[i % TEST_COUNT(gives)], s, f.dict, &f.report, NULL);
        CHECK_INT_EQ(push_events(events, 2, s, &err), SV_ELIMIT);
        CHECK(strstr(err.msg, "at -5 ns on track \"B\"") != NULL);
        teardown(&f);
    }
}

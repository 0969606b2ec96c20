/* The check: each rule is met by a trace that breaks it, once, and by none that does not. */
#include "store/check.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sv_check run(const char *text, struct sv_dict *d, unsigned gives)
{
    struct sv_check check;
    struct sv_err err = {0};
    struct sv_sink *s = sv_check_new(d, gives, 1 << 20, &check);
    CHECK_INT_EQ(trace_text_write(text, 2, d, s, &err), 0);
    CHECK_INT_EQ(s->close(s, false, &err), 0);
    return check;
}

/* "rule count @first_ns name/other; …" for what was found. */
static const char *found(const struct sv_check *check, const struct sv_dict *d)
{
    static char out[2048];
    size_t n = 0;
    out[0] = 0;
    for (unsigned r = 0; r < SV_CHECK_RULES; r++) {
        const struct sv_check_row *row = &check->rows[r];
        if (row->count == 0)
            continue;
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s %" PRIu64 " @%" PRIi64, n ? "; " : "",
                              sv_check_rules[r].name, row->count, row->first_ns);
        if (row->name)
            n += (size_t)snprintf(out + n, sizeof out - n, " %s", sv_dict_text(d, row->name).bytes);
        if (row->other)
            n +=
                (size_t)snprintf(out + n, sizeof out - n, "/%s", sv_dict_text(d, row->other).bytes);
    }
    return out;
}

struct row {
    const char *in, *found;
};

static void check_rows(const struct row *rows, size_t n, unsigned gives)
{
    for (size_t i = 0; i < n; i++) {
        CONTEXT("row %zu: %s", i, rows[i].in);
        struct sv_dict *d = sv_dict_new();
        struct sv_check check = run(rows[i].in, d, gives);
        CHECK_STR_EQ(found(&check, d), rows[i].found);
        sv_dict_free(d);
    }
}

TEST(edges)
{
    static const struct row rows[] = {
        {"B 1 t a\nB 2 t b\nE 3 t\nE 4 t\nB 4 u c\nE 4 u", ""},
        {"E 1 t\nB 2 t a\nE 3 t\nE 4 t", "end-without-begin 2 @1"},
        {"B 2 u b\nB 1 t a\nB 3 t c\nE 4 t", "begin-without-end 2 @1 a"},
        {"B 1 t -\nE 2 t\nI 3 t -\nX 4 1 t -", "no-name 3 @1"},
    };
    check_rows(rows, TEST_COUNT(rows), SV_HAS_EDGES);
}

TEST(slices_that_do_not_nest)
{
    static const struct row rows[] = {
        {"X 0 1001 t a\nX 1 500 t b\nX 501 500 t c\nX 1001 9 t d\nX 1001 9 t e\nX 1010 0 t f", ""},
        {"X 0 1001 t a\nX 500 2000 t b", "overlap 1 @500 b/a"},
        {"X 0 1001 t a\nX 500 2000 t b\nX 700 3000 t c", "overlap 2 @500 b/a"},
        /* By one nanosecond: a child that is too long, a sibling that is too early. */
        {"X 0 1001 t a\nX 500 502 t b", "near-overlap 1 @500 b/a"},
        {"X 0 1001 t a\nX 1000 502 t b", "near-overlap 1 @1000 b/a"},
        {"X 0 1001 t a\nX 999 502 t b", "overlap 1 @999 b/a"},
        /* By one microsecond, if all times are microseconds. */
        {"X 0 10000 t a\nX 9000 5000 t b", "near-overlap 1 @9000 b/a"},
        {"X 0 10000 t a\nX 8000 5000 t b", "overlap 1 @8000 b/a"},
        {"X 0 10000 t a\nX 9000 5000 t b\nX 20001 1 u c", "overlap 1 @9000 b/a"},
        {"X 5 -7 t a\nX 6 - t b", "unfinished-slice 1 @6 b; negative-duration 1 @5 a"},
        {"B -9223372036854775808 t a\nE -1 t\nB -1 t b\nE 9223372036854775806 t", ""},
        {"B -2 t a\nE 9223372036854775806 t", "endless-duration 1 @-2 a"},
        /* Edges and slices on one track. */
        {"B 1 t a\nX 10 100 t b\nE 200 t", ""},
        {"X 1 100 t a\nB 10 t b\nE 20 t\nB 30 t c\nE 101 t", ""},
        {"B 1 t a\nX 10 100 t b\nE 50 t", "overlap 1 @1 a/b"},
        {"X 1 100 t a\nB 50 t b\nE 200 t", "overlap 1 @50 b/a"},
        {"X 1 100 t a\nB 50 t b\nE 102 t", "near-overlap 1 @50 b/a"},
        {"X 1 100 t a\nE 50 t", "end-without-begin 1 @50"},
    };
    check_rows(rows, TEST_COUNT(rows), SV_HAS_EDGES | SV_HAS_SLICES);
}

TEST(order_is_looked_at_as_events_come)
{
    static const struct row rows[] = {
        {"B 5 t a\nE 6 t\nB 1 t b\nE 2 t", "edge-order 1 @1 b"},
        {"B 5 t a\nB 1 u b\nE 6 t\nE 2 u", ""},
        {"X 5 1 t a\nX 2 1 t b\nX 3 1 t c\nX 1 1 t d", "slice-order 2 @2 b"},
        {"I 5 t a\nI 1 t b", "file-order 1 @1 b"},
        {"B 2 t a\nI 5 t i\nE 4 t", ""},
        /* One nanosecond is enough, and the same moment is not. */
        {"B 5 t a\nE 9 t\nB 8 t b\nE 9 t", "edge-order 1 @8 b"},
        {"X 5 1 t a\nX 4 1 t b", "slice-order 1 @4 b"},
        {"I 5 t a\nI 4 t b", "file-order 1 @4 b"},
        {"B 5 t a\nE 9 t\nB 9 t b\nE 9 t\nX 5 1 u a\nX 5 1 u b\nI 5 u a\nI 5 u b", ""},
    };
    check_rows(rows, TEST_COUNT(rows), SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_NO_ORDER);
}

TEST(edges_in_disorder_do_no_harm_where_readers_sort)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_check check;
    struct sv_err err = {0};
    struct sv_sink *s = sv_check_new(d, SV_HAS_EDGES | SV_IN_NO_ORDER, 0, &check);
    check.readers_sort = true;
    CHECK_INT_EQ(trace_text_write("B 5 t a\nE 6 t\nB 1 t b\nE 2 t", 2, d, s, &err), 0);
    CHECK_INT_EQ(s->close(s, false, &err), 0);
    CHECK_STR_EQ(found(&check, d), "file-order 1 @1 b");
    CHECK_INT_EQ(sv_check_worst(&check), SV_CHECK_NOTE);
    sv_dict_free(d);
}

/* Two threads of a program set one counter; the recorder reads them one after the other. */
TEST(counters_in_disorder_are_as_they_should_be_where_readers_sort)
{
    for (int readers_sort = 0; readers_sort < 2; readers_sort++) {
        struct sv_dict *d = sv_dict_new();
        sv_track counter = sv_dict_child(d, 0, SV_TRACK_COUNTER, sv_dict_cstr(d, "c"));
        struct sv_arg value = {.type = SV_ARG_INT, .i = 7};
        const struct sv_event events[] = {
            {.kind = SV_COUNTER, .track = counter, .ts_ns = 2, .args = &value, .n_args = 1},
            {.kind = SV_COUNTER, .track = counter, .ts_ns = 1, .args = &value, .n_args = 1}};
        struct sv_check check;
        struct sv_err err = {0};
        struct sv_sink *s = sv_check_new(d, SV_IN_NO_ORDER, 0, &check);
        check.readers_sort = readers_sort;
        CHECK_INT_EQ(push_events(events, TEST_COUNT(events), s, &err), 0);
        CHECK_STR_EQ(found(&check, d), readers_sort ? "" : "counter-order 1 @1");
        sv_dict_free(d);
    }
}

TEST(flows)
{
    static const struct row rows[] = {
        {"X 1 1 t a >7\nX 2 1 t b ~7\nX 3 1 t c <7\nX 4 1 t d <7", ""},
        {"X 1 1 t a ~7\nX 2 1 t b ~7\nX 3 1 t c <7\nX 4 1 t d ~7\nX 5 1 t e ~7", ""},
        {"X 1 1 t a >7\nX 2 1 t b <7\nX 3 1 t c >7\nX 4 1 t d <7", ""},
        {"X 1 1 t a <7\nX 2 1 u b <7\nX 3 1 t c >8\nX 4 1 t d <8", "flow-end-without-begin 2 @1 a"},
        {"X 1 1 t a >7\nX 2 1 t b >8\nX 3 1 t c ~9", "flow-without-end 3 @1 a"},
        {"X 1 1 t a >7\nX 2 1 t b >7\nX 3 1 t c <7", "flow-begun-twice 1 @2 b"},
        {"X 1 1 t a ~7\nX 2 1 t b <7\nX 3 1 t c <7", "flow-end-without-begin 1 @1 a"},
        /* Of the same moment: the order is an accident. */
        {"X 1 1 t a <7\nX 1 1 u b >7", ""},
        {"X 1 1 u b >7\nX 2 1 t a <7", ""},
    };
    check_rows(rows, TEST_COUNT(rows), SV_HAS_NESTED);
}

TEST(flow_points_need_a_slice)
{
    static const struct row rows[] = {
        {"X 1 5 t a\ns 1 t 7\nX 8 2 t b\nf 10 t 7", ""}, /* the end counts, too */
        {"B 1 t a\ns 3 t 7\nE 5 t\nf 5 t 7", ""},
        {"X 1 5 t a\ns 3 t 7\nf 7 t 7", "flow-outside 1 @7"},
        {"s 0 t 7\nX 1 5 t a\np 3 u 7\nf 4 t 7", "flow-outside 2 @0"},
        {"X 1 5 t a\ns 3 t 7\nF 7 t 7\nX 9 1 t b", ""},
        {"X 1 5 t a\ns 3 t 7\nF 7 t 7\nF 8 t 7\nI 9 t b", "flow-outside 2 @7"},
    };
    check_rows(rows, TEST_COUNT(rows), SV_HAS_NESTED | SV_HAS_FLOW_POINTS);
}

TEST(counters_tracks_and_loss)
{
    struct sv_dict *d = sv_dict_new();
    sv_track counter = sv_dict_child(d, 0, SV_TRACK_COUNTER, sv_dict_cstr(d, "c"));
    sv_track bare = sv_dict_track(d, 77, NULL), below = sv_dict_child(d, bare, SV_TRACK_STREAM, 0);
    sv_track one = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "one"));
    sv_track two = sv_dict_child(d, one, SV_TRACK_CUSTOM, sv_dict_cstr(d, "two"));
    d->tracks[one].parent = two;
    struct sv_arg value = {.type = SV_ARG_INT, .i = 5}, text = {.type = SV_ARG_TEXT};
    sv_str name = sv_dict_cstr(d, "n");
    const struct sv_event events[] = {
        {.kind = SV_COUNTER, .track = counter, .ts_ns = 1, .args = &value, .n_args = 1},
        {.kind = SV_COUNTER, .track = below, .ts_ns = 2, .args = &value, .n_args = 1},
        {.kind = SV_COUNTER, .track = counter, .ts_ns = 3, .args = &text, .n_args = 1},
        {.kind = SV_COUNTER, .track = counter, .ts_ns = 2, .args = &value, .n_args = 1},
        {.kind = SV_INSTANT, .track = counter, .ts_ns = 4, .name = name},
        {.kind = SV_INSTANT, .track = bare, .ts_ns = 5, .name = name},
        {.kind = SV_INSTANT, .track = 0, .ts_ns = 6, .name = name},
        {.kind = SV_LOSS, .track = below, .ts_ns = 7, .args = &value, .n_args = 1},
        {.kind = SV_LOSS, .track = below, .ts_ns = 8},
    };
    struct sv_check check;
    struct sv_err err = {0};
    CHECK_INT_EQ(push_events(events, TEST_COUNT(events), sv_check_new(d, 0, 0, &check), &err), 0);
    CHECK_STR_EQ(
        found(&check, d),
        "counter-order 1 @2; counter-track 1 @2; counter-value 1 @3; slice-on-counter 1 @4 n; "
        "no-track 1 @6 n; undescribed-track 1 @0; unknown-parent 1 @0; parent-cycle 1 @0 one; "
        "loss 6 @7");
    CHECK_INT_EQ(sv_check_worst(&check), SV_CHECK_ERROR);
    CHECK_UINT_EQ(check.events, TEST_COUNT(events));
    sv_dict_free(d);
}

TEST(traces_without_fault_have_no_findings)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct gen g;
        struct sv_check check;
        struct sv_err err = {0};
        unsigned shape = seed % 3 == 0   ? SV_HAS_EDGES
                         : seed % 3 == 1 ? SV_HAS_NESTED
                                         : SV_HAS_EDGES | SV_HAS_NESTED;
        unsigned extras = GEN_ALL & ~(unsigned)(GEN_UNFINISHED | GEN_FLOWS | GEN_LOSS);
        CONTEXT("seed %" PRIu64, seed);
        gen_make(&g,
                 &(struct gen_options){.seed = seed, .n = 500, .shape = shape, .extras = extras});
        CHECK_INT_EQ(gen_push(&g, sv_check_new(g.dict, shape, 0, &check), &err), 0);
        CHECK_STR_EQ(found(&check, g.dict), "");
        CHECK_INT_EQ(sv_check_worst(&check), -1);
        gen_fini(&g);
    }
}

/* ---- bounds ---- */

static void push_many(struct sv_sink *s, size_t n,
                      struct sv_event (*make)(size_t i, struct sv_arg *))
{
    struct sv_event events[SV_BATCH];
    struct sv_arg args[SV_BATCH];
    struct sv_err err = {0};
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        for (; k < SV_BATCH && i < n; k++, i++)
            events[k] = make(i, &args[k]);
        CHECK_INT_EQ(s->write(s, events, k, &err), 0);
    }
    CHECK_INT_EQ(s->close(s, false, &err), 0);
}

static struct sv_event make_flow(size_t i, struct sv_arg *a)
{
    *a = (struct sv_arg){.type = i % 2 ? SV_ARG_FLOW_END : SV_ARG_FLOW_BEGIN, .u = i / 2};
    return (struct sv_event){
        .kind = SV_SLICE, .track = 1, .name = 1, .ts_ns = (int64_t)i, .args = a, .n_args = 1};
}

static struct sv_event make_open_flow(size_t i, struct sv_arg *a)
{
    struct sv_event e = make_flow(2 * i, a);
    return e;
}

TEST(flows_past_the_bound_are_reported_not_guessed)
{
    struct sv_dict *d = sv_dict_new();
    sv_dict_process(d, 0, 1);
    sv_dict_cstr(d, "name");
    struct sv_check check;
    /* Flows that ended are replaced by others. */
    push_many(sv_check_new(d, 0, 0, &check), (size_t)SV_CHECK_FLOWS_MAX * 6, make_flow);
    CHECK_STR_EQ(found(&check, d), "");
    /* Open ones do not. */
    push_many(sv_check_new(d, 0, 0, &check), SV_CHECK_FLOWS_MAX + 1000, make_open_flow);
    CHECK_UINT_EQ(check.rows[SV_CHECK_FLOW_WITHOUT_END].count, SV_CHECK_FLOWS_MAX);
    CHECK_UINT_EQ(check.rows[SV_CHECK_UNCHECKED].count, 1000);
    sv_dict_free(d);
}

static struct sv_event make_begin(size_t i, struct sv_arg *a)
{
    (void)a;
    return (struct sv_event){.kind = i < SV_CHECK_OPEN_MAX + 1000 ? SV_BEGIN : SV_END,
                             .track = 1,
                             .name = 1,
                             .ts_ns = (int64_t)i};
}

TEST(nesting_past_the_bound_is_reported_not_guessed)
{
    struct sv_dict *d = sv_dict_new();
    sv_dict_process(d, 0, 1);
    sv_dict_cstr(d, "name");
    struct sv_check check;
    push_many(sv_check_new(d, 0, 0, &check), (size_t)SV_CHECK_OPEN_MAX * 2 + 2000, make_begin);
    CHECK_UINT_EQ(check.rows[SV_CHECK_END_WITHOUT_BEGIN].count, 0);
    CHECK_UINT_EQ(check.rows[SV_CHECK_BEGIN_WITHOUT_END].count, 0);
    CHECK(check.rows[SV_CHECK_UNCHECKED].count > 0);
    CHECK_UINT_EQ(check.rows[SV_CHECK_DEEP_NESTING].count, SV_CHECK_OPEN_MAX - SV_CHECK_DEPTH_MAX);
    sv_dict_free(d);
}

/* The last state of a thread lasts to the end of the recording; a slice that does is a mistake. */
TEST(the_last_state_of_a_thread_has_no_end)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_check check;
    struct sv_err err = {0};
    sv_track t = sv_dict_thread(d, 0, 7, 8);
    const struct sv_event events[] = {{.ts_ns = 1,
                                       .track = t,
                                       .kind = SV_BEGIN,
                                       .name = sv_dict_cstr(d, "Sleeping"),
                                       .cat = sv_dict_cstr(d, "thread_state")},
                                      {.ts_ns = 2,
                                       .track = sv_dict_thread(d, 0, 7, 9),
                                       .kind = SV_BEGIN,
                                       .name = sv_dict_cstr(d, "work")}};
    struct sv_sink *sink = sv_check_new(d, SV_HAS_EDGES, 1 << 20, &check);
    REQUIRE(sink->write(sink, events, 2, &err) == 0);
    REQUIRE(sink->close(sink, false, &err) == 0);
    CHECK_STR_EQ(found(&check, d), "begin-without-end 1 @2 work");
    sv_dict_free(d);
}

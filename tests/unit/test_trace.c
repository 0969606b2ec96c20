/* The store: what rows come out of which events, and that leaving and entering it again changes
 * nothing. */
#include "store/trace.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dictionary, a report and a trace of some text. */
struct fixture {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_trace *trace;
    struct sv_buf out;
};

static struct fixture load(const char *text)
{
    struct fixture f = {.dict = sv_dict_new()};
    sv_report_init(&f.report);
    sv_buf_init(&f.out, 1 << 26);
    f.trace = trace_text_load(text, f.dict, &f.report);
    return f;
}

static void drop(struct fixture *f)
{
    sv_trace_free(f->trace);
    sv_dict_free(f->dict);
    sv_report_fini(&f->report);
    sv_buf_fini(&f->out);
}

static const char *text_of(struct fixture *f)
{
    return trace_text_dump(f->trace, &f->out);
}

/* The trace that the source of this one makes. */
static struct sv_trace *reload(const struct fixture *f)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(f->dict, NULL, 0);
    CHECK_INT_EQ(sv_pump(sv_trace_source(f->trace, NULL), sv_trace_sink(t), NULL, &err), 0);
    return t;
}

struct row {
    const char *in, *out;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CONTEXT("row %zu: %s", i, rows[i].in);
        struct fixture f = load(rows[i].in);
        CHECK_STR_EQ(text_of(&f), rows[i].out);
        struct sv_trace *again = reload(&f);
        CHECK_STR_EQ(trace_text_dump(again, &f.out), rows[i].out);
        sv_trace_free(again);
        drop(&f);
    }
}

TEST(edges_are_paired_by_a_stack_per_track)
{
    static const struct row rows[] = {
        {"B 1 t a\nB 2 t b\nB 2 u c\nE 3 t\nE 5 t\nE 6 u", "t 1+4 a 0\nt 2+1 b 1 <a\nu 2+4 c 0\n"},
        {"B 1 t a\nB 2 t b\nE 3 t", "t 1+? a 0\nt 2+1 b 1 <a\n"},
        {"E 1 t\nB 2 t a\nE 3 t\nE 4 t", "t 2+1 a 0\n"},
        /* Ties keep the order in which they came: siblings stay siblings, children children. */
        {"B 5 t a\nE 5 t\nB 5 t b\nE 9 t", "t 5+0 a 0\nt 5+4 b 0\n"},
        {"B 5 t a\nB 5 t b\nE 5 t\nE 5 t", "t 5+0 a 0\nt 5+0 b 1 <a\n"},
        {"B 5 t a\nE 5 t\nB 5 t b\nE 5 t", "t 5+0 a 0\nt 5+0 b 0\n"},
        {"B 5 t a\nI 7 t i\nE 7 t\nI 7 t j", "t 5+2 a 0\nt 7+i i 1 <a\nt 7+i j 0\n"},
        {"", ""},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(edges_that_go_back_in_time_are_paired_in_time_order)
{
    static const struct row rows[] = {
        {"E 20 t\nB 10 t a", "t 10+10 a 0\n"},
        {"B 10 t a\nE 20 t\nB 12 t b\nE 15 t", "t 10+10 a 0\nt 12+3 b 1 <a\n"},
        {"B 10 t a\nE 20 t\nB 5 t b\nE 15 t", "t 5+15 b 0\nt 10+5 a 1 <b\n"},
        {"B 10 t a\nB 12 t b\nB 8 t c\nE 9 t\nE 14 t\nE 16 t",
         "t 8+1 c 0\nt 10+6 a 0\nt 12+2 b 1 <a\n"},
        {"B 10 t a\nE 12 t\nE 13 t\nB 11 t b", "t 10+3 a 0\nt 11+1 b 1 <a\n"},
        {"B 10 t a\nE 8 t", "t 10+? a 0\n"},
        {"B 10 t a\nE 9 t", "t 10+? a 0\n"},
        {"B 10 t a\nE 20 t\nB 19 t b\nE 19 t", "t 10+10 a 0\nt 19+0 b 1 <a\n"},
        {"B 10 t a\nI 11 t i\nE 12 t\nI 5 t j\nI 20 t k\nB 11 t b\nE 11 t",
         "t 5+i j 0\nt 10+2 a 0\nt 11+i i 1 <a\nt 11+0 b 1 <a\nt 20+i k 0\n"},
        {"B 10 t a\nE 20 t\nB 5 t c\nB 20 t b\nE 20 t\nE 30 t",
         "t 5+25 c 0\nt 10+10 a 1 <c\nt 20+0 b 1 <c\n"},
        /* The arguments of an end go to the begin that it closes in the end. */
        {"B 10 t a x=1\nE 20 t y=2\nB 5 t b z=3\nE 15 t w=4",
         "t 5+15 b 0 z=3 y=2\nt 10+5 a 1 <b x=1 w=4\n"},
        /* And so do its flows. */
        {"B 1 u o >7\nE 2 u\nB 10 t a\nE 20 t <7\nB 5 t b\nE 15 t",
         "u 1+1 o 0 flow_begin:7\nt 5+15 b 0 flow_end:7\nt 10+5 a 1 <b\nflow 7 o->b\n"},
        {"B 1 u o >7\nE 2 u\nB 10 t a\nE 8 t\nE 20 t <7",
         "u 1+1 o 0 flow_begin:7\nt 10+10 a 0 flow_end:7\nflow 7 o->a\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(slices_nest_by_containment)
{
    static const struct row rows[] = {
        {"X 1 9 t a\nX 2 3 t b\nX 3 1 t c\nX 6 2 t d",
         "t 1+9 a 0\nt 2+3 b 1 <a\nt 3+1 c 2 <b\nt 6+2 d 1 <a\n"},
        /* Sorted by start, the longest first, then as they came. */
        {"X 3 1 t c\nX 3 2 t b\nX 1 9 t a\nX 3 2 t d",
         "t 1+9 a 0\nt 3+2 b 1 <a\nt 3+2 d 2 <b\nt 3+1 c 3 <d\n"},
        /* Partial overlap makes no parent; what lies within both belongs to the later one. */
        {"X 0 10 t a\nX 5 10 t b\nX 6 2 t c\nX 12 2 t d",
         "t 0+10 a 0\nt 5+10 b 0\nt 6+2 c 1 <b\nt 12+2 d 1 <b\n"},
        {"X 0 20 t z\nX 0 10 t a\nX 5 10 t b", "t 0+20 z 0\nt 0+10 a 1 <z\nt 5+10 b 1 <z\n"},
        /* Intervals are open at their end; nothing lies within what has no duration. */
        {"X 0 5 t a\nX 5 5 t b\nI 5 t i\nI 10 t j",
         "t 0+5 a 0\nt 5+5 b 0\nt 5+i i 1 <b\nt 10+i j 0\n"},
        {"X 5 0 t a\nX 5 0 t b\nI 5 t i", "t 5+0 a 0\nt 5+0 b 0\nt 5+i i 0\n"},
        {"X 0 - t a\nX 5 5 t b\nX 5 - t c", "t 0+? a 0\nt 5+? c 1 <a\nt 5+5 b 2 <c\n"},
        {"X 5 -7 t a", "t 5+0 a 0\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(edges_and_slices_on_one_track_nest_by_containment)
{
    static const struct row rows[] = {
        {"B 0 t a\nX 2 3 t b\nE 10 t", "t 0+10 a 0\nt 2+3 b 1 <a\n"},
        {"X 2 3 t b\nB 0 t a\nE 10 t", "t 0+10 a 0\nt 2+3 b 1 <a\n"},
        {"B 4 t a\nE 10 t\nX 2 3 t b\nB 3 t c\nE 3 t", "t 2+3 b 0\nt 3+0 c 1 <b\nt 4+6 a 0\n"},
        {"B 0 t a @100\nX 2 3 t b\nE 10 t @140 k=1",
         "t 0+10 a 0 thread_time:100 thread_dur:40 k=1\nt 2+3 b 1 <a\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(arguments_of_begin_and_end_are_joined)
{
    static const struct row rows[] = {
        {"B 0 t a x=1\nE 1 t y=2.5", "t 0+1 a 0 x=1 y=2.5d\n"},
        {"B 0 t a\nE 1 t y='s'", "t 0+1 a 0 y='s'\n"},
        {"B 0 t a @5\nE 1 t @9 y=1", "t 0+1 a 0 thread_time:5 thread_dur:4 y=1\n"},
        {"B 0 t a\nE 1 t @9", "t 0+1 a 0 thread_time:9\n"},
        {"B 0 t a x=1 y=2\nE 1 t x=3", "t 0+1 a 0 x=3 y=2\n"},
        {"B 0 t -\nE 1 t x=3", "t 0+1 - 0 x=3\n"},
        {"B 0 t a #3 v=[1,2,3]\nE 1 t", "t 0+1 a 0 correlation:3 v=array:3 1 2 3\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(counters_keep_their_numbers)
{
    static const struct row rows[] = {
        {"C 5 c 1.5\nC 6 c 7\nC 5 d -3", "c 5 = 1.5d\nc 6 = 7\nd 5 = -3\n"},
        {"C 6 c 1\nC 5 c 2\nC 5 c 3", "c 5 = 2\nc 5 = 3\nc 6 = 1\n"},
        {"C 1 c 1\nC 2 c 9007199254740993\nC 3 c 18446744073709551615\nC 4 c 0.5\nC 5 c "
         "-9223372036854775808",
         "c 1 = 1\nc 2 = 9007199254740993\nc 3 = 18446744073709551615\nc 4 = 0.5d\nc 5 = "
         "-9223372036854775808\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(losses_are_sorted_by_time)
{
    static const struct row rows[] = {
        {"L 9 2 t ring 5\nL 3 0 u file 0", "loss u 3+0 0 file\nloss t 9+2 5 ring\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
    struct fixture f = load(rows[0].in);
    CHECK_INT_EQ(f.trace->first_ns, 3);
    CHECK_INT_EQ(f.trace->last_ns, 11);
    drop(&f);
}

TEST(flow_points_bind_to_the_innermost_slice)
{
    static const struct row rows[] = {
        /* At the start of a slice they become its argument. */
        {"X 0 10 t a\nX 20 5 u b\ns 0 t 7\nf 20 u 7",
         "t 0+10 a 0 flow_begin:7\nu 20+5 b 0 flow_end:7\nflow 7 a->b\n"},
        {"s 0 t 7\nf 20 u 7\nX 20 5 u b x=1\nX 0 10 t a", /* before their slices */
         "t 0+10 a 0 flow_begin:7\nu 20+5 b 0 x=1 flow_end:7\nflow 7 a->b\n"},
        {"B 0 t a\nE 10 t x=1\nX 20 5 u b\ns 0 t 7\nf 20 u 7",
         "t 0+10 a 0 flow_begin:7 x=1\nu 20+5 b 0 flow_end:7\nflow 7 a->b\n"},
        /* In its middle they stay points; one that starts there is preferred, then the innermost
         * one. */
        {"X 0 10 t a\nX 2 5 t b\nX 20 5 u c\ns 3 t 7\ns 8 t 8\nf 20 u 7\nf 24 u 8",
         "t 0+10 a 0\nt 2+5 b 1 <a\nu 20+5 c 0 flow_end:7\nflow 8 a->c\nflow 7 b->c\n"
         "point 7 flow_begin t 3 b\npoint 8 flow_begin t 8 a\npoint 8 flow_end u 24 c\n"},
        {"X 0 10 t a\nX 5 9 t b\nX 20 1 t c\ns 5 t 7\nf 20 t 7", /* overlapping */
         "t 0+10 a 0\nt 5+9 b 0 flow_begin:7\nt 20+1 c 0 flow_end:7\nflow 7 b->c\n"},
        {"X 0 10 t a\nX 5 0 t b\nX 20 1 t c\ns 5 t 7\nf 20 t 7",
         "t 0+10 a 0\nt 5+0 b 1 <a flow_begin:7\nt 20+1 c 0 flow_end:7\nflow 7 b->c\n"},
        /* At the end of a slice, when nothing else is open. */
        {"X 0 10 t a\nX 20 5 u b\ns 10 t 7\nf 20 u 7",
         "t 0+10 a 0\nu 20+5 b 0 flow_end:7\nflow 7 a->b\npoint 7 flow_begin t 10 a\n"},
        /* To the next one. */
        {"X 0 10 t a\nI 30 t i\nX 40 5 t b\ns 0 t 7\nF 30 t 7\nF 50 t 7",
         "t 0+10 a 0 flow_begin:7\nt 30+i i 0\nt 40+5 b 0 flow_end:7\nflow 7 a->b\npoint 7 "
         "flow_end t 50 -\n"},
        /* To none. */
        {"I 5 t i\ns 5 t 7\nf 9 u 7",
         "t 5+i i 0\npoint 7 flow_begin t 5 -\npoint 7 flow_end u 9 -\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
    struct fixture f = load(rows[TEST_COUNT(rows) - 1].in);
    CHECK_UINT_EQ(f.trace->unbound_flow_points, 2);
    CHECK_UINT_EQ(f.report.rows[0].count, 2);
    CHECK_STR_EQ(f.report.rows[0].what, "flow point outside of any slice");
    drop(&f);
}

/* Points that follow their slice at once are bound while loading, before it is known what else
 * begins there. */
TEST(flow_points_that_follow_their_slice)
{
    static const struct row rows[] = {
        {"X 0 9 t a x=1\ns 0 t 7\nX 20 5 u b x=2\nf 20 u 7",
         "t 0+9 a 0 x=1 flow_begin:7\nu 20+5 b 0 x=2 flow_end:7\nflow 7 a->b\n"},
        {"B 0 t a x=1\ns 0 t 7\nE 9 t y=2\nB 20 u b\nf 20 u 7\nE 25 u",
         "t 0+9 a 0 x=1 flow_begin:7 y=2\nu 20+5 b 0 flow_end:7\nflow 7 a->b\n"},
        /* A later one at the same time lies within, and without it. */
        {"X 0 9 t a x=1\ns 0 t 7\nX 0 5 t b x='text'\nX 20 5 u c\nf 20 u 7",
         "t 0+9 a 0 x=1\nt 0+5 b 1 <a x='text' flow_begin:7\nu 20+5 c 0 flow_end:7\nflow 7 b->c\n"},
        {"X 0 5 t a x='text'\ns 0 t 7\nX 0 9 t b\nX 20 5 u c\nf 20 u 7",
         "t 0+9 b 0\nt 0+5 a 1 <b x='text' flow_begin:7\nu 20+5 c 0 flow_end:7\nflow 7 a->c\n"},
        {"B 0 t a x='text'\ns 0 t 7\nB 0 t b\nE 5 t\nE 9 t y=2\nX 20 5 u c\nf 20 u 7",
         "t 0+9 a 0 x='text' y=2\nt 0+5 b 1 <a flow_begin:7\nu 20+5 c 0 flow_end:7\nflow 7 b->c\n"},
        {"X 0 9 t a\ns 0 t 7\nX 0 5 t b\nX 20 5 u c\nf 20 u 7",
         "t 0+9 a 0\nt 0+5 b 1 <a flow_begin:7\nu 20+5 c 0 flow_end:7\nflow 7 b->c\n"},
        /* The next one is the first that begins there. */
        {"X 0 1 t a >7\nX 20 5 u b x=1\nF 20 u 7\nX 20 9 u c",
         "t 0+1 a 0 flow_begin:7\nu 20+9 c 0 flow_end:7\nu 20+5 b 1 <c x=1\nflow 7 a->c\n"},
        {"X 0 1 t a >7\nX 20 5 u b x=1\nF 20 u 7\nX 20 4 u c",
         "t 0+1 a 0 flow_begin:7\nu 20+5 b 0 x=1 flow_end:7\nu 20+4 c 1 <b\nflow 7 a->b\n"},
        /* A slice with equal arguments is not meant. */
        {"X 0 1 t a x=1\nX 2 1 t b x=1\ns 2 t 7\nX 4 1 t c x=1",
         "t 0+1 a 0 x=1\nt 2+1 b 0 x=1 flow_begin:7\nt 4+1 c 0 x=1\n"},
        /* Several, also when the arguments of another slice came between. */
        {"X 0 9 t a x=1\ns 0 t 7\ns 0 t 8\nX 0 5 u b x=2\ns 0 t 9\ns 0 t 10\nf 0 u 7",
         "t 0+9 a 0 x=1 flow_begin:7 flow_begin:8 flow_begin:9 flow_begin:10\nu 0+5 b 0 x=2 "
         "flow_end:7\nflow 7 a->b\n"},
        {"X 0 9 t a\nX 0 5 u b x=2\ns 0 t 7\ns 0 t 8\nX 0 1 t c",
         "t 0+9 a 0\nt 0+1 c 1 <a flow_begin:7 flow_begin:8\nu 0+5 b 0 x=2\n"},
        /* Not to a slice of another time, and not to an instant. */
        {"X 0 9 t a x=1\ns 1 t 7\nI 20 t i x=1\nf 20 t 7",
         "t 0+9 a 0 x=1\nt 20+i i 0 x=1\npoint 7 flow_begin t 1 a\npoint 7 flow_end t 20 -\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(flows_connect_consecutive_carriers)
{
    static const struct row rows[] = {
        /* Passing carriers make a chain; an end closes it, and the next one starts anew. */
        {"X 1 1 t a ~7\nX 2 1 t b ~7\nX 3 1 t c <7\nX 4 1 t d ~7\nX 5 1 t e ~7",
         "t 1+1 a 0 flow:7\nt 2+1 b 0 flow:7\nt 3+1 c 0 flow_end:7\nt 4+1 d 0 flow:7\nt 5+1 e 0 "
         "flow:7\n"
         "flow 7 a->b\nflow 7 b->c\nflow 7 d->e\n"},
        {"X 1 1 t a ~7\nX 2 1 t b <7\nX 3 1 t c <7",
         "t 1+1 a 0 flow:7\nt 2+1 b 0 flow_end:7\nt 3+1 c 0 flow_end:7\nflow 7 a->b\n"},
        /* A flow that was begun can end several times, each time coming from where it passed
         * last. */
        {"X 1 1 t a >7\nX 2 1 t b <7\nX 3 1 t c <7",
         "t 1+1 a 0 flow_begin:7\nt 2+1 b 0 flow_end:7\nt 3+1 c 0 flow_end:7\nflow 7 a->b\nflow 7 "
         "a->c\n"},
        {"X 1 1 t a >7\nX 2 1 t b ~7\nX 3 1 t c <7",
         "t 1+1 a 0 flow_begin:7\nt 2+1 b 0 flow:7\nt 3+1 c 0 flow_end:7\nflow 7 a->b\nflow 7 "
         "b->c\n"},
        /* A beginning starts anew. */
        {"X 1 1 t a >7\nX 2 1 t b >7\nX 3 1 t c <7",
         "t 1+1 a 0 flow_begin:7\nt 2+1 b 0 flow_begin:7\nt 3+1 c 0 flow_end:7\nflow 7 b->c\n"},
        {"X 1 1 t a <7\nX 2 1 t b >7", "t 1+1 a 0 flow_end:7\nt 2+1 b 0 flow_begin:7\n"},
        /* Arrows point from the slice that begins first; carriers count at their own time. */
        {"X 2 20 u b\nX 5 20 t a\ns 10 t 7\nf 12 u 7",
         "u 2+20 b 0\nt 5+20 a 0\nflow 7 b->a\npoint 7 flow_begin t 10 a\npoint 7 flow_end u 12 "
         "b\n"},
        {"B 1 t a\nX 3 1 u b ~7\nE 9 t ~7\nX 10 1 u c ~7",
         "t 1+8 a 0 flow:7\nu 3+1 b 0 flow:7\nu 10+1 c 0 flow:7\nflow 7 a->b\nflow 7 a->c\n"},
        /* Several numbers on one slice. */
        {"X 1 1 t a >7 >8\nX 2 1 t b <7\nX 3 1 t c <8",
         "t 1+1 a 0 flow_begin:7 flow_begin:8\nt 2+1 b 0 flow_end:7\nt 3+1 c 0 flow_end:8\nflow 7 "
         "a->b\nflow 8 a->c\n"},
        {"I 1 t a >7\nI 2 t b <7", "t 1+i a 0 flow_begin:7\nt 2+i b 0 flow_end:7\nflow 7 a->b\n"},
    };
    check_rows(rows, TEST_COUNT(rows));
}

TEST(flows_are_found_from_both_ends)
{
    struct fixture f = load("X 1 1 t a >7 >8\nX 2 1 t b <7\nX 3 1 t c <8 <7");
    uint64_t first;
    CHECK_UINT_EQ(sv_trace_flows_out(f.trace, 0, &first), 3);
    CHECK_UINT_EQ(first, 0);
    CHECK_UINT_EQ(sv_trace_flows_out(f.trace, 1, &first), 0);
    CHECK_UINT_EQ(sv_trace_flows_in(f.trace, 0, &first), 0);
    CHECK_UINT_EQ(sv_trace_flows_in(f.trace, 1, &first), 1);
    CHECK_UINT_EQ(f.trace->flows.to[f.trace->flows.by_to[first]], 1);
    CHECK_UINT_EQ(sv_trace_flows_in(f.trace, 2, &first), 2);
    CHECK_UINT_EQ(f.trace->flows.id[f.trace->flows.by_to[first]], 7);
    drop(&f);
}

TEST(what_is_wrong_is_counted_and_reported)
{
    struct fixture f = load("E 1 t\nB 2 t a\nX 1 -5 u b\nE 3 v\nE 2 v");
    CHECK_UINT_EQ(f.trace->unmatched_ends, 3);
    CHECK_UINT_EQ(f.trace->unfinished, 1);
    REQUIRE(f.report.n == 3);
    CHECK_STR_EQ(f.report.rows[0].what, "end without begin");
    CHECK_UINT_EQ(f.report.rows[0].count, 3);
    CHECK_STR_EQ(f.report.rows[1].what, "begin without end");
    CHECK_UINT_EQ(f.report.rows[1].count, 1);
    CHECK_STR_EQ(f.report.rows[2].what, "negative duration");
    drop(&f);
}

TEST(tracks_know_their_rows)
{
    struct fixture f = load("X 1 9 t a\nX 2 9 t b\nB 1 u c\nB 2 u d\nE 3 u\nC 1 k 5");
    sv_track t = sv_dict_child(f.dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(f.dict, "t"));
    sv_track u = sv_dict_child(f.dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(f.dict, "u"));
    sv_track k = sv_dict_child(f.dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(f.dict, "k"));
    const struct sv_trace_track *tracks = f.trace->tracks;
    CHECK_UINT_EQ(tracks[t].end - tracks[t].first, 2);
    CHECK(tracks[t].has_overlap && !tracks[t].has_edges);
    CHECK(!tracks[u].has_overlap && tracks[u].has_edges);
    CHECK_UINT_EQ(tracks[u].depth_max, 1);
    CHECK_UINT_EQ(tracks[k].counter_end - tracks[k].counter_first, 1);
    CHECK(!sv_trace_has_track(f.trace, sv_dict_child(f.dict, 0, SV_TRACK_CUSTOM, 0)));
    drop(&f);
}

/* Two blocks of rows: a slice of 100 begins the first, the rest is short. */
TEST(blocks_without_long_slices_are_passed_over)
{
    char text[4096] = "X 0 100 t long";
    size_t n = strlen(text);
    for (unsigned i = 1; i < 2 * SV_TRACE_BLOCK_ROWS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "\nX %u 1 t a", i);
    struct fixture f = load(text);
    CHECK_UINT_EQ(f.trace->slices.n, 2 * SV_TRACE_BLOCK_ROWS);
    CHECK_UINT_EQ(sv_trace_may_last(f.trace, 0, f.trace->slices.n, 100), 0);
    CHECK_UINT_EQ(sv_trace_may_last(f.trace, 0, f.trace->slices.n, 101), f.trace->slices.n);
    CHECK_UINT_EQ(sv_trace_may_last(f.trace, 0, 5, 101), 5);
    CHECK_UINT_EQ(sv_trace_may_last(f.trace, 1, f.trace->slices.n, 100), 1); /* within a block */
    CHECK_UINT_EQ(sv_trace_may_last(f.trace, SV_TRACE_BLOCK_ROWS, f.trace->slices.n, 100),
                  f.trace->slices.n);
    drop(&f);
}

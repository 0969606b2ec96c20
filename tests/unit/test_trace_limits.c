/* The store at its limits: what it may cost, the memory limit, hostile shapes. */
#include "store/trace.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct run {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_trace *trace;
    struct sv_sink *sink;
    struct sv_event events[SV_BATCH];
    size_t n;
    int code;
    struct sv_err err;
};

static struct run *open_run(size_t limit)
{
    struct run *r = calloc(1, sizeof *r);
    REQUIRE(r);
    r->dict = sv_dict_new();
    sv_report_init(&r->report);
    for (int64_t tid = 0; tid < 8; tid++)
        sv_dict_thread(r->dict, 0, 1, tid); /* tracks 1, 3, 4 … 9; 2 is the process */
    r->trace = sv_trace_new(r->dict, &r->report, limit);
    r->sink = sv_trace_sink(r->trace);
    return r;
}

static void flush(struct run *r)
{
    if (r->code == 0 && r->n)
        r->code = r->sink->write(r->sink, r->events, r->n, &r->err);
    r->n = 0;
}

static void put(struct run *r, unsigned kind, sv_track track, int64_t ts, int64_t dur)
{
    r->events[r->n++] =
        (struct sv_event){.ts_ns = ts, .dur_ns = dur, .track = track, .kind = (uint8_t)kind};
    if (r->n == SV_BATCH)
        flush(r);
}

static void put_flow(struct run *r, sv_track track, int64_t ts, const struct sv_arg *arg,
                     unsigned flags)
{
    r->events[r->n++] = (struct sv_event){.ts_ns = ts,
                                          .track = track,
                                          .kind = SV_FLOW,
                                          .flags = (uint8_t)flags,
                                          .n_args = 1,
                                          .args = arg};
    if (r->n == SV_BATCH)
        flush(r);
}

static struct sv_trace *close_run(struct run *r)
{
    struct sv_sink *sink = r->sink;
    flush(r);
    CHECK_INT_EQ(sink->close(sink, r->code < 0, &r->err), 0);
    return r->trace;
}

static void free_run(struct run *r)
{
    sv_trace_free(r->trace);
    sv_dict_free(r->dict);
    sv_report_fini(&r->report);
    free(r);
}

static size_t peak_bytes(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss * 1024;
}

TEST(a_slice_costs_what_was_promised)
{
    enum { N = 4000000 };
    size_t before = peak_bytes();
    struct run *r = open_run(0);
    for (int64_t i = 0; i < N; i++) {
        put(r, SV_BEGIN, 3 + (sv_track)(i % 5), i * 10, 0);
        put(r, SV_END, 3 + (sv_track)(i % 5), i * 10 + 5, 0);
    }
    struct sv_trace *t = close_run(r);
    CHECK_INT_EQ(r->code, 0);
    CHECK_UINT_EQ(t->slices.n, N);
    CHECK(sv_trace_bytes(t) <= (size_t)N * SV_TRACE_SLICE_BYTES);
    size_t slack = (size_t)24 << 20; /* large pages that are not full */
    CHECK(TEST_HAS_SANITIZER || peak_bytes() - before <= (size_t)N * SV_TRACE_PEAK_BYTES + slack);
    free_run(r);
}

TEST(past_the_memory_limit_writing_is_refused_with_advice)
{
    static const size_t limits[] = {(size_t)1 << 20, (size_t)16 << 20, (size_t)256 << 20,
                                    (size_t)256 << 20};
    for (size_t i = 0; i < TEST_COUNT(limits); i++) {
        CONTEXT("limit %zu", limits[i]);
        size_t before = peak_bytes();
        struct run *r = open_run(limits[i]);
        for (int64_t n = 0; r->code == 0; n++) {
            REQUIRE(n < 10000000);
            put(r, SV_SLICE, 3, i % 2 ? n : -n, 5); /* backwards: must be sorted, too */
        }
        CHECK_INT_EQ(r->code, SV_ENOMEM);
        CHECK_INT_EQ(r->err.code, SV_ENOMEM);
        CHECK(strstr(r->err.msg, "--memory-limit") && strstr(r->err.msg, "stave cut"));
        sv_err_clear(&r->err);
        struct sv_trace *t = close_run(r); /* what came before counts, within the limit */
        CHECK(t->slices.n > limits[i] / 100);
        CHECK(sv_trace_bytes(t) + sv_dict_bytes(r->dict) <= limits[i]);
        size_t slack = (size_t)20 << 20; /* large pages that are not full */
        CHECK(TEST_HAS_SANITIZER || peak_bytes() - before <= limits[i] + slack);
        free_run(r);
    }
}

TEST(arguments_count_towards_the_limit)
{
    struct run *r = open_run((size_t)8 << 20);
    char text[100] = {0};
    struct sv_arg a = {.key = 1, .type = SV_ARG_TEXT, .size = sizeof text, .text = text};
    struct sv_event e = {.dur_ns = 1, .track = 1, .kind = SV_SLICE, .args = &a, .n_args = 1};
    int code = 0;
    while (code == 0 && e.ts_ns < 100000) {
        memcpy(text, &e.ts_ns, sizeof e.ts_ns);
        code = r->sink->write(r->sink, &e, 1, &r->err);
        e.ts_ns++;
    }
    CHECK_INT_EQ(code, SV_ENOMEM);
    close_run(r);
    CHECK(r->trace->slices.n > 20000);
    free_run(r);
}

/* Deeper than a row can say: still every slice with its duration, and the same trace again from its
 * source. */
TEST(very_deep_nesting_is_kept)
{
    enum { DEPTH = 70000 };
    struct run *r = open_run(0);
    for (int64_t i = 0; i < DEPTH; i++)
        put(r, SV_BEGIN, 1, i, 0);
    for (int64_t i = 0; i < DEPTH; i++)
        put(r, SV_END, 1, DEPTH + i, 0);
    struct sv_trace *t = close_run(r);
    REQUIRE(t->slices.n == DEPTH);
    CHECK(!t->tracks[1].has_edges && !t->tracks[1].has_overlap);
    for (uint32_t row = 0; row < DEPTH; row++) {
        REQUIRE(t->slices.dur_ns[row] == 2 * DEPTH - 1 - 2 * (int64_t)row);
        REQUIRE(t->slices.parent[row] == (row ? row - 1 : SV_NO_ROW));
        REQUIRE(t->slices.depth[row] == (row < UINT16_MAX ? row : UINT16_MAX));
    }
    struct sv_trace *again = sv_trace_new(r->dict, NULL, 0);
    CHECK_INT_EQ(sv_pump(sv_trace_source(t, NULL), sv_trace_sink(again), NULL, &r->err), 0);
    CHECK(memcmp(t->slices.parent, again->slices.parent, DEPTH * sizeof *t->slices.parent) == 0);
    sv_trace_free(again);
    free_run(r);
}

TEST(times_at_the_ends_of_the_range_do_not_overflow)
{
    struct run *r = open_run(0);
    put(r, SV_BEGIN, 1, INT64_MIN, 0);
    put(r, SV_END, 1, -1, 0);
    put(r, SV_SLICE, 3, INT64_MAX, 0);
    put(r, SV_SLICE, 3, INT64_MAX - 2, 2);
    put(r, SV_SLICE, 3, INT64_MIN, INT64_MAX);
    put(r, SV_SLICE, 3, INT64_MIN, INT64_MIN);
    put(r, SV_INSTANT, 3, INT64_MAX, 0);
    put(r, SV_LOSS, 3, INT64_MAX - 9, 9);
    struct sv_arg flow = {.type = SV_ARG_FLOW, .u = 1};
    put_flow(r, 3, INT64_MAX, &flow, 0);
    put_flow(r, 3, INT64_MIN, &flow, 0);
    put_flow(r, 3, INT64_MAX, &flow, SV_BIND_NEXT);
    struct sv_trace *t = close_run(r);
    CHECK_UINT_EQ(t->slices.n, 6);
    CHECK_INT_EQ(t->slices.dur_ns[0], INT64_MAX);
    CHECK_INT_EQ(t->first_ns, INT64_MIN);
    CHECK_INT_EQ(t->last_ns, INT64_MAX);
    struct sv_window w = sv_trace_window(t, 3, INT64_MIN, INT64_MAX);
    uint32_t row, n = 0;
    while (sv_window_next(&w, &row))
        n++;
    CHECK_UINT_EQ(n, 3);
    free_run(r);
}

TEST(what_lasts_longer_than_64_bits_is_refused)
{
    static const struct {
        unsigned kind;
        int64_t ts_ns, dur_ns; /* SV_BEGIN: its end is there */
        bool is_late;          /* in the file before its begin */
    } rows[] = {
        {SV_BEGIN, INT64_MIN, 0, false},
        {SV_BEGIN, INT64_MIN, 0, true},
        {SV_SLICE, INT64_MAX, 1, false},
        {SV_LOSS, INT64_MAX - 3, INT64_MAX, false},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct run *r = open_run(0);
        struct sv_sink *sink = r->sink;
        if (rows[i].is_late)
            put(r, SV_END, 1, 0, 0);
        put(r, rows[i].kind, 1, rows[i].ts_ns, rows[i].kind == SV_BEGIN ? 0 : rows[i].dur_ns);
        if (rows[i].kind == SV_BEGIN && !rows[i].is_late)
            put(r, SV_END, 1, 0, 0);
        flush(r);
        CHECK_INT_EQ(sink->close(sink, r->code < 0, &r->err), SV_ELIMIT);
        CHECK(strstr(r->err.msg, "64 bits") != NULL);
        free_run(r);
    }
}

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Everything at one time, everything overlapping, everything nested: none of it may be
 * quadratic. */
TEST(hostile_shapes_take_no_more_than_linear_time)
{
    enum { N = 300000 };
    struct sv_arg flow = {.type = SV_ARG_FLOW, .u = 1};
    double start = cpu_seconds();
    struct run *r = open_run(0);
    for (int64_t i = 0; i < N; i++) {
        put(r, SV_INSTANT, 1, 5, 0); /* instants that points must not walk over */
        put_flow(r, 1, 5, &flow, 0);
        put_flow(r, 1, 5, &flow, SV_BIND_NEXT);
        put(r, SV_SLICE, 3, i, N); /* each overlaps all others */
        put_flow(r, 3, i + N - 1, &flow, 0);
        put(r, SV_SLICE, 4, i, 2 * (N - i)); /* each within the one before, ends all different */
        put(r, SV_SLICE, 5, i, 2 * N - i);   /* the same, ends all equal */
        put_flow(r, 5, 2 * N, &flow, 0);
        put(r, SV_END, 6, N - i, 0); /* backwards ends, then begins */
        put(r, SV_SLICE, 7, 5, 0);   /* all at one time, without duration */
        put_flow(r, 7, 5, &flow, 0);
    }
    for (int64_t i = 0; i < N; i++)
        put(r, SV_BEGIN, 6, -i, 0);
    struct sv_trace *t = close_run(r);
    CHECK_UINT_EQ(t->slices.n, 6 * N);
    CHECK_UINT_EQ(t->unmatched_ends, 0);
    uint32_t row, n = 0;
    for (int64_t i = 0; i < 1000; i++) {
        struct sv_window w = sv_trace_window(t, 4, 2 * N - 2 * i, 2 * N);
        for (; sv_window_next(&w, &row); n++)
            ;
    }
    CHECK(n > 0);
    CHECK(cpu_seconds() - start < (TEST_HAS_SANITIZER ? 60 : 6));
    free_run(r);
}

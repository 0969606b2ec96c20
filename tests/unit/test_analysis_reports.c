/* Diff, steps and the critical path on traces whose answers are known. */
#include "stats/diff.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "why/critical_path.h"
#include "why/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    int64_t tid, ts, dur; /* tid 100 and more: a device's, in a process of its own */
    const char *name;
    uint64_t flow;
    const char *cat;
    uint64_t correlation;
};

struct made {
    struct sv_dict *d;
    struct sv_trace *t;
};

static void begin(struct made *m)
{
    m->d = sv_dict_new();
    m->t = sv_trace_new(m->d, NULL, 0);
}

static void add(struct made *m, struct piece p)
{
    struct sv_arg arg = {.type = SV_ARG_FLOW, .u = p.flow};
    if (p.correlation)
        arg = (struct sv_arg){
            .key = sv_dict_cstr(m->d, "correlation"), .type = SV_ARG_INT, .u = p.correlation};
    struct sv_event e = {.ts_ns = p.ts,
                         .dur_ns = p.dur,
                         .track = sv_dict_thread(m->d, 0, p.tid < 100 ? 1 : 0, p.tid),
                         .name = sv_dict_cstr(m->d, p.name),
                         .cat = p.cat ? sv_dict_cstr(m->d, p.cat) : 0,
                         .kind = p.dur ? SV_SLICE : SV_INSTANT,
                         .n_args = p.flow || p.correlation ? 1 : 0,
                         .args = &arg};
    struct sv_sink *s = sv_trace_sink(m->t);
    struct sv_err err;
    sv_err_clear(&err);
    REQUIRE(s->write(s, &e, 1, &err) == 0);
}

static void finish(struct made *m)
{
    struct sv_err err;
    sv_err_clear(&err);
    REQUIRE(sv_trace_finish(m->t, &err) == 0);
}

static void fini(struct made *m)
{
    sv_trace_free(m->t);
    sv_dict_free(m->d);
}

/* ---- the rank test ---- */

TEST(the_rank_test_knows_equal_from_different)
{
    int64_t a[200], b[200], c[200];
    struct rng r = {5};
    for (size_t i = 0; i < 200; i++) {
        a[i] = 1000 + (int64_t)rng_below(&r, 100);
        b[i] = 1000 + (int64_t)rng_below(&r, 100);
        c[i] = 1050 + (int64_t)rng_below(&r, 100);
    }
    CHECK(sv_rank_test(a, 200, b, 200) > 0.01);
    CHECK(sv_rank_test(a, 200, c, 200) < 1e-6);
    CHECK_DOUBLE_EQ(sv_rank_test(a, 2, b, 200), 1.0);
    for (size_t i = 0; i < 200; i++)
        a[i] = b[i] = 7;
    CHECK_DOUBLE_EQ(sv_rank_test(a, 200, b, 200), 1.0);
}

/* 1, 2, 3 against 4, 5, 6: U = 0, mean 4.5, deviation sqrt(5.25), continuity correction: z = 4 /
 * 2.2913, p = 0.0809. */
TEST(the_rank_test_agrees_with_a_computed_value)
{
    int64_t a[] = {1, 2, 3}, b[] = {4, 5, 6};
    double p = sv_rank_test(a, 3, b, 3);
    CHECK(p > 0.0808 && p < 0.0810);
}

/* ---- diff ---- */

static const struct sv_diff_row *row_named(const struct sv_diff *d, const struct made *m,
                                           const char *name)
{
    for (size_t i = 0; i < d->n; i++) {
        unsigned k = d->rows[i].side[0].count ? 0 : 1;
        const struct sv_trace *t = m[k].t;
        if (strcmp(sv_dict_text(t->dict, t->slices.name[d->rows[i].side[k].row]).bytes, name) == 0)
            return &d->rows[i];
    }
    return NULL;
}

TEST(a_constructed_pair_differs_as_constructed)
{
    struct made m[2];
    for (unsigned k = 0; k < 2; k++) {
        begin(&m[k]);
        for (int64_t i = 0; i < 50; i++) {
            int64_t at = i * 1000, tid = 5 + k; /* the numbers of threads differ */
            add(&m[k], (struct piece){tid, at, 900, "loop", .flow = 0});
            add(&m[k], (struct piece){tid, at + 10, 100 + i % 3, "same", .flow = 0});
            add(&m[k],
                (struct piece){tid, at + 200, k ? 300 + i % 5 : 200 + i % 5, "slower", .flow = 0});
            add(&m[k], (struct piece){tid, at + 600, 50, k ? "new" : "old", .flow = 0});
        }
        finish(&m[k]);
    }
    struct sv_diff d;
    sv_diff_make(&d, m[0].t, m[1].t, &(struct sv_diff_options){.threshold = 0.05, .alpha = 0.01});
    static const struct {
        const char *name;
        enum sv_diff_state state;
    } rows[] = {{"loop", SV_DIFF_SAME},
                {"same", SV_DIFF_SAME},
                {"slower", SV_DIFF_CHANGED},
                {"new", SV_DIFF_ADDED},
                {"old", SV_DIFF_REMOVED}};
    CHECK_UINT_EQ(d.n, 5);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        const struct sv_diff_row *r = row_named(&d, m, rows[i].name);
        CONTEXT("%s", rows[i].name);
        if (CHECK(r != NULL))
            CHECK_INT_EQ(r->state, rows[i].state);
    }
    const struct sv_diff_row *r = row_named(&d, m, "slower");
    if (r) {
        CHECK(r->change > 0.49 && r->change < 0.51 && r->p < 1e-6);
        CHECK_INT_EQ(r->side[1].self_ns, r->side[1].total_ns);
    }
    r = row_named(&d, m, "loop");
    if (r)
        CHECK_INT_EQ(r->side[0].total_ns - r->side[0].self_ns,
                     50 * 50 + row_named(&d, m, "same")->side[0].total_ns +
                         row_named(&d, m, "slower")->side[0].total_ns);
    sv_diff_fini(&d);
    fini(&m[0]);
    fini(&m[1]);
}

TEST(traces_with_steps_are_compared_per_step)
{
    struct made m[2];
    for (unsigned k = 0; k < 2; k++) {
        begin(&m[k]);
        for (int64_t i = 0; i < (k ? 20 : 10); i++) {
            char name[40];
            snprintf(name, sizeof name, "ProfilerStep#%d", (int)i);
            add(&m[k], (struct piece){1, i * 1000, 900, name, .flow = 0});
            add(&m[k], (struct piece){1, i * 1000 + 10, 100, "work", .flow = 0});
        }
        finish(&m[k]);
    }
    struct sv_diff d;
    sv_diff_make(&d, m[0].t, m[1].t, &(struct sv_diff_options){.threshold = 0.05, .alpha = 0.01});
    CHECK_UINT_EQ(d.steps[0], 10);
    CHECK_UINT_EQ(d.steps[1], 20);
    CHECK_UINT_EQ(d.n, 2);
    for (size_t i = 0; i < d.n; i++)
        CHECK_INT_EQ(d.rows[i].state, SV_DIFF_SAME);
    sv_diff_fini(&d);
    fini(&m[0]);
    fini(&m[1]);
}

/* ---- steps ---- */

TEST(a_step_is_divided_exactly)
{
    static const struct piece pieces[] = {
        {1, 0, 1000, "ProfilerStep#3", .flow = 0},   {1, 0, 100, "DataLoader.__next__", .flow = 0},
        {1, 100, 200, "Module forward", .flow = 0},  {1, 120, 50, "aten::mm", .flow = 0},
        {1, 180, 40, "aten::copy_", .flow = 0},      {1, 400, 300, "loss.backward", .flow = 0},
        {1, 450, 100, "nccl:all_reduce", .flow = 0}, {1, 800, 50, "Optimizer.step#Adam", .flow = 0},
        {1, 900, 30, "something", .flow = 0},
    };
    static const int64_t expected[SV_N_WORK] = {
        [SV_WORK_OTHER] = 30,    [SV_WORK_DATA] = 100,     [SV_WORK_COPY] = 40,
        [SV_WORK_FORWARD] = 160, [SV_WORK_BACKWARD] = 200, [SV_WORK_OPTIMIZER] = 50,
        [SV_WORK_COMM] = 100,    [SV_WORK_UNTRACED] = 320};
    struct made m;
    struct sv_steps s;
    begin(&m);
    for (size_t i = 0; i < TEST_COUNT(pieces); i++)
        add(&m, pieces[i]);
    finish(&m);
    sv_steps_find(&s, m.t, NULL);
    REQUIRE(s.n == 1);
    sv_steps_divide(&s, m.t);
    CHECK_INT_EQ(s.steps[0].number, 3);
    int64_t sum = 0;
    for (size_t i = 0; i < SV_N_WORK; i++) {
        CONTEXT("%s", sv_work_names[i]);
        CHECK_INT_EQ(s.steps[0].work_ns[i], expected[i]);
        sum += s.steps[0].work_ns[i];
    }
    CHECK_INT_EQ(sum, 1000);
    sv_steps_fini(&s);
    fini(&m);
}

/* The step's thread launches and waits, backward runs on thread 2, a loader on thread 3, the device
 * on 107 (compute), 108 (communication). By time: 0–100 forward on the thread, 100–300 backward
 * elsewhere, 300–400 the device finishes a kernel of the backward pass while the thread waits,
 * 400–450 a collective alone, 450–500 a copy, then nothing: the loader on thread 3 is not why the
 * thread waits. */
TEST(work_on_other_threads_and_devices_counts)
{
    static const struct piece pieces[] = {
        {1, 0, 1000, "ProfilerStep#1", .cat = "user_annotation"},
        {1, 0, 100, "aten::linear", .cat = "cpu_op"},
        {1, 50, 10, "cudaLaunchKernel", .cat = "cuda_runtime", .correlation = 5},
        {2, 100, 200, "autograd::engine::evaluate_function: LinearBackward", .cat = "cpu_op"},
        {2, 150, 10, "cudaLaunchKernel", .cat = "cuda_runtime", .correlation = 6},
        {2, 170, 10, "ncclAllReduce", .cat = "cpu_op", .flow = 9},
        {1, 290, 710, "cudaDeviceSynchronize", .cat = "cuda_runtime"},
        {3, 0, 600, "DataLoader worker", .cat = "cpu_op"},
        {107, 60, 80, "gemm", .cat = "kernel", .correlation = 5},
        {107, 200, 200, "gemm", .cat = "kernel", .correlation = 6},
        {108, 350, 100, "ncclKernel", .cat = "kernel", .flow = 9},
        {109, 440, 60, "Memcpy DtoH", .cat = "gpu_memcpy"},
        {107, 2000, 10, "gemm", .cat = "kernel"},
    };
    static const int64_t expected[SV_N_WORK] = {[SV_WORK_FORWARD] = 100,
                                                [SV_WORK_BACKWARD] = 290,
                                                [SV_WORK_COMM] = 60,
                                                [SV_WORK_COPY] = 50,
                                                [SV_WORK_IDLE] = 500};
    struct made m;
    struct sv_steps s;
    begin(&m);
    for (size_t i = 0; i < TEST_COUNT(pieces); i++)
        add(&m, pieces[i]);
    finish(&m);
    sv_steps_find(&s, m.t, NULL);
    REQUIRE(s.n == 1);
    sv_steps_divide(&s, m.t);
    for (size_t i = 0; i < SV_N_WORK; i++) {
        CONTEXT("%s", sv_work_names[i]);
        CHECK_INT_EQ(s.steps[0].work_ns[i], expected[i]);
    }
    CHECK_INT_EQ(s.steps[0].device_ns[SV_DEVICE_KERNEL], 280);
    CHECK_INT_EQ(s.steps[0].device_ns[SV_DEVICE_COMM], 100);
    CHECK_INT_EQ(s.steps[0].device_ns[SV_DEVICE_COPY], 60);
    sv_steps_fini(&s);
    fini(&m);
}

/* Slices that overlap in part on one track are swept, not subtracted: nothing is counted twice. */
TEST(random_steps_add_up)
{
    static const char *const names[] = {
        "aten::mm", "backward", "nccl", "memcpy", "DataLoader", "cudaDeviceSynchronize", "Adam"};
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct made m;
        struct sv_steps s;
        unsigned x = seed;
        begin(&m);
        for (int i = 0; i < 8; i++)
            add(&m, (struct piece){1, i * 1000, 900, "step", .flow = 0});
        for (int i = 0; i < 200; i++) {
            x = x * 1103515245u + 12345u;
            add(&m, (struct piece){(int64_t)(x >> 8 & 3) + 1 + (x >> 10 & 1) * 100,
                                   (int64_t)(x >> 11 & 8191), (int64_t)(x >> 24) + 1,
                                   names[(x >> 5) % TEST_COUNT(names)],
                                   .cat = x >> 10 & 1 ? "kernel" : NULL});
        }
        finish(&m);
        sv_steps_find(&s, m.t, "step");
        sv_steps_divide(&s, m.t);
        for (size_t i = 0; i < s.n; i++) {
            int64_t sum = 0;
            for (size_t k = 0; k < SV_N_WORK; k++) {
                CHECK(s.steps[i].work_ns[k] >= 0);
                sum += s.steps[i].work_ns[k];
            }
            CONTEXT("seed %u, step %zu", seed, i);
            CHECK_INT_EQ(sum, s.steps[i].dur_ns);
        }
        sv_steps_fini(&s);
        fini(&m);
    }
}

TEST(pairs_of_mllog_and_stragglers_are_seen)
{
    struct made m;
    struct sv_steps s;
    begin(&m);
    for (int64_t i = 0; i < 4; i++) {
        for (int64_t rank = 1; rank <= 3; rank++) {
            bool is_slow = i == 2 && rank == 2;
            add(&m, (struct piece){rank, i * 1000, 0, "block_start", .flow = 0});
            add(&m,
                (struct piece){rank, i * 1000 + (is_slow ? 900 : 500), 0, "block_stop", .flow = 0});
        }
    }
    finish(&m);
    sv_steps_find(&s, m.t, NULL);
    REQUIRE(s.n == 12);
    CHECK_STR_EQ(s.marker, "*block_start");
    for (size_t i = 0; i < s.n; i++) {
        bool is_slow = s.steps[i].number == 2 && i / 4 == 1;
        CHECK_INT_EQ(s.steps[i].dur_ns, is_slow ? 900 : 500);
        CHECK(s.steps[i].is_straggler == is_slow);
        CHECK(!s.steps[i].is_slow_first);
    }
    sv_steps_fini(&s);
    fini(&m);
}

TEST(instants_mark_steps_and_outliers_are_seen)
{
    struct made m;
    struct sv_steps s;
    int64_t at = 0;
    begin(&m);
    for (int i = 0; i < 20; i++) {
        char name[40];
        snprintf(name, sizeof name, "step %d", i);
        add(&m, (struct piece){1, at, 0, name, .flow = 0});
        at += i == 7 ? 5000 : 1000 + i;
    }
    finish(&m);
    sv_steps_find(&s, m.t, NULL);
    CHECK_UINT_EQ(s.n, 19);
    for (size_t i = 0; i < s.n; i++)
        CHECK(s.steps[i].is_outlier == (s.steps[i].number == 7));
    sv_steps_fini(&s);
    sv_steps_find(&s, m.t, "nothing*");
    CHECK_UINT_EQ(s.n, 0);
    sv_steps_fini(&s);
    fini(&m);
}

/* ---- the critical path ---- */

struct part {
    int64_t ts, dur;
    enum sv_segment_kind kind;
    const char *name;
};

/* The path to the slice that begins at `to`. */
static void check_path(const struct piece *pieces, size_t n, int64_t to,
                       const struct part *expected, size_t n_expected)
{
    struct made m;
    struct sv_path p;
    uint32_t last = SV_NO_ROW;
    begin(&m);
    for (size_t i = 0; i < n; i++)
        add(&m, pieces[i]);
    finish(&m);
    for (uint32_t row = 0; row < m.t->slices.n; row++)
        if (m.t->slices.ts_ns[row] == to)
            last = row;
    REQUIRE(last != SV_NO_ROW);
    sv_critical_path(&p, m.t, SV_NO_ROW, m.t->first_ns, last);
    CHECK_UINT_EQ(p.n, n_expected);
    for (size_t i = 0; i < p.n && i < n_expected; i++) {
        CONTEXT("segment %zu", i);
        CHECK_INT_EQ(p.segments[i].ts_ns, expected[i].ts);
        CHECK_INT_EQ(p.segments[i].dur_ns, expected[i].dur);
        CHECK_INT_EQ(p.segments[i].kind, expected[i].kind);
        if (expected[i].name)
            CHECK_STR_EQ(sv_dict_text(m.d, m.t->slices.name[p.segments[i].row]).bytes,
                         expected[i].name);
    }
    sv_path_fini(&p);
    fini(&m);
}

/* prepare on 1 sends flow 9 to job on 2; job ends, then done runs on 2; 2 idles in between. */
TEST(a_path_follows_flows_and_adds_up)
{
    static const struct piece pieces[] = {{1, 0, 100, "prepare", .flow = 0},
                                          {1, 40, 20, "send", .flow = 9},
                                          {2, 80, 100, "job", .flow = 9},
                                          {2, 200, 50, "done", .flow = 0},
                                          {1, 120, 60, "other", .flow = 0}};
    static const struct part expected[] = {
        {0, 40, SV_SEGMENT_RUN, "prepare"}, {40, 20, SV_SEGMENT_RUN, "send"},
        {60, 20, SV_SEGMENT_WAIT, "job"},   {80, 100, SV_SEGMENT_RUN, "job"},
        {180, 20, SV_SEGMENT_IDLE, NULL},   {200, 50, SV_SEGMENT_RUN, "done"}};
    check_path(pieces, TEST_COUNT(pieces), 200, expected, TEST_COUNT(expected));
}

/* A step on 2 waits for what 1 loads, and uses it: it is the loader that made it late. */
TEST(a_path_leaves_a_step_for_what_it_waited_for)
{
    static const struct piece pieces[] = {{1, 0, 60, "load", .flow = 9},
                                          {2, 10, 100, "step", .flow = 0},
                                          {2, 20, 50, "wait", .flow = 0},
                                          {2, 70, 30, "use", .flow = 9}};
    static const struct part expected[] = {{0, 60, SV_SEGMENT_RUN, "load"},
                                           {60, 10, SV_SEGMENT_WAIT, "use"},
                                           {70, 30, SV_SEGMENT_RUN, "use"}};
    check_path(pieces, TEST_COUNT(pieces), 70, expected, TEST_COUNT(expected));
}

/* What was loaded before the step began, or before it did something else, delayed nobody. */
TEST(a_path_stays_in_a_step_whose_data_was_there)
{
    static const struct piece pieces[] = {{1, 0, 5, "load", .flow = 9},
                                          {2, 10, 100, "step", .flow = 0},
                                          {2, 20, 50, "wait", .flow = 0},
                                          {2, 70, 30, "use", .flow = 9}};
    static const struct part expected[] = {{0, 10, SV_SEGMENT_IDLE, NULL},
                                           {10, 10, SV_SEGMENT_RUN, "step"},
                                           {20, 50, SV_SEGMENT_RUN, "wait"},
                                           {70, 30, SV_SEGMENT_RUN, "use"}};
    check_path(pieces, TEST_COUNT(pieces), 70, expected, TEST_COUNT(expected));
}

TEST(random_paths_add_up_and_end)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct gen g;
        struct sv_err err;
        struct sv_path p;
        sv_err_clear(&err);
        gen_make(&g, &(struct gen_options){
                         .seed = seed, .n = 400, .shape = SV_HAS_SLICES, .extras = GEN_ALL});
        struct sv_trace *t = sv_trace_new(g.dict, NULL, 0);
        REQUIRE(gen_push(&g, sv_trace_sink(t), &err) == 0);
        for (uint32_t row = 0; row < t->slices.n; row += 17) {
            sv_critical_path(&p, t, SV_NO_ROW, t->first_ns, row);
            int64_t sum = 0;
            for (size_t i = 0; i < p.n; i++) {
                sum += p.segments[i].dur_ns;
                CHECK(i == 0 ||
                      p.segments[i - 1].ts_ns + p.segments[i - 1].dur_ns == p.segments[i].ts_ns);
            }
            CONTEXT("seed %d row %u", (int)seed, row);
            CHECK_INT_EQ(sum, sv_trace_end_ns(t, row) - t->first_ns);
            sv_path_fini(&p);
        }
        sv_trace_free(t);
        gen_fini(&g);
    }
}

/* Relating clocks: which common clock is chosen, how times are converted, when it is refused. */
#include "store/relate.h"

#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    R = SV_CLOCK_REALTIME,
    M = SV_CLOCK_MONOTONIC,
    B = SV_CLOCK_BOOTTIME,
    U = SV_CLOCK_UNKNOWN,
    N = 99
};

/* One input of a row: its clock, up to two snapshots of two readings each, machine, offset. */
struct in {
    uint32_t clock, machine;
    struct {
        uint32_t a, b;
        int64_t a_ns, b_ns;
    } shots[2];
    int n_shots;
    bool has_offset;
    int64_t offset_ns;
};

struct row {
    const char *what;
    struct in in[3];
    size_t n;
    bool assume;
    uint32_t common;     /* N: refused */
    int64_t at[3];       /* where the time 1000 of each input comes to lie */
    const char *message; /* in the refusal */
};

static const struct row rows[] = {
    {.what = "one input stays as it is", .in = {{.clock = U}}, .n = 1, .common = U, .at = {1000}},
    {.what = "same machine, same clock",
     .in = {{.clock = M, .machine = 0}, {.clock = M, .machine = 0}},
     .n = 2,
     .common = M,
     .at = {1000, 1000}},
    {.what = "same clock, but of two machines",
     .in = {{.clock = M, .machine = 0}, {.clock = M, .machine = 1}},
     .n = 2,
     .common = N,
     .message = "file0: monotonic; file1: monotonic): give --same-host"},
    {.what = "wall clocks are the same everywhere",
     .in = {{.clock = R, .machine = 0}, {.clock = R, .machine = 1}},
     .n = 2,
     .common = R,
     .at = {1000, 1000}},
    {.what = "two machines by their wall clocks",
     .in = {{.clock = B, .machine = 0, .shots = {{B, R, 500, 90500}}, .n_shots = 1},
            {.clock = M, .machine = 1, .shots = {{M, R, 100, 90000}}, .n_shots = 1}},
     .n = 2,
     .common = R,
     .at = {91000, 90900}},
    {.what = "the snapshot of another input of the machine",
     .in = {{.clock = M, .machine = 0},
            {.clock = B, .machine = 0, .shots = {{B, M, 700, 200}}, .n_shots = 1},
            {.clock = B, .machine = 0}},
     .n = 3,
     .common = B,
     .at = {1500, 1000, 1000}},
    {.what = "that of another machine does not count",
     .in = {{.clock = M, .machine = 0},
            {.clock = B, .machine = 1, .shots = {{B, M, 700, 200}}, .n_shots = 1}},
     .n = 2,
     .common = N,
     .message = "--offset file1=±NS"},
    {.what = "an unknown clock with a base on the wall clock",
     .in = {{.clock = U, .machine = 0, .shots = {{U, R, 0, 5000}}, .n_shots = 1},
            {.clock = R, .machine = 1}},
     .n = 2,
     .common = R,
     .at = {6000, 1000}},
    {.what = "an unknown clock is nobody else's",
     .in = {{.clock = U, .machine = 0, .shots = {{U, R, 0, 5000}}, .n_shots = 1},
            {.clock = U, .machine = 0}},
     .n = 2,
     .common = N,
     .message = "file1: unknown"},
    {.what = "assumed",
     .in = {{.clock = U, .machine = 0}, {.clock = U, .machine = 1}},
     .n = 2,
     .assume = true,
     .common = U,
     .at = {1000, 1000}},
    {.what = "assumed where needed only",
     .in = {{.clock = R, .machine = 0},
            {.clock = U, .machine = 1},
            {.clock = B, .machine = 2, .shots = {{B, R, 0, 100}}, .n_shots = 1}},
     .n = 3,
     .assume = true,
     .common = R,
     .at = {1000, 1000, 1100}},
    {.what = "placed by hand",
     .in = {{.clock = U, .machine = 0},
            {.clock = U, .machine = 1, .has_offset = true, .offset_ns = -300}},
     .n = 2,
     .common = U,
     .at = {1000, 700}},
    {.what = "corrected by hand",
     .in = {{.clock = R, .machine = 0},
            {.clock = B,
             .machine = 1,
             .shots = {{B, R, 0, 100}},
             .n_shots = 1,
             .has_offset = true,
             .offset_ns = 5},
            {.clock = R, .machine = 2}},
     .n = 3,
     .common = R,
     .at = {1000, 1105, 1000}},
    {.what = "one of three is not placed",
     .in = {{.clock = U, .machine = 0},
            {.clock = U, .machine = 1, .has_offset = true, .offset_ns = 1},
            {.clock = U, .machine = 2}},
     .n = 3,
     .common = N,
     .message = "): give --offset"},
    {.what = "drift between two snapshots",
     .in = {{.clock = B,
             .machine = 0,
             .shots = {{B, R, 0, 100000}, {B, R, 2000, 106000}},
             .n_shots = 2},
            {.clock = R, .machine = 1}},
     .n = 2,
     .common = R,
     .at = {103000, 1000}},
    {.what = "a steady offset is one offset",
     .in = {{.clock = B,
             .machine = 0,
             .shots = {{B, R, 0, 100000}, {B, R, 2000, 102900}},
             .n_shots = 2},
            {.clock = R, .machine = 1}},
     .n = 2,
     .common = R,
     .at = {101900, 1000}},
};

static void build(const struct row *row, struct sv_relate_input *inputs, struct sv_clocks *clocks,
                  char names[3][32])
{
    for (size_t i = 0; i < row->n; i++) {
        const struct in *in = &row->in[i];
        clocks[i] = (struct sv_clocks){.trace_clock = in->clock};
        for (int k = 0; k < in->n_shots; k++) {
            struct sv_snapshot s = {.n = 2, .uncertainty_ns = 10};
            s.readings[0] = (struct sv_reading){in->shots[k].a, in->shots[k].a_ns};
            s.readings[1] = (struct sv_reading){in->shots[k].b, in->shots[k].b_ns};
            sv_clocks_add(&clocks[i], &s);
        }
        snprintf(names[i], 32, "file%zu", i);
        inputs[i] = (struct sv_relate_input){.name = names[i],
                                             .clocks = &clocks[i],
                                             .machine = in->machine,
                                             .has_offset = in->has_offset,
                                             .offset_ns = in->offset_ns};
    }
}

/* -1 where there is no such time. */
static int64_t shifted(struct sv_shift *s, int64_t ns)
{
    int64_t to;
    return sv_shift_apply(s, ns, &to) ? to : -1;
}

TEST(rows_of_inputs)
{
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].what);
        struct sv_relate_input inputs[3];
        struct sv_clocks clocks[3];
        struct sv_shift shifts[3] = {0};
        struct sv_err err = {0};
        char names[3][32];
        uint32_t common = 77;
        build(&rows[i], inputs, clocks, names);
        int code =
            sv_relate(inputs, rows[i].n, rows[i].assume, shifts, &common, &(uint32_t){0}, &err);
        if (rows[i].common == N) {
            CHECK_INT_EQ(code, SV_EUSAGE);
            if (!CHECK(strstr(err.msg, rows[i].message) != NULL))
                printf("%s\n", err.msg);
        } else if (CHECK_INT_EQ(code, 0)) {
            CHECK_UINT_EQ(common, rows[i].common);
            for (size_t k = 0; k < rows[i].n; k++)
                CHECK_INT_EQ(shifted(&shifts[k], 1000), rows[i].at[k]);
        }
        for (size_t k = 0; k < rows[i].n; k++) {
            sv_shift_fini(&shifts[k]);
            sv_clocks_fini(&clocks[k]);
        }
    }
}

TEST(a_shift_never_goes_backwards)
{
    struct sv_clock_point points[] = {
        {0, 1000000}, {1000, 1000500}, {5000, 1000500}, {6000, 1009000}};
    struct sv_shift s = {.points = points, .n = 4, .offset_ns = 3};
    int64_t last = INT64_MIN;
    for (int64_t ns = -2000; ns < 9000; ns += 7) {
        int64_t at = shifted(&s, ns);
        CHECK(at >= last);
        last = at;
    }
    CHECK_INT_EQ(shifted(&s, -100), 999903); /* before all: at the clock's own pace */
    CHECK_INT_EQ(shifted(&s, 6100), 1009103);
    CHECK_INT_EQ(shifted(&s, 500), 1000253);  /* and back again */
    CHECK_INT_EQ(shifted(&s, INT64_MAX), -1); /* no such time */
    CHECK_INT_EQ(shifted(&s, INT64_MAX - 1003003), INT64_MAX);
    CHECK_INT_EQ(shifted(&s, INT64_MIN), INT64_MIN + 1000003);
}

/* The wall clock was set back between two snapshots; times must not follow it into the past. */
TEST(a_clock_that_was_set_back)
{
    struct sv_clocks clocks[2] = {{.trace_clock = B}, {.trace_clock = R}};
    static const int64_t readings[][2] = {{0, 1000000}, {10000, 500000}, {2000000, 3000000}};
    for (size_t i = 0; i < 3; i++) {
        struct sv_snapshot s = {.n = 2, .uncertainty_ns = -1};
        s.readings[0] = (struct sv_reading){B, readings[i][0]};
        s.readings[1] = (struct sv_reading){R, readings[i][1]};
        sv_clocks_add(&clocks[0], &s);
    }
    struct sv_relate_input inputs[2] = {{.name = "a", .clocks = &clocks[0]},
                                        {.name = "b", .clocks = &clocks[1], .machine = 1}};
    struct sv_shift shifts[2];
    uint32_t common;
    REQUIRE(sv_relate(inputs, 2, false, shifts, &common, &(uint32_t){0}, NULL) == 0);
    int64_t last = INT64_MIN;
    for (int64_t ns = -5; ns < 3000000; ns += 999) {
        int64_t at = shifted(&shifts[0], ns);
        CHECK(at >= last);
        last = at;
    }
    sv_shift_fini(&shifts[0]);
    sv_clocks_fini(&clocks[0]);
}

/* Thousands of processes on thousands of machines, each with its own snapshots: cubic work would
 * not end. */
TEST(many_inputs_end)
{
    enum { INPUTS = 4000, SHOTS = 20 };
    struct sv_clocks *clocks = calloc(INPUTS, sizeof *clocks);
    struct sv_relate_input *inputs = calloc(INPUTS, sizeof *inputs);
    struct sv_shift *shifts = calloc(INPUTS, sizeof *shifts);
    REQUIRE(clocks && inputs && shifts);
    for (uint32_t machines = 2; machines <= INPUTS; machines *= INPUTS / 2) {
        CONTEXT("%u machines", machines);
        for (uint32_t i = 0; i < INPUTS; i++) {
            clocks[i] = (struct sv_clocks){.trace_clock = B};
            inputs[i] = (struct sv_relate_input){
                .name = "x", .clocks = &clocks[i], .machine = i % machines};
            for (int64_t k = 0; k < SHOTS; k++) { /* drifts: no point can be left out */
                struct sv_snapshot s = {.n = 2, .uncertainty_ns = 1};
                s.readings[0] = (struct sv_reading){B, k * 1000000 + i};
                s.readings[1] = (struct sv_reading){R, k * 1010000 + i};
                sv_clocks_add(&clocks[i], &s);
            }
        }
        uint32_t common;
        REQUIRE(sv_relate(inputs, INPUTS, false, shifts, &common, &(uint32_t){0}, NULL) == 0);
        CHECK_UINT_EQ(common, R);
        unsigned right = 0;
        for (uint32_t i = 0; i < INPUTS; i++) {
            int64_t at = shifted(&shifts[i], 10000000);
            right += shifts[i].n <= 4096 && at > 10099000 && at <= 10100000;
            sv_shift_fini(&shifts[i]);
            sv_clocks_fini(&clocks[i]);
        }
        CHECK_UINT_EQ(right, INPUTS);
    }
    free(clocks);
    free(inputs);
    free(shifts);
}

/* The axis of a merge: what relates hosts, and how far off each of them may be. */
#include "clocks/time_axis.h"

#include "core/base/mem.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { B = SV_CLOCK_BOOTTIME, R = SV_CLOCK_REALTIME, HOSTS = 4000, ROUNDS = 40 };
#define SECOND ((int64_t)1000000000)

struct rig {
    struct sv_clocks clocks[HOSTS];
    char boots[HOSTS][40];
    struct sv_time_axis_input inputs[HOSTS];
    struct sv_relation relations[HOSTS];
};

static struct rig *new_rig(size_t n)
{
    struct rig *r = sv_alloc(sizeof *r);
    for (size_t i = 0; i < n; i++) {
        snprintf(r->boots[i], sizeof r->boots[i], "boot-%zu", i);
        r->clocks[i].trace_clock = B;
        r->inputs[i] = (struct sv_time_axis_input){
            .is = {.name = r->boots[i], .clocks = &r->clocks[i], .machine = (uint32_t)i},
            .host = r->boots[i],
            .boot = r->boots[i],
            .first_ns = 0,
            .last_ns = 100 * SECOND};
    }
    return r;
}

static void free_rig(struct rig *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sv_clocks_fini(&r->clocks[i]);
        sv_relation_fini(&r->relations[i]);
    }
    free(r);
}

/* BOOTTIME is `real` − i seconds on host i. */
static void read_wall(struct rig *r, size_t i, uint32_t state, int64_t error_ns)
{
    struct sv_snapshot s = {.readings = {{B, 0}, {R, (int64_t)i * SECOND}},
                            .n = 2,
                            .wall_state = state,
                            .uncertainty_ns = 30,
                            .wall_error_ns = error_ns};
    sv_clocks_add(&r->clocks[i], &s);
}

static void relate(struct rig *r, size_t local, size_t reference, int64_t offset_ns,
                   int64_t bound_ns)
{
    struct sv_relation *x = &r->relations[local];
    snprintf(x->local.boot, sizeof x->local.boot, "boot-%zu", local);
    snprintf(x->reference.boot, sizeof x->reference.boot, "boot-%zu", reference);
    for (int i = 0; i < ROUNDS; i++)
        sv_relation_add(
            x, &(struct sv_sync_round){i * 3 * SECOND, offset_ns - bound_ns, offset_ns + bound_ns});
}

TEST(pings_relate_thousands_of_hosts)
{
    struct rig *r = new_rig(HOSTS);
    struct sv_err err = {0};
    for (size_t i = 1; i < HOSTS; i++)
        relate(r, i, 0, (int64_t)i * 1000, 50);
    struct sv_time_axis a = {
        .inputs = r->inputs, .n = HOSTS, .relations = r->relations + 1, .n_relations = HOSTS - 1};
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    CHECK_UINT_EQ(a.clock, B);
    for (size_t i = 0; i < HOSTS; i++) {
        int64_t at;
        REQUIRE(sv_shift_apply(&a.shifts[i], 50 * SECOND, &at));
        REQUIRE(at == 50 * SECOND + (int64_t)i * 1000);
        REQUIRE(a.places[i].by == (i ? SV_BY_PINGS : SV_BY_HOST));
        REQUIRE(a.places[i].has_common_clock == (i == 0));
    }
    /* 50 ns, what three seconds of wander add, and what is taken as one offset */
    CHECK(a.places[1].between_ns >= 50 + 1500 && a.places[1].between_ns < 50 + 1500 + 1010);
    sv_time_axis_fini(&a);
    free_rig(r, HOSTS);
}

TEST(a_host_without_relation_brings_the_others_to_its_wall_clock)
{
    struct rig *r = new_rig(3);
    struct sv_err err = {0};
    for (size_t i = 0; i < 3; i++)
        read_wall(r, i, SV_WALL_SYNCHRONISED, 1000000 + (int64_t)i);
    relate(r, 1, 0, -SECOND + 77, 50); /* by the wall clocks it would be −1 s */
    struct sv_time_axis a = {
        .inputs = r->inputs, .n = 3, .relations = r->relations + 1, .n_relations = 1};
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    CHECK_UINT_EQ(a.clock, R);
    int64_t at[3];
    for (size_t i = 0; i < 3; i++)
        REQUIRE(sv_shift_apply(&a.shifts[i], 5 * SECOND, &at[i]));
    CHECK_INT_EQ(at[0], 5 * SECOND);
    CHECK_INT_EQ(at[1], 4 * SECOND + 77);
    CHECK_INT_EQ(at[2], 7 * SECOND);
    CHECK_INT_EQ(a.places[0].between_ns, 1000000);
    CHECK(a.places[1].by == SV_BY_PINGS && a.places[1].between_ns > 1000000 + 50);
    CHECK_INT_EQ(a.places[2].between_ns, 1000002);
    sv_time_axis_fini(&a);
    free_rig(r, 3);
}

TEST(the_way_over_other_hosts_adds_their_bounds)
{
    struct rig *r = new_rig(4);
    struct sv_err err = {0};
    relate(r, 3, 2, 300, 10000);
    relate(r, 2, 1, 200, 20000);
    relate(r, 1, 0, 100, 30000);
    struct sv_time_axis a = {
        .inputs = r->inputs, .n = 4, .relations = r->relations + 1, .n_relations = 3};
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    int64_t at;
    REQUIRE(sv_shift_apply(&a.shifts[3], 9 * SECOND, &at));
    CHECK_INT_EQ(at, 9 * SECOND + 600);
    CHECK(a.places[3].between_ns > 60000 && a.places[3].between_ns < 70000);
    CHECK(a.places[1].between_ns < a.places[2].between_ns);
    sv_time_axis_fini(&a);
    free_rig(r, 4);
}

TEST(an_estimate_has_no_bound_and_pings_come_first)
{
    struct rig *r = new_rig(2);
    struct sv_err err = {0};
    struct sv_relation both[2];
    relate(r, 1, 0, 5000, 10);
    r->relations[1].is_estimate = true;
    both[0] = r->relations[1];
    struct sv_time_axis a = {.inputs = r->inputs, .n = 2, .relations = both, .n_relations = 1};
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    CHECK(a.places[1].by == SV_BY_COLLECTIVES);
    CHECK_INT_EQ(a.places[1].between_ns, -1);
    sv_time_axis_fini(&a);
    struct sv_sync_round measured = {0, 7000, 7010};
    both[1] = r->relations[1];
    both[1].is_estimate = false;
    both[1].rounds = &measured;
    both[1].n = both[1].cap = 1;
    a.n_relations = 2;
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    int64_t at;
    CHECK(a.places[1].by == SV_BY_PINGS);
    CHECK(sv_shift_apply(&a.shifts[1], 0, &at) && at == 7005);
    sv_time_axis_fini(&a);
    free_rig(r, 2);
}

TEST(a_clock_that_was_set_free_is_unknown)
{
    struct rig *r = new_rig(2);
    struct sv_err err = {0};
    read_wall(r, 0, SV_WALL_SYNCHRONISED, 1000);
    read_wall(r, 1, SV_WALL_SYNCHRONISED, 1000);
    read_wall(r, 1, SV_WALL_FREE, 1000);
    struct sv_time_axis a = {.inputs = r->inputs, .n = 2};
    REQUIRE(sv_time_axis_relate(&a, &err) == 0);
    CHECK_INT_EQ(a.places[0].between_ns, 1000);
    CHECK_INT_EQ(a.places[1].between_ns, -1);
    CHECK_INT_EQ(a.places[1].within_ns, 30);
    sv_time_axis_fini(&a);
    free_rig(r, 2);
}

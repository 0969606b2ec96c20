/* Alignment by collectives against simulated ranks whose clocks are apart. */
#include "clocks/align.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1e9
enum { RANKS = 6 };

struct rank {
    double offset_ns, rate; /* of its clock */
    struct sv_dict *dict;
    struct sv_ends ends;
};

struct world {
    uint64_t state;
    struct rank ranks[RANKS];
    struct sv_align_input inputs[RANKS];
    struct sv_report report;
    struct sv_relation *relations;
    size_t n;
    uint32_t clock;
    struct sv_err err;
};

static double uniform(struct world *w, double from, double to)
{
    w->state = sv_mix64(w->state + 0x9e3779b97f4a7c15u);
    return from + (to - from) * ((double)(w->state >> 11) * 0x1p-53);
}

/* Each rank is a host of its own, unless it shares the boot id of another one. */
static void init(struct world *w, uint64_t seed)
{
    *w = (struct world){.state = seed};
    sv_report_init(&w->report);
    for (int r = 0; r < RANKS; r++) {
        struct rank *x = &w->ranks[r];
        x->dict = sv_dict_new();
        x->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
        x->offset_ns = r ? uniform(w, -1e7, 1e7) : 0;
        x->rate = r ? uniform(w, -50e-6, 50e-6) : 0;
        struct sv_align_input *in = &w->inputs[r];
        *in = (struct sv_align_input){.name = "file", .clocks = &x->dict->clocks, .ends = &x->ends};
        snprintf(in->owner.boot, sizeof in->owner.boot, "boot-%d", r);
        snprintf(in->owner.host, sizeof in->owner.host, "host%d", r);
    }
}

static void fini(struct world *w)
{
    for (int r = 0; r < RANKS; r++) {
        sv_ends_fini(&w->ranks[r].ends);
        sv_dict_free(w->ranks[r].dict);
    }
    for (size_t i = 0; i < w->n; i++)
        sv_relation_fini(&w->relations[i]);
    free(w->relations);
    sv_report_fini(&w->report);
}

static int64_t reading(const struct rank *r, double true_ns)
{
    return (int64_t)(1e13 + true_ns * (1 + r->rate) + r->offset_ns);
}

static void see(struct world *w, int rank, const char *op, const char *group, int64_t seq,
                double true_end)
{
    struct rank *r = &w->ranks[rank];
    struct sv_dict *d = r->dict;
    struct sv_arg args[] = {
        {.key = sv_dict_cstr(d, "op"),
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(op) & 0xff,
         .text = op},
        {.key = sv_dict_cstr(d, "group"),
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(group) & 0xff,
         .text = group},
        {.key = sv_dict_cstr(d, "seq"), .type = SV_ARG_INT, .i = seq},
    };
    int64_t end = reading(r, true_end);
    struct sv_event e = {.kind = SV_SLICE,
                         .ts_ns = end - 5000,
                         .dur_ns = 5000,
                         .cat = sv_dict_cstr(d, "collective"),
                         .n_args = 3,
                         .args = args};
    sv_ends_see(&r->ends, d, &e);
}

/* A collective ends on all of [from, to) at one time; each leaves it a little later, some much
 * later. */
static void meet(struct world *w, int from, int to, const char *op, const char *group, int64_t seq,
                 double true_ns)
{
    for (int r = from; r < to; r++) {
        double late = uniform(w, 0, 4000);
        if (uniform(w, 0, 1) < 0.05)
            late += uniform(w, 0, 2e7);
        see(w, r, op, group, seq, true_ns + late);
    }
}

/* How far the estimate for a rank is from the truth, at the worst of some times. */
static double error_of(const struct world *w, const struct sv_relation *r, double lasted)
{
    int rank = (int)strtol(r->local.boot + 5, NULL, 10);
    struct sv_sync s;
    struct sv_sync_round rounds[SV_RELATION_ROUNDS_MAX];
    double worst = 0;
    memcpy(rounds, r->rounds, r->n * sizeof *rounds);
    sv_sync_fit(&s, rounds, r->n);
    for (int i = 0; i <= 20; i++) {
        double t = lasted * i / 20;
        int64_t local = reading(&w->ranks[rank], t), truth = reading(&w->ranks[0], t) - local;
        double off = fabs((double)(truth - sv_sync_at(&s, local).offset_ns));
        worst = off > worst ? off : worst;
    }
    sv_sync_fini(&s);
    return worst;
}

static void align(struct world *w)
{
    REQUIRE(sv_align(w->inputs, RANKS, &w->report, &w->clock, &w->relations, &w->n, &w->err) == 0);
}

TEST(hosts_are_found_to_some_microseconds)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w;
        init(&w, seed);
        for (int64_t i = 0; i < 2000; i++)
            meet(&w, 0, RANKS, "allreduce", "world", i, (double)i * 0.05 * SECOND);
        align(&w);
        CHECK_UINT_EQ(w.clock, SV_CLOCK_BOOTTIME);
        REQUIRE(w.n == RANKS - 1);
        for (size_t i = 0; i < w.n; i++) {
            CHECK(w.relations[i].is_estimate);
            CHECK_STR_EQ(w.relations[i].reference.boot, "boot-0");
            CHECK(error_of(&w, &w.relations[i], 100 * SECOND) < 60000);
        }
        fini(&w);
    }
}

TEST(groups_that_do_not_meet_the_first_host_are_reached_over_others)
{
    struct world w;
    init(&w, 7);
    for (int64_t i = 0; i < 500; i++) {
        meet(&w, 4, 6, "barrier", "last", i, (double)i * 0.1 * SECOND);
        meet(&w, 2, 5, "allgather", "middle", i, (double)i * 0.1 * SECOND);
        meet(&w, 0, 3, "allreduce", "first", i, (double)i * 0.1 * SECOND);
    }
    align(&w);
    REQUIRE(w.n == RANKS - 1);
    for (size_t i = 0; i < w.n; i++)
        CHECK(error_of(&w, &w.relations[i], 50 * SECOND) < 100000);
    fini(&w);
}

TEST(what_does_not_wait_or_cannot_be_matched_says_nothing)
{
    struct world w;
    init(&w, 9);
    for (int64_t i = 0; i < 100; i++) {
        meet(&w, 0, RANKS, "broadcast", "world", i,
             (double)i * SECOND); /* its root leaves at once */
        meet(&w, 0, RANKS, "allreduce", "twice", i % 2, (double)i * SECOND);
    }
    meet(&w, 0, RANKS, "allreduce", "few", 0, SECOND);
    meet(&w, 0, RANKS, "allreduce", "few", 1, 2 * SECOND);
    align(&w);
    CHECK_UINT_EQ(w.n, 0);
    REQUIRE(w.report.n == 1);
    CHECK_UINT_EQ(w.report.rows[0].count, RANKS - 1);
    fini(&w);
}

TEST(ranks_of_one_host_are_one)
{
    struct world w;
    init(&w, 11);
    for (int r = 3; r < RANKS; r++) {
        w.inputs[r].owner = w.inputs[2].owner;
        w.ranks[r].offset_ns = w.ranks[2].offset_ns;
        w.ranks[r].rate = w.ranks[2].rate;
    }
    for (int64_t i = 0; i < 500; i++)
        meet(&w, 0, RANKS, "alltoall", "world", i, (double)i * 0.1 * SECOND);
    align(&w);
    REQUIRE(w.n == 2);
    CHECK(error_of(&w, &w.relations[0], 50 * SECOND) < 60000);
    CHECK(error_of(&w, &w.relations[1], 50 * SECOND) < 60000);
    fini(&w);
}

TEST(many_collectives_take_little_memory_and_still_match)
{
    struct world w;
    init(&w, 13);
    for (int64_t i = 0; i < 50000; i++)
        meet(&w, 0, i < 3 || i > 40000 ? RANKS : 2, "allreduce", "world", i, (double)i * 1e6);
    for (int r = 0; r < RANKS; r++)
        CHECK(w.ranks[r].ends.n < 8192);
    align(&w);
    CHECK_UINT_EQ(w.n, RANKS - 1);
    fini(&w);
}

TEST(wall_clocks_are_used_where_there_is_nothing_else)
{
    struct world w;
    init(&w, 17);
    w.ranks[3].dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    for (int64_t i = 0; i < 100; i++)
        meet(&w, 0, RANKS, "allreduce", "world", i, (double)i * SECOND);
    CHECK_INT_EQ(sv_align(w.inputs, RANKS, &w.report, &w.clock, &w.relations, &w.n, &w.err),
                 SV_EUSAGE);
    for (int r = 0; r < RANKS; r++)
        w.ranks[r].dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    sv_err_clear(&w.err);
    align(&w);
    CHECK_UINT_EQ(w.clock, SV_CLOCK_REALTIME);
    CHECK_UINT_EQ(w.n, RANKS - 1);
    fini(&w);
}

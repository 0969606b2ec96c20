/* The replay of jobs: small ones whose times can be counted by hand, and steps that an argument
 * tells. The command is tested by tests/cli/whatif.sh. */
#include "subjects/comm/job.h"
#include "why/replay.h"
#include "why/steps.h"

#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"

#include <stdlib.h>

enum { WORK, MEET };

/* Two ranks: rank 0 works 10 then 10, rank 1 works 20 then 10; both meet in between for 2. */
static void two_ranks(struct sv_replay *r)
{
    static const int64_t times[2][3][2] = {{{0, 10}, {10, 22}, {22, 32}},
                                           {{0, 20}, {20, 22}, {22, 32}}};
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t kind = i == 1 ? MEET : WORK;
            uint32_t op = sv_replay_add(
                r, &(struct sv_replay_op){
                       .begin_ns = times[rank][i][0],
                       .end_ns = times[rank][i][1],
                       .nth = i,
                       .same = i,
                       .group = i == 1 ? 0 : SV_REPLAY_NONE,
                       .at = {rank, SV_REPLAY_NONE, SV_REPLAY_NONE, SV_REPLAY_NONE, kind},
                       .is_comm = i == 1,
                   });
            if (i)
                sv_replay_after(r, op, op - 1);
        }
}

TEST(a_group_ends_after_its_last)
{
    struct sv_replay r = {0};
    size_t n, left;
    two_ranks(&r);
    REQUIRE(sv_replay_order(&r));
    sv_replay_solve(&r);
    CHECK_INT_EQ(r.measured_ns, 32);
    CHECK_INT_EQ(r.replayed_ns, 32);
    CHECK_INT_EQ(r.ideal_ns, 27); /* 15 + 2 + 10 */
    struct sv_replay_part *p = sv_replay_parts(&r, SV_REPLAY_RANK, &n, &left);
    CHECK_INT_EQ(n, 2);
    CHECK_INT_EQ(left, 0);
    CHECK_INT_EQ(p[0].number, 1);
    CHECK_DOUBLE_EQ(p[0].slowdown, 32.0 / 27);
    CHECK_DOUBLE_EQ(p[0].explains, 1);
    CHECK_DOUBLE_EQ(p[0].gain, 1 - 22.0 / 32); /* as rank 0: 10 + 2 + 10 */
    CHECK_DOUBLE_EQ(p[1].slowdown, 1);
    CHECK_DOUBLE_EQ(p[1].explains, 0);
    free(p);
    /* The median of two is between them. */
    CHECK_INT_EQ(sv_replay_as_median(&r, SV_REPLAY_RANK), 27);
    sv_replay_fini(&r);
}

TEST(without_clocks_the_shortest_stay_is_the_transfer)
{
    struct sv_replay r = {.has_no_clocks = true};
    two_ranks(&r);
    REQUIRE(sv_replay_order(&r));
    sv_replay_solve(&r);
    CHECK_INT_EQ(r.replayed_ns, 32);
    CHECK_INT_EQ(r.ideal_ns, 27);
    sv_replay_fini(&r);
}

TEST(a_circle_has_no_order)
{
    struct sv_replay r = {0};
    two_ranks(&r);
    sv_replay_after(&r, 0, 4); /* rank 0 begins after the meeting that waits for it */
    CHECK(!sv_replay_order(&r));
    sv_replay_fini(&r);
    CHECK(sv_replay_order(&r)); /* of nothing */
    sv_replay_solve(&r);
    CHECK_INT_EQ(r.replayed_ns, 0);
    sv_replay_fini(&r);
}

TEST(segments_are_added)
{
    struct sv_replay r = {0};
    for (uint32_t i = 0; i < 2; i++)
        sv_replay_add(&r, &(struct sv_replay_op){.begin_ns = 100 * i,
                                                 .end_ns = 100 * i + 10 + 20 * i,
                                                 .segment = i,
                                                 .group = SV_REPLAY_NONE});
    REQUIRE(sv_replay_order(&r));
    sv_replay_solve(&r);
    CHECK_INT_EQ(r.measured_ns, 40);
    CHECK_INT_EQ(r.replayed_ns, 40);
    CHECK_INT_EQ(r.ideal_ns, 40);
    sv_replay_fini(&r);
}

TEST(more_parts_than_are_replayed)
{
    struct sv_replay r = {0};
    size_t n, left;
    for (uint32_t i = 0; i < SV_REPLAY_PARTS + 36; i++)
        sv_replay_add(&r, &(struct sv_replay_op){
                              .end_ns = 10 + i,
                              .group = SV_REPLAY_NONE,
                              .at = {i, SV_REPLAY_NONE, SV_REPLAY_NONE, SV_REPLAY_NONE, 0}});
    REQUIRE(sv_replay_order(&r));
    sv_replay_solve(&r);
    struct sv_replay_part *p = sv_replay_parts(&r, SV_REPLAY_RANK, &n, &left);
    CHECK_INT_EQ(n, SV_REPLAY_PARTS);
    CHECK_INT_EQ(left, 36);
    CHECK_INT_EQ(p[0].number, SV_REPLAY_PARTS + 35);
    free(p);
    sv_replay_fini(&r);
}

/* ---- steps by an argument ---- */

#define TRACKS                                                    \
    "# stave text 1\nclock boottime\n"                            \
    "track #1 process uuid=0x1 pid=1 name=\"DP rank [0]\"\n"      \
    "track #2 thread uuid=0x2 parent=#1 pid=1 tid=1 name=\"a\"\n" \
    "track #3 thread uuid=0x3 parent=#1 pid=1 tid=2 name=\"b\"\n"

static void find_steps(const char *text, struct sv_steps *s)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report findings;
    struct sv_trace *t = text_trace(text, dict, &findings);
    sv_steps_find(s, t, NULL);
    sv_trace_free(t);
    sv_dict_free(dict);
    sv_report_fini(&findings);
}

TEST(steps_are_told_by_an_argument)
{
    struct sv_steps s;
    find_steps(TRACKS "1.000000000 slice #2 \"forward\" dur=0.500000000 {step=7}\n"
                      "1.400000000 slice #3 \"send\" dur=0.300000000 {step=7}\n"
                      "2.000000000 slice #3 \"recv\" dur=0.100000000 {step=9}\n"
                      "2.100000000 slice #2 \"forward\" dur=0.500000000 {step=9}\n",
               &s);
    REQUIRE(s.n == 2);
    CHECK_INT_EQ(s.n_tracks, 1);
    CHECK(s.has_no_markers);
    CHECK_INT_EQ(s.steps[0].number, 7);
    CHECK_INT_EQ(s.steps[0].dur_ns, 700000000);
    CHECK_INT_EQ(s.steps[1].number, 9);
    CHECK_INT_EQ(s.steps[1].ts_ns, 2000000000);
    CHECK_INT_EQ(s.steps[1].dur_ns, 600000000);
    CHECK_INT_EQ(s.steps[1].track, s.steps[0].track); /* the one with most to do */
    sv_steps_fini(&s);
}

TEST(an_argument_that_is_no_step)
{
    static const char *const none[] = {
        /* a number that comes and goes */
        TRACKS "1.000000000 slice #2 \"a\" dur=0.100000000 {step=1}\n1.100000000 slice #2 \"a\" "
               "dur=0.100000000 {step=1}\n"
               "1.200000000 slice #2 \"a\" dur=0.100000000 {step=3}\n1.300000000 slice #2 \"a\" "
               "dur=0.100000000 {step=3}\n"
               "1.400000000 slice #2 \"a\" dur=0.100000000 {step=2}\n1.500000000 slice #2 \"a\" "
               "dur=0.100000000 {step=2}\n",
        /* one for each operation */
        TRACKS "1.000000000 slice #2 \"a\" dur=0.100000000 {step=1}\n1.100000000 slice #2 \"a\" "
               "dur=0.100000000 {step=2}\n",
        /* one value */
        TRACKS "1.000000000 slice #2 \"a\" dur=0.100000000 {step=1}\n1.100000000 slice #2 \"a\" "
               "dur=0.100000000 {step=1}\n",
        /* no number */
        TRACKS "1.000000000 slice #2 \"a\" dur=0.100000000 {step=\"x\"}\n",
    };
    for (size_t i = 0; i < TEST_COUNT(none); i++) {
        struct sv_steps s;
        CONTEXT("%zu", i);
        find_steps(none[i], &s);
        CHECK_INT_EQ(s.n, 0);
        sv_steps_fini(&s);
    }
}

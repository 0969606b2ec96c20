/* A slice that was measured elsewhere against the thread's own: what nests, what crosses, and what
 * is forgotten. */
#include "sdk/drain/own_spans.h"
#include "tests/harness/test.h"

TEST(slices_measured_elsewhere_cross_or_nest)
{
    /* own: an open one from 10 on, in it [20, 30] and [40, 50]; now it is 60 */
    static const struct {
        int64_t begin, end;
        bool crosses;
    } rows[] = {
        {51, 60, false}, /* behind all */
        {50, 55, false}, /* begins where one has ended */
        {35, 55, false}, /* around the last */
        {12, 60, false}, /* around both */
        {31, 39, false}, /* between them */
        {45, 55, true},  /* begins within one */
        {15, 25, true},  /* ends within one */
        {40, 55, true},  /* begins with one: which is the outer? */
        {35, 40, true},  /* ends where one begins */
        {22, 28, true},  /* inside a closed one: what is in that is not known any more */
        {5, 55, true},   /* begins before the open one */
        {55, 61, true},  /* ends after it was recorded */
    };
    struct sv_own_spans o = {0};
    sv_own_begin(&o, 10);
    sv_own_begin(&o, 20), sv_own_end(&o, 30);
    sv_own_begin(&o, 40), sv_own_end(&o, 50);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(sv_own_crosses(&o, rows[i].begin, rows[i].end, 60), rows[i].crosses);
    }
    sv_own_end(&o, 60);
    CHECK(!sv_own_crosses(&o, 5, 70, 70)); /* now it is closed, and inside */
    CHECK(sv_own_crosses(&o, 15, 70, 70));
}

TEST(what_is_forgotten_may_be_crossed)
{
    struct sv_own_spans o = {0};
    for (int64_t i = 0; i < SV_OWN_CLOSED + 100; i++)
        sv_own_begin(&o, i * 10), sv_own_end(&o, i * 10 + 5);
    int64_t now = (SV_OWN_CLOSED + 100) * 10;
    CHECK(!sv_own_crosses(&o, now - 3993, now, now)); /* remembered: between two */
    CHECK(sv_own_crosses(&o, 7, now, now));           /* not any more */
    sv_own_begin(&o, now); /* many in an open one push out those before it */
    for (int64_t i = 1; i <= SV_OWN_CLOSED; i++)
        sv_own_begin(&o, now + i * 10), sv_own_end(&o, now + i * 10 + 5);
    int64_t end = now + SV_OWN_CLOSED * 10 + 7;
    sv_own_end(&o, end);
    CHECK(!sv_own_crosses(&o, end, end + 1, end + 1));
    CHECK(sv_own_crosses(&o, now - 3993, end + 1, end + 1));
}

TEST(deep_nests_and_rings_that_are_read_on)
{
    struct sv_own_spans o = {0};
    for (int64_t i = 0; i < 3 * SV_OWN_OPEN; i++)
        sv_own_begin(&o, i);
    CHECK(!sv_own_crosses(&o, 3 * SV_OWN_OPEN, 200, 200));
    CHECK(sv_own_crosses(&o, 3 * SV_OWN_OPEN - 2, 200, 200));
    o = (struct sv_own_spans){.depth = INT32_MAX}; /* what is open is not known */
    CHECK(sv_own_crosses(&o, 5, 10, 10));
}

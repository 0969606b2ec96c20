/* When records are moved aside: how many must come, and how long nothing is moved after something
 * could not wait. */
#include "record/spool/storm.h"
#include "tests/harness/test.h"

enum { MS = 1000000, MIB = 1 << 20 };

TEST(a_storm_is_6_mib_a_second)
{
    struct sv_storm s;
    const int64_t second = 1000 * (int64_t)MS;
    sv_storm_init(&s, false);
    sv_storm_saw(&s, 10 * second, 100 * MIB); /* the first one has no time that it took */
    CHECK(!s.is_on);
    sv_storm_saw(&s, 11 * second, 6 * MIB - 1);
    CHECK(!s.is_on);
    sv_storm_saw(&s, 12 * second, 6 * MIB);
    CHECK(s.is_on);
    sv_storm_saw(&s, 12 * second + 99 * MS, 0); /* a window is 100 ms at least */
    CHECK(s.is_on);
    sv_storm_saw(&s, 12 * second + 100 * MS, 0);
    CHECK(!s.is_on);
    for (int64_t i = 1; i <= 4; i++) { /* what comes in a window counts together */
        sv_storm_saw(&s, 12 * second + (100 + 25 * i) * MS, 160 << 10);
        CHECK_INT_EQ(s.is_on, i == 4);
    }
    sv_storm_saw(&s, 13 * second, MIB); /* less, over a longer time */
    CHECK(!s.is_on);
}

/* 250 ms doubled each time, 8 s at most; what could wait for long begins from the start. */
TEST(what_fails_soon_is_tried_less_often)
{
    static const int64_t ms[] = {500, 1000, 2000, 4000, 8000, 8000, 8000};
    struct sv_storm s;
    int64_t now = 5000 * (int64_t)MS;
    sv_storm_init(&s, false);
    for (unsigned i = 0; i < TEST_COUNT(ms); i++) {
        CONTEXT("time %u", i);
        s.begun_ns = now;
        now += 2 * s.backoff_ns - 1; /* just soon enough */
        sv_storm_back_off(&s, now);
        CHECK_INT_EQ(s.not_before_ns - now, ms[i] * MS);
        now = s.not_before_ns;
    }
    s.begun_ns = now;
    now += 16000 * (int64_t)MS;
    sv_storm_back_off(&s, now);
    CHECK_INT_EQ(s.not_before_ns - now, 250 * MS);
}

TEST(for_tests_there_is_always_a_storm)
{
    struct sv_storm s;
    sv_storm_init(&s, true);
    CHECK(s.is_on);
    for (int64_t i = 1; i < 5; i++)
        sv_storm_saw(&s, i * 1000 * MS, 0);
    CHECK(s.is_on);
    sv_storm_back_off(&s, 5000 * (int64_t)MS);
    CHECK_INT_EQ(s.not_before_ns, 0);
}

/* Lines between clock pairs: exact at the pairs, continuous, rising, sane outside. */
#include "sdk/emit/ticks.h"
#include "tests/harness/test.h"

static struct sv_tick pair(uint64_t raw, int64_t ns)
{
    return (struct sv_tick){.raw = raw, .boot_ns = ns, .mono_ns = ns};
}

TEST(meets_its_pairs_and_the_middle)
{
    struct sv_ticks t = {0};
    struct sv_tick pairs[] = {pair(1000, 500), pair(3000, 1500), pair(7000, 3500),
                              pair(7100, 3600)};
    for (size_t i = 0; i < TEST_COUNT(pairs); i++)
        sv_ticks_add(&t, &pairs[i]);
    static const struct {
        uint64_t raw;
        int64_t ns;
    } rows[] = {{1000, 500},  {2000, 1000}, {3000, 1500}, {5000, 2500},
                {7000, 3500}, {7050, 3550}, {1500, 750}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(sv_ticks_ns(&t, rows[i].raw), rows[i].ns);
    }
}

TEST(continues_outside_along_the_whole_slope)
{
    struct sv_ticks t = {0};
    struct sv_tick a = pair(1000, 0), b = pair(2001000, 1000000);
    sv_ticks_add(&t, &a);
    sv_ticks_add(&t, &b);
    CHECK_INT_EQ(sv_ticks_ns(&t, 2003000), 1001000);
    CHECK_INT_EQ(sv_ticks_ns(&t, 0), -500);
}

TEST(never_goes_back)
{
    struct sv_ticks t = {0};
    uint64_t raw = 1u << 30;
    int64_t ns = 1000000, last = INT64_MIN;
    for (int i = 0; i < 200; i++) { /* more pairs than are kept, with a wandering rate */
        struct sv_tick p = pair(raw, ns);
        sv_ticks_add(&t, &p);
        uint64_t step = 1000003 + (uint64_t)(i * 7919 % 1013);
        for (uint64_t r = raw - (i ? 500 : 0); r < raw; r += 50) {
            int64_t at = sv_ticks_ns(&t, r);
            CHECK(at >= last);
            last = at;
        }
        raw += step;
        ns += (int64_t)(step / 2) + i % 3;
    }
}

TEST(refuses_pairs_that_go_back)
{
    struct sv_ticks t = {0};
    struct sv_tick a = pair(1000, 1000), b = pair(900, 2000), c = pair(2000, 900),
                   d = pair(2000, 2000), same = pair(1000, 1500);
    sv_ticks_add(&t, &a);
    sv_ticks_add(&t, &b);
    sv_ticks_add(&t, &c);
    sv_ticks_add(&t, &same);
    CHECK_UINT_EQ(t.n, 1);
    sv_ticks_add(&t, &d);
    CHECK_INT_EQ(sv_ticks_ns(&t, 1500), 1500);
}

/* Eight readings of five clocks, of which the third is the narrowest. */
TEST(the_narrowest_reading_is_taken_in_its_middle)
{
    static int64_t times[40];
    for (size_t i = 0; i < TEST_COUNT(times); i++)
        times[i] = (int64_t)(i + 1) * 1000;
    for (size_t i = 10; i < 15; i++)
        times[i] = 11000 + (int64_t)(i - 10) * 100; /* 11000 11100 11200 11300 11400 */
    test_clock_script(times, TEST_COUNT(times));
    struct sv_tick t = sv_ticks_read(SV_COUNTER_MONOTONIC);
    test_clock_script(NULL, 0);
    CHECK_UINT_EQ(t.raw, 11200);
    CHECK_INT_EQ(t.boot_ns, 11200);
    CHECK_INT_EQ(t.mono_ns, 11200);
    CHECK_INT_EQ(t.uncertainty_ns, 200);
}

/* Four readings of five clocks (the counter is none of them), of which the second is the
 * narrowest. */
TEST(a_snapshot_relates_the_middle_of_its_reading)
{
    static int64_t times[20];
    for (size_t i = 0; i < TEST_COUNT(times); i++)
        times[i] = (int64_t)(i + 1) * 1000;
    for (size_t i = 5; i < 10; i++)
        times[i] = 6000 + (int64_t)(i - 5) * 100;
    struct sv_snapshot s;
    int64_t boot = 0, mono = 0, real = 0;
    test_clock_script(times, TEST_COUNT(times));
    sv_ticks_snapshot(&s, NULL);
    test_clock_script(NULL, 0);
    CHECK(sv_snapshot_get(&s, SV_CLOCK_BOOTTIME, &boot));
    CHECK(sv_snapshot_get(&s, SV_CLOCK_MONOTONIC, &mono));
    CHECK(sv_snapshot_get(&s, SV_CLOCK_REALTIME, &real));
    CHECK_INT_EQ(boot, 6200);
    CHECK_INT_EQ(mono, 6100);
    CHECK_INT_EQ(real, 6200);
    CHECK_INT_EQ(s.uncertainty_ns, 200);
}

TEST(reads_this_machine)
{
    enum sv_counter counter = sv_ticks_counter();
    struct sv_tick a = sv_ticks_read(counter), b = sv_ticks_read(counter);
    CHECK(b.raw > a.raw);
    CHECK(b.boot_ns > a.boot_ns);
    CHECK(a.uncertainty_ns >= 0 && a.uncertainty_ns < 10000000);
}

/* Without a second pair the counter's rate is not known: its steps count as nanoseconds. */
TEST(one_pair_is_continued_in_nanoseconds)
{
    struct sv_ticks t = {0};
    struct sv_tick a = pair(1000, 500);
    CHECK_INT_EQ(sv_ticks_ns(&t, 42), 42); /* none at all */
    sv_ticks_add(&t, &a);
    CHECK_INT_EQ(sv_ticks_ns(&t, 1000), 500);
    CHECK_INT_EQ(sv_ticks_ns(&t, 1010), 510);
    CHECK_INT_EQ(sv_ticks_ns(&t, 990), 490);
    CHECK_INT_EQ(sv_ticks_ns(&t, 0), -500);
    CHECK_INT_EQ(sv_ticks_ns(&t, 1000 + (uint64_t)INT64_MAX), INT64_MAX);
}

/* Lines between clock pairs: exact at the pairs, continuous, rising, sane outside. */
#include "sdk/ticks.h"
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
                   d = pair(2000, 2000);
    sv_ticks_add(&t, &a);
    sv_ticks_add(&t, &b);
    sv_ticks_add(&t, &c);
    CHECK_UINT_EQ(t.n, 1);
    sv_ticks_add(&t, &d);
    CHECK_INT_EQ(sv_ticks_ns(&t, 1500), 1500);
}

TEST(reads_this_machine)
{
    enum sv_counter counter = sv_ticks_counter();
    struct sv_tick a = sv_ticks_read(counter), b = sv_ticks_read(counter);
    CHECK(b.raw > a.raw);
    CHECK(b.boot_ns > a.boot_ns);
    CHECK(a.uncertainty_ns >= 0 && a.uncertainty_ns < 10000000);
}

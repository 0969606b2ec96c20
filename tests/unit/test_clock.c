/* Clock conversion by snapshots and the linear fit. */
#include "core/stream/clock.h"
#include "tests/harness/test.h"

static void add(struct sv_clocks *c, int64_t mono, int64_t real)
{
    struct sv_snapshot s = {.n = 2,
                            .readings = {{SV_CLOCK_MONOTONIC, mono}, {SV_CLOCK_REALTIME, real}}};
    sv_clocks_add(c, &s);
}

TEST(converts_by_the_latest_earlier_snapshot)
{
    struct sv_clocks c = {0};
    add(&c, 100, 1100);
    add(&c, 300, 1350); /* stepped by 50 */
    static const struct {
        int64_t from, to;
    } rows[] = {{0, 1000}, {100, 1100}, {299, 1299}, {300, 1350}, {1000, 2050}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t out;
        CHECK(sv_clocks_convert(&c, SV_CLOCK_MONOTONIC, SV_CLOCK_REALTIME, rows[i].from, &out));
        CHECK_INT_EQ(out, rows[i].to);
    }
    int64_t out;
    CHECK(!sv_clocks_convert(&c, SV_CLOCK_MONOTONIC, SV_CLOCK_BOOTTIME, 0, &out));
    sv_clocks_fini(&c);
}

TEST(fits_offset_and_drift)
{
    struct sv_clocks c = {0};
    for (int64_t i = 0; i < 10; i++)
        add(&c, i * 1000000000, 5000 + i * 1000010000); /* 10 µs per second */
    struct sv_clock_fit fit;
    CHECK(sv_clocks_fit(&c, SV_CLOCK_MONOTONIC, SV_CLOCK_REALTIME, &fit));
    CHECK_INT_EQ(fit.n_snapshots, 10);
    CHECK(fit.drift > 0.99e-5 && fit.drift < 1.01e-5);
    CHECK(fit.offset_ns >= 4999 && fit.offset_ns <= 5001);
    CHECK(fit.uncertainty_ns >= 0 && fit.uncertainty_ns <= 2);
    CHECK(!sv_clocks_fit(&c, SV_CLOCK_MONOTONIC, SV_CLOCK_TSC, &fit));
    sv_clocks_fini(&c);
}

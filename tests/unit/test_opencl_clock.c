/* A device's clock from brackets: the bounds overlap, drift widens them, contradictions replace
 * them. */
#include "inject/opencl/device_clock.h"
#include "tests/harness/test.h"

TEST(device_clock_is_the_device_time_before_the_first_reading)
{
    struct cl_clock c = {0};
    CHECK_INT_EQ(cl_clock_host(&c, 77), 77);
    CHECK_INT_EQ(cl_clock_uncertainty(&c), 0);
}

TEST(device_clock_brackets_narrow_each_other)
{
    struct cl_clock c = {0};
    CHECK(cl_clock_add(&c, 1000, 5000, 3000)); /* -4000 … -2000 */
    CHECK_INT_EQ(cl_clock_host(&c, 5000), 2000);
    CHECK_INT_EQ(cl_clock_uncertainty(&c), 1000);
    CHECK(cl_clock_add(&c, 2000, 5500, 2800)); /* -3500 … -2700 */
    CHECK_INT_EQ(cl_clock_host(&c, 10000), 6900);
    CHECK_INT_EQ(cl_clock_uncertainty(&c), 400);
    CHECK_INT_EQ(c.jumps, 0);
    CHECK_INT_EQ(c.readings, 2);
}

TEST(device_clock_that_runs_away_is_followed)
{
    struct cl_clock c = {0};
    /* 20 ppm faster than the host: 20 µs in each second. */
    for (int64_t s = 0; s < 100; s++) {
        int64_t host = s * 1000000000;
        uint64_t device = (uint64_t)(host + s * 20000);
        CHECK(cl_clock_add(&c, host - 300, device, host + 300));
        int64_t wrong = cl_clock_host(&c, device) - host;
        CHECK(wrong <= 301 && wrong >= -301);
    }
    CHECK_INT_EQ(c.jumps, 0);
}

TEST(device_clock_jump_is_counted_and_taken)
{
    struct cl_clock c = {0};
    CHECK(cl_clock_add(&c, 0, 1000000000, 10));
    CHECK(cl_clock_add(&c, 20, 5, 30));
    CHECK_INT_EQ(c.jumps, 1);
    CHECK_INT_EQ(cl_clock_host(&c, 5), 25);
}

TEST(device_clock_refuses_what_is_no_bracket)
{
    struct cl_clock c = {0};
    CHECK(!cl_clock_add(&c, 10, 5, 9));
    CHECK(!c.is_set);
    CHECK(cl_clock_add(&c, 0, UINT64_MAX, 10)); /* any number may come from a driver */
    CHECK(!cl_clock_add(&c, INT64_MAX - 1, 0, INT64_MAX));
    CHECK(!cl_clock_add(&c, 0, (uint64_t)1 << 63, 10));
}

/*
 * Clocks that tests move: the unit executable is linked with --wrap, so that clock_gettime comes
 * here first. Without a script it is the real one.
 */
#include "tests/harness/test.h"

#include <time.h>

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

static const int64_t *times;
static size_t n_times, at;

void test_clock_script(const int64_t *times_ns, size_t n)
{
    times = times_ns;
    n_times = n;
    at = 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    if (!times)
        return __real_clock_gettime(clock, ts);
    int64_t ns = times[at < n_times ? at++ : n_times - 1];
    *ts =
        (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return 0;
}

/* What a clock shows now. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t sv_now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* For waits and limits: of the monotonic clock. */
static inline int64_t sv_now_ms(void)
{
    return sv_now_ns(CLOCK_MONOTONIC) / 1000000;
}

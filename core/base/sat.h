/* Sums and differences of times that may be anywhere in int64: at the end of the range they stay
 * there instead of beginning at the other one. For what is only shown (totals, spans); times of
 * events are refused where they do not fit. */
#pragma once

#include <stdint.h>

static inline int64_t sv_sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t sv_sat_sub(int64_t a, int64_t b)
{
    int64_t difference;
    return !__builtin_sub_overflow(a, b, &difference) ? difference : b < 0 ? INT64_MAX : INT64_MIN;
}

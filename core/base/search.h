/* Binary search in what is in order.
 *
 *     size_t at;
 *     SV_SEARCH(at, mid, 0, n, items[mid].ts_ns < ts_ns);      // the first item at or after ts_ns,
 *         n: none */
#pragma once

#include <stdint.h>

/* at: the first of [from, to) for which is_before, an expression with `mid` in it, does not hold;
 * to: it holds for all. It must not hold after that one. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a name cannot be parenthesised */
#define SV_SEARCH(at, mid, from, to, is_before)                    \
    do {                                                           \
        __typeof__(at) sv_search_to = (to);                        \
        (at) = (from);                                             \
        while ((at) < sv_search_to) {                              \
            __typeof__(at) mid = (at) + (sv_search_to - (at)) / 2; \
            if (is_before)                                         \
                (at) = mid + 1;                                    \
            else                                                   \
                sv_search_to = mid;                                \
        }                                                          \
    } while (0)
/* NOLINTEND(bugprone-macro-parentheses) */

/* The first of v[from..to) that is not before x, for answers that are near `from`. */
static inline uint32_t sv_search_near(const int64_t *v, uint32_t from, uint32_t to, int64_t x)
{
    uint32_t step = 1, at;
    while (step < to - from && v[from + step] < x) {
        from += step;
        step *= 2;
    }
    SV_SEARCH(at, mid, from, step < to - from ? from + step : to, v[mid] < x);
    return at;
}

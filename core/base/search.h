/* Binary search in what is in order.
 *
 *     size_t at;
 *     SV_SEARCH(at, mid, 0, n, items[mid].ts_ns < ts_ns);      // the first item at or after ts_ns, n: none */
#ifndef SV_CORE_BASE_SEARCH_H
#define SV_CORE_BASE_SEARCH_H

/* at: the first of [from, to) for which is_before, an expression with `mid` in it, does not hold; to: it holds for all. It must
 * not hold behind that one. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a name cannot stand in them */
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

#endif

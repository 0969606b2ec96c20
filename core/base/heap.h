/* Binary heaps in arrays.
 *
 *     SV_HEAP_SINK(heap, n, 0, a, b, heap_before(a, b)); // heap[0] was changed: down to its place
 */
#pragma once

#include <stddef.h>

/* is_before: an expression with `a` and `b` in it, pointers to two items of the heap. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a name cannot be parenthesised */
#define SV_HEAP_SINK(heap, n, from, a, b, is_before)                                \
    do {                                                                            \
        __typeof__(*(heap)) sv_moved = (heap)[from];                                \
        size_t sv_at = (from);                                                      \
        for (size_t sv_child; (sv_child = 2 * sv_at + 1) < (n); sv_at = sv_child) { \
            const __typeof__(*(heap)) *a = &(heap)[sv_child] + 1, *b = a - 1;       \
            sv_child += sv_child + 1 < (n) && (is_before);                          \
            a = &(heap)[sv_child], b = &sv_moved;                                   \
            if (!(is_before))                                                       \
                break;                                                              \
            (heap)[sv_at] = (heap)[sv_child];                                       \
        }                                                                           \
        (heap)[sv_at] = sv_moved;                                                   \
    } while (0)
/* NOLINTEND(bugprone-macro-parentheses) */

/* A stable sort for arrays of structs, as a template: it finds the runs that are there and merges
 * them, so nearly sorted input costs little more than a scan, and the comparison is inlined.
 *
 *     static bool earlier(const struct x *a, const struct x *b, const void *ctx) { return a->ts <
 *     b->ts; }
 *     SV_SORT_DEFINE(sort_x, struct x, earlier)
 *     sort_x(items, n, spare, ctx);       // spare: space for SV_SORT_SPARE(n) items */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* For qsort(): numbers in order. */
static inline int sv_compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline int sv_compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

#define SV_SORT_SPARE(n) ((n) / 2 + 1)
#define SV_SORT_RUN      24u /* shorter runs are extended by insertion */
#define SV_SORT_STACK \
    96u /* run lengths on the stack grow like Fibonacci numbers: enough for 2^64 items */

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be parenthesised */
#define SV_SORT_DEFINE(name, type, less)                                                          \
    /* Sorts a[0..n), of which the first `done` items are in order. */                            \
    static void name##_insert(type *a, size_t done, size_t n, const void *ctx)                    \
    {                                                                                             \
        for (size_t i = done; i < n; i++) {                                                       \
            type x = a[i];                                                                        \
            size_t j = i;                                                                         \
            for (; j > 0 && less(&x, &a[j - 1], ctx); j--)                                        \
                a[j] = a[j - 1];                                                                  \
            a[j] = x;                                                                             \
        }                                                                                         \
    }                                                                                             \
    /* The length of the run at a, made at least SV_SORT_RUN long if there is that much. */       \
    static size_t name##_run(type *a, size_t n, const void *ctx)                                  \
    {                                                                                             \
        size_t i = 1;                                                                             \
        if (i < n && less(&a[1], &a[0], ctx)) {                                                   \
            while (i < n && less(&a[i], &a[i - 1], ctx))                                          \
                i++;                                                                              \
            for (size_t l = 0, r = i - 1; l < r; l++, r--) {                                      \
                type x = a[l];                                                                    \
                a[l] = a[r];                                                                      \
                a[r] = x;                                                                         \
            }                                                                                     \
        } else {                                                                                  \
            while (i < n && !less(&a[i], &a[i - 1], ctx))                                         \
                i++;                                                                              \
        }                                                                                         \
        if (i < SV_SORT_RUN && i < n) {                                                           \
            size_t want = n < SV_SORT_RUN ? n : SV_SORT_RUN;                                      \
            name##_insert(a, i, want, ctx);                                                       \
            i = want;                                                                             \
        }                                                                                         \
        return i;                                                                                 \
    }                                                                                             \
    /* Merges a[0..mid) and a[mid..n); the shorter one goes through the spare space. */           \
    static void name##_merge(type *a, size_t mid, size_t n, type *spare, const void *ctx)         \
    {                                                                                             \
        size_t from = 0;                                                                          \
        while (from < mid && !less(&a[mid], &a[from], ctx)) /* already in place */                \
            from++;                                                                               \
        a += from, mid -= from, n -= from;                                                        \
        while (n > mid && mid > 0 && !less(&a[n - 1], &a[mid - 1], ctx))                          \
            n--;                                                                                  \
        if (mid == 0 || mid == n)                                                                 \
            return;                                                                               \
        if (mid <= n - mid) {                                                                     \
            memcpy(spare, a, mid * sizeof *a);                                                    \
            size_t l = 0, r = mid, to = 0;                                                        \
            while (l < mid && r < n) {                                                            \
                bool right = less(&a[r], &spare[l], ctx);                                         \
                a[to++] = right ? a[r] : spare[l];                                                \
                r += right, l += !right;                                                          \
            }                                                                                     \
            memcpy(a + to, spare + l, (mid - l) * sizeof *a);                                     \
            return;                                                                               \
        }                                                                                         \
        memcpy(spare, a + mid, (n - mid) * sizeof *a);                                            \
        size_t l = mid, r = n - mid, to = n;                                                      \
        while (l > 0 && r > 0) {                                                                  \
            bool left = less(&spare[r - 1], &a[l - 1], ctx);                                      \
            a[--to] = left ? a[l - 1] : spare[r - 1];                                             \
            l -= left, r -= !left;                                                                \
        }                                                                                         \
        memcpy(a + to - r, spare, r * sizeof *a);                                                 \
    }                                                                                             \
    static void name(type *a, size_t n, type *spare, const void *ctx)                             \
    {                                                                                             \
        size_t len[SV_SORT_STACK], top = 0, at = 0; /* the runs before `at`, oldest first */      \
        while (at < n) {                                                                          \
            len[top] = name##_run(a + at, n - at, ctx);                                           \
            at += len[top++];                                                                     \
            /* Of the last three runs the older ones are longer than what follows, else merge. */ \
            while (top > 1 && (at == n || len[top - 2] <= len[top - 1] ||                         \
                               (top > 2 && len[top - 3] <= len[top - 2] + len[top - 1]))) {       \
                bool older = at < n && top > 2 && len[top - 3] < len[top - 1];                    \
                size_t k = older ? top - 3 : top - 2, end = older ? at - len[top - 1] : at;       \
                size_t both = len[k] + len[k + 1];                                                \
                name##_merge(a + (end - both), len[k], both, spare, ctx);                         \
                len[k] = both;                                                                    \
                if (older)                                                                        \
                    len[top - 2] = len[top - 1];                                                  \
                top--;                                                                            \
            }                                                                                     \
        }                                                                                         \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

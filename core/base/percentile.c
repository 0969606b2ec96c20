/* Percentiles by selection: see percentile.h. */
#include "core/base/percentile.h"

#include "core/base/sort.h"

#include <math.h>
#include <stdlib.h>

static void swap(int64_t *a, int64_t *b)
{
    int64_t x = *a;
    *a = *b;
    *b = x;
}

/* Puts the k-th smallest value at k, smaller ones before it (Hoare's selection; the pivot is the
 * median of three, and after too many rounds a plain sort ends it). */
static void select_kth(int64_t *v, size_t n, size_t k)
{
    size_t low = 0, high = n;
    for (unsigned rounds = 0; high - low > 8; rounds++) {
        if (rounds > 96) {
            qsort(v + low, high - low, sizeof *v, sv_compare_i64);
            return;
        }
        int64_t a = v[low], b = v[low + (high - low) / 2], c = v[high - 1];
        int64_t pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
        size_t i = low, j = high - 1;
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&v[i++], &v[j--]);
        }
        /* Everything before i is at most the pivot, everything after j at least. */
        if (k < i)
            high = i;
        else
            low = i;
    }
    for (size_t i = low + 1; i < high; i++)
        for (size_t j = i; j > low && v[j] < v[j - 1]; j--)
            swap(&v[j], &v[j - 1]);
}

int64_t sv_select_kth(int64_t *values, size_t n, size_t k, int64_t *next)
{
    select_kth(values, n, k);
    *next = values[k + 1 < n ? k + 1 : k];
    for (size_t i = k + 2; i < n; i++)
        *next = values[i] < *next ? values[i] : *next;
    return values[k];
}

double sv_percentile(int64_t *values, size_t n, double p)
{
    if (n == 0)
        return 0;
    double at = p * (double)(n - 1), below = floor(at);
    int64_t next, value = sv_select_kth(values, n, (size_t)below, &next);
    return (double)value + (at - below) * (double)(next - value);
}

/* Percentiles, interpolated between neighbours as SQL's percentile() does. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The k-th smallest of n > k values, which are brought out of order, and the one after it (itself
 * when it is the last). */
int64_t sv_select_kth(int64_t *values, size_t n, size_t k, int64_t *next);

/* The value at p (0 … 1) of n values, which are brought out of order. */
double sv_percentile(int64_t *values, size_t n, double p);

/* Parquet's encodings of numbers, appended to a buffer: differences of integers, and small numbers
 * in runs. */
#pragma once

#include "core/base/buf.h"

/* DELTA_BINARY_PACKED. Differences wrap around, so every int64 comes back. */
void sv_encode_delta(struct sv_buf *out, const int64_t *values, size_t n);

/* The hybrid of runs and packed bits, for numbers below 2^width; width is at most 32. */
void sv_encode_hybrid(struct sv_buf *out, const uint32_t *values, size_t n, unsigned width);

/* The definition levels of a page: whether each of n rows has a value (1 or 0; NULL: all have),
 * with the length before them. */
void sv_encode_levels(struct sv_buf *out, const uint8_t *present, size_t n);

/* Bits that the number needs; 0 for 0. */
static inline unsigned sv_bit_width(uint64_t v)
{
    return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

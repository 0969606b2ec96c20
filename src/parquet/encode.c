/* Parquet's encodings of numbers.
 *
 * DELTA_BINARY_PACKED: a header, then blocks of 128 differences, each with its smallest one and
 * four miniblocks of 32 that have a width of their own. The hybrid: runs of equal values, and
 * between them groups of eight, packed. Both are on the way of every value of an export. */
#include "parquet/encode.h"

#include "parquet/thrift.h"

#include <string.h>

enum { BLOCK = 128, MINI = 32, N_MINI = BLOCK / MINI };

/* Packs n values of `width` bits (1..64), lowest bit first, into whole bytes. */
static void pack(struct sv_buf *out, const uint64_t *values, size_t n, unsigned width)
{
    size_t bytes = (n * width + 7) / 8;
    uint64_t word = 0;
    unsigned used = 0;
    if (!sv_buf_reserve(out, bytes + 8))
        return;
    uint8_t *at = out->data + out->len;
    for (size_t i = 0; i < n; i++) {
        word |= values[i] << used;
        used += width;
        if (used >= 64) {
            memcpy(at, &word, 8);
            at += 8;
            used -= 64;
            word = used ? values[i] >> (width - used) : 0;
        }
    }
    memcpy(at, &word, 8); /* may reach past the end, into what was reserved */
    out->len += bytes;
}

/* One block: up to 128 differences that begin with values[1] - values[0]. */
static void put_block(struct sv_buf *out, const int64_t *values, size_t n)
{
    uint64_t deltas[BLOCK];
    int64_t least = INT64_MAX;
    uint8_t widths[N_MINI] = {0};
    for (size_t i = 0; i < n; i++) {
        deltas[i] = (uint64_t)values[i + 1] - (uint64_t)values[i];
        least = (int64_t)deltas[i] < least ? (int64_t)deltas[i] : least;
    }
    for (size_t m = 0; m * MINI < n; m++) {
        uint64_t bits = 0;
        size_t end = (m + 1) * MINI < n ? (m + 1) * MINI : n;
        for (size_t i = m * MINI; i < end; i++) {
            deltas[i] -= (uint64_t)least;
            bits |= deltas[i];
        }
        widths[m] = (uint8_t)sv_bit_width(bits);
    }
    if (n < BLOCK)
        memset(deltas + n, 0, (BLOCK - n) * sizeof *deltas);
    sv_put_varint(out, sv_zigzag(least));
    sv_buf_add(out, widths, sizeof widths);
    for (size_t m = 0; m * MINI < n; m++)
        if (widths[m])
            pack(out, deltas + m * MINI, MINI, widths[m]);
}

void sv_encode_delta(struct sv_buf *out, const int64_t *values, size_t n)
{
    sv_put_varint(out, BLOCK);
    sv_put_varint(out, N_MINI);
    sv_put_varint(out, n);
    sv_put_varint(out, sv_zigzag(n ? values[0] : 0));
    for (size_t i = 0; i + 1 < n; i += BLOCK) {
        size_t left = n - 1 - i;
        put_block(out, values + i, left < BLOCK ? left : BLOCK);
    }
}

/* ---- the hybrid ---- */

static bool is_run(const uint32_t *v, size_t left)
{
    if (left < 8)
        return false;
    uint32_t differs = 0;
    for (size_t i = 1; i < 8; i++)
        differs |= v[i] ^ v[0];
    return differs == 0;
}

static void put_run(struct sv_buf *out, uint32_t value, size_t n, unsigned width)
{
    sv_put_varint(out, (uint64_t)n << 1);
    for (unsigned bits = 0; bits < width; bits += 8)
        sv_buf_byte(out, (uint8_t)(value >> bits));
}

static void put_groups(struct sv_buf *out, const uint32_t *v, size_t n, unsigned width)
{
    uint64_t wide[64];
    size_t groups = (n + 7) / 8;
    sv_put_varint(out, (uint64_t)groups << 1 | 1);
    for (size_t done = 0; width > 0 && done < groups * 8; done += 64) {
        size_t count = groups * 8 - done < 64 ? groups * 8 - done : 64;
        for (size_t i = 0; i < count; i++)
            wide[i] = done + i < n ? v[done + i] : 0;
        pack(out, wide, count, width);
    }
}

void sv_encode_hybrid(struct sv_buf *out, const uint32_t *values, size_t n, unsigned width)
{
    for (size_t i = 0; i < n;) {
        size_t start = i;
        if (is_run(values + i, n - i)) {
            while (i < n && values[i] == values[start])
                i++;
            put_run(out, values[start], i - start, width);
            continue;
        }
        do
            i += 8;
        while (i < n && !is_run(values + i, n - i));
        i = i < n ? i : n;
        put_groups(out, values + start, i - start, width);
    }
}

/* ---- definition levels: the hybrid with one bit ---- */

static bool is_level_run(const uint8_t *present, size_t left)
{
    uint64_t eight;
    if (left < 8)
        return false;
    memcpy(&eight, present, 8);
    return eight == present[0] * 0x0101010101010101u;
}

static void put_level_groups(struct sv_buf *out, const uint8_t *present, size_t n)
{
    sv_put_varint(out, (uint64_t)((n + 7) / 8) << 1 | 1);
    for (size_t i = 0; i < n; i += 8) {
        unsigned bits = 0;
        for (size_t k = 0; k < 8 && i + k < n; k++)
            bits |= (unsigned)present[i + k] << k;
        sv_buf_byte(out, (uint8_t)bits);
    }
}

static void put_levels(struct sv_buf *out, const uint8_t *present, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t start = i;
        if (is_level_run(present + i, n - i)) {
            while (i < n && present[i] == present[start])
                i++;
            put_run(out, present[start], i - start, 1);
            continue;
        }
        do
            i += 8;
        while (i < n && !is_level_run(present + i, n - i));
        i = i < n ? i : n;
        put_level_groups(out, present + start, i - start);
    }
}

void sv_encode_levels(struct sv_buf *out, const uint8_t *present, size_t n)
{
    size_t start = out->len;
    sv_buf_add(out, "\0\0\0\0", 4);
    if (present)
        put_levels(out, present, n);
    else
        put_run(out, 1, n, 1);
    if (out->failed)
        return;
    uint32_t len = (uint32_t)(out->len - start - 4);
    memcpy(out->data + start, &len, 4);
}

/* Hashes of texts and of heads of arguments, for the pool of argument lists (trace_args.c) alone:
 * they are made for each argument that is loaded. */
#pragma once

#include <stdint.h>
#include <string.h>

#define HASH_STEP 0x9fb21c651e98df25ull

static inline uint64_t load8(const uint8_t *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static inline uint64_t stir(uint64_t h, uint64_t w)
{
    h = (h ^ w) * HASH_STEP;
    return h ^ h >> 32;
}

/* The last bytes are read overlapping the ones before, so there is no tail loop. */
static inline uint64_t hash_short(const uint8_t *p, size_t n)
{
    if (n >= 4) {
        uint32_t a, b;
        memcpy(&a, p, sizeof a);
        memcpy(&b, p + n - 4, sizeof b);
        return stir(stir(n, (uint64_t)a << 32 | b), n);
    }
    uint64_t w = n ? (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1] : 0;
    return stir(stir(n, w), n);
}

static inline uint64_t hash_bytes(const uint8_t *p, size_t n)
{
    if (n < 8)
        return hash_short(p, n);
    uint64_t h = n;
    for (size_t i = 0; i + 8 < n; i += 8)
        h = stir(h, load8(p + i));
    h = stir(h, load8(p + n - 8));
    return stir(h, n);
}

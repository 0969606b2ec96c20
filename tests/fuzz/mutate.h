/* What mutators that know a structure share: random numbers from libFuzzer's seed, values worth
 * trying, and edits of one buffer that never grow past its limit. Included by mutate_wire.h and
 * mutate_records.h; fuzz targets call those from LLVMFuzzerCustomMutator(). */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* libFuzzer's own mutations; tests/harness/fuzz_main.c has a small one for builds without it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_size, unsigned seed);

enum { MUTATE_SCRATCH = 1 << 12 }; /* the longest piece that is copied or made at once */

struct mutate {
    uint8_t *data;
    size_t size, max;
    uint64_t state; /* of the random numbers */
    uint8_t scratch[MUTATE_SCRATCH];
};

static inline void mutate_init(struct mutate *m, uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    m->data = data;
    m->size = size;
    m->max = max;
    m->state = seed;
}

/* For crossings: begins with a copy of the first input. */
static inline void mutate_init_copy(struct mutate *m, const uint8_t *data, size_t size,
                                    uint8_t *out, size_t max, unsigned seed)
{
    size = size < max ? size : max;
    if (size > 0)
        memcpy(out, data, size);
    mutate_init(m, out, size, max, seed);
}

static inline uint64_t mutate_random(struct mutate *m) /* splitmix64 */
{
    uint64_t z = m->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline size_t mutate_below(struct mutate *m, size_t n)
{
    return n ? (size_t)(mutate_random(m) % n) : 0;
}

static inline bool mutate_one_in(struct mutate *m, size_t n)
{
    return mutate_below(m, n) == 0;
}

/* A number near an edge, near the old one, or any. */
static inline uint64_t mutate_number(struct mutate *m, uint64_t old)
{
    switch (mutate_below(m, 8)) {
    case 0: return mutate_below(m, 4);
    case 1: return old + 1 + mutate_below(m, 3);
    case 2: return old - 1 - mutate_below(m, 3);
    case 3: return (UINT64_C(1) << mutate_below(m, 64)) - mutate_below(m, 2);
    case 4: return (UINT64_C(1) << 63) - mutate_below(m, 3) + 1;
    case 5: return ~(uint64_t)mutate_below(m, 4);
    case 6: return old ^ UINT64_C(1) << mutate_below(m, 64);
    default: return mutate_random(m) >> mutate_below(m, 64);
    }
}

/* Puts `n_new` bytes in place of `n_old`; false when they do not fit into the buffer. The bytes
 * must not be part of the buffer. */
static inline bool mutate_replace(struct mutate *m, size_t at, size_t n_old, const uint8_t *bytes,
                                  size_t n_new)
{
    size_t rest = m->size - at - n_old;
    if (n_new > n_old && n_new - n_old > m->max - m->size)
        return false;
    memmove(m->data + at + n_new, m->data + at + n_old, rest);
    if (n_new)
        memcpy(m->data + at, bytes, n_new);
    m->size = at + n_new + rest;
    return true;
}

/* Copies a piece of the buffer to m->scratch; how much of it fits. */
static inline size_t mutate_pick_up(struct mutate *m, size_t at, size_t n)
{
    n = n < sizeof m->scratch ? n : sizeof m->scratch;
    memcpy(m->scratch, m->data + at, n);
    return n;
}

/* A piece of the buffer, changed by libFuzzer in m->scratch, which may make it a little longer; its
 * new length. */
static inline size_t mutate_bytes(struct mutate *m, size_t at, size_t n)
{
    n = mutate_pick_up(m, at, n);
    size_t max = n + 32 < sizeof m->scratch ? n + 32 : sizeof m->scratch;
    return LLVMFuzzerMutate(m->scratch, n, max);
}

#endif

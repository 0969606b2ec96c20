/* SHA-256 as FIPS 180-4 describes it, in plain C: a few times faster than a trace is read. */
#include "core/base/sha256.h"

#include <string.h>

static const uint32_t round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void spread(const uint8_t *block, uint32_t w[static 64])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
}

/* One round; the caller turns the names instead of moving the values. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                      \
    do {                                                                      \
        uint32_t one_ = (h) + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +      \
                        (((e) & (f)) ^ (~(e) & (g))) + round_words[i] + w[i]; \
        (d) += one_;                                                          \
        (h) = one_ + (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +               \
              (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                      \
    } while (0)

static void take_block(struct sv_sha256 *h, const uint8_t *block)
{
    uint32_t w[64], s[8];
    spread(block, w);
    memcpy(s, h->state, sizeof s);
    for (size_t i = 0; i < 64; i += 8) {
        ROUND(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], i);
        ROUND(s[7], s[0], s[1], s[2], s[3], s[4], s[5], s[6], i + 1);
        ROUND(s[6], s[7], s[0], s[1], s[2], s[3], s[4], s[5], i + 2);
        ROUND(s[5], s[6], s[7], s[0], s[1], s[2], s[3], s[4], i + 3);
        ROUND(s[4], s[5], s[6], s[7], s[0], s[1], s[2], s[3], i + 4);
        ROUND(s[3], s[4], s[5], s[6], s[7], s[0], s[1], s[2], i + 5);
        ROUND(s[2], s[3], s[4], s[5], s[6], s[7], s[0], s[1], i + 6);
        ROUND(s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[0], i + 7);
    }
    for (size_t i = 0; i < 8; i++)
        h->state[i] += s[i];
}

void sv_sha256_init(struct sv_sha256 *h)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *h = (struct sv_sha256){0};
    memcpy(h->state, first, sizeof first);
}

void sv_sha256_add(struct sv_sha256 *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = h->n_bytes % sizeof h->block;
    h->n_bytes += n;
    while (n > 0) {
        if (held == 0 && n >= sizeof h->block) {
            take_block(h, p);
            p += sizeof h->block;
            n -= sizeof h->block;
            continue;
        }
        size_t some = sizeof h->block - held < n ? sizeof h->block - held : n;
        memcpy(h->block + held, p, some);
        held += some;
        p += some;
        n -= some;
        if (held == sizeof h->block) {
            take_block(h, h->block);
            held = 0;
        }
    }
}

void sv_sha256_end(struct sv_sha256 *h, char hex[static SV_SHA256_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t tail[72] = {0x80}; /* up to the last eight bytes of a block, then the length in bits */
    uint64_t n_bits = h->n_bytes * 8;
    size_t held = h->n_bytes % 64, pad = held < 56 ? 56 - held : 120 - held;
    for (size_t i = 0; i < 8; i++)
        tail[pad + i] = (uint8_t)(n_bits >> (56 - 8 * i));
    sv_sha256_add(h, tail, pad + 8);
    for (size_t i = 0; i < 64; i++)
        hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

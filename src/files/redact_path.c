/* Tokens for the components of paths: SipHash-2-4 (Aumasson and Bernstein, 2012) with a random key.
 * Called by record/session/recorder.c and files/redact.c. */
#include "files/redact_path.h"

#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

static uint64_t turn(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn(v[1], 13) ^ v[0];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] = turn(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turn(v[1], 17) ^ v[2];
    v[3] = turn(v[3], 21) ^ v[0];
    v[2] = turn(v[2], 32);
}

static void take_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    mix(v);
    v[0] ^= word;
}

static uint64_t keyed_hash(const struct sv_redact *r, const char *bytes, size_t len)
{
    uint64_t v[4] = {r->key[0] ^ 0x736f6d6570736575u, r->key[1] ^ 0x646f72616e646f6du,
                     r->key[0] ^ 0x6c7967656e657261u, r->key[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)len << 56, word;
    for (size_t i = 0; i + 8 <= len; i += 8) {
        memcpy(&word, bytes + i, 8);
        take_word(v, word);
    }
    for (size_t i = len & ~(size_t)7; i < len; i++)
        last |= (uint64_t)(uint8_t)bytes[i] << (i % 8 * 8);
    take_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

_Bool sv_redact_init(struct sv_redact *r)
{
    return getrandom(r->key, sizeof r->key, 0) == (ssize_t)sizeof r->key;
}

static void put_token(const struct sv_redact *r, const char *word, size_t len, char *to)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint64_t h = keyed_hash(r, word, len);
    for (size_t i = 0; i < SV_REDACT_TOKEN; i++)
        to[i] = letters[h >> (i * 5) & 31];
}

size_t sv_redact_path(const struct sv_redact *r, const char *path, size_t len, char *to,
                      size_t size)
{
    size_t n = 0;
    if (!memchr(path, '/', len) && memmem(path, len, ":[", 2) && len <= size) {
        memcpy(to, path, len);
        return len;
    }
    for (size_t i = 0; i < len;) {
        if (path[i] == '/') {
            if (n == size)
                break;
            to[n++] = path[i++];
            continue;
        }
        size_t word = i;
        while (i < len && path[i] != '/')
            i++;
        if (n + SV_REDACT_TOKEN > size)
            break;
        put_token(r, path + word, i - word, to + n);
        n += SV_REDACT_TOKEN;
    }
    return n;
}

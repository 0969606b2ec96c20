/* SHA-256 (FIPS 180-4): the identity of a file's content, where an equal one must mean an equal
 * file.
 *
 *     struct sv_sha256 h;
 *     sv_sha256_init(&h); sv_sha256_add(&h, bytes, n); sv_sha256_end(&h, hex); */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SV_SHA256_TEXT = 65 };

struct sv_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64];
};

void sv_sha256_init(struct sv_sha256 *h);
void sv_sha256_add(struct sv_sha256 *h, const void *bytes, size_t n);
void sv_sha256_end(struct sv_sha256 *h, char hex[static SV_SHA256_TEXT]); /* lower case */

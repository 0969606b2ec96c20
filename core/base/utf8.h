/* UTF-8: how long is the character at s, and is a text valid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the well-formed character at s (1..4), or 0 when there is none (overlong forms,
 * surrogates and values past U+10FFFF are not). */
size_t sv_utf8_length(const char *s, size_t len);

/* Most texts, by a few instructions: the last eight bytes are looked at twice rather than one by
 * one. */
static inline bool sv_is_ascii(const char *s, size_t len)
{
    uint64_t word, all = 0;
    if (len < sizeof word) {
        for (size_t i = 0; i < len; i++)
            all |= (uint8_t)s[i];
        return all < 0x80;
    }
    for (size_t i = 0; i + sizeof word < len; i += sizeof word) {
        memcpy(&word, s + i, sizeof word);
        all |= word;
    }
    memcpy(&word, s + len - sizeof word, sizeof word);
    return ((all | word) & 0x8080808080808080u) == 0;
}

/* Bytes of the valid prefix: equal to len when all of it is valid. ASCII runs are skipped eight
 * bytes at a time. */
size_t sv_utf8_valid(const char *s, size_t len);

/* The one rule for formats whose texts must be UTF-8 (docs/formats.md): a byte that is part of no
 * well-formed character becomes the four characters \xNN, as in the canonical text; everything else
 * stays as it is. Appends. */
struct sv_buf;
void sv_buf_utf8(struct sv_buf *b, const char *s, size_t len);
/* How many bytes that makes. */
size_t sv_utf8_escaped(const char *s, size_t len);
/* \xNN at `at`, which has space for it. */
#define SV_UTF8_ESCAPE 4u
void sv_utf8_put_escape(char *at, uint8_t byte);

/* Columns on a terminal, for texts without wide or combining characters: bytes that begin a
 * character. */
size_t sv_utf8_columns(const char *s, size_t len);

/* The code point of the well-formed character of n bytes at s. */
uint32_t sv_utf8_code_point(const char *s, size_t n);

/* Encodes one code point (≤ U+10FFFF) into at most 4 bytes; returns how many. */
size_t sv_utf8_encode(char *at, uint32_t code_point);

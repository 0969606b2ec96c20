/* UTF-8: how long is the character at s, and is a text valid. */
#ifndef SV_CORE_BASE_UTF8_H
#define SV_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at s (1..4), or 0 when there is none (overlong forms, surrogates and values past U+10FFFF are not). */
size_t sv_utf8_length(const char *s, size_t len);

/* Bytes of the valid prefix: equal to len when all of it is valid. ASCII runs are skipped eight bytes at a time. */
size_t sv_utf8_valid(const char *s, size_t len);

/* Columns on a terminal, for texts without wide or combining characters: bytes that begin a character. */
size_t sv_utf8_columns(const char *s, size_t len);

/* The code point of the well-formed character of n bytes at s. */
uint32_t sv_utf8_code_point(const char *s, size_t n);

/* Encodes one code point (≤ U+10FFFF) into at most 4 bytes; returns how many. */
size_t sv_utf8_encode(char *at, uint32_t code_point);

#endif

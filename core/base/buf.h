/* A growing byte buffer, born with its limit, with a sticky error: append without checks, ask
 * once. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sv_buf {
    uint8_t *data;
    size_t len, cap;
    size_t limit; /* past this many bytes the buffer stops growing and `failed` is set */
    bool failed;
};

void sv_buf_init(struct sv_buf *b, size_t limit);
void sv_buf_fini(struct sv_buf *b);
bool sv_buf_grow(struct sv_buf *b,
                 size_t extra); /* space for extra more bytes; false: failed is set */

static inline void sv_buf_clear(struct sv_buf *b)
{
    b->len = 0;
    b->failed = false;
}

static inline bool sv_buf_reserve(struct sv_buf *b, size_t extra)
{
    return __builtin_expect(b->cap - b->len >= extra, 1) || sv_buf_grow(b, extra);
}

static inline void sv_buf_add(struct sv_buf *b, const void *bytes, size_t n)
{
    if (n == 0 || !sv_buf_reserve(b, n))
        return;
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
}

static inline void sv_buf_byte(struct sv_buf *b, uint8_t byte)
{
    if (sv_buf_reserve(b, 1))
        b->data[b->len++] = byte;
}

static inline void sv_buf_str(struct sv_buf *b, const char *s)
{
    sv_buf_add(b, s, strlen(s));
}

void sv_buf_printf(struct sv_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sv_buf_vprintf(struct sv_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Decimal numbers without printf: they are on every writer's hot path. */
void sv_buf_u64(struct sv_buf *b, uint64_t v);
void sv_buf_i64(struct sv_buf *b, int64_t v);
void sv_buf_hex(struct sv_buf *b, uint64_t v); /* lower case, no leading zeros, no 0x */
void sv_buf_us3(struct sv_buf *b,
                int64_t ns); /* nanoseconds as microseconds with exactly three decimals */
void sv_buf_double(struct sv_buf *b,
                   double d); /* shortest text that reads back as the same double; nan, inf, -inf */
/* The bytes as printable text that can be read back: what core/base/printable.h does not print, and
 * the backslash, as \n \t \r \\ \xNN, byte by byte. */
void sv_buf_escaped(struct sv_buf *b, const char *s, size_t len);

/* The terminated content, valid until the next append; never NULL. */
const char *sv_buf_cstr(struct sv_buf *b);

/* The byte buffer and the number printing that every text writer shares.
 *
 * Numbers are printed by hand: printf costs ten times as much and depends on the locale, and time
 * must never pass through a double. */
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/printable.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void sv_buf_init(struct sv_buf *b, size_t limit)
{
    *b = (struct sv_buf){.limit = limit};
}

void sv_buf_fini(struct sv_buf *b)
{
    free(b->data);
    *b = (struct sv_buf){.limit = b->limit};
}

bool sv_buf_grow(struct sv_buf *b, size_t extra)
{
    assert(b->len <= b->cap);
    if (b->failed || extra > b->limit || b->len > b->limit - extra) {
        b->failed = true;
        return false;
    }
    size_t cap = b->cap ? b->cap : 256;
    while (cap < b->len + extra)
        cap *= 2;
    if (cap > b->limit)
        cap = b->limit;
    b->data = sv_realloc(b->data, cap);
    b->cap = cap;
    return true;
}

void sv_buf_vprintf(struct sv_buf *b, const char *fmt, va_list ap)
{
    char text[256];
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    if (n > 0 && (size_t)n < sizeof text) {
        sv_buf_add(b, text, (size_t)n);
    } else if (n > 0 && sv_buf_reserve(b, (size_t)n + 1)) {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void sv_buf_printf(struct sv_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sv_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* Writes v right-aligned, ending before `end`; returns where it starts. */
static char *decimal_before(char *end, uint64_t v)
{
    while (v >= 100) {
        uint64_t rest = v / 100;
        memcpy(end -= 2, digit_pairs + 2 * (v - rest * 100), 2);
        v = rest;
    }
    if (v >= 10)
        memcpy(end -= 2, digit_pairs + 2 * v, 2);
    else
        *--end = (char)('0' + v);
    return end;
}

void sv_buf_u64(struct sv_buf *b, uint64_t v)
{
    char text[20], *at = decimal_before(text + sizeof text, v);
    sv_buf_add(b, at, (size_t)(text + sizeof text - at));
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

void sv_buf_i64(struct sv_buf *b, int64_t v)
{
    char text[21], *at = decimal_before(text + sizeof text, magnitude(v));
    if (v < 0)
        *--at = '-';
    sv_buf_add(b, at, (size_t)(text + sizeof text - at));
}

void sv_buf_hex(struct sv_buf *b, uint64_t v)
{
    char text[16], *end = text + sizeof text, *at = end;
    do
        *--at = "0123456789abcdef"[v & 15];
    while ((v >>= 4) != 0);
    sv_buf_add(b, at, (size_t)(end - at));
}

void sv_buf_us3(struct sv_buf *b, int64_t ns)
{
    char text[24], *end = text + sizeof text;
    uint64_t u = magnitude(ns), us = u / 1000, rest = u - us * 1000;
    end[-4] = '.';
    end[-3] = (char)('0' + rest / 100);
    memcpy(end - 2, digit_pairs + 2 * (rest % 100), 2);
    char *at = decimal_before(end - 4, us);
    if (ns < 0)
        *--at = '-';
    sv_buf_add(b, at, (size_t)(end - at));
}

/* Most doubles in traces are short decimals (0.25, 4.571429): digits / 10^k with few of both.
 * Division of two integers that doubles hold exactly is correctly rounded, as is reading the text,
 * so equality proves that the text reads back as d. Ten times faster than printf. */
static bool short_decimal(struct sv_buf *b, double d)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    double size = fabs(d);
    if (!(size >= 1e-4 && size < 1e9))
        return false;
    for (unsigned k = 1; k < sizeof powers / sizeof powers[0]; k++) {
        double digits = nearbyint(size * powers[k]);
        if (digits >= 9e15)
            return false;
        if (digits / powers[k] != size)
            continue;
        uint64_t all = (uint64_t)digits, unit = (uint64_t)powers[k], whole = all / unit;
        char text[40], *end = text + sizeof text, *at = decimal_before(end, all - whole * unit);
        while (end - at < (ptrdiff_t)k)
            *--at = '0';
        *--at = '.';
        at = decimal_before(at, whole);
        if (d < 0)
            *--at = '-';
        sv_buf_add(b, at, (size_t)(end - at));
        return true;
    }
    return false;
}

void sv_buf_double(struct sv_buf *b, double d)
{
    if (isnan(d)) {
        sv_buf_str(b, "nan");
        return;
    }
    if (isinf(d)) {
        sv_buf_str(b, d < 0 ? "-inf" : "inf");
        return;
    }
    if (d > -1e15 && d < 1e15 && d == (double)(int64_t)d && !(d == 0 && signbit(d))) {
        sv_buf_i64(b, (int64_t)d);
        sv_buf_str(b, ".0"); /* so that it reads back as a double */
        return;
    }
    if (short_decimal(b, d))
        return;
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    if (!strpbrk(text, ".e"))
        sv_buf_printf(b, "%s.0", text);
    else
        sv_buf_str(b, text);
}

void sv_buf_escaped(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)s[i];
        size_t n = sv_printable_length(s + i, len - i);
        if (c == '\n')
            sv_buf_str(b, "\\n");
        else if (c == '\t')
            sv_buf_str(b, "\\t");
        else if (c == '\r')
            sv_buf_str(b, "\\r");
        else if (c == '\\')
            sv_buf_str(b, "\\\\");
        else if (n == 0)
            sv_buf_printf(b, "\\x%02x", c);
        else
            sv_buf_add(b, s + i, n);
        i += n ? n : 1;
    }
}

const char *sv_buf_cstr(struct sv_buf *b)
{
    if (!sv_buf_reserve(b, 1))
        return "";
    b->data[b->len] = '\0';
    return (const char *)b->data;
}

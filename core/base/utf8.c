/* UTF-8 validation and encoding, by the table of well-formed sequences of the Unicode standard
 * (3-7).
 *
 * Called by the JSON writer, the readers that must say where a text is broken, and the printing of
 * text for people. */
#include "core/base/utf8.h"

#include "core/base/buf.h"

#include <assert.h>

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t sv_utf8_length(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s;
    if (len == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2)
        return 0;
    if (p[0] < 0xe0)
        return len >= 2 && is_tail(p[1]) ? 2 : 0;
    if (p[0] < 0xf0) {
        if (len < 3 || !is_tail(p[1]) || !is_tail(p[2]))
            return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
            return 0;
        return 3;
    }
    if (p[0] > 0xf4 || len < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]))
        return 0;
    if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return 4;
}

size_t sv_utf8_valid(const char *s, size_t len)
{
    size_t i = 0;
    while (i < len) {
        uint64_t word;
        while (len - i >= sizeof word) {
            memcpy(&word, s + i, sizeof word);
            if (word & 0x8080808080808080u)
                break;
            i += sizeof word;
        }
        if (i == len)
            break;
        size_t n = sv_utf8_length(s + i, len - i);
        if (n == 0)
            return i;
        i += n;
    }
    return len;
}

void sv_utf8_put_escape(char *at, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    at[0] = '\\';
    at[1] = 'x';
    at[2] = hex[byte >> 4];
    at[3] = hex[byte & 15];
}

size_t sv_utf8_escaped(const char *s, size_t len)
{
    size_t total = len;
    for (size_t at = 0; (at += sv_utf8_valid(s + at, len - at)) < len; at++)
        total += SV_UTF8_ESCAPE - 1;
    return total;
}

void sv_buf_utf8(struct sv_buf *b, const char *s, size_t len)
{
    size_t valid;
    while ((valid = sv_utf8_valid(s, len)) < len) {
        char escape[SV_UTF8_ESCAPE];
        sv_utf8_put_escape(escape, (uint8_t)s[valid]);
        sv_buf_add(b, s, valid);
        sv_buf_add(b, escape, sizeof escape);
        s += valid + 1;
        len -= valid + 1;
    }
    sv_buf_add(b, s, len);
}

uint32_t sv_utf8_code_point(const char *s, size_t n)
{
    static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (uint8_t)s[0] & first[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((uint8_t)s[i] & 0x3f);
    return c;
}

size_t sv_utf8_encode(char *at, uint32_t c)
{
    assert(c <= 0x10ffff);
    if (c < 0x80) {
        at[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        at[0] = (char)(0xc0 | c >> 6);
        at[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        at[0] = (char)(0xe0 | c >> 12);
        at[1] = (char)(0x80 | (c >> 6 & 0x3f));
        at[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    at[0] = (char)(0xf0 | c >> 18);
    at[1] = (char)(0x80 | (c >> 12 & 0x3f));
    at[2] = (char)(0x80 | (c >> 6 & 0x3f));
    at[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t sv_utf8_columns(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((uint8_t)s[i] & 0xc0) != 0x80;
    return n;
}

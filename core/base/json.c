/* The JSON writer: values appended to a buffer, with commas, brackets and escapes that are always
 * right.
 *
 * Called by every sink and command that prints JSON. The caller nests by begin and end and may
 * flush and clear the buffer between any two calls: nothing here looks back at what was written.
 * Containers past SV_JSON_DEPTH_MAX become null and swallow what is put into them until their end.
 * It must never produce invalid JSON or invalid UTF-8, whatever bytes it is given. */
#include "core/base/json.h"

#include "core/base/json_scan.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void sv_json_init(struct sv_json *j, struct sv_buf *out)
{
    j->out = out;
    j->depth = 0;
    j->too_deep = 0;
    j->need_comma = false;
    j->after_key = false;
    j->need_line = false;
}

void sv_json_line(struct sv_json *j)
{
    j->need_line = true;
}

/* Writes the separator between two values. False when the next value must be dropped. */
static inline bool open_value(struct sv_json *j)
{
    if (__builtin_expect(j->too_deep > 0, 0))
        return false;
    if (j->after_key) {
        j->after_key = false;
        return true;
    }
    if (j->need_comma)
        sv_buf_byte(j->out, ',');
    j->need_comma = true;
    if (__builtin_expect(j->need_line, 0)) {
        sv_buf_byte(j->out, '\n');
        j->need_line = false;
    }
    return true;
}

void sv_json_begin(struct sv_json *j, char bracket)
{
    assert(bracket == '{' || bracket == '[');
    if (j->too_deep > 0 || j->depth == SV_JSON_DEPTH_MAX) {
        if (j->too_deep == 0)
            sv_json_null(j);
        j->too_deep++;
        return;
    }
    open_value(j);
    sv_buf_byte(j->out, (uint8_t)bracket);
    j->close[j->depth++] = bracket == '{' ? '}' : ']';
    j->need_comma = false;
}

void sv_json_end(struct sv_json *j)
{
    if (j->too_deep > 0) {
        j->too_deep--;
        return;
    }
    assert(j->depth > 0 && !j->after_key);
    if (j->need_line)
        sv_buf_byte(j->out, '\n');
    j->need_line = false;
    sv_buf_byte(j->out, (uint8_t)j->close[--j->depth]);
    j->need_comma = true;
}

/* ---- strings ---- */

/* The character after a backslash, 'u' for \u00XX, 0 for bytes that need no escape. */
static const char escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
    ['\t'] = 't', [0] = 'u',     [1] = 'u',    [2] = 'u',    [3] = 'u',    [4] = 'u',
    [5] = 'u',    [6] = 'u',     [7] = 'u',    [11] = 'u',   [14] = 'u',   [15] = 'u',
    [16] = 'u',   [17] = 'u',    [18] = 'u',   [19] = 'u',   [20] = 'u',   [21] = 'u',
    [22] = 'u',   [23] = 'u',    [24] = 'u',   [25] = 'u',   [26] = 'u',   [27] = 'u',
    [28] = 'u',   [29] = 'u',    [30] = 'u',   [31] = 'u',   [127] = 'u',
};

/* \u and four digits: characters past U+FFFF never need it. */
static void put_number(uint8_t *at, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    memcpy(at, "\\u", 2);
    for (int i = 0; i < 4; i++)
        at[2 + i] = (uint8_t)hex[c >> (12 - 4 * i) & 15];
}

/* A character outside ASCII: kept, by number when it acts on a terminal (JSON is printed, too), as
 * its number when it is none. */
static size_t escape_wide(uint8_t *out, size_t *out_len, const char *s, size_t len)
{
    size_t n = sv_utf8_length(s, len);
    if (n > 0 && sv_printable_length(s, n) == 0) {
        put_number(out + *out_len, sv_utf8_code_point(s, n));
        *out_len += 6;
        return n;
    }
    if (n == 0) { /* the backslash of \xNN is escaped in its turn */
        out[(*out_len)++] = '\\';
        sv_utf8_put_escape((char *)out + *out_len, (uint8_t)*s);
        *out_len += SV_UTF8_ESCAPE;
        return 1;
    }
    memcpy(out + *out_len, s, n);
    *out_len += n;
    return n;
}

/* One character that is special, at s: returns how many bytes of s it took. At most 6 bytes are
 * written. */
static size_t escape_one(uint8_t *out, size_t *out_len, const char *s, size_t len)
{
    uint8_t c = (uint8_t)*s;
    uint8_t *at = out + *out_len;
    if (c >= 0x80)
        return escape_wide(out, out_len, s, len);
    if (escapes[c] == 'u') {
        put_number(at, c);
        *out_len += 6;
    } else {
        at[0] = '\\';
        at[1] = (uint8_t)escapes[c];
        *out_len += 2;
    }
    return 1;
}

/* Are all eight bytes plain? Borrows may only add a false alarm above a true one. */
static bool are_plain8(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101u, tops = ones * 0x80;
    uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
    return ((v | (v + ones) | (v - ones * 0x20) | ((quote - ones) & ~quote) |
             ((slash - ones) & ~slash)) &
            tops) == 0;
}

/* Copies while it looks, in blocks, and stops at the first special byte: few texts have one. */
static size_t copy_clean(uint8_t *out, const char *s, size_t len)
{
    size_t i = 0;
    for (; len - i >= 16; i += 16) {
        memcpy(out + i, s + i, 16);
        unsigned n = sv_json_beyond16((const uint8_t *)s + i, 0x7e);
        if (n < 16)
            return i + n;
    }
    if (len - i >= 8) {
        uint64_t v;
        memcpy(&v, s + i, 8);
        if (are_plain8(v)) {
            memcpy(out + i, &v, 8);
            i += 8;
        }
    }
    for (; i < len; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c >= 0x80 || escapes[c] != 0)
            break;
        out[i] = c;
    }
    return i;
}

void sv_json_escape(struct sv_buf *b, const char *s, size_t len)
{
    if (!sv_buf_reserve(b, len + 8))
        return;
    b->data[b->len++] = '"';
    for (;;) {
        size_t n = copy_clean(b->data + b->len, s, len);
        b->len += n;
        s += n;
        len -= n;
        if (len == 0)
            break;
        n = escape_one(b->data, &b->len, s, len); /* its space is reserved already */
        s += n;
        len -= n;
        if (!sv_buf_reserve(b, len + 8))
            return;
    }
    b->data[b->len++] = '"';
}

void sv_json_key(struct sv_json *j, const char *key, size_t len)
{
    assert(!j->after_key && (j->too_deep > 0 || (j->depth > 0 && j->close[j->depth - 1] == '}')));
    if (!open_value(j))
        return;
    sv_json_escape(j->out, key, len);
    sv_buf_byte(j->out, ':');
    j->after_key = true;
}

void sv_json_quoted_key(struct sv_json *j, const char *quoted, size_t len)
{
    assert(!j->after_key && (j->too_deep > 0 || (j->depth > 0 && j->close[j->depth - 1] == '}')));
    if (!open_value(j))
        return;
    sv_buf_add(j->out, quoted, len);
    j->after_key = true;
}

void sv_json_text(struct sv_json *j, const char *s, size_t len)
{
    if (open_value(j))
        sv_json_escape(j->out, s, len);
}

void sv_json_cstr(struct sv_json *j, const char *s)
{
    sv_json_text(j, s, strlen(s));
}

/* ---- other values ---- */

void sv_json_i64(struct sv_json *j, int64_t v)
{
    if (open_value(j))
        sv_buf_i64(j->out, v);
}

void sv_json_i64_text(struct sv_json *j, int64_t v)
{
    char text[24];
    sv_json_text(j, text, (size_t)snprintf(text, sizeof text, "%" PRId64, v));
}

void sv_json_u64_text(struct sv_json *j, uint64_t v)
{
    char text[24];
    sv_json_text(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, v));
}

void sv_json_u64(struct sv_json *j, uint64_t v)
{
    if (open_value(j))
        sv_buf_u64(j->out, v);
}

void sv_json_put_double(struct sv_buf *b, double d)
{
    if (isnan(d))
        sv_buf_str(b, "\"NaN\"");
    else if (isinf(d))
        sv_buf_str(b, d < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        sv_buf_double(b, d);
}

void sv_json_double(struct sv_json *j, double d)
{
    if (open_value(j))
        sv_json_put_double(j->out, d);
}

void sv_json_us3(struct sv_json *j, int64_t ns)
{
    if (open_value(j))
        sv_buf_us3(j->out, ns);
}

void sv_json_hex(struct sv_json *j, uint64_t v)
{
    if (!open_value(j))
        return;
    sv_buf_add(j->out, "\"0x", 3);
    sv_buf_hex(j->out, v);
    sv_buf_byte(j->out, '"');
}

void sv_json_bool(struct sv_json *j, bool v)
{
    if (open_value(j))
        sv_buf_str(j->out, v ? "true" : "false");
}

void sv_json_null(struct sv_json *j)
{
    if (open_value(j))
        sv_buf_str(j->out, "null");
}

/* In valid JSON what acts on a terminal is in a string, where its number means the same, or a
 * carriage return between values. */
static void add_raw(struct sv_buf *b, const char *s, size_t len)
{
    while (len > 0) {
        uint8_t number[6];
        size_t run = sv_printable_run(s, len), n = sv_utf8_length(s + run, len - run);
        sv_buf_add(b, s, run);
        s += run;
        len -= run;
        if (n == 0 || *s == '\n' || *s == '\t') {
            n = len > 0;
            sv_buf_add(b, s, n);
        } else if (*s == '\r') {
            sv_buf_byte(b, ' ');
        } else {
            put_number(number, sv_utf8_code_point(s, n));
            sv_buf_add(b, number, sizeof number);
        }
        s += n;
        len -= n;
    }
}

void sv_json_raw(struct sv_json *j, const char *json, size_t len)
{
    if (open_value(j))
        add_raw(j->out, json, len);
}

void sv_json_members(struct sv_json *j, const char *json, size_t len)
{
    if (len > 0 && open_value(j))
        sv_buf_add(j->out, json, len);
}

/* JSON numbers, truth values and texts to the bytes of a tensor, and back: see infer_values.h. */
#include "server/infer_values.h"

#include "core/base/json_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sv_values_have_json(enum sv_datatype type)
{
    return type != SV_TYPE_FP16 && type != SV_TYPE_BF16;
}

static bool is_whole(enum sv_datatype t)
{
    return t >= SV_TYPE_UINT8 && t <= SV_TYPE_INT64;
}

static bool is_signed(enum sv_datatype t)
{
    return t >= SV_TYPE_INT8 && t <= SV_TYPE_INT64;
}

bool sv_value_put_whole(enum sv_datatype type, bool is_negative, uint64_t magnitude, uint8_t *to)
{
    size_t size = sv_datatype_size(type);
    uint64_t most = UINT64_MAX >> (64 - size * 8);
    if (is_signed(type))
        most = (most >> 1) + is_negative;
    else if (is_negative && magnitude)
        return false;
    if (magnitude > most)
        return false;
    uint64_t v = is_negative ? 0 - magnitude : magnitude;
    memcpy(to, &v, size); /* little-endian, as this machine */
    return true;
}

/* ---- reading ---- */

static int refuse(enum sv_datatype type, struct sv_err *err)
{
    const char *what = type == SV_TYPE_BYTES  ? "texts"
                       : type == SV_TYPE_BOOL ? "truth values"
                       : is_whole(type)       ? "whole numbers within its range"
                                              : "numbers";
    return sv_error(err, SV_EUSAGE, "data of %s must be an array of %s", sv_datatype_name(type),
                    what);
}

/* 12.0 and 1.2e1 are whole, too: some clients write every number so. */
static bool whole_of(const struct sv_json_number *n, uint64_t *out)
{
    int64_t v;
    if (n->is_integer && n->exp10 == 0 && !n->cut && !n->cut_more) {
        *out = n->digits;
        return true;
    }
    struct sv_json_number plain = *n;
    plain.is_negative = false;
    if (sv_json_number_int(&plain, 0, &v) != SV_JSON_EXACT)
        return false;
    *out = (uint64_t)v;
    return true;
}

/* One value that is not a text; the byte after it, or NULL. */
static const uint8_t *read_plain(enum sv_datatype type, const uint8_t *at, const uint8_t *end,
                                 uint8_t *to)
{
    struct sv_json_number n;
    uint64_t whole;
    if (type == SV_TYPE_BOOL && (*at == 't' || *at == 'f')) {
        *to = *at == 't';
        return at + (*at == 't' ? 4 : 5);
    }
    const uint8_t *next = sv_json_number(at, end, &n);
    if (!next)
        return NULL;
    if (type == SV_TYPE_FP32 || type == SV_TYPE_FP64) {
        double d = sv_json_number_double(&n, at, (size_t)(next - at));
        float f = (float)d;
        memcpy(to, type == SV_TYPE_FP64 ? (const void *)&d : (const void *)&f,
               sv_datatype_size(type));
        return next;
    }
    if (!whole_of(&n, &whole))
        return NULL;
    if (type == SV_TYPE_BOOL) {
        *to = whole == 1;
        return whole <= 1 && !n.is_negative ? next : NULL;
    }
    return sv_value_put_whole(type, n.is_negative, whole, to) ? next : NULL;
}

/* At the quote; the byte after the closing one. */
static const uint8_t *read_text(const uint8_t *at, const uint8_t *end, uint8_t *to, size_t *len)
{
    const uint8_t *from = ++at;
    unsigned oddities = 0;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    if (at >= end)
        return NULL;
    uint32_t n =
        (uint32_t)sv_json_unescape(from, (size_t)(at - from), (char *)to + sizeof n, &oddities);
    memcpy(to, &n, sizeof n);
    *len += sizeof n + n;
    return at + 1;
}

static bool is_between(uint8_t c)
{
    return c == '[' || c == ']' || c == ',' || sv_json_is_blank(c);
}

/* A text of n bytes becomes at most 4 + n; the quotes and what is between make up for half of the
 * 4. */
static size_t room_for(enum sv_datatype type, size_t json_len, size_t n)
{
    return type == SV_TYPE_BYTES ? json_len + 4 * n + 16 : n * sv_datatype_size(type) + 16;
}

int sv_values_read(enum sv_datatype type, const char *json, size_t len, size_t n,
                   struct sv_tensor_value *out, struct sv_err *err)
{
    const uint8_t *at = (const uint8_t *)json, *end = at + len;
    size_t found = 0, size = sv_datatype_size(type);
    if (len == 0 || *at != '[')
        return refuse(type, err);
    /* Each value is at least one byte and one between: nothing is allocated for a shape that the
     * text cannot fill. */
    if (n > len)
        return sv_error(err, SV_EUSAGE, "data has fewer numbers than its shape says");
    uint8_t *to = out->bytes = malloc(room_for(type, len, n));
    if (!to)
        return sv_error(err, SV_ENOMEM, "out of memory");
    for (out->len = 0; at < end; found++) {
        while (at < end && is_between(*at))
            at++;
        if (at == end)
            break;
        if (found == n && (*at == '"') == (type == SV_TYPE_BYTES))
            return sv_error(err, SV_EUSAGE, "data has more numbers than its shape says");
        if (found == n || (*at == '"') != (type == SV_TYPE_BYTES))
            return refuse(type, err);
        if (type == SV_TYPE_BYTES)
            at = read_text(at, end, to + out->len, &out->len);
        else
            at = read_plain(type, at, end, to + found * size);
        if (!at)
            return refuse(type, err);
    }
    if (found != n)
        return sv_error(err, SV_EUSAGE, "data has fewer numbers than its shape says");
    out->len = type == SV_TYPE_BYTES ? out->len : n * size;
    return 0;
}

/* ---- writing ---- */

/* Nine digits bring every float back exactly. */
static void write_float(struct sv_json *j, float f)
{
    char number[32];
    int len = snprintf(number, sizeof number, "%.9g", (double)f);
    if (f - f == 0)
        sv_json_raw(j, number, (size_t)len);
    else
        sv_json_double(j, (double)f);
}

static void write_whole(struct sv_json *j, enum sv_datatype type, const uint8_t *at)
{
    size_t size = sv_datatype_size(type);
    uint64_t v = 0;
    memcpy(&v, at, size);
    if (!is_signed(type)) {
        sv_json_u64(j, v);
        return;
    }
    unsigned shift = (unsigned)(64 - size * 8);
    sv_json_i64(j, (int64_t)(v << shift) >> shift);
}

static void write_texts(struct sv_json *j, const uint8_t *bytes, size_t len)
{
    for (size_t at = 0; len - at >= 4;) {
        uint32_t n;
        memcpy(&n, bytes + at, sizeof n);
        at += sizeof n;
        if (len - at < n)
            return;
        sv_json_text(j, (const char *)bytes + at, n);
        at += n;
    }
}

void sv_values_write(struct sv_json *j, enum sv_datatype type, const uint8_t *bytes, size_t len)
{
    size_t size = sv_datatype_size(type);
    if (type == SV_TYPE_BYTES) {
        write_texts(j, bytes, len);
        return;
    }
    for (size_t at = 0; at + size <= len; at += size) {
        float f;
        double d;
        if (type == SV_TYPE_BOOL) {
            sv_json_bool(j, bytes[at] != 0);
        } else if (type == SV_TYPE_FP32) {
            memcpy(&f, bytes + at, sizeof f);
            write_float(j, f);
        } else if (type == SV_TYPE_FP64) {
            memcpy(&d, bytes + at, sizeof d);
            sv_json_double(j, d);
        } else {
            write_whole(j, type, bytes + at);
        }
    }
}

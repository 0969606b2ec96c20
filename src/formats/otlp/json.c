/* OTLP's JSON form to protobuf and back: see json.h. Called by the reader of files, by `stave
 * listen` and by the exporter. Input is hostile: nesting is bounded, and nothing is believed past
 * `end`. */
#include "formats/otlp/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/base/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Messages in messages: those of a request, and two for each level of values. */
enum { MESSAGES_MAX = 8 + 3 * OTLP_DEPTH_MAX };

struct parser {
    const uint8_t *p, *end;
    struct sv_buf *out;
    struct sv_otlp_json *how;
    const struct sv_json_scan *scan;
    unsigned depth;
};

static bool fail(struct parser *s, const char *why)
{
    if (!s->how->why) {
        s->how->at = s->p;
        s->how->why = why;
    }
    return false;
}

static bool blank_slowly(struct parser *s)
{
    s->p = sv_json_solid(s->p, s->end);
    return s->p < s->end || fail(s, "it breaks off");
}

/* Most programs write no blanks. */
static inline bool blank(struct parser *s)
{
    return (s->p<s->end && * s->p> ' ') || blank_slowly(s);
}

static inline bool take(struct parser *s, uint8_t c, const char *why)
{
    if (!blank(s))
        return false;
    if (*s->p != c)
        return fail(s, why);
    s->p++;
    return true;
}

/* The raw text of the string at p. */
static bool text(struct parser *s, const uint8_t **from, size_t *len, bool *is_plain)
{
    if (!take(s, '"', "a text is expected"))
        return false;
    *from = s->p;
    *is_plain = true;
    for (;;) {
        const uint8_t *q = sv_json_special(s->scan, s->p, s->end);
        if (q == s->end) {
            s->p = q;
            return fail(s, "a text breaks off");
        }
        s->p = q + 1;
        if (*q == '"') {
            *len = (size_t)(q - *from);
            return true;
        }
        *is_plain = false;
        if (*q == '\\')
            s->p++;
        if (s->p > s->end)
            s->p = s->end;
    }
}

static bool skip(struct parser *s)
{
    struct sv_json_skip state = {0};
    const uint8_t *q = sv_json_skip(&state, s->scan, s->p, s->end);
    if (!q)
        return fail(s, "a value breaks off");
    s->p = q;
    return true;
}

static bool literal(struct parser *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

/* ---- values ---- */

static bool put_string(struct parser *s, uint32_t id)
{
    const uint8_t *from;
    size_t len;
    bool is_plain;
    if (!text(s, &from, &len, &is_plain))
        return false;
    if (is_plain) {
        sv_put_bytes(s->out, id, from, len);
        return true;
    }
    unsigned oddities = 0;
    size_t mark = sv_put_begin(s->out, id);
    if (sv_buf_reserve(s->out, len)) {
        char *to = (char *)s->out->data + s->out->len;
        s->out->len += sv_json_unescape(from, len, to, &oddities);
    }
    sv_put_end(s->out, mark);
    return true;
}

static inline int hex_digit(uint8_t c)
{
    enum { NONE = -1 };
    static const int8_t values[] = {
        0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    NONE, NONE, NONE, NONE,
        NONE, NONE, NONE, 10,   11,   12,   13,   14,   15,   NONE, NONE, NONE, NONE, NONE,
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
        NONE, NONE, NONE, NONE, NONE, NONE, NONE, 10,   11,   12,   13,   14,   15};
    unsigned at = (unsigned)c - '0';
    return at < sizeof values ? values[at] : NONE;
}

static bool put_hex(struct parser *s, uint32_t id)
{
    const uint8_t *from;
    size_t len;
    bool is_plain;
    uint8_t bytes[32];
    if (!text(s, &from, &len, &is_plain))
        return false;
    if (len == 0)
        return true;
    for (size_t i = 0; i + 1 < len && i / 2 < sizeof bytes; i += 2) {
        int high = hex_digit(from[i]), low = hex_digit(from[i + 1]);
        if (high < 0 || low < 0)
            return fail(s, "an id is not hexadecimal");
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    if (len % 2 || len / 2 > sizeof bytes)
        return fail(s, "an id has a length that no id has");
    sv_put_bytes(s->out, id, bytes, len / 2);
    return true;
}

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static bool put_base64(struct parser *s, uint32_t id)
{
    const uint8_t *from;
    size_t len;
    bool is_plain;
    uint32_t bits = 0;
    unsigned n = 0;
    if (!text(s, &from, &len, &is_plain))
        return false;
    while (len > 0 && from[len - 1] == '=')
        len--;
    size_t mark = sv_put_begin(s->out, id);
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(from[i]);
        if (digit < 0)
            return fail(s, "bytes are not base64");
        bits = bits << 6 | (uint32_t)digit;
        n += 6;
        if (n >= 8) {
            n -= 8;
            sv_buf_byte(s->out, (uint8_t)(bits >> n));
        }
    }
    sv_put_end(s->out, mark);
    return true;
}

/* A whole number, as text or as number; up to UINT64_MAX, or down to INT64_MIN. */
static bool whole(struct parser *s, uint64_t *out, bool *is_negative)
{
    struct sv_json_number n;
    bool is_text = *s->p == '"';
    const uint8_t *from = s->p + is_text, *q = sv_json_number(from, s->end, &n);
    int64_t value;
    if (!q || q >= s->end || (is_text && *q != '"'))
        return fail(s, "a whole number is expected");
    *is_negative = n.is_negative;
    if (n.is_integer && n.exp10 == 0 && !n.cut && !n.cut_more &&
        (!n.is_negative || n.digits <= (uint64_t)INT64_MAX + 1))
        *out = n.is_negative ? 0 - n.digits : n.digits;
    else if (sv_json_number_int(&n, 0, &value) == SV_JSON_EXACT)
        *out = (uint64_t)value;
    else
        return fail(s, "a number does not fit");
    s->p = q + is_text;
    return true;
}

static bool put_number(struct parser *s, const struct sv_otlp_field *f)
{
    uint64_t v = 0;
    bool is_negative = false;
    if (!whole(s, &v, &is_negative))
        return false;
    bool is_signed = f->type == OTLP_TYPE_INT64 || f->type == OTLP_TYPE_ENUM;
    if ((is_negative && v != 0 && !is_signed) ||
        (!is_negative && f->type == OTLP_TYPE_INT64 && v > INT64_MAX) ||
        (v > UINT32_MAX && (f->type == OTLP_TYPE_UINT32 || f->type == OTLP_TYPE_FIXED32)))
        return fail(s, "a number does not fit");
    if (f->type == OTLP_TYPE_FIXED64) {
        sv_put_fixed64(s->out, f->id, v);
    } else if (f->type == OTLP_TYPE_FIXED32) {
        uint32_t narrow = (uint32_t)v;
        sv_put_varint(s->out, (uint64_t)f->id << 3 | SV_PB_FIXED32);
        sv_buf_add(s->out, &narrow, sizeof narrow);
    } else {
        sv_put_u64(s->out, f->id, v);
    }
    return true;
}

static bool put_enum(struct parser *s, const struct sv_otlp_field *f)
{
    const uint8_t *from;
    size_t len;
    bool is_plain;
    if (*s->p != '"')
        return put_number(s, f);
    if (!text(s, &from, &len, &is_plain))
        return false;
    for (size_t i = 0; f->names[i]; i++) {
        if (strlen(f->names[i]) == len && memcmp(f->names[i], from, len) == 0) {
            sv_put_u64(s->out, f->id, i);
            return true;
        }
    }
    return fail(s, "an enumeration has no such name");
}

static bool put_double(struct parser *s, uint32_t id)
{
    struct sv_json_number n;
    bool is_text = *s->p == '"';
    double d;
    const uint8_t *from = s->p + is_text, *q = sv_json_number(from, s->end, &n);
    if (q) {
        d = sv_json_number_double(&n, from, (size_t)(q - from));
    } else {
        s->p = from;
        if (is_text && literal(s, "NaN"))
            d = (double)NAN;
        else if (is_text && literal(s, "Infinity"))
            d = (double)INFINITY;
        else if (is_text && literal(s, "-Infinity"))
            d = -(double)INFINITY;
        else
            return fail(s, "a number is expected");
        q = s->p;
    }
    if (q >= s->end || (is_text && *q != '"'))
        return fail(s, "a number is expected");
    s->p = q + is_text;
    sv_put_double(s->out, id, d);
    return true;
}

static bool put_bool(struct parser *s, uint32_t id)
{
    bool is_true = literal(s, "true");
    if (!is_true && !literal(s, "false"))
        return fail(s, "true or false is expected");
    sv_put_u64(s->out, id, is_true);
    return true;
}

/* ---- messages ---- */

static bool message(struct parser *s, const struct sv_otlp_message *m);

static bool put_message(struct parser *s, const struct sv_otlp_field *f)
{
    if (s->depth == MESSAGES_MAX)
        return fail(s, "values are nested too deep");
    s->depth++;
    size_t mark = sv_put_begin(s->out, f->id);
    bool ok = message(s, f->message);
    sv_put_end(s->out, mark);
    s->depth--;
    return ok;
}

static bool one_value(struct parser *s, const struct sv_otlp_field *f)
{
    switch ((enum sv_otlp_type)f->type) {
    case OTLP_TYPE_MESSAGE: return put_message(s, f);
    case OTLP_TYPE_STRING: return put_string(s, f->id);
    case OTLP_TYPE_HEX: return put_hex(s, f->id);
    case OTLP_TYPE_BASE64: return put_base64(s, f->id);
    case OTLP_TYPE_BOOL: return put_bool(s, f->id);
    case OTLP_TYPE_ENUM: return put_enum(s, f);
    case OTLP_TYPE_DOUBLE: return put_double(s, f->id);
    case OTLP_TYPE_UINT32:
    case OTLP_TYPE_INT64:
    case OTLP_TYPE_FIXED64:
    case OTLP_TYPE_FIXED32: return put_number(s, f);
    }
    return false;
}

/* After a member or an element: is there another one? */
static bool more(struct parser *s, uint8_t close, bool *is_last)
{
    if (!blank(s))
        return false;
    *is_last = *s->p == close;
    if (!*is_last && *s->p != ',')
        return fail(s, "a comma or a closing bracket is expected");
    s->p++;
    return true;
}

static bool list(struct parser *s, const struct sv_otlp_field *f)
{
    bool is_last = false;
    if (!take(s, '[', "a list is expected") || !blank(s))
        return false;
    if (*s->p == ']') {
        s->p++;
        return true;
    }
    while (!is_last) {
        if (!blank(s) || !one_value(s, f) || !more(s, ']', &is_last))
            return false;
    }
    return true;
}

/* The bytes at `key` have a pad: both sides may be loaded whole. */
static inline bool is_named(const struct sv_otlp_field *f, const uint8_t *key)
{
    const uint8_t *name = (const uint8_t *)f->name;
    unsigned n = f->name_len;
    return name[0] == key[0] && sv_json_same16(name, key, n < 16 ? n : 16) &&
           (n <= 16 || sv_json_same16(name + 16, key + 16, n - 16));
}

/* The field whose name, a quote and a colon are at p, which is passed; NULL: none. Most programs
 * write the members in the order of the table: `guess` is the one after the last. */
static inline const struct sv_otlp_field *known(struct parser *s, const struct sv_otlp_message *m,
                                                size_t *guess)
{
    const uint8_t *key = s->p + 1;
    size_t k = *guess;
    if (*s->p != '"')
        return NULL;
    for (size_t i = 0; i < m->n; i++, k = k + 1 < m->n ? k + 1 : 0) {
        const struct sv_otlp_field *f = &m->fields[k];
        if (!is_named(f, key) || (size_t)(s->end - key) < f->name_len + 2u ||
            key[f->name_len] != '"' || key[f->name_len + 1] != ':')
            continue;
        *guess = k + 1 < m->n ? k + 1 : 0;
        s->p = key + f->name_len + 2;
        return f;
    }
    return NULL;
}

/* The same where something else is between them. */
static const struct sv_otlp_field *named(const struct sv_otlp_message *m, const uint8_t *key,
                                         size_t len)
{
    for (size_t k = 0; k < m->n; k++)
        if (m->fields[k].name_len == len && memcmp(m->fields[k].name, key, len) == 0)
            return &m->fields[k];
    return NULL;
}

static bool member(struct parser *s, const struct sv_otlp_message *m, size_t *guess)
{
    const uint8_t *key = NULL;
    size_t len = 0;
    bool is_plain;
    if (!blank(s))
        return false;
    const struct sv_otlp_field *f = known(s, m, guess);
    if (!f) {
        if (!text(s, &key, &len, &is_plain) || !take(s, ':', "a colon is expected"))
            return false;
        f = named(m, key, len);
    }
    if (!blank(s))
        return false;
    if (!f) {
        if (s->how->n_unknown++ == 0) {
            s->how->unknown = key;
            s->how->unknown_len = len;
        }
        return skip(s);
    }
    if (*s->p == 'n' && literal(s, "null"))
        return true;
    return f->is_repeated ? list(s, f) : one_value(s, f);
}

static bool message(struct parser *s, const struct sv_otlp_message *m)
{
    bool is_last = false;
    size_t guess = 0;
    if (!take(s, '{', "an object is expected") || !blank(s))
        return false;
    if (*s->p == '}') {
        s->p++;
        return true;
    }
    while (!is_last)
        if (!member(s, m, &guess) || !more(s, '}', &is_last))
            return false;
    return true;
}

const uint8_t *sv_otlp_from_json(const struct sv_otlp_message *m, const uint8_t *p,
                                 const uint8_t *end, struct sv_buf *out, struct sv_otlp_json *how)
{
    struct parser s = {.p = p, .end = end, .out = out, .how = how, .scan = sv_json_scan_best()};
    how->why = NULL;
    if (!message(&s, m))
        return NULL;
    if (out->failed) {
        fail(&s, "it is too large");
        return NULL;
    }
    return s.p;
}

/* ---- the other way ---- */

static void hex_text(struct sv_json *j, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char to[64];
    n = n < sizeof to / 2 ? n : sizeof to / 2;
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    sv_json_text(j, to, 2 * n);
}

static void base64_text(struct sv_json *j, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *to = sv_alloc(n / 3 * 4 + 5), *at = to;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t left = n - i < 3 ? (uint32_t)(n - i) : 3;
        uint32_t bits = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (left > 2 ? bytes[i + 2] : 0);
        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[bits & 63] : '=';
    }
    sv_json_text(j, to, (size_t)(at - to));
    free(to);
}

static void number_text(struct sv_json *j, uint64_t v, bool is_signed)
{
    char to[24];
    int n = is_signed ? snprintf(to, sizeof to, "%lld", (long long)v)
                      : snprintf(to, sizeof to, "%llu", (unsigned long long)v);
    sv_json_text(j, to, (size_t)n);
}

static bool write_message(const struct sv_otlp_message *m, struct sv_pb w, struct sv_json *j,
                          unsigned depth);

static bool write_value(const struct sv_otlp_field *f, const struct sv_pb_field *v,
                        struct sv_json *j, unsigned depth)
{
    struct sv_pb sub = sv_pb_sub(v);
    size_t len = (size_t)(sub.end - sub.p);
    switch ((enum sv_otlp_type)f->type) {
    case OTLP_TYPE_MESSAGE:
        return depth < MESSAGES_MAX && write_message(f->message, sub, j, depth + 1);
    case OTLP_TYPE_STRING: sv_json_text(j, (const char *)sub.p, len); break;
    case OTLP_TYPE_HEX: hex_text(j, sub.p, len); break;
    case OTLP_TYPE_BASE64: base64_text(j, sub.p, len); break;
    case OTLP_TYPE_BOOL: sv_json_bool(j, v->u != 0); break;
    case OTLP_TYPE_DOUBLE: sv_json_double(j, sv_pb_double(v)); break;
    case OTLP_TYPE_ENUM:
    case OTLP_TYPE_UINT32:
    case OTLP_TYPE_FIXED32: sv_json_u64(j, v->u & UINT32_MAX); break;
    case OTLP_TYPE_INT64: number_text(j, v->u, true); break;
    case OTLP_TYPE_FIXED64: number_text(j, v->u, false); break;
    }
    return true;
}

/* All elements of a list, which need not follow each other. */
static bool write_list(const struct sv_otlp_field *f, struct sv_pb w, struct sv_json *j,
                       unsigned depth)
{
    struct sv_pb_field v;
    bool ok = true;
    sv_json_begin(j, '[');
    while (ok && sv_pb_next(&w, &v))
        if (v.id == f->id && v.type == sv_otlp_wire_type(f))
            ok = write_value(f, &v, j, depth);
    sv_json_end(j);
    return ok && !w.bad;
}

static bool write_message(const struct sv_otlp_message *m, struct sv_pb w, struct sv_json *j,
                          unsigned depth)
{
    struct sv_pb all = w;
    struct sv_pb_field v;
    uint32_t seen = 0;
    bool ok = true;
    sv_json_begin(j, '{');
    while (ok && sv_pb_next(&w, &v)) {
        const struct sv_otlp_field *f = sv_otlp_field(m, v.id);
        if (!f || v.type != sv_otlp_wire_type(f) || seen >> f->id & 1)
            continue;
        seen |= 1u << f->id;
        sv_json_key(j, f->name, f->name_len);
        ok = f->is_repeated ? write_list(f, all, j, depth) : write_value(f, &v, j, depth);
    }
    sv_json_end(j);
    return ok && !w.bad;
}

bool sv_otlp_to_json(const struct sv_otlp_message *m, const uint8_t *bytes, size_t len,
                     struct sv_json *j)
{
    return write_message(m, len ? sv_pb_at(bytes, len) : (struct sv_pb){0}, j, 0);
}

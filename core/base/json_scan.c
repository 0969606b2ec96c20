/* JSON scanning: skipping, checking, unescaping, numbers.
 *
 * Called by readers of JSON through json_scan.h. Numbers never pass through a double on the way to
 * an integer, and the C library's conversion is asked only for doubles that the exact shortcut
 * cannot give, in the C locale whatever the program's is. */
#include "core/base/json_scan.h"
#include "core/base/hex.h"
#include "core/base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- skipping ---- */

/* The byte after the closing quote, or NULL: the state remembers where inside the string [p, end)
 * ended. */
static const uint8_t *skip_string(struct sv_json_skip *s, const struct sv_json_scan *scan,
                                  const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        if (s->escaped) {
            s->escaped = false;
            p++;
            continue;
        }
        p = scan->quote(p, end);
        if (p == end)
            break;
        if (*p++ == '"') {
            s->in_string = false;
            return p;
        }
        s->escaped = true;
    }
    return NULL;
}

static const uint8_t *skip_scalar(struct sv_json_skip *s, const uint8_t *p, const uint8_t *end)
{
    s->in_scalar = true;
    for (; p < end; p++) {
        if (sv_json_is_blank(*p) || *p == ',' || *p == '}' || *p == ']' || *p == ':' || *p == '{' ||
            *p == '[' || *p == '"' || *p == 0)
            return p;
    }
    return NULL;
}

const uint8_t *sv_json_skip(struct sv_json_skip *s, const struct sv_json_scan *scan,
                            const uint8_t *p, const uint8_t *end)
{
    if (s->in_scalar)
        return skip_scalar(s, p, end);
    while (p < end) {
        if (s->in_string) {
            p = skip_string(s, scan, p, end);
            if (!p)
                return NULL;
            if (s->depth == 0)
                return p;
            continue;
        }
        if (s->depth)
            p = scan->structure(p, end);
        if (p == end)
            return NULL;
        uint8_t c = *p++;
        if (c == '"')
            s->in_string = true;
        else if (c == '{' || c == '[')
            s->depth++;
        else if (s->depth == 0)
            return skip_scalar(s, p, end);
        else if (--s->depth == 0)
            return p;
    }
    return NULL;
}

/* ---- checking ---- */

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Four hexadecimal digits, or -1. */
static int hex4(const uint8_t *p, const uint8_t *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int d = sv_hex_digit((char)p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* The byte after the string whose opening quote is at p, or NULL when it is not valid. */
static const uint8_t *valid_string(const uint8_t *p, const uint8_t *end)
{
    for (p++; p < end && *p >= 0x20; p++) {
        if (*p == '"')
            return p + 1;
        if (*p != '\\')
            continue;
        if (++p == end)
            return NULL;
        if (*p == 'u') {
            if (hex4(p + 1, end) < 0)
                return NULL;
            p += 4;
        } else if (*p == 0 || !strchr("\"\\/bfnrt", *p)) {
            return NULL;
        }
    }
    return NULL;
}

static const uint8_t *valid_scalar(const uint8_t *p, const uint8_t *end)
{
    static const char *const words[] = {"true", "false", "null"};
    if (*p == '"')
        return valid_string(p, end);
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(end - p) >= n && memcmp(p, words[i], n) == 0)
            return p + n;
    }
    struct sv_json_number n;
    const uint8_t *q = is_digit(*p) || *p == '-' ? sv_json_number(p, end, &n) : NULL;
    return q && !n.is_odd ? q : NULL;
}

static const uint8_t *blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && sv_json_is_blank(*p))
        p++;
    return p;
}

/* Key and colon of an object member; the byte where its value starts, or NULL. */
static const uint8_t *valid_key(const uint8_t *p, const uint8_t *end)
{
    p = blanks(p, end);
    if (p == end || *p != '"' || !(p = valid_string(p, end)))
        return NULL;
    p = blanks(p, end);
    return p < end && *p == ':' ? p + 1 : NULL;
}

bool sv_json_valid(const uint8_t *p, size_t len)
{
    const uint8_t *end = p + len;
    char open[SV_JSON_VALID_DEPTH]; /* the closing bracket of each open container */
    size_t depth = 0;
    if (sv_utf8_valid((const char *)p, len) != len)
        return false;
    for (;;) {
        p = blanks(p, end); /* a value starts here */
        if (p == end)
            return false;
        if (*p == '{' || *p == '[') {
            if (depth == SV_JSON_VALID_DEPTH)
                return false;
            open[depth++] = *p == '{' ? '}' : ']';
            p = blanks(p + 1, end);
            if (p == end || *p != (uint8_t)open[depth - 1]) {
                if (open[depth - 1] == '}' && !(p = valid_key(p, end)))
                    return false;
                continue;
            }
        } else if ((p = valid_scalar(p, end))) {
            p = blanks(p, end);
        } else {
            return false;
        }
        while (depth && p < end && *p == (uint8_t)open[depth - 1]) {
            depth--;
            p = blanks(p + 1, end);
        }
        if (depth == 0)
            return p == end;
        if (p == end || *p++ != ',')
            return false;
        if (open[depth - 1] == '}' && !(p = valid_key(p, end)))
            return false;
    }
}

/* ---- unescaping ---- */

/* One \u escape (a pair of them where it is one character); p points after the u. */
static const uint8_t *unescape_unicode(const uint8_t *p, const uint8_t *end, char *out, size_t *n,
                                       unsigned *oddities)
{
    int high = hex4(p, end);
    if (high < 0) {
        *oddities |= SV_JSON_BAD_ESCAPE;
        memcpy(out, "\\u", 2);
        *n = 2;
        return p;
    }
    p += 4;
    uint32_t code = (uint32_t)high;
    if (high >= 0xd800 && high < 0xe000) {
        int low = high < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' ? hex4(p + 2, end)
                                                                               : -1;
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
            p += 6;
        } else {
            *oddities |= SV_JSON_LONE_SURROGATE;
            code = 0xfffd;
        }
    }
    *n = sv_utf8_encode(out, code);
    return p;
}

size_t sv_json_unescape(const uint8_t *p, size_t len, char *out, unsigned *oddities)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const uint8_t *end = p + len;
    char *o = out;
    while (p < end) {
        if (*p != '\\') {
            *oddities |= *p < 0x20 ? SV_JSON_CONTROL : 0;
            *o++ = (char)*p++;
            continue;
        }
        const char *which = p + 1 < end && p[1] ? strchr(from, p[1]) : NULL;
        if (which) {
            *o++ = to[which - from];
            p += 2;
        } else if (p + 1 < end && p[1] == 'u') {
            size_t n;
            p = unescape_unicode(p + 2, end, o, &n, oddities);
            o += n;
        } else {
            *oddities |= SV_JSON_BAD_ESCAPE;
            *o++ = (char)*p++;
        }
    }
    size_t n = (size_t)(o - out);
    if (sv_utf8_valid(out, n) != n)
        *oddities |= SV_JSON_BAD_UTF8;
    return n;
}

unsigned sv_json_text_oddities(const uint8_t *p, size_t len)
{
    unsigned oddities = sv_utf8_valid((const char *)p, len) == len ? 0 : SV_JSON_BAD_UTF8;
    for (size_t i = 0; i < len; i++)
        if (p[i] < 0x20)
            return oddities | SV_JSON_CONTROL;
    return oddities;
}

/* ---- numbers ---- */

static const uint64_t powers[] = {1ull,
                                  10ull,
                                  100ull,
                                  1000ull,
                                  10000ull,
                                  100000ull,
                                  1000000ull,
                                  10000000ull,
                                  100000000ull,
                                  1000000000ull,
                                  10000000000ull,
                                  100000000000ull,
                                  1000000000000ull,
                                  10000000000000ull,
                                  100000000000000ull,
                                  1000000000000000ull,
                                  10000000000000000ull,
                                  100000000000000000ull,
                                  1000000000000000000ull,
                                  10000000000000000000ull};

/* A run of digits, appended to the number; scale is what each digit that fits adds to the exponent
 * (0 before the point, -1 after it). Returns the byte after the run. */
static const uint8_t *read_digits(const uint8_t *p, const uint8_t *end, struct sv_json_number *out,
                                  int scale, bool *is_full)
{
    while (!*is_full && p < end && out->digits < 100000000000u) { /* eight more always fit */
        unsigned n;
        uint32_t v = sv_json_digits8(p, &n);
        if (n > (size_t)(end - p)) {
            n = (unsigned)(end - p); /* digits past the end are not ours */
            for (v = 0; p < end; p++)
                v = v * 10 + (*p - '0');
            p -= n;
        }
        out->digits = out->digits * powers[n] + v;
        out->exp10 += scale * (int)n;
        p += n;
        if (n < 8)
            return p;
    }
    for (; p < end && is_digit(*p); p++) {
        uint64_t digit = *p - '0', more;
        if (!*is_full && !__builtin_mul_overflow(out->digits, 10u, &more) &&
            !__builtin_add_overflow(more, digit, &more)) {
            out->digits = more;
            out->exp10 += scale;
            continue;
        }
        if (!*is_full)
            out->cut = (uint8_t)digit;
        else
            out->cut_more |= digit != 0;
        *is_full = true;
        if (out->exp10 < 1000000)
            out->exp10 += 1 + scale;
    }
    return p;
}

/* The exponent after e or E, saturated; NULL when there is none. */
static const uint8_t *read_exponent(const uint8_t *p, const uint8_t *end, int32_t *out)
{
    bool is_negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || !is_digit(*p))
        return NULL;
    int32_t e = 0;
    for (; p < end && is_digit(*p); p++)
        if (e < 1000000)
            e = e * 10 + (*p - '0');
    *out = is_negative ? -e : e;
    return p;
}

const uint8_t *sv_json_number(const uint8_t *p, const uint8_t *end, struct sv_json_number *out)
{
    *out = (struct sv_json_number){.is_integer = true};
    bool is_full = false;
    if (p < end && (*p == '-' || *p == '+')) {
        out->is_negative = *p == '-';
        out->is_odd = *p == '+';
        p++;
    }
    const uint8_t *whole = p;
    p = read_digits(p, end, out, 0, &is_full);
    size_t n_whole = (size_t)(p - whole), n_fraction = 0;
    if (n_whole > 1 && *whole == '0')
        out->is_odd = true;
    if (p < end && *p == '.') {
        const uint8_t *fraction = ++p;
        p = read_digits(p, end, out, -1, &is_full);
        n_fraction = (size_t)(p - fraction);
        out->is_integer = false;
        if (n_whole == 0 || n_fraction == 0)
            out->is_odd = true;
    }
    if (n_whole + n_fraction == 0)
        return NULL;
    if (p < end && (*p | 0x20) == 'e') {
        int32_t e;
        p = read_exponent(p + 1, end, &e);
        if (!p)
            return NULL;
        out->exp10 += e;
        out->is_integer = false;
    }
    return p;
}

/* Compares the part that rounding drops with one half: -1, 0, 1. *is_zero says whether it is
 * zero. */
static int against_half(uint64_t rest, uint64_t unit, const struct sv_json_number *n, bool *is_zero)
{
    bool has_cut = n->cut || n->cut_more;
    if (unit == 1) { /* all of it was cut */
        *is_zero = !has_cut;
        if (n->cut != 5)
            return n->cut < 5 ? -1 : 1;
        return n->cut_more ? 1 : 0;
    }
    *is_zero = rest == 0 && !has_cut;
    if (rest != unit - rest)
        return rest < unit - rest ? -1 : 1;
    return has_cut ? 1 : 0;
}

enum sv_json_exactness sv_json_number_int(const struct sv_json_number *n, int shift, int64_t *out)
{
    int64_t e = (int64_t)n->exp10 + shift;
    uint64_t value = n->digits;
    bool is_exact = true;
    *out = 0;
    if (n->digits == 0 && n->cut == 0)
        return SV_JSON_EXACT;
    if (e > 19)
        return SV_JSON_OVERFLOW;
    if (e > 0) {
        if (__builtin_mul_overflow(value, powers[e], &value))
            return SV_JSON_OVERFLOW;
    } else if (e < -19) {
        value = 0; /* below a tenth */
        is_exact = false;
    } else {
        uint64_t unit = powers[-e], rest = value % unit;
        int half = against_half(rest, unit, n, &is_exact);
        value /= unit;
        if (half > 0 || (half == 0 && (value & 1)))
            value++;
    }
    if (value > (uint64_t)INT64_MAX + n->is_negative)
        return SV_JSON_OVERFLOW;
    *out = n->is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return is_exact ? SV_JSON_EXACT : SV_JSON_ROUNDED;
}

static double library_double(const char *text)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d = c ? strtod_l(text, NULL, c) : strtod(text, NULL);
    if (c)
        freelocale(c);
    return d;
}

double sv_json_number_double(const struct sv_json_number *n, const uint8_t *text, size_t len)
{
    static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* Both operands are exact doubles, so one operation rounds once. */
    if (n->digits <= (uint64_t)1 << 53 && n->exp10 >= -22 && n->exp10 <= 22 && !n->cut &&
        !n->cut_more) {
        double d = (double)n->digits;
        d = n->exp10 < 0 ? d / exact_powers[-n->exp10] : d * exact_powers[n->exp10];
        return n->is_negative ? -d : d;
    }
    char copy[1024];
    if (len < sizeof copy) {
        memcpy(copy, text, len);
        copy[len] = 0;
    } else { /* past so many digits the rest matters in a tie of ties only */
        snprintf(copy, sizeof copy, "%s%llue%d", n->is_negative ? "-" : "",
                 (unsigned long long)n->digits, (int)n->exp10);
    }
    return library_double(copy);
}

bool sv_json_not_finite(const uint8_t *p, size_t len, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    bool is_signed = len > 0 && (*p == '-' || *p == '+'), is_negative = is_signed && *p == '-';
    p += is_signed;
    len -= is_signed;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].text) == len && strncasecmp(words[i].text, (const char *)p, len) == 0) {
            *out = is_negative && !isnan(words[i].value) ? -words[i].value : words[i].value;
            return true;
        }
    return false;
}

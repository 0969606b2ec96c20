/* Decimal times; see decimal.h. Called by the readers of logs. */
#include "formats/decimal.h"

#define EXPONENT_MAX 30 /* any time has fewer digits */

/* Behind the 'e': the power of ten; false: no number. */
static bool take_exponent(const char *p, const char *end, int *exponent)
{
    bool is_negative = p < end && *p == '-';
    int e = 0;
    p += p < end && (*p == '-' || *p == '+');
    if (p == end)
        return false;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        e = e < EXPONENT_MAX ? e * 10 + (*p - '0') : e;
    *exponent = is_negative ? -e : e;
    return p == end;
}

/* Digits and the power of ten that they are short of or past nanoseconds. */
struct decimal {
    uint64_t digits;
    int left; /* zeros to append; below 0: digits to drop */
};

static bool take_decimal(struct sv_text t, int decimals, struct decimal *d)
{
    bool has_point = false, has_digit = false, is_full = false;
    const char *p = t.bytes, *end = t.bytes + t.len;
    *d = (struct decimal){.left = decimals};
    for (; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (*p < '0' || *p > '9')
            return false;
        has_digit = true;
        uint64_t more;
        is_full = is_full || __builtin_mul_overflow(d->digits, 10u, &more) ||
                  __builtin_add_overflow(more, (uint64_t)(*p - '0'), &more);
        if (is_full && !has_point)
            return false; /* too long for a time, whatever its unit */
        if (is_full)
            continue; /* far past nanoseconds */
        d->digits = more;
        d->left -= has_point;
    }
    int exponent = 0;
    if (p < end && !take_exponent(p + 1, end, &exponent))
        return false;
    d->left += exponent;
    return has_digit;
}

static bool magnitude(struct sv_text t, int decimals, uint64_t *ns)
{
    struct decimal d;
    if (!take_decimal(t, decimals, &d))
        return false;
    for (; d.left < 0 && d.digits; d.left++)
        d.digits /= 10;
    for (; d.left > 0 && d.digits; d.left--)
        if (__builtin_mul_overflow(d.digits, 10u, &d.digits))
            return false;
    *ns = d.digits;
    return true;
}

bool sv_decimal_ns(struct sv_text t, int decimals, int64_t *ns)
{
    uint64_t u;
    if (!magnitude(t, decimals, &u) || u > INT64_MAX)
        return false;
    *ns = (int64_t)u;
    return true;
}

bool sv_decimal_signed_ns(struct sv_text t, int decimals, int64_t *ns)
{
    uint64_t u;
    if (t.len == 0 || t.bytes[0] != '-')
        return sv_decimal_ns(t, decimals, ns);
    if (!magnitude((struct sv_text){t.bytes + 1, t.len - 1}, decimals, &u) ||
        u > (uint64_t)INT64_MAX + 1)
        return false;
    *ns = (int64_t)(0 - u);
    return true;
}

/* Decimal times; see decimal.h. Called by the readers of Paje's and StarPU's files. */
#include "formats/decimal.h"

#include <stdlib.h>
#include <string.h>

/* Some writers print 1.5e+06. */
static bool by_exponent(struct sv_text t, int decimals, int64_t *ns)
{
    char text[48], *end;
    double scale = 1;
    if (t.len >= sizeof text)
        return false;
    memcpy(text, t.bytes, t.len);
    text[t.len] = 0;
    double d = strtod(text, &end);
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    if (*end || !(d >= 0) || d * scale > 9e18)
        return false;
    *ns = (int64_t)(d * scale + 0.5);
    return true;
}

bool sv_decimal_ns(struct sv_text t, int decimals, int64_t *ns)
{
    int64_t value = 0;
    int left = decimals;
    bool has_point = false, has_digit = false;
    for (uint32_t i = 0; i < t.len; i++) {
        char c = t.bytes[i];
        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if ((c == 'e' || c == 'E') && has_digit)
            return by_exponent(t, decimals, ns);
        if (c < '0' || c > '9')
            return false;
        has_digit = true;
        if (has_point && left == 0)
            continue;
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (c - '0');
        left -= has_point;
    }
    for (; left > 0; left--) {
        if (value > INT64_MAX / 10)
            return false;
        value *= 10;
    }
    *ns = value;
    return has_digit;
}

/* What values of options are: numbers, sizes, times, lists of words. Knows nothing of commands. */
#include "cli/command.h"

#include "core/base/mem.h"
#include "core/files/part_name.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void sv_words_add(struct sv_words *w, const char *word)
{
    SV_APPEND(w->items, w->n, w->cap) = word;
}

void sv_words_free(struct sv_words *w)
{
    free(w->items);
    *w = (struct sv_words){0};
}

/* Digits with one point at most, then perhaps an exponent. */
static bool is_number(const char *text)
{
    size_t whole = strspn(text, "0123456789"), part = 0;
    text += whole;
    if (*text == '.') {
        part = strspn(++text, "0123456789");
        text += part;
    }
    if (whole + part > 0 && (*text == 'e' || *text == 'E')) {
        text += 1 + (text[1] == '-' || text[1] == '+');
        if (!isdigit((unsigned char)*text))
            return false;
        text += strspn(text, "0123456789");
    }
    return whole + part > 0 && !*text;
}

int sv_parse_number(const char *text, size_t len, double *out)
{
    char copy[64];
    if (len >= sizeof copy)
        return SV_EUSAGE;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (!is_number(copy))
        return SV_EUSAGE;
    *out = strtod(copy, NULL);
    return isfinite(*out) ? 0 : SV_EUSAGE;
}

int sv_parse_bytes(const char *text, uint64_t *out)
{
    double number;
    size_t len = strspn(text, "0123456789.");
    if (sv_parse_number(text, len, &number) < 0)
        return SV_EUSAGE;
    static const char units[] = "kmgt";
    double scale = 1;
    const char *end = text + len;
    const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++)
            scale *= 1024;
        end++;
        if (*end == 'i')
            end++;
    }
    if (*end == 'B' || *end == 'b')
        end++;
    if (*end || number * scale > 1e18)
        return SV_EUSAGE;
    *out = (uint64_t)(number * scale);
    return 0;
}

__extension__ typedef __int128 wide; /* headroom for one multiplication by ten */

/* Decimal digits scaled by integer arithmetic: a time never passes through a double. */
static int parse_scaled(const char *text, size_t len, int64_t unit_ns, int64_t *out)
{
    wide value = 0, scale = unit_ns;
    bool negative = false, digits = false, point = false;
    for (size_t i = 0; i < len; i++) {
        if (i == 0 && (text[i] == '-' || text[i] == '+')) {
            negative = text[i] == '-';
        } else if (text[i] == '.' && !point) {
            point = true;
        } else if (isdigit((unsigned char)text[i])) {
            int digit = text[i] - '0';
            digits = true;
            if (point) {
                scale /= 10;
                value += digit * scale;
            } else {
                value = value * 10 + digit * (wide)unit_ns;
            }
            if (value > INT64_MAX)
                return SV_EUSAGE;
        } else {
            return SV_EUSAGE;
        }
    }
    *out = (int64_t)(negative ? -value : value);
    return digits ? 0 : SV_EUSAGE;
}

int sv_parse_moment(const char *text, size_t len, struct sv_moment *out)
{
    static const struct {
        const char *suffix;
        int64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"min", 60000000000}, {"s", 1000000000}};
    out->is_absolute = len && *text == '@';
    if (out->is_absolute) {
        text++;
        len--;
    }
    int64_t unit = 1000000000;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].suffix);
        if (len > n && memcmp(text + len - n, units[i].suffix, n) == 0) {
            unit = units[i].ns;
            len -= n;
            break;
        }
    }
    out->is_given = true;
    return parse_scaled(text, len, unit, &out->ns);
}

int64_t sv_moment_in(const struct sv_moment *m, int64_t first_ns, int64_t missing)
{
    int64_t ns;
    if (!m->is_given)
        return missing;
    if (m->is_absolute)
        return m->ns;
    if (__builtin_add_overflow(first_ns, m->ns, &ns))
        return m->ns < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

int sv_parse_count(const char *text, uint64_t *out)
{
    *out = 0;
    if (!*text)
        return SV_EUSAGE;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text) || __builtin_mul_overflow(*out, 10u, out) ||
            __builtin_add_overflow(*out, (unsigned)(*text - '0'), out))
            return SV_EUSAGE;
    }
    return 0;
}

bool sv_is_a_time(const char *text, size_t len)
{
    return len > 0 && (text[len - 1] == 's' || text[len - 1] == 'n');
}

int sv_parse_rotate(const char *text, struct sv_rotate *r)
{
    struct sv_moment m = {0};
    char size[64], *end;
    const char *comma = strchr(text, ',');
    size_t len = comma ? (size_t)(comma - text) : strlen(text);
    *r = (struct sv_rotate){0};
    if (len >= sizeof size)
        return SV_EUSAGE;
    memcpy(size, text, len);
    size[len] = 0;
    if (comma) {
        r->parts = strtoull(comma + 1, &end, 10);
        if (comma[1] < '0' || comma[1] > '9' || *end || r->parts == 0 || r->parts > 1000000)
            return SV_EUSAGE;
    }
    if (!sv_is_a_time(size, len))
        return sv_parse_bytes(size, &r->bytes) < 0 || r->bytes < SV_ROTATE_BYTES_MIN ? SV_EUSAGE
                                                                                     : 0;
    if (sv_parse_moment(size, len, &m) < 0 || m.is_absolute || m.ns < SV_ROTATE_NS_MIN)
        return SV_EUSAGE;
    r->ns = m.ns;
    return 0;
}

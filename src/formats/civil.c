/* Dates, times of day and zones. Called by the readers of text logs.
 *
 * A zone is a list of offsets with the UTC second at which each begins: one entry for a fixed zone,
 * the 64-bit part of a TZif file (RFC 8536) for a named one. The rule for the far future at the end
 * of such a file is not used: the last offset stays. */
#include "formats/civil.h"

#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZONE_FILE_MAX 262144u
#define ZONE_FOLDER   "/usr/share/zoneinfo/"

/* ---- dates ---- */

int64_t sv_civil_days(int64_t year, unsigned month, unsigned day)
{
    /* Years that begin in March put the leap day at the end. */
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void sv_civil_date(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    int64_t m = (5 * of_year + 2) / 153;
    *day = (unsigned)(of_year - (153 * m + 2) / 5 + 1);
    *month = (unsigned)(m < 10 ? m + 3 : m - 9);
    *year = years + era * 400 + (*month <= 2);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Up to `max` digits; how many there were. */
static size_t take_digits(const char *p, size_t len, size_t max, int64_t *out)
{
    size_t n = 0;
    *out = 0;
    for (; n < len && n < max && is_digit(p[n]); n++)
        *out = *out * 10 + (p[n] - '0');
    return n;
}

static bool is_date(int64_t year, int64_t month, int64_t day, int64_t *days)
{
    static const uint8_t lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 ||
        day > lengths[month - 1])
        return false;
    *days = sv_civil_days(year, (unsigned)month, (unsigned)day);
    return true;
}

/* Three numbers with the same separator between them. */
static bool take_three(const char *p, size_t len, int64_t v[3], size_t digits[3], char *separator)
{
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (i > 0) {
            if (at >= len || (i == 2 && p[at] != *separator))
                return false;
            *separator = p[at++];
        }
        digits[i] = take_digits(p + at, len - at, 4, &v[i]);
        if (digits[i] == 0)
            return false;
        at += digits[i];
    }
    return at == len;
}

bool sv_civil_parse_date(const char *p, size_t len, int64_t *days)
{
    int64_t v[3];
    size_t digits[3];
    char separator = 0;
    if (len == 8 && take_digits(p, 8, 8, v) == 8)
        return is_date(v[0] / 10000, v[0] / 100 % 100, v[0] % 100, days);
    if (!take_three(p, len, v, digits, &separator))
        return false;
    if (digits[0] == 4 && (separator == '-' || separator == '/'))
        return is_date(v[0], v[1], v[2], days);
    if (digits[2] == 2)
        v[2] += v[2] < 70 ? 2000 : 1900;
    if (separator == '/')
        return v[0] <= 12 ? is_date(v[2], v[0], v[1], days) : is_date(v[2], v[1], v[0], days);
    return separator == '.' && is_date(v[2], v[1], v[0], days);
}

/* ---- times of day ---- */

size_t sv_civil_parse_clock(const char *p, size_t len, int64_t *ns_of_day)
{
    int64_t v[3], decimals;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (i > 0 && (at >= len || p[at++] != ':'))
            return 0;
        size_t n = take_digits(p + at, len - at, 2, &v[i]);
        if (n == 0 || (i > 0 && n != 2))
            return 0;
        at += n;
    }
    if (v[0] > 23 || v[1] > 59 || v[2] > 60 || (at < len && is_digit(p[at])))
        return 0;
    *ns_of_day = ((v[0] * 60 + v[1]) * 60 + v[2]) * SV_S_NS;
    if (at + 1 < len && (p[at] == '.' || p[at] == ',')) {
        size_t n = take_digits(p + at + 1, len - at - 1, 9, &decimals);
        if (n == 0)
            return at;
        at += n + 1;
        for (; n < 9; n++)
            decimals *= 10;
        *ns_of_day += decimals;
    }
    return at;
}

bool sv_civil_half_day(bool is_pm, int64_t *ns_of_day)
{
    const int64_t hour = 3600 * SV_S_NS;
    if (*ns_of_day < hour || *ns_of_day >= 13 * hour)
        return false;
    if (*ns_of_day >= 12 * hour)
        *ns_of_day -= 12 * hour;
    *ns_of_day += is_pm ? 12 * hour : 0;
    return true;
}

/* ---- zones ---- */

struct span {
    int64_t from_s; /* UTC; the first one holds for all time before, too */
    int64_t offset_s;
};

struct sv_zone {
    size_t n;
    struct span spans[];
};

static struct sv_zone *zone_new(size_t n)
{
    struct sv_zone *z = sv_alloc(sizeof *z + n * sizeof *z->spans);
    z->n = n;
    return z;
}

void sv_zone_free(struct sv_zone *z)
{
    free(z);
}

static bool parse_fixed(const char *name, int64_t *offset_s)
{
    int64_t hours, minutes = 0;
    *offset_s = 0;
    if (strcmp(name, "UTC") == 0 || strcmp(name, "Z") == 0 || strcmp(name, "GMT") == 0)
        return true;
    if (name[0] != '+' && name[0] != '-')
        return false;
    size_t len = strlen(name), at = 1 + take_digits(name + 1, len - 1, 2, &hours);
    if (at != 3)
        return false;
    if (at < len && name[at] == ':')
        at++;
    size_t n = take_digits(name + at, len - at, 2, &minutes);
    if (at + n != len || (n != 2 && n != 0) || (n == 0 && at != 3) || hours > 15 || minutes > 59)
        return false;
    *offset_s = (hours * 60 + minutes) * 60 * (name[0] == '-' ? -1 : 1);
    return true;
}

static uint64_t big_endian(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

enum { HEADER = 44 };

struct counts {
    size_t ut, std, leap, times, types, chars;
};

static bool read_header(const uint8_t *p, size_t len, struct counts *c)
{
    if (len < HEADER || memcmp(p, "TZif", 4) != 0)
        return false;
    size_t *const fields[] = {&c->ut, &c->std, &c->leap, &c->times, &c->types, &c->chars};
    for (size_t i = 0; i < 6; i++) {
        *fields[i] = (size_t)big_endian(p + 20 + 4 * i, 4);
        if (*fields[i] > ZONE_FILE_MAX)
            return false;
    }
    return c->types > 0;
}

static size_t body_size(const struct counts *c, size_t time_size)
{
    return c->times * (time_size + 1) + c->types * 6 + c->chars + c->leap * (time_size + 4) +
           c->std + c->ut;
}

int sv_zone_open_bytes(const uint8_t *p, size_t len, struct sv_zone **out, struct sv_err *err)
{
    struct counts c;
    *out = NULL;
    if (read_header(p, len, &c) && p[4] >= '2') {
        size_t skip = HEADER + body_size(&c, 4);
        if (skip < len && read_header(p + skip, len - skip, &c) &&
            len - skip - HEADER >= body_size(&c, 8)) {
            const uint8_t *times = p + skip + HEADER, *kinds = times + 8 * c.times;
            const uint8_t *types = kinds + c.times;
            struct sv_zone *z = zone_new(c.times + 1);
            z->spans[0] = (struct span){INT64_MIN, (int32_t)big_endian(types, 4)};
            for (size_t i = 0; i < c.times; i++) {
                size_t kind = kinds[i] < c.types ? kinds[i] : 0;
                z->spans[i + 1] = (struct span){(int64_t)big_endian(times + 8 * i, 8),
                                                (int32_t)big_endian(types + 6 * kind, 4)};
            }
            *out = z;
            return 0;
        }
    }
    return sv_error(err, SV_EFORMAT, "not a file of the time zone database");
}

int sv_zone_open(const char *name, struct sv_zone **out, struct sv_err *err)
{
    char path[256];
    int64_t offset_s;
    *out = NULL;
    if (parse_fixed(name, &offset_s)) {
        *out = zone_new(1);
        (*out)->spans[0] = (struct span){INT64_MIN, offset_s};
        return 0;
    }
    FILE *f = NULL;
    if (*name && name[0] != '/' && !strstr(name, "..") &&
        snprintf(path, sizeof path, ZONE_FOLDER "%s", name) < (int)sizeof path)
        f = fopen(path, "rb");
    if (!f)
        return sv_error(err, SV_EUSAGE,
                        "there is no time zone '%s': give UTC, +HH:MM, -HH:MM or a name like "
                        "America/Montreal (from the package tzdata)",
                        name);
    uint8_t *bytes = sv_alloc(ZONE_FILE_MAX);
    size_t len = fread(bytes, 1, ZONE_FILE_MAX, f);
    (void)fclose(f);
    int code = sv_zone_open_bytes(bytes, len, out, err);
    free(bytes);
    return code;
}

int64_t sv_zone_utc(const struct sv_zone *z, int64_t local_s, int64_t not_before)
{
    int64_t best = local_s - z->spans[0].offset_s;
    bool has_best = false;
    for (size_t i = 0; i < z->n; i++) {
        int64_t utc = local_s - z->spans[i].offset_s;
        bool is_in = utc >= z->spans[i].from_s && (i + 1 == z->n || utc < z->spans[i + 1].from_s);
        bool is_gap = !is_in && utc >= z->spans[i].from_s && i + 1 < z->n &&
                      local_s - z->spans[i + 1].offset_s < z->spans[i + 1].from_s;
        if ((is_in || is_gap) && (!has_best || best < not_before)) {
            best = utc;
            has_best = true;
        }
    }
    return best;
}

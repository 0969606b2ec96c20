/* Times of --since and --until: see range.h. Called by files/recordings.c. */
#include "files/range.h"

#include "formats/civil.h"

#include <stdio.h>
#include <string.h>

#define DAY_NS (SV_DAY_S * SV_S_NS)

/* HH:MM, HH:MM:SS or HHMMSS, with decimals after the seconds. */
static bool parse_clock(const char *text, size_t len, int64_t *ns)
{
    char whole[32];
    size_t n = strspn(text, "0123456789");
    if (len + 4 > sizeof whole)
        return false;
    if (n == 6)
        snprintf(whole, sizeof whole, "%.2s:%.2s:%.*s", text, text + 2, (int)(len - 4), text + 4);
    else
        snprintf(whole, sizeof whole, "%.*s%s", (int)len, text, len == 5 ? ":00" : "");
    return whole[0] && sv_civil_parse_clock(whole, strlen(whole), ns) == strlen(whole);
}

/* DATE, DATE and time of day with 'T' or a blank between them; a Z at the end may be left out. */
static bool parse_utc(const char *text, size_t len, int64_t *ns)
{
    int64_t days, of_day = 0;
    size_t date = strcspn(text, "T ");
    date = date < len ? date : len;
    if (date < 8 || !sv_civil_parse_date(text, date, &days) || days > INT64_MAX / DAY_NS - 1 ||
        days < INT64_MIN / DAY_NS + 1)
        return false;
    if (date < len && !parse_clock(text + date + 1, len - date - 1, &of_day))
        return false;
    *ns = days * DAY_NS + of_day;
    return true;
}

int sv_side_parse(const char *option, const char *text, struct sv_side *side, struct sv_err *err)
{
    struct sv_moment m = {0};
    *side = (struct sv_side){0};
    if (!text)
        return 0;
    size_t len = strlen(text);
    if (sv_parse_moment(text, len, &m) >= 0 && m.ns != INT64_MIN) {
        side->kind = m.is_absolute    ? SV_SIDE_CLOCK
                     : text[0] == '-' ? SV_SIDE_OF_END
                                      : SV_SIDE_OF_START;
        side->ns = side->kind == SV_SIDE_OF_END ? -m.ns : m.ns;
        return 0;
    }
    len -= len && text[len - 1] == 'Z';
    if (parse_utc(text, len, &side->ns))
        side->kind = SV_SIDE_UTC;
    else if (parse_clock(text, len, &side->ns))
        side->kind = SV_SIDE_OF_DAY;
    else
        return sv_error(err, SV_EUSAGE,
                        "--%s: '%.100s' is not a time such as 2026-11-19T03:40, 03:40:30, 90min, "
                        "-10min or @123456789ns",
                        option, text);
    return 0;
}

const char *sv_utc_text(char to[static SV_UTC_SIZE], int64_t utc_ns)
{
    int64_t days = utc_ns / DAY_NS - (utc_ns % DAY_NS < 0), year;
    unsigned month, day;
    int s = (int)((utc_ns - days * DAY_NS) / SV_S_NS);
    sv_civil_date(days, &year, &month, &day);
    snprintf(to, SV_UTC_SIZE, "%04lld-%02u-%02u %02d:%02d:%02d", (long long)year, month, day,
             s / 3600, s / 60 % 60, s % 60);
    return to;
}

/* mpstat: CPU utilisation, a line per CPU and interval, with the local time of day.
 *
 * Opened through the table of formats. The first line names the machine and the day; header lines name the columns; the clock has 12 hours
 * (AM, PM) or 24, and may pass midnight. Averages at the end are of the whole run, not of a moment: they are skipped. */
#include "formats/lines.h"

#include <string.h>

#define COLUMNS_MAX 12

static const struct {
    const char *column, *counter;
} names[] = {
    {"%usr", "user"},      {"%user", "user"},     {"%nice", "nice"},        {"%sys", "system"},
    {"%system", "system"}, {"%iowait", "iowait"}, {"%irq", "irq"},          {"%soft", "softirq"},
    {"%steal", "steal"},   {"%guest", "guest"},   {"%gnice", "guest_nice"}, {"%idle", "idle"},
};

struct mpstat {
    struct sv_lines lines;
    const char *counters[COLUMNS_MAX]; /* of the header; NULL: a column that is not a counter */
    size_t n_columns;                  /* 0: no header yet */
    bool has_clock;
};

static const char *counter_of(struct sv_text column)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sv_text_is(column, names[i].column))
            return names[i].counter;
    return NULL;
}

/* HH:MM:SS, with AM or PM after it or without. */
static bool take_clock(struct sv_fields *f, int64_t *of_day)
{
    struct sv_text clock = sv_field_next(f);
    if (clock.len == 0 || sv_civil_parse_clock(clock.bytes, clock.len, of_day) != clock.len)
        return false;
    struct sv_fields ahead = *f;
    struct sv_text half = sv_field_next(&ahead);
    bool is_pm = sv_text_is(half, "PM");
    if (!is_pm && !sv_text_is(half, "AM"))
        return true;
    *f = ahead;
    return sv_civil_half_day(is_pm, of_day);
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int64_t of_day;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        struct sv_fields f = {line.bytes, line.bytes + line.len};
        if (take_clock(&f, &of_day) && sv_text_is(sv_field_next(&f), "CPU") &&
            counter_of(sv_field_next(&f)))
            return 100;
    }
    return 0;
}

static bool take_header(struct mpstat *s, struct sv_fields f)
{
    s->n_columns = 0;
    for (struct sv_text word; (word = sv_field_next(&f)).len;) {
        if (s->n_columns == COLUMNS_MAX)
            return sv_lines_bad(&s->lines, "more columns than mpstat has");
        s->counters[s->n_columns++] = counter_of(word);
    }
    return true;
}

/* Linux 6.1.0 (host)  11/15/2026  _x86_64_ (2 CPU) */
static bool take_banner(struct mpstat *s, struct sv_fields f)
{
    struct sv_lines *l = &s->lines;
    int64_t days;
    for (struct sv_text word; (word = sv_field_next(&f)).len;) {
        if (word.len > 2 && word.bytes[0] == '(' && word.bytes[word.len - 1] == ')' &&
            !sv_dict_find_meta(l->dict, "hostname"))
            sv_dict_set_meta(l->dict, "hostname", word.bytes + 1, word.len - 2, false);
        if (sv_civil_parse_date(word.bytes, word.len, &days)) {
            sv_wall_set_date(&l->wall, days);
            sv_wall_set_clock(l);
            s->has_clock = true;
        }
    }
    return true;
}

static sv_track cpu_track(struct sv_lines *l, struct sv_text cpu)
{
    char name[32] = "CPU ";
    sv_track group = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "CPU", 3);
    int64_t number;
    if (sv_text_is(cpu, "all"))
        return group;
    if (cpu.len > 8 || !sv_text_i64(cpu, &number) || number < 0)
        return 0;
    memcpy(name + 4, cpu.bytes, cpu.len);
    return sv_lines_group(l, group, SV_TRACK_CPU, name, 4 + cpu.len);
}

static bool take_values(struct mpstat *s, struct sv_batch *b, struct sv_fields f, int64_t ts_ns,
                        struct sv_text cpu)
{
    struct sv_lines *l = &s->lines;
    double values[COLUMNS_MAX];
    sv_track track = cpu_track(l, cpu);
    if (!track)
        return sv_lines_bad(l, "'all' or the number of a CPU");
    if (sv_field_count(f) != s->n_columns)
        return sv_lines_bad(l, "as many values as the header has columns");
    for (size_t i = 0; i < s->n_columns; i++)
        if (!sv_text_double(sv_field_next(&f), &values[i]))
            return sv_lines_bad(l, "a number in each column");
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->counters[i])
            sv_put_counter(l, b, sv_lines_counter(l, track, s->counters[i], "%"), ts_ns, values[i]);
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct mpstat *s = (struct mpstat *)l;
    struct sv_text text = {p, (uint32_t)len};
    struct sv_fields f = {p, p + len};
    int64_t of_day, ts_ns;
    if (sv_field_count(f) == 0)
        return true;
    if (sv_text_begins(text, "Linux "))
        return take_banner(s, f);
    if (sv_text_begins(text, "Average:")) {
        if (!sv_bytes_find(p, len, "%idle"))
            sv_report_add(l->source.report, SV_SKIPPED, "average over the whole run", 1, l->pos,
                          "it has no time");
        return true;
    }
    if (!take_clock(&f, &of_day))
        return sv_lines_bad(l, "a time of day");
    struct sv_text cpu = sv_field_next(&f);
    if (sv_text_is(cpu, "CPU")) {
        (void)sv_wall_ns(&l->wall, of_day,
                         &ts_ns); /* midnight may lie between it and the first values */
        return take_header(s, f);
    }
    if (s->n_columns == 0)
        return sv_lines_bad(l, "before the header that names its columns");
    if (!s->has_clock) {
        sv_wall_set_clock(l);
        s->has_clock = true;
    }
    if (!sv_wall_ns(&l->wall, of_day, &ts_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    return take_values(s, b, f, ts_ns, cpu);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct mpstat),
    .max_events = COLUMNS_MAX,
    .gives = SV_HAS_NESTED | SV_IN_NO_ORDER,
    .damaged = "line that is not mpstat's",
    .line = line,
};

const struct sv_format sv_mpstat_format = {
    .name = "mpstat",
    .help = "CPU utilisation by mpstat",
    .lacks = "slices, flows, arguments",
    .files = "`mpstat [-P ALL] N`, 12 and 24 hour clocks, over midnight",
    .times = "local, the day in the first line",
    .probe = probe,
    .lines = &kind,
    .needs_zone = true,
};

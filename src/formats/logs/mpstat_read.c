/* mpstat: CPU utilisation, a line per CPU and interval, with the local time of day.
 *
 * Opened through the table of formats. The first line names the machine and the day; header lines
 * name the columns; the clock has 12 hours (AM, PM) or 24, and may pass midnight. Averages at the
 * end are of the whole run, not of a moment: they are skipped. */
#include "formats/logs/meters.h"

#include <string.h>

#define COLUMNS_MAX 12

/* The columns of mpstat since 2009, for lines whose header was cut off. */
static const char *const usual[] = {"%usr",  "%nice",  "%sys",   "%iowait", "%irq",
                                    "%soft", "%steal", "%guest", "%gnice",  "%idle"};
enum { N_USUAL = sizeof usual / sizeof *usual };

struct mpstat {
    struct sv_lines lines;
    const struct sv_meter *meters[COLUMNS_MAX]; /* of the header; NULL: not a counter */
    size_t n_columns;                           /* 0: no header yet */
    bool has_clock;
};

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

/* "all" or a CPU's number, and as many percentages as mpstat prints. */
static bool is_bare_line(struct sv_text line)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    int64_t of_day, number;
    if (!take_clock(&f, &of_day))
        return false;
    struct sv_text cpu = sv_field_next(&f);
    if ((!sv_text_is(cpu, "all") && !sv_text_i64(cpu, &number)) || sv_field_count(f) != N_USUAL)
        return false;
    double value, sum = 0;
    for (int i = 0; i < N_USUAL; i++) {
        if (!sv_text_double(sv_field_next(&f), &value) || value < 0 || value > 100)
            return false;
        sum += value;
    }
    return sum > 99 && sum < 101; /* they divide the time among them */
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int64_t of_day;
    int bare = 0, lines = 0;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        struct sv_fields f = {line.bytes, line.bytes + line.len};
        if (take_clock(&f, &of_day) && sv_text_is(sv_field_next(&f), "CPU") &&
            sv_meter_named(SV_METER_CPU, sv_field_next(&f)))
            return 100;
        lines += line.len > 0;
        bare += is_bare_line(line);
    }
    return 2 * bare > lines ? 80 : 0;
}

/* The day is in the first line, which may be cut off. */
static unsigned needs(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++)
        if (sv_text_begins(line, "Linux "))
            return SV_NEEDS_ZONE;
    return SV_NEEDS_ZONE | SV_NEEDS_DATE;
}

/* The header was cut off: the usual columns. */
static void assume(struct mpstat *s)
{
    s->n_columns = N_USUAL;
    for (int i = 0; i < N_USUAL; i++)
        s->meters[i] =
            sv_meter_named(SV_METER_CPU, (struct sv_text){usual[i], (uint32_t)strlen(usual[i])});
    sv_report_add(s->lines.source.report, SV_NOTE, "no header: mpstat's usual columns assumed", 1,
                  s->lines.pos, "%%usr to %%idle");
}

static bool take_header(struct mpstat *s, struct sv_fields f)
{
    s->n_columns = 0;
    for (struct sv_text word; (word = sv_field_next(&f)).len;) {
        if (s->n_columns == COLUMNS_MAX)
            return sv_lines_bad(&s->lines, "more columns than mpstat has");
        s->meters[s->n_columns++] = sv_meter_named(SV_METER_CPU, word);
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

static bool take_values(struct mpstat *s, struct sv_batch *b, struct sv_fields f, int64_t ts_ns,
                        struct sv_text cpu)
{
    struct sv_lines *l = &s->lines;
    double values[COLUMNS_MAX];
    sv_track track = sv_meter_cpu(l, cpu);
    if (!track)
        return sv_lines_bad(l, "'all' or the number of a CPU");
    if (sv_field_count(f) != s->n_columns)
        return sv_lines_bad(l, "as many values as the header has columns");
    for (size_t i = 0; i < s->n_columns; i++)
        if (!sv_text_double(sv_field_next(&f), &values[i]))
            return sv_lines_bad(l, "a number in each column");
    for (size_t i = 0; i < s->n_columns; i++)
        if (s->meters[i])
            sv_meter_put(l, b, s->meters[i], track, ts_ns, values[i]);
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
    if (s->n_columns == 0 && is_bare_line(text))
        assume(s);
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
    .files = "`mpstat [-P ALL] N`, 12 and 24 hour clocks, over midnight, also without its header",
    .times = "local, the day in the first line, else by `import --date` or other files of the run",
    .probe = probe,
    .lines = &kind,
    .needs = needs,
    .covers = SV_ABOUT_CPUS,
};

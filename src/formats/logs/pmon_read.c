/* nvidia-smi pmon: GPU utilisation by process and second, with local date and time (-o DT).
 *
 * Opened through the table of formats. Header lines (#) name the columns. The lines of one GPU at
 * one time belong together: their sum is the GPU's value, each line is the value of its process. A
 * line without a process says that the GPU had none: 0. Nothing is averaged over lines, so that a
 * file which begins in the middle of a second, or lacks a line, shifts nothing. */
#include "formats/logs/meters.h"

#include <stdio.h>
#include <string.h>

enum column { DATE, TIME, GPU, PID, TYPE, SM, MEM, ENC, DEC, FB, COMMAND, N_COLUMNS };
static const char *const words[N_COLUMNS] = {"date", "time", "gpu", "pid", "type",   "sm",
                                             "mem",  "enc",  "dec", "fb",  "command"};
enum { N_VALUES = FB - SM + 1 };
struct sample {
    bool has[N_VALUES];
    double value[N_VALUES];
};

struct pmon {
    struct sv_lines lines;
    int place[N_COLUMNS]; /* in a line, -1: not there */
    int n_places;
    /* The GPU and time whose lines are being added up. */
    bool has_group, has_clock;
    int64_t ts_ns, gpu;
    struct sample sum;
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static int column_of(struct sv_text word)
{
    for (int i = 0; i < N_COLUMNS; i++) {
        size_t n = strlen(words[i]), k = 0;
        while (word.len == n && k < n && lower(word.bytes[k]) == words[i][k])
            k++;
        if (word.len == n && k == n)
            return i;
    }
    return -1;
}

/* "# Date Time gpu pid …"; the line below it with the units is not one. */
static bool is_header(struct sv_text line, int place[N_COLUMNS], int *n_places)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    if (line.len == 0 || line.bytes[0] != '#')
        return false;
    f.p++;
    for (int i = 0; i < N_COLUMNS; i++)
        place[i] = -1;
    *n_places = 0;
    for (struct sv_text word; *n_places < 32 && (word = sv_field_next(&f)).len; ++*n_places) {
        int column = column_of(word);
        if (column >= 0)
            place[column] = *n_places;
    }
    return place[GPU] >= 0 && place[PID] >= 0;
}

/* The columns of `-s um -o DT`, for lines whose header was cut off: "20220830 16:35:00 0 4054152 C
 * 0 0 0 0 12 python". */
static bool is_bare_line(struct sv_text line)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    struct sv_text date = sv_field_next(&f), clock = sv_field_next(&f);
    int64_t days, of_day, number;
    if (!sv_civil_parse_date(date.bytes, date.len, &days) || date.len != 8 || clock.len != 8 ||
        sv_civil_parse_clock(clock.bytes, clock.len, &of_day) != 8 ||
        !sv_text_i64(sv_field_next(&f), &number) || sv_field_count(f) < N_COLUMNS - GPU - 1)
        return false;
    for (int i = PID; i <= FB; i++) {
        struct sv_text word = sv_field_next(&f);
        bool is_type = i == TYPE && word.len <= 3;
        if (!is_type && !sv_text_is(word, "-") && !sv_text_i64(word, &number))
            return false;
    }
    return true;
}

/* Lines without a header, where they are more than all others. */
static int count_bare(struct sv_fields h)
{
    struct sv_text line;
    int bare = 0, lines = 0;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        lines += line.len > 0;
        bare += is_bare_line(line);
    }
    return 2 * bare > lines ? bare : 0;
}

/* Newer drivers have jpg and ofa before fb, and ccpm after it: three more numbers before the
 * command. */
static bool is_newer(struct sv_text line)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    int64_t number;
    for (int i = 0; i < COMMAND; i++)
        (void)sv_field_next(&f);
    for (int i = 0; i < 3; i++) {
        struct sv_text word = sv_field_next(&f);
        if (!sv_text_is(word, "-") && !sv_text_i64(word, &number))
            return false;
    }
    return sv_field_count(f) > 0;
}

static void assume(struct pmon *s, struct sv_text line)
{
    bool newer = is_newer(line);
    for (int i = 0; i < N_COLUMNS; i++)
        s->place[i] = i;
    if (newer) {
        s->place[FB] = FB + 2;
        s->place[COMMAND] = COMMAND + 3;
    }
    s->n_places = s->place[COMMAND] + 1;
    sv_report_add(s->lines.source.report, SV_NOTE, "no header: columns of pmon -s um -o DT assumed",
                  1, s->lines.pos, "date time gpu pid type sm mem enc dec %sfb %scommand",
                  newer ? "jpg ofa " : "", newer ? "ccpm " : "");
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int place[N_COLUMNS], n_places;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++)
        if (is_header(line, place, &n_places) && (place[SM] >= 0 || place[FB] >= 0))
            return 100;
    h = sv_head(head, n);
    return count_bare(h) > 0 ? 80 : 0;
}

static void put_values(struct sv_lines *l, struct sv_batch *b, sv_track parent, int64_t ts_ns,
                       const struct sample *s)
{
    for (int i = 0; i < N_VALUES; i++) {
        struct sv_text word = {words[SM + i], (uint32_t)strlen(words[SM + i])};
        if (s->has[i])
            sv_meter_put(l, b, sv_meter_named(SV_METER_GPU, word), parent, ts_ns, s->value[i]);
    }
}

static void end_group(struct pmon *s, struct sv_batch *b)
{
    char name[32];
    if (!s->has_group)
        return;
    int n = snprintf(name, sizeof name, "GPU %d", (int)s->gpu);
    sv_track gpu = sv_lines_group(&s->lines, 0, SV_TRACK_GPU, name, (size_t)n);
    put_values(&s->lines, b, gpu, s->ts_ns, &s->sum);
    s->has_group = false;
    s->sum = (struct sample){0};
}

static bool take_fields(struct pmon *s, struct sv_fields f, struct sv_text fields[N_COLUMNS])
{
    struct sv_text words_of_line[32];
    int n = 0;
    for (; n < s->n_places; n++) {
        words_of_line[n] = n == s->place[COMMAND] && n + 1 == s->n_places ? sv_field_rest(&f)
                                                                          : sv_field_next(&f);
        if (words_of_line[n].len == 0)
            return false;
    }
    for (int i = 0; i < N_COLUMNS; i++)
        fields[i] = s->place[i] >= 0 ? words_of_line[s->place[i]] : (struct sv_text){"-", 1};
    return sv_field_rest(&f).len == 0;
}

static bool take_time(struct pmon *s, const struct sv_text fields[N_COLUMNS], int64_t *ts_ns)
{
    struct sv_lines *l = &s->lines;
    int64_t days, of_day;
    if (s->place[TIME] < 0 ||
        sv_civil_parse_clock(fields[TIME].bytes, fields[TIME].len, &of_day) != fields[TIME].len)
        return false;
    if (s->place[DATE] >= 0) {
        if (!sv_civil_parse_date(fields[DATE].bytes, fields[DATE].len, &days))
            return false;
        sv_wall_set_date(&l->wall, days);
    }
    if (!s->has_clock) {
        sv_wall_set_clock(l);
        s->has_clock = true;
    }
    return sv_wall_ns(&l->wall, of_day, ts_ns);
}

/* The process's own counters, below its own "GPU N". */
static void put_process(struct pmon *s, struct sv_batch *b, int64_t pid, struct sv_text command,
                        const struct sample *one)
{
    char name[32];
    int n = snprintf(name, sizeof name, "GPU %d", (int)s->gpu);
    sv_track process = sv_lines_process(&s->lines, pid, command);
    sv_track track = sv_lines_group(&s->lines, process, SV_TRACK_CUSTOM, name, (size_t)n);
    put_values(&s->lines, b, track, s->ts_ns, one);
}

static bool take_sample(const struct sv_text fields[N_COLUMNS], bool is_idle, struct sample *one)
{
    *one = (struct sample){0};
    for (int i = 0; i < N_VALUES; i++) {
        if (sv_text_is(fields[SM + i], "-")) {
            one->has[i] = is_idle && (i + SM == SM || i + SM == MEM || i + SM == FB);
            continue;
        }
        if (!sv_text_double(fields[SM + i], &one->value[i]))
            return false;
        one->has[i] = true;
    }
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct pmon *s = (struct pmon *)l;
    struct sv_text text = {p, (uint32_t)len}, fields[N_COLUMNS];
    struct sv_fields f = {p, p + len};
    struct sample one;
    int64_t ts_ns, gpu, pid;
    int place[N_COLUMNS], n_places;
    if (sv_field_count(f) == 0)
        return true;
    if (p[0] == '#') {
        if (is_header(text, place, &n_places)) {
            memcpy(s->place, place, sizeof place);
            s->n_places = n_places;
        }
        return true;
    }
    if (s->n_places == 0 && is_bare_line(text))
        assume(s, text);
    if (s->n_places == 0)
        return sv_lines_bad(l, "before the header that names its columns");
    if (!take_fields(s, f, fields))
        return sv_lines_bad(l, "as many fields as the header has columns");
    bool is_idle = sv_text_is(fields[PID], "-");
    if (!sv_text_i64(fields[GPU], &gpu) || gpu < 0 || gpu > 65535 ||
        (!is_idle && (!sv_text_i64(fields[PID], &pid) || pid < 0)) ||
        !take_sample(fields, is_idle, &one))
        return sv_lines_bad(l, "numbers or '-' in the columns");
    if (!take_time(s, fields, &ts_ns))
        return sv_lines_bad(l, "a date and a time (pmon -o DT)");
    if (s->has_group && (s->ts_ns != ts_ns || s->gpu != gpu))
        end_group(s, b);
    s->has_group = true;
    s->ts_ns = ts_ns;
    s->gpu = gpu;
    for (int i = 0; i < N_VALUES; i++) {
        s->sum.has[i] |= one.has[i];
        s->sum.value[i] += one.value[i];
    }
    if (!is_idle)
        put_process(s, b, pid, fields[COMMAND], &one);
    return true;
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    end_group((struct pmon *)l, b);
    return false;
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct pmon),
    .max_events = 2 * N_VALUES,
    .gives = SV_HAS_NESTED | SV_IN_NO_ORDER,
    .damaged = "line that is not pmon's",
    .line = line,
    .end = end,
};

const struct sv_format sv_pmon_format = {
    .name = "pmon",
    .help = "GPU utilisation by process, nvidia-smi pmon -o DT",
    .lacks = "slices, flows, arguments",
    .files = "`nvidia-smi pmon -o DT`, any columns; without its header those of `-s um`",
    .times = "local, day and time in each line",
    .probe = probe,
    .lines = &kind,
    .needs_zone = true,
    .covers = SV_ABOUT_GPUS,
};

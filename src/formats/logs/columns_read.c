/* Line-oriented logs of any tool: columns by the user's description, by the names in a header, or
 * by the shape of the lines.
 *
 * Opened through the table of formats. What the seed pipeline for DL benchmarks derives from
 * bpftrace's output (read_PID, bio_PID, st_end_data, timeline.csv, cpu_all.csv, …) is recognised by
 * shape, what bcc's tools print by their headers. Columns that were assumed are reported. */
#include "formats/logs/columns.h"
#include "formats/logs/meters.h"

#include <string.h>

#define HEAD_BYTES 65536

struct columns_log {
    struct sv_lines lines;
    struct sv_columns columns;
    const struct sv_log_shape *shape;
    struct sv_log_clock clock;
    struct sv_csv_line csv;
    bool is_given, is_known, has_line;
    int64_t pid; /* in the name of the file; -1: none */
    char why[200];
};

/* ---- recognising it ---- */

/* The header within the first lines; lines before it are titles. */
static bool find_header(struct sv_fields head, struct sv_columns *c)
{
    struct sv_text line;
    for (int i = 0; i < 16 && sv_head_line(&head, &line); i++)
        if (sv_columns_of_header(c, line))
            return true;
    return false;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_columns c;
    struct sv_fields lines = sv_head(head, n);
    if (n == 0 || memchr(head, '\0', n < 4096 ? n : 4096))
        return 0;
    if (find_header(lines, &c))
        return 85;
    return sv_log_shape_of(lines, SV_UNIT_UTC, NULL, &c) ? 60 : 0;
}

/* Times of day lack the day and the zone. */
static unsigned needs(const uint8_t *head, size_t n)
{
    struct sv_fields lines = sv_head(head, n);
    struct sv_columns c;
    struct sv_csv_line csv = {0};
    struct sv_record r;
    struct sv_text line;
    unsigned found = 0;
    if (!find_header(lines, &c))
        return 0;
    for (int i = 0; i < 64 && sv_head_line(&lines, &line); i++)
        if (sv_columns_take(&c, line, &csv, &r)) {
            if (r.stamp[SV_COL_TS].unit == SV_UNIT_CLOCK)
                found = SV_NEEDS_DATE | SV_NEEDS_ZONE;
            break;
        }
    sv_csv_fini(&csv);
    return found;
}

/* READ, BIOW, … of the seed pipeline's intervals. */
static const struct {
    const char *kind, *op, *rw;
} interval_kinds[] = {{"OPENAT", "openat", NULL}, {"OPEN", "openat", NULL}, {"READ", "read", NULL},
                      {"WRITE", "write", NULL},   {"CLOSE", "close", NULL}, {"BIO", "block", NULL},
                      {"BIOR", "block", "R"},     {"BIOW", "block", "W"}};
enum { N_INTERVAL_KINDS = sizeof interval_kinds / sizeof *interval_kinds };

static unsigned subjects_of_intervals(struct sv_fields head, const struct sv_columns *c)
{
    struct sv_csv_line csv = {0};
    struct sv_record r;
    struct sv_text line;
    unsigned subjects = 0;
    for (int i = 0; i < 256 && sv_head_line(&head, &line); i++) {
        if (!sv_columns_take(c, line, &csv, &r))
            continue;
        unsigned one = SV_ABOUT_PHASES;
        for (size_t k = 0; k < N_INTERVAL_KINDS; k++)
            if (sv_text_is(r.text[SV_COL_NAME], interval_kinds[k].kind))
                one = sv_log_subject(interval_kinds[k].op);
        subjects |= one;
    }
    sv_csv_fini(&csv);
    return subjects;
}

static unsigned subjects_of_meters(const struct sv_columns *c)
{
    static const unsigned about[] = {[SV_METER_CPU] = SV_ABOUT_CPUS,
                                     [SV_METER_GPU] = SV_ABOUT_GPUS,
                                     [SV_METER_DISK] = SV_ABOUT_DISKS};
    unsigned subjects = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].meter)
            subjects |= about[c->items[i].meter->of];
    return subjects;
}

static struct sv_holds holds(const uint8_t *head, size_t n, const char *path)
{
    struct sv_fields lines = sv_head(head, n);
    struct sv_columns c;
    struct sv_holds h = {.pid = -1};
    const struct sv_log_shape *shape =
        find_header(lines, &c) ? NULL : sv_log_shape_of(lines, SV_UNIT_UTC, path, &c);
    h.subjects = subjects_of_meters(&c);
    h.distance = SV_DERIVED;
    if (h.subjects || !shape)
        return h;
    h.pid = sv_log_pid_of_path(path);
    h.distance = shape->op ? SV_ALIGNED : SV_DERIVED;
    h.subjects = shape->op ? sv_log_subject(shape->op) : subjects_of_intervals(lines, &c);
    return h;
}

/* ---- what the user says ---- */

int sv_columns_check(const char *columns, unsigned *needs, struct sv_err *err)
{
    struct sv_columns c;
    int code = sv_columns_parse(&c, columns, err);
    *needs = 0;
    for (size_t i = 0; code >= 0 && i < c.n; i++) {
        if (c.items[i].unit == SV_UNIT_CLOCK)
            *needs |= SV_NEEDS_DATE | SV_NEEDS_ZONE;
        if (c.items[i].unit == SV_UNIT_LOCAL)
            *needs |= SV_NEEDS_ZONE;
    }
    return code;
}

bool sv_columns_fit(const char *columns, struct sv_input *in)
{
    struct sv_columns c;
    struct sv_err ignored = {0};
    return sv_columns_parse(&c, columns, NULL) >= 0 &&
           sv_input_need(in, HEAD_BYTES, &ignored) >= 0 &&
           sv_log_fits(sv_head(in->data, in->len), &c);
}

/* ---- opening it ---- */

static void say_assumed(struct columns_log *s)
{
    struct sv_lines *l = &s->lines;
    char text[240];
    sv_columns_text(&s->columns, text, sizeof text);
    sv_report_add(l->source.report, SV_NOTE, "columns assumed by the look of the lines", 1,
                  SV_NO_POS, "%s, '%s'; --columns gives others", s->shape->name, text);
    sv_dict_set_meta(l->dict, "assumed_columns", text, strlen(text), false);
}

static void init(struct sv_lines *l)
{
    struct columns_log *s = (struct columns_log *)l;
    struct sv_err ignored = {0};
    s->pid = sv_log_pid_of_path(l->in->name);
    if (l->columns) {
        s->is_given = s->is_known = sv_columns_parse(&s->columns, l->columns, NULL) == 0;
        return;
    }
    if (sv_input_need(l->in, HEAD_BYTES, &ignored) < 0)
        return; /* the first line meets the same error */
    struct sv_fields head = sv_head(l->in->data, l->in->len);
    if (find_header(head, &s->columns))
        return; /* the lines before it are not read by it */
    s->shape = sv_log_shape_of(head, SV_UNIT_UTC, l->in->name, &s->columns);
    if (s->shape) {
        s->is_known = true;
        say_assumed(s);
    }
}

/* ---- lines ---- */

static struct sv_text text_of(const char *word)
{
    return (struct sv_text){word, (uint32_t)strlen(word)};
}

/* An interval belongs to the process in the name of the file; other kinds are phases of the run.
 * Empty: another file has it, too. */
static struct sv_text op_of_interval(struct columns_log *s, struct sv_record *r, char *lower,
                                     size_t cap)
{
    struct sv_text name = r->text[SV_COL_NAME];
    for (size_t i = 0; i < N_INTERVAL_KINDS; i++) {
        if (!sv_text_is(name, interval_kinds[i].kind))
            continue;
        if (s->lines.skip_subjects & sv_log_subject(interval_kinds[i].op))
            return (struct sv_text){"", 0};
        if (s->pid >= 0) {
            r->number[SV_COL_PID] = s->pid;
            r->has |= (uint64_t)1 << SV_COL_PID;
        }
        if (interval_kinds[i].rw) {
            r->text[SV_COL_RW] = text_of(interval_kinds[i].rw);
            r->has |= (uint64_t)1 << SV_COL_RW;
        }
        return text_of(interval_kinds[i].op);
    }
    size_t n = name.len < cap ? name.len : cap;
    for (size_t i = 0; i < n; i++)
        lower[i] = name.bytes[i] >= 'A' && name.bytes[i] <= 'Z' ? (char)(name.bytes[i] + 32)
                                                                : name.bytes[i];
    return n < name.len ? name : (struct sv_text){lower, (uint32_t)n};
}

static struct sv_text op_of_letter(char rw)
{
    return text_of(rw == 'R' ? "read" : rw == 'W' ? "write" : rw == 'O' ? "openat" : "fsync");
}

static struct sv_text op_of(struct columns_log *s, struct sv_record *r, char *lower, size_t cap)
{
    const char *named = sv_log_op_of_path(s->lines.in->name);
    bool is_block = sv_record_has(r, SV_COL_DISK) || (named && strcmp(named, "block") == 0);
    if (s->shape && s->shape->op)
        return text_of(s->shape->op);
    if (s->shape && sv_record_has(r, SV_COL_NAME))
        return op_of_interval(s, r, lower, cap);
    if (sv_record_has(r, SV_COL_NAME))
        return r->text[SV_COL_NAME];
    if (sv_record_rw(r))
        return is_block ? text_of("block") : op_of_letter(sv_record_rw(r));
    return text_of(sv_log_op_of_columns(&s->columns, s->lines.in->name));
}

/* A header in the middle: the output of another version or a restarted tool was appended. */
static bool take_header(struct columns_log *s, struct sv_text text)
{
    struct sv_columns c;
    if (s->is_given || (text.bytes[0] >= '0' && text.bytes[0] <= '9') ||
        !sv_columns_of_header(&c, text))
        return false;
    s->columns = c;
    s->shape = NULL;
    s->is_known = true;
    return true;
}

static bool has_digit(struct sv_text t)
{
    for (uint32_t i = 0; i < t.len; i++)
        if (t.bytes[i] >= '0' && t.bytes[i] <= '9')
            return true;
    return false;
}

static bool bad_columns(struct columns_log *s)
{
    sv_columns_text(&s->columns, s->why, sizeof s->why);
    return sv_lines_bad(&s->lines, s->why);
}

static bool put_line(struct columns_log *s, struct sv_batch *b, struct sv_record *r,
                     int64_t start_ns, int64_t dur_ns)
{
    struct sv_lines *l = &s->lines;
    char lower[64];
    if (sv_columns_have(&s->columns, SV_COL_METER) || sv_columns_have(&s->columns, SV_COL_COUNTER))
        return sv_record_meters(l, b, &s->columns, r, start_ns);
    struct sv_text op = op_of(s, r, lower, sizeof lower);
    if (op.len)
        sv_record_put(l, b, r, &s->columns, op, start_ns, dur_ns);
    else
        sv_report_add(l->source.report, SV_SKIPPED, "interval that is in another file", 1, l->pos,
                      "the file with the calls themselves has more about it");
    return true;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct columns_log *s = (struct columns_log *)l;
    struct sv_text text = {p, (uint32_t)len};
    struct sv_fields f = {p, p + len};
    struct sv_record r;
    int64_t start_ns, dur_ns;
    bool is_first = !s->has_line;
    if (sv_field_count(f) == 0 || p[0] == '#')
        return true;
    s->has_line = true;
    if (take_header(s, text))
        return true;
    if (!s->is_known) {
        sv_report_add(l->source.report, SV_SKIPPED, "line before the header", 1, l->pos, NULL);
        return true;
    }
    if (!sv_columns_take(&s->columns, text, &s->csv, &r)) {
        if (!is_first || has_digit(text))
            return bad_columns(s);
        sv_report_add(l->source.report, SV_NOTE, "first line taken as a header", 1, l->pos, NULL);
        return true;
    }
    if (!sv_record_time(l, &s->clock, &r, &start_ns, &dur_ns))
        return false;
    return put_line(s, b, &r, start_ns, dur_ns);
}

static void fini(struct sv_lines *l)
{
    sv_csv_fini(&((struct columns_log *)l)->csv);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct columns_log),
    .max_events = SV_COLUMNS_MAX,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line without these columns",
    .init = init,
    .line = line,
    .fini = fini,
};

const struct sv_format sv_columns_format = {
    .name = "columns",
    .help = "a line-oriented log with columns that are known by name, shape or description",
    .lacks = "flows; what the columns do not say",
    .files = "output of bcc's tools with a time column (biosnoop, opensnoop -T, fileslower, "
             "ext4slower, …), the aligned and derived files of the DL benchmark tracing tools, any "
             "log with `import --columns`",
    .times = "by the columns",
    .probe = probe,
    .lines = &kind,
    .needs = needs,
    .holds = holds,
};

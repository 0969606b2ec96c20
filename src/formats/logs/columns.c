/* Descriptions of columns and lines that have them; see columns.h. Called by the readers of
 * bpftrace's, bcc's and other line-oriented logs. It must not know what becomes of a line. */
#include "formats/logs/columns.h"
#include "formats/decimal.h"
#include "formats/logs/meters.h"

#include <stdio.h>
#include <string.h>

#define COMM_MAX 15 /* bytes of a command's name in the kernel */

/* How a field is read. */
enum reading {
    ANY,
    TIME,
    DURATION,
    COUNT,
    INTEGER,
    RESULT,
    POINTER,
    WORD,
    COMM,
    COMM_FD,
    LETTER,
    REST
};

static const struct {
    const char *word;
    enum sv_column_kind kind;
    enum reading reading;
} kinds[] = {
    {"-", SV_COL_SKIP, ANY},
    {"ts", SV_COL_TS, TIME},
    {"start", SV_COL_START, TIME},
    {"end", SV_COL_END, TIME},
    {"latency", SV_COL_LATENCY, DURATION},
    {"queue", SV_COL_QUEUE, DURATION},
    {"wait", SV_COL_WAIT, DURATION},
    {"pid", SV_COL_PID, COUNT},
    {"tid", SV_COL_TID, INTEGER},
    {"fd", SV_COL_FD, RESULT},
    {"offset", SV_COL_OFFSET, RESULT},
    {"ret", SV_COL_RET, RESULT},
    {"requested", SV_COL_REQUESTED, RESULT},
    {"length", SV_COL_LENGTH, RESULT},
    {"mode", SV_COL_MODE, RESULT},
    {"address", SV_COL_ADDRESS, POINTER},
    {"bytes", SV_COL_BYTES, COUNT},
    {"sector", SV_COL_SECTOR, INTEGER},
    {"errno", SV_COL_ERRNO, COUNT},
    {"comm", SV_COL_COMM, COMM},
    {"comm|fd", SV_COL_COMM_OR_FD, COMM_FD},
    {"function", SV_COL_FUNCTION, WORD},
    {"disk", SV_COL_DISK, WORD},
    {"rw", SV_COL_RW, LETTER},
    {"name", SV_COL_NAME, REST},
    {"cat", SV_COL_CAT, WORD},
    {"cpu", SV_COL_CPU, WORD},
    {"gpu", SV_COL_GPU, WORD},
    {"path", SV_COL_PATH, REST},
    {"path+name", SV_COL_PATH_NAME, REST},
    {"name+path", SV_COL_NAME_PATH, REST},
    {"counter.", SV_COL_COUNTER, ANY},
    {"", SV_COL_METER, ANY}, /* by its own words: meters.h */
    {"arg.", SV_COL_ARG, REST},
};

static const struct {
    const char *word;
    enum sv_column_unit unit;
    bool is_time, is_duration;
} units[] = {
    {"utc", SV_UNIT_UTC, true, false},
    {"local", SV_UNIT_LOCAL, true, false},
    {"clock", SV_UNIT_CLOCK, true, false},
    {"boot", SV_UNIT_BOOT, true, false},
    {"unix", SV_UNIT_UNIX, true, false},
    {"unix_ms", SV_UNIT_UNIX_MS, true, false},
    {"unix_us", SV_UNIT_UNIX_US, true, false},
    {"unix_ns", SV_UNIT_UNIX_NS, true, false},
    {"ns", SV_UNIT_NS, true, true},
    {"us", SV_UNIT_US, true, true},
    {"ms", SV_UNIT_MS, true, true},
    {"s", SV_UNIT_S, true, true},
};

static enum reading reading_of(enum sv_column_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].reading;
    return ANY;
}

static const char *word_of(enum sv_column_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].word;
    return "";
}

/* ---- descriptions ---- */

static int bad_word(struct sv_err *err, struct sv_text word, const char *why)
{
    return sv_error(err, SV_EUSAGE, "columns: '%.*s' %s", (int)(word.len < 60 ? word.len : 60),
                    word.bytes, why);
}

static bool set_label(struct sv_log_column *c, const char *bytes, size_t len)
{
    if (len == 0 || len >= sizeof c->label)
        return false;
    memcpy(c->label, bytes, len);
    c->label[len] = '\0';
    return true;
}

static bool find_kind(struct sv_text word, struct sv_log_column *c)
{
    static const char *const prefixes[] = {"counter.", "arg."};
    static const enum sv_column_kind prefixed[] = {SV_COL_COUNTER, SV_COL_ARG};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);
        if (sv_text_begins(word, prefixes[i])) {
            c->kind = prefixed[i];
            return set_label(c, word.bytes + n, word.len - n);
        }
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (word.len && sv_text_is(word, kinds[i].word)) {
            c->kind = kinds[i].kind;
            return true;
        }
    c->meter = sv_meter_named(SV_METER_ANY, word);
    c->kind = SV_COL_METER;
    return c->meter != NULL;
}

static bool find_unit(struct sv_text word, struct sv_log_column *c)
{
    enum reading reading = reading_of(c->kind);
    if (word.len == 0) {
        c->unit = reading == TIME ? SV_UNIT_AUTO : reading == DURATION ? SV_UNIT_NS : SV_UNIT_NONE;
        return true;
    }
    if (reading == COUNT || reading == RESULT) {
        c->unit = SV_UNIT_KB;
        return sv_text_is(word, "kb");
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (sv_text_is(word, units[i].word)) {
            c->unit = units[i].unit;
            return (reading == TIME && units[i].is_time) ||
                   (reading == DURATION && units[i].is_duration);
        }
    return false;
}

/* KIND=VALUE */
static int add_fixed(struct sv_columns *c, struct sv_text word, const char *equals,
                     struct sv_err *err)
{
    struct sv_log_column column = {0};
    struct sv_text kind = {word.bytes, (uint32_t)(equals - word.bytes)};
    size_t len = word.len - kind.len - 1;
    int64_t number;
    bool is_kind = find_kind(kind, &column) && column.kind != SV_COL_SKIP;
    enum reading reading = is_kind ? reading_of(column.kind) : ANY;
    if (reading != WORD && reading != REST && reading != COMM && column.kind != SV_COL_PID)
        return bad_word(err, word, "is not name=, cat=, disk=, comm= or pid= with a value");
    if (len == 0 || len >= sizeof c->fixed->value ||
        c->n_fixed == sizeof c->fixed / sizeof *c->fixed)
        return bad_word(err, word, "has no value, one of more than 63 bytes, or is the fifth");
    if (column.kind == SV_COL_PID &&
        (!sv_text_i64((struct sv_text){equals + 1, (uint32_t)len}, &number) || number < 0))
        return bad_word(err, word, "is not the number of a process");
    c->fixed[c->n_fixed].kind = column.kind;
    memcpy(c->fixed[c->n_fixed].value, equals + 1, len);
    c->fixed[c->n_fixed++].value[len] = '\0';
    return 0;
}

static int add_word(struct sv_columns *c, struct sv_text word, struct sv_err *err)
{
    struct sv_log_column column = {0};
    const char *equals = memchr(word.bytes, '=', word.len);
    if (equals)
        return add_fixed(c, word, equals, err);
    const char *colon = memrchr(word.bytes, ':', word.len);
    struct sv_text kind = {word.bytes, colon ? (uint32_t)(colon - word.bytes) : word.len};
    struct sv_text unit = {colon ? colon + 1 : "", colon ? word.len - kind.len - 1 : 0};
    if (!find_kind(kind, &column))
        return bad_word(err, word,
                        "is no column: use ts, start, end, latency, pid, tid, comm, bytes, offset, "
                        "ret, fd, path, name, disk, rw, arg.NAME, counter.NAME, - … (see 'stave "
                        "help import')");
    if (column.kind != SV_COL_ARG && column.kind != SV_COL_COUNTER && column.kind != SV_COL_SKIP &&
        column.kind != SV_COL_METER && sv_columns_have(c, column.kind))
        return bad_word(err, word, "occurs twice");
    if (!find_unit(unit, &column) || (colon && unit.len == 0))
        return bad_word(err, word,
                        "has no such unit: times have utc, local, clock, boot, unix, unix_ms, "
                        "unix_us, unix_ns, s, ms, us or ns, latencies s, ms, us or ns");
    if (c->n == SV_COLUMNS_MAX)
        return bad_word(err, word, "is one column too many: there are at most 32");
    c->items[c->n++] = column;
    return 0;
}

/* The column that says when; NULL: none. */
static const struct sv_log_column *time_column(const struct sv_columns *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].kind >= SV_COL_TS && c->items[i].kind <= SV_COL_END)
            return &c->items[i];
    return NULL;
}

int sv_columns_parse(struct sv_columns *c, const char *description, struct sv_err *err)
{
    const char *p = description, *end = p + strlen(p);
    *c = (struct sv_columns){.is_csv = strchr(description, ',') != NULL};
    while (p < end) {
        size_t n = strcspn(p, c->is_csv ? "," : " \t");
        struct sv_fields f = {p, p + n};
        struct sv_text word = sv_field_rest(&f);
        int code = word.len ? add_word(c, word, err) : 0;
        if (code < 0)
            return code;
        p += n + (p + n < end);
    }
    if (!time_column(c))
        return sv_error(err, SV_EUSAGE,
                        "columns: none of them is a time: ts, start or end, for example 'ts:utc "
                        "pid bytes latency:ns path'");
    return 0;
}

bool sv_columns_have(const struct sv_columns *c, enum sv_column_kind kind)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].kind == kind)
            return true;
    return false;
}

static const char *unit_text(const struct sv_log_column *column)
{
    if (column->unit == SV_UNIT_KB)
        return "kb";
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].unit == column->unit)
            return units[i].word;
    return NULL;
}

void sv_columns_text(const struct sv_columns *c, char *out, size_t cap)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->n && at < cap; i++) {
        const struct sv_log_column *column = &c->items[i];
        const char *unit = unit_text(column);
        const char *word = column->meter ? column->meter->word : word_of(column->kind);
        int n = snprintf(out + at, cap - at, "%s%s%s%s%s",
                         i == 0      ? ""
                         : c->is_csv ? ","
                                     : " ",
                         word, column->label, unit ? ":" : "", unit ? unit : "");
        at += n > 0 ? (size_t)n : 0;
    }
}

/* ---- headers ---- */

/* The words of other tools' headers, in lower case, and the column that each is. */
static const struct {
    const char *name, *column;
} names[] = {
    {"timestamp", "ts"},
    {"time(s)", "ts:s"},
    {"time(ms)", "ts:ms"},
    {"time(us)", "ts:us"},
    {"time(ns)", "ts:ns"},
    {"time", "ts"},
    {"ts", "ts"},
    {"start", "start"},
    {"end", "end"},
    {"pid", "pid"},
    {"tid", "tid"},
    {"comm", "comm"},
    {"pcomm", "comm"},
    {"process", "comm"},
    {"command", "comm"},
    {"disk", "disk"},
    {"disk_device", "disk"},
    {"dev", "disk"},
    {"device", "disk"},
    {"t", "rw"},
    {"d", "rw"},
    {"rw", "rw"},
    {"bytes", "bytes"},
    {"size", "bytes"},
    {"size(b)", "ret"},
    {"ret(b)", "ret"},
    {"ret", "ret"},
    {"req(b)", "requested"},
    {"fd", "fd"},
    {"err", "errno"},
    {"errno", "errno"},
    {"offset", "offset"},
    {"off_kb", "offset:kb"},
    {"sector", "sector"},
    {"lat(ns)", "latency:ns"},
    {"lat(us)", "latency:us"},
    {"lat(ms)", "latency:ms"},
    {"lat(s)", "latency:s"},
    {"latency", "latency"},
    {"dur(ms)", "latency:ms"},
    {"duration(us)", "latency:us"},
    {"que(ms)", "wait:ms"},
    {"qlat(ns)", "queue:ns"},
    {"filename", "path"},
    {"file", "path"},
    {"path", "path"},
    {"fullpath", "path"},
    {"function", "name"},
    {"call", "name"},
    {"event", "name"},
    {"name", "name"},
    {"kind", "name"},
    {"mode", "mode"},
    {"address", "address"},
    {"addr", "address"},
    {"len", "length"},
    {"gpu", "gpu"},
    {"cpu", "cpu"},
};

static void lower_into(char *to, size_t cap, struct sv_text word)
{
    size_t n = word.len < cap - 1 ? word.len : cap - 1;
    for (size_t i = 0; i < n; i++) {
        char c = word.bytes[i];
        to[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    to[n] = '\0';
}

/* Adds the column of a header's word; an unknown one is an argument. */
static bool add_named(struct sv_columns *c, struct sv_text word, size_t *known)
{
    char lower[40];
    struct sv_log_column column = {0};
    if (word.len == 0 || word.len >= sizeof lower || c->n == SV_COLUMNS_MAX)
        return false;
    column.meter = sv_meter_named(SV_METER_ANY, word);
    lower_into(lower, sizeof lower, word);
    if (column.meter) {
        column.kind = SV_COL_METER;
        ++*known;
        c->items[c->n++] = column;
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sv_text text = {names[i].column, (uint32_t)strlen(names[i].column)};
        if (strcmp(lower, names[i].name) != 0)
            continue;
        size_t before = c->n;
        if (add_word(c, text, NULL) < 0)
            break; /* a second one of the same kind: an argument */
        *known += c->n > before;
        return true;
    }
    if ((lower[0] >= '0' && lower[0] <= '9') || strchr("-/.#'\"([{", lower[0]))
        return false; /* values, not names */
    column.kind = SV_COL_ARG;
    c->items[c->n++] = column;
    return set_label(&c->items[c->n - 1], lower, strlen(lower));
}

/* "RET (B)" and "LAT (ns)" are one word, "BUFFER ADDR" is the second one. */
static struct sv_text next_name(struct sv_fields *f, char *joined, size_t cap)
{
    struct sv_text word = sv_field_next(f);
    struct sv_fields ahead = *f;
    struct sv_text following = sv_field_next(&ahead);
    if (sv_text_is(word, "BUFFER") && sv_text_is(following, "ADDR")) {
        *f = ahead;
        return following;
    }
    if (following.len < 2 || following.bytes[0] != '(' || word.len + following.len >= cap)
        return word;
    *f = ahead;
    memcpy(joined, word.bytes, word.len);
    memcpy(joined + word.len, following.bytes, following.len);
    return (struct sv_text){joined, word.len + following.len};
}

static bool add_csv_names(struct sv_columns *c, struct sv_text line, size_t *known)
{
    const char *p = line.bytes, *end = p + line.len;
    while (p <= end) {
        const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        struct sv_fields f = {p, comma ? comma : end};
        if (!add_named(c, sv_field_rest(&f), known))
            return false;
        p = comma ? comma + 1 : end + 1;
    }
    return true;
}

static bool add_blank_names(struct sv_columns *c, struct sv_text line, size_t *known)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    char joined[40];
    for (struct sv_text word; (word = next_name(&f, joined, sizeof joined)).len;) {
        struct sv_fields ahead = f;
        struct sv_text following = sv_field_next(&ahead);
        bool is_path = sv_text_is(word, "FULLPATH"), is_name = sv_text_is(word, "FILENAME");
        if ((is_path && sv_text_is(following, "FILENAME")) ||
            (is_name && sv_text_is(following, "FULLPATH"))) {
            if (c->n == SV_COLUMNS_MAX)
                return false;
            c->items[c->n++].kind = is_path ? SV_COL_PATH_NAME : SV_COL_NAME_PATH;
            ++*known;
            f = ahead;
        } else if (!add_named(c, word, known)) {
            return false;
        }
    }
    return true;
}

bool sv_columns_of_header(struct sv_columns *c, struct sv_text line)
{
    size_t known = 0;
    if (line.len >= 3 && memcmp(line.bytes, "\xef\xbb\xbf", 3) == 0)
        line = (struct sv_text){line.bytes + 3, line.len - 3};
    *c = (struct sv_columns){.is_csv = line.len && memchr(line.bytes, ',', line.len)};
    bool is_header = c->is_csv ? add_csv_names(c, line, &known) : add_blank_names(c, line, &known);
    return is_header && known >= 3 && 2 * known > c->n && time_column(c);
}

/* ---- fields of a line ---- */

struct cursor {
    const struct sv_columns *columns;
    struct sv_fields f;
    const struct sv_csv_line *csv;
    size_t at; /* column */
};

static struct sv_text next_field(struct cursor *c)
{
    return c->csv ? c->csv->fields[c->at] : sv_field_next(&c->f);
}

static bool is_last(const struct cursor *c)
{
    return c->at + 1 == c->columns->n;
}

static bool is_free(const struct cursor *c)
{
    for (size_t i = c->at + 1; i < c->columns->n; i++)
        if (reading_of(c->columns->items[i].kind) == REST)
            return true;
    return false;
}

/* A command may hold blanks: it ends where as many words are left as there are columns, or, before
 * free text, at the next number. */
static struct sv_text next_comm(struct cursor *c)
{
    struct sv_text word = next_field(c);
    size_t needed = c->columns->n - c->at - 1;
    bool before_text = is_free(c);
    while (!c->csv) {
        struct sv_fields ahead = c->f;
        struct sv_text following = sv_field_next(&ahead);
        int64_t number;
        if (following.len == 0 || following.bytes + following.len - word.bytes > COMM_MAX ||
            (before_text ? sv_text_i64(following, &number) : sv_field_count(c->f) <= needed))
            break;
        c->f = ahead;
        word.len = (uint32_t)(following.bytes + following.len - word.bytes);
    }
    return word;
}

/* The path and, after a blank, its last part, either of which may hold blanks or be missing. */
static struct sv_text split_path(struct sv_text rest, bool path_first)
{
    const char *end = rest.bytes + rest.len, *blank = rest.bytes;
    for (int i = 0; i < 64 && blank < end; i++, blank++) {
        blank = memchr(blank, ' ', (size_t)(end - blank));
        if (!blank)
            break;
        struct sv_text a = {rest.bytes, (uint32_t)(blank - rest.bytes)};
        struct sv_text b = {blank + 1, (uint32_t)(end - blank - 1)};
        struct sv_text path = path_first ? a : b, name = path_first ? b : a;
        if (name.len > 0 && path.len >= name.len &&
            memcmp(path.bytes + path.len - name.len, name.bytes, name.len) == 0)
            return path;
    }
    /* Cut paths (63 characters) and links do not end in the name: the name has no slash. */
    blank = memrchr(rest.bytes, ' ', rest.len);
    if (path_first && blank && !memchr(blank, '/', (size_t)(end - blank)))
        return (struct sv_text){rest.bytes, (uint32_t)(blank - rest.bytes)};
    return rest;
}

static struct sv_text next_rest(struct cursor *c)
{
    enum sv_column_kind kind = c->columns->items[c->at].kind;
    if (c->csv)
        return next_field(c);
    if (!is_last(c))
        return sv_field_next(&c->f);
    bool has_name = c->f.end > c->f.p && c->f.end[-1] != ' '; /* a call that failed has no file */
    struct sv_text rest = sv_field_rest(&c->f);
    if (kind == SV_COL_NAME_PATH || (kind == SV_COL_PATH_NAME && has_name))
        return split_path(rest, kind == SV_COL_PATH_NAME);
    return rest;
}

/* ---- times ---- */

static int decimals_of(enum sv_column_unit unit)
{
    switch (unit) {
    case SV_UNIT_UNIX:
    case SV_UNIT_S: return 9;
    case SV_UNIT_UNIX_MS:
    case SV_UNIT_MS: return 6;
    case SV_UNIT_UNIX_US:
    case SV_UNIT_US: return 3;
    default: return 0;
    }
}

/* Whole numbers of nanoseconds only: a decimal point in one is damage. */
static bool take_decimal(struct sv_text word, enum sv_column_unit unit, int64_t *ns)
{
    int decimals = decimals_of(unit);
    return decimals ? sv_decimal_signed_ns(word, decimals, ns) : sv_text_i64(word, ns);
}

/* What follows the seconds: nothing, Z, or the hours that the zone is ahead. */
static bool take_zone(struct sv_text rest, struct sv_stamp *t)
{
    int64_t hours = 0, minutes = 0;
    if (rest.len == 0)
        return true;
    t->has_offset = true;
    if (sv_text_is(rest, "Z"))
        return true;
    bool has_colon = rest.len == 6 && rest.bytes[3] == ':';
    if ((rest.bytes[0] != '+' && rest.bytes[0] != '-') || (!has_colon && rest.len != 5))
        return false;
    struct sv_text h = {rest.bytes + 1, 2}, m = {rest.bytes + (has_colon ? 4 : 3), 2};
    if (!sv_text_i64(h, &hours) || !sv_text_i64(m, &minutes) || hours < 0 || hours > 15 ||
        minutes < 0 || minutes > 59)
        return false;
    t->offset_s = (hours * 60 + minutes) * 60 * (rest.bytes[0] == '-' ? -1 : 1);
    return true;
}

static bool take_clock(struct cursor *c, struct sv_text word, struct sv_stamp *t)
{
    size_t used = sv_civil_parse_clock(word.bytes, word.len, &t->of_day);
    if (used == 0 || !take_zone((struct sv_text){word.bytes + used, word.len - (uint32_t)used}, t))
        return false;
    struct sv_fields ahead = c->f;
    struct sv_text half = c->csv ? (struct sv_text){"", 0} : sv_field_next(&ahead);
    bool is_pm = sv_text_is(half, "PM");
    if (!is_pm && !sv_text_is(half, "AM"))
        return true;
    c->f = ahead;
    return sv_civil_half_day(is_pm, &t->of_day);
}

/* 2022-08-30T21:34:57.903677748, or date and time in two words. */
static bool take_date(struct cursor *c, struct sv_text word, struct sv_stamp *t)
{
    const char *cut = memchr(word.bytes, 'T', word.len);
    if (!cut && c->csv)
        cut = memchr(word.bytes, ' ', word.len);
    size_t len = cut ? (size_t)(cut - word.bytes) : word.len;
    if (!sv_civil_parse_date(word.bytes, len, &t->days))
        return false;
    t->has_days = true;
    struct sv_text clock = cut      ? (struct sv_text){cut + 1, word.len - (uint32_t)len - 1}
                           : c->csv ? (struct sv_text){"", 0}
                                    : sv_field_next(&c->f);
    return take_clock(c, clock, t);
}

static bool take_time(struct cursor *c, enum sv_column_unit unit, struct sv_stamp *t)
{
    struct sv_text word = next_field(c);
    if (unit == SV_UNIT_AUTO) {
        bool has_colon = memchr(word.bytes, ':', word.len) != NULL;
        bool has_day = memchr(word.bytes, '-', word.len) != NULL;
        unit = has_day ? SV_UNIT_UTC : has_colon ? SV_UNIT_CLOCK : SV_UNIT_BOOT;
    }
    *t = (struct sv_stamp){.unit = unit};
    if (word.len == 0)
        return false;
    if (unit == SV_UNIT_UTC || unit == SV_UNIT_LOCAL)
        return take_date(c, word, t);
    if (unit == SV_UNIT_CLOCK)
        return take_clock(c, word, t);
    return take_decimal(word, unit, &t->ns) && t->ns >= 0;
}

/* ---- one column ---- */

static bool take_result(struct sv_text word, const struct sv_log_column *column, int64_t *out)
{
    return sv_text_signless(word, out) &&
           (column->unit != SV_UNIT_KB || !__builtin_mul_overflow(*out, 1024, out));
}

static void put_number(struct sv_record *r, enum sv_column_kind kind, int64_t value)
{
    r->number[kind] = value;
    r->has |= (uint64_t)1 << kind;
}

static bool put_text(struct sv_record *r, enum sv_column_kind kind, struct sv_text text)
{
    if (text.len == 0)
        return false;
    r->text[kind] = text;
    r->has |= (uint64_t)1 << kind;
    return true;
}

static bool take_comm_or_fd(struct cursor *c, struct sv_record *r)
{
    struct cursor ahead = *c;
    int64_t fd;
    if (sv_text_signless(next_field(&ahead), &fd)) {
        put_number(r, SV_COL_FD, fd);
        *c = ahead;
        return true;
    }
    return put_text(r, SV_COL_COMM, next_comm(c));
}

static bool take_number(struct cursor *c, const struct sv_log_column *column, enum reading reading,
                        struct sv_record *r)
{
    struct sv_text word = next_field(c);
    int64_t v = 0;
    uint64_t u;
    bool is_good = false;
    switch (reading) {
    case DURATION: is_good = take_decimal(word, column->unit, &v); break;
    case COUNT: is_good = sv_text_i64(word, &v) && v >= 0; break;
    case INTEGER: is_good = sv_text_i64(word, &v); break;
    case RESULT: is_good = take_result(word, column, &v); break;
    default:
        is_good = sv_text_u64(word, &u);
        v = is_good ? (int64_t)u : 0;
        r->text[column->kind] = word; /* whether it is hexadecimal distinguishes layouts */
        break;
    }
    if (is_good)
        put_number(r, column->kind, v);
    return is_good;
}

/* R, W, and of the tools for file systems O (open) and S (sync). Of block requests as the kernel
 * prints them: read, write, discard, none, with flags around them (RA, WS, WSM, WSU, FWFS). */
static bool take_letter(struct cursor *c, struct sv_record *r)
{
    struct sv_text word = next_field(c);
    bool is_flags = word.len >= 1 && word.len <= 8;
    for (uint32_t i = 0; is_flags && i < word.len; i++)
        is_flags = strchr("RWDNFEASMU", word.bytes[i]) != NULL;
    is_flags = is_flags && strchr("RWDNF", word.bytes[0]);
    bool is_one = word.len == 1 && strchr("OS", word.bytes[0]);
    return (is_one || is_flags) && put_text(r, SV_COL_RW, word);
}

static bool take_column(struct cursor *c, struct sv_record *r)
{
    const struct sv_log_column *column = &c->columns->items[c->at];
    enum reading reading = reading_of(column->kind);
    switch (reading) {
    case TIME: return take_time(c, column->unit, &r->stamp[column->kind]);
    case COMM: return put_text(r, SV_COL_COMM, next_comm(c));
    case COMM_FD: return take_comm_or_fd(c, r);
    case WORD: return put_text(r, column->kind, next_field(c));
    case LETTER: return take_letter(c, r);
    case ANY: r->cells[c->at] = next_field(c); return c->csv || r->cells[c->at].len > 0;
    case REST:
        r->cells[c->at] = next_rest(c);
        (void)put_text(r, column->kind, r->cells[c->at]);
        return r->cells[c->at].len > 0 || (c->csv || is_last(c));
    default: return take_number(c, column, reading, r);
    }
}

static void put_fixed(const struct sv_columns *c, struct sv_record *r)
{
    for (size_t i = 0; i < c->n_fixed; i++) {
        struct sv_text value = {c->fixed[i].value, (uint32_t)strlen(c->fixed[i].value)};
        int64_t number;
        if (c->fixed[i].kind != SV_COL_PID)
            (void)put_text(r, c->fixed[i].kind, value);
        else if (sv_text_i64(value, &number))
            put_number(r, SV_COL_PID, number);
    }
}

bool sv_columns_take(const struct sv_columns *c, struct sv_text line, struct sv_csv_line *csv,
                     struct sv_record *r)
{
    struct cursor at = {.columns = c, .f = {line.bytes, line.bytes + line.len}};
    *r = (struct sv_record){0};
    if (c->is_csv) {
        if (!sv_csv_split(csv, line.bytes, line.len) || csv->n != c->n)
            return false;
        at.csv = csv;
    }
    put_fixed(c, r);
    for (; at.at < c->n; at.at++)
        if (!take_column(&at, r))
            return false;
    return (c->is_csv || sv_field_rest(&at.f).len == 0) &&
           (!sv_record_has(r, SV_COL_LATENCY) || r->number[SV_COL_LATENCY] >= 0);
}

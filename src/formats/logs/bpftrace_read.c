/* What the bpftrace scripts for DL benchmarks print
 * (trace_{bio,open,close,read,write,mmap,create_del}.bt, syscalls.bt): a header per script, then a
 * line per finished call or request.
 *
 * Opened through the table of formats. The header says which script it was, of which generation;
 * what it says about the columns is not always true, so that a plan per header does, and a column
 * that was a descriptor once and a command later is recognised by its look. Other headers are read
 * by their words, and lines without any header by their shape: columns.h. Times are nanoseconds
 * since boot at the end of the call: the slice begins earlier by the latency. bpftrace's `nsecs` is
 * CLOCK_BOOTTIME (CLOCK_MONOTONIC before 0.11: the same on a machine that never slept). */
#include "formats/logs/columns.h"

#include <string.h>

#define HEAD_BYTES 65536

/* What a header means, where its words alone would not say it. */
struct plan {
    const char *header; /* single blanks */
    const char *op;     /* NULL: the function in the line says it; "block": rw says read or write */
    const char *columns;
};

static const struct plan plans[] = {
    {"TIMESTAMP PID COMM DONEPID DONECOMM DISK T BYTES LAT(ns)", "block",
     "ts pid comm - - disk rw bytes latency"},
    {"TIMESTAMP PID COMM DISK T BYTES SECTOR LAT(ns)", "block",
     "ts pid comm disk rw bytes sector latency"},
    {"TIMESTAMP PID COMM DISK T BYTES QLAT(ns) LAT(ns)", "block",
     "ts pid comm disk rw bytes queue latency"},
    {"TIMESTAMP PID TID COMM DISK T BYTES LAT(ns)", "block",
     "ts pid tid comm disk rw bytes latency"},
    {"TIMESTAMP PID FD LAT(ns) FULLPATH FILENAME", "openat", "ts pid comm|fd latency path+name"},
    {"TIMESTAMP PID COMM LAT(ns) FULLPATH FILENAME", "openat", "ts pid comm|fd latency path+name"},
    {"TIMESTAMP PID TID COMM LAT(ns) FULLPATH", "openat", "ts pid tid comm latency path"},
    {"TIMESTAMP PID TID COMM LAT(ns) FILENAME", "read", "ts pid tid comm latency path"},
    {"TIMESTAMP PID TID COMM LAT (ns) FILENAME", "write", "ts pid tid comm latency path"},
    {"TIMESTAMP PID FD RET (B) LAT(ns) FILENAME", "read", "ts pid comm|fd ret latency path"},
    {"TIMESTAMP PID OFFSET RET (B) LAT(ns) FILENAME", "read", "ts pid offset ret latency path"},
    {"TIMESTAMP TID OFFSET RET (B) LAT(ns) FILENAME", "read",
     "ts pid offset ret latency path"}, /* it is the pid */
    {"TIMESTAMP PID COMM OFFSET RET (B) FILENAME", "read", "ts pid comm offset ret path"},
    {"TIMESTAMP PID OFFSET SIZE (B) LAT (ns) FILENAME", "write", "ts pid offset ret latency path"},
    {"TIMESTAMP PID FD BUFFER ADDR OFFSET REQ (B) RET (B) LAT(ns)", "write",
     "ts pid comm|fd address offset requested ret latency path"},
    {"TIMESTAMP PID FD LAT(ns) FILENAME", "close", "ts pid fd latency path"},
    {"TIMESTAMP PID FUNCTION MODE LAT(ns) FILENAME", NULL, "ts pid function mode latency path"},
    {"TIMESTAMP PID FUNCTION LAT(ns) FILENAME", NULL, "ts pid function latency path"},
    {"TIMESTAMP PID FUNCTION LAT(ns) FILENAME FULLPATH", NULL, "ts pid function latency name+path"},
    {"TIMESTAMP PID FD ADDRESS LAT(ns) FILENAME", "mmap", "ts pid fd address latency path"},
    {"TIMESTAMP PID ADDRESS LEN LAT(ns)", "munmap", "ts pid address length latency"},
};

struct bpftrace {
    struct sv_lines lines;
    bool has_columns;
    const char *op, *header; /* as in the plan; header: for messages, NULL: by shape or by name */
    struct sv_columns columns;
    struct sv_columns functions[4], mappings[2];
    struct sv_log_clock clock;
    int64_t last_ns; /* of the last line that was understood */
    char why[200];
};

/* ---- headers ---- */

static bool same_header(struct sv_text line, const char *header)
{
    struct sv_fields a = {line.bytes, line.bytes + line.len};
    struct sv_fields b = {header, header + strlen(header)};
    for (;;) {
        struct sv_text x = sv_field_next(&a), y = sv_field_next(&b);
        if (x.len != y.len || memcmp(x.bytes, y.bytes, x.len) != 0)
            return false;
        if (x.len == 0)
            return true;
    }
}

static const struct plan *find_plan(struct sv_text line)
{
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (same_header(line, plans[i].header))
            return &plans[i];
    return NULL;
}

static bool is_banner(struct sv_text line)
{
    static const char *const titles[] = {
        "mkdir():", "rmdir():", "unlink():", "mmap():", "munmap():"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (sv_text_is(line, titles[i]))
            return true;
    return sv_text_begins(line, "Attaching ") || sv_text_begins(line, "Attached ");
}

/* A header of another version of the scripts, by its words. */
static bool is_named_header(struct sv_text line, struct sv_columns *c)
{
    return sv_text_begins(line, "TIMESTAMP ") && sv_columns_of_header(c, line) && !c->is_csv;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_columns c;
    struct sv_text line;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        if (find_plan(line) || sv_text_begins(line, "@[tracepoint:syscalls:sys_enter"))
            return 100;
        if (is_named_header(line, &c))
            return 90;
    }
    return sv_log_shape_of(sv_head(head, n), SV_UNIT_BOOT, NULL, &c) ? 70 : 0;
}

static struct sv_holds holds(const uint8_t *head, size_t n, const char *path)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_columns c;
    struct sv_text line;
    const char *op = NULL;
    for (int i = 0; i < 64 && !op && sv_head_line(&h, &line); i++) {
        const struct plan *plan = find_plan(line);
        op = plan ? plan->op : is_named_header(line, &c) ? sv_log_op_of_columns(&c, path) : NULL;
    }
    const struct sv_log_shape *shape =
        op ? NULL : sv_log_shape_of(sv_head(head, n), SV_UNIT_BOOT, path, &c);
    return (struct sv_holds){sv_log_subject(shape ? shape->op : op), SV_MEASURED, -1};
}

/* ---- events ---- */

static struct sv_text text_of(const char *word)
{
    return (struct sv_text){word, (uint32_t)strlen(word)};
}

/* The line's record by these columns, if it has them. */
static bool take(const struct sv_columns *c, struct sv_text line, struct sv_record *r)
{
    const struct sv_stamp *ts = &r->stamp[SV_COL_TS];
    return sv_columns_take(c, line, NULL, r) &&
           (ts->unit != SV_UNIT_BOOT || r->number[SV_COL_LATENCY] <= ts->ns);
}

static bool put(struct bpftrace *s, struct sv_batch *b, struct sv_record *r,
                const struct sv_columns *c, const char *op)
{
    int64_t start_ns, dur_ns;
    if (!sv_record_time(&s->lines, &s->clock, r, &start_ns, &dur_ns))
        return false;
    s->last_ns = start_ns + (dur_ns > 0 ? dur_ns : 0);
    sv_record_put(&s->lines, b, r, c, text_of(op), start_ns, dur_ns);
    return true;
}

static void note(struct sv_lines *l, enum sv_severity severity, const char *what, const char *why)
{
    sv_report_add(l->source.report, severity, what, 1, l->pos, "%s", why);
}

/* mkdir(), rmdir(), unlink(), create(): recognised by the line, because their headers are together
 * at the top. */
static const struct {
    const char *function, *op, *columns;
} functions[] = {{"mkdir()", "mkdir", "ts:boot pid function mode latency path"},
                 {"rmdir()", "rmdir", "ts:boot pid function latency path"},
                 {"unlink()", "unlink", "ts:boot pid function latency name+path"},
                 {"create()", "creat", "ts:boot pid tid function mode path"}};

static bool put_function(struct bpftrace *s, struct sv_batch *b, struct sv_text line)
{
    struct sv_record r;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!take(&s->functions[i], line, &r) ||
            !sv_text_is(r.text[SV_COL_FUNCTION], functions[i].function))
            continue;
        return put(s, b, &r, &s->functions[i], functions[i].op);
    }
    return sv_lines_bad(&s->lines, "no call of mkdir, rmdir, unlink or create");
}

static const char *const mappings[] = {"ts:boot pid fd address latency path",
                                       "ts:boot pid address length latency"};

/* mmap and munmap share a file, and their headers are together. */
static bool put_mapping(struct bpftrace *s, struct sv_batch *b, struct sv_text line)
{
    struct sv_record r;
    if (take(&s->mappings[0], line, &r)) {
        if (r.number[SV_COL_FD] < 0)
            r.has &= ~((uint64_t)1 << SV_COL_FD);
        return put(s, b, &r, &s->mappings[0], "mmap");
    }
    if (!take(&s->mappings[1], line, &r))
        return sv_lines_bad(&s->lines, "no call of mmap or munmap");
    return put(s, b, &r, &s->mappings[1], "munmap");
}

/* ---- other lines ---- */

/* syscalls.bt: @[tracepoint:syscalls:sys_enter_read]: 1234 has no times; it becomes metadata. */
static bool take_count(struct sv_lines *l, struct sv_text line)
{
    static const char prefix[] = "@[tracepoint:syscalls:sys_enter_";
    char key[96] = "syscall_count.";
    if (!sv_text_begins(line, prefix))
        return false;
    const char *name = line.bytes + sizeof prefix - 1, *end = line.bytes + line.len;
    const char *close = memchr(name, ']', (size_t)(end - name));
    if (!close || close - name > 64 || end - close < 4 || close[1] != ':')
        return false;
    memcpy(key + 14, name, (size_t)(close - name));
    struct sv_fields f = {close + 2, end};
    struct sv_text value = sv_field_rest(&f);
    int64_t number;
    if (!sv_text_i64(value, &number))
        return false;
    sv_dict_set_meta(l->dict, key, value.bytes, value.len, true);
    return true;
}

/* "Lost 123 events": the time is not given, so the loss gets the time of the line before it. */
static bool take_loss(struct sv_lines *l, struct sv_batch *b, struct sv_text line)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    int64_t count;
    if (!sv_text_is(sv_field_next(&f), "Lost") || !sv_text_i64(sv_field_next(&f), &count) ||
        count < 0 || !sv_text_begins(sv_field_rest(&f), "event"))
        return false;
    sv_report_add(l->source.report, SV_DAMAGE, "event lost by bpftrace", (uint64_t)count, l->pos,
                  "bpftrace's own count");
    sv_track track = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "bpftrace", 8);
    sv_batch_int(b, 0, count);
    sv_put_event(l, b, SV_LOSS, ((struct bpftrace *)l)->last_ns, track,
                 sv_dict_cstr(l->dict, "bpftrace's buffer was full"), "");
    return true;
}

static bool other_line(struct sv_lines *l, struct sv_batch *b, struct sv_text line)
{
    if (line.len == 0 || is_banner(line) || take_count(l, line) || take_loss(l, b, line))
        return true;
    if (line.bytes[0] != '@' && !sv_text_begins(line, "WARNING") && !sv_text_begins(line, "stdin:"))
        return false;
    note(l, SV_SKIPPED, "message or map of bpftrace", "it has no time");
    return true;
}

/* ---- lines ---- */

static void use_plan(struct bpftrace *s, const struct plan *plan)
{
    s->has_columns = sv_columns_parse(&s->columns, plan->columns, NULL) == 0;
    s->op = plan->op;
    s->header = plan->header;
}

/* A known header, or one whose words are known. */
static bool take_header(struct bpftrace *s, struct sv_text line)
{
    const struct plan *plan = find_plan(line);
    struct sv_columns c;
    if (plan) {
        use_plan(s, plan);
        return true;
    }
    if (!is_named_header(line, &c))
        return false;
    s->columns = c;
    s->has_columns = true;
    s->op = sv_log_op_of_columns(&c, s->lines.in->name);
    s->header = NULL;
    sv_columns_text(&c, s->why, sizeof s->why);
    note(&s->lines, SV_NOTE, "columns by the names in the header", s->why);
    return true;
}

static bool bad_columns(struct bpftrace *s)
{
    if (s->header)
        return sv_lines_bad(&s->lines, s->header);
    sv_columns_text(&s->columns, s->why, sizeof s->why);
    return sv_lines_bad(&s->lines, s->why);
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct bpftrace *s = (struct bpftrace *)l;
    struct sv_text text = {p, (uint32_t)len};
    struct sv_record r;
    if (other_line(l, b, text))
        return true;
    if (p[0] == 'T' && take_header(s, text))
        return true;
    if (!s->has_columns)
        return sv_lines_bad(l, "before the header that names its columns");
    if (!s->op)
        return put_function(s, b, text);
    if (strstr(s->op, "map"))
        return put_mapping(s, b, text);
    if (!take(&s->columns, text, &r))
        return bad_columns(s);
    return put(s, b, &r, &s->columns, s->op);
}

/* The header was cut off: what the lines look like. */
static void assume(struct bpftrace *s)
{
    struct sv_lines *l = &s->lines;
    struct sv_err ignored = {0};
    if (sv_input_need(l->in, HEAD_BYTES, &ignored) < 0)
        return; /* the first line meets the same error */
    struct sv_fields h = sv_head(l->in->data, l->in->len);
    struct sv_columns c;
    struct sv_text line;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++)
        if (find_plan(line) || is_named_header(line, &c))
            return;
    h = sv_head(l->in->data, l->in->len);
    const struct sv_log_shape *shape = sv_log_shape_of(h, SV_UNIT_BOOT, l->in->name, &s->columns);
    if (!shape)
        return;
    s->has_columns = true;
    s->op = shape->op;
    char text[200];
    sv_columns_text(&s->columns, text, sizeof text);
    sv_report_add(l->source.report, SV_NOTE, "no header: columns assumed by the look of the lines",
                  1, SV_NO_POS, "%s, '%s'; --columns gives others", shape->name, text);
    sv_dict_set_meta(l->dict, "assumed_columns", text, strlen(text), false);
}

static void init(struct sv_lines *l)
{
    struct bpftrace *s = (struct bpftrace *)l;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        (void)sv_columns_parse(&s->functions[i], functions[i].columns, NULL);
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++)
        (void)sv_columns_parse(&s->mappings[i], mappings[i], NULL);
    assume(s);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct bpftrace),
    .max_events = 1,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not bpftrace's",
    .clock = SV_CLOCK_BOOTTIME,
    .init = init,
    .line = line,
};

const struct sv_format sv_bpftrace_format = {
    .name = "bpftrace",
    .help = "what the bpftrace scripts for file and block I/O print",
    .lacks = "threads (the scripts print the process), full paths (most calls), flows",
    .files =
        "the scripts `trace_{bio,openat,close,read,write,mmap,create_del}.bt` and `syscalls.bt` of "
        "the DL benchmark tracing tools, all generations of their columns, by their headers, by "
        "the "
        "names in other headers, or, where the header was cut off, by the look of the lines",
    .times = "nanoseconds since boot (CLOCK_BOOTTIME) at the end of the call; the slice begins "
             "earlier by the latency",
    .probe = probe,
    .holds = holds,
    .lines = &kind,
};

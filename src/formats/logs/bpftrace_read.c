/* What the bpftrace scripts for DL benchmarks print (trace_{bio,open,close,read,write,mmap,create_del}.bt, syscalls.bt): a header per
 * script, then a line per finished call or request.
 *
 * Opened through the table of formats. The header says which script it was, of which generation; what it says about the
 * columns is not always true, so that a plan per header does, and a column that was a descriptor once and a command later is
 * recognised by its look. Times are nanoseconds since boot at the end of the call: the slice begins earlier by the latency.
 * bpftrace's `nsecs` is CLOCK_BOOTTIME (CLOCK_MONOTONIC before 0.11: the same on a machine that never slept). */
#include "formats/lines.h"
#include "model/kernel_words.h"

#include <string.h>

#define COMM_MAX 15 /* bytes of a command's name in the kernel */

/* Columns of a plan, one letter each: T time, p pid, t tid, c command, x descriptor or command, f descriptor, l latency,
 * o offset, r result, q requested, a address, n length, m mode, F function, D disk, w R or W, b bytes, s sector, Q latency from
 * queueing, d pid and C command that completed it; at the end, with blanks in them: N file name, P path and file name, U file name and path. */
struct plan {
    const char *header; /* single blanks */
    const char *op;     /* NULL: the F column says it; "block": T says read or write */
    const char *columns;
};

static const struct plan plans[] = {
    {"TIMESTAMP PID COMM DONEPID DONECOMM DISK T BYTES LAT(ns)", "block", "TpcdCDwbl"},
    {"TIMESTAMP PID COMM DISK T BYTES SECTOR LAT(ns)", "block", "TpcDwbsl"},
    {"TIMESTAMP PID COMM DISK T BYTES QLAT(ns) LAT(ns)", "block", "TpcDwbQl"},
    {"TIMESTAMP PID TID COMM DISK T BYTES LAT(ns)", "block", "TptcDwbl"},
    {"TIMESTAMP PID FD LAT(ns) FULLPATH FILENAME", "openat", "TpxlP"},
    {"TIMESTAMP PID COMM LAT(ns) FULLPATH FILENAME", "openat", "TpxlP"},
    {"TIMESTAMP PID TID COMM LAT(ns) FULLPATH", "openat", "TptclN"},
    {"TIMESTAMP PID TID COMM LAT(ns) FILENAME", "read", "TptclN"},
    {"TIMESTAMP PID TID COMM LAT (ns) FILENAME", "write", "TptclN"},
    {"TIMESTAMP PID FD RET (B) LAT(ns) FILENAME", "read", "TpxrlN"},
    {"TIMESTAMP PID OFFSET RET (B) LAT(ns) FILENAME", "read", "TporlN"},
    {"TIMESTAMP TID OFFSET RET (B) LAT(ns) FILENAME", "read", "TporlN"}, /* it is the pid */
    {"TIMESTAMP PID COMM OFFSET RET (B) FILENAME", "read", "TpcorN"},
    {"TIMESTAMP PID OFFSET SIZE (B) LAT (ns) FILENAME", "write", "TporlN"},
    {"TIMESTAMP PID FD BUFFER ADDR OFFSET REQ (B) RET (B) LAT(ns)", "write", "TpxaoqrlN"},
    {"TIMESTAMP PID FD LAT(ns) FILENAME", "close", "TpflN"},
    {"TIMESTAMP PID FUNCTION MODE LAT(ns) FILENAME", NULL, "TpFmlN"},
    {"TIMESTAMP PID FUNCTION LAT(ns) FILENAME", NULL, "TpFlN"},
    {"TIMESTAMP PID FUNCTION LAT(ns) FILENAME FULLPATH", NULL, "TpFlU"},
    {"TIMESTAMP PID FD ADDRESS LAT(ns) FILENAME", "mmap", "TpfalN"},
    {"TIMESTAMP PID ADDRESS LEN LAT(ns)", "munmap", "Tpanl"},
};

struct bpftrace {
    struct sv_lines lines;
    const struct plan *plan;
    int64_t last_ns; /* of the last line that was understood */
};

/* What a line said; 0 or -1 where it said nothing. */
struct record {
    bool has_fd, has_latency, has_offset, has_ret, has_sector, has_queue, has_tid, has_address;
    int64_t ts, pid, tid, fd, latency, offset, ret, sector, bytes, queue, requested, length, mode;
    uint64_t address;
    char rw;
    struct sv_text comm, path, disk, function;
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

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++)
        if (find_plan(line) || sv_text_begins(line, "@[tracepoint:syscalls:sys_enter"))
            return 100;
    return 0;
}

/* ---- columns ---- */

/* A command may hold blanks: it ends where as many words are left as there are columns, or, before free text, at the next number. */
static struct sv_text take_comm(struct sv_fields *f, const char *rest)
{
    struct sv_text word = sv_field_next(f);
    size_t needed = strlen(rest);
    bool is_free = strpbrk(rest, "NPU") != NULL;
    for (;;) {
        struct sv_fields ahead = *f;
        struct sv_text following = sv_field_next(&ahead);
        int64_t number;
        if (following.len == 0 || following.bytes + following.len - word.bytes > COMM_MAX ||
            (is_free ? sv_text_i64(following, &number) : sv_field_count(*f) <= needed))
            return word;
        *f = ahead;
        word.len = (uint32_t)(following.bytes + following.len - word.bytes);
    }
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

static bool take_number(struct sv_fields *f, int64_t *out)
{
    return sv_text_i64(sv_field_next(f), out);
}

/* Results and what is made of them: the scripts print all of it without a sign. */
static bool take_result(struct sv_fields *f, int64_t *out)
{
    return sv_text_signless(sv_field_next(f), out);
}

static bool take_column(struct sv_fields *f, const char *column, struct record *r)
{
    struct sv_fields before = *f;
    switch (*column) {
    case 'T': return take_number(f, &r->ts) && r->ts >= 0;
    case 'p': return take_number(f, &r->pid) && r->pid >= 0;
    case 't': return r->has_tid = take_number(f, &r->tid);
    case 'x':
        if ((r->has_fd = take_result(f, &r->fd)))
            return true;
        *f = before;
        r->comm = take_comm(f, column + 1);
        return r->comm.len > 0;
    case 'c': r->comm = take_comm(f, column + 1); return r->comm.len > 0;
    case 'C': return take_comm(f, column + 1).len > 0;
    case 'd': return take_result(f, &(int64_t){0});
    case 'f': return r->has_fd = take_result(f, &r->fd);
    case 'l': return r->has_latency = take_number(f, &r->latency);
    case 'o': return r->has_offset = take_result(f, &r->offset);
    case 'r': return r->has_ret = take_result(f, &r->ret);
    case 'q': return take_result(f, &r->requested);
    case 'n': return take_result(f, &r->length);
    case 'm': return take_result(f, &r->mode);
    case 'a': return r->has_address = sv_text_u64(sv_field_next(f), &r->address);
    case 'F': r->function = sv_field_next(f); return r->function.len > 2;
    case 'D': r->disk = sv_field_next(f); return r->disk.len > 0;
    case 'w': {
        struct sv_text w = sv_field_next(f);
        r->rw = w.len == 1 ? w.bytes[0] : 0;
        return r->rw == 'R' || r->rw == 'W';
    }
    case 'b': return take_number(f, &r->bytes) && r->bytes >= 0;
    case 's': return r->has_sector = take_number(f, &r->sector);
    case 'Q': return r->has_queue = take_number(f, &r->queue);
    case 'N': r->path = sv_field_rest(f); return true;
    case 'P': {
        bool has_name = f->end > f->p && f->end[-1] != ' '; /* a call that failed has no file */
        r->path = sv_field_rest(f);
        r->path = has_name ? split_path(r->path, true) : r->path;
        return true;
    }
    default: r->path = split_path(sv_field_rest(f), false); return true;
    }
}

static bool take_columns(struct sv_text line, const char *columns, struct record *r)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    for (; *columns; columns++)
        if (!take_column(&f, columns, r))
            return false;
    return sv_field_rest(&f).len == 0 &&
           (!r->has_latency || (r->latency >= 0 && r->latency <= r->ts));
}

/* ---- events ---- */

static void put_block(struct sv_lines *l, struct sv_batch *b, const struct record *r)
{
    sv_track disks = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "Disks", 5);
    sv_track track = sv_lines_group(l, disks, SV_TRACK_CUSTOM, r->disk.bytes, r->disk.len);
    sv_lines_process(l, r->pid, r->comm);
    sv_add_text(l, b, "device", r->disk);
    if (r->has_sector)
        sv_add_int(l, b, "sector", r->sector);
    sv_add_int(l, b, "bytes", r->bytes);
    if (r->has_queue && r->queue >= r->latency)
        sv_add_int(l, b, "queue_ns", r->queue - r->latency);
    else if (!r->has_sector) /* that generation measures from there */
        sv_add_text(l, b, "from", (struct sv_text){"queue", 5});
    sv_add_int(l, b, "pid", r->pid);
    sv_add_text(l, b, "comm", r->comm);
    sv_str name = sv_dict_cstr(l->dict, r->rw == 'W' ? "write" : "read");
    struct sv_event *e =
        sv_put_event(l, b, SV_SLICE, r->ts - r->latency, track, name, SV_CAT_BLOCK);
    e->dur_ns = r->latency;
}

/* The thread where the script prints it; else a track of the process on which calls may overlap. */
static sv_track call_track(struct sv_lines *l, const struct record *r)
{
    sv_track process = sv_lines_process(l, r->pid, r->comm);
    if (r->has_tid)
        return sv_dict_thread(l->dict, l->space, r->pid, r->tid);
    return sv_lines_group(l, process, SV_TRACK_CUSTOM, SV_ROW_SYSCALLS, strlen(SV_ROW_SYSCALLS));
}

static void put_call(struct sv_lines *l, struct sv_batch *b, const struct record *r, const char *op)
{
    sv_track track = call_track(l, r);
    bool is_open = strcmp(op, "openat") == 0;
    bool is_transfer = strcmp(op, "read") == 0 || strcmp(op, "write") == 0;
    if (r->has_fd && (!is_open || r->fd >= 0))
        sv_add_int(l, b, "fd", r->fd);
    if (r->path.len)
        sv_add_text(l, b, "path", r->path);
    if (r->requested)
        sv_add_int(l, b, "requested", r->requested);
    if (r->length)
        sv_add_int(l, b, "length", r->length);
    if (r->has_offset)
        sv_add_int(l, b, "offset", r->offset);
    if (r->has_address)
        sv_add_pointer(l, b, "address", r->address);
    if (r->mode)
        sv_add_int(l, b, "mode", r->mode);
    if (r->has_ret)
        sv_add_result(l, b, r->ret, is_transfer);
    else if (is_open && r->has_fd)
        sv_add_result(l, b, r->fd, false);
    sv_str name = sv_dict_cstr(l->dict, op);
    int64_t latency = r->has_latency ? r->latency : 0;
    struct sv_event *e = sv_put_event(l, b, r->has_latency ? SV_SLICE : SV_INSTANT, r->ts - latency,
                                      track, name, SV_CAT_SYSCALL);
    e->dur_ns = latency;
}

static void note(struct sv_lines *l, enum sv_severity severity, const char *what, const char *why)
{
    sv_report_add(l->source.report, severity, what, 1, l->pos, "%s", why);
}

/* mkdir(), rmdir(), unlink(), create(): recognised by the line, because their headers are together at the top. */
static bool take_function(struct sv_text line, struct record *r)
{
    static const struct {
        const char *function, *columns;
    } kinds[] = {{"mkdir()", "TpFmlN"}, {"rmdir()", "TpFlN"}, {"unlink()", "TpFlU"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct record one = {0};
        if (take_columns(line, kinds[i].columns, &one) &&
            sv_text_is(one.function, kinds[i].function)) {
            *r = one;
            return true;
        }
    }
    *r = (struct record){0};
    return take_columns(line, "TptFmN", r) && sv_text_is(r->function, "create()");
}

static bool put_function(struct sv_lines *l, struct sv_batch *b, struct sv_text line)
{
    struct record r;
    if (!take_function(line, &r))
        return sv_lines_bad(l, "no call of mkdir, rmdir, unlink or create");
    if (sv_text_is(r.function, "unlink()")) {
        r.has_latency = false;
        note(l, SV_NOTE, "unlink without a duration",
             "the script takes both times at the start of the call: they are shown as instants");
        put_call(l, b, &r, "unlink");
    } else if (sv_text_is(r.function, "create()")) {
        put_call(l, b, &r, "creat");
    } else {
        put_call(l, b, &r, sv_text_is(r.function, "mkdir()") ? "mkdir" : "rmdir");
    }
    return true;
}

/* mmap and munmap share a file, and their headers are together. */
static bool put_mapping(struct sv_lines *l, struct sv_batch *b, struct sv_text line)
{
    struct record r = {0};
    if (take_columns(line, "TpfalN", &r)) {
        if (r.fd < 0)
            r.has_fd = false;
        put_call(l, b, &r, "mmap");
        return true;
    }
    r = (struct record){0};
    if (!take_columns(line, "Tpanl", &r))
        return sv_lines_bad(l, "no call of mmap or munmap");
    put_call(l, b, &r, "munmap");
    return true;
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
    if (!sv_text_is(sv_field_next(&f), "Lost") || !take_number(&f, &count) || count < 0 ||
        !sv_text_begins(sv_field_rest(&f), "event"))
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

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct bpftrace *s = (struct bpftrace *)l;
    struct sv_text text = {p, (uint32_t)len};
    if (other_line(l, b, text))
        return true;
    const struct plan *plan = p[0] == 'T' ? find_plan(text) : NULL;
    if (plan) {
        s->plan = plan;
        return true;
    }
    if (!s->plan)
        return sv_lines_bad(l, "before the header that names its columns");
    if (!s->plan->op)
        return put_function(l, b, text);
    if (strstr(s->plan->op, "map"))
        return put_mapping(l, b, text);
    struct record r = {0};
    if (!take_columns(text, s->plan->columns, &r))
        return sv_lines_bad(l, s->plan->header);
    s->last_ns = r.ts;
    if (strcmp(s->plan->op, "block") == 0)
        put_block(l, b, &r);
    else
        put_call(l, b, &r, s->plan->op);
    return true;
}

static void init(struct sv_lines *l)
{
    l->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct bpftrace),
    .max_events = 1,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "line that is not bpftrace's",
    .init = init,
    .line = line,
};

const struct sv_format sv_bpftrace_format = {
    .name = "bpftrace",
    .help = "what the bpftrace scripts for file and block I/O print",
    .lacks = "threads (the scripts print the process), full paths (most calls), flows",
    .files =
        "the scripts `trace_{bio,openat,close,read,write,mmap,create_del}.bt` and `syscalls.bt` of "
        "the DL benchmark tracing tools, all generations of their columns, by their headers",
    .times = "nanoseconds since boot (CLOCK_BOOTTIME) at the end of the call; the slice begins "
             "earlier by the latency",
    .probe = probe,
    .lines = &kind,
};

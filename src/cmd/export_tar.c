/* stave export --to perfetto-tar: the traces of many ranks in one archive, each as a Perfetto trace
 * of its own, with Perfetto's manifest.
 *
 * Every trace is converted beside the archive and appended to it. The manifest
 * (perfetto_manifest.json, version 1) comes last, when the clocks of all traces are known: it names
 * each rank's machine and says how far its clock is from that of the first trace, as `stave merge`
 * relates them. Perfetto reads it first wherever it is. Bigtrace takes the traces of the archive
 * one by one.
 *
 * A manifest can only name the kernel's clocks. Times that count from the file's own zero
 * (Kineto's, whose base comes after the events) are therefore converted to the wall clock: Perfetto
 * drops all events of a file that nothing relates to the first one, and says nothing. */
#include "clocks/hosts.h"
#include "clocks/merge_axis.h"
#include "cmd/export.h"
#include "cmd/export_columns.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/files/output.h"
#include "files/open.h"
#include "store/ranks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAR_BLOCK    512
#define TAR_SIZE_MAX ((uint64_t)8 << 30) /* twelve octal digits, the last one a terminator */

struct member {
    char name[64]; /* in the archive */
    char *label;   /* of its machine */
    /* Its metadata and clocks, without all else that a dictionary holds: there may be thousands. */
    struct sv_dict *about;
    struct sv_origin who; /* texts of `about` */
};

struct archive {
    const struct sv_export_options *o;
    const struct sv_rotations *traces;
    struct sv_output *out;
    char part[4200]; /* the trace that is being converted */
    struct member *members;
    size_t n; /* so far */
};

/* ---- the archive ---- */

/* With a zero byte after the digits. */
static void put_octal(char *to, size_t size, uint64_t v)
{
    for (size_t i = size - 1; i-- > 0; v >>= 3)
        to[i] = (char)('0' + (v & 7));
}

static void put_header(struct sv_output *out, const char *name, uint64_t size)
{
    char head[TAR_BLOCK] = {0};
    unsigned sum = 0;
    snprintf(head, 100, "%s", name);
    put_octal(head + 100, 8, 0644);
    put_octal(head + 108, 8, 0); /* owner and group */
    put_octal(head + 116, 8, 0);
    put_octal(head + 124, 12, size);
    put_octal(head + 136, 12, 0); /* time: equal inputs make equal archives */
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    for (size_t i = 0; i < sizeof head; i++)
        sum += (unsigned char)head[i];
    put_octal(head + 148, 7, sum);
    sv_output_write(out, head, sizeof head);
}

static void put_padding(struct sv_output *out, uint64_t size)
{
    static const char zeros[TAR_BLOCK];
    if (size % TAR_BLOCK)
        sv_output_write(out, zeros, TAR_BLOCK - size % TAR_BLOCK);
}

static int append_file(struct archive *a, const char *name, struct sv_err *err)
{
    enum { BUF = 1 << 18 };
    int fd = open(a->part, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    int code = size < 0 || lseek(fd, 0, SEEK_SET) < 0
                   ? sv_err_sys(err, "%.300s: cannot read what was converted", a->part)
                   : 0;
    if (code >= 0 && (uint64_t)size >= TAR_SIZE_MAX)
        code =
            sv_error(err, SV_ELIMIT,
                     "as a Perfetto trace it has 8 GiB or more, which a TAR cannot hold: cut it");
    uint8_t *buf = sv_alloc_aligned(BUF, 64);
    if (code >= 0)
        put_header(a->out, name, (uint64_t)size);
    for (off_t done = 0; code >= 0 && done < size;) {
        ssize_t n = read(fd, buf, BUF);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            code = sv_err_sys(err, "%.300s: cannot read what was converted", a->part);
        if (n > 0) {
            sv_output_write(a->out, buf, (size_t)n);
            done += n;
        }
    }
    if (code >= 0)
        put_padding(a->out, (uint64_t)size);
    free(buf);
    if (fd >= 0)
        close(fd);
    return code < 0 ? code : sv_output_failure(a->out, err);
}

/* As the manifest calls them; NULL: a clock of the file alone. */
static const char *clock_name(uint32_t clock)
{
    static const char *const names[] = {[SV_CLOCK_REALTIME] = "REALTIME",
                                        [SV_CLOCK_REALTIME_COARSE] = "REALTIME_COARSE",
                                        [SV_CLOCK_MONOTONIC] = "MONOTONIC",
                                        [SV_CLOCK_MONOTONIC_COARSE] = "MONOTONIC_COARSE",
                                        [SV_CLOCK_MONOTONIC_RAW] = "MONOTONIC_RAW",
                                        [SV_CLOCK_BOOTTIME] = "BOOTTIME"};
    return clock < sizeof names / sizeof *names ? names[clock] : NULL;
}

/* ---- a trace ---- */

/* rank0003.pftrace; a second file of the rank is rank0003-2.pftrace; without a rank
 * trace0001.pftrace, by its place on the command line. */
static void name_member(struct archive *a, struct member *m)
{
    unsigned same = 1;
    if (m->who.rank < 0) {
        snprintf(m->name, sizeof m->name, "trace%04zu.pftrace", a->n);
        return;
    }
    for (size_t i = 0; i < a->n; i++)
        same += a->members[i].who.rank == m->who.rank;
    if (same == 1)
        snprintf(m->name, sizeof m->name, "rank%04" PRId64 ".pftrace", m->who.rank);
    else
        snprintf(m->name, sizeof m->name, "rank%04" PRId64 "-%u.pftrace", m->who.rank, same);
}

static void name_machine(struct member *m)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 12);
    if (m->who.rank >= 0)
        sv_buf_printf(&b, "rank %" PRId64, m->who.rank);
    else
        sv_buf_printf(&b, "%.*s", (int)strcspn(m->name, "."), m->name);
    if (m->who.host)
        sv_buf_printf(&b, " on %.200s", m->who.host);
    m->label = sv_strndup(sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
}

static void learn(struct archive *a, struct sv_dict *dict)
{
    struct member *m = &a->members[a->n];
    m->about = sv_dict_new();
    for (uint32_t i = 0; i < dict->n_meta; i++) {
        struct sv_text value = sv_dict_text(dict, dict->meta[i].value);
        sv_dict_set_meta(m->about, sv_dict_text(dict, dict->meta[i].key).bytes, value.bytes,
                         value.len, dict->meta[i].is_json);
    }
    m->about->clocks = dict->clocks;
    dict->clocks = (struct sv_clocks){.trace_clock = m->about->clocks.trace_clock};
    m->who = sv_origin_of(m->about, 0);
    m->who.rank = m->who.rank > 999999999 ? -1 : m->who.rank;
    name_member(a, m);
    name_machine(m);
    a->n++;
}

/* ---- times of the file alone ---- */

/* Puts all times on another clock on their way into the writer. */
struct to_clock {
    struct sv_sink sink;
    struct sv_sink *next;
    struct sv_dict *dict;
    uint32_t from, clock;
    int64_t add_ns;
};

static struct sv_snapshot moved_snapshot(const struct to_clock *t, const struct sv_snapshot *from)
{
    struct sv_snapshot s = *from;
    int64_t ns;
    s.n = 0;
    for (uint32_t i = 0; i < from->n; i++) {
        struct sv_reading r = from->readings[i];
        if (r.clock == t->from || r.clock == SV_CLOCK_UNKNOWN) {
            bool is_there = sv_snapshot_get(from, t->clock, &ns);
            if (is_there || __builtin_add_overflow(r.ns, t->add_ns, &r.ns))
                continue;
            r.clock = t->clock;
        }
        s.readings[s.n++] = r;
    }
    return s;
}

/* What only said how the file's times relate to that clock has done its work. Those that come later
 * are moved, those that were stay as they are. */
static void move_clocks(const struct to_clock *t)
{
    struct sv_clocks *c = &t->dict->clocks;
    size_t n = 0;
    c->trace_clock = t->clock;
    for (size_t i = 0; i < c->n; i++) {
        c->snapshots[n] = moved_snapshot(t, &c->snapshots[i]);
        n += c->snapshots[n].n > 1;
    }
    c->n = n;
}

static int to_clock_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                          struct sv_err *err)
{
    struct to_clock *t = (struct to_clock *)(void *)s;
    struct sv_event moved[SV_BATCH];
    assert(n <= SV_BATCH);
    move_clocks(t);
    for (size_t i = 0; i < n; i++) {
        moved[i] = events[i];
        if (__builtin_add_overflow(events[i].ts_ns, t->add_ns, &moved[i].ts_ns) ||
            !sv_event_ends(&moved[i]))
            return sv_error(err, SV_ELIMIT,
                            "an event is more than 2^63 ns away from 1970: cut it out");
    }
    return t->next->write(t->next, moved, n, err);
}

static int to_clock_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct to_clock *t = (struct to_clock *)(void *)s;
    move_clocks(t);
    return t->next->close(t->next, failed, err);
}

/* The clock that a manifest can name, for a trace that has none such; false: the trace has one, or
 * it is refused when the traces are related. */
static bool find_clock(const struct archive *a, const struct sv_dict *dict, struct to_clock *t)
{
    t->from = dict->clocks.trace_clock;
    if (clock_name(t->from) || a->traces->n == 1)
        return false;
    t->clock = SV_CLOCK_REALTIME;
    if (sv_clocks_convert(&dict->clocks, t->from, t->clock, 0, &t->add_ns))
        return true;
    /* Unchanged, on the clock that the others are on. */
    t->clock = a->n ? a->members[0].about->clocks.trace_clock : SV_CLOCK_MONOTONIC;
    t->add_ns = 0;
    return a->o->assume;
}

/* The converted trace once more; `dict` becomes that of the result. */
static int move_trace(struct archive *a, struct to_clock *t, struct sv_dict **dict,
                      struct sv_err *err)
{
    char to[sizeof a->part + 8];
    struct sv_output_choice choice = {.path = to, .to = "perfetto"};
    struct sv_opened in;
    snprintf(to, sizeof to, "%s.clock", a->part);
    t->dict = sv_dict_new();
    int code = sv_open_input(a->part, "perfetto", 0, t->dict, &in, err);
    if (code >= 0)
        code = sv_open_output(&choice, t->dict, &in.report, &t->next, err);
    if (code >= 0) {
        t->sink = (struct sv_sink){.write = to_clock_write, .close = to_clock_close};
        sv_sink_takes_as(&t->sink, t->next, SV_ORDER_BITS);
        code = sv_pump(in.source, &t->sink, NULL, err);
        in.source = NULL;
    }
    sv_opened_close(&in);
    if (code >= 0 && rename(to, a->part) != 0)
        code = sv_err_sys(err, "cannot rename %.300s", to);
    if (code < 0)
        unlink(to);
    sv_dict_free(*dict);
    *dict = t->dict;
    return code;
}

static int add_trace(struct archive *a, const char *path, struct sv_err *err)
{
    struct sv_output_choice choice = {.path = a->part, .to = "perfetto"};
    struct sv_dict *dict = sv_dict_new();
    struct to_clock to;
    struct sv_opened in;
    struct sv_sink *sink;
    struct sv_read_options read = {.rotation = sv_rotation_of(a->traces, path)};
    int code = sv_open_input_as(path, a->o->from, &read, dict, &in, err);
    if (code >= 0)
        code = sv_open_output(&choice, dict, &in.report, &sink, err);
    if (code >= 0)
        code = sv_run(&in, sink, a->o->strict, "exporting", err);
    if (code >= 0 && (code = sv_export_check_rank(dict, err)) < 0)
        sv_err_in_file(err, path);
    if (code >= 0 && find_clock(a, dict, &to) && (code = move_trace(a, &to, &dict, err)) < 0)
        sv_err_in_file(err, path);
    if (code >= 0) {
        learn(a, dict);
        code = append_file(a, a->members[a->n - 1].name, err);
    }
    unlink(a->part);
    sv_opened_close(&in);
    sv_dict_free(dict);
    return code;
}

/* ---- how they relate ---- */

/* Adds to a time on the trace's clock for the common one. With drift: what holds at the first
 * snapshot. */
static bool shift_of(struct sv_shift *s, int64_t *ns)
{
    int64_t from = s->n ? s->points[0].from_ns : 0, to;
    return sv_shift_apply(s, from, &to) && !__builtin_sub_overflow(to, from, ns);
}

static int offset_of(struct sv_merge_axis *axis, size_t i, const char *path, int64_t *first,
                     int64_t *offset, struct sv_err *err)
{
    int64_t own = 0;
    struct sv_shift shift = sv_merge_axis_take(axis, i);
    bool fits = shift_of(&shift, &own);
    sv_shift_fini(&shift);
    if (i == 0)
        *first = own;
    if (fits && !__builtin_sub_overflow(own, *first, offset))
        return 0;
    return sv_error(err, SV_ELIMIT,
                    "%.300s: its clock is further from the first trace's than int64 holds", path);
}

/* offsets[i]: what the first trace's clock reads more than that of trace i at the same moment. */
static int relate(struct archive *a, int64_t *offsets, struct sv_err *err)
{
    struct sv_merge_axis axis = {0};
    struct sv_merge_axis_input *inputs = sv_alloc(a->n * sizeof *inputs);
    struct sv_host *hosts = sv_alloc(a->n * sizeof *hosts), **list = sv_alloc(a->n * sizeof *list);
    int64_t first = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_origin *who = &a->members[i].who;
        hosts[i] = (struct sv_host){
            .host = who->host, .boot = who->boot, .rank = who->rank, .n_spaces = 1};
        list[i] = &hosts[i];
        inputs[i] = (struct sv_merge_axis_input){.name = a->traces->inputs[i],
                                                 .dict = a->members[i].about,
                                                 .from = &hosts[i],
                                                 .first_ns = 1};
    }
    sv_hosts_number(list, a->n, false);
    int code = sv_merge_axis_relate(&axis, inputs, a->n,
                                    &(struct sv_merge_options){.assume = a->o->assume}, err);
    for (size_t i = 0; i < a->n && code >= 0; i++)
        code = offset_of(&axis, i, a->traces->inputs[i], &first, &offsets[i], err);
    sv_merge_axis_fini(&axis);
    free(inputs);
    free(hosts);
    free(list);
    return code;
}

/* ---- the manifest ---- */

static void put_key(struct sv_json *j, const char *key)
{
    sv_json_key(j, key, strlen(key));
}

static void put_text(struct sv_json *j, const char *key, const char *value)
{
    put_key(j, key);
    sv_json_text(j, value, strlen(value));
}

static void put_clock(struct sv_json *j, uint32_t clock)
{
    put_text(j, "clock", clock_name(clock));
}

static void put_member(struct sv_json *j, const struct archive *a, size_t i, int64_t offset_ns)
{
    const struct member *m = &a->members[i], *first = &a->members[0];
    sv_json_begin(j, '{');
    put_text(j, "path", m->name);
    put_key(j, "machine");
    sv_json_begin(j, '{');
    put_text(j, "name", m->label);
    sv_json_end(j);
    if (i > 0) {
        put_key(j, "clocks");
        sv_json_begin(j, '{');
        put_clock(j, m->about->clocks.trace_clock);
        put_key(j, "sync_to");
        sv_json_begin(j, '{');
        put_text(j, "file", first->name);
        put_clock(j, first->about->clocks.trace_clock);
        sv_json_end(j);
        put_key(j, "offset_ns");
        sv_json_i64(j, offset_ns);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void put_manifest(struct archive *a, const int64_t *offsets, struct sv_buf *b)
{
    struct sv_json j;
    sv_json_init(&j, b);
    sv_json_begin(&j, '{');
    put_key(&j, "perfetto_manifest");
    sv_json_begin(&j, '{');
    put_key(&j, "version");
    sv_json_i64(&j, 1);
    if (clock_name(a->members[0].about->clocks.trace_clock)) {
        put_key(&j, "trace_time");
        sv_json_begin(&j, '{');
        put_clock(&j, a->members[0].about->clocks.trace_clock);
        put_text(&j, "file", a->members[0].name);
        sv_json_end(&j);
    }
    put_key(&j, "files");
    sv_json_begin(&j, '[');
    for (size_t i = 0; i < a->n; i++)
        put_member(&j, a, i, offsets[i]);
    sv_json_end(&j);
    if (a->members[0].who.job) {
        put_key(&j, "attributes");
        sv_json_begin(&j, '{');
        put_text(&j, "stave.job", a->members[0].who.job);
        sv_json_end(&j);
    }
    sv_json_end(&j);
    sv_json_end(&j);
    sv_buf_byte(b, '\n');
}

static int end_archive(struct archive *a, struct sv_err *err)
{
    static const char end[2 * TAR_BLOCK];
    int64_t *offsets = sv_alloc(a->n * sizeof *offsets);
    struct sv_buf b;
    int code = relate(a, offsets, err);
    sv_buf_init(&b, (size_t)1 << 30);
    if (code >= 0) {
        put_manifest(a, offsets, &b);
        put_header(a->out, "perfetto_manifest.json", b.len);
        sv_output_write(a->out, b.data, b.len);
        put_padding(a->out, b.len);
        sv_output_write(a->out, end, sizeof end);
    }
    sv_buf_fini(&b);
    free(offsets);
    return code;
}

static void free_members(struct archive *a)
{
    for (size_t i = 0; i < a->n; i++) {
        sv_dict_free(a->members[i].about);
        free(a->members[i].label);
    }
    free(a->members);
}

static int write_tar(const struct sv_export_options *o, const struct sv_rotations *traces,
                     struct sv_err *err)
{
    struct archive a = {
        .o = o, .traces = traces, .members = sv_alloc(traces->n * sizeof *a.members)};
    snprintf(a.part, sizeof a.part, "%.4096s.%ld.part.pftrace", o->output, (long)getpid());
    int code = sv_output_open(o->output, SV_OUTPUT_RENAME, SV_PLAIN, &a.out, err);
    if (code < 0) {
        free_members(&a);
        return code;
    }
    for (size_t i = 0; i < traces->n && code >= 0; i++)
        code = add_trace(&a, traces->inputs[i], err);
    if (code >= 0)
        code = end_archive(&a, err);
    int ended = sv_output_end(a.out, code < 0, err);
    free_members(&a);
    return code < 0 ? code : ended;
}

const struct sv_export_form sv_export_perfetto_tar = {
    .name = "perfetto-tar",
    .help = "an archive of Perfetto traces on one time axis",
    .about = "perfetto-tar: each trace becomes a Perfetto trace in one TAR, and "
             "perfetto_manifest.json in it names their ranks and the offsets of their clocks. "
             "Traces whose clocks cannot be related are refused, unless --assume is given.",
    .suffixes = ".tar",
    .needs_no_sqlite = true,
    .write_each = write_tar,
};

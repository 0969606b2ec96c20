/* Events of lines with known columns; see columns.h. Called by the readers of bpftrace's, bcc's and
 * other line-oriented logs. */
#include "formats/logs/columns.h"
#include "formats/logs/meters.h"
#include "formats/logs/phases.h"
#include "subjects/io/words.h"

#include <stdio.h>
#include <string.h>

/* ---- times ---- */

/* The day of a moment where the machine was: other files of its run have times of day only. */
static void set_local_date(struct sv_lines *l, int64_t ns)
{
    int64_t utc_s = ns / SV_S_NS;
    int64_t offset_s = l->wall.zone ? utc_s - sv_zone_utc(l->wall.zone, utc_s, INT64_MIN) : 0;
    char text[32];
    int64_t year;
    unsigned month, day;
    sv_civil_date((utc_s + offset_s) / SV_DAY_S, &year, &month, &day);
    int n = snprintf(text, sizeof text, "%04d-%02u-%02u", (int)year, month, day);
    if (n > 0)
        sv_dict_set_meta(l->dict, "local_date", text, (size_t)n, false);
}

static void set_clock(struct sv_lines *l, struct sv_log_clock *clock, enum sv_column_unit unit,
                      int64_t ns)
{
    clock->is_set = true;
    clock->unit = unit;
    switch (unit) {
    case SV_UNIT_LOCAL:
    case SV_UNIT_CLOCK: sv_wall_set_clock(l); break;
    case SV_UNIT_BOOT: l->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME; break;
    case SV_UNIT_UTC:
    case SV_UNIT_UNIX:
    case SV_UNIT_UNIX_MS:
    case SV_UNIT_UNIX_US:
    case SV_UNIT_UNIX_NS:
        l->dict->clocks.trace_clock = SV_CLOCK_REALTIME;
        set_local_date(l, ns);
        break;
    default: l->dict->clocks.trace_clock = SV_CLOCK_UNKNOWN; break;
    }
}

static bool stamp_ns(struct sv_lines *l, const struct sv_stamp *t, int64_t *ns)
{
    bool is_wall = t->unit == SV_UNIT_UTC || t->unit == SV_UNIT_LOCAL || t->unit == SV_UNIT_CLOCK;
    if (!is_wall) {
        *ns = t->ns;
        return true;
    }
    if (t->unit == SV_UNIT_UTC || t->has_offset) {
        int64_t second = t->days * SV_DAY_S + t->of_day / SV_S_NS - t->offset_s;
        return t->has_days && !__builtin_mul_overflow(second, SV_S_NS, ns) &&
               !__builtin_add_overflow(*ns, t->of_day % SV_S_NS, ns);
    }
    if (t->has_days)
        sv_wall_set_date(&l->wall, t->days);
    return sv_wall_ns(&l->wall, t->of_day, ns);
}

/* One of the moments of the line, if it has it. */
static bool moment(struct sv_lines *l, struct sv_log_clock *clock, const struct sv_stamp *t,
                   int64_t *ns)
{
    if (!stamp_ns(l, t, ns))
        return sv_lines_bad(l, "a time before the year 2262");
    if (!clock->is_set)
        set_clock(l, clock, t->unit, *ns);
    return clock->unit == t->unit || sv_lines_bad(l, "a time of the same kind as those before it");
}

bool sv_record_time(struct sv_lines *l, struct sv_log_clock *clock, struct sv_record *r,
                    int64_t *start_ns, int64_t *dur_ns)
{
    const struct sv_stamp *ts = &r->stamp[SV_COL_TS], *start = &r->stamp[SV_COL_START];
    const struct sv_stamp *end = r->stamp[SV_COL_END].unit ? &r->stamp[SV_COL_END] : ts;
    bool has_start = start->unit != SV_UNIT_NONE, has_end = end->unit != SV_UNIT_NONE;
    int64_t latency = r->number[SV_COL_LATENCY], end_ns;
    *dur_ns = -1;
    if (has_start && !moment(l, clock, start, start_ns))
        return false;
    if (has_end && !moment(l, clock, end, &end_ns))
        return false;
    if (has_start && sv_record_has(r, SV_COL_LATENCY)) {
        *dur_ns = latency;
        return !__builtin_add_overflow(*start_ns, latency, &end_ns);
    }
    if (has_start) {
        if (!has_end)
            return true;
        return (!__builtin_sub_overflow(end_ns, *start_ns, dur_ns) && *dur_ns >= 0) ||
               sv_lines_bad(l, "an end after the start");
    }
    *start_ns = has_end ? end_ns : 0;
    if (!has_end || !sv_record_has(r, SV_COL_LATENCY))
        return has_end;
    *dur_ns = latency;
    if (__builtin_sub_overflow(end_ns, latency, start_ns))
        return sv_lines_bad(l, "a latency that is not longer than the time");
    /* Tools that count from their own start print what began before it. */
    return latency <= end_ns || clock->unit >= SV_UNIT_NS ||
           sv_lines_bad(l, "a latency that is not longer than the time");
}

/* ---- events ---- */

static void put_block(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                      int64_t start_ns, int64_t dur_ns)
{
    struct sv_text disk = r->text[SV_COL_DISK];
    bool has_disk = sv_record_has(r, SV_COL_DISK);
    int64_t queue = r->number[SV_COL_QUEUE];
    struct sv_text comm = r->text[SV_COL_COMM];
    sv_track track = sv_meter_disk(l, has_disk ? disk : (struct sv_text){"unknown disk", 12});
    if (sv_record_has(r, SV_COL_PID))
        sv_lines_process(l, r->number[SV_COL_PID], comm);
    if (has_disk)
        sv_add_text(l, b, "device", disk);
    if (sv_record_has(r, SV_COL_SECTOR))
        sv_add_int(l, b, "sector", r->number[SV_COL_SECTOR]);
    if (sv_record_has(r, SV_COL_BYTES))
        sv_add_int(l, b, "bytes", r->number[SV_COL_BYTES]);
    if (sv_record_has(r, SV_COL_WAIT))
        sv_add_int(l, b, "queue_ns", r->number[SV_COL_WAIT]);
    else if (sv_record_has(r, SV_COL_QUEUE) && queue >= dur_ns)
        sv_add_int(l, b, "queue_ns", queue - dur_ns);
    else if (!sv_record_has(r, SV_COL_SECTOR) && has_disk &&
             r->stamp[SV_COL_TS].unit == SV_UNIT_BOOT) /* that script measures from there */
        sv_add_text(l, b, "from", (struct sv_text){"queue", 5});
    if (sv_record_has(r, SV_COL_PID))
        sv_add_int(l, b, "pid", r->number[SV_COL_PID]);
    if (comm.len)
        sv_add_text(l, b, "comm", comm);
    char rw = sv_record_rw(r);
    if (r->text[SV_COL_RW].len > 1 && rw)
        sv_add_text(l, b, "flags", r->text[SV_COL_RW]);
    sv_str name = sv_dict_cstr(l->dict, rw == 'W'   ? "write"
                                        : rw == 'R' ? "read"
                                        : rw == 'D' ? "discard"
                                        : rw == 'F' ? "flush"
                                                    : "request");
    struct sv_event *e = sv_put_event(l, b, dur_ns >= 0 ? SV_SLICE : SV_INSTANT, start_ns, track,
                                      name, SV_CAT_BLOCK);
    e->dur_ns = dur_ns >= 0 ? dur_ns : 0;
}

/* The thread where the line names it; else a track of the process on which calls may overlap. */
static sv_track call_track(struct sv_lines *l, const struct sv_record *r)
{
    bool has_pid = sv_record_has(r, SV_COL_PID), has_tid = sv_record_has(r, SV_COL_TID);
    int64_t pid = has_pid ? r->number[SV_COL_PID] : r->number[SV_COL_TID];
    sv_track process = sv_lines_process(l, pid, r->text[SV_COL_COMM]);
    if (has_tid)
        return sv_dict_thread(l->dict, l->space, pid, r->number[SV_COL_TID]);
    return sv_lines_group(l, process, SV_TRACK_CUSTOM, SV_ROW_SYSCALLS, strlen(SV_ROW_SYSCALLS));
}

static struct sv_text path_of(const struct sv_record *r)
{
    for (int kind = SV_COL_PATH; kind <= SV_COL_NAME_PATH; kind++)
        if (r->text[kind].len)
            return r->text[kind];
    return (struct sv_text){"", 0};
}

static void add_results(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                        struct sv_text op)
{
    bool is_open = sv_text_is(op, "openat"), has_errno = sv_record_has(r, SV_COL_ERRNO);
    bool is_transfer = sv_text_is(op, "read") || sv_text_is(op, "write");
    if (sv_record_has(r, SV_COL_RET))
        sv_add_result(l, b, r->number[SV_COL_RET], is_transfer);
    else if (is_open && sv_record_has(r, SV_COL_FD) && !has_errno)
        sv_add_result(l, b, r->number[SV_COL_FD], false);
    else if (sv_record_has(r, SV_COL_BYTES))
        sv_add_int(l, b, "bytes", r->number[SV_COL_BYTES]);
    if (has_errno && r->number[SV_COL_ERRNO])
        sv_add_int(l, b, "errno", r->number[SV_COL_ERRNO]);
}

static void put_call(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                     struct sv_text op, int64_t start_ns, int64_t dur_ns)
{
    static const struct {
        enum sv_column_kind kind;
        const char *key;
        bool with_zero;
    } numbers[] = {{SV_COL_REQUESTED, "requested", false},
                   {SV_COL_LENGTH, "length", false},
                   {SV_COL_OFFSET, "offset", true}};
    sv_track track = call_track(l, r);
    bool is_open = sv_text_is(op, "openat");
    struct sv_text path = path_of(r);
    if (sv_record_has(r, SV_COL_FD) && (!is_open || r->number[SV_COL_FD] >= 0))
        sv_add_int(l, b, "fd", r->number[SV_COL_FD]);
    if (path.len)
        sv_add_text(l, b, "path", path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sv_record_has(r, numbers[i].kind) &&
            (numbers[i].with_zero || r->number[numbers[i].kind]))
            sv_add_int(l, b, numbers[i].key, r->number[numbers[i].kind]);
    if (sv_record_has(r, SV_COL_ADDRESS))
        sv_add_pointer(l, b, "address", (uint64_t)r->number[SV_COL_ADDRESS]);
    if (r->number[SV_COL_MODE])
        sv_add_int(l, b, "mode", r->number[SV_COL_MODE]);
    add_results(l, b, r, op);
    struct sv_text cat = r->text[SV_COL_CAT];
    sv_str name = sv_dict_str(l->dict, op.bytes, op.len);
    struct sv_event *e = sv_put_event(l, b, dur_ns >= 0 ? SV_SLICE : SV_INSTANT, start_ns, track,
                                      name, cat.len ? "" : SV_CAT_SYSCALL);
    e->dur_ns = dur_ns >= 0 ? dur_ns : 0;
    if (cat.len)
        e->cat = sv_dict_str(l->dict, cat.bytes, cat.len);
}

/* What has no process: a phase of the run. */
static void put_phase(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                      struct sv_text op, int64_t start_ns, int64_t dur_ns)
{
    struct sv_text cat = r->text[SV_COL_CAT], path = path_of(r);
    if (path.len)
        sv_add_text(l, b, "path", path);
    add_results(l, b, r, op);
    struct sv_event *e = sv_put_event(l, b, dur_ns >= 0 ? SV_SLICE : SV_INSTANT, start_ns,
                                      sv_phase_track(l, -1), sv_dict_str(l->dict, op.bytes, op.len),
                                      cat.len ? "" : "phase");
    e->dur_ns = dur_ns >= 0 ? dur_ns : 0;
    if (cat.len)
        e->cat = sv_dict_str(l->dict, cat.bytes, cat.len);
}

static void add_args(struct sv_lines *l, struct sv_batch *b, const struct sv_columns *c,
                     const struct sv_record *r)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].kind == SV_COL_ARG && r->cells[i].len) {
            struct sv_text value = r->cells[i];
            value.bytes = sv_batch_text(b, value.bytes, value.len);
            sv_put_value(b, sv_dict_cstr(l->dict, c->items[i].label), value);
        }
}

void sv_record_put(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                   const struct sv_columns *c, struct sv_text op, int64_t start_ns, int64_t dur_ns)
{
    add_args(l, b, c, r);
    if (sv_text_is(op, "block"))
        put_block(l, b, r, start_ns, dur_ns);
    else if (sv_record_has(r, SV_COL_PID) || sv_record_has(r, SV_COL_TID))
        put_call(l, b, r, op, start_ns, dur_ns);
    else
        put_phase(l, b, r, op, start_ns, dur_ns);
}

/* ---- counters ---- */

static sv_track gpu_row(struct sv_lines *l, const struct sv_record *r)
{
    char name[32] = "GPU average";
    struct sv_text gpu = r->text[SV_COL_GPU];
    int64_t number;
    if (!gpu.len)
        return sv_lines_group(l, 0, SV_TRACK_CUSTOM, name, strlen(name));
    if (!sv_text_i64(gpu, &number) || number < 0 || number > 65535)
        return 0;
    int n = snprintf(name, sizeof name, "GPU %d", (int)number);
    sv_track parent = sv_record_has(r, SV_COL_PID)
                          ? sv_lines_process(l, r->number[SV_COL_PID], r->text[SV_COL_COMM])
                          : 0;
    return sv_lines_group(l, parent, parent ? SV_TRACK_CUSTOM : SV_TRACK_GPU, name, (size_t)n);
}

static sv_track meter_row(struct sv_lines *l, const struct sv_record *r, enum sv_meter_of of)
{
    struct sv_text cpu = r->text[SV_COL_CPU], disk = r->text[SV_COL_DISK];
    switch (of) {
    case SV_METER_CPU: return sv_meter_cpu(l, cpu.len ? cpu : (struct sv_text){"all", 3});
    case SV_METER_GPU: return gpu_row(l, r);
    default: return sv_meter_disk(l, disk.len ? disk : (struct sv_text){"unknown disk", 12});
    }
}

/* A value that the tool did not have. */
static bool is_absent(struct sv_text cell)
{
    return cell.len == 0 || sv_text_is(cell, "-");
}

static sv_track counter_row(struct sv_lines *l, const struct sv_record *r)
{
    return sv_record_has(r, SV_COL_PID)
               ? sv_lines_process(l, r->number[SV_COL_PID], r->text[SV_COL_COMM])
               : 0;
}

bool sv_record_meters(struct sv_lines *l, struct sv_batch *b, const struct sv_columns *c,
                      const struct sv_record *r, int64_t ts_ns)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_log_column *column = &c->items[i];
        bool is_meter = column->kind == SV_COL_METER;
        double value;
        if ((!is_meter && column->kind != SV_COL_COUNTER) || is_absent(r->cells[i]))
            continue;
        if (!sv_text_double(r->cells[i], &value))
            return sv_lines_bad(l, "a number in each column of a counter");
        sv_track row = is_meter ? meter_row(l, r, column->meter->of) : counter_row(l, r);
        if (is_meter && !row)
            return sv_lines_bad(l, "the number of a CPU or GPU");
        if (is_meter)
            sv_meter_put(l, b, column->meter, row, ts_ns, value);
        else
            sv_put_counter(l, b, sv_lines_counter(l, row, column->label, ""), ts_ns, value);
    }
    return true;
}

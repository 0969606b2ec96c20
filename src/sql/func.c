/* Functions of values: percentiles, histogram buckets, times for people, overlap of intervals.
 *
 *   percentile(x, p)      aggregate; p from 0 to 100, interpolated between neighbours
 *   log2_bucket(x)        the power of two at or below x: a histogram by GROUP BY
 *   time_str(ns)          "1.234 ms"
 *   ts_str(ts)            seconds since the trace began, nine decimals
 *   overlap(ts, dur, ts2, dur2)   common ns of two intervals, 0 when there are none; an open one
 *                                 (dur -1) lasts to the end
 *   trace_start(), trace_end(), trace_dur()
 *   time_from_us(n) … time_from_days(n), time_to_us(ns) … time_to_days(ns)
 *   to_realtime(ts), to_monotonic(ts)   the trace's time on another clock; NULL when the trace does
 *                                       not relate them
 *   slice_is_ancestor(a, b)             whether slice a encloses slice b
 *   extract_metadata(name)              the value in `metadata`
 *   has_gpu_slices()                    whether gpu_slice can have rows: else its view need not
 *                                       look at every slice
 *   frame_function(text), frame_file(text), frame_line(text)   the parts of a frame of a stack
 *
 * Registered once per connection; none of them can reach a file. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/stream/frame_text.h"
#include "sql/impl.h"
#include "sql/typed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- percentile ---- */

struct values {
    int64_t *items; /* bits of doubles, so that they compare as the doubles do */
    size_t n, cap;
    double p;
};

static int64_t to_ordered(double d)
{
    int64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

static double from_ordered(int64_t bits)
{
    double d;
    bits = bits < 0 ? bits ^ INT64_MAX : bits;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct values *v = sqlite3_aggregate_context(ctx, sizeof *v);
    double p = sqlite3_value_double(argv[1]);
    if (!v) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    if (sqlite3_value_type(argv[1]) == SQLITE_NULL || !(p >= 0 && p <= 100)) {
        sqlite3_result_error(ctx, "percentile: the second argument is not within 0 … 100", -1);
        return;
    }
    v->p = p;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    SV_APPEND(v->items, v->n, v->cap) = to_ordered(sqlite3_value_double(argv[0]));
}

static void percentile_final(sqlite3_context *ctx)
{
    struct values *v = sqlite3_aggregate_context(ctx, 0);
    if (!v)
        return;
    if (v->n) {
        double at = v->p / 100 * (double)(v->n - 1), below = floor(at);
        int64_t next;
        double value = from_ordered(sv_select_kth(v->items, v->n, (size_t)below, &next));
        sqlite3_result_double(ctx, value + (at - below) * (from_ordered(next) - value));
    }
    free(v->items);
    v->items = NULL;
}

/* ---- numbers ---- */

static void log2_bucket(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    int64_t v = sqlite3_value_int64(argv[0]);
    sqlite3_result_int64(ctx, v <= 0 ? 0 : 1LL << (63 - __builtin_clzll((uint64_t)v)));
}

static void time_str(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    static const struct {
        double unit;
        const char *name;
    } scales[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    double ns = sqlite3_value_double(argv[0]);
    char text[64];
    snprintf(text, sizeof text, "%.0f ns", ns);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        if (fabs(ns) >= scales[i].unit) {
            snprintf(text, sizeof text, "%.3f %s", ns / scales[i].unit, scales[i].name);
            break;
        }
    }
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static void ts_str(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct sv_sql *q = sqlite3_user_data(ctx);
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    uint64_t ts = (uint64_t)sqlite3_value_int64(argv[0]), start = (uint64_t)q->trace->first_ns;
    bool is_before = (int64_t)ts < (int64_t)start;
    uint64_t ns = is_before ? start - ts : ts - start;
    char text[64];
    snprintf(text, sizeof text, "%s%" PRIu64 ".%09" PRIu64, is_before ? "-" : "", ns / 1000000000,
             ns % 1000000000);
    sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static int64_t end_of(const struct sv_sql *q, int64_t ts, int64_t dur)
{
    int64_t end;
    return dur < 0 ? q->trace->last_ns : __builtin_add_overflow(ts, dur, &end) ? INT64_MAX : end;
}

static void overlap(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct sv_sql *q = sqlite3_user_data(ctx);
    for (int i = 0; i < argc; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
            return;
    int64_t a = sqlite3_value_int64(argv[0]), b = sqlite3_value_int64(argv[2]);
    int64_t a_end = end_of(q, a, sqlite3_value_int64(argv[1]));
    int64_t b_end = end_of(q, b, sqlite3_value_int64(argv[3]));
    int64_t from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;
    sqlite3_result_int64(ctx, to > from ? (int64_t)((uint64_t)to - (uint64_t)from) : 0);
}

static void trace_start(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, ((struct sv_sql *)sqlite3_user_data(ctx))->trace->first_ns);
}

static void trace_end(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sqlite3_result_int64(ctx, ((struct sv_sql *)sqlite3_user_data(ctx))->trace->last_ns);
}

static void trace_dur(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    const struct sv_trace *t = ((struct sv_sql *)sqlite3_user_data(ctx))->trace;
    sqlite3_result_int64(ctx, t->last_ns - t->first_ns);
}

/* ---- Perfetto's helpers ---- */

struct unit {
    const char *name;
    int64_t ns;
};

static const struct unit units[] = {{"ns", 1},
                                    {"us", 1000},
                                    {"ms", 1000000},
                                    {"s", 1000000000},
                                    {"min", 60000000000},
                                    {"hours", 3600000000000},
                                    {"days", 86400000000000}};

static void time_from(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct unit *u = sqlite3_user_data(ctx);
    int64_t ns;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    if (__builtin_mul_overflow(sqlite3_value_int64(argv[0]), u->ns, &ns))
        sqlite3_result_error(ctx, "integer overflow", -1);
    else
        sqlite3_result_int64(ctx, ns);
}

static void time_to(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    const struct unit *u = sqlite3_user_data(ctx);
    if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
        sqlite3_result_int64(ctx, sqlite3_value_int64(argv[0]) / u->ns);
}

static int add_units(struct sv_sql *q, int flags)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof units / sizeof *units; i++) {
        char from[24], to[24];
        void *unit = (void *)(uintptr_t)&units[i]; /* only read */
        snprintf(from, sizeof from, "time_from_%s", units[i].name);
        snprintf(to, sizeof to, "time_to_%s", units[i].name);
        rc = sqlite3_create_function(q->db, from, 1, flags, unit, time_from, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_create_function(q->db, to, 1, flags, unit, time_to, NULL, NULL);
    }
    return rc;
}

static void on_clock(sqlite3_context *ctx, sqlite3_value *value, uint32_t clock)
{
    const struct sv_clocks *c = &((struct sv_sql *)sqlite3_user_data(ctx))->dict->clocks;
    int64_t ns;
    if (sqlite3_value_type(value) != SQLITE_NULL &&
        sv_clocks_convert(c, c->trace_clock, clock, sqlite3_value_int64(value), &ns))
        sqlite3_result_int64(ctx, ns);
}

static void to_realtime(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    on_clock(ctx, argv[0], SV_CLOCK_REALTIME);
}

static void to_monotonic(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    on_clock(ctx, argv[0], SV_CLOCK_MONOTONIC);
}

static void slice_is_ancestor(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct sv_sql *q = sqlite3_user_data(ctx);
    uint32_t above = sv_sql_slice_of(q, argv[0]), row = sv_sql_slice_of(q, argv[1]);
    if (above == SV_NO_ROW || row == SV_NO_ROW)
        return;
    do
        row = q->trace->slices.parent[row];
    while (row != SV_NO_ROW && row > above); /* parents have smaller rows */
    sqlite3_result_int(ctx, row == above);
}

static void extract_metadata(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct sv_sql *q = sqlite3_user_data(ctx);
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(q->db,
                           "SELECT coalesce(str_value, int_value) FROM metadata WHERE name = ?", -1,
                           &s, NULL) == SQLITE_OK &&
        sqlite3_bind_value(s, 1, argv[0]) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        sqlite3_result_value(ctx, sqlite3_column_value(s, 0));
    sqlite3_finalize(s);
}

static void has_gpu_slices(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    struct sv_sql *q = sqlite3_user_data(ctx);
    bool has = sv_sql_has_category(q, SV_CATEGORIES_GPU_SLICE);
    for (uint32_t k = 1; k < q->dict->n_tracks && !has; k++)
        has = q->dict->tracks[k].kind == SV_TRACK_GPU || q->dict->tracks[k].kind == SV_TRACK_STREAM;
    sqlite3_result_int(ctx, has);
}

static const char *frame_text(sqlite3_value *value, struct sv_frame_parts *p)
{
    const char *text = (const char *)sqlite3_value_text(value);
    if (text)
        *p = sv_frame_parts(text, (size_t)sqlite3_value_bytes(value));
    return text;
}

static void frame_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sv_frame_parts p;
    const char *text = frame_text(argv[0], &p);
    (void)argc;
    if (text)
        sqlite3_result_text(ctx, text, (int)p.function_len, SQLITE_TRANSIENT);
}

static void frame_file(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sv_frame_parts p;
    const char *text = frame_text(argv[0], &p);
    (void)argc;
    if (text && p.file_len)
        sqlite3_result_text(ctx, text + p.file_at, (int)p.file_len, SQLITE_TRANSIENT);
}

static void frame_line(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sv_frame_parts p;
    const char *text = frame_text(argv[0], &p);
    (void)argc;
    if (text && p.line)
        sqlite3_result_int64(ctx, p.line);
}

int sv_sql_add_functions(struct sv_sql *q)
{
    static const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"log2_bucket", 1, log2_bucket},
        {"time_str", 1, time_str},
        {"ts_str", 1, ts_str},
        {"overlap", 4, overlap},
        {"trace_start", 0, trace_start},
        {"trace_end", 0, trace_end},
        {"trace_dur", 0, trace_dur},
        {"to_realtime", 1, to_realtime},
        {"to_monotonic", 1, to_monotonic},
        {"slice_is_ancestor", 2, slice_is_ancestor},
        {"extract_metadata", 1, extract_metadata},
        {"has_gpu_slices", 0, has_gpu_slices},
        {"frame_function", 1, frame_function},
        {"frame_file", 1, frame_file},
        {"frame_line", 1, frame_line},
    };
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        rc = sqlite3_create_function(q->db, functions[i].name, functions[i].n, flags, q,
                                     functions[i].call, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = add_units(q, flags);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(q->db, "percentile", 2, flags, q, NULL, percentile_step,
                                     percentile_final);
    return rc;
}
#endif

/* Functions of values: percentiles, histogram buckets, times for people, overlap of intervals.
 *
 *   percentile(x, p)      aggregate; p from 0 to 100, interpolated between neighbours
 *   log2_bucket(x)        the power of two at or below x: a histogram by GROUP BY
 *   time_str(ns)          "1.234 ms"
 *   ts_str(ts)            seconds since the trace began, nine decimals
 *   overlap(ts, dur, ts2, dur2)   common ns of two intervals, 0 when there are none; an open one (dur -1) lasts to the end
 *   trace_start(), trace_end(), trace_dur()
 *
 * Registered once per connection; none of them can reach a file. */
#include "analysis/sql.h"

#ifdef SV_HAVE_SQLITE
#include "analysis/sql_impl.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- percentile ---- */

struct values {
    double *items;
    size_t n, cap;
    double p;
};

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
    v->items = sv_grow(v->items, &v->cap, v->n + 1, sizeof *v->items);
    v->items[v->n++] = sqlite3_value_double(argv[0]);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void percentile_final(sqlite3_context *ctx)
{
    struct values *v = sqlite3_aggregate_context(ctx, 0);
    if (!v)
        return;
    if (v->n) {
        qsort(v->items, v->n, sizeof *v->items, by_value);
        double at = v->p / 100 * (double)(v->n - 1), below = floor(at);
        size_t i = (size_t)below, next = i + 1 < v->n ? i + 1 : i;
        sqlite3_result_double(ctx, v->items[i] + (at - below) * (v->items[next] - v->items[i]));
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
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    double ns = sqlite3_value_double(argv[0]);
    char text[64];
    snprintf(text, sizeof text, "%.0f ns", ns);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (fabs(ns) >= units[i].unit) {
            snprintf(text, sizeof text, "%.3f %s", ns / units[i].unit, units[i].name);
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

int sv_sql_add_functions(struct sv_sql *q)
{
    static const struct {
        const char *name;
        int n;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"log2_bucket", 1, log2_bucket}, {"time_str", 1, time_str},
        {"ts_str", 1, ts_str},           {"overlap", 4, overlap},
        {"trace_start", 0, trace_start}, {"trace_end", 0, trace_end},
        {"trace_dur", 0, trace_dur},
    };
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof functions / sizeof *functions; i++)
        rc = sqlite3_create_function(q->db, functions[i].name, functions[i].n, flags, q,
                                     functions[i].call, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(q->db, "percentile", 2, flags, q, NULL, percentile_step,
                                     percentile_final);
    return rc;
}
#endif

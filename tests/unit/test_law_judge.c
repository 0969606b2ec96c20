/* The law of a trace before another judge: Perfetto's own importer reads what the writer wrote and
 * sees the same slices and counters.
 *
 * TRACE_PROCESSOR=PATH names its trace_processor_shell; without it the test is skipped. Perfetto
 * knows no origin, so times are compared from the first event on, and traces are not longer than
 * its time (2^63 ns). Names are plain: how its CSV quotes others is not what is asked here. A
 * failure names its seed: STAVE_SEED=N runs that one alone, STAVE_LONG=1 runs more. */
#include "core/stream/stages.h"
#include "formats/formats.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICES   "select ts - (select min(ts) from slice), dur, name from slice order by 1, 2, 3"
#define COUNTERS "select ts - (select min(ts) from counter), value from counter order by 1, 2"

struct row {
    int64_t ts_ns, dur_ns;
    char text[40];
};

struct rows {
    struct row *row;
    size_t n, cap;
};

static struct row *add(struct rows *r)
{
    r->row = sv_grow(r->row, &r->cap, r->n + 1, sizeof *r->row);
    r->row[r->n] = (struct row){0};
    return &r->row[r->n++];
}

static int compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    if (x->dur_ns != y->dur_ns)
        return x->dur_ns < y->dur_ns ? -1 : 1;
    return strcmp(x->text, y->text);
}

static const char *text_of(struct sv_buf *to, struct rows *r, bool is_shifted)
{
    if (r->n)
        qsort(r->row, r->n, sizeof *r->row, compare);
    int64_t first_ns = r->n && is_shifted ? r->row[0].ts_ns : 0;
    sv_buf_clear(to);
    for (size_t i = 0; i < r->n; i++)
        sv_buf_printf(to, "%" PRId64 ",%" PRId64 ",%s\n", r->row[i].ts_ns - first_ns,
                      r->row[i].dur_ns, r->row[i].text);
    free(r->row);
    *r = (struct rows){0};
    return sv_buf_cstr(to);
}

/* ---- what was written ---- */

static void take(const struct collect *c, const struct sv_dict *d, struct rows *slices,
                 struct rows *counters)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_event *e = &c->events[i];
        if (e->kind == SV_SLICE || e->kind == SV_INSTANT) {
            struct row *r = add(slices);
            r->ts_ns = e->ts_ns;
            r->dur_ns = e->kind == SV_SLICE ? e->dur_ns : 0;
            snprintf(r->text, sizeof r->text, "%s", sv_dict_text(d, e->name).bytes);
        } else if (e->kind == SV_COUNTER) {
            struct row *r = add(counters);
            double v = e->args[0].type == SV_ARG_INT ? (double)e->args[0].i : e->args[0].d;
            r->ts_ns = e->ts_ns;
            snprintf(r->text, sizeof r->text, "%.9g", v);
        }
    }
}

static void write_trace(struct gen *g, unsigned shape, const char *path, uint64_t seed)
{
    struct sv_err err = {0};
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_write_options options = {.compression = seed % 4 ? SV_PLAIN : SV_GZIP,
                                       .resync_bytes = 2000};
    sv_report_init(&report);
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) == 0);
    REQUIRE(sv_perfetto_writer.open(out, &options, g->dict, &report, &sink, &err) == 0);
    CHECK_INT_EQ(sv_pump(gen_source(g, shape, NULL), sink, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    sv_report_fini(&report);
}

/* ---- what the judge sees ---- */

/* A line of CSV with numbers first; quotes are taken away. */
static void take_line(struct rows *rows, char *line, bool has_dur)
{
    char *at = line;
    size_t n = 0;
    for (const char *p = line; *p && *p != '\n' && *p != '\r'; p++)
        if (*p != '"')
            line[n++] = *p;
    line[n] = 0;
    if (n == 0 || !strchr("-0123456789", *line))
        return; /* the names of the columns */
    struct row *r = add(rows);
    r->ts_ns = strtoll(at, &at, 10);
    if (has_dur && *at == ',')
        r->dur_ns = strtoll(at + 1, &at, 10);
    const char *text = *at == ',' ? at + 1 : at;
    if (has_dur)
        snprintf(r->text, sizeof r->text, "%s", text);
    else
        snprintf(r->text, sizeof r->text, "%.9g", strtod(text, NULL));
}

static bool ask(const char *judge, const char *path, const char *sql, struct rows *rows)
{
    char command[4096], line[4096];
    snprintf(command, sizeof command, "'%s' -Q \"%s\" '%s' 2>'%s'", judge, sql, path,
             test_scratch("judge.err"));
    FILE *f = popen(command, "r");
    REQUIRE(f != NULL);
    while (fgets(line, sizeof line, f))
        take_line(rows, line, strstr(sql, "dur") != NULL);
    return CHECK_INT_EQ(pclose(f), 0);
}

static bool agree(const char *judge, uint64_t seed)
{
    static const unsigned shapes[] = {SV_HAS_EDGES, SV_HAS_NESTED, SV_HAS_EDGES | SV_HAS_NESTED,
                                      SV_HAS_SLICES};
    struct gen g;
    unsigned shape = shapes[seed / 2 % 4];
    gen_make(&g, &(struct gen_options){.seed = seed,
                                       .n = 300,
                                       .shape = shape,
                                       .extras = GEN_ALL & ~(unsigned)GEN_LOSS,
                                       .start_ns = seed % 2 ? -5000 : 1000000});
    struct collect c = {0};
    struct sv_err err = {0};
    struct rows slices = {0}, counters = {0}, seen = {0}, seen_counters = {0};
    struct sv_buf want, got;
    sv_buf_init(&want, (size_t)1 << 26);
    sv_buf_init(&got, (size_t)1 << 26);
    CHECK_INT_EQ(sv_pump(gen_source(&g, shape, NULL),
                         collect_sink(&c, SV_HAS_SLICES | SV_IN_NO_ORDER), NULL, &err),
                 0);
    take(&c, g.dict, &slices, &counters);
    const char *path = test_scratch("judge.pftrace");
    write_trace(&g, shape, path, seed);
    bool ok = ask(judge, path, SLICES, &seen) && ask(judge, path, COUNTERS, &seen_counters);
    ok = ok && CHECK_STR_EQ(text_of(&got, &seen, false), text_of(&want, &slices, true)) &&
         CHECK_STR_EQ(text_of(&got, &seen_counters, false), text_of(&want, &counters, true));
    free(slices.row);
    free(counters.row);
    free(seen.row);
    free(seen_counters.row);
    sv_buf_fini(&want);
    sv_buf_fini(&got);
    collect_fini(&c);
    gen_fini(&g);
    return ok;
}

TEST(perfetto_sees_the_same)
{
    const char *judge = getenv("TRACE_PROCESSOR"), *only = getenv("STAVE_SEED");
    if (!judge || !*judge)
        SKIP("TRACE_PROCESSOR does not name Perfetto's trace_processor_shell");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1, n = getenv("STAVE_LONG") ? 2000 : 50;
    for (uint64_t seed = first; seed < first + (only ? 1 : n); seed++) {
        CONTEXT("STAVE_SEED=%llu", (unsigned long long)seed);
        if (!agree(judge, seed))
            return;
    }
}

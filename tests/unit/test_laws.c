/* Laws over the table of formats: every reader with every writer, and what is written reads back
 * the same.
 *
 * The rows come from sv_formats, so a new format is tested by being listed. Events are random
 * (gen_events.h); what a format cannot hold (docs/formats.md) is left out of what is generated for
 * it, by name. */
#include "core/stream/stages.h"
#include "formats/formats.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

#define TYPE(t) (1u << SV_ARG_##t)

/* What docs/formats.md says a format cannot give back. */
static uint32_t arg_types(const struct sv_format *f)
{
    uint32_t all = TYPE(NULL) | TYPE(BOOL) | TYPE(INT) | TYPE(UINT) | TYPE(DOUBLE) | TYPE(TEXT) |
                   TYPE(POINTER) | TYPE(DICT) | TYPE(ARRAY);
    return strcmp(f->name, "chrome") == 0 ? all & ~TYPE(POINTER) : all;
}

/* Perfetto cannot start a flow id anew: the writer gives the second use another number, and a first
 * step leaves as a start. Which slices they connect stays the same. */
static bool keeps_flow_numbers(const struct sv_format *f)
{
    return strcmp(f->name, "perfetto") != 0;
}

static const unsigned shapes[] = {
    SV_HAS_EDGES,
    SV_HAS_NESTED,
    SV_HAS_SLICES,
    SV_HAS_EDGES | SV_HAS_FLOW_POINTS,
    SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS,
};

/* The scratch file with this stem and the format's usual suffix. */
static const char *path_of(const char *stem, const struct sv_format *f)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", stem, f->writer->suffixes[0]);
    return test_scratch(name);
}

/* Only flows that mean what they say: a point that continues a flow nobody began is written as its
 * beginning, a flow that begins twice gets a new number for the second time, and only the end of a
 * flow can wait for the next slice. */
static void make_flows_plain(struct gen *g)
{
    uint64_t unique = 1000000;
    for (size_t i = 0; i < g->n; i++) {
        struct sv_event *e = &g->events[i];
        for (size_t k = 0; k < e->n_args; k++) {
            struct sv_arg *a = (struct sv_arg *)(uintptr_t)&e->args[k];
            if (e->kind == SV_FLOW && a->type == SV_ARG_FLOW)
                a->type = SV_ARG_FLOW_BEGIN;
            if (e->kind == SV_FLOW && a->type != SV_ARG_FLOW_END)
                e->flags = 0;
            if (a->type == SV_ARG_FLOW_BEGIN)
                a->u = unique++;
        }
    }
}

static bool write_file(struct gen *g, const struct sv_format *f, unsigned shape, unsigned *takes)
{
    struct sv_err err;
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_write_options options = {0};
    sv_err_clear(&err);
    sv_report_init(&report);
    REQUIRE(sv_output_open(path_of("law", f), SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) == 0);
    REQUIRE(f->writer->open(out, &options, g->dict, &report, &sink, &err) == 0);
    *takes = sink->takes;
    bool ok = CHECK_INT_EQ(sv_pump(gen_source(g, shape, &report), sink, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    sv_report_fini(&report);
    return ok;
}

/* Everything as slices, so that a begin and an end compare equal to the slice that they are. */
static void collect_slices(struct sv_source *source, struct collect *c)
{
    struct sv_err err;
    sv_err_clear(&err);
    unsigned takes = SV_HAS_SLICES | SV_HAS_FLOW_POINTS;
    CHECK_INT_EQ(sv_pump(source, collect_sink(c, takes), NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
}

/* What the writer was given, as slices: the generated events, through the stages that the writer
 * calls for. Returns the damage that pairing them finds: shuffled edges of equal times do not
 * always pair. */
static uint64_t expect(struct gen *g, unsigned shape, unsigned takes, struct collect *c)
{
    struct sv_err err;
    struct sv_report report;
    struct collect given = {0};
    sv_err_clear(&err);
    sv_report_init(&report);
    CHECK_INT_EQ(sv_pump(gen_source(g, shape, &report), collect_sink(&given, takes), NULL, &err),
                 0);
    struct gen again = *g;
    again.events = given.events;
    again.n = given.n;
    sv_report_fini(&report);
    collect_slices(gen_source(&again, SV_HAS_ANYTHING, &report), c);
    uint64_t damage = sv_report_count(&report, SV_DAMAGE);
    collect_fini(&given);
    sv_report_fini(&report);
    return damage;
}

static uint64_t read_file(const struct sv_format *f, struct sv_dict *dict, struct collect *c)
{
    struct sv_err err;
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_read_options options = {0};
    sv_err_clear(&err);
    sv_report_init(&report);
    REQUIRE(sv_input_open(path_of("law", f), &in, &err) == 0);
    CHECK(sv_format_probe(in, &err) == f);
    REQUIRE(sv_format_open(f, in, &options, dict, &report, &source, &err) == 0);
    collect_slices(source, c);
    uint64_t damage = sv_report_count(&report, SV_DAMAGE);
    CHECK_UINT_EQ(sv_report_count(&report, SV_SKIPPED), 0);
    sv_input_close(in);
    sv_report_fini(&report);
    return damage;
}

/* The first line that differs: a whole dump would drown the message. */
static void compare(const char *expected, const char *got)
{
    for (size_t line = 1; *expected || *got; line++) {
        size_t a = strcspn(expected, "\n"), b = strcspn(got, "\n");
        if (a != b || memcmp(expected, got, a) != 0) {
            char x[600], y[600];
            snprintf(x, sizeof x, "%.*s", (int)a, expected);
            snprintf(y, sizeof y, "%.*s", (int)b, got);
            CONTEXT("line %zu", line);
            CHECK_STR_EQ(y, x);
            return;
        }
        expected += a + (expected[a] == '\n');
        got += b + (got[b] == '\n');
    }
}

static void check_round_trip(const struct sv_format *f, unsigned shape, uint64_t seed)
{
    struct gen g;
    unsigned takes, extras = GEN_ALL;
    if (!keeps_flow_numbers(f)) {
        extras &= ~(unsigned)GEN_FLOWS;
        shape &= ~(unsigned)SV_HAS_FLOW_POINTS;
    }
    gen_make(&g, &(struct gen_options){.seed = seed,
                                       .n = 2000,
                                       .shape = shape,
                                       .extras = extras,
                                       .arg_types = arg_types(f),
                                       .start_ns = 1000000});
    make_flows_plain(&g);
    if (write_file(&g, f, shape, &takes)) {
        struct collect want = {0}, got = {0};
        struct sv_buf want_text, got_text;
        struct sv_dict *dict = sv_dict_new();
        sv_buf_init(&want_text, 1 << 28);
        sv_buf_init(&got_text, 1 << 28);
        uint64_t expected_damage = expect(&g, shape, takes, &want);
        CHECK_UINT_EQ(read_file(f, dict, &got), expected_damage);
        CHECK_UINT_EQ(got.n, want.n);
        compare(dump_set(&want_text, g.dict, want.events, want.n),
                dump_set(&got_text, dict, got.events, got.n));
        collect_fini(&want);
        collect_fini(&got);
        sv_buf_fini(&want_text);
        sv_buf_fini(&got_text);
        sv_dict_free(dict);
    }
    gen_fini(&g);
}

TEST(what_is_written_reads_back_the_same)
{
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        if (!sv_format_reads(*f) || !(*f)->writer)
            continue;
        for (size_t s = 0; s < TEST_COUNT(shapes); s++) {
            for (uint64_t seed = 1; seed <= 3; seed++) {
                CONTEXT("%s, shape %u, seed %d", (*f)->name, shapes[s], (int)seed);
                check_round_trip(*f, shapes[s], seed);
            }
        }
    }
}

static uint64_t count_slices(const struct collect *c)
{
    uint64_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->events[i].kind == SV_SLICE;
    return n;
}

/* r's file → w's file, in a dialect (NULL: none); where w can be read again, the slices are all
 * there. */
static void check_pair(const struct sv_format *r, const struct sv_format *w,
                       const struct sv_dialect *dialect, uint64_t slices)
{
    const struct sv_writer *writer = dialect && dialect->writer ? dialect->writer : w->writer;
    struct sv_err err;
    struct sv_input *in;
    struct sv_output *out;
    struct sv_source *source;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_read_options read_options = {0};
    struct sv_write_options write_options = {.dialect = dialect ? dialect->name : NULL};
    struct sv_dict *dict = sv_dict_new();
    sv_err_clear(&err);
    sv_report_init(&report);
    REQUIRE(sv_input_open(path_of("law", r), &in, &err) == 0);
    REQUIRE(sv_format_open(r, in, &read_options, dict, &report, &source, &err) == 0);
    REQUIRE(sv_output_open(path_of("pair", w), SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) == 0);
    REQUIRE(writer->open(out, &write_options, dict, &report, &sink, &err) == 0);
    int code = sv_pump(source, sink, NULL, &err);
    if (dialect && strncmp(dialect->name, "batching", 8) == 0) { /* no server in it */
        CHECK_INT_EQ(code, SV_EINPUT);
    } else {
        CHECK_INT_EQ(code, 0);
        CHECK_STR_EQ(err.msg, "");
    }
    sv_input_close(in);
    sv_dict_free(dict);
    sv_report_fini(&report);
    if (!sv_format_reads(w) || writer != w->writer)
        return;
    struct collect c = {0};
    dict = sv_dict_new();
    sv_report_init(&report);
    REQUIRE(sv_input_open(path_of("pair", w), &in, &err) == 0);
    REQUIRE(sv_format_open(w, in, &read_options, dict, &report, &source, &err) == 0);
    collect_slices(source, &c);
    CHECK_UINT_EQ(count_slices(&c), slices);
    sv_input_close(in);
    collect_fini(&c);
    sv_dict_free(dict);
    sv_report_fini(&report);
}

TEST(every_reader_feeds_every_writer)
{
    struct gen g;
    unsigned shape = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS, takes;
    gen_make(&g, &(struct gen_options){
                     .seed = 11, .n = 3000, .shape = shape, .extras = GEN_ALL, .start_ns = 5000});
    uint64_t slices = 0;
    for (size_t i = 0; i < g.n; i++)
        slices += g.events[i].kind == SV_SLICE || g.events[i].kind == SV_BEGIN;
    for (const struct sv_format *const *r = sv_formats; *r; r++) {
        if (!sv_format_reads(*r) || !(*r)->writer || !write_file(&g, *r, shape, &takes))
            continue;
        for (const struct sv_format *const *w = sv_formats; *w; w++) {
            CONTEXT("%s to %s", (*r)->name, (*w)->name);
            if ((*w)->writer)
                check_pair(*r, *w, NULL, slices);
            for (const struct sv_dialect *d = (*w)->dialects; d && d->name; d++) {
                CONTEXT("%s to %s, %s", (*r)->name, (*w)->name, d->name);
                check_pair(*r, *w, d, slices);
            }
        }
    }
    gen_fini(&g);
}

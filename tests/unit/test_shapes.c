/* Sources give what they state and sinks take what they state: every reader over the files that
 * there are, every writer and stage over random events of exactly its shape; and what a sink does
 * not take, the pump changes before it gets there. */
#include "core/stream/stages.h"
#include "formats/formats.h"
#include "store/filter.h"
#include "tests/harness/canon.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/shape_check.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the check itself ---- */

static const unsigned orders[] = {SV_IN_ORDER, SV_IN_TRACK_ORDER, SV_IN_NO_ORDER};
static const unsigned kinds[] = {SV_HAS_EDGES,
                                 SV_HAS_NESTED,
                                 SV_HAS_SLICES,
                                 SV_HAS_EDGES | SV_HAS_NESTED,
                                 SV_HAS_EDGES | SV_HAS_SLICES,
                                 SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_FLOW_POINTS};

static void make(struct gen *g, unsigned shape, unsigned extras, uint64_t seed)
{
    gen_make(g, &(struct gen_options){.seed = seed, .n = 1500, .shape = shape, .extras = extras});
}

/* Slices in a stream of this shape as the sort would put them: the outer one first. The generator
 * leaves ties in any order. */
static bool fits(struct gen *g, unsigned stated)
{
    struct shape_check c;
    shape_check_sink(&c, stated, NULL);
    shape_check_see(&c, g->events, g->n);
    return shape_check_end(&c)[0] == '\0';
}

TEST(a_false_statement_is_found)
{
    for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
        for (size_t o = 0; o < TEST_COUNT(orders); o++) {
            struct gen g;
            unsigned shape = kinds[k] | orders[o];
            CONTEXT("shape %#x", shape);
            make(&g, shape, GEN_INSTANTS, 3);
            CHECK(fits(&g, shape));
            CHECK(fits(&g, SV_HAS_ANYTHING));
            for (unsigned bit = 1; bit <= SV_IN_NO_ORDER; bit <<= 1) {
                unsigned less = shape & ~bit;
                if (bit == 2) /* no whole slices at all */
                    less &= ~(unsigned)SV_HAS_SLICES;
                if (bit == SV_IN_TRACK_ORDER)
                    less &= ~SV_ORDER_BITS;
                /* Edges without order are paired by the sort alone, and order per track is about
                 * what pairs. */
                bool is_seen = bit == 4    ? orders[o] != SV_IN_NO_ORDER || !(shape & SV_HAS_EDGES)
                               : bit == 32 ? (shape & SV_HAS_SLICES) != SV_HAS_SLICES ||
                                                 shape & SV_HAS_EDGES
                                           : true;
                if (less != shape && is_seen && !CHECK(!fits(&g, less)))
                    test_context("not found: %#x stated as %#x", shape, less);
            }
            gen_fini(&g);
        }
    }
}

/* ---- readers ---- */

static unsigned n_read[64]; /* events by format */

static void read_one(const char *path, const struct sv_format *wanted)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    struct sv_read_options options = {.has_date = true, .date_days = 19000};
    sv_report_init(&report);
    const struct sv_format *f = NULL;
    if (sv_input_open(path, &in, &err) == 0) {
        f = wanted ? wanted : sv_format_probe(in, &err);
        sv_err_clear(&err);
        if (f && f->open_source &&
            f->open_source(in, &options, dict, &report, &source, &err) == 0) {
            struct shape_check c;
            CONTEXT("%s as %s", path, f->name);
            sv_pump(source, shape_check_sink(&c, source->gives, NULL), NULL, &err);
            CHECK_STR_EQ(shape_check_end(&c), "");
            for (size_t i = 0; sv_formats[i]; i++)
                if (sv_formats[i] == f)
                    n_read[i] += (unsigned)c.n_events;
        }
        sv_input_close(in);
    }
    sv_report_fini(&report);
    sv_dict_free(dict);
}

static void read_folder(const char *folder, const struct sv_format *f)
{
    DIR *dir = opendir(folder);
    REQUIRE(dir);
    for (const struct dirent *d; (d = readdir(dir));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        if (d->d_name[0] != '.')
            read_one(path, f);
    }
    closedir(dir);
}

static const char *corpus_of(const struct sv_format *f)
{
    static const struct {
        const char *format, *folder;
    } others[] = {{"nvidia-smi", "pmon"}};
    static char path[1024];
    const char *name = f->name;
    for (size_t i = 0; i < TEST_COUNT(others); i++)
        if (strcmp(others[i].format, name) == 0)
            name = others[i].folder;
    snprintf(path, sizeof path, "%s/%s_read", test_source("tests/fuzz/corpus"), name);
    for (char *at = strrchr(path, '/'); *at; at++)
        *at = *at == '-' ? '_' : *at;
    return path;
}

TEST(every_reader_gives_what_it_states)
{
    read_folder(test_source("tests/golden/good"), NULL);
    read_folder(test_source("tests/golden/bad"), NULL);
    for (size_t i = 0; sv_formats[i]; i++) {
        if (!sv_formats[i]->open_source)
            continue;
        const char *folder = corpus_of(sv_formats[i]);
        DIR *dir = opendir(folder);
        if (dir) {
            closedir(dir);
            read_folder(folder, sv_formats[i]);
        }
        CONTEXT("%s", sv_formats[i]->name);
        CHECK(n_read[i] > 0);
    }
}

/* ---- sinks ---- */

/* What the events say, by way of the store, which takes everything. */
static void expect(struct gen *g, unsigned shape, struct sv_buf *text, unsigned flags)
{
    canon_source(text, gen_source(g, shape, NULL), flags);
}

struct made {
    struct sv_report report;
    struct sv_trace *trace;         /* of stages */
    const struct sv_format *format; /* of writers */
    const char *path;
};

struct sink_kind {
    const char *name; /* a format's, or a stage's */
    struct sv_sink *(*stage)(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next);
    bool gives_order; /* of stages */
};

static struct sv_sink *new_sort(struct sv_dict *d, struct sv_report *r, struct sv_sink *next)
{
    (void)r;
    return sv_sort_new(d, 0, next);
}

static struct sv_sink *new_filter(struct sv_dict *d, struct sv_report *r, struct sv_sink *next)
{
    static const struct sv_filter all = {.from_ns = INT64_MIN, .to_ns = INT64_MAX};
    (void)r;
    return sv_filter_new(d, &all, next);
}

static struct sv_sink *new_tally(struct sv_dict *d, struct sv_report *r, struct sv_sink *next)
{
    static struct sv_tally t;
    (void)d, (void)r;
    return sv_tally_new(&t, next);
}

static struct sv_sink *no_stage(struct sv_dict *d, struct sv_report *r, struct sv_sink *next)
{
    (void)d, (void)r;
    return next;
}

static const struct sink_kind sink_kinds[] = {
    {"perfetto", NULL, false},      {"chrome", NULL, false},       {"text", NULL, false},
    {"the store", no_stage, false}, {"sort", new_sort, true},      {"pair", sv_pair_new, false},
    {"split", sv_split_new, true},  {"lanes", sv_lanes_new, true}, {"filter", new_filter, true},
    {"tally", new_tally, false},
};

static struct sv_sink *open_sink(const struct sink_kind *k, struct sv_dict *dict, struct made *m)
{
    struct sv_err err = {0};
    struct sv_output *out;
    struct sv_sink *sink = NULL;
    struct sv_write_options options = {0};
    *m = (struct made){0};
    sv_report_init(&m->report);
    if (k->stage) {
        m->trace = sv_trace_new(dict, &m->report, 0);
        return k->stage(dict, &m->report, sv_trace_sink(m->trace));
    }
    m->format = sv_format_named(k->name);
    m->path = test_scratch(m->format->writer->suffixes[0] + 1);
    REQUIRE(sv_output_open(m->path, SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) == 0);
    REQUIRE(m->format->writer->open(out, &options, dict, &m->report, &sink, &err) == 0);
    return sink;
}

/* What has arrived. */
static void look(struct made *m, struct sv_buf *text, unsigned flags)
{
    if (m->trace) {
        canon(text, m->trace, flags);
        sv_trace_free(m->trace);
    } else {
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_source *source;
        struct sv_report report;
        struct sv_dict *dict = sv_dict_new();
        sv_report_init(&report);
        REQUIRE(sv_input_open(m->path, &in, &err) == 0);
        REQUIRE(m->format->open_source(in, &(struct sv_read_options){0}, dict, &report, &source,
                                       &err) == 0);
        canon_source(text, source, flags);
        sv_input_close(in);
        sv_report_fini(&report);
        sv_dict_free(dict);
    }
    sv_report_fini(&m->report);
}

/* True: what arrives is what was given. */
static bool arrives(const struct sink_kind *k, unsigned shape, bool by_pump, unsigned pretended,
                    uint64_t seed)
{
    struct gen g;
    struct made m;
    struct sv_buf want, got;
    struct sv_err err = {0};
    sv_buf_init(&want, SIZE_MAX);
    sv_buf_init(&got, SIZE_MAX);
    make(&g, shape, GEN_INSTANTS | GEN_COUNTERS | GEN_LOSS, seed);
    expect(&g, shape, &want, CANON_NO_ARROWS);
    struct sv_sink *sink = open_sink(k, g.dict, &m);
    sink->takes |= pretended;
    sink->best = pretended ? 0 : sink->best;
    int code = by_pump ? sv_pump(gen_source(&g, shape, &m.report), sink, NULL, &err)
                       : gen_push(&g, sink, &err);
    bool is_same = code == 0;
    if (code == 0) {
        look(&m, &got, CANON_NO_ARROWS);
        is_same = pretended ? strcmp(sv_buf_cstr(&want), sv_buf_cstr(&got)) == 0
                            : canon_equal(sv_buf_cstr(&want), sv_buf_cstr(&got));
    } else {
        if (m.trace)
            sv_trace_free(m.trace);
        sv_report_fini(&m.report);
    }
    sv_buf_fini(&want);
    sv_buf_fini(&got);
    gen_fini(&g);
    return is_same;
}

static unsigned takes_of(const struct sink_kind *k)
{
    struct made m;
    struct sv_buf text;
    struct sv_dict *dict = sv_dict_new();
    struct sv_sink *sink = open_sink(k, dict, &m);
    unsigned takes = sink->takes;
    CHECK_UINT_EQ(sink->best & ~takes, 0);
    sv_buf_init(&text, SIZE_MAX);
    sink->close(sink, false, NULL);
    if (m.trace)
        sv_trace_free(m.trace);
    sv_report_fini(&m.report);
    sv_buf_fini(&text);
    sv_dict_free(dict);
    return takes;
}

TEST(every_sink_takes_what_it_states)
{
    for (size_t i = 0; i < TEST_COUNT(sink_kinds); i++) {
        unsigned takes = takes_of(&sink_kinds[i]);
        for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
            for (size_t o = 0; o < TEST_COUNT(orders); o++) {
                unsigned shape = (kinds[k] | orders[o]) & takes & ~(unsigned)SV_HAS_FLOW_POINTS;
                CONTEXT("%s, given %#x", sink_kinds[i].name, shape);
                CHECK(arrives(&sink_kinds[i], shape, false, 0, 10 + k));
            }
        }
    }
}

TEST(the_pump_changes_what_a_sink_does_not_take)
{
    for (size_t i = 0; i < TEST_COUNT(sink_kinds); i++) {
        for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
            for (size_t o = 0; o < TEST_COUNT(orders); o++) {
                unsigned shape = (kinds[k] | orders[o]) & ~(unsigned)SV_HAS_FLOW_POINTS;
                CONTEXT("%s, pumped %#x", sink_kinds[i].name, shape);
                CHECK(arrives(&sink_kinds[i], shape, true, 0, 20 + k));
            }
        }
    }
}

/* Sinks that said they take what they do not: the events do not arrive. */
TEST(a_sink_that_states_too_much_is_found)
{
    static const struct {
        const char *name;
        unsigned too_much, shape;
    } rows[] = {
        {"perfetto", SV_HAS_SLICES, SV_HAS_SLICES},
        {"split", SV_IN_NO_ORDER, SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER},
        {"lanes", SV_IN_TRACK_ORDER, SV_HAS_SLICES | SV_IN_TRACK_ORDER},
        {"pair", SV_IN_NO_ORDER, SV_HAS_EDGES | SV_IN_NO_ORDER},
    };
    for (size_t r = 0; r < TEST_COUNT(rows); r++) {
        for (size_t i = 0; i < TEST_COUNT(sink_kinds); i++) {
            if (strcmp(sink_kinds[i].name, rows[r].name) != 0)
                continue;
            CONTEXT("%s", rows[r].name);
            CHECK(takes_of(&sink_kinds[i]) != (takes_of(&sink_kinds[i]) | rows[r].too_much));
            CHECK(!arrives(&sink_kinds[i], rows[r].shape, true, rows[r].too_much, 7));
        }
    }
}

/* ---- live ---- */

TEST(a_round_refuses_what_the_sink_does_not_take)
{
    struct gen g;
    struct sv_err err = {0};
    struct collect c = {0};
    struct sv_batch *b = sv_alloc(sizeof *b);
    sv_batch_init(b);
    make(&g, SV_HAS_EDGES, 0, 1);
    struct sv_source *source = gen_source(&g, SV_HAS_EDGES | SV_IN_TRACK_ORDER, NULL);
    struct sv_sink *sink = collect_sink(&c, SV_HAS_EDGES);
    CHECK_INT_EQ(sv_pump_round(source, sink, b, &err), SV_EFORMAT);
    CHECK_UINT_EQ(c.n, 0);
    sink->takes |= SV_IN_TRACK_ORDER;
    CHECK_INT_EQ(sv_pump_round(source, sink, b, &err), 0);
    CHECK_UINT_EQ(c.n, g.n);
    source->close(source);
    sink->close(sink, false, &err);
    collect_fini(&c);
    gen_fini(&g);
    sv_batch_fini(b);
    free(b);
}

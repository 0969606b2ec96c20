/* The law of a trace: whatever reads, writes, converts, merges, cuts or splits it, it says the
 * same.
 *
 * Random traces over the whole model (gen_events.h with everything odd), small on purpose and many;
 * what they say is compared as text (canon.h). Formats that cannot hold something (docs/formats.md)
 * do not get it here; what they then report is tested apart. A failure names its seed: STAVE_SEED=N
 * runs that one alone, and STAVE_KEEP=FILE keeps its trace as text. STAVE_LONG=1 runs more. */
#include "clocks/merge.h"
#include "core/stream/stages.h"
#include "formats/formats.h"
#include "store/filter.h"
#include "tests/harness/canon.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE(t)    (1u << SV_ARG_##t)
#define ALL_TYPES  ((TYPE(ARRAY) << 1) - TYPE(NULL))
#define BYTES_MAX  ((size_t)1 << 28)
#define EVERYTHING SV_HAS_ANYTHING

/* ---- files in memory ---- */

struct file {
    const struct sv_format *format;
    enum sv_compression compression;
    struct sv_buf bytes;
};

struct reading {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_input *in;
    struct sv_source *source;
};

static struct file file_new(const char *format, enum sv_compression compression)
{
    struct file f = {.format = sv_format_named(format), .compression = compression};
    sv_buf_init(&f.bytes, BYTES_MAX);
    return f;
}

/* All that the source gives; what the writer has no place for is a failed check. */
static void write_all(struct file *f, struct sv_source *source)
{
    struct sv_err err = {0};
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_write_options options = {.compression = f->compression, .resync_bytes = 2000};
    sv_report_init(&report);
    REQUIRE(sv_output_open_buf(&f->bytes, SV_PLAIN, &out, &err) == 0);
    REQUIRE(f->format->writer->open(out, &options, source->dict, &report, &sink, &err) == 0);
    CHECK_INT_EQ(sv_pump(source, sink, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    for (size_t i = 0; i < report.n; i++)
        if (report.rows[i].severity == SV_SKIPPED)
            CHECK_STR_EQ(report.rows[i].what, "nothing that is left out");
    sv_report_fini(&report);
}

static struct reading *read_open(const struct file *f)
{
    struct sv_err err = {0};
    struct reading *r = calloc(1, sizeof *r);
    REQUIRE(r != NULL);
    r->dict = sv_dict_new();
    sv_report_init(&r->report);
    REQUIRE(sv_input_open_memory(f->bytes.data, f->bytes.len, "law", &r->in, &err) == 0);
    CHECK(f->format->probe(f->bytes.data, f->bytes.len) > 0);
    struct sv_read_options options = {0};
    REQUIRE(sv_format_open(f->format, r->in, &options, r->dict, &r->report, &r->source, &err) == 0);
    return r;
}

/* After its source was closed by whoever ran it; the dictionary goes unless it was given away. */
static void read_close(struct reading *r, bool keeps_dict)
{
    for (size_t i = 0; i < r->report.n; i++)
        if (r->report.rows[i].severity != SV_NOTE)
            CHECK_STR_EQ(r->report.rows[i].what, "nothing wrong");
    sv_input_close(r->in);
    sv_report_fini(&r->report);
    if (!keeps_dict)
        sv_dict_free(r->dict);
    free(r);
}

static const char *say_file(struct sv_buf *text, const struct file *f, unsigned flags)
{
    struct reading *r = read_open(f);
    canon_source(text, r->source, flags);
    read_close(r, false);
    return sv_buf_cstr(text);
}

/* ---- cases ---- */

struct law {
    uint64_t seed;
    struct rng rng;
    struct gen g;
    unsigned shape;
    bool is_json; /* nothing in it that JSON cannot hold */
    struct sv_buf want, got;
};

static void law_make(struct law *l, uint64_t seed, unsigned extras)
{
    static const unsigned shapes[] = {
        SV_HAS_EDGES,
        SV_HAS_NESTED,
        SV_HAS_EDGES | SV_HAS_NESTED,
        SV_HAS_SLICES,
        SV_HAS_EDGES | SV_HAS_FLOW_POINTS,
        SV_HAS_EDGES | SV_HAS_SLICES,
    };
    *l = (struct law){.seed = seed, .rng = {seed * 77 + 5}, .is_json = seed % 2};
    unsigned odd = (unsigned)rng_next(&l->rng) & 63;
    if (l->is_json)
        odd &= ~(unsigned)GEN_ODD_NUMBERS;
    l->shape = shapes[rng_below(&l->rng, TEST_COUNT(shapes))];
    gen_make(&l->g,
             &(struct gen_options){.seed = seed,
                                   .n = 1 + rng_below(&l->rng, 40),
                                   .shape = l->shape,
                                   .extras = extras,
                                   .odd = odd,
                                   .n_tracks = 1 + (unsigned)rng_below(&l->rng, 6),
                                   .arg_types = l->is_json ? ALL_TYPES & ~TYPE(POINTER) : ALL_TYPES,
                                   .start_ns = (int64_t)rng_below(&l->rng, 2000) - 1000});
    sv_buf_init(&l->want, BYTES_MAX);
    sv_buf_init(&l->got, BYTES_MAX);
}

static void law_fini(struct law *l)
{
    sv_buf_fini(&l->want);
    sv_buf_fini(&l->got);
    gen_fini(&l->g);
}

static struct sv_source *law_source(struct law *l)
{
    return gen_source(&l->g, l->shape, NULL);
}

/* A format that can hold the case, drawn at random. */
static struct file law_file(struct law *l)
{
    static const enum sv_compression packings[] = {SV_PLAIN, SV_PLAIN, SV_GZIP,
#ifdef SV_HAVE_ZSTD
                                                   SV_ZSTD
#else
                                                   SV_GZIP
#endif
    };
    switch (rng_below(&l->rng, l->is_json ? 3 : 2)) {
    case 0: return file_new("perfetto", packings[rng_below(&l->rng, 4)]);
    case 1: return file_new("text", SV_PLAIN);
    default: return file_new("chrome", SV_PLAIN);
    }
}

static void law_keep(struct law *l, const char *path)
{
    struct file f = file_new("text", SV_PLAIN);
    FILE *to = fopen(path, "wb");
    REQUIRE(to != NULL);
    write_all(&f, law_source(l));
    fwrite(f.bytes.data, 1, f.bytes.len, to);
    fclose(to);
    sv_buf_fini(&f.bytes);
}

/* Runs the law for many seeds, or for the one that is asked for; stops at the first that fails. */
static void for_seeds(uint64_t few, uint64_t many, unsigned extras, bool (*check)(struct law *l))
{
    const char *only = getenv("STAVE_SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1, n = getenv("STAVE_LONG") ? many : few;
    if (TEST_HAS_SANITIZER)
        n = n / 4 + 1;
    printf("# seeds %llu to %llu\n", (unsigned long long)first,
           (unsigned long long)(only ? first : first + n - 1));
    fflush(stdout); /* a failure leaves by _exit */
    /* Many small files: memory is kept rather than asked for each time. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    for (uint64_t seed = first; seed < first + (only ? 1 : n); seed++) {
        struct law l;
        law_make(&l, seed, extras);
        CONTEXT("STAVE_SEED=%llu", (unsigned long long)seed);
        if (only && getenv("STAVE_KEEP"))
            law_keep(&l, getenv("STAVE_KEEP"));
        bool ok = check(&l);
        law_fini(&l);
        if (!ok)
            return;
    }
}

/* ---- the laws ---- */

static bool written_and_read(struct law *l)
{
    static const char *const names[] = {"text", "perfetto", "chrome"};
    bool ok = true;
    for (size_t i = 0; ok && i < (l->is_json ? 3 : 2); i++) {
        struct file f = file_new(names[i], i == 1 && l->seed % 5 == 0 ? SV_GZIP : SV_PLAIN);
        unsigned flags = i == 0 ? 0 : CANON_UTF8; /* the text keeps every byte */
        canon_source(&l->want, law_source(l), flags);
        CONTEXT("STAVE_SEED=%llu, %s", (unsigned long long)l->seed, names[i]);
        write_all(&f, law_source(l));
        ok = canon_equal(sv_buf_cstr(&l->want), say_file(&l->got, &f, flags));
        sv_buf_fini(&f.bytes);
    }
    return ok;
}

TEST(a_file_says_what_was_written)
{
    for_seeds(700, 100000, GEN_ALL, written_and_read);
}

/* One format to another, and on to a third. */
static bool converted(struct law *l)
{
    bool ok = true;
    canon_source(&l->want, law_source(l), CANON_UTF8);
    struct file f = law_file(l);
    write_all(&f, law_source(l));
    for (int i = 0; ok && i < 3; i++) {
        struct file next = law_file(l);
        struct reading *r = read_open(&f);
        CONTEXT("STAVE_SEED=%llu, step %d from %s to %s", (unsigned long long)l->seed, i,
                f.format->name, next.format->name);
        write_all(&next, r->source);
        read_close(r, false);
        sv_buf_fini(&f.bytes);
        f = next;
        ok = canon_equal(sv_buf_cstr(&l->want), say_file(&l->got, &f, CANON_UTF8));
    }
    sv_buf_fini(&f.bytes);
    return ok;
}

TEST(a_conversion_says_the_same)
{
    for_seeds(400, 50000, GEN_ALL, converted);
}

/* ---- cut ---- */

static const char *say_cut(struct sv_buf *text, struct sv_source *source, struct sv_filter *filter)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(source->dict, NULL, 0);
    struct sv_sink *sink = sv_filter_new(source->dict, filter, sv_trace_sink(t));
    CHECK_INT_EQ(sv_pump(source, sink, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    canon(text, t, CANON_NO_CPU_TIMES | CANON_UTF8);
    sv_trace_free(t);
    return sv_buf_cstr(text);
}

/* Takes out the arrows of slices that begin with the window: they began in some order before it,
 * and now at one time, so that which of two events of one flow is the first is no longer known. */
static void drop_arrows_at(struct sv_buf *text, int64_t from_ns)
{
    char here[32];
    const char *all = sv_buf_cstr(text), *next;
    size_t kept = 0;
    snprintf(here, sizeof here, " %" PRId64 " ", from_ns);
    for (const char *line = all; *line; line = next) {
        const char *end = strchr(line, '\n'), *arrow = strstr(line, " -> "), *at;
        next = end + 1;
        if (strncmp(line, "arrow ", 6) == 0 && arrow && arrow < end) {
            const char *from = strchr(line + 6, ' '), *to = strchr(arrow + 4, ' ');
            at = strncmp(from, here, strlen(here)) == 0 ? from : to;
            if (strncmp(at, here, strlen(here)) == 0)
                continue;
        }
        memmove(text->data + kept, line, (size_t)(next - line));
        kept += (size_t)(next - line);
    }
    text->len = kept;
}

static int64_t some_time(struct law *l)
{
    const struct sv_event *e = &l->g.events[rng_below(&l->rng, l->g.n)];
    int64_t ns = e->ts_ns, later;
    if (e->dur_ns > 0 && rng_below(&l->rng, 2))
        ns += (int64_t)rng_below(&l->rng, (uint64_t)e->dur_ns + 1);
    return __builtin_add_overflow(ns, (int64_t)rng_below(&l->rng, 3) - 1, &later) ? ns : later;
}

/* A cut of the file is the file of the cut. */
static bool cut(struct law *l)
{
    static const char *const patterns[] = {"name1*", "", "*"};
    struct sv_filter filter = SV_FILTER_ALL;
    if (rng_below(&l->rng, 4))
        filter.from_ns = some_time(l);
    if (rng_below(&l->rng, 4))
        filter.to_ns = some_time(l);
    if (rng_below(&l->rng, 4) == 0)
        filter.names = (struct sv_globs){&patterns[rng_below(&l->rng, 3)], 1};
    say_cut(&l->want, law_source(l), &filter);
    struct file f = law_file(l);
    CONTEXT("STAVE_SEED=%llu, %s", (unsigned long long)l->seed, f.format->name);
    write_all(&f, law_source(l));
    struct reading *r = read_open(&f);
    say_cut(&l->got, r->source, &filter);
    read_close(r, false);
    sv_buf_fini(&f.bytes);
    if (filter.from_ns != INT64_MIN) {
        drop_arrows_at(&l->want, filter.from_ns);
        drop_arrows_at(&l->got, filter.from_ns);
    }
    return canon_equal(sv_buf_cstr(&l->want), sv_buf_cstr(&l->got));
}

TEST(a_cut_of_the_file_is_the_file_of_the_cut)
{
    /* Left out is what an end edge outside of the window has: whether there is one, and the CPU
     * time. */
    for_seeds(700, 50000, GEN_ALL & ~GEN_UNFINISHED, cut);
}

/* ---- merge ---- */

static void add_to(struct sv_merge *m, const struct file *f, const char *name, int64_t offset_ns)
{
    struct sv_err err = {0};
    struct reading *r = read_open(f);
    struct sv_merge_input input = {
        .name = name, .dict = r->dict, .has_offset = offset_ns != 0, .offset_ns = offset_ns};
    CHECK_INT_EQ(sv_merge_add(m, &input, r->source, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    read_close(r, true);
}

/* Two files merged into a third, as text. */
static const char *say_merged(struct law *l, struct sv_buf *text, const struct file *a,
                              const struct file *b, struct file *result)
{
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_source *source;
    struct sv_dict *dict = sv_dict_new();
    /* Perfetto has no step without a start, so a first step comes back as one: a flow that
     * continues in another file of the same machine would begin anew there. */
    bool is_same = l->seed % 3 == 0 && !(l->shape & SV_HAS_FLOW_POINTS);
    struct sv_merge *m =
        sv_merge_new(&(struct sv_merge_options){.assume = true, .same_host = is_same});
    sv_report_init(&report);
    add_to(m, a, "a", 0);
    add_to(m, b, "b", 0);
    REQUIRE(sv_merge_source(m, dict, &report, &source, &err) == 0);
    if (result) {
        write_all(result, source);
        say_file(text, result, CANON_UTF8);
    } else {
        canon_source(text, source, CANON_UTF8);
    }
    sv_report_fini(&report);
    sv_dict_free(dict);
    return sv_buf_cstr(text);
}

static bool merged(struct law *l)
{
    struct law other;
    law_make(&other, l->seed + 2000000, GEN_ALL);
    struct file text_a = file_new("text", SV_PLAIN), text_b = file_new("text", SV_PLAIN);
    struct file a = law_file(l), b = law_file(l), result = law_file(l);
    bool is_itself = l->seed % 4 == 0;
    write_all(&text_a, law_source(l));
    write_all(&a, law_source(l));
    write_all(&text_b, law_source(is_itself ? l : &other));
    write_all(&b, law_source(is_itself ? l : &other));
    CONTEXT("STAVE_SEED=%llu, %s and %s to %s", (unsigned long long)l->seed, a.format->name,
            b.format->name, result.format->name);
    say_merged(l, &l->want, &text_a, &text_b, NULL);
    say_merged(l, &l->got, &a, &b, &result);
    sv_buf_fini(&text_a.bytes);
    sv_buf_fini(&text_b.bytes);
    sv_buf_fini(&a.bytes);
    sv_buf_fini(&b.bytes);
    sv_buf_fini(&result.bytes);
    law_fini(&other);
    return canon_equal(sv_buf_cstr(&l->want), sv_buf_cstr(&l->got));
}

TEST(a_merge_does_not_depend_on_formats)
{
    for_seeds(400, 30000, GEN_ALL, merged);
}

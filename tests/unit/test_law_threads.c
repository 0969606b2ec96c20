/* The law of threads: whatever their number, and however the input is cut for them, the store is
 * the same bit by bit, and so are findings and errors.
 *
 * Compared are images of the store (store/image.h), which contain the findings with their
 * positions. Traces are random ones, whole and damaged, and the files that fuzzing begins with.
 * That an event decoded ahead is the same as one decoded in its turn is tried by a field that
 * everyone skips, but that is not an everyday one. */
#include "core/base/mem.h"
#include "core/base/wire.h"
#include "formats/formats.h"
#include "stats/self.h"
#include "stats/stats.h"
#include "store/index.h"
#include "tests/harness/canon.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/images.h"
#include "tests/harness/test.h"
#include "threads/workers.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)1 << 28)

/* ---- loading ---- */

struct way {
    unsigned threads;
    size_t block_bytes;
};

static const struct way ways[] = {{1, 1}, {2, 100}, {3, 1000}, {2, 20000}, {8, 300}};

struct result {
    uint8_t *image;
    size_t size;
    int code;
    struct sv_err err;
};

static struct result load(const char *format, const void *bytes, size_t len, struct way way)
{
    struct result r = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    struct sv_read_options options = {.workers = sv_workers_new(way.threads),
                                      .block_bytes = way.block_bytes};
    sv_report_init(&report);
    REQUIRE(sv_input_open_memory(bytes, len, "law", &in, &r.err) == 0);
    const struct sv_format *f = sv_format_named(format);
    REQUIRE(sv_format_open(f, in, &options, dict, &report, &source, &r.err) == 0);
    struct sv_trace *t = sv_trace_new(dict, &report, 0);
    sv_trace_use(t, options.workers);
    r.code = sv_pump(source, sv_trace_sink(t), NULL, &r.err);
    if (r.code >= 0) {
        r.image = image_bytes(t, &report, &(struct sv_image_key){0}, NULL, NULL, &r.size);
        REQUIRE(r.image != NULL);
    }
    sv_trace_free(t);
    sv_workers_free(options.workers);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return r;
}

/* Names the sections that differ. */
static void check_equal(const uint8_t *got, const uint8_t *want, size_t size)
{
    if (memcmp(got, want, size) == 0)
        return;
    struct sv_image *a = sv_image_of_bytes(got, size, NULL),
                    *b = sv_image_of_bytes(want, size, NULL);
    REQUIRE(a && b);
    const void *x, *y;
    uint64_t n, m;
    const char *name;
    for (size_t i = 0; (name = sv_image_section(a, i, &x, &n)); i++)
        if (sv_image_section(b, i, &y, &m) && (n != m || memcmp(x, y, n) != 0))
            test_check(false, name, __FILE__, __LINE__);
    sv_image_close(a);
    sv_image_close(b);
}

static void check_ways(const char *format, const void *bytes, size_t len, const char *name)
{
    struct result want = load(format, bytes, len, (struct way){.threads = 1});
    for (size_t i = 0; i < TEST_COUNT(ways); i++) {
        CONTEXT("%s, %s, %u threads, blocks of %zu bytes", format, name, ways[i].threads,
                ways[i].block_bytes);
        struct result got = load(format, bytes, len, ways[i]);
        CHECK_INT_EQ(got.code, want.code);
        CHECK_STR_EQ(got.err.msg, want.err.msg);
        CHECK_INT_EQ(got.err.pos, want.err.pos);
        if (CHECK_UINT_EQ(got.size, want.size) && want.image)
            check_equal(got.image, want.image, want.size);
        free(got.image);
    }
    free(want.image);
}

/* ---- random files ---- */

static void make_file(const char *format, uint64_t seed, size_t n, struct sv_buf *bytes)
{
    static const enum sv_compression inside[] = {SV_PLAIN, SV_PLAIN, SV_GZIP};
    struct sv_err err = {0};
    struct gen g;
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    struct gen_options how = {.seed = seed,
                              .n = n,
                              .shape = SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER,
                              .extras = seed % 3 ? GEN_ALL : GEN_ALL | GEN_UNMATCHED,
                              .odd = seed % 4 ? 0 : 63 & ~(unsigned)GEN_ODD_TIMES};
    struct sv_write_options options = {.resync_bytes = seed % 2 ? 2000 : 0,
                                       .compression = inside[seed % TEST_COUNT(inside)]};
    sv_report_init(&report);
    sv_buf_clear(bytes);
    gen_make(&g, &how);
    REQUIRE(sv_output_open_buf(bytes, SV_PLAIN, &out, &err) == 0);
    const struct sv_writer *w = sv_format_named(format)->writer;
    REQUIRE(w->open(out, &options, g.dict, &report, &sink, &err) == 0);
    struct sv_source *source = gen_source(&g, how.shape, &report);
    REQUIRE(sv_pump(source, sink, NULL, &err) == 0);
    sv_report_fini(&report);
    gen_fini(&g);
}

static void damage(struct sv_buf *bytes, struct rng *rng)
{
    size_t at = rng_below(rng, bytes->len), n = rng_below(rng, 40);
    switch (rng_below(rng, 4)) {
    case 0: bytes->data[at] = (uint8_t)rng_next(rng); break;
    case 1: bytes->data[at] ^= (uint8_t)(1u << rng_below(rng, 8)); break;
    case 2: /* a piece is missing */
        n = n < bytes->len - at ? n : bytes->len - at;
        memmove(bytes->data + at, bytes->data + at + n, bytes->len - at - n);
        bytes->len -= n;
        break;
    default:
        if (rng_below(rng, 4) == 0)
            bytes->len = at + 1;
        else
            memset(bytes->data + at, (int)rng_next(rng) & 0xff,
                   n < bytes->len - at ? n : bytes->len - at);
    }
}

static void check_random(const char *format)
{
    uint64_t seeds = getenv("STAVE_LONG") ? 400 : TEST_HAS_SANITIZER ? 6 : 24;
    struct sv_buf bytes;
    sv_buf_init(&bytes, BYTES_MAX);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct rng rng = {seed};
        char name[64];
        make_file(format, seed, 300 + seed * 17 % 900, &bytes);
        for (unsigned n = 0; n < 4; n++) {
            snprintf(name, sizeof name, "seed %u, damaged %u times", (unsigned)seed, n);
            check_ways(format, bytes.data, bytes.len, name);
            damage(&bytes, &rng);
        }
    }
    sv_buf_fini(&bytes);
}

TEST(random_traces_whole_and_damaged)
{
    check_random("perfetto");
    check_random("chrome");
}

static void check_folder(const char *format, const char *name)
{
    char path[4096], folder[4096];
    snprintf(folder, sizeof folder, "%s", test_source(name));
    size_t n = 0;
    DIR *d = opendir(folder);
    REQUIRE(d != NULL);
    struct sv_buf bytes;
    sv_buf_init(&bytes, BYTES_MAX);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%.3000s/%.255s", folder, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!f)
            continue;
        sv_buf_clear(&bytes);
        for (int c; (c = getc(f)) != EOF;)
            sv_buf_byte(&bytes, (uint8_t)c);
        fclose(f);
        check_ways(format, bytes.data, bytes.len, e->d_name);
        n++;
    }
    closedir(d);
    CHECK(n >= 5);
    sv_buf_fini(&bytes);
}

TEST(files_that_fuzzing_begins_with)
{
    check_folder("perfetto", "tests/fuzz/corpus/perfetto_read");
    check_folder("chrome", "tests/fuzz/corpus/chrome_read");
}

/* Borders that are none: objects in arguments that look like the next event. */
TEST(events_inside_events)
{
    struct sv_buf bytes;
    sv_buf_init(&bytes, BYTES_MAX);
    for (int spaces = 0; spaces < 2; spaces++) {
        const char *gap = spaces ? "\n  " : "";
        sv_buf_clear(&bytes);
        sv_buf_str(&bytes, "[");
        for (int i = 0; i < 400; i++) {
            sv_buf_printf(
                &bytes,
                "%s%s{\"ph\":\"X\",\"ts\":%d,\"dur\":5,\"pid\":%s,\"tid\":1,\"name\":\"n%d\"",
                i ? "," : "", gap, i * 10, i % 50 == 7 ? "\"text\"" : "1", i % 97);
            if (i % 5 == 3)
                sv_buf_printf(&bytes,
                              ",\"args\":{\"k%d\":[{\"ph\":\"X\",\"inner%d\":1},%s{\"ph\":\"X\","
                              "\"ts\":1,\"dur\":1},%s{\"ph\":\"B\",\"name\":\"not one\"}]}",
                              i % 31, i, gap, gap);
            if (i % 60 == 9)
                sv_buf_str(&bytes, ",\"dur\":7"); /* twice: a finding */
            sv_buf_str(&bytes, "}");
        }
        sv_buf_str(&bytes, "]");
        check_ways("chrome", bytes.data, bytes.len, "nested");
    }
    sv_buf_fini(&bytes);
}

/* ---- decoded ahead, or in its turn ---- */

/* The same packets with a field that is not known: none of them is an everyday one. */
static void make_unusual(const struct sv_buf *from, struct sv_buf *to)
{
    struct sv_pb w = sv_pb_at(from->data, from->len);
    struct sv_pb_field f;
    struct sv_buf packet;
    sv_buf_init(&packet, BYTES_MAX);
    while (sv_pb_next(&w, &f)) {
        REQUIRE(f.type == SV_PB_BYTES);
        sv_buf_clear(&packet);
        sv_buf_add(&packet, f.bytes, (size_t)f.u);
        sv_put_u64(&packet, 199, 7);
        sv_put_bytes(to, 1, packet.data, packet.len);
    }
    CHECK(!w.bad);
    sv_buf_fini(&packet);
}

static void say(const struct sv_buf *bytes, struct sv_buf *text)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    REQUIRE(sv_input_open_memory(bytes->data, bytes->len, "law", &in, &err) == 0);
    REQUIRE(sv_format_open(sv_format_named("perfetto"), in, NULL, dict, &report, &source, &err) ==
            0);
    canon_source(text, source, 0);
    for (size_t i = 0; i < report.n; i++)
        sv_buf_printf(text, "finding %s %llu\n", report.rows[i].what,
                      (unsigned long long)report.rows[i].count);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
}

TEST(an_event_decoded_ahead_is_the_same)
{
    struct sv_buf bytes, unusual, want, got;
    sv_buf_init(&bytes, BYTES_MAX);
    sv_buf_init(&unusual, BYTES_MAX);
    sv_buf_init(&want, BYTES_MAX);
    sv_buf_init(&got, BYTES_MAX);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        CONTEXT("seed %u", (unsigned)seed);
        make_file("perfetto", seed * 3 + seed % 2, 500, &bytes);
        sv_buf_clear(&unusual);
        sv_buf_clear(&want);
        sv_buf_clear(&got);
        make_unusual(&bytes, &unusual);
        say(&unusual, &want);
        say(&bytes, &got);
        canon_equal(sv_buf_cstr(&want), sv_buf_cstr(&got));
    }
    sv_buf_fini(&bytes);
    sv_buf_fini(&unusual);
    sv_buf_fini(&want);
    sv_buf_fini(&got);
}

/* ---- finishing the store ---- */

static uint8_t *finished(const struct gen_options *how, unsigned threads, size_t *size)
{
    struct sv_err err = {0};
    struct sv_report report;
    struct gen g;
    sv_report_init(&report);
    gen_make(&g, how);
    struct sv_workers *w = sv_workers_new(threads);
    struct sv_trace *t = sv_trace_new(g.dict, &report, 0);
    sv_trace_use(t, w);
    CHECK_INT_EQ(gen_push(&g, sv_trace_sink(t), &err), 0);
    uint8_t *image = image_bytes(t, &report, &(struct sv_image_key){0}, NULL, NULL, size);
    REQUIRE(image != NULL);
    sv_trace_free(t);
    sv_workers_free(w);
    sv_report_fini(&report);
    gen_fini(&g);
    return image;
}

TEST(large_stores_are_finished_alike)
{
    static const unsigned shapes[] = {SV_HAS_EDGES | SV_HAS_NESTED,
                                      SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS,
                                      SV_HAS_EDGES | SV_HAS_SLICES | SV_IN_NO_ORDER};
    static const unsigned threads[] = {2, 5};
    for (size_t i = 0; i < TEST_COUNT(shapes); i++) {
        struct gen_options how = {.seed = i + 1,
                                  .n = 250000,
                                  .shape = shapes[i],
                                  .n_tracks = 11,
                                  .extras = GEN_INSTANTS | GEN_COUNTERS | GEN_LOSS |
                                            GEN_UNFINISHED};
        size_t want_size, size;
        uint8_t *want = finished(&how, 1, &want_size);
        for (size_t k = 0; k < TEST_COUNT(threads); k++) {
            CONTEXT("shape %u, %u threads", shapes[i], threads[k]);
            uint8_t *got = finished(&how, threads[k], &size);
            if (CHECK_UINT_EQ(size, want_size))
                CHECK(memcmp(want, got, size) == 0);
            free(got);
        }
        free(want);
    }
}

/* ---- statistics ---- */

static struct sv_stats stats_by(const struct sv_trace *t, unsigned threads, unsigned by)
{
    struct sv_stats s;
    sv_workers_set_default(threads);
    int64_t *self = sv_self_times(t);
    sv_stats_make(&s, t, self, NULL, by);
    free(self);
    sv_workers_set_default(0);
    return s;
}

static struct sv_index *index_by(const struct sv_trace *t, unsigned threads)
{
    struct sv_index *x = sv_index_new(t);
    sv_workers_set_default(threads);
    sv_index_order(x);
    sv_workers_set_default(0);
    return x;
}

static void check_index(const struct sv_trace *t)
{
    struct sv_index *want = index_by(t, 1), *got = index_by(t, 3);
    const uint32_t *a = sv_index_order(want), *b = sv_index_order(got);
    CHECK(memcmp(a, b, t->slices.n * sizeof *a) == 0);
    for (uint64_t i = 1; i < t->slices.n; i++) {
        const int64_t *ts = t->slices.ts_ns;
        REQUIRE(ts[b[i - 1]] < ts[b[i]] || (ts[b[i - 1]] == ts[b[i]] && b[i - 1] < b[i]));
    }
    sv_index_free(want);
    sv_index_free(got);
}

/* All but the padding, which nobody sets. */
static bool same_stat(const struct sv_stat *a, const struct sv_stat *b)
{
    size_t numbers = offsetof(struct sv_stat, count);
    return a->name == b->name && a->cat == b->cat && a->track == b->track &&
           memcmp((const char *)a + numbers, (const char *)b + numbers, sizeof *a - numbers) == 0;
}

TEST(statistics_are_alike)
{
    static const unsigned bys[] = {SV_BY_NAME, SV_BY_TRACK, SV_BY_NAME | SV_BY_CAT | SV_BY_TRACK};
    struct gen g;
    struct sv_err err = {0};
    gen_make(&g, &(struct gen_options){.seed = 5,
                                       .n = 400000,
                                       .shape = SV_HAS_SLICES,
                                       .n_tracks = 13,
                                       .extras = GEN_INSTANTS | GEN_UNFINISHED});
    struct sv_trace *t = sv_trace_new(g.dict, NULL, 0);
    CHECK_INT_EQ(gen_push(&g, sv_trace_sink(t), &err), 0);
    REQUIRE(t->slices.n > 300000); /* else there are no threads */
    for (size_t i = 0; i < TEST_COUNT(bys); i++) {
        CONTEXT("by %u", bys[i]);
        struct sv_stats want = stats_by(t, 1, bys[i]), got = stats_by(t, 3, bys[i]);
        CHECK(want.n > 2);
        REQUIRE(got.n == want.n);
        for (size_t k = 0; k < want.n; k++)
            CHECK(same_stat(&got.groups[k], &want.groups[k]));
        sv_stats_fini(&want);
        sv_stats_fini(&got);
    }
    check_index(t);
    sv_trace_free(t);
    gen_fini(&g);
}

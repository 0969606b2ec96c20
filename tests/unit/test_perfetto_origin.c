/* Times before zero in Perfetto files: written with an origin, read back exactly, also from a file
 * that still grows.
 *
 * Each file is looked at twice: by Stave's reader, which knows origins, and by pftext(), which
 * knows Perfetto's rules only and must see every time later by the same amount. */
#include "formats/formats.h"
#include "tests/unit/pffile.h"
#include "tests/unit/pftext.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a file on disk, event by event ---- */

struct writing {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_sink *sink;
    struct sv_err err;
    sv_track tracks[2];
};

static void open_writing(struct writing *w, enum sv_compression compression, bool in_memory)
{
    struct sv_write_options options = {.compression = compression};
    struct sv_output *out;
    memset(w, 0, sizeof *w);
    w->dict = sv_dict_new();
    sv_report_init(&w->report);
    for (int64_t i = 0; i < 2; i++)
        w->tracks[i] = sv_dict_thread(w->dict, 0, 10, 11 + i);
    int code = in_memory ? sv_output_open_memory(&out)
                         : sv_output_open(test_scratch("grows.pftrace"), SV_OUTPUT_DIRECT, SV_PLAIN,
                                          &out, &w->err);
    REQUIRE(code == 0);
    REQUIRE(sv_perfetto_writer.open(out, &options, w->dict, &w->report, &w->sink, &w->err) == 0);
}

static void put(struct writing *w, unsigned track, int64_t ts_ns)
{
    struct sv_event e = {.ts_ns = ts_ns,
                         .track = w->tracks[track],
                         .kind = SV_INSTANT,
                         .name = sv_dict_cstr(w->dict, "i")};
    CHECK_INT_EQ(w->sink->write(w->sink, &e, 1, &w->err), 0);
}

static void close_writing(struct writing *w)
{
    CHECK_INT_EQ(w->sink->close(w->sink, false, &w->err), 0);
    CHECK_STR_EQ(w->err.msg, "");
    sv_dict_free(w->dict);
}

static void read_grown(struct sv_buf *bytes)
{
    char chunk[4096];
    FILE *f = fopen(test_scratch("grows.pftrace"), "rb");
    REQUIRE(f != NULL);
    sv_buf_init(bytes, (size_t)1 << 26);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        sv_buf_add(bytes, chunk, n);
    fclose(f);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The times in the file are these, later by one amount. In the order in which they were written,
 * unless the file is compressed: there packets are grouped by sequence. */
static void check_numbers(uint64_t *seen, const int64_t *times, size_t n, uint64_t shift,
                          bool is_plain)
{
    uint64_t *expected = sv_alloc((n + 1) * sizeof *expected);
    for (size_t i = 0; i < n; i++)
        expected[i] = (uint64_t)times[i] + shift;
    if (!is_plain) {
        qsort(seen, n, sizeof *seen, by_number);
        qsort(expected, n, sizeof *expected, by_number);
    }
    for (size_t i = 0; i < n; i++) {
        CONTEXT("event %zu", i);
        CHECK_UINT_EQ(seen[i], expected[i]);
    }
    free(expected);
}

/* The times that Stave reads. */
static void check_times(const struct sv_buf *bytes, const int64_t *times, size_t n, bool is_plain)
{
    struct read r;
    uint64_t *seen = sv_alloc((n + 1) * sizeof *seen);
    read_bytes(&r, bytes->data, bytes->len, 0);
    check_no_damage(&r);
    CHECK_UINT_EQ(r.got.n, n);
    for (size_t i = 0; i < n && i < r.got.n; i++)
        seen[i] = (uint64_t)r.got.events[i].ts_ns;
    check_numbers(seen, times, n, 0, is_plain);
    free(seen);
    CHECK(sv_dict_find_meta(r.dict, "time_origin_ns") == NULL);
    done(&r, NULL);
}

/* The times that Perfetto sees: all of them later by one amount, which the text of the attribute
 * names. */
static void check_shifted(const struct sv_buf *bytes, const int64_t *times, size_t n,
                          uint64_t shift, bool is_plain)
{
    struct sv_buf text;
    char words[64];
    uint64_t *seen = sv_alloc((n + 1) * sizeof *seen);
    size_t i = 0;
    sv_buf_init(&text, (size_t)1 << 26);
    CHECK(pftext(bytes->data, bytes->len, &text));
    for (const char *line = sv_buf_cstr(&text); *line; line = strchr(line, '\n') + 1) {
        char *end;
        uint64_t ns = strtoull(line, &end, 10);
        if (end == line || *end != ' ')
            continue;
        if (i < n)
            seen[i] = ns;
        i++;
    }
    CHECK_UINT_EQ(i, n);
    check_numbers(seen, times, n, shift, is_plain);
    free(seen);
    snprintf(words, sizeof words, "in this file are %" PRIu64 " ns later", shift);
    if (is_plain)
        CHECK(!shift == !memmem(bytes->data, bytes->len, words, strlen(words)));
    sv_buf_fini(&text);
}

static size_t count_of(const struct sv_report *r, const char *what)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->rows[i].what, what) == 0)
            return r->rows[i].count;
    return 0;
}

/* ---- tests ---- */

static const enum sv_compression compressions[] = {
    SV_PLAIN,
    SV_GZIP,
#ifdef SV_HAVE_ZSTD
    SV_ZSTD,
#endif
};

/* Writes the times of track 0 in this order, flushing after each: a live writer. */
static void check_live(const int64_t *times, size_t n, enum sv_compression compression,
                       uint64_t shift)
{
    struct writing w;
    struct sv_buf bytes;
    open_writing(&w, compression, false);
    for (size_t i = 0; i < n; i++) {
        put(&w, (unsigned)(i & 1), times[i]);
        CHECK_INT_EQ(w.sink->flush(w.sink, &w.err), 0);
        read_grown(&bytes);
        check_times(&bytes, times, i + 1,
                    compression == SV_PLAIN); /* what a killed program leaves */
        sv_buf_fini(&bytes);
    }
    close_writing(&w);
    read_grown(&bytes);
    check_times(&bytes, times, n, compression == SV_PLAIN);
    check_shifted(&bytes, times, n, shift, compression == SV_PLAIN);
    CHECK_UINT_EQ(count_of(&w.report, "times before zero"), shift > 0);
    sv_buf_fini(&bytes);
    sv_report_fini(&w.report);
}

TEST(times_in_order_and_late_ones)
{
    static const struct {
        int64_t times[8];
        size_t n;
        uint64_t shift;
    } rows[] = {
        {{5, 7, 9}, 3, 0},
        {{-10, 7, 9}, 3, 10},
        {{5, 7, -11, 9, 20}, 5, 100},
        {{5, -1, -12, -123, -1234567, 9, -5, 20}, 8, 10000000},
        {{5, -2000000000000000001, 100}, 3, 3000000000000000000u},
        {{INT64_MIN, -1, 0, 1, INT64_MAX}, 5, (uint64_t)1 << 63},
        {{INT64_MAX, 0, INT64_MIN, INT64_MAX, INT64_MIN}, 5, (uint64_t)1 << 63},
        {{0, -9000000000000000001, 3}, 3, (uint64_t)1 << 63},
    };
    for (size_t c = 0; c < TEST_COUNT(compressions); c++) {
        for (size_t i = 0; i < TEST_COUNT(rows); i++) {
            CONTEXT("row %zu, compression %d", i, (int)compressions[c]);
            check_live(rows[i].times, rows[i].n, compressions[c], rows[i].shift);
        }
    }
}

TEST(times_that_go_back_by_and_by_begin_few_windows)
{
    enum { N = 3000 };
    struct writing w;
    struct sv_buf bytes;
    static int64_t times[N + 1];
    open_writing(&w, SV_PLAIN, false);
    put(&w, 0, times[0] = 1);
    for (int i = 1; i <= N; i++)
        put(&w, 0, times[i] = -i);
    close_writing(&w);
    read_grown(&bytes);
    size_t markers = 0;
    for (const uint8_t *p = bytes.data, *end = p + bytes.len; p < end; p++, markers++)
        if (!(p = memmem(p, (size_t)(end - p), "\x82\x47\x7a\x76\xb2\x8d", 6)))
            break;
    CHECK_UINT_EQ(markers, 6); /* 0, -1, -10, -100, -1000, -10000 */
    check_times(&bytes, times, N + 1, true);
    check_shifted(&bytes, times, N + 1, 10000, true);
    sv_buf_fini(&bytes);
    sv_report_fini(&w.report);
}

TEST(a_file_that_cannot_be_written_anew_says_so)
{
    static const int64_t times[] = {5, -7};
    struct writing w;
    open_writing(&w, SV_PLAIN, true);
    put(&w, 0, times[0]);
    CHECK(!w.sink->rewrites);
    put(&w, 0, times[1]);
    CHECK(w.sink->rewrites);
    close_writing(&w);
    CHECK_UINT_EQ(count_of(&w.report, "times before zero that came late"), 1);
    sv_report_fini(&w.report);
}

TEST(a_file_without_such_times_has_no_trace_of_them)
{
    struct writing w;
    struct sv_buf bytes;
    open_writing(&w, SV_PLAIN, false);
    put(&w, 0, 0);
    put(&w, 0, INT64_MAX);
    CHECK(!w.sink->rewrites);
    close_writing(&w);
    read_grown(&bytes);
    CHECK(memmem(bytes.data, bytes.len, "origin", 6) == NULL);
    CHECK_UINT_EQ(w.report.n, 0);
    sv_buf_fini(&bytes);
    sv_report_fini(&w.report);
}

/* Snapshots, start times and the clock that the file's own time line represents count from the
 * origin, too. */
TEST(clocks_and_processes_count_from_the_origin)
{
    struct writing w;
    struct sv_buf bytes;
    struct read r;
    open_writing(&w, SV_PLAIN, false);
    w.dict->clocks.trace_clock = SV_CLOCK_MONOTONIC;
    sv_clocks_add(&w.dict->clocks, &(struct sv_snapshot){.readings = {{SV_CLOCK_MONOTONIC, -500},
                                                                      {SV_CLOCK_REALTIME, 1000}},
                                                         .n = 2,
                                                         .uncertainty_ns = 3});
    sv_track process = sv_dict_process(w.dict, 0, 10);
    w.dict->tracks[process].start_ns = -700;
    put(&w, 0, 5);
    w.dict->tracks[sv_dict_process(w.dict, 0, 77)].start_ns = 9;
    put(&w, 0, -20000);
    sv_clocks_add(&w.dict->clocks, &(struct sv_snapshot){.readings = {{SV_CLOCK_MONOTONIC, 800},
                                                                      {SV_CLOCK_REALTIME, 2300}},
                                                         .n = 2,
                                                         .uncertainty_ns = -1});
    put(&w, 0, 900);
    close_writing(&w);
    read_grown(&bytes);
    check_times(&bytes, (int64_t[]){5, -20000, 900}, 3, true);
    check_shifted(&bytes, (int64_t[]){5, -20000, 900}, 3, 100000, true);
    read_bytes(&r, bytes.data, bytes.len, 0);
    CHECK_INT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_MONOTONIC);
    int64_t ns;
    CHECK(sv_clocks_convert(&r.dict->clocks, SV_CLOCK_MONOTONIC, SV_CLOCK_REALTIME, -500, &ns));
    CHECK_INT_EQ(ns, 1000);
    CHECK(sv_clocks_convert(&r.dict->clocks, SV_CLOCK_MONOTONIC, SV_CLOCK_REALTIME, 900, &ns));
    CHECK_INT_EQ(ns, 2400);
    CHECK_INT_EQ(r.dict->tracks[sv_dict_process(r.dict, 0, 10)].start_ns, -700);
    CHECK_INT_EQ(r.dict->tracks[sv_dict_process(r.dict, 0, 77)].start_ns, 9);
    done(&r, NULL);
    sv_buf_fini(&bytes);
    sv_report_fini(&w.report);
}

/* A clock that nothing relates to others when the file begins: its name is listed beside the file's
 * own, and both count from the origin. */
TEST(a_clock_that_is_related_late_counts_from_the_origin)
{
    struct writing w;
    struct sv_buf bytes;
    struct read r;
    open_writing(&w, SV_PLAIN, false);
    w.dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    put(&w, 0, 5);
    sv_clocks_add(&w.dict->clocks, &(struct sv_snapshot){.readings = {{SV_CLOCK_REALTIME, 300},
                                                                      {SV_CLOCK_MONOTONIC, 50}},
                                                         .n = 2,
                                                         .uncertainty_ns = -1});
    put(&w, 0, 400);
    put(&w, 0, -20000);
    close_writing(&w);
    read_grown(&bytes);
    check_times(&bytes, (int64_t[]){5, 400, -20000}, 3, true);
    read_bytes(&r, bytes.data, bytes.len, 0);
    int64_t ns;
    CHECK_INT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_REALTIME);
    CHECK(sv_clocks_convert(&r.dict->clocks, SV_CLOCK_REALTIME, SV_CLOCK_MONOTONIC, 300, &ns));
    CHECK_INT_EQ(ns, 50);
    done(&r, NULL);
    sv_buf_fini(&bytes);
    sv_report_fini(&w.report);
}

/* One file behind another: the second has no origin, or another one. */
TEST(an_origin_holds_for_its_own_file)
{
    struct sv_buf both;
    sv_buf_init(&both, (size_t)1 << 20);
    for (int i = 0; i < 3; i++) {
        struct writing w;
        struct sv_buf bytes;
        open_writing(&w, SV_PLAIN, false);
        w.tracks[0] = sv_dict_thread(w.dict, 0, 20 + i, 1);
        sv_track process = sv_dict_process(w.dict, 0, 20 + i);
        w.dict->tracks[process].name = sv_dict_cstr(w.dict, "described before its first event");
        w.dict->tracks[process].start_ns = 7;
        put(&w, 0, i == 1 ? 40 : i - 50);
        close_writing(&w);
        sv_report_fini(&w.report);
        read_grown(&bytes);
        sv_buf_add(&both, bytes.data, bytes.len);
        sv_buf_fini(&bytes);
    }
    struct read r;
    read_bytes(&r, both.data, both.len, 0);
    CHECK_UINT_EQ(r.got.n, 3);
    CHECK_INT_EQ(r.got.events[0].ts_ns, -50);
    CHECK_INT_EQ(r.got.events[1].ts_ns, 40);
    CHECK_INT_EQ(r.got.events[2].ts_ns, -48);
    for (int i = 0; i < 3; i++)
        CHECK_INT_EQ(r.dict->tracks[sv_dict_process(r.dict, 0, 20 + i)].start_ns, 7);
    done(&r, NULL);
    sv_buf_fini(&both);
}

/* ---- what ends at no time ---- */

static void check_refused(const char *name, const void *bytes, size_t len, int64_t pos)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    struct collect c = {0};
    sv_report_init(&report);
    CONTEXT("%s", name);
    REQUIRE(sv_input_open_memory(bytes, len, name, &in, &err) == 0);
    const struct sv_format *f = sv_format_probe(in, &err);
    REQUIRE(f != NULL);
    REQUIRE(sv_format_open(f, in, &(struct sv_read_options){0}, dict, &report, &source, &err) == 0);
    int code = sv_pump(source, collect_sink(&c, SV_HAS_ANYTHING), NULL, &err);
    CHECK_INT_EQ(code, pos < 0 ? 0 : SV_ELIMIT);
    CHECK_INT_EQ(err.pos, pos < 0 ? 0 : pos);
    sv_input_close(in);
    collect_fini(&c);
    sv_report_fini(&report);
    sv_dict_free(dict);
}

TEST(what_begins_or_ends_at_no_time_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        const char *at; /* NULL: it is fine */
    } rows[] = {
        {"[{\"ph\":\"X\",\"ts\":9223372036854775.806,\"dur\":0.001,\"pid\":1,\"tid\":1}]", NULL},
        {"[{\"ph\":\"X\",\"ts\":9223372036854775.806,\"dur\":0.002,\"pid\":1,\"tid\":1}]", "{"},
        {"[{\"ph\":\"X\",\"ts\":-5,\"dur\":9223372036854775.808,\"pid\":1,\"tid\":1}]", "{"},
        {"[{\"ph\":\"X\",\"ts\":-9223372036854775.808,\"dur\":9223372036854775.807,\"pid\":1,"
         "\"tid\":1}]",
         NULL},
        {"# stave text 1\ntrack #1 thread uuid=0x1 pid=1 tid=1\n"
         "9223372036.854775806 slice #1 \"a\" dur=0.000000001\n",
         NULL},
        {"# stave text 1\ntrack #1 thread uuid=0x1 pid=1 tid=1\n"
         "1.000000000 slice #1 \"a\" dur=9223372036.000000000\n",
         "1.0"},
        {"# stave text 1\ntrack #1 thread uuid=0x1 pid=1 tid=1\n"
         "9223372036.854775808 instant #1 \"a\"\n",
         "9223"},
        {"# stave text 1\ntrack #1 thread uuid=0x1 pid=1 tid=1\n"
         "-99999999999999999999999999999999999.000000000 instant #1 \"a\"\n",
         "-999"},
        {"# stave text 1\ntrack #1 thread uuid=0x1 pid=1 tid=1\n"
         "1.000000000 slice #1 \"a\" dur=9223372036.854775808\n",
         "1.0"},
        {"# stave text 1\n9.99999999x instant #1 \"a\"\n99999999999999999999 end #1\n", NULL},
        {"[{\"ph\":\"i\",\"ts\":9223372036854775.808,\"pid\":1,\"tid\":1}]", "{"},
        {"[{\"ph\":\"i\",\"ts\":\"-9223372036854775.809\",\"pid\":1,\"tid\":1}]", "{"},
        {"[{\"ph\":\"B\",\"ts\":1e300,\"pid\":1,\"tid\":1}]", "{"},
        {"[{\"ph\":\"M\",\"ts\":1e300,\"pid\":1,\"name\":\"process_name\",\"args\":{}}]", NULL},
        {"[{\"ph\":\"i\",\"ts\":1e300,\"ts\":5,\"pid\":1,\"tid\":1}]", NULL},
        {"[{\"ph\":\"i\",\"ts\":\"nan\",\"pid\":1,\"tid\":1}]", NULL},
        {"{\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":[{\"ph\":\"i\",\"pid\":1,"
         "\"tid\":1,\"ts\":9223372036854775.807}]}",
         "{\"ph"},
        {"7000000000.000000 read(3, \"\", 1) = 0 <3000000000.000000>\n", "7000"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        const char *at = rows[i].at ? strstr(rows[i].text, rows[i].at) : NULL;
        char name[32];
        snprintf(name, sizeof name, "row %zu", i);
        check_refused(name, rows[i].text, strlen(rows[i].text), at ? at - rows[i].text : -1);
    }
}

TEST(a_gpu_stage_that_ends_at_no_time_is_refused)
{
    for (int i = 0; i < 3; i++) {
        struct file f;
        file_init(&f);
        cleared(&f, 1, 0, 0);
        size_t place = f.b.len;
        packet(&f, 1);
        u64(&f, SV_PF_PACKET_TIMESTAMP, INT64_MAX - 5);
        size_t stage = open_message(&f, SV_PF_PACKET_GPU_STAGE);
        u64(&f, SV_PF_STAGE_EVENT_ID, 1);
        u64(&f, SV_PF_STAGE_DURATION, i == 0 ? 5 : i == 1 ? 6 : UINT64_MAX);
        close_message(&f, stage);
        end(&f);
        check_refused("stage", f.b.data, f.b.len, i == 0 ? -1 : (int64_t)place);
        sv_buf_fini(&f.b);
    }
}

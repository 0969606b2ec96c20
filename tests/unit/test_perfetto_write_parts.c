/* The Perfetto writer with one machine after the other, as merge writes them: times go back, again
 * and again, and what an event costs must stay. */
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "formats/formats.h"
#include "tests/harness/test.h"

#include <stdlib.h>

enum { THREADS = 8, EVENTS = 200 };
#define BEGIN_NS 1700000000000000000

/* A part: threads of one process, each with some instants, all from `begin_ns` on. */
static void write_part(struct sv_dict *dict, struct sv_sink *sink, uint32_t space, int64_t begin_ns)
{
    struct sv_batch *b = sv_alloc(sizeof *b);
    sv_batch_init(b);
    for (int i = 0; i < EVENTS; i++) {
        for (int t = 0; t < THREADS; t++) {
            struct sv_event *e = sv_batch_event(b);
            e->kind = SV_INSTANT;
            e->ts_ns = begin_ns + i * 1000 + t;
            e->track = sv_dict_thread(dict, space, 10, 10 + t);
            e->name = sv_dict_cstr(dict, i % 2 ? "odd" : "even");
        }
        CHECK_INT_EQ(sink->write(sink, b->events, b->n, NULL), 0);
        sv_batch_reset(b);
    }
    sv_batch_fini(b);
    free(b);
}

struct part {
    uint32_t space;
    int64_t begin_ns;
};

static void write_file(const struct part *parts, size_t n, const struct sv_write_options *options,
                       struct sv_buf *file)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    sv_report_init(&report);
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_buf_init(file, SIZE_MAX);
    REQUIRE(sv_output_open_buf(file, SV_PLAIN, &out, NULL) == 0);
    REQUIRE(sv_perfetto_writer.open(out, options, dict, &report, &sink, NULL) == 0);
    for (size_t p = 0; p < n; p++)
        write_part(dict, sink, parts[p].space, parts[p].begin_ns);
    CHECK_INT_EQ(sink->close(sink, false, NULL), 0);
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 0);
    sv_report_fini(&report);
    sv_dict_free(dict);
}

/* Bytes of a file of so many parts, with small windows. */
static size_t write_parts(uint32_t n, struct sv_buf *file)
{
    struct part parts[200];
    REQUIRE(n <= 200);
    for (uint32_t p = 0; p < n; p++)
        parts[p] = (struct part){p, BEGIN_NS};
    write_file(parts, n, &(struct sv_write_options){.resync_bytes = 64 << 10}, file);
    return file->len;
}

TEST(what_a_part_costs_does_not_depend_on_their_number)
{
    struct sv_buf few, many;
    double of_few = (double)write_parts(8, &few) / 8,
           of_many = (double)write_parts(200, &many) / 200;
    CONTEXT("%g bytes a part of 8, %g of 200", of_few, of_many);
    CHECK(of_many < of_few * 1.2); /* numbers of sequences have two bytes now */
    sv_buf_fini(&few);
    sv_buf_fini(&many);
}

/* How many events a file has, how many of them have a time that no part gave them, and how much of
 * it is damaged. */
struct found {
    size_t n, wrong, damaged;
};

static struct found read_file(const struct sv_buf *file, const struct part *parts, size_t n_parts)
{
    struct sv_input *in;
    struct sv_source *source;
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_err err = {0};
    struct found f = {0};
    int got;
    sv_report_init(&report);
    REQUIRE(sv_input_open_memory(file->data, file->len, "parts", &in, &err) == 0);
    REQUIRE(sv_format_open(&sv_perfetto_format, in, &(struct sv_read_options){0}, dict, &report,
                           &source, &err) == 0);
    struct sv_batch *b = sv_alloc(sizeof *b);
    sv_batch_init(b);
    while ((got = source->next(source, b, &err)) > 0) {
        for (size_t i = 0; i < b->n; i++) {
            size_t part = (f.n + i) / ((size_t)THREADS * EVENTS);
            REQUIRE(part < n_parts);
            int64_t since = b->events[i].ts_ns - parts[part].begin_ns;
            f.wrong += b->events[i].kind != SV_INSTANT || since < 0 || since >= EVENTS * 1000 ||
                       since % 1000 >= THREADS;
        }
        f.n += b->n;
        sv_batch_reset(b);
    }
    CHECK_INT_EQ(got, 0);
    f.damaged = sv_report_count(&report, SV_DAMAGE);
    source->close(source);
    sv_input_close(in);
    sv_batch_fini(b);
    free(b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return f;
}

TEST(all_parts_are_read_back)
{
    struct sv_buf file;
    struct part parts[100];
    for (uint32_t p = 0; p < 100; p++)
        parts[p] = (struct part){p, BEGIN_NS};
    write_parts(100, &file);
    struct found f = read_file(&file, parts, 100);
    CHECK_UINT_EQ(f.n, (size_t)100 * THREADS * EVENTS);
    CHECK_UINT_EQ(f.wrong, 0);
    CHECK_UINT_EQ(f.damaged, 0);
    sv_buf_fini(&file);
}

/* The segments of a ring: the second begins with what came late, and its sequences have the numbers
 * of the first one's. */
static struct found read_joined(uint32_t first, uint32_t second)
{
    const struct part parts[] = {{1, BEGIN_NS}, {1, BEGIN_NS - 5000000}};
    const uint32_t numbers[] = {first, second};
    struct sv_buf files[2];
    for (int i = 0; i < 2; i++)
        write_file(&parts[i], 1, &(struct sv_write_options){.joined = numbers[i]}, &files[i]);
    sv_buf_add(&files[0], files[1].data, files[1].len);
    struct found f = read_file(&files[0], parts, 2);
    CHECK_UINT_EQ(f.n, (size_t)2 * THREADS * EVENTS);
    sv_buf_fini(&files[0]);
    sv_buf_fini(&files[1]);
    return f;
}

TEST(a_file_that_is_joined_may_begin_before_the_end_of_the_one_before)
{
    CHECK_UINT_EQ(read_joined(3, 3).damaged, THREADS); /* that is what numbers are for */
    const uint32_t pairs[][2] = {{0, 1}, {3, 4}, {SV_JOINED_MAX - 1, 0}};
    for (int i = 0; i < 3; i++) {
        struct found f = read_joined(pairs[i][0], pairs[i][1]);
        CONTEXT("%u and %u", pairs[i][0], pairs[i][1]);
        CHECK_UINT_EQ(f.damaged, 0);
        CHECK_UINT_EQ(f.wrong, 0);
    }
}

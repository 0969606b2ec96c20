/* The Perfetto writer with one machine after the other, as merge writes them: times go back, again
 * and again, and what an event costs must stay. */
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "formats/formats.h"
#include "tests/harness/test.h"

#include <stdlib.h>

enum { THREADS = 8, EVENTS = 200 };

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

/* Bytes of a file of so many parts, with small windows. */
static size_t write_parts(uint32_t n, struct sv_buf *file)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    sv_report_init(&report);
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_buf_init(file, SIZE_MAX);
    REQUIRE(sv_output_open_buf(file, SV_PLAIN, &out, NULL) == 0);
    REQUIRE(sv_perfetto_writer.open(out, &(struct sv_write_options){.resync_bytes = 64 << 10}, dict,
                                    &report, &sink, NULL) == 0);
    for (uint32_t p = 0; p < n; p++)
        write_part(dict, sink, p, 1700000000000000000);
    CHECK_INT_EQ(sink->close(sink, false, NULL), 0);
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 0);
    sv_report_fini(&report);
    sv_dict_free(dict);
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

TEST(all_parts_are_read_back)
{
    struct sv_buf file;
    struct sv_input *in;
    struct sv_source *source;
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_err err = {0};
    size_t n = 0, wrong = 0;
    int got;
    sv_report_init(&report);
    write_parts(100, &file);
    REQUIRE(sv_input_open_memory(file.data, file.len, "parts", &in, &err) == 0);
    REQUIRE(sv_format_open(&sv_perfetto_format, in, &(struct sv_read_options){0}, dict, &report,
                           &source, &err) == 0);
    struct sv_batch *b = sv_alloc(sizeof *b);
    sv_batch_init(b);
    while ((got = source->next(source, b, &err)) > 0) {
        for (size_t i = 0; i < b->n; i++) {
            int64_t since = b->events[i].ts_ns - 1700000000000000000;
            wrong += b->events[i].kind != SV_INSTANT || since < 0 || since >= EVENTS * 1000 ||
                     since % 1000 >= THREADS;
        }
        n += b->n;
        sv_batch_reset(b);
    }
    CHECK_INT_EQ(got, 0);
    CHECK_UINT_EQ(n, (size_t)100 * THREADS * EVENTS);
    CHECK_UINT_EQ(wrong, 0);
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 0);
    source->close(source);
    sv_input_close(in);
    sv_batch_fini(b);
    free(b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    sv_buf_fini(&file);
}

/* The Perfetto writer's runs: events of one track that come together are made from templates, and nobody can tell. */
#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/pftext.h"

#include <stdio.h>
#include <string.h>

struct written {
    struct sv_buf file, text;
};

static void flush(struct sv_sink *sink, struct sv_batch *b)
{
    struct sv_err err = {0};
    CHECK_INT_EQ(sink->write(sink, b->events, b->n, &err), 0);
    sv_batch_reset(b);
}

static struct sv_event *add(struct sv_dict *dict, struct sv_batch *b, unsigned kind, int64_t ts_ns,
                            const char *name)
{
    struct sv_event *e = sv_batch_event(b);
    e->kind = (uint8_t)kind;
    e->ts_ns = ts_ns;
    e->track = sv_dict_thread(dict, 0, 7, 8);
    e->name = name ? sv_dict_cstr(dict, name) : 0;
    return e;
}

static void write_mixed_run(struct sv_dict *dict, struct sv_sink *sink, bool one_by_one)
{
    struct sv_batch b;
    sv_batch_init(&b);
    int64_t ts = 1000;
    for (int i = 0; i < 6000; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i * i % 211);
        ts += i % 7 ? i % 300 : -5;
        struct sv_event *e = add(dict, &b, i % 3 ? SV_BEGIN : SV_INSTANT, ts, name);
        e->cat = i % 2 ? sv_dict_cstr(dict, "c") : 0;
        if (i % 97 == 0) {
            struct sv_arg *a = sv_batch_arg(&b);
            *a = (struct sv_arg){.key = sv_dict_cstr(dict, "i"), .type = SV_ARG_INT, .i = i};
        }
        sv_batch_finish(&b, e);
        if (i % 3)
            sv_batch_finish(&b, add(dict, &b, SV_END, ts + 1, NULL));
        if (one_by_one || b.n > SV_BATCH - 2)
            flush(sink, &b);
    }
    flush(sink, &b);
    sv_batch_fini(&b);
}

static struct written write_all(bool one_by_one, int64_t resync_bytes)
{
    struct written w;
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_write_options options = {.resync_bytes = resync_bytes};
    struct sv_dict *dict = sv_dict_new();
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_report_init(&report);
    sv_buf_init(&w.file, (size_t)1 << 30);
    sv_buf_init(&w.text, (size_t)1 << 30);
    REQUIRE(sv_output_open_buf(&w.file, SV_PLAIN, &out, &err) == 0);
    REQUIRE(sv_perfetto_writer.open(out, &options, dict, &report, &sink, &err) == 0);
    write_mixed_run(dict, sink, one_by_one);
    CHECK_INT_EQ(sink->close(sink, false, &err), 0);
    CHECK(pftext(w.file.data, w.file.len, &w.text));
    sv_dict_free(dict);
    sv_report_fini(&report);
    return w;
}

/* Leaves the lines that begin with a time. */
static char *only_events(struct sv_buf *text)
{
    char *all = (char *)(uintptr_t)sv_buf_cstr(text), *to = all;
    for (char *line = all, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        if (*line >= '0' && *line <= '9') {
            memmove(to, line, (size_t)(next - line));
            to += next - line;
        }
    }
    *to = '\0';
    return all;
}

/* Batches of one track are made from templates, single events are not: the file is the same. There are more names than templates, and
 * arguments and steps back in between. With several windows, which begin between batches, what is read is the same. */
TEST(runs_and_single_events_agree)
{
    for (int64_t resync_bytes = 0; resync_bytes <= 20000; resync_bytes += 20000) {
        struct written runs = write_all(false, resync_bytes),
                       singles = write_all(true, resync_bytes);
        if (resync_bytes == 0)
            CHECK_MEM_EQ(runs.file.data, singles.file.data, singles.file.len);
        const char *text = only_events(&runs.text);
        CHECK(strstr(text, "BEGIN n:n1 "));
        CHECK_STR_EQ(text, only_events(&singles.text));
        sv_buf_fini(&runs.file);
        sv_buf_fini(&runs.text);
        sv_buf_fini(&singles.file);
        sv_buf_fini(&singles.text);
    }
}

/* The Perfetto writer and tracks that are forgotten: many short lives on few numbers, each
 * described with its last name, each with its own events. */
#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/pftext.h"

#include <stdio.h>
#include <string.h>

enum { LIVES = 200, EVENTS = 40 }; /* enough events that a track gets a sequence of its own */

struct life {
    sv_track process, thread;
};

static void live(struct sv_dict *dict, struct sv_sink *sink, struct sv_batch *b, int64_t number,
                 struct life *l)
{
    struct sv_err err = {0};
    l->process = sv_dict_process(dict, 0, 1000 + number);
    l->thread = sv_dict_thread(dict, 0, 1000 + number, 5000 + number);
    for (int i = 0; i < EVENTS; i++) {
        struct sv_event *e = sv_batch_event(b);
        *e = (struct sv_event){.kind = i % 2 ? SV_END : SV_BEGIN,
                               .ts_ns = number * 1000 + i,
                               .track = l->thread,
                               .name = i % 2 ? 0 : sv_dict_cstr(dict, "work")};
        sv_batch_finish(b, e);
    }
    CHECK_INT_EQ(sink->write(sink, b->events, b->n, &err), 0);
    sv_batch_reset(b);
}

static void die(struct sv_dict *dict, struct sv_sink *sink, const struct life *l, int64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "process %lld.", (long long)number);
    dict->tracks[l->process].name = sv_dict_cstr(dict, name); /* set after its last event */
    sv_dict_touch(dict, l->process);
    sink->forget(sink, l->thread);
    sink->forget(sink, l->process);
    sv_dict_forget(dict, l->thread);
    sv_dict_forget(dict, l->process);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

TEST(tracks_that_are_forgotten_are_in_the_file)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_write_options options = {.resync_bytes = 4096}; /* several windows */
    struct sv_buf file, text;
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_batch b;
    struct sv_err err = {0};
    struct life l[2];
    char what[80];
    sv_report_init(&report);
    sv_batch_init(&b);
    sv_buf_init(&file, (size_t)1 << 24);
    sv_buf_init(&text, (size_t)1 << 24);
    REQUIRE(sv_output_open_buf(&file, SV_PLAIN, &out, &err) == 0);
    REQUIRE(sv_perfetto_writer.open(out, &options, dict, &report, &sink, &err) == 0);
    for (int64_t i = 0; i <= LIVES; i++) { /* one is born before the last one is forgotten */
        if (i < LIVES)
            live(dict, sink, &b, i, &l[i % 2]);
        if (i > 0)
            die(dict, sink, &l[(i - 1) % 2], i - 1);
    }
    CHECK_UINT_EQ(dict->n_tracks, 5);
    CHECK_INT_EQ(sink->close(sink, false, &err), 0);
    CHECK(pftext(file.data, file.len, &text));
    for (int64_t i = 0; i < LIVES; i++) {
        snprintf(what, sizeof what, " 3={ 1=%d 6=\"process %d.\" }", 1000 + (int)i, (int)i);
        CHECK(strstr(sv_buf_cstr(&text), what));
        snprintf(what, sizeof what, " %llu BEGIN n:work\n",
                 (unsigned long long)sv_uuid_thread(0, 1000 + i, 5000 + i));
        CHECK_UINT_EQ(count(sv_buf_cstr(&text), what), EVENTS / 2);
    }
    CHECK_UINT_EQ(report.n, 0);
    sv_report_fini(&report);
    sv_batch_fini(&b);
    sv_buf_fini(&file);
    sv_buf_fini(&text);
    sv_dict_free(dict);
}

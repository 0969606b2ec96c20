/* The Perfetto writer's cursor and shapes write the same bytes as the long way. */
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

/* How the same events reach the writer. */
enum way {
    IN_BATCHES, /* the cursor stays on its track, events are made from shapes */
    SINGLY,     /* the cursor is opened for each event */
    LONG        /* the track changes before each event: nothing is made from a shape */
};

static void add_args(struct sv_dict *dict, struct sv_batch *b, int i)
{
    static const uint8_t types[] = {SV_ARG_INT,  SV_ARG_BOOL,    SV_ARG_UINT, SV_ARG_DOUBLE,
                                    SV_ARG_TEXT, SV_ARG_POINTER, SV_ARG_NULL};
    for (int k = 0; k < i / 72 % 8; k++) { /* more than a shape has */
        struct sv_arg *a = sv_batch_arg(b);
        a->key = sv_dict_cstr(dict, (k + i / 27) % 2 ? "odd" : "even"); /* not when types change */
        a->type = types[i / 36 % (k % 3 ? 6 : 7)];
        a->u = a->type == SV_ARG_BOOL ? (uint64_t)i % 2 : (uint64_t)i << i % 64;
        if (a->type == SV_ARG_DOUBLE)
            a->d = i * 0.25;
        if (a->type == SV_ARG_TEXT) {
            a->text = i % 2 ? "/data/train" : "/data/valid";
            a->size = 11;
        }
    }
}

static void add_counter(struct sv_dict *dict, struct sv_batch *b, int64_t ts_ns, int i)
{
    struct sv_event *e = add(dict, b, SV_COUNTER, ts_ns, NULL);
    e->track = sv_dict_track(dict, 77, NULL);
    dict->tracks[e->track].kind = SV_TRACK_COUNTER;
    struct sv_arg *a = sv_batch_arg(b);
    a->type = i % 4 == 0 ? SV_ARG_INT : i % 4 == 1 ? SV_ARG_UINT : SV_ARG_DOUBLE;
    a->u = (uint64_t)i * 1000;
    if (a->type == SV_ARG_DOUBLE)
        a->d = i * 0.5;
    sv_batch_finish(b, e);
}

static void hand_over(struct sv_dict *dict, struct sv_sink *sink, struct sv_batch *b, enum way way)
{
    if (way == LONG)
        for (sv_track t = 1; t < dict->n_tracks; t++)
            dict->tracks[t].revision++;
    if (way != IN_BATCHES || b->n > SV_BATCH - 3)
        flush(sink, b);
}

static void write_mixed(struct sv_dict *dict, struct sv_sink *sink, enum way way)
{
    struct sv_batch b;
    sv_batch_init(&b);
    int64_t ts = 1000;
    for (int i = 0; i < 6000; i++) {
        char name[20];
        if (i % 9) /* more than there are shapes */
            snprintf(name, sizeof name, "n%d", i * 7 % 211);
        else
            snprintf(name, sizeof name, "with arguments");
        ts += i % 7 ? i % 300 : -5;
        unsigned kind = i % 3 == 0 ? SV_INSTANT : i % 5 == 0 ? SV_SLICE : SV_BEGIN;
        struct sv_event *e = add(dict, &b, kind, ts, name);
        e->cat = i / (i % 9 ? 2 : 45) % 2 ? sv_dict_cstr(dict, "c") : 0;
        e->dur_ns = kind == SV_SLICE ? (i % 45 == 10 ? SV_UNFINISHED : i % 9) : 0;
        e->flags = i % 33 == 0 ? SV_SCOPE_GLOBAL : 0;
        if (i % 9 == 0)
            add_args(dict, &b, i);
        sv_batch_finish(&b, e);
        hand_over(dict, sink, &b, way);
        if (kind == SV_BEGIN)
            sv_batch_finish(&b, add(dict, &b, SV_END, ts + 1, NULL));
        hand_over(dict, sink, &b, way);
        if (i % 11 == 0)
            add_counter(dict, &b, ts, i);
        hand_over(dict, sink, &b, way);
    }
    flush(sink, &b);
    sv_batch_fini(&b);
}

static struct written write_all(enum way way, int64_t resync_bytes)
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
    write_mixed(dict, sink, way);
    CHECK_INT_EQ(sink->close(sink, false, &err), 0);
    CHECK(pftext(w.file.data, w.file.len, &w.text));
    sv_dict_free(dict);
    sv_report_fini(&report);
    return w;
}

/* Leaves the lines that begin with a time. */
static void only_events(struct sv_buf *text)
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
}

/* Removes the sign for a text that was written as a number: which text is the first of its window
 * depends on where windows begin. */
static void without_numbers(struct sv_buf *text)
{
    char *to = (char *)text->data;
    for (const char *p = to; *p; p++)
        if (*p != '#')
            *to++ = *p;
    *to = '\0';
}

/* There are more names than shapes; arguments, counters, whole slices and steps back in time are
 * between them. With several windows, which begin between batches, and with tracks that are
 * described again, the events are the same. */
TEST(all_ways_to_write_an_event_agree)
{
    for (int64_t resync_bytes = 0; resync_bytes <= 20000; resync_bytes += 20000) {
        struct written files[LONG + 1];
        for (unsigned way = IN_BATCHES; way <= LONG; way++) {
            files[way] = write_all(way, resync_bytes);
            only_events(&files[way].text);
            if (resync_bytes)
                without_numbers(&files[way].text);
        }
        if (resync_bytes == 0)
            CHECK_MEM_EQ(files[IN_BATCHES].file.data, files[SINGLY].file.data,
                         files[SINGLY].file.len);
        const char *text = (const char *)files[LONG].text.data;
        CHECK(strstr(text, "BEGIN n:n1 "));
        CHECK(strlen(text) > 300000);
        CHECK_STR_EQ((const char *)files[IN_BATCHES].text.data, text);
        CHECK_STR_EQ((const char *)files[SINGLY].text.data, text);
        for (unsigned way = IN_BATCHES; way <= LONG; way++) {
            sv_buf_fini(&files[way].file);
            sv_buf_fini(&files[way].text);
        }
    }
}

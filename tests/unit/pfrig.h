/* A trace under construction for the tests of the Perfetto writer: events by one-line calls, the
 * file as text. */
#ifndef TESTS_UNIT_PFRIG_H
#define TESTS_UNIT_PFRIG_H

#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/pftext.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_batch batch;
    struct sv_sink *sink;
    struct sv_write_options options;
    struct sv_buf file, text;
    struct sv_err err;
} g;

static inline void start(void)
{
    memset(&g, 0, sizeof g);
    g.dict = sv_dict_new();
    g.dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_report_init(&g.report);
    sv_batch_init(&g.batch);
    sv_buf_init(&g.file, (size_t)1 << 30);
    sv_buf_init(&g.text, (size_t)1 << 30);
}

static inline void flush(void)
{
    if (!g.sink) {
        struct sv_output *out;
        REQUIRE(sv_output_open_buf(&g.file, SV_PLAIN, &out, &g.err) == 0);
        REQUIRE(sv_perfetto_writer.open(out, &g.options, g.dict, &g.report, &g.sink, &g.err) == 0);
    }
    if (g.batch.n)
        CHECK_INT_EQ(g.sink->write(g.sink, g.batch.events, g.batch.n, &g.err), 0);
    sv_batch_reset(&g.batch);
}

/* Closes the file and leaves its text in g.text. */
static inline const char *finish(void)
{
    flush();
    CHECK_INT_EQ(g.sink->close(g.sink, false, &g.err), 0);
    CHECK(pftext(g.file.data, g.file.len, &g.text));
    return sv_buf_cstr(&g.text);
}

static inline void stop(void)
{
    sv_dict_free(g.dict);
    sv_report_fini(&g.report);
    sv_batch_fini(&g.batch);
    sv_buf_fini(&g.file);
    sv_buf_fini(&g.text);
}

static inline sv_str str(const char *s)
{
    return s ? sv_dict_cstr(g.dict, s) : 0;
}

static inline struct sv_event *event(unsigned kind, int64_t ts_ns, sv_track track, const char *name,
                                     const char *cat)
{
    if (g.batch.n == SV_BATCH)
        flush();
    struct sv_event *e = sv_batch_event(&g.batch);
    e->kind = (uint8_t)kind;
    e->ts_ns = ts_ns;
    e->track = track;
    e->name = str(name);
    e->cat = str(cat);
    return e;
}

static inline void done(struct sv_event *e)
{
    sv_batch_finish(&g.batch, e);
}

static inline void begin(int64_t ts_ns, sv_track track, const char *name, const char *cat)
{
    done(event(SV_BEGIN, ts_ns, track, name, cat));
}

static inline void end(int64_t ts_ns, sv_track track)
{
    done(event(SV_END, ts_ns, track, NULL, NULL));
}

static inline struct sv_arg *arg(const char *key, unsigned type)
{
    struct sv_arg *a = sv_batch_arg(&g.batch);
    a->key = str(key);
    a->type = type & 0xff;
    return a;
}

static inline void arg_i(const char *key, int64_t v)
{
    arg(key, SV_ARG_INT)->i = v;
}

static inline void arg_u(const char *key, unsigned type, uint64_t v)
{
    arg(key, type)->u = v;
}

static inline void arg_t(const char *key, const char *text, size_t len)
{
    struct sv_arg *a = arg(key, SV_ARG_TEXT);
    a->text = sv_batch_text(&g.batch, text, len);
    a->size = (uint32_t)len & 0xffffff;
}

static inline void arg_s(const char *key, const char *text)
{
    arg_t(key, text, strlen(text));
}

static inline struct sv_track_info *info(sv_track track)
{
    return &g.dict->tracks[track];
}

/* Small uuids make readable expectations. */
static inline sv_track track(uint64_t uuid, unsigned kind, sv_track parent, const char *name)
{
    sv_track t = sv_dict_track(g.dict, uuid, NULL);
    info(t)->kind = (uint8_t)kind;
    info(t)->parent = parent;
    info(t)->name = str(name);
    info(t)->is_described = name != NULL;
    return t;
}

static inline sv_track process(uint64_t uuid, int64_t pid, const char *name)
{
    sv_track t = track(uuid, SV_TRACK_PROCESS, 0, name);
    info(t)->pid = pid;
    return t;
}

static inline sv_track thread(uint64_t uuid, sv_track parent, int64_t tid, const char *name)
{
    sv_track t = track(uuid, SV_TRACK_THREAD, parent, name);
    info(t)->pid = info(parent)->pid;
    info(t)->tid = tid;
    return t;
}

static inline unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* The lines of `text` that do not begin with one of the words, for expectations that leave out
 * descriptors. */
static inline const char *events_only(const char *text)
{
    static struct sv_buf b;
    sv_buf_fini(&b);
    sv_buf_init(&b, (size_t)1 << 30);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (*line == '-' || (*line >= '0' && *line <= '9') || *line == '!' || *line == 'd')
            sv_buf_add(&b, line, (size_t)(strchr(line, '\n') + 1 - line));
    return sv_buf_cstr(&b);
}

#endif

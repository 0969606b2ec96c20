/* The Perfetto reader: packets built by hand, events compared as text. */
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include "base/wire.h"
#include "formats/formats.h"
#include "formats/perfetto_proto.h"
#include "formats/perfetto_proto_more.h"
#include "formats/perfetto_stave.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

/* ---- building ---- */

struct file {
    struct sv_buf b;
    size_t packet, payload; /* marks */
};

static void file_init(struct file *f)
{
    sv_buf_init(&f->b, (size_t)1 << 26);
}

static void packet(struct file *f, uint32_t seq)
{
    f->packet = sv_put_begin(&f->b, SV_PF_TRACE_PACKET);
    if (seq)
        sv_put_u64(&f->b, SV_PF_PACKET_SEQUENCE_ID, seq);
}

static void end(struct file *f)
{
    sv_put_end(&f->b, f->packet);
}

static void u64(struct file *f, uint32_t id, uint64_t v)
{
    sv_put_u64(&f->b, id, v);
}

static void text(struct file *f, uint32_t id, const char *s)
{
    sv_put_bytes(&f->b, id, s, strlen(s));
}

static size_t open_message(struct file *f, uint32_t id)
{
    return sv_put_begin(&f->b, id);
}

static void close_message(struct file *f, size_t mark)
{
    sv_put_end(&f->b, mark);
}

/* A track event of a type at a time, left open for more fields: ends with event_end(). */
static void event(struct file *f, uint32_t seq, uint64_t ts, unsigned type)
{
    packet(f, seq);
    u64(f, SV_PF_PACKET_TIMESTAMP, ts);
    f->payload = open_message(f, SV_PF_PACKET_TRACK_EVENT);
    if (type)
        u64(f, SV_PF_EVENT_TYPE, type);
}

static void event_end(struct file *f)
{
    close_message(f, f->payload);
    end(f);
}

static void named_event(struct file *f, uint32_t seq, uint64_t ts, unsigned type, uint64_t track,
                        const char *name)
{
    event(f, seq, ts, type);
    u64(f, SV_PF_EVENT_TRACK_UUID, track);
    if (name)
        text(f, SV_PF_EVENT_NAME, name);
    event_end(f);
}

static void interned(struct file *f, uint32_t list, uint64_t iid, const char *name)
{
    size_t data = open_message(f, SV_PF_PACKET_INTERNED_DATA);
    size_t entry = open_message(f, list);
    u64(f, SV_PF_INTERNED_IID, iid);
    text(f, SV_PF_INTERNED_TEXT, name);
    close_message(f, entry);
    close_message(f, data);
}

struct clock_row {
    uint32_t id;
    uint64_t ts, multiplier;
    bool is_incremental;
};

static void snapshot(struct file *f, uint32_t seq, uint32_t primary, const struct clock_row *rows,
                     size_t n)
{
    packet(f, seq);
    size_t s = open_message(f, SV_PF_PACKET_CLOCK_SNAPSHOT);
    for (size_t i = 0; i < n; i++) {
        size_t c = open_message(f, SV_PF_SNAPSHOT_CLOCKS);
        u64(f, SV_PF_CLOCK_ID, rows[i].id);
        u64(f, SV_PF_CLOCK_TIMESTAMP, rows[i].ts);
        if (rows[i].is_incremental)
            u64(f, SV_PF_CLOCK_IS_INCREMENTAL, 1);
        if (rows[i].multiplier)
            u64(f, SV_PF_CLOCK_MULTIPLIER_NS, rows[i].multiplier);
        close_message(f, c);
    }
    if (primary)
        u64(f, SV_PF_SNAPSHOT_PRIMARY, primary);
    close_message(f, s);
    end(f);
}

/* ---- reading ---- */

struct read {
    struct sv_dict *dict;
    struct sv_report report;
    struct collect got;
    struct sv_buf text;
    int rc;
};

static void read_bytes(struct read *r, const void *bytes, size_t len, uint32_t space)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_batch b;
    r->dict = sv_dict_new();
    sv_report_init(&r->report);
    sv_buf_init(&r->text, (size_t)1 << 26);
    r->got = (struct collect){0};
    struct sv_sink *sink = collect_sink(&r->got, ~0u);
    REQUIRE(sv_input_open_memory(bytes, len, "test", &in, &err) == 0);
    struct sv_read_options options = {.space = space};
    REQUIRE(sv_perfetto_source(in, &options, r->dict, &r->report, &source, &err) == 0);
    sv_batch_init(&b);
    while ((r->rc = source->next(source, &b, &err)) > 0) {
        CHECK_INT_EQ(r->rc, b.n);
        sink->write(sink, b.events, b.n, &err);
        sv_batch_reset(&b);
    }
    sink->close(sink, false, &err);
    source->close(source);
    sv_batch_fini(&b);
    sv_input_close(in);
}

static const char *events_of(struct read *r)
{
    return dump(&r->text, r->dict, r->got.events, r->got.n);
}

static void read_file(struct read *r, const struct file *f)
{
    REQUIRE(!f->b.failed);
    read_bytes(r, f->b.data, f->b.len, 0);
}

static void done(struct read *r, struct file *f)
{
    collect_fini(&r->got);
    sv_buf_fini(&r->text);
    sv_report_fini(&r->report);
    sv_dict_free(r->dict);
    if (f)
        sv_buf_fini(&f->b);
}

static const struct sv_finding *finding(const struct read *r, const char *what)
{
    for (size_t i = 0; i < r->report.n; i++)
        if (strcmp(r->report.rows[i].what, what) == 0)
            return &r->report.rows[i];
    return NULL;
}

static void check_finding(const struct read *r, enum sv_severity severity, const char *what,
                          uint64_t count, int64_t pos)
{
    const struct sv_finding *f = finding(r, what);
    CONTEXT("finding \"%s\"", what);
    if (!CHECK(f))
        return;
    CHECK_INT_EQ(f->severity, severity);
    CHECK_UINT_EQ(f->count, count);
    if (pos >= 0)
        CHECK_INT_EQ(f->first_pos, pos);
}

/* ---- tests ---- */

TEST(reads_begin_end_and_instant)
{
    struct file f;
    struct read r;
    file_init(&f);
    named_event(&f, 1, 100, SV_PF_TYPE_BEGIN, 7, "outer");
    named_event(&f, 1, 150, SV_PF_TYPE_INSTANT, 7, "mark");
    named_event(&f, 1, 200, SV_PF_TYPE_END, 7, NULL);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "100 0 begin #0000000000000007 outer \n"
                                "150 0 instant #0000000000000007 mark \n"
                                "200 0 end #0000000000000007  \n");
    CHECK_UINT_EQ(sv_report_count(&r.report, SV_DAMAGE), 0);
    done(&r, &f);
}

TEST(resolves_interned_names_and_incremental_clocks)
{
    struct file f;
    struct read r;
    file_init(&f);
    packet(&f, 1);
    u64(&f, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    size_t defaults = open_message(&f, SV_PF_PACKET_DEFAULTS);
    u64(&f, SV_PF_DEFAULTS_CLOCK_ID, 64);
    size_t event_defaults = open_message(&f, SV_PF_DEFAULTS_TRACK_EVENT);
    u64(&f, SV_PF_EVENT_TRACK_UUID, 7);
    close_message(&f, event_defaults);
    close_message(&f, defaults);
    interned(&f, SV_PF_INTERNED_NAMES, 1, "forward");
    interned(&f, SV_PF_INTERNED_CATEGORIES, 3, "nn");
    end(&f);
    snapshot(&f, 1, 0, (struct clock_row[]){{6, 5000, 0, false}, {64, 100, 0, true}}, 2);
    for (unsigned i = 0; i < 2; i++) {
        event(&f, 1, 10, i ? SV_PF_TYPE_END : SV_PF_TYPE_BEGIN);
        if (i == 0) {
            u64(&f, SV_PF_EVENT_NAME_IID, 1);
            u64(&f, SV_PF_EVENT_CATEGORY_IIDS, 3);
        }
        event_end(&f);
    }
    event(&f, 1, 5, SV_PF_TYPE_INSTANT);
    u64(&f, SV_PF_EVENT_NAME_IID, 9);
    event_end(&f);
    read_file(&r, &f);
    CHECK_STR_EQ(events_of(&r), "5010 0 begin #0000000000000007 forward nn\n"
                                "5020 0 end #0000000000000007  \n"
                                "5025 0 instant #0000000000000007  \n");
    CHECK_UINT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_BOOTTIME);
    check_finding(&r, SV_DAMAGE, "unknown interned number", 1, -1);
    done(&r, &f);
}

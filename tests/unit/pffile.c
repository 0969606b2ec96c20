/* Perfetto files built by hand and read back: see pffile.h. */
#include "tests/unit/pffile.h"

#include <string.h>

/* ---- building ---- */

void file_init(struct file *f)
{
    sv_buf_init(&f->b, (size_t)1 << 28);
}

void packet(struct file *f, uint32_t seq)
{
    f->packet = sv_put_begin(&f->b, SV_PF_TRACE_PACKET);
    if (seq)
        sv_put_u64(&f->b, SV_PF_PACKET_SEQUENCE_ID, seq);
}

void end(struct file *f)
{
    sv_put_end(&f->b, f->packet);
}

void u64(struct file *f, uint32_t id, uint64_t v)
{
    sv_put_u64(&f->b, id, v);
}

void text(struct file *f, uint32_t id, const char *s)
{
    sv_put_bytes(&f->b, id, s, strlen(s));
}

size_t open_message(struct file *f, uint32_t id)
{
    return sv_put_begin(&f->b, id);
}

void close_message(struct file *f, size_t mark)
{
    sv_put_end(&f->b, mark);
}

void event(struct file *f, uint32_t seq, uint64_t ts, unsigned type)
{
    packet(f, seq);
    u64(f, SV_PF_PACKET_TIMESTAMP, ts);
    f->payload = open_message(f, SV_PF_PACKET_TRACK_EVENT);
    if (type)
        u64(f, SV_PF_EVENT_TYPE, type);
}

void event_end(struct file *f)
{
    close_message(f, f->payload);
    end(f);
}

void named_event(struct file *f, uint32_t seq, uint64_t ts, unsigned type, uint64_t track,
                 const char *name)
{
    event(f, seq, ts, type);
    u64(f, SV_PF_EVENT_TRACK_UUID, track);
    if (name)
        text(f, SV_PF_EVENT_NAME, name);
    event_end(f);
}

void interned(struct file *f, uint32_t list, uint64_t iid, const char *name)
{
    size_t data = open_message(f, SV_PF_PACKET_INTERNED_DATA);
    size_t entry = open_message(f, list);
    u64(f, SV_PF_INTERNED_IID, iid);
    text(f, SV_PF_INTERNED_TEXT, name);
    close_message(f, entry);
    close_message(f, data);
}

void cleared(struct file *f, uint32_t seq, uint32_t clock, uint64_t track)
{
    packet(f, seq);
    u64(f, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    size_t defaults = open_message(f, SV_PF_PACKET_DEFAULTS);
    if (clock)
        u64(f, SV_PF_DEFAULTS_CLOCK_ID, clock);
    size_t event_defaults = open_message(f, SV_PF_DEFAULTS_TRACK_EVENT);
    if (track)
        u64(f, SV_PF_EVENT_TRACK_UUID, track);
    close_message(f, event_defaults);
    close_message(f, defaults);
    end(f);
}

void snapshot(struct file *f, uint32_t seq, uint32_t primary, const struct clock_row *rows,
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

void descriptor(struct file *f, uint64_t uuid, uint64_t parent, const char *name)
{
    packet(f, 1);
    f->payload = open_message(f, SV_PF_PACKET_TRACK_DESCRIPTOR);
    u64(f, SV_PF_TRACK_UUID, uuid);
    if (parent)
        u64(f, SV_PF_TRACK_PARENT_UUID, parent);
    if (name)
        text(f, SV_PF_TRACK_NAME, name);
}

void descriptor_end(struct file *f)
{
    close_message(f, f->payload);
    end(f);
}

/* ---- reading ---- */

void read_bytes(struct read *r, const void *bytes, size_t len, uint32_t space)
{
    struct sv_input *in;
    struct sv_source *source;
    struct sv_batch b;
    *r = (struct read){.dict = sv_dict_new()};
    sv_report_init(&r->report);
    sv_buf_init(&r->text, (size_t)1 << 28);
    struct sv_sink *sink = collect_sink(&r->got, SV_HAS_ANYTHING);
    REQUIRE(sv_input_open_memory(bytes, len, "test", &in, &r->err) == 0);
    struct sv_read_options options = {.space = space};
    REQUIRE(sv_format_open(&sv_perfetto_format, in, &options, r->dict, &r->report, &source,
                           &r->err) == 0);
    sv_batch_init(&b);
    while ((r->rc = source->next(source, &b, &r->err)) > 0) {
        CHECK_INT_EQ(r->rc, b.n);
        sink->write(sink, b.events, b.n, &r->err);
        sv_batch_reset(&b);
    }
    CHECK_INT_EQ(source->next(source, &b, &r->err), r->rc); /* the end stays the end */
    sink->close(sink, false, &r->err);
    source->close(source);
    sv_batch_fini(&b);
    sv_input_close(in);
}

const char *events_of(struct read *r)
{
    return dump(&r->text, r->dict, r->got.events, r->got.n);
}

static void put_text(struct sv_buf *b, const struct sv_dict *d, const char *label, sv_str s)
{
    if (s)
        sv_buf_printf(b, " %s=%s", label, sv_dict_text(d, s).bytes);
}

const char *tracks_of(struct read *r)
{
    struct sv_buf *b = &r->text;
    const struct sv_dict *d = r->dict;
    sv_buf_clear(b);
    for (sv_track t = 1; t < d->n_tracks; t++) {
        const struct sv_track_info *info = &d->tracks[t];
        sv_buf_printf(b, "%s %016llx", sv_track_kind_name(info->kind),
                      (unsigned long long)info->uuid);
        if (info->parent)
            sv_buf_printf(b, " in %016llx", (unsigned long long)d->tracks[info->parent].uuid);
        if (info->pid >= 0)
            sv_buf_printf(b, " pid=%lld", (long long)info->pid);
        if (info->tid >= 0)
            sv_buf_printf(b, " tid=%lld", (long long)info->tid);
        put_text(b, d, "name", info->name);
        put_text(b, d, "unit", info->unit);
        put_text(b, d, "cat", info->cat);
        put_text(b, d, "desc", info->desc);
        put_text(b, d, "key", info->merge_key);
        if (info->multiplier)
            sv_buf_printf(b, " x%lld", (long long)info->multiplier);
        if (info->has_order)
            sv_buf_printf(b, " order=%lld", (long long)info->order);
        if (info->child_order || info->sibling_merge)
            sv_buf_printf(b, " children=%u merge=%u", info->child_order, info->sibling_merge);
        if (info->start_ns)
            sv_buf_printf(b, " start=%lld", (long long)info->start_ns);
        if (info->is_incremental)
            sv_buf_str(b, " incremental");
        if (!info->is_described)
            sv_buf_str(b, " undescribed");
        sv_buf_byte(b, '\n');
    }
    return sv_buf_cstr(b);
}

void read_file(struct read *r, const struct file *f)
{
    REQUIRE(!f->b.failed);
    read_bytes(r, f->b.data, f->b.len, 0);
}

void done(struct read *r, struct file *f)
{
    collect_fini(&r->got);
    sv_buf_fini(&r->text);
    sv_report_fini(&r->report);
    sv_dict_free(r->dict);
    if (f)
        sv_buf_fini(&f->b);
}

void check_finding(const struct read *r, enum sv_severity severity, const char *what,
                   uint64_t count, int64_t pos)
{
    const struct sv_finding *f = NULL;
    for (size_t i = 0; i < r->report.n; i++)
        if (strcmp(r->report.rows[i].what, what) == 0)
            f = &r->report.rows[i];
    CONTEXT("finding \"%s\"", what);
    if (!CHECK(f != NULL) || !f)
        return;
    CHECK_INT_EQ(f->severity, severity);
    CHECK_UINT_EQ(f->count, count);
    if (pos >= 0)
        CHECK_INT_EQ(f->first_pos, pos);
}

void check_no_damage(const struct read *r)
{
    for (size_t i = 0; i < r->report.n; i++) {
        CONTEXT("%s: %s", r->report.rows[i].what,
                r->report.rows[i].first_detail ? r->report.rows[i].first_detail : "");
        CHECK(r->report.rows[i].severity != SV_DAMAGE);
    }
}

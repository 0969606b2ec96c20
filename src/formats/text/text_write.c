/* Canonical text, writing: one event a line, exactly re-readable, for people, diffs and tests.
 *
 *     # stave text 1
 *     clock boottime
 *     snapshot boottime=1000 realtime=1711964646000000000 uncertainty=25 wall_state=1
 *     wall_error=1500000
 *     meta "rank" "3"
 *     track #1 process uuid=0x… pid=10 name="python"
 *     track #2 thread uuid=0x… parent=#1 pid=10 tid=10 name="main"
 *     5.000123456 slice #2 "cudaLaunchKernel" cat="cuda_runtime" dur=0.000007250 {correlation=42
 *     grid=[8 1 1]}
 *     5.000123456 flow #2 "ac2g" {@flow_begin:0x2a}
 *
 * Times are seconds with nine decimals, printed from integers. A track is described before its
 * first event, and again when it has learnt something new; its number is its place in the file, so
 * equal traces give equal text. Opened through the table of formats; needs time order. */
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/stream/text_sink.h"
#include "formats/formats.h"
#include "formats/text/text_words.h"
#include "formats/writers.h"

#include <stdlib.h>
#include <string.h>

struct text_sink {
    struct sv_text_sink base;
    struct {
        uint32_t number; /* 0: not described yet */
        int32_t revision;
    } * tracks;
    size_t cap_tracks;
    uint32_t n_tracks;
    size_t n_snapshots;
    uint32_t n_meta;
    bool has_head;
};

static void put_quoted(struct sv_buf *b, const char *s, size_t len)
{
    sv_buf_byte(b, '"');
    while (len) {
        const char *quote = memchr(s, '"', len);
        size_t n = quote ? (size_t)(quote - s) : len;
        sv_buf_escaped(b, s, n);
        if (quote) {
            sv_buf_str(b, "\\\"");
            n++;
        }
        s += n;
        len -= n;
    }
    sv_buf_byte(b, '"');
}

static void put_str(struct sv_buf *b, const struct sv_dict *d, sv_str s)
{
    struct sv_text t = sv_dict_text(d, s);
    put_quoted(b, t.bytes, t.len);
}

static void put_time(struct sv_buf *b, int64_t ns)
{
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char rest[12];
    uint64_t fraction = u % 1000000000;
    for (size_t i = 9; i-- > 0; fraction /= 10)
        rest[i] = (char)('0' + fraction % 10);
    if (ns < 0)
        sv_buf_byte(b, '-');
    sv_buf_u64(b, u / 1000000000);
    sv_buf_byte(b, '.');
    sv_buf_add(b, rest, 9);
}

static void put_key(struct sv_buf *b, const struct sv_dict *d, sv_str key)
{
    struct sv_text t = sv_dict_text(d, key);
    if (sv_text_is_bare(t.bytes, t.len))
        sv_buf_add(b, t.bytes, t.len);
    else
        put_quoted(b, t.bytes, t.len);
    sv_buf_byte(b, '=');
}

static void put_hex(struct sv_buf *b, uint64_t v)
{
    sv_buf_printf(b, "0x%llx", (unsigned long long)v);
}

static void put_args(struct sv_buf *b, const struct sv_dict *d, const struct sv_arg *a,
                     const struct sv_arg *end, unsigned depth);

static void put_container(struct sv_buf *b, const struct sv_dict *d, const struct sv_arg *a,
                          unsigned depth)
{
    bool is_list = a->type == SV_ARG_ARRAY || a->type == SV_ARG_STACK;
    if (a->type == SV_ARG_SOURCE || a->type == SV_ARG_STACK)
        sv_buf_printf(b, "@%s", sv_arg_type_name(a->type));
    sv_buf_byte(b, is_list ? '[' : '{');
    if (depth < SV_TEXT_DEPTH_MAX)
        put_args(b, d, a + 1, a + 1 + a->size, depth + 1);
    sv_buf_byte(b, is_list ? ']' : '}');
}

static void put_value(struct sv_buf *b, const struct sv_dict *d, const struct sv_arg *a,
                      unsigned depth)
{
    switch (a->type) {
    case SV_ARG_NULL: sv_buf_str(b, "null"); break;
    case SV_ARG_BOOL: sv_buf_str(b, a->i ? "true" : "false"); break;
    case SV_ARG_INT: sv_buf_i64(b, a->i); break;
    case SV_ARG_UINT:
        sv_buf_u64(b, a->u);
        sv_buf_byte(b, 'u');
        break;
    case SV_ARG_DOUBLE: sv_buf_double(b, a->d); break;
    case SV_ARG_TEXT: put_quoted(b, a->text, a->size); break;
    case SV_ARG_POINTER: put_hex(b, a->u); break;
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: put_container(b, d, a, depth); break;
    default:
        sv_buf_printf(b, "@%s:", sv_arg_type_name(a->type));
        if (a->type == SV_ARG_THREAD_TIME || a->type == SV_ARG_THREAD_DUR)
            sv_buf_i64(b, a->i);
        else
            put_hex(b, a->u);
    }
}

static void put_args(struct sv_buf *b, const struct sv_dict *d, const struct sv_arg *a,
                     const struct sv_arg *end, unsigned depth)
{
    for (const struct sv_arg *first = a; a < end; a = sv_arg_next(a)) {
        if (a != first)
            sv_buf_byte(b, ' ');
        if (a->key)
            put_key(b, d, a->key);
        put_value(b, d, a, depth);
    }
}

static void put_named(struct sv_buf *b, const char *key, const struct sv_dict *d, sv_str value)
{
    if (!value)
        return;
    sv_buf_printf(b, " %s=", key);
    put_str(b, d, value);
}

static void put_number(struct sv_buf *b, const char *key, int64_t value, int64_t missing)
{
    if (value != missing)
        sv_buf_printf(b, " %s=%lld", key, (long long)value);
}

static uint32_t describe(struct text_sink *s, sv_track track, unsigned depth);

static void put_track(struct text_sink *s, sv_track track, uint32_t number, uint32_t parent)
{
    struct sv_buf *b = &s->base.buf;
    const struct sv_track_info *t = &s->base.dict->tracks[track];
    sv_buf_printf(b, "track #%u %s uuid=", number, sv_track_kind_name(t->kind));
    put_hex(b, t->uuid);
    if (parent)
        sv_buf_printf(b, " parent=#%u", parent);
    put_number(b, "pid", t->pid, -1);
    put_number(b, "tid", t->tid, -1);
    put_named(b, "name", s->base.dict, t->name);
    if (t->has_order)
        sv_buf_printf(b, " order=%lld", (long long)t->order);
    put_named(b, "unit", s->base.dict, t->unit);
    put_number(b, "multiplier", t->multiplier, 0);
    put_named(b, "cat", s->base.dict, t->cat);
    put_named(b, "desc", s->base.dict, t->desc);
    put_number(b, "start", t->start_ns, 0);
    put_number(b, "children", t->child_order, 0);
    put_number(b, "siblings", t->sibling_merge, 0);
    put_named(b, "merge", s->base.dict, t->merge_key);
    put_number(b, "incremental", t->is_incremental, 0);
    put_number(b, "space", t->space, 0);
    put_named(b, "origin", s->base.dict, t->origin);
    sv_buf_byte(b, '\n');
}

static bool is_current(const struct text_sink *s, sv_track track)
{
    return track < s->cap_tracks && s->tracks[track].number &&
           s->tracks[track].revision == s->base.dict->tracks[track].revision;
}

/* The number of a track, its line written if it is new or has changed; parents first. */
static uint32_t describe(struct text_sink *s, sv_track track, unsigned depth)
{
    if (track == 0 || depth > SV_TEXT_DEPTH_MAX)
        return 0;
    if (is_current(s, track))
        return s->tracks[track].number;
    if (track >= s->cap_tracks) {
        size_t old = s->cap_tracks;
        s->tracks = sv_grow(s->tracks, &s->cap_tracks, (size_t)track + 1, sizeof *s->tracks);
        memset(s->tracks + old, 0, (s->cap_tracks - old) * sizeof *s->tracks);
    }
    uint32_t parent = describe(s, s->base.dict->tracks[track].parent, depth + 1);
    if (!s->tracks[track].number)
        s->tracks[track].number = ++s->n_tracks;
    s->tracks[track].revision = s->base.dict->tracks[track].revision;
    put_track(s, track, s->tracks[track].number, parent);
    return s->tracks[track].number;
}

static void put_snapshot(struct sv_buf *b, const struct sv_snapshot *snapshot)
{
    sv_buf_str(b, "snapshot");
    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct sv_reading *r = &snapshot->readings[i];
        if (strcmp(sv_clock_name(r->clock), "other") == 0)
            sv_buf_printf(b, " %u=%lld", r->clock, (long long)r->ns);
        else
            sv_buf_printf(b, " %s=%lld", sv_clock_name(r->clock), (long long)r->ns);
    }
    put_number(b, "uncertainty", snapshot->uncertainty_ns, -1);
    if (snapshot->wall_state) {
        put_number(b, "wall_state", snapshot->wall_state, -1);
        put_number(b, "wall_error", snapshot->wall_error_ns, -1);
    }
    sv_buf_byte(b, '\n');
}

/* Clocks and metadata that came since the last call. */
static void put_news(struct text_sink *s)
{
    struct sv_buf *b = &s->base.buf;
    if (!s->has_head) {
        sv_buf_str(b, SV_TEXT_HEAD "\n");
        sv_buf_printf(b, "clock %s\n", sv_clock_name(s->base.dict->clocks.trace_clock));
        s->has_head = true;
    }
    for (; s->n_snapshots < s->base.dict->clocks.n; s->n_snapshots++)
        put_snapshot(b, &s->base.dict->clocks.snapshots[s->n_snapshots]);
    for (; s->n_meta < s->base.dict->n_meta; s->n_meta++) {
        const struct sv_meta *m = &s->base.dict->meta[s->n_meta];
        sv_buf_str(b, m->is_json ? "json " : "meta ");
        put_str(b, s->base.dict, m->key);
        sv_buf_byte(b, ' ');
        put_str(b, s->base.dict, m->value);
        sv_buf_byte(b, '\n');
    }
}

static void put_flags(struct sv_buf *b, unsigned flags)
{
    for (unsigned i = 0; i < SV_TEXT_FLAGS; i++)
        if (flags & 1u << i)
            sv_buf_printf(b, " %s", sv_text_flag_names[i]);
}

static void put_event(struct text_sink *s, const struct sv_event *e)
{
    struct sv_buf *b = &s->base.buf;
    uint32_t number = describe(s, e->track, 0);
    put_time(b, e->ts_ns);
    sv_buf_printf(b, " %s #%u", sv_kind_name(e->kind), number);
    if (e->name) {
        sv_buf_byte(b, ' ');
        put_str(b, s->base.dict, e->name);
    }
    put_named(b, "cat", s->base.dict, e->cat);
    if (e->kind == SV_SLICE || e->dur_ns) {
        sv_buf_str(b, " dur=");
        if (e->dur_ns == SV_UNFINISHED)
            sv_buf_str(b, "unfinished");
        else
            put_time(b, e->dur_ns);
    }
    put_flags(b, e->flags);
    if (e->n_args) {
        sv_buf_str(b, " {");
        put_args(b, s->base.dict, e->args, e->args + e->n_args, 0);
        sv_buf_byte(b, '}');
    }
    sv_buf_byte(b, '\n');
}

static void text_event(struct sv_text_sink *base, const struct sv_event *e)
{
    struct text_sink *s = (struct text_sink *)base;
    put_news(s);
    put_event(s, e);
}

/* Names that came after a track's last event are still written. */
static void text_end(struct sv_text_sink *base)
{
    struct text_sink *s = (struct text_sink *)base;
    put_news(s);
    for (sv_track t = 1; t < s->base.dict->n_tracks && t < s->cap_tracks; t++)
        if (s->tracks[t].number)
            describe(s, t, 0);
}

static void text_fini(struct sv_text_sink *base)
{
    free(((struct text_sink *)base)->tracks);
}

static const struct sv_text_kind kind = {
    .size = sizeof(struct text_sink),
    .limit = (size_t)1 << 30,
    .takes = SV_HAS_ANYTHING & ~SV_ORDER_BITS,
    .flushes = true,
    .too_much = "an event is too large for a line of text",
    .event = text_event,
    .end = text_end,
    .fini = text_fini,
};

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    (void)options;
    (void)err;
    sv_text_sink_open(&kind, out, dict, report, sink);
    return 0;
}

static const char *const suffixes[] = {".txt", ".stave", NULL};

const struct sv_writer sv_text_writer = {
    .name = "text",
    .suffixes = suffixes,
    .open = open_sink,
};

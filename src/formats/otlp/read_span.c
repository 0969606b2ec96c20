/* Spans of OTLP as slices and their events as instants: see reader.h.
 *
 * A span with thread.id is on that thread of its process. Others are on a track of their trace in
 * that process, so that a span lies in its parent and not in whatever ran at the same time; these
 * tracks have one name and are shown as one row with as many lanes as it takes. */
#include "formats/otlp/reader.h"

#include "core/serving/engine_words.h"
#include "core/stream/trace_context.h"

#include <stdio.h>

/* ---- reading ---- */

static const uint8_t *id_of(const struct sv_pb_field *f, size_t bytes)
{
    return f->u == bytes && sv_is_id(f->bytes, bytes) ? f->bytes : NULL;
}

static void read_attribute(struct otlp_span *s, struct sv_pb attribute)
{
    struct otlp_text key;
    struct sv_pb value;
    if (!otlp_key_value(attribute, &key, &value))
        return;
    if (otlp_llm_marks(key))
        s->is_llm = true;
    else if (otlp_is(key, OTLP_STAVE_BATCH))
        s->is_batch = otlp_value_int(value, &s->batch);
    else if (otlp_is(key, OTLP_STAVE_WARMUP))
        s->is_warmup = true;
    else if (otlp_is(key, "thread.id") && (!otlp_value_int(value, &s->tid) || s->tid < 0))
        s->tid = -1;
    else if (otlp_is(key, "thread.name"))
        otlp_value_text(value, &s->thread_name);
}

static bool read_status(struct otlp_span *s, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == OTLP_STATUS_CODE && f.type == SV_PB_VARINT)
            s->status = (uint32_t)f.u;
        else if (f.id == OTLP_STATUS_MESSAGE && f.type == SV_PB_BYTES)
            s->message = (struct otlp_text){f.bytes, (size_t)f.u};
    }
    return !w.bad;
}

static bool read_bytes(struct otlp_span *s, const struct sv_pb_field *f)
{
    struct otlp_text t = {f->bytes, (size_t)f->u};
    switch (f->id) {
    case OTLP_SPAN_TRACE_ID: s->trace_id = id_of(f, OTLP_TRACE_ID_BYTES); break;
    case OTLP_SPAN_ID: s->id = id_of(f, OTLP_SPAN_ID_BYTES); break;
    case OTLP_SPAN_PARENT_ID: s->parent_id = id_of(f, OTLP_SPAN_ID_BYTES); break;
    case OTLP_SPAN_TRACE_STATE: s->state = t; break;
    case OTLP_SPAN_NAME: s->name = t; break;
    case OTLP_SPAN_ATTRIBUTES: read_attribute(s, sv_pb_sub(f)); break;
    case OTLP_SPAN_EVENTS: s->has_events = true; break;
    case OTLP_SPAN_LINKS: s->has_links = true; break;
    case OTLP_SPAN_STATUS: return read_status(s, sv_pb_sub(f));
    default: break;
    }
    return true;
}

static void read_number(struct otlp_span *s, const struct sv_pb_field *f)
{
    switch (f->id) {
    case OTLP_SPAN_KIND: s->kind = (uint32_t)f->u; break;
    case OTLP_SPAN_START: s->start = f->u; break;
    case OTLP_SPAN_END: s->end = f->u; break;
    case OTLP_SPAN_DROPPED_ATTRIBUTES: s->dropped_attributes = (uint32_t)f->u; break;
    case OTLP_SPAN_DROPPED_EVENTS: s->dropped_events = (uint32_t)f->u; break;
    case OTLP_SPAN_DROPPED_LINKS: s->dropped_links = (uint32_t)f->u; break;
    case OTLP_SPAN_FLAGS: s->flags = (uint32_t)f->u; break;
    default: break;
    }
}

static const char *judge(const struct otlp_span *s)
{
    if (!s->trace_id || !s->id)
        return "trace_id or span_id is not valid";
    if (s->start == 0)
        return "it has no start time";
    if (s->end != 0 && s->end < s->start)
        return "it ends before it starts";
    return NULL;
}

bool otlp_span_read(struct sv_pb w, struct otlp_span *s)
{
    *s = (struct otlp_span){.tid = -1};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.type != SV_PB_BYTES)
            read_number(s, &f);
        else if (!read_bytes(s, &f))
            return false;
    }
    s->wrong = judge(s);
    return !w.bad;
}

void otlp_span_outline(struct sv_pb w, struct otlp_span *s)
{
    *s = (struct otlp_span){.tid = -1};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.type != SV_PB_BYTES)
            read_number(s, &f);
        else if (f.id != OTLP_SPAN_ATTRIBUTES && f.id != OTLP_SPAN_STATUS)
            read_bytes(s, &f);
    }
    s->wrong = judge(s);
}

/* ---- where it is ---- */

static sv_track thread_of(struct otlp_reader *r, const struct otlp_span *s)
{
    struct sv_dict *d = r->source.dict;
    sv_str name = s->thread_name.len ? otlp_word(r, s->thread_name) : 0;
    if (r->pid < 0) {
        char text[40];
        snprintf(text, sizeof text, "thread %lld", (long long)s->tid);
        return sv_dict_child(d, r->process, SV_TRACK_CUSTOM, name ? name : sv_dict_cstr(d, text));
    }
    sv_track t = sv_dict_thread(d, r->resource_space, r->pid, s->tid);
    if (name && d->tracks[t].name != name) {
        d->tracks[t].name = name;
        d->tracks[t].is_described = true;
        sv_dict_touch(d, t);
    }
    return t;
}

static sv_track trace_track(struct otlp_reader *r, const struct otlp_span *s)
{
    struct sv_dict *d = r->source.dict;
    bool is_new;
    uint64_t uuid =
        sv_mix64(sv_hash_bytes(s->trace_id, OTLP_TRACE_ID_BYTES, d->tracks[r->process].uuid));
    sv_track t = sv_dict_track(d, uuid, &is_new);
    if (is_new) {
        struct sv_track_info *info = &d->tracks[t];
        info->kind = SV_TRACK_ASYNC;
        info->parent = r->process;
        info->name = r->spans;
        info->is_described = true;
        info->space = r->resource_space;
    }
    return t;
}

static sv_track track_of(struct otlp_reader *r, const struct otlp_span *s)
{
    if (s->tid >= 0)
        return thread_of(r, s);
    if (s->trace_id)
        return trace_track(r, s);
    return sv_dict_child(r->source.dict, r->process, SV_TRACK_CUSTOM, r->spans);
}

/* ---- arguments ---- */

static void put_word(struct sv_batch *b, sv_str key, const char *word)
{
    sv_batch_str(b, key, word, strlen(word));
}

static void put_count(struct sv_batch *b, sv_str key, uint32_t n)
{
    if (n)
        sv_batch_int(b, key, n);
}

static void put_some(struct sv_batch *b, sv_str key, struct otlp_text t)
{
    if (t.len)
        otlp_put_text(b, key, t);
}

static void put_identity(struct otlp_reader *r, struct sv_batch *b, const struct otlp_span *s)
{
    static const char *const kinds[] = {NULL,     "internal", "server",
                                        "client", "producer", "consumer"};
    if (s->trace_id)
        otlp_put_hex(b, r->key.trace_id, s->trace_id, OTLP_TRACE_ID_BYTES);
    if (s->id)
        otlp_put_hex(b, r->key.span_id, s->id, OTLP_SPAN_ID_BYTES);
    if (s->parent_id)
        otlp_put_hex(b, r->key.parent_id, s->parent_id, OTLP_SPAN_ID_BYTES);
    if (s->kind < sizeof kinds / sizeof *kinds && kinds[s->kind])
        put_word(b, r->key.kind, kinds[s->kind]);
    if (s->status == OTLP_STATUS_OK || s->status == OTLP_STATUS_ERROR)
        put_word(b, r->key.status, s->status == OTLP_STATUS_OK ? "ok" : "error");
    put_some(b, r->key.status_message, s->message);
    put_some(b, r->key.trace_state, s->state);
    put_some(b, r->key.scope, r->scope);
    put_some(b, r->key.scope_version, r->scope_version);
    put_count(b, r->key.dropped_attributes, s->dropped_attributes);
    put_count(b, r->key.dropped_events, s->dropped_events);
    put_count(b, r->key.dropped_links, s->dropped_links);
    put_count(b, r->key.flags, s->flags);
}

static void put_attributes(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w, uint32_t id)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == id && f.type == SV_PB_BYTES)
            otlp_put_attribute(r, b, sv_pb_sub(&f));
}

static void put_link(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w)
{
    struct sv_pb all = w;
    size_t open = sv_batch_open(b, 0, SV_ARG_DICT), attributes = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct otlp_text text = {f.bytes, f.type == SV_PB_BYTES ? (size_t)f.u : 0};
        if (f.id == OTLP_LINK_TRACE_ID && text.len == OTLP_TRACE_ID_BYTES)
            otlp_put_hex(b, r->key.trace_id, text.bytes, text.len);
        else if (f.id == OTLP_LINK_SPAN_ID && text.len == OTLP_SPAN_ID_BYTES)
            otlp_put_hex(b, r->key.span_id, text.bytes, text.len);
        else if (f.id == OTLP_LINK_TRACE_STATE)
            put_some(b, r->key.trace_state, text);
        else if (f.id == OTLP_LINK_FLAGS && f.type == SV_PB_FIXED32)
            put_count(b, r->key.flags, (uint32_t)f.u);
        else if (f.id == OTLP_LINK_DROPPED && f.type == SV_PB_VARINT)
            put_count(b, r->key.dropped_attributes, (uint32_t)f.u);
        attributes += f.id == OTLP_LINK_ATTRIBUTES;
    }
    if (attributes) {
        size_t inner = sv_batch_open(b, r->key.attributes, SV_ARG_DICT);
        put_attributes(r, b, all, OTLP_LINK_ATTRIBUTES);
        sv_batch_close(b, inner);
    }
    sv_batch_close(b, open);
}

/* All that a link has: the flow of it is only an arrow. */
static void put_links(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w)
{
    size_t open = sv_batch_open(b, r->key.links, SV_ARG_ARRAY);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == OTLP_SPAN_LINKS && f.type == SV_PB_BYTES)
            put_link(r, b, sv_pb_sub(&f));
    sv_batch_close(b, open);
}

static void finish(struct otlp_reader *r, struct sv_batch *b, struct sv_event *e)
{
    if (!sv_batch_finish(b, e))
        sv_report_add(r->source.report, SV_SKIPPED, "arguments past the limit of an event", 1,
                      r->unit_pos, NULL);
}

/* ---- spans ---- */

void otlp_span_put(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                   const struct otlp_span *s)
{
    struct sv_dict *d = r->source.dict;
    if (s->start > INT64_MAX || s->end > INT64_MAX) {
        sv_source_refuse(&r->source, otlp_pos(r, w.p));
        r->in_events = false;
        return;
    }
    int64_t ts_ns = (int64_t)s->start;
    int64_t end_ns = s->end > s->start ? (int64_t)s->end : ts_ns;
    sv_track track = track_of(r, s);
    otlp_flow_args(r, b, w, s, track, s->end ? end_ns : INT64_MAX);
    put_identity(r, b, s);
    if (s->has_links)
        put_links(r, b, w);
    if (s->is_llm) {
        put_some(b, r->key.name, s->name);
        otlp_llm_args(r, b, w, s);
    }
    bool is_batch = s->is_batch && !s->is_warmup; /* warm-up is in no table */
    if (is_batch)
        sv_batch_int(b, sv_dict_cstr(d, SV_LLM_BATCH), s->batch);
    put_attributes(r, b, w, OTLP_SPAN_ATTRIBUTES);
    sv_str name = s->is_llm ? sv_dict_cstr(d, SV_LLM_REQUEST) : otlp_word(r, s->name);
    sv_str cat = s->is_llm  ? sv_dict_cstr(d, SV_LLM_CATEGORY)
                 : is_batch ? sv_dict_cstr(d, SV_BATCH_CATEGORY)
                            : r->cat;
    struct sv_event *e = sv_batch_put(b, SV_SLICE, ts_ns, track, name, cat);
    e->dur_ns = s->end ? end_ns - ts_ns : SV_UNFINISHED;
    finish(r, b, e);
    r->track = track;
    r->span_ns = ts_ns;
    r->span_id = s->id;
    r->in_events = s->has_events;
    r->span_events = w;
}

void otlp_event_put(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w)
{
    struct sv_pb all = w;
    struct otlp_text name = {0};
    uint64_t time = 0;
    uint32_t dropped = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == OTLP_EVENT_DROPPED && f.type == SV_PB_VARINT)
            dropped = (uint32_t)f.u;
        else if (f.id == OTLP_EVENT_TIME && f.type == SV_PB_FIXED64)
            time = f.u;
        else if (f.id == OTLP_EVENT_NAME && f.type == SV_PB_BYTES)
            name = (struct otlp_text){f.bytes, (size_t)f.u};
    }
    if (w.bad)
        otlp_damage(r, w.p, "event that cannot be read", NULL);
    if (time > INT64_MAX) {
        sv_source_refuse(&r->source, otlp_pos(r, all.p));
        return;
    }
    if (r->span_id)
        otlp_put_hex(b, r->key.span_id, r->span_id, OTLP_SPAN_ID_BYTES);
    put_count(b, r->key.dropped_attributes, dropped);
    put_attributes(r, b, all, OTLP_EVENT_ATTRIBUTES);
    int64_t ts_ns = time ? (int64_t)time : r->span_ns;
    finish(r, b, sv_batch_put(b, SV_INSTANT, ts_ns, r->track, otlp_word(r, name), r->cat));
}

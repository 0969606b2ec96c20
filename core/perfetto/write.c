/* The Perfetto writer: a sink for edges, instants, counters, flow points and loss, in time order. It also takes whole slices from who knows
 * that nothing of their track lies between their ends (the recorder's calls), and does not say so: others need the stages between.
 *
 * Opened by the table of formats, pushed by the pump. Memory is bounded by the dictionary, one window's numbers and the largest event.
 * Most events are begin and end with few plain arguments on a track that was used before: those take the short way here, straight
 * into the block, with every number looked up by index; runs without arguments on one track are made from templates. All others take
 * the long way (pf_event_write). All write the same bytes for the same event; what the short way needs and does not find (a new name, a
 * changed track, a new window) it leaves to the long one.
 *
 * Fields stand in an order that compresses well: the event, then its time, then its sequence, so that the bytes that
 * repeat together stand together (a tenth less after deflate than in the order of their numbers). */
#include "core/perfetto/write.h"

#include <stdlib.h>

/* ---- the short way ---- */

/* An event of the short way, with room for vectors of eight bytes. Its lengths fit one byte each: numbers have at most three bytes
 * (PF_NUMBERS_MAX), so an argument has 17, an event with all of them 95, its packet 111; the end of a slice has 20. */
enum { SHORT_ARGS_MAX = PF_SHAPE_ARGS, SHORT_ROOM = 192 };

static inline uint8_t *put_number(uint8_t *p, uint32_t number)
{
    if (__builtin_expect(number < 0x80, 1)) {
        *p++ = (uint8_t)number;
        return p;
    }
    return p + sv_put_varint_at(p, number);
}

static inline uint8_t *put_u64(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* The number of a string that the sequence has heard, else 0. */
static inline uint32_t known(const struct pf *w, const struct pf_sequence *s, enum pf_number kind,
                             sv_str str)
{
    uint32_t number = str < w->cap_number_of[kind] ? w->number_of[kind][str] : 0;
    return pf_bits_has(&s->told[kind], number) ? number : 0;
}

#define TAG(field, type) ((uint8_t)((field) << 3 | (type)))

static inline uint8_t *put_fixed64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static const uint8_t type_of[] = {[SV_BEGIN] = SV_PF_TYPE_BEGIN,
                                  [SV_END] = SV_PF_TYPE_END,
                                  [SV_SLICE] = SV_PF_TYPE_BEGIN, /* its end follows */
                                  [SV_INSTANT] = SV_PF_TYPE_INSTANT};

static inline uint8_t *put_short_counter(const struct sv_event *e, uint8_t *p)
{
    *p++ = TAG(SV_PF_EVENT_TYPE, SV_WIRE_VARINT);
    *p++ = SV_PF_TYPE_COUNTER;
    if (e->args[0].type == SV_ARG_INT) {
        p = put_number(p, SV_PF_EVENT_COUNTER_VALUE << 3 | SV_WIRE_VARINT);
        return put_u64(p, e->args[0].u);
    }
    p = put_number(p, SV_PF_EVENT_DOUBLE_COUNTER_VALUE << 3 | SV_WIRE_FIXED64);
    return put_fixed64(p, e->args[0].u);
}

/* Type and names; NULL: not for the short way. Inlined where most events pass, although templates are made with it, too. */
__attribute__((always_inline)) static inline uint8_t *put_short_event(const struct pf *w,
                                                                      const struct pf_sequence *s,
                                                                      const struct sv_event *e,
                                                                      uint8_t *p)
{
    *p++ = TAG(SV_PF_EVENT_TYPE, SV_WIRE_VARINT);
    *p++ = type_of[e->kind];
    if (e->kind != SV_END) {
        uint32_t name = known(w, s, PF_NAME, e->name), cat = known(w, s, PF_CATEGORY, e->cat);
        if ((e->cat && !cat) || (e->name && !name))
            return NULL;
        if (name) {
            *p++ = TAG(SV_PF_EVENT_NAME_IID, SV_WIRE_VARINT);
            p = put_number(p, name);
        }
        if (cat) {
            *p++ = TAG(SV_PF_EVENT_CATEGORY_IIDS, SV_WIRE_VARINT);
            p = put_number(p, cat);
        }
    }
    return p;
}

static inline uint64_t rest_of(const struct sv_event *e)
{
    uint64_t rest;
    _Static_assert(offsetof(struct sv_event, args) - offsetof(struct sv_event, cat) == sizeof rest,
                   "category, kind, flags, n_args");
    memcpy(&rest, &e->cat, sizeof rest);
    return rest;
}

/* ---- events with arguments, from shapes ---- */

/* Key and type, without the size: read at once where they stand side by side. */
#define WHAT_MASK                                                       \
    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? UINT64_C(0xffffffffff) \
                                               : UINT64_C(0xffffffffff000000))

static inline uint64_t what_of(const struct sv_arg *a)
{
    uint64_t what;
    memcpy(&what, a, sizeof what);
    return what & WHAT_MASK;
}

/* The annotation from its tag to the one of its value; returns its length, 0: not for the short way. */
static uint8_t annotation_start(const struct pf *w, const struct pf_sequence *s,
                                const struct sv_arg *a, uint8_t bytes[8])
{
    uint8_t *p = bytes;
    uint32_t key = known(w, s, PF_KEY, a->key);
    if (!key)
        return 0;
    *p++ = TAG(SV_PF_EVENT_DEBUG_ANNOTATIONS, SV_WIRE_BYTES);
    *p++ = 0; /* its length */
    *p++ = TAG(SV_PF_ANN_NAME_IID, SV_WIRE_VARINT);
    p = put_number(p, key);
    switch (a->type) {
    case SV_ARG_INT: *p++ = TAG(SV_PF_ANN_INT, SV_WIRE_VARINT); break;
    case SV_ARG_BOOL: *p++ = TAG(SV_PF_ANN_BOOL, SV_WIRE_VARINT); break;
    case SV_ARG_POINTER: *p++ = TAG(SV_PF_ANN_POINTER, SV_WIRE_VARINT); break;
    case SV_ARG_DOUBLE: *p++ = TAG(SV_PF_ANN_DOUBLE, SV_WIRE_FIXED64); break;
    case SV_ARG_TEXT: p = put_number(p, SV_PF_ANN_STRING_IID << 3 | SV_WIRE_VARINT); break;
    default: return 0;
    }
    return (uint8_t)(p - bytes);
}

static bool make_shape(const struct pf *w, const struct pf_sequence *s, const struct sv_event *e,
                       struct pf_shape *m)
{
    uint8_t room[32], *p = put_short_event(w, s, e, room + 2);
    *m = (struct pf_shape){0};
    if (!p || p - room > PF_TEMPLATE_BYTES)
        return false;
    room[0] = TAG(SV_PF_PACKET_TRACK_EVENT, SV_WIRE_BYTES);
    m->len = (uint8_t)(p - room);
    memcpy(m->bytes, room, m->len);
    for (unsigned i = 0; i < e->n_args; i++) {
        m->args[i].what = what_of(&e->args[i]);
        m->arg_len[i] = annotation_start(w, s, &e->args[i], m->args[i].bytes);
        if (m->arg_len[i] == 0)
            return false;
    }
    m->name = e->name;
    m->rest = rest_of(e);
    return true;
}

static inline bool fits(const struct pf_shape *m, const struct sv_event *e)
{
    if (m->rest != rest_of(e) || m->name != e->name)
        return false;
    for (unsigned i = 0; i < e->n_args; i++)
        if (m->args[i].what != what_of(&e->args[i]))
            return false;
    return true;
}

/* Behind the bytes of its shape. NULL: a text that the sequence has not heard. */
static inline uint8_t *put_value(const struct pf *w, const struct pf_sequence *s,
                                 const struct sv_arg *a, uint8_t *p)
{
    if (a->type == SV_ARG_TEXT) {
        uint32_t text = pf_number_recent(w, a->text, a->size);
        return pf_bits_has(&s->told[PF_TEXT], text) ? put_number(p, text) : NULL;
    }
    if (a->type == SV_ARG_DOUBLE)
        return put_fixed64(p, a->u);
    return put_u64(p, a->type == SV_ARG_BOOL ? a->u != 0 : a->u);
}

/* From the tag of the event to the last argument; NULL: not for the short way. */
static uint8_t *put_shaped(const struct pf *w, struct pf_sequence *s, const struct sv_event *e,
                           uint8_t *start)
{
    if (!s->shapes)
        s->shapes = sv_alloc(PF_SHAPES * sizeof *s->shapes);
    struct pf_shape *m = &s->shapes[(e->name + e->n_args * 13u + e->kind * 29u) % PF_SHAPES];
    if (!fits(m, e) && !make_shape(w, s, e, m))
        return NULL;
    memcpy(start, m->bytes, sizeof m->bytes);
    uint8_t *p = start + m->len;
    for (unsigned i = 0; i < e->n_args; i++) {
        memcpy(p, m->args[i].bytes, sizeof m->args[i].bytes);
        uint8_t *value = p + m->arg_len[i], *end = put_value(w, s, &e->args[i], value);
        if (!end)
            return NULL;
        p[1] = (uint8_t)(end - p - 2);
        p = end;
    }
    start[1] = (uint8_t)(p - start - 2);
    return p;
}

/* From the tag of the event to its end; NULL: not for the short way. */
static inline uint8_t *put_plain(const struct pf *w, const struct pf_sequence *s,
                                 const struct sv_event *e, uint8_t *start)
{
    uint8_t *p = e->kind == SV_COUNTER ? put_short_counter(e, start + 2)
                                       : put_short_event(w, s, e, start + 2);
    if (!p)
        return NULL;
    start[0] = TAG(SV_PF_PACKET_TRACK_EVENT, SV_WIRE_BYTES);
    start[1] = (uint8_t)(p - start - 2);
    return p;
}

/* Kinds and shapes of events that the short way knows. */
static inline bool is_short(const struct sv_event *e)
{
    switch (e->kind) {
    case SV_BEGIN:
    case SV_END: return e->n_args <= SHORT_ARGS_MAX;
    case SV_SLICE: return e->n_args <= SHORT_ARGS_MAX && e->dur_ns >= 0 && sv_event_ends(e);
    case SV_INSTANT: return e->n_args <= SHORT_ARGS_MAX && e->flags == 0;
    case SV_COUNTER:
        return e->n_args == 1 &&
               (e->args[0].type == SV_ARG_INT || e->args[0].type == SV_ARG_DOUBLE);
    default: return false;
    }
}

/* The track on which the short way may write, until an event takes the long one. */
struct ready {
    sv_track track;
    bool is_counter;
    struct pf_track *state;
    struct pf_sequence *sequence; /* NULL: none */
};

static inline bool is_ready(struct pf *w, sv_track track, struct ready *r)
{
    if (r->sequence && r->track == track)
        return true;
    if (track >= w->n_tracks)
        return false;
    struct pf_track *t = &w->tracks[track];
    const struct sv_track_info *info = &w->dict->tracks[track];
    struct pf_sequence *s = t->own;
    if (!s || s->window != w->window || t->window != w->window || t->revision != info->revision ||
        t->n_ends != 0)
        return false;
    *r = (struct ready){track, info->kind == SV_TRACK_COUNTER, t, s};
    return true;
}

/* What follows the event in its packet, and the packet's own start. */
static inline uint8_t *put_tail(struct pf_sequence *s, uint8_t *start, uint8_t *p, int64_t ts_ns)
{
    *p++ = TAG(SV_PF_PACKET_TIMESTAMP, SV_WIRE_VARINT);
    p = put_u64(p, (uint64_t)ts_ns - (uint64_t)s->last_ns);
    memcpy(p, s->head, sizeof s->head);
    p += s->head_len;
    start[0] = TAG(SV_PF_TRACE_PACKET, SV_WIRE_BYTES);
    start[1] = (uint8_t)(p - start - 2);
    s->last_ns = ts_ns;
    s->n_events++;
    return p;
}

static inline bool write_short(struct pf *w, const struct sv_event *e, struct ready *r)
{
    if (!is_short(e) || !is_ready(w, e->track, r))
        return false;
    struct pf_sequence *s = r->sequence;
    if (e->ts_ns < s->last_ns || r->is_counter != (e->kind == SV_COUNTER))
        return false;
    if (w->block.len + SHORT_ROOM > w->block_bytes)
        pf_block_flush(w);
    if (!sv_buf_reserve(&w->block, SHORT_ROOM))
        return false;
    uint8_t *start = w->block.data + w->block.len;
    bool has_shape = e->n_args > 0 && e->kind != SV_COUNTER;
    uint8_t *p = has_shape ? put_shaped(w, s, e, start + 2) : put_plain(w, s, e, start + 2);
    if (!p)
        return false;
    p = put_tail(s, start, p, e->ts_ns);
    if (e->kind == SV_SLICE) {
        int64_t end_ns = (int64_t)((uint64_t)e->ts_ns + (uint64_t)e->dur_ns); /* is_short() */
        static const uint8_t end[] = {TAG(SV_PF_PACKET_TRACK_EVENT, SV_WIRE_BYTES), 2,
                                      TAG(SV_PF_EVENT_TYPE, SV_WIRE_VARINT), SV_PF_TYPE_END};
        memcpy(p + 2, end, sizeof end);
        p = put_tail(s, p, p + 2 + sizeof end, end_ns);
    }
    w->block.len = (size_t)(p - w->block.data);
    if (e->kind == SV_BEGIN)
        r->state->depth++;
    else if (e->kind == SV_END && r->state->depth)
        r->state->depth--;
    return true;
}

/* ---- runs: neighbours of one track without arguments, from templates ---- */

/* Length, the template, a time of ten bytes, the sequence; copied in pieces of fixed size. */
enum { RUN_ROOM = 48 };

static bool make_template(const struct pf *w, const struct pf_sequence *s, const struct sv_event *e,
                          struct pf_template *t)
{
    uint8_t room[32], *p = NULL;
    bool is_plain = e->kind == SV_BEGIN || e->kind == SV_END ||
                    (e->kind == SV_INSTANT && e->flags == 0);
    if (is_plain && e->n_args == 0)
        p = put_short_event(w, s, e, room + 2);
    if (!p || p + 1 - room > PF_TEMPLATE_BYTES)
        return false;
    room[0] = TAG(SV_PF_PACKET_TRACK_EVENT, SV_WIRE_BYTES);
    room[1] = (uint8_t)(p - room - 2);
    *p++ = TAG(SV_PF_PACKET_TIMESTAMP, SV_WIRE_VARINT);
    *t = (struct pf_template){.rest = rest_of(e), .name = e->name, .len = (uint8_t)(p - room)};
    memcpy(t->bytes, room, t->len);
    return true;
}

/* A guess for the whole batch: asked for each event, a branch would go now this way, now that where tracks alternate. */
static bool has_runs(const struct sv_event *events, size_t n)
{
    return n > 1 && events[0].track == events[n / 2].track &&
           events[0].track == events[n - 1].track && events[0].n_args + events[1].n_args == 0;
}

/* How many of the next events it wrote; 0: not for this way, or the block is full. Not inlined: the loop over mixed tracks is slower
 * with it inside. */
__attribute__((noinline)) static size_t write_run(struct pf *w, const struct sv_event *events,
                                                  size_t n)
{
    sv_track track = events->track;
    size_t room = w->block.len < w->block_bytes ? w->block_bytes - w->block.len : 0;
    if (events->n_args)
        return 0;
    struct ready ready = {0};
    if (!is_ready(w, track, &ready) || ready.is_counter || events->ts_ns < ready.sequence->last_ns)
        return 0;
    struct pf_track *t = ready.state;
    struct pf_sequence *s = ready.sequence;
    n = n < room / RUN_ROOM ? n : room / RUN_ROOM;
    if (!sv_buf_reserve(&w->block, n * RUN_ROOM))
        return 0;
    if (!s->templates)
        s->templates = sv_alloc(PF_TEMPLATES * sizeof *s->templates);
    const struct sv_event *e = events;
    uint8_t *p = w->block.data + w->block.len;
    int64_t last_ns = s->last_ns;
    uint32_t depth = t->depth;
    /* Not read again after every byte that is written. */
    struct pf_template *templates = s->templates;
    uint8_t head[sizeof s->head];
    size_t head_len = s->head_len;
    memcpy(head, s->head, sizeof head);
    for (; e < events + n && e->track == track && e->ts_ns >= last_ns; e++) {
        struct pf_template *m = &templates[(e->name ^ (uint32_t)e->kind << 3) % PF_TEMPLATES];
        if ((m->rest != rest_of(e) || m->name != e->name) && !make_template(w, s, e, m))
            break;
        memcpy(p + 2, m->bytes, PF_TEMPLATE_BYTES);
        uint8_t *end = put_u64(p + 2 + m->len, (uint64_t)e->ts_ns - (uint64_t)last_ns);
        memcpy(end, head, sizeof head);
        end += head_len;
        p[0] = TAG(SV_PF_TRACE_PACKET, SV_WIRE_BYTES);
        p[1] = (uint8_t)(end - p - 2);
        p = end;
        last_ns = e->ts_ns;
        depth += e->kind == SV_BEGIN;
        depth -= e->kind == SV_END && depth;
    }
    w->block.len = (size_t)(p - w->block.data);
    s->last_ns = last_ns;
    s->n_events += (uint32_t)(e - events);
    t->depth = depth;
    return (size_t)(e - events);
}

/* ---- the sink ---- */

static bool window_is_full(const struct pf *w)
{
    return w->window == 0 || w->window_bytes + w->block.len >= w->resync_bytes ||
           pf_numbers_full(w);
}

/* A whole slice as its edges; one that never ends has only the first. */
static void write_long(struct pf *w, const struct sv_event *e)
{
    if (e->kind != SV_SLICE) {
        pf_event_write(w, e);
        return;
    }
    struct sv_event begin = *e, end = {.kind = SV_END, .track = e->track};
    begin.kind = SV_BEGIN;
    begin.dur_ns = 0;
    pf_event_write(w, &begin);
    if (__builtin_add_overflow(e->ts_ns, e->dur_ns, &end.ts_ns))
        sv_report_add(w->report, SV_DAMAGE, "slice whose end is no time", 1, SV_NO_POS,
                      "it stays without an end");
    else if (e->dur_ns >= 0)
        pf_event_write(w, &end);
}

/* Times before zero are best known before the first of them is written. */
static void see_first(struct pf *w, const struct sv_event *events, size_t n)
{
    int64_t first = 0;
    for (size_t i = 0; i < n; i++)
        first = events[i].ts_ns < first ? events[i].ts_ns : first;
    pf_origin_lower(w, first);
}

static int pf_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                    struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    if (w->window == 0)
        see_first(w, events, n);
    if (window_is_full(w))
        pf_window_begin(w, w->origin_ns);
    else if (w->dict->clocks.n > w->n_snapshots)
        pf_snapshots_write(w);
    bool in_runs = has_runs(events, n);
    struct ready ready = {0};
    for (const struct sv_event *e = events, *end = events + n; e < end; e++) {
        if (in_runs) {
            e += write_run(w, e, (size_t)(end - e));
            if (e == end)
                break;
        }
        if (write_short(w, e, &ready))
            continue;
        write_long(w, e);
        ready.sequence = NULL;
    }
    return sv_output_failure(w->out, err);
}

static int pf_flush(struct sv_sink *sink, struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    pf_tracks_describe_put_off(w); /* what is flushed may be all that will ever be there */
    pf_block_flush(w);
    return sv_output_flush(w->out, err);
}

static void pf_forget(struct sv_sink *sink, sv_track track)
{
    pf_track_forget((struct pf *)sink, track);
}

static void pf_free(struct pf *w)
{
    pf_block_fini(w);
    pf_numbers_fini(w);
    pf_tracks_fini(w);
    sv_buf_fini(&w->event);
    sv_buf_fini(&w->interned);
    sv_buf_fini(&w->scratch);
    sv_map_fini(&w->flows);
    free(w);
}

static int pf_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    int status = 0;
    if (failed) {
        sv_output_discard(w->out);
    } else {
        if (w->window == 0)
            pf_window_begin(w, w->origin_ns);
        pf_snapshots_write(w);
        pf_tracks_describe_rest(w);
        pf_meta_write(w, true);
        pf_stats_write(w);
        pf_block_flush(w);
        pf_origin_report(w);
        if (w->sink.rewrites)
            pf_origin_unify(w);
        status = sv_output_close(w->out, err);
    }
    pf_free(w);
    return status;
}

static int open_sink(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err)
{
    struct pf *w = sv_alloc(sizeof *w);
    w->sink = (struct sv_sink){.write = pf_write,
                               .close = pf_close,
                               .flush = pf_flush,
                               .forget = pf_forget,
                               .takes = SV_HAS_EDGES | SV_HAS_NESTED | SV_HAS_FLOW_POINTS |
                                        SV_IN_TRACK_ORDER,
                               .best = SV_HAS_EDGES | SV_HAS_FLOW_POINTS};
    w->out = out;
    w->dict = dict;
    w->report = report;
    w->compression = options ? options->compression : SV_PLAIN;
    w->resync_bytes = options && options->resync_bytes > 0 ? (uint64_t)options->resync_bytes
                                                           : PF_RESYNC_BYTES;
    w->names_stages = options && options->dialect && strcmp(options->dialect, SV_PERFETTO_GPU) == 0;
    w->snapshot_ns = INT64_MIN;
    sv_buf_init(&w->event, PF_EVENT_LIMIT);
    sv_buf_init(&w->interned, PF_EVENT_LIMIT);
    sv_buf_init(&w->scratch, PF_EVENT_LIMIT);
    sv_arena_init(&w->pool_bytes, (size_t)64 << 10);
    w->recent = sv_alloc((sizeof *w->recent * PF_RECENT_WAYS) << PF_RECENT_BITS);
    w->loss_category = sv_dict_cstr(dict, SV_PF_LOSS_CATEGORY);
    w->loss_count = sv_dict_cstr(dict, SV_PF_LOSS_COUNT);
    w->loss_span = sv_dict_cstr(dict, SV_PF_LOSS_SPAN);
    w->thread_dur = sv_dict_cstr(dict, "thread_dur_ns");
    w->null_type = sv_dict_cstr(dict, SV_PF_NULL_TYPE);
    int status = pf_block_init(w, err);
    if (status < 0) {
        pf_free(w);
        return status;
    }
    *sink = &w->sink;
    return 0;
}

static const char *const suffixes[] = {".pftrace", ".perfetto-trace", ".perfetto",
                                       ".pb",      ".proto",          NULL};

const struct sv_writer sv_perfetto_writer = {
    .name = "perfetto",
    .suffixes = suffixes,
    .open = open_sink,
    .is_binary = true,
    .compresses_inside = true,
    .can_continue = true,
};

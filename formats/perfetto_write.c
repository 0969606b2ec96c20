/* The Perfetto writer: a sink for edges, instants, counters, flow points and loss, in time order.
 *
 * Opened by the table of formats, pushed by the pump. Memory is bounded by the dictionary, one window's numbers and the largest event.
 * Most events are begin and end with few plain arguments on a track that was used before: those take the short way here, straight
 * into the block, with every number looked up by index; runs without arguments on one track are made from templates. All others take
 * the long way (pf_event_write). All write the same bytes for the same event; what the short way needs and does not find (a new name, a
 * changed track, a new window) it leaves to the long one.
 *
 * Fields stand in an order that compresses well: the event, then its time, then its sequence, so that the bytes that
 * repeat together stand together (a tenth less after deflate than in the order of their numbers). */
#include "formats/perfetto_write.h"

#include <stdlib.h>

/* ---- the short way ---- */

/* An event of the short way, with room for vectors of eight bytes. Its lengths fit one byte each: numbers have at most three bytes
 * (PF_NUMBERS_MAX), so an argument has 17, an event with all of them 95, its packet 111. */
enum { SHORT_ARGS_MAX = 5, SHORT_ROOM = 160 };

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

/* The one field here with a number past 15. */
enum { SHORT_TEXT_TAG = (SV_PF_ANN_STRING_IID << 3 & 0x7f) | 0x80 | SV_PF_ANN_STRING_IID >> 4 << 8 };
_Static_assert(SV_PF_ANN_STRING_IID > 15 && SV_PF_ANN_STRING_IID < 2048 && SV_WIRE_VARINT == 0,
               "its tag has two bytes");

static inline uint8_t *put_fixed64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

/* NULL: not for the short way. */
static uint8_t *put_short_args(const struct pf *w, const struct pf_sequence *s,
                               const struct sv_event *e, uint8_t *p)
{
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a++) {
        uint32_t key = known(w, s, PF_KEY, a->key);
        if (!key)
            return NULL;
        *p++ = TAG(SV_PF_EVENT_DEBUG_ANNOTATIONS, SV_WIRE_BYTES);
        uint8_t *len = p++;
        *p++ = TAG(SV_PF_ANN_NAME_IID, SV_WIRE_VARINT);
        p = put_number(p, key);
        switch (a->type) {
        case SV_ARG_INT:
            *p++ = TAG(SV_PF_ANN_INT, SV_WIRE_VARINT);
            p = put_u64(p, a->u);
            break;
        case SV_ARG_DOUBLE:
            *p++ = TAG(SV_PF_ANN_DOUBLE, SV_WIRE_FIXED64);
            p = put_fixed64(p, a->u);
            break;
        case SV_ARG_BOOL:
            *p++ = TAG(SV_PF_ANN_BOOL, SV_WIRE_VARINT);
            *p++ = a->i != 0;
            break;
        case SV_ARG_TEXT: {
            uint32_t text = pf_number_recent(w, a->text, a->size);
            if (!pf_bits_has(&s->told[PF_TEXT], text))
                return NULL;
            *p++ = SHORT_TEXT_TAG & 0xff;
            *p++ = SHORT_TEXT_TAG >> 8;
            p = put_number(p, text);
            break;
        }
        case SV_ARG_POINTER:
            *p++ = TAG(SV_PF_ANN_POINTER, SV_WIRE_VARINT);
            p = put_u64(p, a->u);
            break;
        default: return NULL;
        }
        *len = (uint8_t)(p - len - 1);
    }
    return p;
}

static const uint8_t type_of[] = {
    [SV_BEGIN] = SV_PF_TYPE_BEGIN, [SV_END] = SV_PF_TYPE_END, [SV_INSTANT] = SV_PF_TYPE_INSTANT};

/* Type, names and arguments. Inlined where most events pass, although templates are made with it, too. */
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
    return e->n_args ? put_short_args(w, s, e, p) : p;
}

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

/* Kinds and shapes of events that the short way knows. */
static inline bool is_short(const struct sv_event *e)
{
    switch (e->kind) {
    case SV_BEGIN:
    case SV_END: return e->n_args <= SHORT_ARGS_MAX;
    case SV_INSTANT: return e->n_args <= SHORT_ARGS_MAX && e->flags == 0;
    case SV_COUNTER:
        return e->n_args == 1 &&
               (e->args[0].type == SV_ARG_INT || e->args[0].type == SV_ARG_DOUBLE);
    default: return false;
    }
}

/* The sequence on which the short way may write, else NULL. */
static inline struct pf_sequence *ready_sequence(const struct pf *w, const struct sv_event *e,
                                                 const struct pf_track *t)
{
    struct pf_sequence *s = t->own;
    bool is_ready = s && s->window == w->window && t->window == w->window &&
                    t->revision == w->dict->tracks[e->track].revision && t->n_ends == 0 &&
                    e->ts_ns >= s->last_ns;
    bool is_counter = w->dict->tracks[e->track].kind == SV_TRACK_COUNTER;
    return is_ready && is_counter == (e->kind == SV_COUNTER) ? s : NULL;
}

static bool write_short(struct pf *w, const struct sv_event *e)
{
    if (!is_short(e) || e->track >= w->n_tracks)
        return false;
    struct pf_track *t = &w->tracks[e->track];
    struct pf_sequence *s = ready_sequence(w, e, t);
    if (!s)
        return false;
    if (w->block.len + SHORT_ROOM > w->block_bytes)
        pf_block_flush(w);
    if (!sv_buf_reserve(&w->block, SHORT_ROOM))
        return false;
    uint8_t *start = w->block.data + w->block.len, *event = start + 4;
    uint8_t *p = e->kind == SV_COUNTER ? put_short_counter(e, event)
                                       : put_short_event(w, s, e, event);
    if (!p)
        return false;
    start[2] = TAG(SV_PF_PACKET_TRACK_EVENT, SV_WIRE_BYTES);
    start[3] = (uint8_t)(p - event);
    *p++ = TAG(SV_PF_PACKET_TIMESTAMP, SV_WIRE_VARINT);
    p = put_u64(p, (uint64_t)e->ts_ns - (uint64_t)s->last_ns);
    memcpy(p, s->head, sizeof s->head);
    p += s->head_len;
    start[0] = TAG(SV_PF_TRACE_PACKET, SV_WIRE_BYTES);
    start[1] = (uint8_t)(p - start - 2);
    w->block.len += (size_t)(p - start);
    s->last_ns = e->ts_ns;
    s->n_events++;
    t->depth += e->kind == SV_BEGIN;
    t->depth -= e->kind == SV_END && t->depth;
    return true;
}

/* ---- runs: neighbours of one track without arguments, from templates ---- */

/* Length, the template, a time of ten bytes, the sequence; copied in pieces of fixed size. */
enum { RUN_ROOM = 48 };

static inline uint64_t rest_of(const struct sv_event *e)
{
    uint64_t rest;
    _Static_assert(offsetof(struct sv_event, args) - offsetof(struct sv_event, cat) == sizeof rest,
                   "category, kind, flags, n_args");
    memcpy(&rest, &e->cat, sizeof rest);
    return rest;
}

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
    if (events->n_args || track >= w->n_tracks)
        return 0;
    struct pf_track *t = &w->tracks[track];
    struct pf_sequence *s = ready_sequence(w, events, t);
    n = n < room / RUN_ROOM ? n : room / RUN_ROOM;
    if (!s || !sv_buf_reserve(&w->block, n * RUN_ROOM))
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

static int pf_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                    struct sv_err *err)
{
    struct pf *w = (struct pf *)sink;
    if (window_is_full(w))
        pf_window_begin(w);
    else if (w->dict->clocks.n > w->n_snapshots)
        pf_snapshots_write(w);
    bool in_runs = has_runs(events, n);
    for (const struct sv_event *e = events, *end = events + n; e < end; e++) {
        if (in_runs) {
            e += write_run(w, e, (size_t)(end - e));
            if (e == end)
                break;
        }
        if (write_short(w, e))
            continue;
        if (e->kind == SV_SLICE)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                              "the Perfetto writer takes begin and end, not whole slices");
        pf_event_write(w, e);
    }
    return 0;
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
            pf_window_begin(w);
        pf_snapshots_write(w);
        pf_tracks_describe_rest(w);
        pf_meta_write(w, true);
        pf_stats_write(w);
        pf_block_flush(w);
        status = sv_output_close(w->out, err);
    }
    pf_free(w);
    return status;
}

SV_SINK_DOOR(sv_perfetto_sink)
{
    struct pf *w = sv_alloc(sizeof *w);
    w->sink = (struct sv_sink){.write = pf_write,
                               .close = pf_close,
                               .flush = pf_flush,
                               .forget = pf_forget,
                               .takes = SV_HAS_EDGES | SV_HAS_FLOW_POINTS};
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

/* Perfetto writer: the way of every event, through a cursor and a cache of compiled shapes.
 *
 * Called by the sink with each batch. Most events differ from an earlier one of their track only in
 * their time and in the values of their arguments. What they have in common is compiled into a
 * shape; an event is then written by copying the bytes of its shape and putting the time and the
 * values into the slots between them. A shape is found by name, category, kind and the keys and
 * types of the arguments. If it is not in the cache, it is compiled from what the sequence has
 * interned, so that an entry that was replaced costs little. Events that have no shape go to
 * pf_event_write(), which writes every kind of event, as the same bytes, and interns what the shape
 * of the next such event needs. These are: strings that the sequence has not interned, tracks that
 * are new or changed, steps back in time, flows, nested or many arguments, texts that have no
 * number.
 *
 * The cursor holds the state of the track that is written: it moves when the track changes, and is
 * closed before pf_event_write(), which uses the same state.
 *
 * The fields of a packet are in an order that compresses well: the event, its time, its sequence.
 * Bytes that repeat together are next to each other (a tenth less after deflate than in the order
 * of the field numbers). */
#include "core/perfetto/write.h"

/* PACKET_SPACE: a packet from a shape, the end of a slice after it, and what is copied past their
 * ends. Each length fits one byte: the numbers in shapes have at most three bytes, so an argument
 * has 17, an event with five of them 97, its packet 113, the end of a slice 20. */
enum { PACKET_SPACE = 192, NUMBER_END = 1 << 21 };

/* Events without arguments run straight through; the rest is laid out of their way. */
#define UNLIKELY(x)      __builtin_expect(!!(x), 0)
#define TAG(field, type) ((uint8_t)((field) << 3 | (type)))

static inline uint8_t *put_u64(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline uint8_t *put_fixed64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

/* ---- shapes ---- */

/* Its place in the cache. */
static inline struct pf_shape *place_of(struct pf_shape *shapes, const struct sv_event *e)
{
    return &shapes[(e->name + e->kind * 8u + e->n_args * 4u) % PF_SHAPES];
}

static inline uint64_t rest_of(const struct sv_event *e)
{
    uint64_t rest;
    _Static_assert(offsetof(struct sv_event, args) - offsetof(struct sv_event, cat) == sizeof rest,
                   "category, kind, flags, n_args");
    memcpy(&rest, &e->cat, sizeof rest);
    return rest;
}

/* A field with the number of a string; NULL: the sequence has not interned it. */
static inline uint8_t *put_interned(const struct pf *w, const struct pf_sequence *s,
                                    enum pf_number kind, sv_str str, uint8_t field, uint8_t *p)
{
    uint32_t number = str < w->cap_number_of[kind] ? w->number_of[kind][str] : 0;
    if (number >= NUMBER_END || !pf_bits_has(&s->interned[kind], number))
        return NULL;
    *p++ = TAG(field, SV_PB_VARINT);
    return put_u64(p, number);
}

static bool has_names(const struct sv_event *e)
{
    return e->kind != SV_END && e->kind != SV_COUNTER;
}

/* An event from its tag to its first argument; NULL: it has no shape. */
static inline uint8_t *compile_event(const struct pf *w, const struct pf_sequence *s,
                                     const struct sv_event *e, uint8_t *p)
{
    static const uint8_t types[] = {[SV_BEGIN] = SV_PF_TYPE_BEGIN,
                                    [SV_END] = SV_PF_TYPE_END,
                                    [SV_SLICE] = SV_PF_TYPE_BEGIN, /* its end follows */
                                    [SV_INSTANT] = SV_PF_TYPE_INSTANT,
                                    [SV_COUNTER] = SV_PF_TYPE_COUNTER};
    if (e->kind > SV_COUNTER || (e->kind == SV_INSTANT && e->flags) ||
        (e->kind == SV_COUNTER && e->n_args != 1))
        return NULL;
    uint8_t *start = p;
    *p++ = TAG(SV_PF_PACKET_TRACK_EVENT, SV_PB_BYTES);
    *p++ = 0; /* its length */
    *p++ = TAG(SV_PF_EVENT_TYPE, SV_PB_VARINT);
    *p++ = types[e->kind];
    if (e->name && has_names(e))
        p = put_interned(w, s, PF_NAME, e->name, SV_PF_EVENT_NAME_IID, p);
    if (p && e->cat && has_names(e))
        p = put_interned(w, s, PF_CATEGORY, e->cat, SV_PF_EVENT_CATEGORY_IIDS, p);
    if (p)
        start[1] = (uint8_t)(p - start - 2);
    return p;
}

/* An annotation from its tag to its value; NULL: it has no shape. */
static inline uint8_t *compile_annotation(const struct pf *w, const struct pf_sequence *s,
                                          const struct sv_arg *a, uint8_t *p)
{
    static const uint8_t tags[] = {[SV_ARG_BOOL] = TAG(SV_PF_ANN_BOOL, SV_PB_VARINT),
                                   [SV_ARG_INT] = TAG(SV_PF_ANN_INT, SV_PB_VARINT),
                                   [SV_ARG_UINT] = TAG(SV_PF_ANN_UINT, SV_PB_VARINT),
                                   [SV_ARG_DOUBLE] = TAG(SV_PF_ANN_DOUBLE, SV_PB_FIXED64),
                                   [SV_ARG_TEXT] = TAG(SV_PF_ANN_STRING_IID, SV_PB_VARINT) | 0x80,
                                   [SV_ARG_POINTER] = TAG(SV_PF_ANN_POINTER, SV_PB_VARINT)};
    if (a->type < SV_ARG_BOOL || a->type > SV_ARG_POINTER)
        return NULL;
    *p++ = TAG(SV_PF_EVENT_DEBUG_ANNOTATIONS, SV_PB_BYTES);
    *p++ = 0; /* its length */
    p = put_interned(w, s, PF_KEY, a->key, SV_PF_ANN_NAME_IID, p);
    if (!p)
        return NULL;
    *p++ = tags[a->type];
    if (a->type == SV_ARG_TEXT)
        *p++ = SV_PF_ANN_STRING_IID >> 4; /* this tag has two bytes */
    return p;
}

/* The shape of an event, into its place in the cache; false: it has none, or the sequence has not
 * interned all of it. */
__attribute__((noinline, cold)) static bool compile(const struct pf *w, struct pf_sequence *s,
                                                    const struct sv_event *e)
{
    struct pf_shape *m = place_of(s->shapes, e);
    if (e->n_args > PF_SHAPE_ARGS)
        return false;
    m->rest = 0;
    uint8_t *end = compile_event(w, s, e, m->bytes);
    m->len = end ? (uint8_t)(end - m->bytes) : 0;
    for (unsigned i = 0; end && i < e->n_args && e->kind != SV_COUNTER; i++) {
        struct pf_slot *slot = &m->slots[i];
        slot->key = e->args[i].key;
        slot->type = e->args[i].type;
        end = compile_annotation(w, s, &e->args[i], slot->bytes);
        slot->len = end ? (uint8_t)(end - slot->bytes) : 0;
    }
    if (!end)
        return false;
    m->name = e->name;
    m->rest = rest_of(e);
    m->opens = (int8_t)((e->kind == SV_BEGIN) - (e->kind == SV_END));
    return true;
}

/* ---- the cursor ---- */

#define NOWHERE UINT32_MAX

/* Where the next event goes: its track, and the place in the block. */
struct cursor {
    struct pf *w;
    uint8_t *at, *full; /* past `full` the block has too little space */
    sv_track track;     /* NOWHERE: none */
    int32_t depth;
    const struct sv_event *first; /* of this track */
    uint32_t n_more;              /* packets beyond one per event */
    int64_t last_ns;
    uint8_t head[8]; /* of the sequence */
    size_t head_len;
    struct pf_shape *shapes;
    struct pf_track *state;
    struct pf_sequence *sequence;
};

static inline struct cursor cursor_open(struct pf *w)
{
    return (struct cursor){.w = w,
                           .at = w->block.data + w->block.len,
                           .full = w->block.data + w->block_bytes - PACKET_SPACE,
                           .track = NOWHERE};
}

/* Gives back what it took from the track. */
static inline void cursor_leave(struct cursor *c, const struct sv_event *e)
{
    if (c->track == NOWHERE)
        return;
    c->sequence->last_ns = c->last_ns;
    c->sequence->n_events += (uint32_t)(e - c->first) + c->n_more;
    c->state->depth = (uint32_t)c->depth;
}

static inline void cursor_close(struct cursor *c, const struct sv_event *e)
{
    cursor_leave(c, e);
    c->w->block.len = (size_t)(c->at - c->w->block.data);
}

/* False: events of this track take the long way for now. */
static inline bool cursor_move(struct cursor *c, const struct sv_event *e)
{
    sv_track track = e->track;
    struct pf *w = c->w;
    if (track >= w->n_tracks)
        return false;
    struct pf_track *t = &w->tracks[track];
    struct pf_sequence *s = t->own;
    if (!s || s->window != w->window || t->window != w->window ||
        t->revision != w->dict->tracks[track].revision || t->n_ends != 0)
        return false;
    cursor_leave(c, e);
    c->first = e;
    c->track = track;
    c->state = t;
    c->sequence = s;
    c->shapes = s->shapes;
    c->depth = (int32_t)t->depth;
    c->n_more = 0;
    c->last_ns = s->last_ns;
    c->head_len = s->head_len;
    memcpy(c->head, s->head, sizeof c->head);
    return true;
}

/* Returns where the next block begins. */
__attribute__((noinline, cold)) static uint8_t *flush(struct pf *w, const uint8_t *at)
{
    w->block.len = (size_t)(at - w->block.data);
    pf_block_flush(w);
    return w->block.data;
}

/* ---- events ---- */

/* NULL: a text that the sequence has not interned. */
static inline uint8_t *put_value(const struct pf *w, const struct pf_sequence *s,
                                 const struct sv_arg *a, uint8_t *p)
{
    if (a->type == SV_ARG_TEXT) {
        uint32_t text = pf_number_recent(w, a->text, a->size);
        return pf_bits_has(&s->interned[PF_TEXT], text) ? put_u64(p, text) : NULL;
    }
    if (a->type == SV_ARG_DOUBLE)
        return put_fixed64(p, a->u);
    return put_u64(p, a->type == SV_ARG_BOOL ? a->u != 0 : a->u);
}

/* The arguments of an event, after its start; NULL: it has no shape. */
__attribute__((noinline)) static uint8_t *put_slots(const struct pf *w, struct pf_sequence *s,
                                                    const struct pf_slot *slot,
                                                    const struct sv_event *e, uint8_t *p)
{
    for (const struct sv_arg *a = e->args, *end = a + e->n_args; a < end; a++, slot++) {
        if ((slot->key != a->key || slot->type != a->type) && !compile(w, s, e))
            return NULL;
        memcpy(p, slot->bytes, sizeof slot->bytes);
        uint8_t *value_end = put_value(w, s, a, p + slot->len);
        if (!value_end)
            return NULL;
        p[1] = (uint8_t)(value_end - p - 2);
        p = value_end;
    }
    return p;
}

/* The value of a counter; NULL: it has no shape. */
static inline uint8_t *put_counter(const struct pf *w, const struct sv_event *e, uint8_t *p)
{
    const struct sv_arg *a = e->args;
    if (w->dict->tracks[e->track].kind != SV_TRACK_COUNTER)
        return NULL;
    if (a->type == SV_ARG_INT)
        return put_u64(put_u64(p, SV_PF_EVENT_COUNTER_VALUE << 3 | SV_PB_VARINT), a->u);
    if (a->type == SV_ARG_DOUBLE)
        return put_fixed64(put_u64(p, SV_PF_EVENT_DOUBLE_COUNTER_VALUE << 3 | SV_PB_FIXED64), a->u);
    return NULL;
}

/* What follows the event in its packet, and the length of the packet. */
static inline uint8_t *put_tail(const struct cursor *c, uint8_t *start, uint8_t *p,
                                uint64_t step_ns)
{
    *p++ = TAG(SV_PF_PACKET_TIMESTAMP, SV_PB_VARINT);
    p = put_u64(p, step_ns);
    memcpy(p, c->head, sizeof c->head);
    p += c->head_len;
    start[0] = TAG(SV_PF_TRACE_PACKET, SV_PB_BYTES);
    start[1] = (uint8_t)(p - start - 2);
    return p;
}

/* The second packet of a whole slice. */
static inline uint8_t *put_end(const struct cursor *c, uint8_t *start, uint64_t step_ns)
{
    static const uint8_t end[] = {TAG(SV_PF_PACKET_TRACK_EVENT, SV_PB_BYTES), 2,
                                  TAG(SV_PF_EVENT_TYPE, SV_PB_VARINT), SV_PF_TYPE_END};
    memcpy(start + 2, end, sizeof end);
    return put_tail(c, start, start + 2 + sizeof end, step_ns);
}

/* False: it has no shape. */
static inline bool put_event(struct cursor *c, const struct sv_event *e)
{
    const struct pf_shape *m = place_of(c->shapes, e);
    int64_t ts_ns = e->ts_ns, end_ns = ts_ns;
    if (UNLIKELY(ts_ns < c->last_ns))
        return false;
    if (UNLIKELY(m->rest != rest_of(e) || m->name != e->name) && !compile(c->w, c->sequence, e))
        return false;
    if (UNLIKELY(c->at > c->full))
        c->at = flush(c->w, c->at);
    uint8_t *start = c->at, *p = start + 2;
    memcpy(p, m->bytes, sizeof m->bytes);
    p += m->len;
    if (UNLIKELY(e->n_args)) {
        p = e->kind == SV_COUNTER ? put_counter(c->w, e, p)
                                  : put_slots(c->w, c->sequence, m->slots, e, p);
        if (!p)
            return false;
        start[3] = (uint8_t)(p - start - 4);
    }
    p = put_tail(c, start, p, (uint64_t)ts_ns - (uint64_t)c->last_ns);
    if (UNLIKELY(e->kind == SV_SLICE)) {
        if (e->dur_ns < 0 || __builtin_add_overflow(ts_ns, e->dur_ns, &end_ns))
            return false;
        p = put_end(c, p, (uint64_t)e->dur_ns);
        c->n_more++;
    }
    c->at = p;
    c->last_ns = end_ns;
    int32_t depth = c->depth + m->opens;
    c->depth = depth < 0 ? 0 : depth;
    return true;
}

/* Writes events up to the first that has no shape, which it returns. */
static const struct sv_event *put_events(struct pf *w, const struct sv_event *e,
                                         const struct sv_event *end)
{
    struct cursor c = cursor_open(w);
    while (e < end && (e->track == c.track || cursor_move(&c, e)) && put_event(&c, e))
        e++;
    cursor_close(&c, e);
    return e;
}

void pf_events_write(struct pf *w, const struct sv_event *events, size_t n)
{
    const struct sv_event *e = events, *end = events + n;
    while ((e = put_events(w, e, end)) < end)
        pf_event_write(w, e++);
}

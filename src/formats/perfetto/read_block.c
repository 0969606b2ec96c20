/* Blocks of Perfetto packets: cut from the input in order, decoded by any thread.
 *
 * fill_block() walks over the lengths of packets and takes as many whole ones as the window has.
 * decode_block() turns each into a record. The everyday ones, events with interned names and simple
 * arguments, are decoded completely; what they refer to is looked up when their turn comes
 * (formats/perfetto/read_event.c), because it depends on all packets before. Everything else stays
 * a packet.
 *
 * Whatever is unusual ends the quick way at once and without an effect, so this file needs to know
 * only what it decodes: an event decoded here and one decoded by sv_pf_track_event() itself are the
 * same. A block ends before a frame that is broken or cut off; formats/perfetto/read.c goes on from
 * there. */
#include "formats/perfetto/read.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define ARGS_MAX       256 /* of a quick event */
#define LONG_PACKET    2048u
#define UNPACKED_TIMES 12u /* what packets of events shrink to, about */

/* ---- cutting ---- */

/* How many bytes at the beginning of the window are whole packets, up to the limit. Long ones are
 * compressed, mostly, and count as what is inside. */
static size_t whole_frames(const struct sv_input *in, size_t limit, size_t *n)
{
    struct sv_pf_frame f;
    size_t at = 0, weight = 0;
    while (weight < limit && sv_pf_frame_at(in->data + at, in->len - at, &f) == SV_PF_FRAME_WHOLE) {
        at += f.header + f.len;
        weight += f.len < LONG_PACKET ? f.header + f.len : UNPACKED_TIMES * f.len;
        ++*n;
    }
    return at;
}

/* False: the input ends, or something comes that is no whole packet. It is still in the input. */
static bool fill_block(void *ctx, void *item)
{
    struct sv_pf *r = ctx;
    struct sv_pf_block *k = item;
    struct sv_input *in = r->in;
    size_t bytes;
    k->n_frames = 0;
    while ((bytes = whole_frames(in, r->block_bytes, &k->n_frames)) == 0) {
        struct sv_pf_frame f;
        struct sv_err again = {0}; /* the input keeps its error for who asks next */
        if (sv_pf_frame_at(in->data, in->len, &f) == SV_PF_FRAME_BAD || in->eof ||
            f.header + f.len > in->window_limit || sv_input_fill(in, f.header + f.len, &again) < 0)
            return false;
    }
    sv_input_take(in, bytes, &k->in);
    return true;
}

/* ---- decoding ---- */

/* A message at hand. Bytes past its end may be read (SV_INPUT_PAD), but mean nothing. */
struct span {
    const uint8_t *p, *end;
};

/* A varint of eight bytes at most in one step; longer ones are not everyday. */
static inline bool take_varint(struct span *s, uint64_t *out)
{
    uint64_t x;
    if (__builtin_expect(s->p < s->end && *s->p < 0x80, 1)) {
        *out = *s->p++;
        return true;
    }
    memcpy(&x, s->p, sizeof x);
    uint64_t ends = ~x & 0x8080808080808080u;
    if (__builtin_expect(ends == 0, 0))
        return false;
    unsigned bits = (unsigned)__builtin_ctzll(ends) + 1;
    x &= UINT64_MAX >> (64 - bits);
    x = (x & 0x7f007f007f007f00u) >> 1 | (x & 0x007f007f007f007fu);
    x = (x & 0xffff0000ffff0000u) >> 2 | (x & 0x0000ffff0000ffffu);
    x = (x & 0xffffffff00000000u) >> 4 | (x & 0x00000000ffffffffu);
    s->p += bits / 8;
    *out = x;
    return s->p <= s->end;
}

static inline bool take_number(struct span *s, uint32_t *out)
{
    uint64_t v = 0;
    bool ok = take_varint(s, &v) && v <= UINT32_MAX;
    *out = (uint32_t)v;
    return ok;
}

static inline bool take_fixed(struct span *s, uint64_t *out)
{
    memcpy(out, s->p, sizeof *out);
    s->p += sizeof *out;
    return s->p <= s->end;
}

static inline bool take_span(struct span *s, struct span *out)
{
    uint64_t len;
    if (!take_varint(s, &len) || len > (uint64_t)(s->end - s->p))
        return false;
    *out = (struct span){s->p, s->p + len};
    s->p += len;
    return true;
}

/* Tags of one byte, and of two. */
#define TAG(id, type) ((id) << 3 | (type))
#define TAG2(id, type) \
    ((unsigned)((TAG(id, type) & 0x7f) | 0x80) | (unsigned)TAG(id, type) >> 7 << 8)

static struct sv_arg *add_arg(struct sv_pf_block *k, unsigned type)
{
    if (__builtin_expect(k->n_args == k->cap_args, 0))
        k->args = sv_grow(k->args, &k->cap_args, k->n_args + 1, sizeof *k->args);
    struct sv_arg *a = &k->args[k->n_args++];
    *a = (struct sv_arg){.type = type & 0xff};
    return a;
}

static bool add_special(struct sv_pf_block *k, struct span *s, unsigned type, bool is_fixed)
{
    uint64_t u;
    if (!(is_fixed ? take_fixed(s, &u) : take_varint(s, &u)))
        return false;
    add_arg(k, type)->u = u;
    return true;
}

static bool take_text(struct span *s, struct sv_arg *a)
{
    struct span text;
    if (!take_span(s, &text) || text.end - text.p > (ptrdiff_t)SV_TEXT_MAX)
        return false;
    a->type = SV_ARG_TEXT;
    a->size = (uint32_t)(text.end - text.p) & 0xffffff;
    a->text = (const char *)text.p;
    return true;
}

static inline bool take_value(struct span *s, unsigned tag, struct sv_arg *a)
{
    bool ok;
    switch (tag) {
    case TAG(SV_PF_ANN_INT, SV_PB_VARINT): a->type = SV_ARG_INT; return take_varint(s, &a->u);
    case TAG(SV_PF_ANN_UINT, SV_PB_VARINT):
        ok = take_varint(s, &a->u);
        a->type = a->u > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT;
        return ok;
    case TAG(SV_PF_ANN_BOOL, SV_PB_VARINT):
        ok = take_varint(s, &a->u);
        a->type = SV_ARG_BOOL;
        a->i = a->u != 0;
        return ok;
    case TAG(SV_PF_ANN_POINTER, SV_PB_VARINT):
        a->type = SV_ARG_POINTER;
        return take_varint(s, &a->u);
    case TAG(SV_PF_ANN_DOUBLE, SV_PB_FIXED64): a->type = SV_ARG_DOUBLE; return take_fixed(s, &a->u);
    case TAG(SV_PF_ANN_STRING, SV_PB_BYTES): return take_text(s, a);
    default: return false;
    }
}

/* An annotation with an interned name and one plain value. */
static bool decode_annotation(struct sv_pf_block *k, struct span s)
{
    struct sv_arg a = {0};
    while (s.p < s.end) {
        unsigned tag = *s.p++;
        if (tag == TAG(SV_PF_ANN_NAME_IID, SV_PB_VARINT)) {
            if (a.key || !take_number(&s, &a.key))
                return false;
            continue;
        }
        if (a.type != 0)
            return false;
        if (tag == (TAG2(SV_PF_ANN_STRING_IID, SV_PB_VARINT) & 0xff)) {
            if (s.p == s.end || *s.p++ != TAG2(SV_PF_ANN_STRING_IID, SV_PB_VARINT) >> 8 ||
                !take_varint(&s, &a.u))
                return false;
            a.type = SV_PF_QUICK_TEXT_IID;
        } else if (!take_value(&s, tag, &a)) {
            return false;
        }
    }
    if (a.key == 0 || a.type == 0)
        return false;
    *add_arg(k, 0) = a;
    return true;
}

/* Fields with a tag of two bytes, of which `low` was the first. */
static bool decode_second(struct sv_pf_block *k, struct span *s, unsigned low)
{
    if (s->p == s->end)
        return false;
    switch (low | (unsigned)*s->p++ << 8) {
    case TAG2(SV_PF_EVENT_FLOW_IDS, SV_PB_FIXED64): return add_special(k, s, SV_ARG_FLOW, true);
    case TAG2(SV_PF_EVENT_END_FLOW_IDS, SV_PB_FIXED64):
        return add_special(k, s, SV_ARG_FLOW_END, true);
    case TAG2(SV_PF_EVENT_CORRELATION_ID, SV_PB_VARINT):
        return add_special(k, s, SV_ARG_CORRELATION, false);
    case TAG2(SV_PF_EVENT_COUNTER_VALUE, SV_PB_VARINT):
        return add_special(k, s, SV_PF_QUICK_COUNTER, false);
    case TAG2(SV_PF_EVENT_DOUBLE_COUNTER_VALUE, SV_PB_FIXED64):
        return add_special(k, s, SV_PF_QUICK_DOUBLE_COUNTER, true);
    default: return false;
    }
}

static inline bool decode_event(struct sv_pf_block *k, struct span s, struct sv_pf_quick *q)
{
    struct span note;
    uint64_t type;
    while (s.p < s.end) {
        unsigned tag = *s.p++;
        switch (tag) {
        case TAG(SV_PF_EVENT_TYPE, SV_PB_VARINT):
            if (!take_varint(&s, &type) || type > UINT8_MAX)
                return false;
            q->type = (uint8_t)type;
            break;
        case TAG(SV_PF_EVENT_NAME_IID, SV_PB_VARINT):
            if (!take_number(&s, &q->name_iid))
                return false;
            break;
        case TAG(SV_PF_EVENT_CATEGORY_IIDS, SV_PB_VARINT):
            if (q->has & SV_PF_QUICK_CATEGORY || !take_number(&s, &q->category_iid))
                return false;
            q->has |= SV_PF_QUICK_CATEGORY;
            break;
        case TAG(SV_PF_EVENT_TRACK_UUID, SV_PB_VARINT): {
            struct sv_pb w = sv_pb_at(s.p, (size_t)(s.end - s.p)); /* often ten bytes */
            if (!sv_pb_varint(&w, &q->track_uuid))
                return false;
            s.p = w.p;
            q->has |= SV_PF_QUICK_TRACK;
            break;
        }
        case TAG(SV_PF_EVENT_DEBUG_ANNOTATIONS, SV_PB_BYTES):
            if (!take_span(&s, &note) || !decode_annotation(k, note))
                return false;
            break;
        default:
            if (!decode_second(k, &s, tag))
                return false;
        }
    }
    return true;
}

/* True: an everyday event, all of it is in q and its arguments. */
static inline bool decode_packet(struct sv_pf_block *k, struct span s, struct sv_pf_quick *q)
{
    struct span event = {0};
    bool has_time = false;
    uint64_t u;
    while (s.p < s.end) {
        switch (*s.p++) {
        case TAG(SV_PF_PACKET_TIMESTAMP, SV_PB_VARINT):
            if (!take_varint(&s, &q->timestamp))
                return false;
            has_time = true;
            break;
        case TAG(SV_PF_PACKET_SEQUENCE_ID, SV_PB_VARINT):
            if (!take_number(&s, &q->seq_id))
                return false;
            q->has |= SV_PF_QUICK_SEQUENCE;
            break;
        case TAG(SV_PF_PACKET_TRACK_EVENT, SV_PB_BYTES):
            if (event.p || !take_span(&s, &event))
                return false;
            break;
        case TAG(SV_PF_PACKET_SEQUENCE_FLAGS, SV_PB_VARINT):
            if (!take_varint(&s, &u) || u & SV_PF_SEQ_CLEARED || u > UINT8_MAX)
                return false;
            q->flags |= (uint8_t)u;
            break;
        case TAG(SV_PF_PACKET_TRUSTED_UID, SV_PB_VARINT):
            if (!take_varint(&s, &u))
                return false;
            break;
        case TAG2(SV_PF_PACKET_TRUSTED_PID, SV_PB_VARINT) & 0xff:
            if (s.p == s.end || *s.p++ != TAG2(SV_PF_PACKET_TRUSTED_PID, SV_PB_VARINT) >> 8 ||
                !take_varint(&s, &u))
                return false;
            break;
        default: return false;
        }
    }
    return has_time && event.p && decode_event(k, event, q);
}

static bool is_packed(const struct sv_pf_packet *packet)
{
    return packet->payload_id == SV_PF_PACKET_COMPRESSED ||
           packet->payload_id == SV_PF_PACKET_ZSTD_COMPRESSED;
}

static struct sv_pf_quick whole_packet(const uint8_t *bytes, size_t len, size_t at)
{
    struct sv_pf_packet packet;
    bool is_sound = sv_pf_packet_split(bytes, len, &packet);
    return (struct sv_pf_quick){.bytes = bytes,
                                .len = len,
                                .at = (uint32_t)at,
                                .kind = is_sound ? SV_PF_QUICK_PACKET : SV_PF_QUICK_DAMAGED};
}

static inline void add_record(struct sv_pf_block *k, const uint8_t *bytes, size_t len, size_t at)
{
    struct sv_pf_quick *q = &k->records[k->n_records++];
    size_t n_args = k->n_args;
    *q = (struct sv_pf_quick){.at = (uint32_t)at};
    if (__builtin_expect(decode_packet(k, (struct span){bytes, bytes + len}, q) &&
                             k->n_args - n_args <= ARGS_MAX,
                         1)) {
        q->n_args = (uint16_t)(k->n_args - n_args);
        return;
    }
    k->n_args = n_args;
    *q = whole_packet(bytes, len, at);
}

/* ---- compressed packets ---- */

/* What the compressed packets of a block contain. Those that expand to more are unpacked in their
 * turn, piece by piece, as are those that are broken. */
#define UNPACKED_MAX SV_TABLE((size_t)2 << 20, (size_t)8 << 10)

struct sv_pf_unpacked {
    uint8_t *bytes; /* UNPACKED_MAX, and SV_INPUT_PAD */
    size_t used;
    bool is_full;
    z_stream zlib;
    bool has_zlib;
#ifdef SV_HAVE_ZSTD
    ZSTD_DCtx *zstd;
#endif
};

static struct sv_pf_unpacked *unpacked_of(struct sv_pf_block *k)
{
    if (!k->unpacked) {
        k->unpacked = sv_alloc(sizeof *k->unpacked);
        k->unpacked->bytes = sv_alloc_aligned(UNPACKED_MAX + SV_INPUT_PAD, 64);
    }
    return k->unpacked;
}

/* The number of bytes, or 0: not all of it could be unpacked. */
static size_t inflate_all(struct sv_pf_unpacked *u, struct sv_pf_blob from)
{
    int rc = u->has_zlib ? inflateReset(&u->zlib) : inflateInit2(&u->zlib, 15 + 32);
    u->has_zlib = u->has_zlib || rc == Z_OK;
    if (rc != Z_OK)
        return 0;
    u->zlib.next_in = (Bytef *)(uintptr_t)from.bytes;
    u->zlib.avail_in = (uInt)from.len;
    u->zlib.next_out = u->bytes + u->used;
    u->zlib.avail_out = (uInt)(UNPACKED_MAX - u->used);
    rc = inflate(&u->zlib, Z_FINISH);
    return rc == Z_STREAM_END ? UNPACKED_MAX - u->used - u->zlib.avail_out : 0;
}

static size_t unzstd_all(struct sv_pf_unpacked *u, struct sv_pf_blob from)
{
#ifdef SV_HAVE_ZSTD
    if (!u->zstd)
        u->zstd = ZSTD_createDCtx();
    size_t n = u->zstd ? ZSTD_decompressDCtx(u->zstd, u->bytes + u->used, UNPACKED_MAX - u->used,
                                             from.bytes, from.len)
                       : 0;
    return ZSTD_isError(n) ? 0 : n;
#else
    (void)u;
    (void)from;
    return 0;
#endif
}

/* The packets in [bytes, bytes + len), all of which came from the one at `at`. False: not all are
 * sound, or one is compressed again. */
static bool add_unpacked(struct sv_pf_block *k, const uint8_t *bytes, size_t len, size_t at)
{
    for (size_t from = 0; from < len;) {
        struct sv_pf_frame f;
        struct sv_pf_packet packet;
        if (sv_pf_frame_at(bytes + from, len - from, &f) != SV_PF_FRAME_WHOLE)
            return false;
        k->records = sv_grow(k->records, &k->cap_records, k->n_records + 1, sizeof *k->records);
        add_record(k, bytes + from + f.header, f.len, at);
        unsigned kind = k->records[k->n_records - 1].kind;
        if (kind == SV_PF_QUICK_DAMAGED ||
            (kind == SV_PF_QUICK_PACKET &&
             sv_pf_packet_split(bytes + from + f.header, f.len, &packet) && is_packed(&packet)))
            return false;
        from += f.header + f.len;
    }
    return true;
}

/* Puts the packets inside of the last record in its place, if all is well with them. */
static void unpack_record(struct sv_pf_block *k)
{
    struct sv_pf_quick packed = k->records[k->n_records - 1];
    struct sv_pf_packet packet;
    if (!sv_pf_packet_split(packed.bytes, packed.len, &packet) || !is_packed(&packet))
        return;
    struct sv_pf_unpacked *u = unpacked_of(k);
    if (u->is_full)
        return;
    size_t n_before = --k->n_records, n_args = k->n_args;
    size_t len = packet.payload_id == SV_PF_PACKET_COMPRESSED ? inflate_all(u, packet.payload)
                                                              : unzstd_all(u, packet.payload);
    if (len > 0 && add_unpacked(k, u->bytes + u->used, len, packed.at)) {
        u->used += len;
        return;
    }
    u->is_full = true; /* or something else is wrong with it; what follows is not tried */
    k->n_records = n_before;
    k->n_args = n_args;
    k->records[k->n_records++] = packed;
}

static void decode_block(void *ctx, void *item)
{
    struct sv_pf_block *k = item;
    size_t n_left = k->n_frames;
    (void)ctx;
    k->n_records = k->n_args = k->next = k->next_arg = 0;
    if (k->unpacked) {
        k->unpacked->used = 0;
        k->unpacked->is_full = false;
    }
    for (size_t at = 0; at < k->in.len; n_left--) {
        struct sv_pf_frame f;
        if (__builtin_expect(k->n_records + n_left > k->cap_records, 0))
            k->records =
                sv_grow(k->records, &k->cap_records, k->n_records + n_left, sizeof *k->records);
        sv_pf_frame_at(k->in.data + at, k->in.len - at, &f);
        add_record(k, k->in.data + at + f.header, f.len, at);
        if (__builtin_expect(k->records[k->n_records - 1].kind == SV_PF_QUICK_PACKET, 0))
            unpack_record(k);
        at += f.header + f.len;
    }
}

static void clean_unpacked(struct sv_pf_unpacked *u)
{
    if (!u)
        return;
    if (u->has_zlib)
        inflateEnd(&u->zlib);
#ifdef SV_HAVE_ZSTD
    ZSTD_freeDCtx(u->zstd);
#endif
    free(u->bytes);
    free(u);
}

static void clean_block(void *item)
{
    struct sv_pf_block *k = item;
    clean_unpacked(k->unpacked);
    sv_input_block_fini(&k->in);
    free(k->records);
    free(k->args);
}

const struct sv_line_ops sv_pf_block_ops = {fill_block, decode_block, clean_block,
                                            sizeof(struct sv_pf_block)};

/* A Perfetto file as text: sequence states, clocks, interned strings and defaults, just enough to
 * check the writer.
 *
 * Called by the unit tests only; see the header for the form of the lines. */
#include "tests/unit/pftext.h"
#include "core/base/mem.h"
#include "core/base/wire.h"
#include "core/perfetto/proto.h"
#include "core/perfetto/stave.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

enum { SEQUENCES = 400, INTERNED = 4096, KINDS = 48 };

struct text {
    const uint8_t *bytes;
    size_t len;
};

struct sequence {
    bool is_valid, has_track, has_extra;
    uint64_t clock, track, extra, last_ns;
    struct text interned[KINDS][INTERNED]; /* by field and iid */
    size_t n_interned[KINDS];              /* the largest iid in use, plus 1 */
};

struct state {
    struct sv_buf *out;
    struct sequence *sequences[SEQUENCES];
    struct {
        uint8_t *bytes;
    } blocks[1000]; /* unpacked ones: interned texts point into them */
    size_t n_blocks;
    uint64_t primary;
    bool is_good;
};

static void fail(struct state *st, const char *what)
{
    sv_buf_printf(st->out, "! %s\n", what);
    st->is_good = false;
}

static uint64_t field_u64(struct sv_pb w, uint32_t id, uint64_t otherwise)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (f.id == id)
            otherwise = f.u;
    return otherwise;
}

static bool field_sub(struct sv_pb w, uint32_t id, struct sv_pb *sub)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id == id && f.type == SV_PB_BYTES) {
            *sub = sv_pb_sub(&f);
            return true;
        }
    }
    return false;
}

static void put_text(struct state *st, const uint8_t *bytes, size_t len)
{
    sv_buf_escaped(st->out, (const char *)bytes, len);
}

static void add_interned(struct sequence *s, uint32_t kind, uint64_t iid, struct text text)
{
    s->interned[kind][iid] = text;
    if (s->n_interned[kind] <= iid)
        s->n_interned[kind] = iid + 1;
}

static void forget_interned(struct sequence *s)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        memset(s->interned[kind], 0, s->n_interned[kind] * sizeof(struct text));
        s->n_interned[kind] = 0;
    }
}

static struct text *interned_at(struct state *st, struct sequence *s, uint32_t kind, uint64_t iid)
{
    static struct text none;
    if (!s || !s->is_valid || kind >= KINDS || iid >= INTERNED || !s->interned[kind][iid].bytes) {
        fail(st, "unknown iid");
        return &none;
    }
    return &s->interned[kind][iid];
}

static void put_interned(struct state *st, struct sequence *s, uint32_t kind, uint64_t iid)
{
    struct text *t = interned_at(st, s, kind, iid);
    struct sv_pb w = sv_pb_at(t->bytes, t->len), sub;
    if (field_sub(w, SV_PF_INTERNED_TEXT, &sub))
        put_text(st, sub.p, (size_t)(sub.end - sub.p));
}

/* ---- arguments ---- */

static void annotation(struct state *st, struct sequence *s, struct sv_pb w, unsigned depth)
{
    struct sv_buf *b = st->out;
    if (depth > 80) {
        fail(st, "too deep");
        return;
    }
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (f.id) {
        case SV_PF_ANN_NAME_IID:
            put_interned(st, s, SV_PF_INTERNED_ANNOTATION_NAMES, f.u);
            sv_buf_byte(b, '=');
            break;
        case SV_PF_ANN_NAME:
            put_text(st, f.bytes, f.u);
            sv_buf_byte(b, '=');
            break;
        case SV_PF_ANN_BOOL: sv_buf_str(b, f.u ? "true" : "false"); break;
        case SV_PF_ANN_UINT: sv_buf_printf(b, "%" PRIu64 "u", f.u); break;
        case SV_PF_ANN_INT: sv_buf_i64(b, (int64_t)f.u); break;
        case SV_PF_ANN_DOUBLE:
            sv_buf_double(b, sv_pb_double(&f));
            sv_buf_byte(b, 'd');
            break;
        case SV_PF_ANN_POINTER: sv_buf_printf(b, "0x%" PRIx64, f.u); break;
        case SV_PF_ANN_STRING:
            sv_buf_byte(b, '"');
            put_text(st, f.bytes, f.u);
            sv_buf_byte(b, '"');
            break;
        case SV_PF_ANN_STRING_IID:
            sv_buf_str(b, "\"");
            put_interned(st, s, SV_PF_INTERNED_ANNOTATION_STRINGS, f.u);
            sv_buf_str(b, "\"#");
            break;
        case SV_PF_ANN_PROTO_TYPE_IID:
            interned_at(st, s, SV_PF_INTERNED_ANNOTATION_TYPES, f.u);
            break;
        case SV_PF_ANN_PROTO_VALUE: sv_buf_str(b, f.u ? "proto" : "null"); break;
        case SV_PF_ANN_JSON:
            sv_buf_str(b, "json:");
            put_text(st, f.bytes, f.u);
            break;
        case SV_PF_ANN_DICT:
        case SV_PF_ANN_ARRAY:
            sv_buf_byte(b, f.id == SV_PF_ANN_DICT ? '{' : '[');
            annotation(st, s, sv_pb_sub(&f), depth + 1);
            sv_buf_byte(b, f.id == SV_PF_ANN_DICT ? '}' : ']');
            break;
        default: fail(st, "unknown annotation field");
        }
    }
    if (w.bad)
        fail(st, "bad annotation");
}

static void legacy(struct state *st, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (f.id) {
        case SV_PF_LEGACY_PHASE: sv_buf_printf(st->out, " ph=%c", (int)f.u); break;
        case SV_PF_LEGACY_UNSCOPED_ID: sv_buf_printf(st->out, " id=%" PRIu64, f.u); break;
        case SV_PF_LEGACY_BIND_ID: sv_buf_printf(st->out, " bind=%" PRIu64, f.u); break;
        case SV_PF_LEGACY_FLOW_DIRECTION: sv_buf_printf(st->out, " dir=%" PRIu64, f.u); break;
        case SV_PF_LEGACY_BIND_TO_ENCLOSING: sv_buf_str(st->out, " enclosing"); break;
        case SV_PF_LEGACY_INSTANT_SCOPE: sv_buf_printf(st->out, " scope=%" PRIu64, f.u); break;
        default: fail(st, "unknown legacy field");
        }
    }
}

static void callstack(struct state *st, struct sv_pb w)
{
    sv_buf_str(st->out, " stack=");
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb frame = sv_pb_sub(&f), name;
        if (field_sub(frame, SV_PF_INLINE_FUNCTION, &name))
            put_text(st, name.p, (size_t)(name.end - name.p));
        sv_buf_byte(st->out, ';');
    }
}

static void source(struct state *st, struct sequence *s, uint64_t iid)
{
    struct text *t = interned_at(st, s, SV_PF_INTERNED_SOURCE_LOCATIONS, iid);
    struct sv_pb w = sv_pb_at(t->bytes, t->len), sub;
    sv_buf_str(st->out, " source=");
    if (field_sub(w, SV_PF_SOURCE_FILE, &sub))
        put_text(st, sub.p, (size_t)(sub.end - sub.p));
    sv_buf_printf(st->out, ":%" PRIu64 ":", field_u64(w, SV_PF_SOURCE_LINE, 0));
    if (field_sub(w, SV_PF_SOURCE_FUNCTION, &sub))
        put_text(st, sub.p, (size_t)(sub.end - sub.p));
}

/* ---- events ---- */

static void event_field(struct state *st, struct sequence *s, const struct sv_pb_field *f)
{
    struct sv_buf *b = st->out;
    switch (f->id) {
    case SV_PF_EVENT_TYPE:
    case SV_PF_EVENT_TRACK_UUID:
    case SV_PF_EVENT_EXTRA_COUNTER_UUIDS: break;
    case SV_PF_EVENT_CATEGORY_IIDS:
        sv_buf_str(b, " c:");
        put_interned(st, s, SV_PF_INTERNED_CATEGORIES, f->u);
        break;
    case SV_PF_EVENT_NAME_IID:
        sv_buf_str(b, " n:");
        put_interned(st, s, SV_PF_INTERNED_NAMES, f->u);
        break;
    case SV_PF_EVENT_DEBUG_ANNOTATIONS:
        sv_buf_byte(b, ' ');
        annotation(st, s, sv_pb_sub(f), 0);
        break;
    case SV_PF_EVENT_COUNTER_VALUE: sv_buf_printf(b, " value=%" PRId64, (int64_t)f->u); break;
    case SV_PF_EVENT_DOUBLE_COUNTER_VALUE:
        sv_buf_str(b, " value=");
        sv_buf_double(b, sv_pb_double(f));
        sv_buf_byte(b, 'd');
        break;
    case SV_PF_EVENT_EXTRA_COUNTER_VALUES:
        if (!s->has_extra)
            fail(st, "extra counter without track");
        sv_buf_printf(b, " cpu=%" PRId64, (int64_t)f->u);
        break;
    case SV_PF_EVENT_FLOW_IDS: sv_buf_printf(b, " flow=%" PRIu64, f->u); break;
    case SV_PF_EVENT_END_FLOW_IDS: sv_buf_printf(b, " endflow=%" PRIu64, f->u); break;
    case SV_PF_EVENT_CORRELATION_ID: sv_buf_printf(b, " corr=%" PRIu64, f->u); break;
    case SV_PF_EVENT_SOURCE_LOCATION_IID: source(st, s, f->u); break;
    case SV_PF_EVENT_CALLSTACK: callstack(st, sv_pb_sub(f)); break;
    case SV_PF_EVENT_LEGACY_EVENT: legacy(st, sv_pb_sub(f)); break;
    default: fail(st, "unknown event field");
    }
}

static void event(struct state *st, struct sequence *s, struct sv_pb w, uint64_t ts)
{
    static const char *const types[] = {"-", "BEGIN", "END", "INSTANT", "COUNTER"};
    uint64_t type = field_u64(w, SV_PF_EVENT_TYPE, 0);
    uint64_t track = field_u64(w, SV_PF_EVENT_TRACK_UUID, s->has_track ? s->track : 0);
    sv_buf_printf(st->out, "%" PRId64 " %" PRIu64 " %s", (int64_t)ts, track,
                  type < 5 ? types[type] : "?");
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        event_field(st, s, &f);
    if (w.bad)
        fail(st, "bad event");
    sv_buf_byte(st->out, '\n');
}

/* ---- descriptors, snapshots, metadata ---- */

/* A message of which all is printed: id=value, id={…} for those that nest, id="…" for texts. */
static void generic(struct state *st, struct sv_pb w, uint64_t nested_ids)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        sv_buf_printf(st->out, " %" PRIu32 "=", f.id);
        bool nests = f.id == SV_PF_STAVE || (f.id < 64 && nested_ids >> f.id & 1);
        if (f.type != SV_PB_BYTES) {
            sv_buf_i64(st->out, (int64_t)f.u);
        } else if (nests) {
            sv_buf_byte(st->out, '{');
            generic(st, sv_pb_sub(&f), 0);
            sv_buf_str(st->out, " }");
        } else {
            sv_buf_byte(st->out, '"');
            put_text(st, f.bytes, f.u);
            sv_buf_byte(st->out, '"');
        }
    }
    if (w.bad)
        fail(st, "bad message");
}

static void named(struct state *st, const char *name, struct sv_pb w, uint64_t nested_ids)
{
    sv_buf_str(st->out, name);
    generic(st, w, nested_ids);
    sv_buf_byte(st->out, '\n');
}

static void snapshot(struct state *st, struct sequence *s, struct sv_pb w)
{
    uint64_t primary = field_u64(w, SV_PF_SNAPSHOT_PRIMARY, 0);
    if (!s)
        named(st, "snapshot", w, 1u << SV_PF_SNAPSHOT_CLOCKS);
    if (primary == 0 || (st->primary && st->primary != primary))
        fail(st, "primary clock");
    st->primary = primary;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb clock = sv_pb_sub(&f);
        if (f.id != SV_PF_SNAPSHOT_CLOCKS ||
            field_u64(clock, SV_PF_CLOCK_ID, 0) != SV_PF_CLOCK_SEQUENCE_FIRST)
            continue;
        uint64_t ns = field_u64(clock, SV_PF_CLOCK_TIMESTAMP, 0);
        if (!s || !field_u64(clock, SV_PF_CLOCK_IS_INCREMENTAL, 0) ||
            (int64_t)ns < (int64_t)s->last_ns)
            fail(st, "sequence clock");
        else
            s->last_ns = ns;
    }
}

static void defaults(struct sequence *s, struct sv_pb w)
{
    struct sv_pb event_defaults;
    s->clock = field_u64(w, SV_PF_DEFAULTS_CLOCK_ID, 0);
    s->has_track = s->has_extra = false;
    if (!field_sub(w, SV_PF_DEFAULTS_TRACK_EVENT, &event_defaults))
        return;
    s->has_track = true;
    s->track = field_u64(event_defaults, SV_PF_EVENT_TRACK_UUID, 0);
    s->extra = field_u64(event_defaults, SV_PF_EVENT_EXTRA_COUNTER_UUIDS, 0);
    s->has_extra = s->extra != 0;
}

static void intern(struct state *st, struct sequence *s, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        uint64_t iid = field_u64(sv_pb_sub(&f), SV_PF_INTERNED_IID, 0);
        if (!s->is_valid || f.id >= KINDS || iid == 0 || iid >= INTERNED)
            fail(st, "interned data out of place");
        else if (s->interned[f.id][iid].bytes)
            fail(st, "iid defined twice");
        else
            add_interned(s, f.id, iid, (struct text){f.bytes, f.u});
    }
}

/* ---- packets ---- */

static struct sequence *sequence_of(struct state *st, uint64_t id)
{
    if (id == 0)
        return NULL;
    if (id >= SEQUENCES) {
        fail(st, "sequence id");
        return NULL;
    }
    if (!st->sequences[id]) {
        st->sequences[id] = sv_alloc(sizeof *st->sequences[id]);
        st->sequences[id]->last_ns = (uint64_t)INT64_MIN;
    }
    return st->sequences[id];
}

static bool packets(struct state *st, const uint8_t *bytes, size_t len);

/* The size of the block, 0: not what it says it is. */
static size_t inflate_block(uint32_t id, struct sv_pb packed, uint8_t *block, size_t size)
{
    size_t len = (size_t)(packed.end - packed.p);
    if (id == SV_PF_PACKET_COMPRESSED)
        return uncompress(block, &size, packed.p, len) == Z_OK ? size : 0;
#ifdef SV_HAVE_ZSTD
    size = ZSTD_decompress(block, size, packed.p, len);
    return ZSTD_isError(size) ? 0 : size;
#else
    return 0;
#endif
}

static void unpack(struct state *st, uint32_t id, struct sv_pb packed)
{
    enum { BLOCK_MAX = 1 << 22 };
    uint8_t *block = sv_alloc(BLOCK_MAX);
    st->blocks[st->n_blocks++].bytes = block;
    size_t size = inflate_block(id, packed, block, BLOCK_MAX);
    if (size)
        packets(st, block, size);
    else
        fail(st, "compressed packets");
}

static void packet_payload(struct state *st, struct sequence *s, struct sv_pb w, uint64_t ts)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb sub = sv_pb_sub(&f);
        switch (f.id) {
        case SV_PF_PACKET_TRACK_EVENT:
            if (s && s->is_valid)
                event(st, s, sub, ts);
            else
                fail(st, "event without sequence");
            break;
        case SV_PF_PACKET_TRACK_DESCRIPTOR:
            named(st, "track", sub,
                  1u << SV_PF_TRACK_PROCESS | 1u << SV_PF_TRACK_THREAD | 1u << SV_PF_TRACK_COUNTER);
            break;
        case SV_PF_PACKET_CLOCK_SNAPSHOT: snapshot(st, s, sub); break;
        case SV_PF_PACKET_ATTRIBUTES: named(st, "meta", sub, 1u << SV_PF_ATTRIBUTES_LIST); break;
        case SV_PF_PACKET_TRACE_STATS:
            named(st, "stats", sub, 1u << SV_PF_TRACE_STATS_WRITERS);
            break;
        case SV_PF_PACKET_SYNC_MARKER: sv_buf_str(st->out, "sync\n"); break;
        case SV_PF_PACKET_COMPRESSED:
        case SV_PF_PACKET_ZSTD_COMPRESSED: unpack(st, f.id, sub); break;
        default: break;
        }
    }
}

static void packet(struct state *st, struct sv_pb w)
{
    struct sequence *s = sequence_of(st, field_u64(w, SV_PF_PACKET_SEQUENCE_ID, 0));
    struct sv_pb sub;
    uint64_t ts = field_u64(w, SV_PF_PACKET_TIMESTAMP, 0);
    if (field_u64(w, SV_PF_PACKET_PREVIOUS_DROPPED, 0))
        sv_buf_str(st->out, "dropped\n");
    if (s && field_u64(w, SV_PF_PACKET_SEQUENCE_FLAGS, 0) & SV_PF_SEQ_CLEARED) {
        s->is_valid = true;
        forget_interned(s);
        s->clock = 0;
        s->has_track = s->has_extra = false;
    }
    if (s && field_sub(w, SV_PF_PACKET_DEFAULTS, &sub))
        defaults(s, sub);
    if (s && field_sub(w, SV_PF_PACKET_INTERNED_DATA, &sub))
        intern(st, s, sub);
    uint64_t clock = field_u64(w, SV_PF_PACKET_CLOCK_ID, s ? s->clock : 0);
    if (s && clock == SV_PF_CLOCK_SEQUENCE_FIRST &&
        field_u64(w, SV_PF_PACKET_TIMESTAMP, ~0u) != ~0u)
        ts = s->last_ns += ts;
    packet_payload(st, s, w, ts);
}

static bool packets(struct state *st, const uint8_t *bytes, size_t len)
{
    struct sv_pb w = sv_pb_at(bytes, len);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id != SV_PF_TRACE_PACKET || f.type != SV_PB_BYTES)
            fail(st, "not a packet");
        packet(st, sv_pb_sub(&f));
    }
    if (w.bad)
        fail(st, "bad packet");
    return st->is_good;
}

bool pftext(const uint8_t *bytes, size_t len, struct sv_buf *out)
{
    struct state *st = sv_alloc(sizeof *st);
    st->out = out;
    st->is_good = true;
    bool is_good = packets(st, bytes, len);
    for (size_t i = 0; i < SEQUENCES; i++)
        free(st->sequences[i]);
    for (size_t i = 0; i < st->n_blocks; i++)
        free(st->blocks[i].bytes);
    free(st);
    return is_good;
}

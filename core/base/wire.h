/* Protobuf wire format: a bounded cursor for reading, appenders over struct sv_buf for writing.
 *
 * Hand-written on purpose: reading is the hot loop of every .pftrace command and writing that of
 * every capture; a generated reader would copy each message first. Cursors never read past `end`; a
 * malformed field ends the iteration with cur->bad set and `p` at the offending byte. */
#pragma once

#include "core/base/buf.h"
#include "core/base/utf8.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum sv_pb_type { SV_PB_VARINT = 0, SV_PB_FIXED64 = 1, SV_PB_BYTES = 2, SV_PB_FIXED32 = 5 };

struct sv_pb {
    const uint8_t *p, *end;
    bool bad;
};

struct sv_pb_field {
    uint32_t id;
    uint32_t type;
    uint64_t u;           /* varint, fixed32, fixed64: the raw value; bytes: the length */
    const uint8_t *bytes; /* SV_PB_BYTES only */
};

static inline struct sv_pb sv_pb_at(const uint8_t *bytes, size_t len)
{
    return (struct sv_pb){.p = bytes, .end = bytes + len};
}

static inline struct sv_pb sv_pb_sub(const struct sv_pb_field *f)
{
    /* Only SV_PB_BYTES sets `bytes`; of any other field there is nothing to read. */
    return f->type == SV_PB_BYTES ? sv_pb_at(f->bytes, (size_t)f->u) : (struct sv_pb){0};
}

bool sv_pb_varint_slow(struct sv_pb *w, uint64_t *out);

static inline bool sv_pb_varint(struct sv_pb *w, uint64_t *out)
{
    if (__builtin_expect(w->p < w->end && *w->p < 0x80, 1)) {
        *out = *w->p++;
        return true;
    }
    return sv_pb_varint_slow(w, out);
}

/* The next field, or false at the end or on damage (then w->bad). Groups (types 3 and 4) are
 * damage. */
static inline bool sv_pb_next(struct sv_pb *w, struct sv_pb_field *f)
{
    const uint8_t *start = w->p;
    uint64_t tag;
    if (w->p >= w->end)
        return false;
    if (!sv_pb_varint(w, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
        goto bad;
    f->id = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    switch (f->type) {
    case SV_PB_VARINT:
        if (!sv_pb_varint(w, &f->u))
            goto bad;
        return true;
    case SV_PB_BYTES:
        if (!sv_pb_varint(w, &f->u) || f->u > (uint64_t)(w->end - w->p))
            goto bad;
        f->bytes = w->p;
        w->p += f->u;
        return true;
    case SV_PB_FIXED64:
        if (w->end - w->p < 8)
            goto bad;
        memcpy(&f->u, w->p, 8);
        w->p += 8;
        return true;
    case SV_PB_FIXED32: {
        uint32_t u;
        if (w->end - w->p < 4)
            goto bad;
        memcpy(&u, w->p, 4);
        f->u = u;
        w->p += 4;
        return true;
    }
    default: goto bad;
    }
bad:
    w->p = start;
    w->bad = true;
    return false;
}

static inline double sv_pb_double(const struct sv_pb_field *f)
{
    double d;
    memcpy(&d, &f->u, sizeof d);
    return d;
}

/* Signed numbers as unsigned ones, small ones of both signs as small ones. */
static inline uint64_t sv_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t sv_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* ---- writing ---- */

static inline size_t sv_put_varint_at(uint8_t *at, uint64_t v) /* at most 10 bytes */
{
    size_t n = 0;
    while (v >= 0x80) {
        at[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    at[n++] = (uint8_t)v;
    return n;
}

static inline void sv_put_varint(struct sv_buf *b, uint64_t v)
{
    if (sv_buf_reserve(b, 10))
        b->len += sv_put_varint_at(b->data + b->len, v);
}

static inline void sv_put_u64(struct sv_buf *b, uint32_t id, uint64_t v)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_VARINT);
    sv_put_varint(b, v);
}

static inline void sv_put_i64(struct sv_buf *b, uint32_t id, int64_t v)
{
    sv_put_u64(b, id, (uint64_t)v);
}

static inline void sv_put_double(struct sv_buf *b, uint32_t id, double d)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_FIXED64);
    sv_buf_add(b, &d, sizeof d);
}

static inline void sv_put_fixed64(struct sv_buf *b, uint32_t id, uint64_t v)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_FIXED64);
    sv_buf_add(b, &v, sizeof v);
}

static inline void sv_put_bytes(struct sv_buf *b, uint32_t id, const void *bytes, size_t len)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_BYTES);
    sv_put_varint(b, len);
    sv_buf_add(b, bytes, len);
}

/* A field of type string: those are UTF-8, and readers refuse a message whose are not. See
 * sv_buf_utf8(). */
void sv_put_odd_text(struct sv_buf *b, uint32_t id, const char *text, size_t len);
static inline void sv_put_text(struct sv_buf *b, uint32_t id, const char *text, size_t len)
{
    if (__builtin_expect(sv_is_ascii(text, len) || sv_utf8_valid(text, len) == len, 1))
        sv_put_bytes(b, id, text, len);
    else
        sv_put_odd_text(b, id, text, len);
}

/* A nested message whose length is not known yet: begin returns a mark, end writes the shortest
 * length in place (one byte is reserved; longer bodies are moved up by the few bytes that are
 * missing). */
size_t sv_put_begin(struct sv_buf *b, uint32_t id);
void sv_put_end(struct sv_buf *b, size_t mark);

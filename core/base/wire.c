/* Protobuf wire format: the slow paths of the cursor and nested messages.
 *
 * The fast paths are inline in the header; this file holds what is rare (long varints) or once per
 * message. */
#include "core/base/wire.h"

#include <assert.h>

bool sv_pb_varint_slow(struct sv_pb *w, uint64_t *out)
{
    const uint8_t *p = w->p;
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && p < w->end; shift += 7) {
        uint8_t byte = *p++;
        v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if (byte < 0x80) {
            w->p = p;
            *out = v;
            return true;
        }
    }
    w->bad = true;
    return false;
}

void sv_put_odd_text(struct sv_buf *b, uint32_t id, const char *text, size_t len)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_BYTES);
    sv_put_varint(b, sv_utf8_escaped(text, len));
    sv_buf_utf8(b, text, len);
}

size_t sv_put_begin(struct sv_buf *b, uint32_t id)
{
    sv_put_varint(b, (uint64_t)id << 3 | SV_PB_BYTES);
    sv_buf_byte(b, 0);
    return b->len;
}

void sv_put_end(struct sv_buf *b, size_t mark)
{
    if (b->failed)
        return;
    assert(mark >= 1 && mark <= b->len);
    size_t len = b->len - mark;
    if (len < 0x80) { /* most messages are short, and their length has one byte */
        b->data[mark - 1] = (uint8_t)len;
        return;
    }
    uint8_t prefix[10];
    size_t n = sv_put_varint_at(prefix, len);
    if (n > 1) {
        if (!sv_buf_reserve(b, n - 1))
            return;
        memmove(b->data + mark + n - 1, b->data + mark, len);
        b->len += n - 1;
    }
    memcpy(b->data + mark - 1, prefix, n);
}

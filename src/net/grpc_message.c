/* Joins and unpacks a message: see grpc_message.h.
 *
 * The library would unpack it, too, but however large it becomes. */
#include "net/grpc_message.h"

#ifdef SV_HAVE_GRPC
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static enum sv_grpc_status refuse(struct sv_grpc_message *m, enum sv_grpc_status status,
                                  const char *why)
{
    m->why = why;
    return status;
}

static enum sv_grpc_status join(struct sv_grpc_message *m, const grpc_slice_buffer *b, size_t max)
{
    if (b->length > max)
        return refuse(m, SV_GRPC_RESOURCE_EXHAUSTED, "the message is larger than the limit");
    m->len = b->length;
    if (b->count == 1) {
        m->bytes = GRPC_SLICE_START_PTR(b->slices[0]);
        return SV_GRPC_OK;
    }
    m->bytes = m->owned = sv_alloc(b->length + 1);
    size_t at = 0;
    for (size_t i = 0; i < b->count; i++) {
        size_t n = GRPC_SLICE_LENGTH(b->slices[i]);
        if (n)
            memcpy(m->owned + at, GRPC_SLICE_START_PTR(b->slices[i]), n);
        at += n;
    }
    return SV_GRPC_OK;
}

/* Room for more, never past one byte over the limit. */
static void widen(struct sv_grpc_message *m, z_stream *z, size_t *cap, size_t max)
{
    size_t more = *cap ? *cap * 2 : 4096;
    more = more <= max ? more : max + 1;
    m->owned = sv_realloc(m->owned, more);
    z->next_out = m->owned + *cap;
    z->avail_out = (uInt)(more - *cap);
    *cap = more;
}

static int unpack_slices(struct sv_grpc_message *m, z_stream *z, const grpc_slice_buffer *b,
                         size_t max)
{
    size_t cap = 0;
    int rc = Z_OK;
    for (size_t i = 0; i < b->count && rc == Z_OK; i++) {
        z->next_in = (Bytef *)(uintptr_t)GRPC_SLICE_START_PTR(b->slices[i]);
        z->avail_in = (uInt)GRPC_SLICE_LENGTH(b->slices[i]);
        while (rc == Z_OK && (z->avail_in || z->avail_out == 0)) {
            if (z->avail_out == 0 && cap > max)
                return Z_BUF_ERROR;
            if (z->avail_out == 0)
                widen(m, z, &cap, max);
            rc = inflate(z, Z_NO_FLUSH);
        }
        rc = rc == Z_BUF_ERROR && z->avail_in == 0 ? Z_OK : rc;
    }
    return rc;
}

/* gzip and deflate say by their first bytes which of them they are. */
static enum sv_grpc_status unpack(struct sv_grpc_message *m, const grpc_slice_buffer *b, size_t max)
{
    z_stream z = {0};
    if (max >= UINT32_MAX || b->length > max || inflateInit2(&z, 15 + 32) != Z_OK)
        return refuse(m, SV_GRPC_RESOURCE_EXHAUSTED, "the message is larger than the limit");
    int rc = unpack_slices(m, &z, b, max);
    size_t len = z.total_out;
    inflateEnd(&z);
    if (rc == Z_BUF_ERROR || len > max)
        return refuse(m, SV_GRPC_RESOURCE_EXHAUSTED,
                      "the message is larger than the limit when it is decompressed");
    if (rc != Z_STREAM_END)
        return refuse(m, SV_GRPC_INVALID_ARGUMENT, "the compressed message is damaged");
    m->bytes = m->owned;
    m->len = len;
    return SV_GRPC_OK;
}

enum sv_grpc_status sv_grpc_message_open(struct sv_grpc_message *m, const grpc_byte_buffer *from,
                                         size_t max)
{
    *m = (struct sv_grpc_message){.bytes = (const uint8_t *)""};
    if (from->data.raw.compression == GRPC_COMPRESS_NONE)
        return join(m, &from->data.raw.slice_buffer, max);
    return unpack(m, &from->data.raw.slice_buffer, max);
}

void sv_grpc_message_close(struct sv_grpc_message *m)
{
    free(m->owned);
    m->owned = NULL;
}
#endif

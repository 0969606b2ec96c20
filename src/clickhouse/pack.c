/* See pack.h. Called by load.c for each piece. ClickHouse's frame: a checksum (16 bytes, which the
 * settings tell the server to pass over, since zstd has its own), the method, both sizes, the
 * block. */
#include "clickhouse/pack.h"

#include "core/base/mem.h"

#include <endian.h>
#include <stdlib.h>

#ifdef SV_HAVE_ZSTD
#include <zstd.h>

enum { BLOCK_BYTES = 1 << 20, HEAD_BYTES = 25, METHOD_ZSTD = 0x90, LEVEL = 1 };

const char *const sv_ch_pack_header = NULL;
const char *const sv_ch_pack_settings =
    "&decompress=1&http_native_compression_disable_checksumming_on_decompress=1";

struct sv_ch_packer {
    ZSTD_CCtx *zstd;
};

struct sv_ch_packer *sv_ch_packer_new(void)
{
    struct sv_ch_packer *p = sv_alloc(sizeof *p);
    p->zstd = ZSTD_createCCtx();
    if (!p->zstd)
        sv_out_of_memory(0);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
    return p;
}

void sv_ch_packer_free(struct sv_ch_packer *p)
{
    if (p)
        ZSTD_freeCCtx(p->zstd);
    free(p);
}

static void put_u32(uint8_t *to, size_t v)
{
    uint32_t little = htole32((uint32_t)v);
    memcpy(to, &little, sizeof little);
}

int sv_ch_pack(struct sv_ch_packer *p, const void *bytes, size_t n, struct sv_buf *to,
               struct sv_err *err)
{
    const uint8_t *at = bytes;
    sv_buf_init(to, n + n / 8 + (1u << 20));
    while (n > 0) {
        size_t some = n < BLOCK_BYTES ? n : BLOCK_BYTES, space = ZSTD_compressBound(some);
        if (!sv_buf_reserve(to, HEAD_BYTES + space))
            return sv_error(err, SV_ENOMEM, "a piece cannot be compressed");
        uint8_t *head = to->data + to->len;
        size_t packed = ZSTD_compress2(p->zstd, head + HEAD_BYTES, space, at, some);
        if (ZSTD_isError(packed))
            return sv_error(err, SV_ENOMEM, "a piece cannot be compressed: %s",
                            ZSTD_getErrorName(packed));
        memset(head, 0, 16);
        head[16] = METHOD_ZSTD;
        put_u32(head + 17, packed + 9);
        put_u32(head + 21, some);
        to->len += HEAD_BYTES + packed;
        at += some;
        n -= some;
    }
    return 0;
}
#else
#define ZLIB_CONST
#include <zlib.h>

const char *const sv_ch_pack_header = "Content-Encoding: gzip";
const char *const sv_ch_pack_settings = "";

struct sv_ch_packer {
    z_stream zip;
};

struct sv_ch_packer *sv_ch_packer_new(void)
{
    struct sv_ch_packer *p = sv_alloc(sizeof *p);
    if (deflateInit2(&p->zip, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        sv_out_of_memory(0);
    return p;
}

void sv_ch_packer_free(struct sv_ch_packer *p)
{
    if (p)
        deflateEnd(&p->zip);
    free(p);
}

int sv_ch_pack(struct sv_ch_packer *p, const void *bytes, size_t n, struct sv_buf *to,
               struct sv_err *err)
{
    /* Reset first: of a stream that has ended the bound does not count the header. */
    bool is_ready = deflateReset(&p->zip) == Z_OK;
    size_t bound = deflateBound(&p->zip, n);
    sv_buf_init(to, bound);
    if (!is_ready || !sv_buf_reserve(to, bound))
        return sv_error(err, SV_ENOMEM, "no memory for compression");
    p->zip.next_in = bytes;
    p->zip.avail_in = (uInt)n;
    p->zip.next_out = to->data;
    p->zip.avail_out = (uInt)bound;
    if (deflate(&p->zip, Z_FINISH) != Z_STREAM_END)
        return sv_error(err, SV_ENOMEM, "a piece cannot be compressed");
    to->len = bound - p->zip.avail_out;
    return 0;
}
#endif

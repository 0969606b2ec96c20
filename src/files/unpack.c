/* Members of gzip files and frames of zstd files, unpacked by several threads.
 *
 * The file is cut into parts of whole members or frames: frames say how long they are, members are
 * guessed by their heads. A thread unpacks a part into memory, all of it or nothing, and the input
 * gets the parts in order. A part that is not whole (damage, a wrong guess, a member that is too
 * long, bytes after the last one) is the end of it: the input's own decoder goes on at the part's
 * first byte. So what comes out, and what is said about damage, is the same as with one thread. */
#include "files/unpack.h"

#include "core/base/mem.h"
#include "threads/workers.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define PART_BYTES ((size_t)512 << 10) /* stored; a part may be as long as PART_TIMES of it */
#define PART_TIMES 8u
#define OUT_GOAL   ((size_t)2 << 20)
#define OUT_MAX    ((size_t)8 << 20) /* what a part may be unpacked */
#define HEAD_BYTES 10u               /* of a gzip member */

struct part {
    uint64_t at; /* of its first byte in the file */
    uint8_t *raw;
    size_t raw_cap, n; /* n: stored bytes */
    uint8_t *out;
    size_t len, given;
    bool is_whole;
    z_stream gzip;
    bool has_gzip;
#ifdef SV_HAVE_ZSTD
    ZSTD_DCtx *zstd;
#endif
};

struct unpacker {
    struct sv_input *in;
    struct sv_line *line;
    bool is_gzip;
    uint64_t at; /* the next part */
    size_t part_bytes;
    struct part *part; /* at hand */
};

/* ---- cutting ---- */

/* The head of a member by what its bytes may be, see RFC 1952: magic, method, flags, (time,) extra
 * flags, system. */
static bool is_head(const uint8_t *p)
{
    return p[0] == 0x1f && p[1] == 0x8b && p[2] == 8 && (p[3] & 0xe0) == 0 &&
           (p[8] == 0 || p[8] == 2 || p[8] == 4) && (p[9] <= 13 || p[9] == 255);
}

/* A part grows by whole members or frames until it has OUT_GOAL bytes unpacked, as far as is known:
 * the first one belongs to it anyway. */
struct cut {
    size_t n;
    uint64_t out;
};

static bool add_to_part(struct cut *c, size_t n, uint64_t out)
{
    if (c->n > 0 && c->out + out > OUT_GOAL)
        return false;
    c->n += n;
    c->out += out;
    return true;
}

/* A member says at its end how long it is unpacked, but for multiples of 4 GiB. */
static bool add_member(struct cut *c, const uint8_t *raw, size_t end)
{
    uint32_t out;
    memcpy(&out, raw + end - sizeof out, sizeof out);
    return add_to_part(c, end - c->n, le32toh(out));
}

static size_t cut_gzip(const uint8_t *raw, size_t n, bool is_last)
{
    struct cut c = {0};
    bool is_on = true;
    for (const uint8_t *p = raw + 1; is_on && n > HEAD_BYTES; p++) {
        p = memmem(p, (size_t)(raw + n - p), "\x1f\x8b\x08", 3);
        if (!p || p + HEAD_BYTES > raw + n)
            break;
        if (is_head(p) && p >= raw + HEAD_BYTES)
            is_on = add_member(&c, raw, (size_t)(p - raw));
    }
    if (is_on && is_last && n > HEAD_BYTES)
        add_member(&c, raw, n);
    return c.n;
}

static size_t cut_zstd(const uint8_t *raw, size_t n)
{
    struct cut c = {0};
#ifdef SV_HAVE_ZSTD
    while (c.n < n) {
        size_t frame = ZSTD_findFrameCompressedSize(raw + c.n, n - c.n);
        if (ZSTD_isError(frame))
            break;
        unsigned long long out = ZSTD_getFrameContentSize(raw + c.n, n - c.n);
        bool is_known = out != ZSTD_CONTENTSIZE_UNKNOWN && out != ZSTD_CONTENTSIZE_ERROR;
        if (!add_to_part(&c, frame, is_known && out < OUT_GOAL ? out : OUT_GOAL))
            break;
    }
#else
    (void)raw;
    (void)n;
#endif
    return c.n;
}

/* Up to `want` bytes of the file from `at` on; fewer at its end, or where it cannot be read. */
static void read_raw(const struct unpacker *u, struct part *k, size_t want)
{
    if (k->raw_cap < want)
        k->raw = sv_grow(k->raw, &k->raw_cap, want, 1);
    while (k->n < want) {
        ssize_t n = sv_input_read_at(u->in, k->at + k->n, k->raw + k->n, want - k->n);
        if (n <= 0)
            break;
        k->n += (size_t)n;
    }
}

/* The part at u->at; false: there is none that is known to be whole. */
static bool cut(const struct unpacker *u, struct part *k)
{
    k->at = u->at;
    k->n = 0;
    for (size_t want = u->part_bytes; want <= PART_TIMES * u->part_bytes; want *= 2) {
        read_raw(u, k, want);
        bool is_last = k->n < want;
        size_t n = u->is_gzip ? cut_gzip(k->raw, k->n, is_last) : cut_zstd(k->raw, k->n);
        if (n > 0 || is_last) {
            k->n = n;
            return n > 0;
        }
    }
    return false;
}

static bool fill_part(void *ctx, void *item)
{
    struct unpacker *u = ctx;
    struct part *k = item;
    if (!cut(u, k))
        return false;
    u->at += k->n;
    return true;
}

/* ---- unpacking: on any thread ---- */

static bool start_gzip(struct part *k)
{
    if (k->has_gzip)
        return inflateReset(&k->gzip) == Z_OK;
    k->has_gzip = inflateInit2(&k->gzip, 15 + 16) == Z_OK;
    return k->has_gzip;
}

static bool unpack_gzip(struct part *k)
{
    k->gzip.next_in = k->raw;
    k->gzip.avail_in = (uInt)k->n;
    while (k->gzip.avail_in > 0) {
        int code = start_gzip(k) ? Z_OK : Z_MEM_ERROR;
        while (code == Z_OK) {
            k->gzip.next_out = k->out + k->len;
            k->gzip.avail_out = (uInt)(OUT_MAX - k->len);
            code = inflate(&k->gzip, Z_NO_FLUSH); /* Z_BUF_ERROR: too long, or not all there */
            k->len = OUT_MAX - k->gzip.avail_out;
        }
        if (code != Z_STREAM_END)
            return false;
    }
    return true;
}

static bool unpack_zstd(struct part *k)
{
#ifdef SV_HAVE_ZSTD
    if (!k->zstd && !(k->zstd = ZSTD_createDCtx()))
        return false;
    k->len = ZSTD_decompressDCtx(k->zstd, k->out, OUT_MAX, k->raw, k->n);
    return !ZSTD_isError(k->len);
#else
    (void)k;
    return false;
#endif
}

static void unpack_part(void *ctx, void *item)
{
    const struct unpacker *u = ctx;
    struct part *k = item;
    k->len = k->given = 0;
    if (!k->out) /* only what is written takes memory */
        k->out = sv_realloc(NULL, OUT_MAX);
    k->is_whole = u->is_gzip ? unpack_gzip(k) : unpack_zstd(k);
}

static void clean_part(void *item)
{
    struct part *k = item;
    if (k->has_gzip)
        inflateEnd(&k->gzip);
#ifdef SV_HAVE_ZSTD
    ZSTD_freeDCtx(k->zstd);
#endif
    free(k->raw);
    free(k->out);
}

/* ---- the input's side ---- */

static size_t give(void *ctx, uint8_t *dst, size_t cap, uint64_t *stored)
{
    struct unpacker *u = ctx;
    while (!u->part || u->part->given == u->part->len) {
        if (u->part)
            *stored = u->part->at + u->part->n;
        u->part = sv_line_next(u->line);
        if (!u->part || !u->part->is_whole)
            return 0;
    }
    struct part *k = u->part;
    size_t n = k->len - k->given < cap ? k->len - k->given : cap;
    memcpy(dst, k->out + k->given, n);
    k->given += n;
    return n;
}

static void close_unpacker(void *ctx)
{
    struct unpacker *u = ctx;
    sv_line_free(u->line);
    free(u);
}

void sv_unpack_beside(struct sv_input *in, struct sv_workers *workers, size_t part_bytes)
{
    static const struct sv_line_ops line_ops = {fill_part, unpack_part, clean_part,
                                                sizeof(struct part)};
    static const struct sv_input_unpacker ops = {give, close_unpacker};
    struct unpacker trial = {.in = in, .part_bytes = part_bytes ? part_bytes : PART_BYTES};
    struct part first = {0};
    uint8_t head[HEAD_BYTES];
    if (sv_workers_count(workers) < 2 || in->size_bytes <= trial.part_bytes ||
        sv_input_read_at(in, 0, head, sizeof head) != sizeof head)
        return;
    trial.is_gzip = is_head(head);
    bool has_parts = cut(&trial, &first) && first.n < in->size_bytes;
    clean_part(&first);
    if (!has_parts)
        return;
    struct unpacker *u = sv_alloc(sizeof *u);
    *u = trial;
    u->line = sv_line_new(workers, &line_ops, u);
    sv_input_unpack_by(in, u->is_gzip ? "gzip" : "zstd", &ops, u);
}

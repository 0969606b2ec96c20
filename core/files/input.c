/* Input: a sliding window over a file, a pipe or memory, decompressed on the way.
 *
 * Every reader uses it: open → (fill, skip)* → report → close. Bytes flow in one direction: the
 * operating system (or the caller's memory) → `raw` (compressed bytes only, and the first bytes by
 * which the compression is recognised) → the window. A plain file skips `raw` and is read straight
 * into the window, whose size is chosen so that the reader finds the bytes still in the cache.
 *
 * A compressed stream that breaks off or is damaged ends the input like an end of file, with
 * `truncated` set: what was decoded before is good and must not be lost. A failed read is an error,
 * and stays one.
 *
 * It must not trust lengths: the window grows by doubling as bytes arrive, up to a limit. */
#include "core/files/input.h"

#include "core/base/mem.h"
#include "core/base/report.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define WINDOW_BYTES            \
    SV_TABLE((size_t)256 << 10, \
             (size_t)8 << 10) /* 256 KiB … 4 MiB read equally fast; leaves half of a small L2 */
/* With less space after it (a small one: than a quarter) the window moves to the front. */
#define READ_MIN    SV_TABLE((size_t)64 << 10, (size_t)2 << 10)
#define RAW_BYTES   SV_TABLE((size_t)128 << 10, (size_t)8 << 10)
#define SMALL_BYTES ((size_t)4 << 10) /* the smallest buffers, for small files */
/* The kernel copies into an address that is off by 16 bytes at a fifth of the speed (rep movsb on
 * the processors measured: 1.6 against 8 GB/s), so every read() into the window begins on a cache
 * line. */
#define ALIGN ((size_t)64)

enum form { FORM_UNKNOWN, FORM_PLAIN, FORM_GZIP, FORM_ZSTD };

struct sv_input_impl {
    int fd; /* -1: memory */
    bool owns_fd;
    const uint8_t *memory;
    size_t memory_left;
    const struct sv_piece *pieces; /* of fd; NULL: all of it */
    struct sv_piece own_piece;
    size_t n_pieces;
    uint64_t piece_used; /* bytes of the first one */
    enum form form;
    bool ended;      /* nothing more will come out of the decoder */
    bool in_stream;  /* inside a gzip member or a zstd frame */
    uint8_t *window; /* cap + SV_INPUT_PAD bytes */
    size_t cap;
    uint8_t *raw, *raw_at; /* raw_cap bytes; raw_at: first byte not yet used */
    size_t raw_cap;
    size_t raw_len; /* from raw_at */
    uint64_t read_bytes;
    z_stream gzip;
    bool has_gzip;
#ifdef SV_HAVE_ZSTD
    ZSTD_DStream *zstd;
    size_t zstd_want; /* bytes that the decoder asked for */
    bool zstd_holds;  /* it may hold more output than fitted */
#endif
    const struct sv_input_unpacker *unpacker; /* NULL: the decoders here */
    void *unpacker_ctx;
    uint64_t unpacked;    /* stored bytes of what it gave */
    struct sv_err failed; /* code 0: no failure yet */
    char damage[128];     /* why `truncated` was set */
};

/* ---- the operating system ---- */

/* Remembers the first failure, so that every later call returns the same error. */
static int fail(struct sv_input *in, struct sv_err *err)
{
    const struct sv_err *first = &in->impl->failed;
    return sv_err_set(err, first->code, first->pos, "%s", first->msg);
}

/* From the piece that is due; 0 at the end of the last one. */
static ssize_t read_piece(struct sv_input_impl *m, uint8_t *dst, size_t cap)
{
    while (m->n_pieces > 0 && m->piece_used == m->pieces->bytes) {
        m->pieces++;
        m->n_pieces--;
        m->piece_used = 0;
    }
    if (m->n_pieces == 0)
        return 0;
    uint64_t left = m->pieces->bytes - m->piece_used;
    ssize_t n =
        pread(m->fd, dst, left < cap ? (size_t)left : cap, (off_t)(m->pieces->at + m->piece_used));
    if (n > 0)
        m->piece_used += (uint64_t)n;
    return n;
}

static ssize_t read_fd(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    for (;;) {
        ssize_t n = m->pieces ? read_piece(m, dst, cap) : read(m->fd, dst, cap);
        if (n >= 0)
            return n;
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN) { /* someone made our standard input non-blocking */
            struct pollfd p = {.fd = m->fd, .events = POLLIN};
            if (poll(&p, 1, -1) >= 0 || errno == EINTR)
                continue;
        }
        return sv_err_sys(&m->failed, "cannot read");
    }
}

/* Stored bytes: > 0, 0 at the end, negative on an error (then in impl->failed). */
static ssize_t read_stored(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    if (cap > (size_t)SSIZE_MAX / 2)
        cap = (size_t)SSIZE_MAX / 2;
    ssize_t n;
    if (m->fd >= 0) {
        n = read_fd(in, dst, cap);
    } else {
        n = (ssize_t)(cap < m->memory_left ? cap : m->memory_left);
        if (n > 0)
            memcpy(dst, m->memory, (size_t)n);
        m->memory += n;
        m->memory_left -= (size_t)n;
    }
    if (n > 0) /* see sv_input_read_bytes() */
        __atomic_store_n(&m->read_bytes, m->read_bytes + (uint64_t)n, __ATOMIC_RELAXED);
    return n;
}

/* `most` bytes, or as many as a small file can fill: programs that read thousands of them should
 * not pay for large ones. */
static size_t buffer_size(const struct sv_input *in, size_t most)
{
    size_t small = SMALL_BYTES;
    while (small < most && small - SMALL_BYTES / 2 < in->size_bytes)
        small *= 2;
    return in->size_bytes > 0 && small < most ? small : most;
}

/* Makes at least `need` raw bytes available unless the file ends before; false on a read error. */
static bool raw_need(struct sv_input *in, size_t need)
{
    struct sv_input_impl *m = in->impl;
    assert(need <= m->raw_cap);
    while (m->raw_len < need) {
        if (m->raw_len > 0 && m->raw_at != m->raw)
            memmove(m->raw, m->raw_at, m->raw_len);
        m->raw_at = m->raw;
        ssize_t n = read_stored(in, m->raw + m->raw_len, m->raw_cap - m->raw_len);
        if (n < 0)
            return false;
        if (n == 0)
            return true;
        m->raw_len += (size_t)n;
    }
    return true;
}

static void raw_skip(struct sv_input_impl *m, size_t n)
{
    m->raw_at += n;
    m->raw_len -= n;
}

/* ---- compression ---- */

static bool is_gzip(const struct sv_input_impl *m)
{
    return m->raw_len >= 3 && m->raw_at[0] == 0x1f && m->raw_at[1] == 0x8b && m->raw_at[2] == 8;
}

static bool is_zstd(const struct sv_input_impl *m)
{
    if (m->raw_len < 4)
        return false;
    uint32_t magic = (uint32_t)m->raw_at[0] | (uint32_t)m->raw_at[1] << 8 |
                     (uint32_t)m->raw_at[2] << 16 | (uint32_t)m->raw_at[3] << 24;
    return magic == 0xfd2fb528u ||
           (magic & 0xfffffff0u) == 0x184d2a50u; /* a frame, or a skippable one */
}

static void break_off(struct sv_input *in, const char *why)
{
    struct sv_input_impl *m = in->impl;
    in->truncated = true;
    m->ended = true;
    struct sv_err text = {0};
    sv_error(&text, SV_EFORMAT, "the %s stream breaks off after %llu stored bytes: %s",
             in->compression, (unsigned long long)(m->read_bytes - m->raw_len), why);
    size_t n = strnlen(text.msg, sizeof m->damage - 1);
    memcpy(m->damage, text.msg, n);
    m->damage[n] = '\0';
}

/* Between two members or frames: 1 another one follows, 0 the end (m->ended), -1 read error. Zeros
 * are padding (tapes, block devices) and nothing to talk about; everything else is noted. */
static int next_stream(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    if (!raw_need(in, 4))
        return -1;
    if (m->form == FORM_GZIP ? is_gzip(m) : is_zstd(m))
        return 1;
    for (;;) {
        while (m->raw_len > 0 && *m->raw_at == 0)
            raw_skip(m, 1);
        if (m->raw_len > 0)
            break;
        if (!raw_need(in, 1))
            return -1;
        if (m->raw_len == 0)
            break;
    }
    in->has_trailing = m->raw_len > 0;
    m->ended = true;
    return 0;
}

static int memory_failure(struct sv_input *in)
{
    return sv_error(&in->impl->failed, SV_ENOMEM, "no memory for the %s decoder", in->compression);
}

/* One turn of inflate: true when the member continues or ended well, false when the stream is done
 * for. Without new bytes it may still give some that it held back. */
static bool inflate_turn(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    m->gzip.next_in = m->raw_at;
    m->gzip.avail_in = (uInt)m->raw_len;
    uInt out_before = m->gzip.avail_out;
    bool starved = m->raw_len == 0;
    int rc = inflate(&m->gzip, Z_NO_FLUSH);
    size_t used = m->raw_len - m->gzip.avail_in;
    raw_skip(m, used);
    if (rc == Z_STREAM_END) {
        m->in_stream = false;
        return true;
    }
    bool moved = used > 0 || m->gzip.avail_out != out_before;
    if ((rc == Z_OK || rc == Z_BUF_ERROR) && moved)
        return true;
    if (rc == Z_MEM_ERROR)
        memory_failure(in);
    else if (starved)
        break_off(in, "more was expected");
    else
        break_off(in, m->gzip.msg != NULL ? m->gzip.msg : "is damaged");
    return false;
}

static int gzip_begin(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    m->in_stream = true;
    if (m->has_gzip)
        return inflateReset(&m->gzip) == Z_OK ? 0 : memory_failure(in);
    if (inflateInit2(&m->gzip, 15 + 16) != Z_OK)
        return memory_failure(in);
    m->has_gzip = true;
    return 0;
}

/* Decoded bytes into dst: > 0, 0 at the end, negative on an error. */
static ssize_t inflate_some(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    uInt size = cap < INT_MAX ? (uInt)cap : INT_MAX;
    m->gzip.next_out = dst;
    m->gzip.avail_out = size;
    while (m->gzip.avail_out == size && !m->ended) {
        if (!m->in_stream) {
            int more = next_stream(in);
            if (more <= 0)
                return more;
            if (gzip_begin(in) < 0)
                return -1;
        }
        if (!raw_need(in, 1))
            return -1;
        if (!inflate_turn(in) && !m->ended)
            return -1;
    }
    return (ssize_t)(size - m->gzip.avail_out);
}

#ifdef SV_HAVE_ZSTD
enum { ZSTD_BLOCK_HEAD = 3 };

static ssize_t zstd_some(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    if (m->zstd == NULL && (m->zstd = ZSTD_createDStream()) == NULL)
        return memory_failure(in);
    ZSTD_outBuffer out = {dst, cap, 0};
    while (out.pos == 0 && !m->ended) {
        if (!m->in_stream) {
            int more = next_stream(in);
            if (more <= 0)
                return more;
            m->in_stream = true;
            m->zstd_want = ZSTD_initDStream(m->zstd);
        }
        if (!raw_need(in, 1))
            return -1;
        /* What is decoded before an error in the same call is lost, so the decoder gets a block at
         * a time, without the head of the next one, which it asks for as well, and nothing while it
         * may still hold decoded bytes. */
        size_t want = m->zstd_want > ZSTD_BLOCK_HEAD ? m->zstd_want - ZSTD_BLOCK_HEAD
                                                     : m->zstd_want;
        size_t most = m->zstd_holds ? 0 : m->raw_len < want ? m->raw_len : want;
        ZSTD_inBuffer raw = {m->raw_at, most, 0};
        size_t left = m->zstd_want = ZSTD_decompressStream(m->zstd, &out, &raw);
        bool starved = m->raw_len == 0 && out.pos == 0;
        m->zstd_holds = out.pos == cap;
        raw_skip(m, raw.pos);
        if (ZSTD_isError(left))
            break_off(in, ZSTD_getErrorName(left));
        else if (left == 0)
            m->in_stream = false;
        else if (starved)
            break_off(in, "more was expected");
    }
    return (ssize_t)out.pos;
}
#else
static ssize_t zstd_some(struct sv_input *in, uint8_t *dst, size_t cap)
{
    (void)dst;
    (void)cap;
    return sv_error(&in->impl->failed, SV_EUSAGE,
                    "compressed with zstd, which this build of stave cannot read: decompress it "
                    "first (zstd -d)");
}
#endif

static void make_raw(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    m->raw_cap = buffer_size(in, RAW_BYTES);
    m->raw = sv_alloc_aligned(m->raw_cap, ALIGN);
    m->raw_at = m->raw;
}

static int recognise(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    make_raw(in);
    if (!raw_need(in, 4))
        return -1;
    if (is_gzip(m)) {
        m->form = FORM_GZIP;
        in->compression = "gzip";
    } else if (is_zstd(m)) {
        m->form = FORM_ZSTD;
        in->compression = "zstd";
    } else {
        m->form = FORM_PLAIN;
    }
    return 0;
}

static ssize_t plain_some(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    if (m->raw_len == 0)
        return read_stored(in, dst, cap);
    size_t n = m->raw_len < cap ? m->raw_len : cap; /* what was read to recognise the compression */
    memcpy(dst, m->raw_at, n);
    raw_skip(m, n);
    return (ssize_t)n;
}

/* ---- others' decoders ---- */

void sv_input_unpack_by(struct sv_input *in, const char *compression,
                        const struct sv_input_unpacker *ops, void *ctx)
{
    struct sv_input_impl *m = in->impl;
    assert(m->form == FORM_UNKNOWN && !m->unpacker);
    m->unpacker = ops;
    m->unpacker_ctx = ctx;
    in->compression = compression;
}

static void close_unpacker(struct sv_input_impl *m)
{
    m->unpacker->close(m->unpacker_ctx);
    m->unpacker = NULL;
}

void sv_input_unpack_end(struct sv_input *in)
{
    if (!in->impl->unpacker)
        return;
    close_unpacker(in->impl);
    in->impl->ended = true;
}

ssize_t sv_input_read_at(const struct sv_input *in, uint64_t at, uint8_t *dst, size_t cap)
{
    const struct sv_input_impl *m = in->impl;
    if (in->size_bytes == 0 || m->pieces || at >= in->size_bytes)
        return 0;
    if (m->fd >= 0)
        return pread(m->fd, dst, cap, (off_t)at);
    size_t n = in->size_bytes - at < cap ? (size_t)(in->size_bytes - at) : cap;
    memcpy(dst, m->memory + at, n);
    return (ssize_t)n;
}

/* The unpacker gives no more: the decoder here goes on between two members or frames. */
static int go_on(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    close_unpacker(m);
    m->form = strcmp(in->compression, "gzip") == 0 ? FORM_GZIP : FORM_ZSTD;
    make_raw(in);
    if (m->fd < 0) {
        m->memory += m->unpacked;
        m->memory_left -= (size_t)m->unpacked;
    } else if (lseek(m->fd, (off_t)m->unpacked, SEEK_SET) < 0) {
        return sv_err_sys(&m->failed, "cannot read");
    }
    return 0;
}

static ssize_t unpacked_some(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    size_t n = m->unpacker->give(m->unpacker_ctx, dst, cap, &m->unpacked);
    __atomic_store_n(&m->read_bytes, m->unpacked, __ATOMIC_RELAXED);
    return n == 0 ? go_on(in) : (ssize_t)n;
}

/* ---- the window ---- */

/* The window in a buffer of `cap` bytes, where its end, the place of the next read, is aligned. */
static void place_window(struct sv_input *in, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    uint8_t *old = m->window;
    size_t head = (ALIGN - in->len % ALIGN) % ALIGN;
    assert(head + in->len <= cap && cap % ALIGN == 0);
    if (old == NULL || cap != m->cap) {
        m->window = sv_alloc_aligned(cap + SV_INPUT_PAD, ALIGN);
        m->cap = cap;
    }
    memmove(m->window + head, in->data, in->len);
    in->data = m->window + head;
    if (old != m->window)
        free(old);
}

static void make_space(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    if (m->window == NULL) {
        place_window(in, buffer_size(in, WINDOW_BYTES));
        return;
    }
    size_t read_min = m->cap / 4 < READ_MIN ? m->cap / 4 : READ_MIN;
    if (m->cap - (size_t)(in->data - m->window) - in->len >= read_min)
        return;
    /* More than half full means that the reader needs long records: doubling keeps the moves
     * linear. */
    size_t cap = m->cap, most = (in->window_limit / ALIGN + 2) * ALIGN;
    if (in->len > cap / 2 && cap < most)
        cap = cap < most / 2 ? cap * 2 : most;
    place_window(in, cap);
}

/* What vector code loads past the end is nothing in particular, but always the same. */
static void zero_pad(struct sv_input *in)
{
    struct sv_input_impl *m = in->impl;
    if (m->window)
        memset(m->window + (in->data - m->window) + in->len, 0, SV_INPUT_PAD);
}

static ssize_t produce(struct sv_input *in, uint8_t *dst, size_t cap)
{
    struct sv_input_impl *m = in->impl;
    if (m->ended)
        return 0;
    if (m->unpacker) {
        ssize_t n = unpacked_some(in, dst, cap);
        if (n != 0)
            return n;
    }
    if (m->form == FORM_UNKNOWN && recognise(in) < 0)
        return -1;
    switch (m->form) {
    case FORM_GZIP: return inflate_some(in, dst, cap);
    case FORM_ZSTD: return zstd_some(in, dst, cap);
    default: return plain_some(in, dst, cap);
    }
}

int sv_input_fill(struct sv_input *in, size_t need, struct sv_err *err)
{
    struct sv_input_impl *m = in->impl;
    if (m->failed.code != 0)
        return fail(in, err);
    if (need > in->window_limit)
        return sv_err_set(
            err, SV_ENOMEM, (int64_t)in->pos,
            "a record of %zu bytes or more is longer than the limit of %zu bytes for one record",
            need, in->window_limit);
    while (in->len < need && !in->eof) {
        make_space(in);
        uint8_t *end = m->window + (in->data - m->window) + in->len;
        ssize_t n = produce(in, end, m->cap - (size_t)(end - m->window));
        if (n < 0)
            return fail(in, err);
        in->len += (size_t)n;
        if (n == 0)
            in->eof = true;
    }
    zero_pad(in);
    return in->len >= need;
}

/* ---- blocks ---- */

/* A buffer that fits the bytes left in the window takes its place; they are few: what is left is
 * less than a record, mostly. */
void sv_input_take(struct sv_input *in, size_t n, struct sv_input_block *b)
{
    struct sv_input_impl *m = in->impl;
    assert(n <= in->len);
    struct sv_input_block taken = {
        .data = in->data, .len = n, .pos = in->pos, .buffer = m->window, .cap = m->cap};
    size_t cap = buffer_size(in, WINDOW_BYTES);
    while (cap < in->len - n + ALIGN)
        cap *= 2;
    if (b->cap < cap || b->cap > 4 * cap) {
        free(b->buffer);
        b->buffer = sv_alloc_aligned(cap + SV_INPUT_PAD, ALIGN);
        b->cap = cap;
    }
    sv_input_skip(in, n);
    m->window = b->buffer;
    m->cap = b->cap;
    size_t head = (ALIGN - in->len % ALIGN) % ALIGN;
    memcpy(m->window + head, in->data, in->len);
    in->data = m->window + head;
    zero_pad(in);
    *b = taken;
}

void sv_input_put_back(struct sv_input *in, const uint8_t *bytes, size_t n)
{
    struct sv_input_impl *m = in->impl;
    uint8_t *old = m->window;
    size_t len = n + in->len, head = (ALIGN - len % ALIGN) % ALIGN;
    m->cap = head + len;
    m->window = sv_alloc_aligned(m->cap + SV_INPUT_PAD, ALIGN);
    memcpy(m->window + head, bytes, n);
    memcpy(m->window + head + n, in->data, in->len);
    in->data = m->window + head;
    in->len = len;
    in->pos -= n;
    zero_pad(in);
    free(old);
}

void sv_input_block_fini(struct sv_input_block *b)
{
    free(b->buffer);
    *b = (struct sv_input_block){0};
}

/* ---- open and close ---- */

static struct sv_input *new_input(const char *name, int fd)
{
    struct sv_input *in = sv_alloc(sizeof *in);
    in->impl = sv_alloc(sizeof *in->impl);
    in->impl->fd = fd;
    in->name = sv_strndup(name, strlen(name));
    in->window_limit = SV_INPUT_WINDOW_LIMIT;
    in->data = (const uint8_t *)"";
    return in;
}

int sv_input_open(const char *path, struct sv_input **out, struct sv_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return sv_err_sys(err, "cannot open");
    struct stat st;
    int rc = SV_OK;
    if (fstat(fd, &st) != 0)
        rc = sv_err_sys(err, "cannot open");
    else if (S_ISDIR(st.st_mode))
        rc = sv_error(err, SV_EIO, "is a directory, not a file");
    if (rc < 0) {
        if (!is_stdin)
            close(fd);
        return rc;
    }
    struct sv_input *in = new_input(is_stdin ? "(stdin)" : path, fd);
    in->impl->owns_fd = !is_stdin;
    if (S_ISREG(st.st_mode)) {
        in->size_bytes = (uint64_t)st.st_size;
        /* only advice: a refusal costs nothing but speed */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    *out = in;
    return SV_OK;
}

int sv_input_open_memory(const void *bytes, size_t len, const char *name, struct sv_input **out,
                         struct sv_err *err)
{
    (void)err; /* cannot fail, but reads like its sibling */
    struct sv_input *in = new_input(name, -1);
    in->impl->memory = bytes;
    in->impl->memory_left = len;
    in->size_bytes = len;
    *out = in;
    return SV_OK;
}

void sv_input_open_pieces(int fd, const struct sv_piece *pieces, size_t n, const char *name,
                          struct sv_input **out)
{
    static const struct sv_piece none = {0};
    struct sv_input *in = new_input(name, fd);
    in->impl->pieces = n ? pieces : &none;
    in->impl->n_pieces = n;
    in->impl->form = FORM_PLAIN;
    for (size_t i = 0; i < n; i++)
        in->size_bytes += pieces[i].bytes;
    *out = in;
}

void sv_input_open_part(int fd, const struct sv_piece *part, const char *name,
                        struct sv_input **out)
{
    sv_input_open_pieces(fd, part, 1, name, out);
    (*out)->impl->form = FORM_UNKNOWN;
}

void sv_input_take_part(int fd, const struct sv_piece *part, const char *name,
                        struct sv_input **out)
{
    sv_input_open_part(fd, part, name, out);
    (*out)->impl->own_piece = *part;
    (*out)->impl->pieces = &(*out)->impl->own_piece;
    (*out)->impl->owns_fd = true;
}

void sv_input_close(struct sv_input *in)
{
    if (in == NULL)
        return;
    struct sv_input_impl *m = in->impl;
    sv_input_unpack_end(in);
    if (m->has_gzip)
        inflateEnd(&m->gzip);
#ifdef SV_HAVE_ZSTD
    ZSTD_freeDStream(m->zstd);
#endif
    if (m->owns_fd)
        close(m->fd);
    free(m->window);
    free(m->raw);
    free(m);
    free(in->name);
    free(in);
}

void sv_input_report(const struct sv_input *in, struct sv_report *r)
{
    int64_t end = (int64_t)(in->pos + in->len);
    if (in->truncated)
        sv_report_add(r, SV_DAMAGE, "broken compressed stream", 1, end, "%s", in->impl->damage);
    if (in->has_trailing)
        sv_report_add(r, SV_NOTE, "bytes after the compressed stream", 1, end, "ignored");
}

uint64_t sv_input_read_bytes(const struct sv_input *in)
{
    return __atomic_load_n(&in->impl->read_bytes, __ATOMIC_RELAXED);
}

int sv_input_need_all(struct sv_input *in, const char *too_large, struct sv_err *err)
{
    int more = sv_input_need(in, in->window_limit, err);
    return more > 0 ? sv_error(err, SV_ELIMIT, "%s", too_large) : more;
}

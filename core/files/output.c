/* Output: bytes to a file, a pipe or memory, through a buffer and, if asked, a compressor.
 *
 * Every writer uses it: open → write* → close (or discard). A regular file grows under a temporary
 * name in the same folder (so that the rename is atomic) and takes its final name when everything
 * has been written; an existing file keeps its content until then. Bytes flow: caller → `buf` →
 * [compressor → `packed`] → file descriptor or memory.
 *
 * The first failure is remembered, everything after it is ignored, and close() returns it: callers
 * do not check single writes. It must not touch signal dispositions: SIGPIPE is the program's
 * decision. */
#include "core/files/output.h"

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/files/file_id.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

#define BUF_BYTES    SV_TABLE((size_t)256 << 10, (size_t)8 << 10)
#define PACKED_BYTES ((size_t)128 << 10)
#define GZIP_LEVEL   6
#define ZSTD_LEVEL   3
/* Bytes in a zstd frame: several can be unpacked at once (files/unpack.c). As long as the window of
 * this level, so that little is lost. */
#define FRAME_BYTES  SV_TABLE((size_t)2 << 20, (size_t)8 << 10)
#define RESERVE_STEP ((uint64_t)1 << 20)

struct sv_output {
    int fd; /* -1: memory */
    bool is_stdout;
    bool is_regular;       /* discard may remove it */
    bool is_kept;          /* a growing file: it stays, whatever happens */
    struct sv_file_id id;  /* of a growing file: its descriptor may have become another's */
    char *name;            /* as the caller called it, for messages */
    char *path, *tmp_path; /* tmp_path NULL: written in place */
    struct sv_buf own;     /* of sv_output_open_memory() */
    struct sv_buf *memory;
    enum sv_compression compression;
    uint8_t *buf; /* BUF_BYTES */
    size_t len;
    uint8_t *packed; /* PACKED_BYTES, compressed only */
    uint64_t bytes;
    uint64_t at;          /* is_kept: where the next byte goes */
    uint64_t reserved;    /* so many bytes of the disk are taken for the file */
    size_t reserve_bytes; /* 0: none */
    /* It may be cut at any flush: each one ends a member of gzip, a frame of zstd. */
    bool ends_at_flush;
    bool is_between; /* one has just ended */
    z_stream gzip;
#ifdef SV_HAVE_ZSTD
    ZSTD_CCtx *zstd;
    size_t in_frame; /* bytes of the open frame */
#endif
    struct sv_err failed; /* code 0: all well */
};

/* ---- bytes out ---- */

static bool allocate(struct sv_output *o, uint64_t end)
{
    int rc;
    do
        rc = fallocate(o->fd, FALLOC_FL_KEEP_SIZE, (off_t)o->reserved, (off_t)(end - o->reserved));
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        o->reserved = end;
    return rc == 0;
}

/* Space for n bytes and, after them, for the end of the file. False: errno says why not. */
static bool has_space(struct sv_output *o, size_t n)
{
    struct rlimit limit;
    uint64_t need = o->at + n + o->reserve_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        need > limit.rlim_cur) {
        errno = EFBIG;
        return false;
    }
    if (need <= o->reserved || allocate(o, need + RESERVE_STEP) || allocate(o, need))
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        return false;
    o->reserve_bytes = 0;
    return true;
}

/* Is the descriptor of a growing file still its own? The program that we run in may have closed it,
 * and opened something else under its number. Then the file is opened again, if it has its name. */
static bool is_ours(struct sv_output *o)
{
    if (!o->is_kept || sv_file_id_is(o->fd, &o->id))
        return true;
    o->fd = sv_file_id_move_up(open(o->path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (sv_file_id_is(o->fd, &o->id) && lseek(o->fd, (off_t)o->at, SEEK_SET) >= 0)
        return true;
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
    sv_error(&o->failed, SV_EIO, "the program has closed the file");
    return false;
}

static void put_fd(struct sv_output *o, const uint8_t *bytes, size_t n)
{
    if (!is_ours(o))
        return;
    if (o->reserve_bytes > 0 && !has_space(o, n)) {
        sv_err_sys(&o->failed, "cannot write");
        return;
    }
    while (n > 0) {
        ssize_t done = write(o->fd, bytes, n < SSIZE_MAX ? n : SSIZE_MAX);
        if (done >= 0) {
            o->at += (uint64_t)done;
            bytes += done;
            n -= (size_t)done;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN) { /* a non-blocking pipe that is full */
            struct pollfd p = {.fd = o->fd, .events = POLLOUT};
            if (poll(&p, 1, -1) >= 0 || errno == EINTR)
                continue;
        }
        if (o->is_stdout)
            sv_err_stdout(&o->failed);
        else
            sv_err_sys(&o->failed, "%.300s: cannot write", o->name);
        return;
    }
}

static void put(struct sv_output *o, const uint8_t *bytes, size_t n)
{
    if (o->failed.code != 0)
        return;
    if (o->memory == NULL) {
        put_fd(o, bytes, n);
        return;
    }
    sv_buf_add(o->memory, bytes, n);
    if (o->memory->failed)
        sv_error(&o->failed, SV_ENOMEM, "cannot write: the buffer's limit of %zu bytes is reached",
                 o->memory->limit);
}

/* ---- compression ---- */

enum flush { FLUSH_NO, FLUSH_BLOCK, FLUSH_END };

static void gzip_put(struct sv_output *o, const uint8_t *bytes, size_t n, enum flush flush)
{
    static const int modes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    o->gzip.next_in = (Bytef *)(uintptr_t)bytes; /* zlib forgot the const */
    do {
        uInt piece = n < INT_MAX ? (uInt)n : INT_MAX;
        n -= piece;
        o->gzip.avail_in = piece;
        do {
            o->gzip.next_out = o->packed;
            o->gzip.avail_out = PACKED_BYTES;
            int rc = deflate(&o->gzip, n > 0 ? Z_NO_FLUSH : modes[flush]);
            assert(rc != Z_STREAM_ERROR);
            (void)rc;
            put(o, o->packed, PACKED_BYTES - o->gzip.avail_out);
        } while (o->gzip.avail_out == 0);
    } while (n > 0);
    if (flush == FLUSH_END)
        deflateReset(&o->gzip);
}

#ifdef SV_HAVE_ZSTD
static void zstd_put(struct sv_output *o, const uint8_t *bytes, size_t n, enum flush flush)
{
    static const ZSTD_EndDirective modes[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {bytes, n, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {o->packed, PACKED_BYTES, 0};
        left = ZSTD_compressStream2(o->zstd, &out, &in, modes[flush]);
        if (ZSTD_isError(left)) {
            sv_error(&o->failed, SV_EIO, "cannot compress: %s", ZSTD_getErrorName(left));
            return;
        }
        put(o, o->packed, out.pos);
    } while (in.pos < in.size || (flush != FLUSH_NO && left > 0));
}

static void zstd_put_frames(struct sv_output *o, const uint8_t *bytes, size_t n, enum flush flush)
{
    while (n > FRAME_BYTES - o->in_frame) {
        size_t piece = FRAME_BYTES - o->in_frame;
        zstd_put(o, bytes, piece, FLUSH_END);
        o->in_frame = 0;
        bytes += piece;
        n -= piece;
    }
    zstd_put(o, bytes, n, flush);
    o->in_frame = flush == FLUSH_END ? 0 : o->in_frame + n;
}
#endif

static void pass_on(struct sv_output *o, const uint8_t *bytes, size_t n, enum flush flush)
{
    if (o->failed.code != 0 || (o->is_between && n == 0))
        return;
    o->is_between = o->ends_at_flush && flush == FLUSH_END;
    switch (o->compression) {
    case SV_PLAIN: put(o, bytes, n); return;
    case SV_GZIP: gzip_put(o, bytes, n, flush); return;
    case SV_ZSTD:
#ifdef SV_HAVE_ZSTD
        zstd_put_frames(o, bytes, n, flush);
#endif
        return;
    }
}

static int start_compression(struct sv_output *o, enum sv_compression compression,
                             struct sv_err *err)
{
    o->compression = compression;
    if (compression == SV_PLAIN)
        return SV_OK;
    if (compression == SV_GZIP) {
        if (deflateInit2(&o->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
            return sv_error(err, SV_ENOMEM, "no memory for the gzip encoder");
    } else {
#ifdef SV_HAVE_ZSTD
        if ((o->zstd = ZSTD_createCCtx()) == NULL)
            return sv_error(err, SV_ENOMEM, "no memory for the zstd encoder");
        ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
        ZSTD_CCtx_setParameter(o->zstd, ZSTD_c_checksumFlag, 1);
#else
        return sv_error(err, SV_EUSAGE,
                        "this build of stave cannot write zstd: choose .gz or no compression");
#endif
    }
    o->packed = sv_alloc(PACKED_BYTES);
    return SV_OK;
}

/* ---- open ---- */

static struct sv_output *new_output(int fd)
{
    struct sv_output *o = sv_alloc(sizeof *o);
    o->fd = fd;
    o->buf = sv_alloc_aligned(BUF_BYTES, 64);
    return o;
}

static void free_output(struct sv_output *o)
{
    if (o->packed != NULL && o->compression == SV_GZIP)
        deflateEnd(&o->gzip);
#ifdef SV_HAVE_ZSTD
    ZSTD_freeCCtx(o->zstd);
#endif
    if (o->memory == &o->own)
        sv_buf_fini(&o->own);
    free(o->packed);
    free(o->buf);
    free(o->name);
    free(o->path);
    free(o->tmp_path);
    free(o);
}

/* A name beside `path` that nobody else has: a hidden file that names its purpose. Where there is
 * nothing only the umask decides about the mode; a file that is replaced does not become readable
 * for more than could read it. */
static int open_temporary(struct sv_output *o, const struct stat *replaced, struct sv_err *err)
{
    const char *slash = strrchr(o->path, '/');
    const char *base = slash != NULL ? slash + 1 : o->path;
    int folder_len = (int)(base - o->path);
    size_t size = strlen(o->path) + 64;
    o->tmp_path = sv_alloc(size);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    mode_t mode = replaced ? 0600 | (replaced->st_mode & 0066) : 0666;
    uint64_t seed = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 48;
    for (int attempt = 0; attempt < 100; attempt++) {
        seed = sv_mix64(seed + (uint64_t)attempt);
        snprintf(o->tmp_path, size, "%.*s.%.200s.%08x.tmp", folder_len, o->path, base,
                 (unsigned)seed);
        o->fd = open(o->tmp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (o->fd >= 0)
            return SV_OK;
        if (errno != EEXIST)
            break;
    }
    sv_err_sys(err, "%.300s: cannot create", o->name);
    free(o->tmp_path);
    o->tmp_path = NULL;
    return SV_EIO;
}

/* What has the name of a growing file and is this user's is left from before: the holder of the
 * claim has moved aside what counts. */
static int open_growing(struct sv_output *o, const char *path, struct sv_err *err)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    struct stat st;
    mode_t mode = sv_recording_mode();
    o->is_kept = o->is_regular = true;
    o->path = sv_strndup(path, strlen(path));
    o->fd = open(path, FLAGS, 0600);
    if (o->fd < 0 && errno == EEXIST) {
        if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
            return sv_error(err, SV_EIO, "cannot create: %s is not a file of yours", path);
        unlink(path);
        o->fd = open(path, FLAGS, 0600);
    }
    if (o->fd < 0)
        return sv_err_sys(err, "cannot create");
    if (mode != 0600 && fchmod(o->fd, mode) != 0)
        errno = 0;                     /* it stays private */
    o->fd = sv_file_id_move_up(o->fd); /* other people's programs have the low numbers */
    o->id = sv_file_id_of(o->fd);
    return SV_OK;
}

static int open_file(struct sv_output *o, const char *path, enum sv_output_mode mode,
                     struct sv_err *err)
{
    struct stat st;
    if (mode == SV_OUTPUT_GROW)
        return open_growing(o, path, err);
    if (!sv_trusted_target(path))
        return sv_error(err, SV_EIO,
                        "%.300s: another user made this link or pipe: name the file that you mean, "
                        "or remove it",
                        path);
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return sv_error(err, SV_EIO, "%.300s: is a directory: name a file in it", path);
    o->is_regular = !exists || S_ISREG(st.st_mode);
    /* Through a link to what it points to, so that the rename replaces the file and not the
     * link. */
    o->path = exists ? realpath(path, NULL) : NULL;
    if (o->path == NULL)
        o->path = sv_strndup(path, strlen(path));
    if (mode == SV_OUTPUT_RENAME && o->is_regular)
        return open_temporary(o, exists ? &st : NULL, err);
    o->fd = open(o->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    return o->fd >= 0 ? SV_OK : sv_err_sys(err, "%.300s: cannot create", path);
}

bool sv_compression_named(const char *name, enum sv_compression *out)
{
    static const char *const names[] = {
        [SV_PLAIN] = "none", [SV_GZIP] = "gzip", [SV_ZSTD] = "zstd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum sv_compression)i;
            return true;
        }
    }
    return false;
}

int sv_output_open(const char *path, enum sv_output_mode mode, enum sv_compression compression,
                   struct sv_output **out, struct sv_err *err)
{
    struct sv_output *o = new_output(-1);
    o->name = sv_strndup(path, strlen(path));
    int rc = start_compression(o, compression, err);
    if (rc == SV_OK && strcmp(path, "-") == 0) {
        o->is_stdout = true;
        o->fd = STDOUT_FILENO;
    } else if (rc == SV_OK) {
        rc = open_file(o, path, mode, err);
    }
    if (rc < 0) {
        free_output(o);
        return rc;
    }
    *out = o;
    return SV_OK;
}

/* As the file begins. */
static enum sv_compression compression_of(int fd)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    uint8_t head[4] = {0};
    if (pread(fd, head, sizeof head, 0) != (ssize_t)sizeof head)
        return SV_PLAIN;
    return memcmp(head, gzip, sizeof gzip) == 0   ? SV_GZIP
           : memcmp(head, zstd, sizeof zstd) == 0 ? SV_ZSTD
                                                  : SV_PLAIN;
}

int sv_output_open_at(const char *path, uint64_t offset, struct sv_output **out, struct sv_err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    if (fd < 0 || !is_ours || lseek(fd, (off_t)offset, SEEK_SET) < 0) {
        int code = fd >= 0 && !is_ours ? sv_error(err, SV_EIO, "%s is not a file of yours", path)
                                       : sv_err_sys(err, "cannot write on");
        if (fd >= 0)
            close(fd);
        return code;
    }
    struct sv_output *o = new_output(fd);
    int rc = start_compression(o, compression_of(fd), err);
    if (rc < 0) {
        close(fd);
        free_output(o);
        return rc;
    }
    o->is_kept = o->is_regular = true;
    o->path = sv_strndup(path, strlen(path));
    o->id = sv_file_id_of(fd);
    o->at = offset;
    o->reserved = UINT64_MAX; /* by its earlier writer: to be cut off */
    *out = o;
    return SV_OK;
}

int sv_output_reserve(struct sv_output *o, size_t bytes, struct sv_err *err)
{
    assert(o->is_kept);
    o->reserve_bytes = bytes;
    o->ends_at_flush = o->compression != SV_PLAIN;
    return has_space(o, 0) ? SV_OK : sv_err_sys(err, "cannot write");
}

int sv_output_open_buf(struct sv_buf *to, enum sv_compression compression, struct sv_output **out,
                       struct sv_err *err)
{
    struct sv_output *o = new_output(-1);
    o->memory = to;
    int rc = start_compression(o, compression, err);
    if (rc < 0) {
        free_output(o);
        return rc;
    }
    *out = o;
    return SV_OK;
}

int sv_output_open_memory(struct sv_output **out)
{
    struct sv_output *o = new_output(-1);
    sv_buf_init(&o->own, SIZE_MAX);
    o->memory = &o->own;
    *out = o;
    return SV_OK;
}

const uint8_t *sv_output_memory(const struct sv_output *o, size_t *len)
{
    assert(o->memory == &o->own);
    /* What is still in the buffer belongs to the answer; the caller sees an output that only
     * grew. */
    struct sv_output *self = (struct sv_output *)(uintptr_t)o;
    pass_on(self, self->buf, self->len, FLUSH_NO);
    self->len = 0;
    *len = o->own.len;
    return o->own.data;
}

/* ---- write and close ---- */

/* Only whole buffers leave, so that the file offset stays aligned, which makes the kernel's copy
 * faster. */
static void drain(struct sv_output *o, enum flush flush)
{
    pass_on(o, o->buf, o->len, flush);
    o->len = 0;
}

void sv_output_write(struct sv_output *o, const void *bytes, size_t n)
{
    o->bytes += n;
    bool is_large = n >= BUF_BYTES / 4; /* not worth a copy */
    if (o->len > 0 && (is_large || n > BUF_BYTES - o->len))
        drain(o, FLUSH_NO);
    if (is_large) {
        pass_on(o, bytes, n, FLUSH_NO);
        return;
    }
    if (n > 0)
        memcpy(o->buf + o->len, bytes, n);
    o->len += n;
}

int sv_output_failure(const struct sv_output *o, struct sv_err *err)
{
    return o->failed.code == 0
               ? SV_OK
               : sv_err_set(err, o->failed.code, o->failed.pos, "%s", o->failed.msg);
}

int sv_output_flush(struct sv_output *o, struct sv_err *err)
{
    drain(o, o->ends_at_flush ? FLUSH_END : FLUSH_BLOCK);
    return sv_output_failure(o, err);
}

const char *sv_output_file(const struct sv_output *o)
{
    bool is_plain = o->is_regular && o->compression == SV_PLAIN && o->path != NULL;
    return !is_plain ? NULL : o->tmp_path != NULL ? o->tmp_path : o->path;
}

uint64_t sv_output_bytes(const struct sv_output *o)
{
    return o->bytes;
}

uint64_t sv_output_position(const struct sv_output *o)
{
    return o->at;
}

/* Network file systems report a full disk here. */
static void close_fd(struct sv_output *o)
{
    if (o->is_kept && (o->failed.code != 0 ? !sv_file_id_is(o->fd, &o->id) : !is_ours(o)))
        return;
    if (o->is_kept && o->fd >= 0 && o->failed.code == 0 && o->reserved > o->at &&
        ftruncate(o->fd, (off_t)o->at) != 0)
        sv_err_sys(&o->failed, "cannot truncate it at its end");
    if (o->fd >= 0 && !o->is_stdout && close(o->fd) != 0 && errno != EINTR && o->failed.code == 0)
        sv_err_sys(&o->failed, "%.300s: cannot write", o->name);
}

int sv_output_close(struct sv_output *o, struct sv_err *err)
{
    drain(o, FLUSH_END);
    close_fd(o);
    if (o->tmp_path != NULL) {
        if (o->failed.code == 0 && rename(o->tmp_path, o->path) != 0)
            sv_err_sys(&o->failed, "%.300s: cannot rename the finished file to its name", o->name);
        if (o->failed.code != 0)
            unlink(o->tmp_path);
    }
    int rc = sv_output_failure(o, err);
    free_output(o);
    return rc;
}

void sv_output_discard(struct sv_output *o)
{
    if (o == NULL)
        return;
    close_fd(o);
    if (o->tmp_path != NULL)
        unlink(o->tmp_path);
    else if (o->path != NULL && o->is_regular && !o->is_kept)
        unlink(o->path);
    free_output(o);
}

void sv_output_pass_on(struct sv_output *o, struct sv_buf *b)
{
    sv_output_write(o, b->data, b->len);
    sv_buf_clear(b);
}

int sv_output_end(struct sv_output *o, bool failed, struct sv_err *err)
{
    if (!failed)
        return sv_output_close(o, err);
    sv_output_discard(o);
    return SV_OK;
}

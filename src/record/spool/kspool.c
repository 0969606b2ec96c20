/* The file of kspool.h. Called by record/spool/defer.c while recording and by record/spool/left.c
 * for `stave recover`.
 *
 * Entries are written in one call from the rings themselves. The head is written by itself: an
 * entry counts when it lies within the file. */
#include "record/spool/kspool.h"

#include "core/base/mem.h"
#include "core/files/trusted.h"
#include "record/bpf/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096, RINGS_MAX = 4096, IOV_PER_CALL = 512 };
#define MAGIC       0x314b505356415453u /* STAVSPK1 */
#define ENTRY_MAGIC 0x59525445u

struct commit {
    uint64_t part_bytes, at;
};

struct head {
    uint64_t magic, layout;
    uint64_t is_active;
    uint32_t n_rings, pad;
    struct commit commits[2]; /* in turns */
};

struct entry {
    uint32_t magic;
    uint16_t kind, n_rings; /* enum sv_kspool_kind */
    uint64_t bytes;         /* after this struct: the length of each piece, and the pieces */
};

/* Records of another version are not understood. */
static uint64_t layout(void)
{
    return (uint64_t)SV_WIRE_KINDS << 32 |
           (uint64_t)(sizeof(struct sv_wire_call) + sizeof(struct sv_wire_short_call)) << 16 |
           sizeof(struct sv_wire_head);
}

bool sv_kspool_name(const char *out, uint32_t pid, char *path, size_t size)
{
    return snprintf(path, size, "%s.spool-%u", out, pid) < (int)size;
}

static bool write_at(int fd, uint64_t at, const void *bytes, size_t n)
{
    return pwrite(fd, bytes, n, (off_t)at) == (ssize_t)n;
}

static int read_at(const struct sv_kspool *s, uint64_t at, void *bytes, size_t n,
                   struct sv_err *err)
{
    ssize_t got = pread(s->fd, bytes, n, (off_t)at);
    if (got < 0)
        return sv_err_sys(err, "%.300s", s->path);
    return (size_t)got == n ? 0
                            : sv_err_set(err, SV_EIO, SV_NO_POS, "%.300s: became shorter", s->path);
}

int sv_kspool_make(struct sv_kspool *s, const char *out, uint32_t n_rings, struct sv_err *err)
{
    *s = (struct sv_kspool){.fd = -1, .n_rings = n_rings};
    if (n_rings > RINGS_MAX || !sv_kspool_name(out, (uint32_t)getpid(), s->path, sizeof s->path))
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "%.300s: the name is too long", out);
    s->fd = sv_trusted_file(AT_FDCWD, s->path, O_RDWR | O_CREAT | O_EXCL, SV_TRUST_PRIVATE,
                            S_IRUSR | S_IWUSR);
    return s->fd >= 0 ? 0 : sv_err_sys(err, "%.300s", s->path);
}

void sv_kspool_close(struct sv_kspool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->entry);
    sv_krings_fini(&s->rings);
    *s = (struct sv_kspool){.fd = -1};
}

void sv_kspool_remove(struct sv_kspool *s)
{
    struct stat st;
    if (s->fd >= 0 && fstat(s->fd, &st) == 0)
        sv_trusted_remove(s->path, st.st_dev, st.st_ino);
    sv_kspool_close(s);
}

/* ---- writing ---- */

static bool write_bytes(const struct sv_kspool *s, enum sv_kspool_kind kind, const void *bytes,
                        size_t n)
{
    const struct entry e = {ENTRY_MAGIC, (uint16_t)kind, 0, n};
    return n <= SV_KSPOOL_ENTRY_MAX && write_at(s->fd, s->end, &e, sizeof e) &&
           write_at(s->fd, s->end + sizeof e, bytes, n);
}

static bool give_up(struct sv_kspool *s)
{
    if (ftruncate(s->fd, (off_t)s->end) != 0)
        s->is_active = s->end > HEAD_BYTES; /* what is behind the end is overwritten or ignored */
    return false;
}

bool sv_kspool_begin(struct sv_kspool *s, const void *processes, size_t n, uint64_t part_bytes)
{
    struct head h = {.magic = MAGIC, .layout = layout(), .is_active = 1, .n_rings = s->n_rings};
    s->at = s->end = HEAD_BYTES;
    h.commits[0] = h.commits[1] = (struct commit){part_bytes, HEAD_BYTES};
    s->n_commits = 0;
    if (!write_bytes(s, SV_KSPOOL_PROCESSES, processes, n))
        return give_up(s);
    s->end += sizeof(struct entry) + n;
    s->at = s->end;
    if (!write_at(s->fd, 0, &h, sizeof h)) /* last: it makes the file a spool */
        return give_up(s);
    s->is_active = true;
    return true;
}

static bool write_pieces(const struct sv_kspool *s, uint64_t at, const struct iovec *v, size_t n,
                         uint64_t bytes)
{
    uint64_t done = 0;
    for (size_t i = 0; i < n; i += IOV_PER_CALL) {
        size_t k = n - i < IOV_PER_CALL ? n - i : IOV_PER_CALL;
        ssize_t wrote = pwritev(s->fd, v + i, (int)k, (off_t)(at + done));
        if (wrote <= 0)
            return false;
        done += (uint64_t)wrote;
    }
    return done == bytes;
}

static bool write_records(const struct sv_kspool *s, uint64_t at, const struct sv_krings *rings,
                          bool is_late, uint64_t *size)
{
    struct {
        struct entry head;
        uint64_t lens[];
    } *first = sv_alloc(sizeof *first + s->n_rings * sizeof *first->lens);
    struct iovec *v = sv_alloc((2 * s->n_rings + 1) * sizeof *v);
    size_t n = 1, fixed = sizeof *first + s->n_rings * sizeof *first->lens;
    uint64_t bytes = fixed;
    for (uint32_t i = 0; i < s->n_rings; i++) {
        first->lens[i] = sv_krings_piece(rings, i, v + n);
        bytes += first->lens[i];
        n += first->lens[i] == 0 ? 0 : v[n + 1].iov_len ? 2 : 1;
    }
    first->head = (struct entry){ENTRY_MAGIC, is_late ? SV_KSPOOL_LATE : SV_KSPOOL_RECORDS,
                                 (uint16_t)s->n_rings, bytes - sizeof(struct entry)};
    v[0] = (struct iovec){first, fixed};
    bool is_written = bytes <= SV_KSPOOL_ENTRY_MAX && write_pieces(s, at, v, n, bytes);
    free(first);
    free(v);
    *size = bytes;
    return is_written;
}

bool sv_kspool_append(struct sv_kspool *s, const struct sv_krings *rings, bool is_late,
                      const void *notes, size_t n)
{
    uint64_t bytes, at = s->end + (n ? sizeof(struct entry) + n : 0);
    if ((n > 0 && !write_bytes(s, SV_KSPOOL_NOTES, notes, n)) ||
        !write_records(s, at, rings, is_late, &bytes))
        return give_up(s);
    s->end = at + bytes;
    return true;
}

void sv_kspool_note(struct sv_kspool *s, uint64_t part_bytes)
{
    const struct commit c = {part_bytes, s->at};
    if (s->is_active)
        (void)!write_at(s->fd, offsetof(struct head, commits) + (s->n_commits++ & 1) * sizeof c, &c,
                        sizeof c);
}

void sv_kspool_reset(struct sv_kspool *s)
{
    const uint64_t none = 0;
    (void)!write_at(s->fd, offsetof(struct head, is_active), &none, sizeof none);
    s->is_active = false;
    s->at = s->end = HEAD_BYTES;
    (void)!ftruncate(s->fd, HEAD_BYTES);
}

/* ---- reading ---- */

static int damaged(const struct sv_kspool *s, struct sv_err *err)
{
    return sv_err_set(err, SV_EFORMAT, (int64_t)s->at, "%.300s: damaged", s->path);
}

/* Pieces are multiples of 8 bytes and fill the entry. */
static bool set_pieces(struct sv_kspool *s, uint32_t n_rings, uint64_t bytes)
{
    uint64_t used = (uint64_t)n_rings * sizeof(uint64_t);
    if (used > bytes)
        return false;
    sv_krings_fini(&s->rings);
    for (uint32_t i = 0; i < n_rings; i++) {
        uint64_t len;
        memcpy(&len, s->entry + i * sizeof len, sizeof len);
        if (len % 8 != 0 || len > bytes - used)
            return false;
        sv_krings_add_piece(&s->rings, s->entry + used, len);
        used += len;
    }
    return used == bytes;
}

int sv_kspool_next(struct sv_kspool *s, struct sv_err *err)
{
    struct entry e;
    if (!s->is_active || s->end - s->at < sizeof e)
        return SV_KSPOOL_END;
    if (read_at(s, s->at, &e, sizeof e, err) < 0)
        return err->code;
    bool has_records = e.kind == SV_KSPOOL_RECORDS || e.kind == SV_KSPOOL_LATE;
    if (e.magic != ENTRY_MAGIC || e.bytes > SV_KSPOOL_ENTRY_MAX || e.n_rings > RINGS_MAX ||
        e.kind == SV_KSPOOL_END || e.kind > SV_KSPOOL_LATE)
        return damaged(s, err);
    if (e.bytes > s->end - s->at - sizeof e)
        return SV_KSPOOL_END; /* it was not written to its end */
    if (e.bytes > s->cap) {
        free(s->entry);
        s->entry = sv_alloc(e.bytes);
        s->cap = e.bytes;
    }
    if (read_at(s, s->at + sizeof e, s->entry, e.bytes, err) < 0)
        return err->code;
    s->n = e.bytes;
    if (has_records && !set_pieces(s, e.n_rings, e.bytes))
        return damaged(s, err);
    s->at += sizeof e + e.bytes;
    return e.kind;
}

/* The growing file is whole up to the last commit or the one before it. */
static uint64_t decoded_at(const struct head *h, uint64_t part_bytes)
{
    const struct commit *c = h->commits;
    if (c[0].part_bytes == part_bytes && c[1].part_bytes == part_bytes)
        return c[0].at > c[1].at ? c[0].at : c[1].at;
    if (c[0].part_bytes == part_bytes || c[1].part_bytes == part_bytes)
        return c[c[1].part_bytes == part_bytes].at;
    return c[0].at < c[1].at ? c[0].at : c[1].at;
}

int sv_kspool_open(struct sv_kspool *s, const char *path, uint64_t part_bytes, uint64_t *done,
                   struct sv_err *err)
{
    struct head h;
    struct stat st;
    *s = (struct sv_kspool){.fd = -1};
    snprintf(s->path, sizeof s->path, "%s", path);
    s->fd = sv_trusted_file(AT_FDCWD, path, O_RDONLY, SV_TRUST_PRIVATE, 0);
    if (s->fd < 0)
        return sv_err_set(err, errno == ENOENT ? SV_EINPUT : SV_EIO, SV_NO_POS, "%.300s: %s", path,
                          strerror(errno));
    if (fstat(s->fd, &st) != 0 || read_at(s, 0, &h, sizeof h, err) < 0 || h.magic != MAGIC ||
        !h.is_active || st.st_size <= HEAD_BYTES)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS, "%.300s: holds no records", path);
    if (h.layout != layout())
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                          "%.300s: made by another version of stave: recover it with that one",
                          path);
    s->n_rings = h.n_rings;
    s->is_active = true;
    s->at = HEAD_BYTES;
    s->end = (uint64_t)st.st_size;
    *done = decoded_at(&h, part_bytes);
    return 0;
}

/* Reads, writes and what belongs to them. */
#include "io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define AT_POSITION INT64_MIN

static bool is_write(const char *name)
{
    return name[0] == 'w' || (name[0] == 'p' && name[1] == 'w');
}

/* Position and path are asked for before the call: that is not its time. */
static int64_t before(struct io_call *c, const char *name, int fd, int64_t offset,
                      const void *caller)
{
    IO_ENTER();
    int error = errno;
    int64_t from = offset == AT_POSITION ? io_position(fd) : offset;
    if (RARELY(io_has_ends(fd)))
        io_ends_used(fd, is_write(name));
    errno = error;
    IO_LEAVE();
    io_begin_for(c, name, caller);
    return from;
}

static void after(struct io_call *c, int fd, ssize_t got, uint64_t size, int64_t from, bool moves)
{
    io_end(c, got < 0);
    io_put_fd(c, fd);
    if (from >= 0)
        pre_put(&c->args, PRE_OFFSET, (uint64_t)from);
    io_put_bytes(c, got, size);
    if (moves && from >= 0 && got > 0)
        io_moved(fd, from + got);
    io_done_on(c, fd, is_write(c->name));
}

static uint64_t bytes_of(const struct iovec *v, int n)
{
    uint64_t sum = 0;
    for (int i = 0; v && i < n && i < 1024; i++)
        sum += v[i].iov_len;
    return sum;
}

/* SYMBOL, the name of the system call, parameters, arguments, bytes asked for, offset. */
#define TRANSFER(symbol, call, params, args, size, offset)                \
    WRAP(ssize_t, symbol, IO_INSIDE params)                               \
    {                                                                     \
        struct io_call c;                                                 \
        if (!PRE_ON())                                                    \
            return NEXT(symbol) args;                                     \
        int64_t from = before(&c, call, fd, offset, PRE_CALLER());        \
        ssize_t got = NEXT(symbol) args;                                  \
        after(&c, fd, got, size, from, (int64_t)(offset) == AT_POSITION); \
        return got;                                                       \
    }
TRANSFER(read, "read", (int fd, void *to, size_t n), (fd, to, n), n, AT_POSITION)
TRANSFER(write, "write", (int fd, const void *from_, size_t n), (fd, from_, n), n, AT_POSITION)
TRANSFER(__read, "read", (int fd, void *to, size_t n), (fd, to, n), n, AT_POSITION)
TRANSFER(__write, "write", (int fd, const void *from_, size_t n), (fd, from_, n), n, AT_POSITION)
TRANSFER(__read_chk, "read", (int fd, void *to, size_t n, size_t room), (fd, to, n, room), n,
         AT_POSITION)
#define PREAD(symbol) \
    TRANSFER(symbol, "pread64", (int fd, void *to, size_t n, off_t at), (fd, to, n, at), n, at)
#define PREAD_CHK(symbol)                                                            \
    TRANSFER(symbol, "pread64", (int fd, void *to, size_t n, off_t at, size_t room), \
             (fd, to, n, at, room), n, at)
#define PWRITE(symbol)                                                            \
    TRANSFER(symbol, "pwrite64", (int fd, const void *from_, size_t n, off_t at), \
             (fd, from_, n, at), n, at)
PREAD(pread)
PREAD(pread64)
PREAD(__pread64)
PREAD_CHK(__pread_chk)
PREAD_CHK(__pread64_chk)
PWRITE(pwrite)
PWRITE(pwrite64)
PWRITE(__pwrite64)
#define VECTOR(symbol)                                                                            \
    TRANSFER(symbol, #symbol, (int fd, const struct iovec *v, int n), (fd, v, n), bytes_of(v, n), \
             AT_POSITION)
#define VECTOR_AT(symbol, call)                                                              \
    TRANSFER(symbol, call, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), \
             bytes_of(v, n), at)
/* The offset -1 means the position. */
#define VECTOR_2(symbol, call)                                                          \
    TRANSFER(symbol, call, (int fd, const struct iovec *v, int n, off_t at, int flags), \
             (fd, v, n, at, flags), bytes_of(v, n), at == -1 ? AT_POSITION : at)
VECTOR(readv)
VECTOR(writev)
VECTOR_AT(preadv, "preadv")
VECTOR_AT(preadv64, "preadv")
VECTOR_AT(pwritev, "pwritev")
VECTOR_AT(pwritev64, "pwritev")
VECTOR_2(preadv2, "preadv2")
VECTOR_2(preadv64v2, "preadv2")
VECTOR_2(pwritev2, "pwritev2")
VECTOR_2(pwritev64v2, "pwritev2")

/* ---- the position ---- */

#define SEEK_CALL(symbol)                               \
    WRAP(off_t, symbol, int fd, off_t by, int whence)   \
    {                                                   \
        struct io_call c;                               \
        if (!PRE_ON())                                  \
            return NEXT(symbol)(fd, by, whence);        \
        io_begin(&c, "lseek");                          \
        off_t to = NEXT(symbol)(fd, by, whence);        \
        io_end(&c, to < 0);                             \
        io_put_fd(&c, fd);                              \
        if (to >= 0) {                                  \
            pre_put(&c.args, PRE_OFFSET, (uint64_t)to); \
            io_moved(fd, to);                           \
        }                                               \
        io_done(&c);                                    \
        return to;                                      \
    }
SEEK_CALL(lseek)
SEEK_CALL(lseek64)

/* ---- from one descriptor to another ---- */

static void copied(struct io_call *c, int from, const off_t *from_at, int to, const off_t *to_at,
                   ssize_t got, size_t n)
{
    io_end(c, got < 0);
    io_put_fd(c, from);
    pre_put(&c->args, PRE_FD2, (uint64_t)(int64_t)to);
    pre_put_text(&c->args, PRE_PATH2, io_path(to));
    if (from_at)
        pre_put(&c->args, PRE_OFFSET, (uint64_t)*from_at);
    if (to_at)
        pre_put(&c->args, PRE_OFFSET2, (uint64_t)*to_at);
    io_put_bytes(c, got, n);
    if (!from_at)
        io_moved(from, IO_NO_POSITION);
    if (!to_at)
        io_moved(to, IO_NO_POSITION);
    io_done(c);
}

#define SENDFILE(symbol)                                              \
    WRAP(ssize_t, symbol, int to, int from, off_t *from_at, size_t n) \
    {                                                                 \
        struct io_call c;                                             \
        if (!PRE_ON())                                                \
            return NEXT(symbol)(to, from, from_at, n);                \
        off_t was = from_at ? *from_at : 0;                           \
        io_begin(&c, "sendfile");                                     \
        ssize_t got = NEXT(symbol)(to, from, from_at, n);             \
        copied(&c, from, from_at ? &was : NULL, to, NULL, got, n);    \
        return got;                                                   \
    }
SENDFILE(sendfile)
SENDFILE(sendfile64)

#define COPY(symbol)                                                                            \
    WRAP(ssize_t, symbol, int from, off_t *from_at, int to, off_t *to_at, size_t n, unsigned f) \
    {                                                                                           \
        struct io_call c;                                                                       \
        if (!PRE_ON())                                                                          \
            return NEXT(symbol)(from, from_at, to, to_at, n, f);                                \
        off_t was = from_at ? *from_at : 0, was2 = to_at ? *to_at : 0;                          \
        io_begin(&c, #symbol);                                                                  \
        ssize_t got = NEXT(symbol)(from, from_at, to, to_at, n, f);                             \
        copied(&c, from, from_at ? &was : NULL, to, to_at ? &was2 : NULL, got, n);              \
        return got;                                                                             \
    }
COPY(copy_file_range)
COPY(splice)

/* ---- what has a descriptor and no bytes ---- */

static void plain(struct io_call *c, int fd, int done)
{
    io_end(c, done != 0);
    io_put_fd(c, fd);
    io_done(c);
}

#define PLAIN(symbol)                \
    WRAP(int, symbol, int fd)        \
    {                                \
        struct io_call c;            \
        if (!PRE_ON())               \
            return NEXT(symbol)(fd); \
        io_begin(&c, #symbol);       \
        int done = NEXT(symbol)(fd); \
        plain(&c, fd, done);         \
        return done;                 \
    }
PLAIN(fsync)
PLAIN(fdatasync)
PLAIN(syncfs)

/* A range of a file. posix_f… return the error and do not set errno. */
static void range(struct io_call *c, int fd, int64_t offset, int64_t length, int error)
{
    int kept = errno;
    io_end(c, error != 0);
    io_put_fd(c, fd);
    pre_put(&c->args, PRE_LENGTH, (uint64_t)length);
    if (offset >= 0)
        pre_put(&c->args, PRE_OFFSET, (uint64_t)offset);
    c->error = error;
    io_done(c);
    errno = kept;
}

#define RANGE(symbol, call, type, params, args, offset, length, error) \
    WRAP(type, symbol, IO_INSIDE params)                               \
    {                                                                  \
        struct io_call c;                                              \
        if (!PRE_ON())                                                 \
            return NEXT(symbol) args;                                  \
        io_begin(&c, call);                                            \
        type done = NEXT(symbol) args;                                 \
        range(&c, fd, offset, length, error);                          \
        return done;                                                   \
    }
#define BY_ERRNO (done < 0 ? errno : 0)
RANGE(sync_file_range, "sync_file_range", int, (int fd, off_t at, off_t n, unsigned how),
      (fd, at, n, how), at, n, BY_ERRNO)
RANGE(ftruncate, "ftruncate", int, (int fd, off_t n), (fd, n), -1, n, BY_ERRNO)
RANGE(ftruncate64, "ftruncate", int, (int fd, off_t n), (fd, n), -1, n, BY_ERRNO)
RANGE(fallocate, "fallocate", int, (int fd, int how, off_t at, off_t n), (fd, how, at, n), at, n,
      BY_ERRNO)
RANGE(fallocate64, "fallocate", int, (int fd, int how, off_t at, off_t n), (fd, how, at, n), at, n,
      BY_ERRNO)
RANGE(readahead, "readahead", ssize_t, (int fd, off_t at, size_t n), (fd, at, n), at, (int64_t)n,
      BY_ERRNO)
RANGE(posix_fallocate, "fallocate", int, (int fd, off_t at, off_t n), (fd, at, n), at, n, done)
RANGE(posix_fallocate64, "fallocate", int, (int fd, off_t at, off_t n), (fd, at, n), at, n, done)
RANGE(posix_fadvise, "fadvise64", int, (int fd, off_t at, off_t n, int how), (fd, at, n, how), at,
      n, done)
RANGE(posix_fadvise64, "fadvise64", int, (int fd, off_t at, off_t n, int how), (fd, at, n, how), at,
      n, done)

/* ---- mapped files: memory without a file is no I/O ---- */

#define MAP_CALL(symbol)                                                               \
    WRAP(void *, symbol, void *where, size_t n, int access, int how, int fd, off_t at) \
    {                                                                                  \
        struct io_call c;                                                              \
        if (fd < 0 || how & MAP_ANONYMOUS || !PRE_ON())                                \
            return NEXT(symbol)(where, n, access, how, fd, at);                        \
        io_begin(&c, "mmap");                                                          \
        void *mapped = NEXT(symbol)(where, n, access, how, fd, at);                    \
        io_end(&c, mapped == MAP_FAILED);                                              \
        io_put_fd(&c, fd);                                                             \
        pre_put(&c.args, PRE_LENGTH, n);                                               \
        pre_put(&c.args, PRE_OFFSET, (uint64_t)at);                                    \
        if (!c.failed)                                                                 \
            pre_put(&c.args, PRE_ADDRESS, (uintptr_t)mapped);                          \
        io_done(&c);                                                                   \
        return mapped;                                                                 \
    }
MAP_CALL(mmap)
MAP_CALL(mmap64)

WRAP(int, msync, void *at, size_t n, int how)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(msync)(at, n, how);
    io_begin(&c, "msync");
    int done = NEXT(msync)(at, n, how);
    io_end(&c, done != 0);
    pre_put(&c.args, PRE_LENGTH, n);
    io_done(&c);
    return done;
}

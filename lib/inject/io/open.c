/* Calls that make, copy and close descriptors. Those that open and close files are recorded, the
 * others only change the table. */
#include "io.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- open ---- */

static bool makes(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* `path` as it was given. */
static void opened(struct io_call *c, int dirfd, const char *path, int flags, bool has_mode,
                   unsigned mode, int fd)
{
    io_end(c, fd < 0);
    const char *full = IO_FULL(dirfd, path);
    if (fd >= 0) {
        io_fd_opened(fd, full, flags);
        pre_put(&c->args, PRE_FD, (uint64_t)fd);
    }
    pre_put_text(&c->args, PRE_PATH, full);
    if (flags && strcmp(c->name, "creat") != 0)
        pre_put(&c->args, PRE_FLAGS, (uint64_t)(unsigned)flags);
    if (has_mode)
        pre_put(&c->args, PRE_MODE, mode & 07777);
    io_done(c);
}

#define TAKE_MODE(flags)                  \
    mode_t mode = 0;                      \
    if (makes(flags)) {                   \
        va_list args;                     \
        va_start(args, flags);            \
        mode = (mode_t)va_arg(args, int); \
        va_end(args);                     \
    }
#define OPEN(symbol)                                               \
    WRAP(int, symbol, const char *path, int flags, ...)            \
    {                                                              \
        struct io_call c;                                          \
        TAKE_MODE(flags)                                           \
        if (!PRE_ON())                                             \
            return NEXT(symbol)(path, flags, mode);                \
        io_begin(&c, "openat");                                    \
        int fd = NEXT(symbol)(path, flags, mode);                  \
        opened(&c, AT_FDCWD, path, flags, makes(flags), mode, fd); \
        return fd;                                                 \
    }
#define OPENAT(symbol)                                             \
    WRAP(int, symbol, int dirfd, const char *path, int flags, ...) \
    {                                                              \
        struct io_call c;                                          \
        TAKE_MODE(flags)                                           \
        if (!PRE_ON())                                             \
            return NEXT(symbol)(dirfd, path, flags, mode);         \
        io_begin(&c, "openat");                                    \
        int fd = NEXT(symbol)(dirfd, path, flags, mode);           \
        opened(&c, dirfd, path, flags, makes(flags), mode, fd);    \
        return fd;                                                 \
    }
/* What -D_FORTIFY_SOURCE makes of an open without mode. */
#define OPEN_2(symbol, dirfd, params, args)           \
    WRAP(int, symbol, IO_INSIDE params)               \
    {                                                 \
        struct io_call c;                             \
        if (!PRE_ON())                                \
            return NEXT(symbol) args;                 \
        io_begin(&c, "openat");                       \
        int fd = NEXT(symbol) args;                   \
        opened(&c, dirfd, path, flags, false, 0, fd); \
        return fd;                                    \
    }
#define CREAT(symbol)                                                             \
    WRAP(int, symbol, const char *path, mode_t mode)                              \
    {                                                                             \
        struct io_call c;                                                         \
        if (!PRE_ON())                                                            \
            return NEXT(symbol)(path, mode);                                      \
        io_begin(&c, "creat");                                                    \
        int fd = NEXT(symbol)(path, mode);                                        \
        opened(&c, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, true, mode, fd); \
        return fd;                                                                \
    }
OPEN(open)
OPEN(open64)
OPEN(__open)
OPEN(__open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN_2(__open64_2, AT_FDCWD, (const char *path, int flags), (path, flags))
OPEN_2(__openat_2, at, (int at, const char *path, int flags), (at, path, flags))
OPEN_2(__openat64_2, at, (int at, const char *path, int flags), (at, path, flags))
CREAT(creat)
CREAT(creat64)

/* The libc puts the name into the pattern before it opens the file. */
#define MAKE_TEMPORARY(symbol, params, args, flags)                                         \
    WRAP(int, symbol, IO_INSIDE params)                                                     \
    {                                                                                       \
        struct io_call c;                                                                   \
        if (!PRE_ON())                                                                      \
            return NEXT(symbol) args;                                                       \
        io_begin(&c, "openat");                                                             \
        int fd = NEXT(symbol) args;                                                         \
        opened(&c, AT_FDCWD, pattern, O_RDWR | O_CREAT | O_EXCL | (flags), true, 0600, fd); \
        return fd;                                                                          \
    }
MAKE_TEMPORARY(mkstemp, (char *pattern), (pattern), 0)
MAKE_TEMPORARY(mkstemp64, (char *pattern), (pattern), 0)
MAKE_TEMPORARY(mkostemp, (char *pattern, int flags), (pattern, flags), flags)
MAKE_TEMPORARY(mkostemp64, (char *pattern, int flags), (pattern, flags), flags)
MAKE_TEMPORARY(mkstemps, (char *pattern, int n), (pattern, n), 0)
MAKE_TEMPORARY(mkstemps64, (char *pattern, int n), (pattern, n), 0)

/* Shared memory is files in /dev/shm. */
WRAP(int, shm_open, const char *name, int flags, mode_t mode)
{
    struct io_call c;
    char path[300];
    if (!PRE_ON())
        return NEXT(shm_open)(name, flags, mode);
    snprintf(path, sizeof path, "/dev/shm/%.255s", name && *name == '/' ? name + 1 : name);
    io_begin(&c, "openat");
    int fd = NEXT(shm_open)(name, flags, mode);
    opened(&c, AT_FDCWD, path, flags | O_NOFOLLOW | O_CLOEXEC, makes(flags), mode, fd);
    return fd;
}

/* ---- close ---- */

/* The path is that of before; the number may be another thread's file right after the call. */
#define CLOSE(symbol)                                            \
    WRAP(int, symbol, int fd)                                    \
    {                                                            \
        struct io_call c;                                        \
        char path[1024];                                         \
        if (!PRE_ON()) {                                         \
            io_fd_unknown(fd);                                   \
            return NEXT(symbol)(fd);                             \
        }                                                        \
        bool has_path = keep_path(fd, path, sizeof path);        \
        io_begin(&c, "close");                                   \
        int done = NEXT(symbol)(fd);                             \
        io_end(&c, done < 0);                                    \
        pre_put(&c.args, PRE_FD, (uint64_t)(int64_t)fd);         \
        pre_put_text(&c.args, PRE_PATH, has_path ? path : NULL); \
        io_done(&c);                                             \
        return done;                                             \
    }

static bool keep_path(int fd, char *to, size_t size)
{
    int error = errno;
    IO_ENTER();
    const char *path = io_path(fd);
    size_t n = path ? strnlen(path, size - 1) : 0;
    memcpy(to, path ? path : "", n);
    to[n] = 0;
    io_fd_unknown(fd);
    IO_LEAVE();
    errno = error;
    return n > 0;
}

CLOSE(close)
CLOSE(__close)

WRAP(void, closefrom, int from)
{
    NEXT(closefrom)(from);
    if (!pre_self.is_quiet)
        io_fds_closed(from < 0 ? 0 : (unsigned)from, IO_FDS - 1);
}

WRAP(int, close_range, unsigned from, unsigned to, int flags)
{
    int done = NEXT(close_range)(from, to, flags);
    if (done == 0 && flags == 0 && !pre_self.is_quiet)
        io_fds_closed(from, to);
    return done;
}

/* ---- what copies descriptors, or makes others than files ---- */

/* In a child of vfork the table is the parent's. */
static int copied(int from, int to)
{
    int error = errno;
    if (to >= 0 && to != from && !pre_self.is_quiet)
        io_fd_copied(from, to);
    errno = error;
    return to;
}

static int fresh(int fd)
{
    if (fd >= 0 && !pre_self.is_quiet)
        io_fd_unknown(fd);
    return fd;
}

WRAP(int, dup, int fd)
{
    return copied(fd, NEXT(dup)(fd));
}

WRAP(int, dup2, int fd, int to)
{
    return copied(fd, NEXT(dup2)(fd, to));
}

WRAP(int, dup3, int fd, int to, int flags)
{
    return copied(fd, NEXT(dup3)(fd, to, flags));
}

#define FCNTL(symbol)                                   \
    WRAP(int, symbol, int fd, int what, ...)            \
    {                                                   \
        va_list args;                                   \
        va_start(args, what);                           \
        void *arg = va_arg(args, void *);               \
        va_end(args);                                   \
        int done = NEXT(symbol)(fd, what, arg);         \
        if (what == F_DUPFD || what == F_DUPFD_CLOEXEC) \
            copied(fd, done);                           \
        return done;                                    \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

#define FRESH(symbol, params, args)      \
    WRAP(int, symbol, IO_INSIDE params)  \
    {                                    \
        return fresh(NEXT(symbol) args); \
    }
FRESH(socket, (int family, int type, int protocol), (family, type, protocol))
FRESH(epoll_create, (int n), (n))
FRESH(epoll_create1, (int flags), (flags))
FRESH(eventfd, (unsigned n, int flags), (n, flags))
FRESH(memfd_create, (const char *name, unsigned flags), (name, flags))
FRESH(inotify_init, (void), ())
FRESH(inotify_init1, (int flags), (flags))
FRESH(timerfd_create, (int clock, int flags), (clock, flags))
FRESH(signalfd, (int fd, const void *set, int flags), (fd, set, flags))

#define FRESH_PAIR(symbol, params, args) \
    WRAP(int, symbol, IO_INSIDE params)  \
    {                                    \
        int done = NEXT(symbol) args;    \
        if (done == 0) {                 \
            fresh(pair[0]);              \
            fresh(pair[1]);              \
        }                                \
        return done;                     \
    }
FRESH_PAIR(pipe, (int pair[2]), (pair))
FRESH_PAIR(pipe2, (int pair[2], int flags), (pair, flags))

WRAP(int, socketpair, int family, int type, int protocol, int pair[2])
{
    int done = NEXT(socketpair)(family, type, protocol, pair), error = errno;
    if (done == 0 && PRE_ON()) {
        IO_ENTER();
        io_fd_unknown(pair[0]);
        io_fd_unknown(pair[1]);
        io_ends_set(pair[0], io_ends_between(pair[0], pair[1]));
        io_ends_set(pair[1], io_ends_between(pair[1], pair[0]));
        IO_LEAVE();
    }
    errno = error;
    return done;
}

static int moved(int done)
{
    int error = errno;
    if (done == 0 && !pre_self.is_quiet)
        io_cwd_changed();
    errno = error;
    return done;
}

WRAP(int, chdir, const char *path)
{
    return moved(NEXT(chdir)(path));
}

WRAP(int, fchdir, int fd)
{
    return moved(NEXT(fchdir)(fd));
}

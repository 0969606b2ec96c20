/* Calls on names: stat, unlink, rename, folders. */
#include "io.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* `path` NULL or "": the descriptor itself. */
static void named(struct io_call *c, int dirfd, const char *path, bool failed)
{
    io_end(c, failed);
    pre_put_text(&c->args, PRE_PATH,
                 path && *path       ? IO_FULL(dirfd, path)
                 : dirfd != AT_FDCWD ? io_path(dirfd)
                                     : NULL);
    io_done(c);
}

static void named_both(struct io_call *c, int dirfd, const char *path, int dirfd2,
                       const char *path2, bool failed)
{
    io_end(c, failed);
    pre_put_text(&c->args, PRE_PATH, IO_FULL(dirfd, path));
    pre_put_text(&c->args, PRE_PATH2, IO_FULL(dirfd2, path2));
    io_done(c);
}

/* SYMBOL, system call, type of result, parameters, arguments, folder, path. */
#define NAMED(symbol, call, type, params, args, dirfd, path) \
    WRAP(type, symbol, IO_INSIDE params)                     \
    {                                                        \
        struct io_call c;                                    \
        if (!PRE_ON())                                       \
            return NEXT(symbol) args;                        \
        io_begin(&c, call);                                  \
        type done = NEXT(symbol) args;                       \
        named(&c, dirfd, path, done < 0);                    \
        return done;                                         \
    }
#define STAT(symbol) \
    NAMED(symbol, "newfstatat", int, (const char *p, void *to), (p, to), AT_FDCWD, p)
#define STAT_AT(symbol)                                                           \
    NAMED(symbol, "newfstatat", int, (int dir, const char *p, void *to, int how), \
          (dir, p, to, how), dir, p)
STAT(stat)
STAT(stat64)
STAT(lstat)
STAT(lstat64)
STAT_AT(fstatat)
STAT_AT(fstatat64)
NAMED(fstat, "newfstatat", int, (int fd, void *to), (fd, to), fd, "")
NAMED(fstat64, "newfstatat", int, (int fd, void *to), (fd, to), fd, "")
/* Of programs that were linked with a libc before 2.33. */
#define OLD_STAT(symbol) \
    NAMED(symbol, "newfstatat", int, (int v, const char *p, void *to), (v, p, to), AT_FDCWD, p)
OLD_STAT(__xstat)
OLD_STAT(__xstat64)
OLD_STAT(__lxstat)
OLD_STAT(__lxstat64)
NAMED(__fxstat, "newfstatat", int, (int v, int fd, void *to), (v, fd, to), fd, "")
NAMED(__fxstat64, "newfstatat", int, (int v, int fd, void *to), (v, fd, to), fd, "")
NAMED(__fxstatat, "newfstatat", int, (int v, int dir, const char *p, void *to, int how),
      (v, dir, p, to, how), dir, p)
NAMED(__fxstatat64, "newfstatat", int, (int v, int dir, const char *p, void *to, int how),
      (v, dir, p, to, how), dir, p)
NAMED(statx, "statx", int, (int dir, const char *p, int how, unsigned what, void *to),
      (dir, p, how, what, to), dir, p)
NAMED(access, "access", int, (const char *p, int how), (p, how), AT_FDCWD, p)
NAMED(faccessat, "faccessat", int, (int dir, const char *p, int how, int flags),
      (dir, p, how, flags), dir, p)
NAMED(readlink, "readlink", ssize_t, (const char *p, char *to, size_t n), (p, to, n), AT_FDCWD, p)
NAMED(readlinkat, "readlinkat", ssize_t, (int dir, const char *p, char *to, size_t n),
      (dir, p, to, n), dir, p)
NAMED(statfs, "statfs", int, (const char *p, void *to), (p, to), AT_FDCWD, p)
NAMED(statfs64, "statfs", int, (const char *p, void *to), (p, to), AT_FDCWD, p)
NAMED(unlink, "unlink", int, (const char *p), (p), AT_FDCWD, p)
NAMED(unlinkat, "unlinkat", int, (int dir, const char *p, int how), (dir, p, how), dir, p)
NAMED(rmdir, "rmdir", int, (const char *p), (p), AT_FDCWD, p)
NAMED(remove, "unlink", int, (const char *p), (p), AT_FDCWD, p)

#define WITH_VALUE(symbol, call, arg, value, params, with, dirfd, path) \
    WRAP(int, symbol, IO_INSIDE params)                                 \
    {                                                                   \
        struct io_call c;                                               \
        if (!PRE_ON())                                                  \
            return NEXT(symbol) with;                                   \
        io_begin(&c, call);                                             \
        int done = NEXT(symbol) with;                                   \
        pre_put(&c.args, arg, (uint64_t)(value));                       \
        named(&c, dirfd, path, done < 0);                               \
        return done;                                                    \
    }
WITH_VALUE(mkdir, "mkdir", PRE_MODE, mode & 07777, (const char *p, mode_t mode), (p, mode),
           AT_FDCWD, p)
WITH_VALUE(mkdirat, "mkdirat", PRE_MODE, mode & 07777, (int dir, const char *p, mode_t mode),
           (dir, p, mode), dir, p)
WITH_VALUE(truncate, "truncate", PRE_LENGTH, n, (const char *p, off_t n), (p, n), AT_FDCWD, p)
WITH_VALUE(truncate64, "truncate", PRE_LENGTH, n, (const char *p, off_t n), (p, n), AT_FDCWD, p)

#define NAMED_BOTH(symbol, params, args, dirfd, path, dirfd2, path2) \
    WRAP(int, symbol, IO_INSIDE params)                              \
    {                                                                \
        struct io_call c;                                            \
        if (!PRE_ON())                                               \
            return NEXT(symbol) args;                                \
        io_begin(&c, #symbol);                                       \
        int done = NEXT(symbol) args;                                \
        named_both(&c, dirfd, path, dirfd2, path2, done < 0);        \
        return done;                                                 \
    }
NAMED_BOTH(rename, (const char *p, const char *to), (p, to), AT_FDCWD, p, AT_FDCWD, to)
NAMED_BOTH(renameat, (int d, const char *p, int d2, const char *to), (d, p, d2, to), d, p, d2, to)
NAMED_BOTH(renameat2, (int d, const char *p, int d2, const char *to, unsigned how),
           (d, p, d2, to, how), d, p, d2, to)
NAMED_BOTH(link, (const char *p, const char *to), (p, to), AT_FDCWD, p, AT_FDCWD, to)
NAMED_BOTH(linkat, (int d, const char *p, int d2, const char *to, int how), (d, p, d2, to, how), d,
           p, d2, to)
/* The text of a link is no path of this process: it goes in as it is. */
static void linked(struct io_call *c, const char *text, int dirfd, const char *path, bool failed)
{
    io_end(c, failed);
    pre_put_text(&c->args, PRE_PATH, IO_FULL(dirfd, path));
    pre_put_text(&c->args, PRE_PATH2, text);
    io_done(c);
}

WRAP(int, symlink, const char *text, const char *p)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(symlink)(text, p);
    io_begin(&c, "symlink");
    int done = NEXT(symlink)(text, p);
    linked(&c, text, AT_FDCWD, p, done < 0);
    return done;
}

WRAP(int, symlinkat, const char *text, int dir, const char *p)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(symlinkat)(text, dir, p);
    io_begin(&c, "symlinkat");
    int done = NEXT(symlinkat)(text, dir, p);
    linked(&c, text, dir, p, done < 0);
    return done;
}

/* ---- folders ---- */

WRAP(DIR *, opendir, const char *path)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(opendir)(path);
    io_begin(&c, "openat");
    DIR *dir = NEXT(opendir)(path);
    io_end(&c, !dir);
    const char *full = IO_FULL(AT_FDCWD, path);
    if (dir) {
        io_fd_opened(dirfd(dir), full, O_RDONLY);
        pre_put(&c.args, PRE_FD, (uint64_t)dirfd(dir));
    }
    pre_put_text(&c.args, PRE_PATH, full);
    pre_put(&c.args, PRE_FLAGS, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_DIRECTORY);
    io_done(&c);
    return dir;
}

WRAP(int, closedir, DIR *dir)
{
    struct io_call c;
    if (!dir || !PRE_ON()) {
        if (dir && !pre_self.is_quiet)
            io_fd_unknown(dirfd(dir));
        return NEXT(closedir)(dir);
    }
    int fd = dirfd(dir);
    io_know(fd);
    io_begin(&c, "close");
    int done = NEXT(closedir)(dir);
    io_end(&c, done < 0);
    io_put_fd(&c, fd);
    io_fd_unknown(fd);
    io_done(&c);
    return done;
}

/* glibc's DIR, which has been the same since 2.2: it asks the kernel when nothing is left. */
struct folder {
    int fd, lock;
    size_t room, size, offset;
};

static void listed(struct io_call *c, const struct folder *f, bool failed)
{
    io_end(c, failed);
    io_put_fd(c, f->fd);
    io_put_bytes(c, f->offset <= f->size ? (int64_t)f->size : 0, f->room);
    io_done(c);
}

#define READDIR(symbol)                          \
    WRAP(struct dirent *, symbol, DIR *dir)      \
    {                                            \
        struct io_call c;                        \
        struct folder now, *f = &now;            \
        if (!dir || !PRE_ON())                   \
            return NEXT(symbol)(dir);            \
        memcpy(&now, dir, sizeof now);           \
        if (f->offset < f->size)                 \
            return NEXT(symbol)(dir);            \
        int error = errno;                       \
        errno = 0;                               \
        io_begin(&c, "getdents64");              \
        struct dirent *next = NEXT(symbol)(dir); \
        bool failed = !next && errno;            \
        errno = failed ? errno : error;          \
        memcpy(&now, dir, sizeof now);           \
        now.size = next ? now.size : 0;          \
        listed(&c, f, failed);                   \
        return next;                             \
    }
READDIR(readdir)
READDIR(readdir64)

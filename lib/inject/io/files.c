/* What each descriptor is. Called by the wrapped calls while the thread is quiet.
 *
 * A table by descriptor, in .bss: pages that nobody uses cost nothing. Who opens a file puts its
 * path there; what was there before us, or was made in a way that we do not see, is asked of
 * /proc/self/fd once. No locks: two threads that open and close the same descriptor at one time may
 * mix two paths, which stay within their buffer and end with a NUL. */
#include "io.h"

#include "core/base/path_clean.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SHORT_BYTES = 224 };
enum state { UNKNOWN, KNOWN, NAMELESS };
#define NOT_ASKED (-2) /* a position */

struct file {
    _Atomic uint8_t state;
    bool is_stored, appends;
    _Atomic int64_t position;
    struct io_ends ends;
    char *long_path; /* a page, kept for the next long one; NULL: none yet */
    char path[SHORT_BYTES];
};
static struct file files[IO_FDS];

static struct file *at(int fd)
{
    return (unsigned)fd < IO_FDS ? &files[fd] : NULL;
}

static bool is_stored(const char *path)
{
    return path[0] == '/' && strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 &&
           (strncmp(path, "/dev/", 5) != 0 || strncmp(path, "/dev/shm/", 9) == 0);
}

static const char *path_of(const struct file *f)
{
    return f->path[0] ? f->path : f->long_path;
}

static void set(struct file *f, const char *path, size_t len, int64_t position)
{
    if (len >= SHORT_BYTES && !f->long_path) {
        void *page =
            mmap(NULL, PATH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        f->long_path = page != MAP_FAILED ? page : NULL;
    }
    char *to = len < SHORT_BYTES ? f->path : f->long_path;
    len = len < PATH_BYTES ? len : PATH_BYTES - 1;
    if (to) {
        memcpy(to, path, len);
        to[len] = 0;
    }
    if (to != f->path)
        f->path[0] = 0;
    f->is_stored = to && is_stored(to);
    f->ends = (struct io_ends){0, 0};
    atomic_store_explicit(&f->position, f->is_stored ? position : IO_NO_POSITION,
                          memory_order_relaxed);
    atomic_store_explicit(&f->state, to ? KNOWN : NAMELESS, memory_order_release);
}

/* What was opened before us, or behind our back. */
static void ask(struct file *f, int fd)
{
    static const char deleted[] = " (deleted)";
    char link[32], path[PATH_BYTES / 4];
    size_t cut = sizeof deleted - 1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (n <= 0 || (size_t)n >= sizeof path - 1) {
        atomic_store_explicit(&f->state, NAMELESS, memory_order_release);
        return;
    }
    path[n] = 0;
    if ((size_t)n > cut && memcmp(path + (size_t)n - cut, deleted, cut) == 0)
        n -= (long)cut;
    long flags = syscall(SYS_fcntl, fd, F_GETFL);
    f->appends = flags >= 0 && flags & O_APPEND;
    set(f, path, (size_t)n, NOT_ASKED);
    f->ends = io_ends_find(fd, path);
}

static struct file *known(int fd)
{
    struct file *f = at(fd);
    if (f && RARELY(atomic_load_explicit(&f->state, memory_order_acquire) == UNKNOWN))
        ask(f, fd);
    return f && atomic_load_explicit(&f->state, memory_order_acquire) == KNOWN ? f : NULL;
}

const char *io_path(int fd)
{
    const struct file *f = known(fd);
    return f ? path_of(f) : NULL;
}

void io_know(int fd)
{
    int error = errno;
    IO_ENTER();
    known(fd);
    IO_LEAVE();
    errno = error;
}

bool io_is_stored(int fd)
{
    const struct file *f = known(fd);
    return f && f->is_stored;
}

int64_t io_position(int fd)
{
    struct file *f = known(fd);
    if (!f)
        return IO_NO_POSITION;
    int64_t position = atomic_load_explicit(&f->position, memory_order_relaxed);
    if (RARELY(position == NOT_ASKED)) {
        long is = f->appends ? -1 : syscall(SYS_lseek, fd, 0, SEEK_CUR);
        position = is >= 0 ? is : IO_NO_POSITION;
        atomic_store_explicit(&f->position, position, memory_order_relaxed);
    }
    return position;
}

void io_moved(int fd, int64_t to)
{
    struct file *f = at(fd);
    if (f && f->is_stored && !f->appends)
        atomic_store_explicit(&f->position, to, memory_order_relaxed);
}

void io_fd_opened(int fd, const char *path, int flags)
{
    struct file *f = at(fd);
    if (!f)
        return;
    f->appends = flags & O_APPEND;
    if (path && path[0] == '/')
        set(f, path, strlen(path), f->appends ? IO_NO_POSITION : 0);
    else
        io_fd_unknown(fd);
}

void io_fd_unknown(int fd)
{
    struct file *f = at(fd);
    if (f)
        atomic_store_explicit(&f->state, UNKNOWN, memory_order_release);
}

/* Both have one position, which no longer is followed. */
void io_fd_copied(int from, int to)
{
    struct file *f = at(from), *t = at(to);
    if (!f || !t || f == t || atomic_load(&f->state) != KNOWN) {
        io_fd_unknown(to);
        return;
    }
    const char *path = path_of(f);
    t->appends = f->appends;
    atomic_store_explicit(&f->position, IO_NO_POSITION, memory_order_relaxed);
    set(t, path, strlen(path), IO_NO_POSITION);
    t->ends = f->ends;
}

bool io_has_ends(int fd)
{
    const struct file *f = known(fd);
    return f && f->ends.in;
}

struct io_ends io_ends(int fd)
{
    const struct file *f = known(fd);
    return f ? f->ends : (struct io_ends){0, 0};
}

void io_ends_set(int fd, struct io_ends ends)
{
    struct file *f = known(fd);
    if (f)
        f->ends = ends;
}

void io_fds_closed(unsigned from, unsigned to)
{
    for (unsigned fd = from; fd <= to && fd < IO_FDS; fd++)
        if (atomic_load_explicit(&files[fd].state, memory_order_relaxed) != UNKNOWN)
            io_fd_unknown((int)fd);
}

/* ---- paths ---- */

/* The folder of the process. Odd: being written, or not known yet. */
static struct {
    _Atomic uint32_t version;
    char path[PATH_BYTES];
} cwd = {.version = 1};

void io_cwd_changed(void)
{
    uint32_t v = atomic_load(&cwd.version) | 1;
    atomic_store(&cwd.version, v);
    if (syscall(SYS_getcwd, cwd.path, sizeof cwd.path) <= 0)
        cwd.path[0] = 0;
    atomic_store(&cwd.version, v + 1);
}

static const char *folder(int dirfd)
{
    if (dirfd != AT_FDCWD)
        return io_path(dirfd);
    if (RARELY(atomic_load_explicit(&cwd.version, memory_order_acquire) & 1))
        io_cwd_changed();
    return cwd.path;
}

size_t io_full_size(int dirfd, const char *path)
{
    size_t n = path ? strnlen(path, PATH_BYTES) : 0;
    const char *dir = path && path[0] != '/' ? folder(dirfd) : NULL;
    return n + (dir ? strnlen(dir, PATH_BYTES) : 0) + 3;
}

const char *io_full(int dirfd, const char *path, char *to, size_t size)
{
    if (!path)
        return NULL;
    size_t n = 0, len = strnlen(path, PATH_BYTES);
    const char *dir = path[0] == '/' ? NULL : folder(dirfd);
    if (dir && dir[0] == '/') {
        n = strnlen(dir, PATH_BYTES);
        if (n + len + 2 > size) /* it has changed since the size was asked */
            return NULL;
        memcpy(to, dir, n);
        to[n++] = '/';
    }
    if (n + len + 1 > size)
        return NULL;
    memcpy(to + n, path, len);
    to[n + len] = 0;
    if (to[0] == '/' && (n || !sv_path_is_clean(to, len) || (len > 1 && to[len - 1] == '/')))
        to[sv_path_clean(to, n + len, to, size, NULL, NULL)] = 0;
    return to[0] ? to : NULL;
}

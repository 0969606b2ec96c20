/* fault.so: preloaded, makes system calls and allocations of libstave fail. FAULT=CALL:ERRNO:N lets
 * the first N of these calls pass, then all fail (CALL:ERRNO:N:M: the next M; M -2: every second
 * one). ERRNO 0: reads and writes do half of what is asked. Calls of the program itself and of
 * other libraries are left alone. FAULT_IN=NAME means another library or program, FAULT_FILE=TEXT
 * only calls on files with that in their names. FAULT_HIT=FILE is made when a call fails. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char call[32];
static int error_number;
static long passes = -1, failures = -1; /* -1: none passes; all fail; -2: every second one fails */
static _Atomic long n_seen;

/* Not as a constructor: those of the library may come first. */
static void read_wish(void)
{
    static _Atomic int has_read;
    if (has_read++)
        return;
    const char *wish = getenv("FAULT");
    char name[32] = "";
    if (wish &&
        sscanf(wish, "%31[a-z_0-9]:%d:%ld:%ld", name, &error_number, &passes, &failures) >= 3)
        memcpy(call, name, sizeof call);
}

static int is_ours(const void *caller)
{
    Dl_info info;
    const char *in = getenv("FAULT_IN");
    return dladdr(caller, &info) && info.dli_fname &&
           strstr(info.dli_fname, in ? in : "libstave.so");
}

static int is_file(int fd)
{
    char link[64], name[4096];
    const char *text = getenv("FAULT_FILE");
    if (!text)
        return 1;
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d",
             fd); /* the writer has a table of its own */
    ssize_t n = readlink(link, name, sizeof name - 1);
    name[n > 0 ? n : 0] = 0;
    return strstr(name, text) != NULL;
}

static int fails(const char *name, const void *caller)
{
    read_wish();
    if (passes < 0 || strcmp(name, call) != 0 || !is_ours(caller))
        return 0;
    long n = n_seen++;
    if (n < passes || (failures >= 0 && n >= passes + failures) ||
        (failures == -2 && (n - passes) % 2 != 0))
        return 0;
    const char *hit = getenv("FAULT_HIT");
    if (hit) {
        long fd = syscall(SYS_openat, AT_FDCWD, hit, O_WRONLY | O_CREAT, 0600);
        if (fd >= 0)
            syscall(SYS_close, fd);
    }
    errno = error_number;
    return 1;
}

#define REAL(name)  (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FAILS(name) fails(#name, __builtin_return_address(0))

/* How many bytes a call may take: all, or half of them; negative: it fails. */
static ssize_t share(const char *name, const void *caller, size_t n)
{
    if (!fails(name, caller))
        return (ssize_t)n;
    return error_number ? -1 : (ssize_t)(n - n / 2);
}
#define SHARE(name, n) share(#name, __builtin_return_address(0), n)

ssize_t write(int fd, const void *bytes, size_t n)
{
    ssize_t some = fd != STDERR_FILENO && is_file(fd) ? SHARE(write, n) : (ssize_t)n;
    return some < 0 ? -1 : (REAL(write))(fd, bytes, (size_t)some);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    ssize_t some = SHARE(pwrite, n);
    return some < 0 ? -1 : (REAL(pwrite))(fd, bytes, (size_t)some, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    ssize_t some = SHARE(pwrite, n);
    return some < 0 ? -1 : (REAL(pwrite64))(fd, bytes, (size_t)some, at);
}

/* Half of the first part. */
ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at)
{
    ssize_t some = n > 0 && is_file(fd) ? SHARE(pwritev, parts->iov_len) : 0;
    if (some < 0)
        return -1;
    return n > 0 && (size_t)some < parts->iov_len && some > 0
               ? (REAL(pwrite64))(fd, parts->iov_base, (size_t)some, at)
               : (REAL(pwritev64))(fd, parts, n, at);
}

ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
    ssize_t some = is_file(fd) ? SHARE(pread, n) : (ssize_t)n;
    return some < 0 ? -1 : (REAL(pread64))(fd, bytes, (size_t)some, at);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    ssize_t some = SHARE(send, n);
    return some < 0 ? -1 : (REAL(send))(fd, bytes, (size_t)some, flags);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    ssize_t some = SHARE(recv, n);
    return some < 0 ? -1 : (REAL(recv))(fd, bytes, (size_t)some, flags);
}

int poll(struct pollfd *fds, nfds_t n, int limit_ms)
{
    return FAILS(poll) ? -1 : (REAL(poll))(fds, n, limit_ms);
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    return FAILS(ppoll) ? -1 : (REAL(ppoll))(fds, n, limit, mask);
}

int posix_fallocate64(int fd, off64_t at, off64_t n)
{
    return FAILS(posix_fallocate) ? error_number : (REAL(posix_fallocate64))(fd, at, n);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    return FAILS(posix_fallocate) ? error_number : (REAL(posix_fallocate))(fd, at, n);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t from)
{
    return FAILS(mmap) ? MAP_FAILED : (REAL(mmap64))(at, n, prot, flags, fd, from);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
    return FAILS(mmap) ? MAP_FAILED : (REAL(mmap))(at, n, prot, flags, fd, from);
}

int mkdir(const char *path, mode_t mode)
{
    return FAILS(mkdir) ? -1 : (REAL(mkdir))(path, mode);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    if (FAILS(renameat2))
        return -1;
    return (REAL(renameat2))(from_fd, from, to_fd, to, flags);
}

int fallocate64(int fd, int mode, off64_t at, off64_t n)
{
    return is_file(fd) && FAILS(fallocate64) ? -1 : (REAL(fallocate64))(fd, mode, at, n);
}

int ftruncate64(int fd, off64_t n)
{
    return is_file(fd) && FAILS(ftruncate64) ? -1 : (REAL(ftruncate64))(fd, n);
}

int truncate64(const char *path, off64_t n)
{
    return fails("ftruncate64", __builtin_return_address(0)) ? -1 : (REAL(truncate64))(path, n);
}

int rename(const char *from, const char *to)
{
    return FAILS(rename) ? -1 : (REAL(rename))(from, to);
}

int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    return FAILS(pthread_create) ? error_number : (REAL(pthread_create))(t, attr, run, arg);
}

ssize_t read(int fd, void *bytes, size_t n)
{
    ssize_t some = is_file(fd) ? SHARE(read, n) : (ssize_t)n;
    return some < 0 ? -1 : (REAL(read))(fd, bytes, (size_t)some);
}

int fsync(int fd)
{
    return FAILS(fsync) ? -1 : (REAL(fsync))(fd);
}

int fdatasync(int fd)
{
    return fails("fsync", __builtin_return_address(0)) ? -1 : (REAL(fdatasync))(fd);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    return FAILS(linkat) ? -1 : (REAL(linkat))(from_fd, from, to_fd, to, flags);
}

int unlinkat(int fd, const char *path, int flags)
{
    return fails("unlink", __builtin_return_address(0)) ? -1 : (REAL(unlinkat))(fd, path, flags);
}

int unlink(const char *path)
{
    return FAILS(unlink) ? -1 : (REAL(unlink))(path);
}

#define OPEN(name, kind, params, args)                                           \
    int name params                                                              \
    {                                                                            \
        va_list ap;                                                              \
        va_start(ap, flags);                                                     \
        mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : (mode_t)0;          \
        va_end(ap);                                                              \
        return fails(kind, __builtin_return_address(0)) ? -1 : (REAL(name))args; \
    }
OPEN(open64, "open", (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat64, "open", (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
    return FAILS(malloc) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails("malloc", __builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails("malloc", __builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

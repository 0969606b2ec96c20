/* The writer thread's own table of descriptors: see own_table.h. All but sv_own_table_say() runs in
 * the writer thread.
 *
 * Without standard error in its table the writer borrows the program's for each line (pidfd_getfd,
 * Linux 5.6). Where that is refused the line waits for the next thread of the program that comes
 * by: stave_flush(), stave_stop(), the end of the program. */
#include "sdk/write/own_table.h"

#include "sdk/session/sdk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CLOSE_UNSHARE = 2, CLOSE_MAX = 1 << 16 }; /* CLOSE_RANGE_UNSHARE, Linux 5.9 */

static _Thread_local bool has_own;

/* ---- the table ---- */

static int close_range_of(unsigned first, unsigned last, unsigned flags)
{
#ifdef SYS_close_range
    return first > last ? 0 : (int)syscall(SYS_close_range, first, last, flags);
#else
    (void)first, (void)last, (void)flags;
    errno = ENOSYS;
    return -1;
#endif
}

/* In one call: filters that refuse unshare() often let it pass. */
static bool take_by_range(int keep)
{
    unsigned at = keep < 0 ? 0 : (unsigned)keep;
    if (keep <= 0)
        return close_range_of(at + (keep == 0), UINT_MAX, CLOSE_UNSHARE) == 0;
    return close_range_of(0, at - 1, CLOSE_UNSHARE) == 0 &&
           close_range_of(at + 1, UINT_MAX, 0) == 0;
}

/* Those that are open are listed; without /proc all numbers that may be are tried. */
static void close_others(int keep)
{
    DIR *d = opendir("/proc/thread-self/fd");
    for (struct dirent *e; d && (e = readdir(d));) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (e->d_name[0] != '.' && fd != keep && fd != dirfd(d))
            close(fd);
    }
    if (d) {
        closedir(d);
        return;
    }
    struct rlimit limit;
    rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < CLOSE_MAX
                     ? limit.rlim_cur
                     : CLOSE_MAX;
    for (int fd = 0; (rlim_t)fd < end; fd++)
        if (fd != keep)
            close(fd);
}

/* ThreadSanitizer, where the library is compiled with it, believes that a number is the same
 * descriptor in all threads. */
#ifdef __SANITIZE_THREAD__
#define TABLE_IS_SHARED 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define TABLE_IS_SHARED 1
#endif
#endif

bool sv_own_table_take(int keep)
{
#ifdef TABLE_IS_SHARED
    return false;
#endif
    has_own = take_by_range(keep);
    if (!has_own && unshare(CLONE_FILES) == 0) {
        has_own = true;
        close_others(keep);
    }
    /* Not in the folder where the program was started: it may leave that, so that it can be
     * unmounted. All our names are absolute. */
    int ignored = has_own && unshare(CLONE_FS) == 0 ? chdir("/") : 0;
    (void)ignored;
    return has_own;
}

bool sv_own_table_is(void)
{
    return has_own;
}

/* ---- lines ---- */

/* The program's standard error under its usual number, to be closed again. */
static bool borrow_stderr(void)
{
#if defined SYS_pidfd_open && defined SYS_pidfd_getfd
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, STDERR_FILENO, 0);
    if (process >= 0)
        close(process);
    if (fd < 0 || fd == STDERR_FILENO)
        return fd >= 0;
    bool ok = dup3(fd, STDERR_FILENO, O_CLOEXEC) >= 0;
    close(fd);
    return ok;
#else
    return false;
#endif
}

/* Called by sv_say(): true, if this thread does not have the program's standard error. */
bool sv_say_elsewhere(const char *line, size_t len)
{
    struct sv_process *p = sv_process;
    if (!has_own || !p)
        return false;
    if (borrow_stderr()) {
        ssize_t ignored = sv_say_may() ? write(STDERR_FILENO, line, len) : 0;
        (void)ignored;
        close(STDERR_FILENO);
        return true;
    }
    if (atomic_load_explicit(&p->n_unsaid, memory_order_relaxed) ==
        0) { /* the first is the cause */
        len = len < sizeof p->unsaid ? len : sizeof p->unsaid;
        memcpy(p->unsaid, line, len);
        p->unsaid[len - 1] = '\n';
        atomic_store_explicit(&p->n_unsaid, (uint32_t)len, memory_order_release);
    }
    return true;
}

void sv_own_table_say(struct sv_process *p)
{
    uint32_t n = atomic_exchange_explicit(&p->n_unsaid, 0, memory_order_acquire);
    if (n == 0)
        return;
    struct sv_quiet quiet;
    sv_quiet_begin(&quiet);
    ssize_t ignored = sv_say_may() ? write(STDERR_FILENO, p->unsaid, n) : 0;
    (void)ignored;
    sv_quiet_end(&quiet);
}

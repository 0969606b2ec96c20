/* The session directory of a process: made at its first session, removed at its end.
 *
 * Space is reserved before a file is mapped, so that a full file system is an error here and never
 * a SIGBUS there. Called with the process's lock held, except by readers (start ticks). No malloc:
 * a signal handler may be below us. */
#include "core/files/map_twice.h"
#include "core/files/trusted.h"
#include "sdk/session/folders.h"
#include "sdk/session/sdk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* ---- descriptors: the program may close them, and use their numbers for files of its own ---- */

static int folder(int *kept, const struct sv_file_id *id, const char *path)
{
    int fd = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (fd < 0 || sv_file_id_is(fd, id))
        return fd;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!sv_file_id_is(fd, id)) {
        if (fd >= 0)
            close(fd);
        errno = ENOENT;
        return -1;
    }
    fd = sv_file_id_move_up(fd);
    __atomic_store_n(kept, fd, __ATOMIC_RELEASE);
    return fd;
}

int sv_files_dir(struct sv_process *p)
{
    return folder(&p->dir_fd, &p->dir_id, p->dir);
}

int sv_files_names(struct sv_process *p)
{
    if (p->names_fd < 0 || sv_file_id_is(p->names_fd, &p->names_id))
        return p->names_fd;
    int dir = sv_files_dir(p);
    int fd = dir < 0 ? -1 : openat(dir, "names", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!sv_file_id_is(fd, &p->names_id)) {
        if (fd >= 0)
            close(fd);
        errno = ENOENT;
        return -1;
    }
    return p->names_fd = sv_file_id_move_up(fd);
}

/* PID-TIME: no two sessions ever have the same name. */
static bool make_dir(struct sv_process *p, const char *collector, const char *not_in)
{
    char name[64];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, sizeof name, "%u-%llx%x", p->pid, (unsigned long long)now.tv_sec,
             (unsigned)now.tv_nsec);
    int fd, base = -1;
    if (!collector) {
        fd = sv_folder_for_session(name, not_in, p->dir, sizeof p->dir);
    } else {
        base = sv_trusted_folder(AT_FDCWD, collector, SV_TRUST_PRIVATE);
        fd = base < 0 ? -1 : sv_folder_in(base, collector, name, p->dir, sizeof p->dir);
    }
    int error = errno;
    if (base >= 0)
        close(base);
    p->dir_fd = sv_file_id_move_up(fd);
    p->dir_id = sv_file_id_of(p->dir_fd);
    errno = error;
    return p->dir_fd >= 0;
}

/* A new file in the directory with its space reserved. */
static int new_file(int dir, const char *name, uint64_t bytes)
{
    int fd = dir < 0 ? -1 : openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    int error = bytes ? posix_fallocate(fd, 0, (off_t)bytes) : 0;
    if (error != 0) {
        close(fd);
        unlinkat(dir, name, 0);
        errno = error;
        return -1;
    }
    return fd;
}

static bool open_session_file(struct sv_process *p)
{
    int fd = new_file(p->dir_fd, "session", SV_SESSION_BYTES);
    if (fd < 0)
        return false;
    void *at = mmap(NULL, SV_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return false;
    madvise(at, SV_RINGLESS_AT, MADV_DONTFORK); /* the page of counters is for the children, too */
    struct sv_session_file *s = at;
    *s = (struct sv_session_file){
        .magic = SV_SESSION_MAGIC, .version = SV_LAYOUT_VERSION, .process = sv_process_id_self()};
    int cmd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = cmd >= 0 ? read(cmd, s->command, sizeof s->command - 1) : 0;
    if (cmd >= 0)
        close(cmd);
    for (ssize_t i = 0; i + 1 < n; i++)
        if (s->command[i] == '\0')
            s->command[i] = ' ';
    if (p->name[0])
        memcpy(s->name, p->name, sizeof s->name);
    else
        prctl(PR_GET_NAME, s->name);
    __atomic_store_n(&p->session, s, __ATOMIC_RELEASE);
    return true;
}

/* Its beginning is mapped, so that a new call site makes no system call; where there is no space,
 * all of it is written. */
static bool open_names(struct sv_process *p)
{
    int fd = new_file(p->dir_fd, "names", SV_NAMES_MAPPED);
    if (fd >= 0) {
        void *at = mmap(NULL, SV_NAMES_MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at != MAP_FAILED) {
            madvise(at, SV_NAMES_MAPPED, MADV_DONTFORK);
            p->names_map = at;
        }
    } else if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
        fd = new_file(p->dir_fd, "names", 0);
    }
    p->names_fd = sv_file_id_move_up(fd);
    p->names_id = sv_file_id_of(p->names_fd);
    return fd >= 0;
}

static bool open_files(struct sv_process *p, const char *collector, const char *not_in)
{
    if (!make_dir(p, collector, not_in))
        return false;
    if (open_session_file(p) && open_names(p))
        return true;
    int error = errno;
    sv_files_remove(p);
    __atomic_store_n(&p->session, NULL, __ATOMIC_RELEASE); /* it stays mapped */
    errno = error;
    return false;
}

bool sv_files_open(struct sv_process *p, const char *collector)
{
    if (p->session || open_files(p, collector, NULL))
        return true;
    if (collector || (errno != ENOSPC && errno != EDQUOT) || p->dir[0] == '\0')
        return false;
    char full[SV_PATH_MAX]; /* a directory still found its place there, the files did not */
    memcpy(full, p->dir, sizeof full);
    return open_files(p, NULL, full);
}

static void ring_name(char to[32], uint32_t number)
{
    char digits[12], *at = digits + sizeof digits;
    *--at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    memcpy(to, "ring.", 5);
    memcpy(to + 5, at, (size_t)(digits + sizeof digits - at));
}

/* Made when the first ring finds no space in the session's own directory. Not by a process that has
 * changed its user meanwhile: nobody could recover both. */
static int more_fd(struct sv_process *p)
{
    char path[SV_PATH_MAX];
    struct stat st;
    const char *name = strrchr(p->dir, '/');
    if (p->more_fd >= 0 || !name)
        return folder(&p->more_fd, &p->more_id, p->session->more);
    if (fstat(sv_files_dir(p), &st) != 0 || st.st_uid != geteuid()) {
        errno = EPERM;
        return -1;
    }
    int fd = sv_folder_for_session(name + 1, p->dir, path, sizeof path);
    if (fd < 0)
        return -1;
    memcpy(p->session->more, path, sizeof path);
    p->more_id = sv_file_id_of(fd);
    return p->more_fd = sv_file_id_move_up(fd);
}

/* Async-signal-safe, and done only once: at the end of the program, or in the handler of a signal
 * that ends it. */
void sv_files_remove(struct sv_process *p)
{
    char name[SV_PATH_MAX + 4];
    int dir_fd = sv_files_dir(p);
    if (__atomic_exchange_n(&p->dir_fd, -1, __ATOMIC_ACQ_REL) < 0)
        return;
    sv_file_id_close(__atomic_exchange_n(&p->names_fd, -1, __ATOMIC_ACQ_REL), &p->names_id);
    if (dir_fd < 0)
        return; /* out of reach: `stave recover` clears it away */
    uint32_t n = atomic_load(&p->n_rings);
    int more = p->more_fd < 0 ? -1 : folder(&p->more_fd, &p->more_id, p->session->more);
    for (uint32_t i = 0; i < n; i++) {
        ring_name(name, i);
        if (unlinkat(dir_fd, name, 0) != 0 && more >= 0)
            unlinkat(more, name, 0);
    }
    if (more >= 0) {
        sv_file_id_close(more, &p->more_id);
        p->more_fd = -1;
        rmdir(p->session->more);
    }
    unlinkat(dir_fd, "names", 0);
    unlinkat(dir_fd, "session", 0);
    /* By its parent: the program may have another root now. Not while a client is there, who will
     * do it. */
    const char *slash = strrchr(p->dir, '/');
    memcpy(name, "..", 2);
    if (slash)
        memcpy(name + 2, slash, strlen(slash) + 1);
    if (!slash || unlinkat(dir_fd, name, AT_REMOVEDIR) != 0)
        rmdir(p->dir);
    sv_file_id_close(dir_fd, &p->dir_id);
}

static uint8_t *map_ring(int fd, uint64_t size)
{
    uint8_t *at = sv_map_twice(fd, SV_PAGE, size);
    if (!at)
        return NULL;
    madvise(at, SV_PAGE + 2 * size, MADV_DONTFORK); /* a child must not write here */
    return at;
}

static int memory_file(uint64_t bytes)
{
    int fd = memfd_create("stave-ring", MFD_CLOEXEC);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    if (fd >= 0 && error != 0) {
        close(fd);
        fd = -1;
    }
    errno = error;
    return fd;
}

/* A sixteenth of a small file system stays free: for the session files of other processes, which
 * can be nowhere else, and for the program. */
static bool has_space(int dir_fd, uint64_t bytes)
{
    struct statvfs fs;
    if (fstatvfs(dir_fd, &fs) != 0 || fs.f_blocks == 0)
        return true;
    if (fs.f_bavail > fs.f_blocks / 16 && (fs.f_bavail - fs.f_blocks / 16) * fs.f_frsize >= bytes)
        return true;
    errno = ENOSPC;
    return false;
}

bool sv_ring_open(struct sv_process *p, uint32_t number, uint64_t size, enum sv_ring_place place,
                  struct sv_ring_ref *out)
{
    char name[32];
    ring_name(name, number);
    int dir_fd = place == SV_RING_IN_DIR    ? sv_files_dir(p)
                 : place == SV_RING_IN_MORE ? more_fd(p)
                                            : -1;
    int fd = place == SV_RING_IN_MEMORY ? memory_file(SV_PAGE + size)
             : dir_fd < 0 || !has_space(dir_fd, SV_PAGE + size)
                 ? -1
                 : new_file(dir_fd, name, SV_PAGE + size);
    if (fd < 0)
        return false;
    uint8_t *at = map_ring(fd, size);
    int error = errno;
    close(fd);
    if (!at) {
        if (dir_fd >= 0)
            unlinkat(dir_fd, name, 0);
        errno = error;
        return false;
    }
    /* Positions begin at `size`: 0 has a meaning of its own for the thread. */
    struct sv_ring *r = (struct sv_ring *)(void *)at;
    r->version = SV_LAYOUT_VERSION;
    r->size = size;
    r->pid = p->pid;
    r->number = number;
    atomic_store(&r->head, size);
    atomic_store(&r->tail, size);
    atomic_store(&r->mark[0].pos, size);
    sv_ring_forget(r, size, 0);
    r->magic = SV_RING_MAGIC;
    *out = (struct sv_ring_ref){.ring = r, .data = at + SV_PAGE};
    return true;
}

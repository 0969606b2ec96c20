/* Text of events in shared memory: see unwritten.h. New ones are made by the writer
 * (trace_writer.c), found again by `stave recover`. What is found was written by this user, and
 * may be damaged all the same: every number is checked. */
#include "compat/unwritten.h"

#include "core/base/now.h"
#include "core/files/map_twice.h"
#include "core/files/trusted.h"
#include "core/files/write_all.h"
#include "sdk/session/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC        UINT64_C(0x6e6f736a65766174) /* "tavejson" */
#define VERSION      1
#define FOLDER_BEGIN "json-"
#define FILE_NAME    "events"
enum { BYTES = SV_UNWRITTEN_HEAD + SV_UNWRITTEN_RING };

/* ---- the writer's side ---- */

/* Space is reserved, so that a full file system is an error here and never a SIGBUS there. */
static int reserved(int fd)
{
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, BYTES);
    if (fd >= 0 && error != 0) {
        close(fd);
        fd = -1;
    }
    errno = error;
    return fd;
}

/* A file with a name, in the first folder that has space for it; -1: nowhere. */
static int open_named(char dir[static SV_PATH_MAX])
{
    char name[64], full[SV_PATH_MAX];
    snprintf(name, sizeof name, FOLDER_BEGIN "%ld-%llx", (long)getpid(),
             (unsigned long long)sv_now_ns(CLOCK_REALTIME));
    const char *not_in = NULL;
    for (int i = 0; i < 2; i++) {
        int folder = sv_folder_for_session(name, not_in, dir, SV_PATH_MAX);
        if (folder < 0)
            break;
        int fd = reserved(
            openat(folder, FILE_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (fd < 0)
            unlinkat(folder, FILE_NAME, 0);
        close(folder);
        if (fd >= 0)
            return fd;
        rmdir(dir);
        memcpy(full, dir, sizeof full);
        not_in = full;
    }
    dir[0] = '\0';
    return -1;
}

static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

struct sv_unwritten *sv_unwritten_new(char dir[static SV_PATH_MAX])
{
    int fd = open_named(dir);
    if (fd < 0)
        fd = reserved(memfd_create("stave-json", MFD_CLOEXEC));
    uint8_t *at = fd < 0 ? NULL : sv_map_twice(fd, SV_UNWRITTEN_HEAD, SV_UNWRITTEN_RING);
    int error = errno;
    if (fd >= 0)
        close(fd);
    struct sv_unwritten *u = (struct sv_unwritten *)(void *)at;
    if (u) {
        init_lock(&u->lock);
        u->version = VERSION;
        u->pid = (uint32_t)getpid();
        u->has_name = dir[0] != '\0';
        u->magic = MAGIC;
    } else if (dir[0]) {
        sv_unwritten_discard(dir);
        dir[0] = '\0';
    }
    errno = error;
    return u;
}

void sv_unwritten_remove(struct sv_unwritten *u, const char *dir)
{
    if (!atomic_exchange(&u->has_name, false))
        return;
    u->magic = 0;
    sv_unwritten_discard(dir);
}

void sv_unwritten_free(struct sv_unwritten *u)
{
    if (u)
        munmap(u, SV_UNWRITTEN_HEAD + 2 * (size_t)SV_UNWRITTEN_RING);
}

/* ---- recovery ---- */

/* The head as it was left, checked. */
static bool take_head(const struct sv_unwritten *u, struct sv_unwritten_left *l)
{
    uint64_t pushed = u->pushed, written = u->written, origin = u->origin;
    if (u->magic != MAGIC || u->version != VERSION || pushed < written ||
        pushed - written > SV_UNWRITTEN_RING || written - origin > INT64_MAX / 2 ||
        u->path[0] != '/' || !memchr(u->path, '\0', sizeof u->path))
        return false;
    memcpy(l->path, u->path, sizeof l->path);
    l->pid = u->pid;
    l->device = u->device;
    l->inode = u->inode;
    l->at = written - origin;
    l->n = (size_t)(pushed - written);
    return true;
}

static bool read_file(int fd, struct sv_unwritten_left *l)
{
    struct stat st;
    struct sv_unwritten u;
    if (fstat(fd, &st) != 0 || st.st_size != BYTES || !sv_read_all_at(fd, &u, sizeof u, 0) ||
        !take_head(&u, l))
        return false;
    size_t from = (size_t)(u.written % SV_UNWRITTEN_RING),
           first = l->n < SV_UNWRITTEN_RING - from ? l->n : SV_UNWRITTEN_RING - from;
    return sv_read_all_at(fd, l->text, first, SV_UNWRITTEN_HEAD + from) &&
           sv_read_all_at(fd, l->text + first, l->n - first, SV_UNWRITTEN_HEAD);
}

static bool read_left(int folder, struct sv_unwritten_left *l)
{
    int dir = sv_trusted_folder(folder, strrchr(l->dir, '/') + 1, SV_TRUST_PRIVATE);
    int fd = dir < 0 ? -1 : sv_trusted_file(dir, FILE_NAME, O_RDONLY, SV_TRUST_PRIVATE, 0);
    bool is_read = fd >= 0 && read_file(fd, l);
    if (fd >= 0)
        close(fd);
    if (dir >= 0)
        close(dir);
    return is_read;
}

static int each_in(const struct sv_folder *f, struct sv_unwritten_left *l,
                   int (*visit)(void *ctx, const struct sv_unwritten_left *l), void *ctx)
{
    int fd = sv_folder_open(f, false), status = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    for (struct dirent *e; status == 0 && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, FOLDER_BEGIN, sizeof FOLDER_BEGIN - 1) == 0 &&
            snprintf(l->dir, sizeof l->dir, "%s/%s", f->path, e->d_name) < (int)sizeof l->dir &&
            read_left(dirfd(d), l))
            status = visit(ctx, l);
    closedir(d);
    return status;
}

int sv_unwritten_each(int (*visit)(void *ctx, const struct sv_unwritten_left *l), void *ctx)
{
    struct sv_folder folders[SV_FOLDERS_MAX];
    struct sv_unwritten_left *l = malloc(sizeof *l);
    size_t n = sv_folders(folders);
    int status = 0;
    for (size_t i = 0; l && i < n && status == 0; i++)
        status = each_in(&folders[i], l, visit, ctx);
    free(l);
    return status;
}

void sv_unwritten_discard(const char *dir)
{
    int fd = sv_trusted_folder(AT_FDCWD, dir, SV_TRUST_PRIVATE);
    if (fd < 0)
        return;
    unlinkat(fd, FILE_NAME, 0);
    close(fd);
    rmdir(dir);
}

/* Does the file end as its writer left it: with the bracket, or with a part of this very text? */
static bool is_as_left(int fd, const struct sv_unwritten_left *l)
{
    struct stat st;
    char first;
    return fstat(fd, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode &&
           (uint64_t)st.st_size > l->at && (uint64_t)st.st_size <= l->at + l->n + 2 &&
           sv_read_all_at(fd, &first, 1, 0) && first == '[';
}

static int complete(int fd, const struct sv_unwritten_left *l, const char *path, struct sv_err *err)
{
    static const char *const what = "%s: cannot be completed";
    size_t n = l->n + 1;
    uint8_t *text = malloc(2 * n);
    if (!text)
        return sv_error(err, SV_ENOMEM, "%s: out of memory", path);
    memcpy(text, l->text, l->n);
    text[l->n] = ']';
    if (l->at == 0)
        text[0] = '[';
    int code = 0;
    if (!sv_write_all_at(fd, text, n, l->at) || ftruncate(fd, (off_t)(l->at + n)) != 0 ||
        fsync(fd) != 0 || !sv_read_all_at(fd, text + n, n, l->at))
        code = sv_err_sys(err, what, path);
    else if (memcmp(text, text + n, n) != 0)
        code = sv_error(err, SV_EIO, "%s: cannot be completed: other bytes were read back", path);
    free(text);
    return code;
}

static int open_file(const char *path)
{
    return sv_trusted_target(path) ? open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
}

bool sv_unwritten_is_held(const struct sv_unwritten_left *l)
{
    int fd = open_file(l->path);
    bool is_held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return is_held;
}

int sv_unwritten_complete(const struct sv_unwritten_left *l, const char *path, struct sv_err *err)
{
    int fd = open_file(path);
    if (fd < 0)
        return sv_err_sys(err, "%s: cannot be completed", path);
    int code = 0;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        code = sv_error(err, SV_EHELD,
                        "%s: process %u, or a child of it, is still writing it; recover it after "
                        "that process has exited",
                        path, l->pid);
    else if (!is_as_left(fd, l))
        code = sv_error(err, SV_EINPUT,
                        "%s: was changed since its writer ended; the %zu bytes of events that it "
                        "lacks stay in %s",
                        path, l->n, l->dir);
    else if (l->n > 0)
        code = complete(fd, l, path, err);
    close(fd);
    return code;
}

/* Trusted paths: see trusted.h. Called by the SDK, the recorder, the listener and recovery for
 * every file that they find by name. */
#include "core/files/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_trusted(const struct stat *st, enum sv_trust trust)
{
    mode_t others = trust == SV_TRUST_PRIVATE ? 077 : 022;
    return st->st_uid == geteuid() && (st->st_mode & others) == 0;
}

/* The descriptor if the check holds; closes it otherwise. */
static int checked(int fd, mode_t type, enum sv_trust trust)
{
    struct stat st;
    if (fd < 0)
        return -1;
    int error = EPERM;
    if (fstat(fd, &st) != 0)
        error = errno;
    else if ((st.st_mode & S_IFMT) == type && is_trusted(&st, trust) &&
             (type == S_IFDIR || st.st_nlink == 1))
        return fd;
    close(fd);
    errno = error;
    return -1;
}

bool sv_trusted_failed(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO ||
           error == EACCES || error == ESTALE || error == EINTR;
}

int sv_trusted_folder(int base_fd, const char *path, enum sv_trust trust)
{
    int fd = openat(base_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return checked(fd, S_IFDIR, trust);
}

int sv_trusted_make_folder(int base_fd, const char *path)
{
    if (mkdirat(base_fd, path, 0700) != 0 && errno != EEXIST)
        return -1;
    return sv_trusted_folder(base_fd, path, SV_TRUST_PRIVATE);
}

int sv_trusted_file(int base_fd, const char *path, int flags, enum sv_trust trust, mode_t mode)
{
    /* Without O_NONBLOCK a fifo in its place would hold us. */
    int now = (flags & ~O_TRUNC) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = checked(openat(base_fd, path, now, mode), S_IFREG, trust);
    if (fd >= 0 && (flags & O_TRUNC) && ftruncate(fd, 0) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

ssize_t sv_trusted_read(int base_fd, const char *path, char *to, size_t size)
{
    int fd = sv_trusted_file(base_fd, path, O_RDONLY, SV_TRUST_OWN, 0);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, to, size - 1);
    int error = errno;
    close(fd);
    to[n > 0 ? n : 0] = '\0';
    errno = error;
    return n;
}

/* ---- outputs ---- */

enum { LINKS_MAX = 40 };

/* Where the link `fd` (opened as itself) at `path` leads to. False: it cannot be followed. */
static bool follow(int fd, char path[static PATH_MAX])
{
    char to[PATH_MAX];
    ssize_t n = readlinkat(fd, "", to, sizeof to - 1);
    if (n <= 0)
        return false;
    to[n] = '\0';
    char *slash = strrchr(path, '/');
    size_t folder = to[0] != '/' && slash ? (size_t)(slash + 1 - path) : 0;
    if (folder + (size_t)n >= PATH_MAX)
        return false;
    memcpy(path + folder, to, (size_t)n + 1);
    return true;
}

static bool is_shared_folder_of(const char *path)
{
    char folder[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash + 1 - path) : 0;
    memcpy(folder, n ? path : "./", n ? n : 2);
    folder[n ? n : 2] = '\0';
    return stat(folder, &st) == 0 && (st.st_mode & S_IWOTH) != 0;
}

bool sv_trusted_target(const char *path)
{
    char at[PATH_MAX];
    if (strlen(path) >= sizeof at)
        return true; /* opening it fails */
    memcpy(at, path, strlen(path) + 1);
    for (int i = 0; i < LINKS_MAX; i++) {
        struct stat st;
        int fd = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        bool is_there = fd >= 0 && fstat(fd, &st) == 0;
        bool is_link = is_there && S_ISLNK(st.st_mode);
        bool is_own = is_there && (st.st_uid == geteuid() || st.st_uid == 0);
        bool goes_on = is_link && is_own && follow(fd, at);
        if (fd >= 0)
            close(fd);
        if (goes_on)
            continue;
        errno = EPERM;
        return !is_there || is_own ||
               (!is_link && !(S_ISFIFO(st.st_mode) && is_shared_folder_of(at)));
    }
    return true; /* a circle: opening it fails */
}

/* ---- ways ---- */

struct walk {
    int fd;              /* the folder that was reached */
    char rest[PATH_MAX]; /* what is still to go */
    int n_links;
};

static void step_to(struct walk *w, int fd)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = fd;
}

static int start_of(const char *path)
{
    return open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The link `fd` instead of its name: its target, then what was behind it. 0 or errno. */
static int take_link(struct walk *w, int fd, uid_t owner, const char *behind)
{
    char to[PATH_MAX];
    if (owner != geteuid() && owner != 0)
        return EPERM;
    ssize_t n = readlinkat(fd, "", to, sizeof to - 1);
    size_t len = strlen(behind);
    if (n <= 0 || ++w->n_links > LINKS_MAX)
        return ELOOP;
    if ((size_t)n + 1 + len >= sizeof w->rest)
        return ENAMETOOLONG;
    memmove(w->rest + n + 1, behind, len + 1);
    memcpy(w->rest, to, (size_t)n);
    w->rest[n] = '/';
    if (to[0] == '/')
        step_to(w, start_of("/"));
    return 0;
}

/* One component further. 0 or errno. */
static int walk_on(struct walk *w)
{
    char *name = w->rest + strspn(w->rest, "/"), *end = name + strcspn(name, "/");
    struct stat st;
    bool is_last = *end == '\0';
    *end = '\0';
    int fd = openat(w->fd, *name ? name : ".", O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &st) != 0) {
        close(fd);
        return EIO;
    }
    const char *behind = is_last ? end : end + 1;
    if (!S_ISLNK(st.st_mode)) {
        memmove(w->rest, behind, strlen(behind) + 1);
        step_to(w, fd);
        return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    }
    int error = take_link(w, fd, st.st_uid, behind);
    close(fd);
    return error;
}

int sv_trusted_walk(const char *folder)
{
    struct walk w = {.fd = start_of(folder)};
    int error = w.fd < 0 ? errno : strlen(folder) >= sizeof w.rest ? ENAMETOOLONG : 0;
    if (error == 0)
        memcpy(w.rest, folder, strlen(folder) + 1);
    while (error == 0 && w.rest[strspn(w.rest, "/")])
        error = walk_on(&w);
    if (error == 0)
        return w.fd;
    step_to(&w, -1);
    errno = error;
    return -1;
}

bool sv_trusted_remove(const char *path, dev_t device, ino_t inode)
{
    char folder[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 2,
                 slash ? path : "./") >= (int)sizeof folder)
        return false;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_gone = fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   st.st_dev == device && st.st_ino == inode && unlinkat(fd, name, 0) == 0;
    if (fd >= 0)
        close(fd);
    return is_gone;
}

const char *sv_trusted_getenv(const char *name)
{
    return secure_getenv(name);
}

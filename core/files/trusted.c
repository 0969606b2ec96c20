/* Trusted paths: see trusted.h. Called by the SDK, the recorder, the listener and recovery for every file that they find by name. */
#include "core/files/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

const char *sv_trusted_getenv(const char *name)
{
    return secure_getenv(name);
}

/* Where sessions are: see folders.h. Called when a session is made, with the process's lock held,
 * and by recovery. No memory is allocated: a signal handler may be below us.
 *
 * They belong on a file system in memory: pages of a disk file are written back again and again,
 * and each time the hot path would take a fault. */
#include "sdk/session/folders.h"

#include "core/files/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 16 };

/* BASE + tail, absolute, since the program may change its directory; without a base there is
 * none. */
static void add(struct sv_folder *to, size_t *n, const char *base, const char *tail, bool is_given)
{
    struct sv_folder *f = &to[*n];
    size_t at = 0, size = sizeof f->path;
    f->is_given = is_given;
    if (!base || !*base)
        return;
    if (*base != '/') {
        if (!getcwd(f->path, size - 1))
            return;
        at = strlen(f->path);
        f->path[at++] = '/';
    }
    if (snprintf(f->path + at, size - at, "%s%s", base, tail) < (int)(size - at))
        ++*n;
}

static size_t usual(struct sv_folder to[static SV_FOLDERS_USUAL])
{
    size_t n = 0;
    char mine[32];
    const char *tmp = sv_trusted_getenv("TMPDIR");
    snprintf(mine, sizeof mine, "/stave-%u", (unsigned)geteuid());
    add(to, &n, sv_trusted_getenv("STAVE_SESSION_DIR"), "", true);
    if (n > 0)
        return n; /* instead of the others */
    add(to, &n, sv_trusted_getenv("XDG_RUNTIME_DIR"), "/stave", false);
    add(to, &n, "/dev/shm", mine, false);
    add(to, &n, tmp && *tmp ? tmp : "/tmp", mine, false);
    return n;
}

/* BASE and NAME of a folder. */
static const char *split(const struct sv_folder *f, char base[static SV_PATH_MAX])
{
    memcpy(base, f->path, SV_PATH_MAX);
    char *slash = strrchr(base, '/');
    *slash = '\0';
    return slash + 1;
}

static bool join(struct sv_folder *to, const char *base, const char *name)
{
    to->is_given = false;
    return snprintf(to->path, sizeof to->path, "%s/%s", base, name) < (int)sizeof to->path;
}

size_t sv_folders(struct sv_folder to[static SV_FOLDERS_MAX])
{
    char others[SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX], base[SV_PATH_MAX];
    size_t n = usual(to), n_usual = n;
    for (size_t i = 0; i < n_usual && !to[i].is_given; i++) {
        const char *name = split(&to[i], base);
        size_t found = sv_own_others(base, name, others);
        for (size_t k = 0; k < found; k++)
            n += join(&to[n], base, others[k]);
    }
    return n;
}

/* In a folder that was given others may have theirs, too: what counts is who owns the session's own
 * one. */
int sv_folder_open(const struct sv_folder *f, bool makes)
{
    if (!f->is_given)
        return makes ? sv_trusted_make_folder(AT_FDCWD, f->path)
                     : sv_trusted_folder(AT_FDCWD, f->path, SV_TRUST_PRIVATE);
    if (makes && mkdir(f->path, 0700) != 0 && errno != EEXIST)
        return -1;
    return open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int sv_folder_in(int base, const char *base_path, const char *name, char *path, size_t size)
{
    size_t len = strlen(base_path) + 1;
    for (unsigned i = 0; i < TRIES; i++) {
        int n = i ? snprintf(path, size, "%s/%s.%u", base_path, name, i)
                  : snprintf(path, size, "%s/%s", base_path, name);
        if (n < 0 || (size_t)n + 32 >= size) { /* the names of files follow */
            errno = ENAMETOOLONG;
            return -1;
        }
        if (mkdirat(base, path + len, 0700) == 0)
            return sv_trusted_folder(base, path + len, SV_TRUST_PRIVATE);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Is the path below the place that holds this folder, whatever it is called there? */
static bool is_beside(const char *path, const struct sv_folder *f)
{
    char base[SV_PATH_MAX];
    split(f, base);
    size_t len = strlen(base);
    return path && strncmp(path, base, len) == 0 && path[len] == '/';
}

/* Takes the descriptor of its folder, which may be -1. */
static int session_in(int base, const char *base_path, const char *name, char *path, size_t size)
{
    int fd = base < 0 ? -1 : sv_folder_in(base, base_path, name, path, size);
    int error = errno;
    if (base >= 0)
        close(base);
    errno = error;
    return fd;
}

int sv_folder_for_session(const char *name, const char *not_in, char *path, size_t size)
{
    struct sv_folder all[SV_FOLDERS_USUAL], other;
    size_t n = usual(all);
    int fd = -1;
    errno = ENOSPC;
    for (size_t i = 0; i < n && fd < 0; i++)
        if (!is_beside(not_in, &all[i]))
            fd = session_in(sv_folder_open(&all[i], true), all[i].path, name, path, size);
    /* Another user has made these names, or what he made is in their place. */
    for (size_t i = 0; i < n && fd < 0 && !all[i].is_given; i++) {
        char base[SV_PATH_MAX], made[SV_OWN_NAME_MAX];
        const char *last = split(&all[i], base);
        if (is_beside(not_in, &all[i]))
            continue;
        int folder = sv_own_other(base, last, made);
        if (folder >= 0 && !join(&other, base, made)) {
            close(folder);
            folder = -1;
        }
        fd = session_in(folder, other.path, name, path, size);
    }
    return fd;
}

/* The list of recordings that run: files PID in $XDG_RUNTIME_DIR/stave-recordings or /dev/shm/stave-recordings-UID, of this user alone.
 * Written by the recorder, read by status and stop. A file is believed only while its process holds the lock on it. */
#include "cmd/running.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void folder(char *path, size_t size)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    if (run && *run && access(run, W_OK) == 0)
        snprintf(path, size, "%s/stave-recordings", run);
    else
        snprintf(path, size, "/dev/shm/stave-recordings-%u", (unsigned)geteuid());
}

/* Ours, and nobody else can write to it. */
static bool is_safe(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

char *sv_running_tell(const char *name, const char *out, bool is_ring)
{
    char dir[512], cwd[512], text[2048], path[600];
    folder(dir, sizeof dir);
    if ((mkdir(dir, 0700) != 0 && errno != EEXIST) || !is_safe(dir))
        return NULL;
    snprintf(path, sizeof path, "%s/%d", dir, (int)getpid());
    if (out[0] == '/' || !getcwd(cwd, sizeof cwd))
        cwd[0] = 0;
    int n = snprintf(text, sizeof text, "%lld\n%.63s\n%s%s%.1000s\n%s\n", (long long)time(NULL),
                     name, cwd, cwd[0] ? "/" : "", out, is_ring ? "ring" : "file");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    /* The descriptor stays open until the process ends, and the lock with it. */
    if (n <= 0 || write(fd, text, (size_t)n) != n || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        unlink(path);
        return NULL;
    }
    return sv_strndup(path, strlen(path));
}

static bool take_line(char **at, char *to, size_t size)
{
    char *end = strchr(*at, '\n');
    if (!end || (size_t)(end - *at) >= size)
        return false;
    memcpy(to, *at, (size_t)(end - *at));
    to[end - *at] = 0;
    *at = end + 1;
    return true;
}

static bool read_one(const char *path, struct sv_running *r)
{
    char text[2048], since[32], *at = text;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (!is_held) {
        unlink(path); /* whoever wrote it is gone */
        return false;
    }
    text[n > 0 ? n : 0] = 0;
    if (!take_line(&at, since, sizeof since) || !take_line(&at, r->name, sizeof r->name) ||
        !take_line(&at, r->out, sizeof r->out))
        return false;
    r->is_ring = strcmp(at, "ring\n") == 0;
    r->since_s = strtoll(since, NULL, 10);
    return true;
}

bool sv_running_is(const struct sv_running *r, const char *word)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)r->pid);
    return strcmp(word, pid) == 0 || strcmp(word, r->name) == 0 || strcmp(word, r->out) == 0;
}

static int by_age(const void *a, const void *b)
{
    const struct sv_running *x = a, *y = b;
    return x->since_s != y->since_s ? (x->since_s > y->since_s) - (x->since_s < y->since_s)
                                    : (x->pid > y->pid) - (x->pid < y->pid);
}

size_t sv_running_all(struct sv_running **all)
{
    char dir[512], path[800];
    size_t n = 0, cap = 0;
    *all = NULL;
    folder(dir, sizeof dir);
    DIR *d = is_safe(dir) ? opendir(dir) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        struct sv_running r = {.pid = (pid_t)strtol(e->d_name, NULL, 10)};
        snprintf(path, sizeof path, "%s/%.255s", dir, e->d_name);
        if (r.pid <= 0 || !read_one(path, &r))
            continue;
        *all = sv_grow(*all, &cap, n + 1, sizeof **all);
        (*all)[n++] = r;
    }
    if (d)
        closedir(d);
    if (n > 1)
        qsort(*all, n, sizeof **all, by_age);
    return n;
}

/* A log that grows: new lines with a text. Called for `log FILE ~ 'text'`.
 *
 * What was there at the first look does not count. A file that is replaced or cut is read from its
 * beginning. */
#include "core/base/mem.h"
#include "record/when/condition.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1 << 14, LOOK_BYTES = 1 << 20 };

struct sv_when_log {
    char *path, *text;
    int fd;
    ino_t inode;
    dev_t device;
    off_t at;
    bool has_looked;
    char bytes[LINE_MAX_BYTES + 1];
    size_t n, line; /* bytes held; where the next line begins */
    size_t left;    /* of this look */
};

struct sv_when_log *sv_when_log_new(const char *path, const char *text)
{
    struct sv_when_log *l = sv_alloc(sizeof *l);
    l->path = sv_strndup(path, strlen(path));
    l->text = sv_strndup(text, strlen(text));
    l->fd = -1;
    return l;
}

void sv_when_log_free(struct sv_when_log *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    free(l->path);
    free(l->text);
    free(l);
}

const char *sv_when_log_path(const struct sv_when_log *l)
{
    return l->path;
}

bool sv_when_log_is_there(const struct sv_when_log *l)
{
    return l->fd >= 0;
}

/* Opens it, or what has its name now. A pipe or a device is no log: reading it takes from
 * others. */
static void open_it(struct sv_when_log *l)
{
    struct stat st;
    int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return;
    }
    if (l->fd >= 0)
        close(l->fd);
    l->fd = fd;
    l->inode = st.st_ino;
    l->device = st.st_dev;
    l->at = l->has_looked ? 0 : st.st_size;
    l->n = l->line = 0;
}

static void look(struct sv_when_log *l)
{
    struct stat named, held;
    bool is_there = stat(l->path, &named) == 0;
    if (is_there && (l->fd < 0 || named.st_ino != l->inode || named.st_dev != l->device))
        open_it(l);
    else if (l->fd >= 0 && fstat(l->fd, &held) == 0 && held.st_size < l->at)
        l->at = 0, l->n = l->line = 0;
    l->has_looked = true;
    l->left = LOOK_BYTES;
}

/* False: nothing more now. A line that is too long is looked at in pieces. */
static bool read_on(struct sv_when_log *l)
{
    memmove(l->bytes, l->bytes + l->line, l->n - l->line);
    l->n -= l->line;
    l->line = 0;
    if (l->n == LINE_MAX_BYTES)
        l->n = 0;
    if (l->left == 0 || l->fd < 0)
        return false;
    ssize_t n = pread(l->fd, l->bytes + l->n, LINE_MAX_BYTES - l->n, l->at);
    if (n <= 0)
        return false;
    l->at += n;
    l->n += (size_t)n;
    l->left = (size_t)n < l->left ? l->left - (size_t)n : 0;
    return true;
}

/* The next whole line, or as much of it as is held; NULL: more must be read. */
static char *next_line(struct sv_when_log *l)
{
    char *from = l->bytes + l->line, *end = memchr(from, '\n', l->n - l->line);
    if (!end && l->n - l->line < LINE_MAX_BYTES)
        return NULL;
    if (!end)
        end = l->bytes + l->n;
    *end = '\0';
    l->line = end < l->bytes + l->n ? (size_t)(end - l->bytes) + 1 : l->n;
    return from;
}

const char *sv_when_log_next(struct sv_when_log *l)
{
    if (l->left == 0)
        look(l);
    for (;;) {
        char *line = next_line(l);
        if (line && strstr(line, l->text))
            return line;
        if (!line && !read_on(l)) {
            l->left = 0;
            return NULL;
        }
    }
}

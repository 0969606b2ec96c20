/* The growing file of a session, wherever it is by now. Called by the writer thread.
 *
 * A file keeps its bytes when its folder is renamed, and while it is open even when it is removed.
 * The writer holds a descriptor of it to read: with that it finds the name that the file has now,
 * or writes it once more under the old one, in a folder that is made again. */
#include "core/files/claim_file.h"
#include "core/files/trusted.h"
#include "sdk/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 24 };

void sv_part_open(struct sv_session_writer *w)
{
    w->part_fd = sv_file_id_move_up(open(w->part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    w->part_id = sv_file_id_of(w->part_fd);
}

void sv_part_close(struct sv_session_writer *w)
{
    sv_file_id_close(w->part_fd, &w->part_id);
    w->part_fd = -1;
}

/* ---- moved ---- */

/* The marker moved with the folder. Where only the file was renamed, it is left under the old name
 * and leads nowhere. */
static void rename_all(struct sv_session_writer *w, const struct sv_claim *c)
{
    struct sv_session_file *s = w->process->session;
    if (access(w->claim.marker, F_OK) == 0)
        sv_claim_release(&w->claim);
    memcpy(w->claim.out, c->out, sizeof c->out);
    memcpy(w->claim.part, c->part, sizeof c->part);
    memcpy(w->claim.marker, c->marker, sizeof c->marker);
    memcpy(s->out, c->out, sizeof s->out);
    memcpy(s->part, c->part, sizeof s->part);
    memcpy(w->out, c->out, sizeof w->out - 1); /* looked at: it is not longer */
    memcpy(w->part, c->part, sizeof w->part);
}

/* The name that the kernel knows for it, if that is one of a growing file and leads to it. */
static bool find(struct sv_session_writer *w)
{
    char link[64], path[SV_CLAIM_PATH_MAX];
    struct sv_claim c;
    struct stat st;
    snprintf(link, sizeof link, "/proc/thread-self/fd/%d", w->part_fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    size_t tail = sizeof SV_PART_SUFFIX - 1;
    if (n <= (ssize_t)tail || (size_t)n - tail >= sizeof w->out)
        return false;
    path[n] = '\0';
    if (lstat(path, &st) != 0 || st.st_dev != w->part_id.device || st.st_ino != w->part_id.inode ||
        strcmp(path + n - tail, SV_PART_SUFFIX) != 0)
        return false;
    path[n - (ssize_t)tail] = '\0';
    if (!sv_claim_names(&c, path, 0))
        return false;
    rename_all(w, &c);
    return true;
}

/* ---- removed ---- */

/* The folders of a path, as far as they are missing. */
static void make_folders(const char *path)
{
    char folder[SV_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777); /* most are there */
        *slash = '/';
    }
}

static bool copy(int from, int to, uint64_t bytes)
{
    off_t at = 0;
    while ((uint64_t)at < bytes) {
        ssize_t n = sendfile(to, from, &at, COPY_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
    }
    return true;
}

static bool write_again(const struct sv_session_writer *w, const struct stat *removed)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int fd = open(w->part, FLAGS, 0600);
    if (fd < 0 && errno == ENOENT) {
        make_folders(w->part);
        fd = open(w->part, FLAGS, 0600);
    }
    if (fd < 0)
        return false;
    bool ok = fchmod(fd, removed->st_mode & 0777) == 0 &&
              copy(w->part_fd, fd, (uint64_t)removed->st_size);
    ok = close(fd) == 0 && ok;
    if (!ok)
        unlink(w->part);
    return ok;
}

bool sv_part_settle(struct sv_session_writer *w)
{
    struct stat st, now;
    if (!sv_file_id_is(w->part_fd, &w->part_id) || fstat(w->part_fd, &st) != 0)
        return true; /* nothing is known: the name must do */
    bool has_name = lstat(w->part, &now) == 0 && S_ISREG(now.st_mode) && now.st_uid == geteuid();
    if (has_name && now.st_dev == st.st_dev && now.st_ino == st.st_ino)
        return true;
    if (has_name && st.st_nlink == 0 && w->is_rewritten)
        return true; /* the sink has put another file in its place */
    if (st.st_nlink > 0)
        return find(w);
    w->was_removed = true;
    w->is_gone = !write_again(w, &st);
    return !w->is_gone;
}

void sv_part_cut(const struct sv_session_writer *w, uint64_t bytes)
{
    int fd = sv_trusted_file(AT_FDCWD, w->part, O_WRONLY, SV_TRUST_OWN, 0);
    bool is_known = w->part_id.device || w->part_id.inode;
    if (fd < 0)
        return;
    if ((is_known && !sv_file_id_is(fd, &w->part_id)) || ftruncate(fd, (off_t)bytes) != 0)
        errno = 0; /* the program's own, or as long as it is: recovery cuts it, too */
    close(fd);
}

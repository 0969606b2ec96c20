/* Taking, keeping and giving up claims: see claim.h.
 *
 * Called by the SDK (when a session opens its file), by `stave record` and by `stave listen`.
 * Nothing is opened through a link, nothing that others could have written is believed, and no file
 * is removed or replaced but the holder's own. */
#include "core/files/claim_file.h"

#include "core/files/out_name.h"
#include "core/files/trusted.h"
#include "core/files/write_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 16, LOCK_TRIES = 500 };

/* ---- renaming without replacing ---- */

/* Atomic where the file system can do it, in one of two ways; otherwise by looking first. */
static int rename_new(const char *from, const char *to)
{
    struct stat st;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) == 0) {
        unlink(from);
        return 0;
    }
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    if (lstat(to, &st) != 0)
        return rename(from, to);
    errno = EEXIST;
    return -1;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- the marker ---- */

static int new_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void remember_marker(struct sv_claim *c, int fd)
{
    struct stat st;
    c->fd = fd;
    if (fstat(fd, &st) == 0)
        c->file = sv_claim_see(&st);
}

/* Written beside it and moved there, so that no reader sees half of it. 0 or errno; EEXIST: it is
 * claimed. */
static int make_marker(struct sv_claim *c, int (*move)(const char *from, const char *to))
{
    char text[SV_CLAIM_BYTES_MAX], draft[SV_CLAIM_PATH_MAX + 32];
    struct timespec now;
    int n = sv_claim_text(c, text, sizeof text);
    if (n < 0)
        return ENAMETOOLONG;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(draft, sizeof draft, "%s.%x-%lx.new", c->marker, (unsigned)getpid(),
             (unsigned long)now.tv_nsec);
    int fd = new_file(draft);
    if (fd < 0)
        return errno;
    int error = sv_write_all(fd, text, (size_t)n) ? 0 : errno;
    if (error == 0 && move(draft, c->marker) != 0)
        error = errno;
    if (error == 0) {
        remember_marker(c, fd);
        return 0;
    }
    unlink(draft);
    close(fd);
    return error;
}

static bool is_same(const struct sv_claim_found *a, const struct sv_claim_found *b)
{
    return a->exists && b->exists && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

/* A journal changes the marker, but its file stays open, so that nothing else can get its
 * number. */
static bool holds_marker(const struct sv_claim *c)
{
    struct stat st;
    if (!c->file.exists || lstat(c->marker, &st) != 0)
        return false;
    struct sv_claim_found now = sv_claim_see(&st);
    return c->fd >= 0 ? now.device == c->file.device && now.inode == c->file.inode
                      : is_same(&now, &c->file);
}

int sv_claim_set_session(struct sv_claim *c, const char *session, struct sv_err *err)
{
    int before = c->fd;
    if (snprintf(c->session, sizeof c->session, "%s", session) >= (int)sizeof c->session) {
        c->session[0] = '\0';
        return sv_error(err, SV_EUSAGE, "the session's name is too long");
    }
    if (!holds_marker(c))
        return sv_error(err, SV_EHELD, "%.300s was removed", c->marker);
    errno = make_marker(c, rename);
    if (errno != 0)
        return sv_err_sys(err, "cannot write %.300s", c->marker);
    if (before >= 0)
        close(before);
    else
        sv_claim_keep(c);
    return 0;
}

void sv_claim_release(struct sv_claim *c)
{
    if (holds_marker(c))
        sv_trusted_remove(c->marker, (dev_t)c->file.device, (ino_t)c->file.inode);
    c->file.exists = false;
    sv_claim_keep(c);
}

void sv_claim_abandon(struct sv_claim *c)
{
    if (holds_marker(c))
        unlink(c->part);
    sv_claim_release(c);
}

/* ---- what dead processes left ---- */

/* The names that follow those which are there, so that the newest has the highest number. False:
 * none is left. */
static bool next_place(const char *out, struct sv_claim *to)
{
    unsigned n = sv_claim_last_number(out) + 1;
    return n <= SV_CLAIM_NUMBER_MAX && sv_claim_names(to, out, n);
}

/* The marker of `c` is locked: nobody else moves it. The growing file goes first; where it is gone
 * but a session is left, only the marker still leads there. */
static void move_aside(const struct sv_claim *c, bool *has_left)
{
    struct sv_claim to;
    if (exists(c->part)) {
        if (next_place(c->out, &to) && rename_new(c->part, to.part) == 0)
            *has_left = rename_new(c->marker, to.marker) == 0 || *has_left;
    } else if (c->session[0] && exists(c->session)) {
        if (next_place(c->out, &to))
            *has_left = rename_new(c->marker, to.marker) == 0 || *has_left;
    } else {
        unlink(c->marker);
    }
}

static bool lock(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return true; /* or a file system without locks, where two at once are not prevented */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* A growing file without a marker may be all that is left of a recording. 0 or a message in
 * `err`. */
static int clear_part(struct sv_claim *c, struct sv_err *err)
{
    struct stat st;
    struct sv_claim to;
    if (lstat(c->part, &st) != 0)
        return 0;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return sv_error(err, SV_EHELD,
                        "%s exists and is not a file of yours: remove it, or choose another name",
                        c->part);
    bool ok = st.st_size == 0 ? unlink(c->part) == 0
                              : next_place(c->out, &to) && rename_new(c->part, to.part) == 0;
    c->has_left |= ok && st.st_size > 0;
    return ok ? 0 : sv_err_sys(err, "%s is in the way", c->part);
}

/* ---- taking ---- */

static int check_out(const char *out, struct sv_claim_found *f, struct sv_err *err)
{
    struct stat st;
    *f = (struct sv_claim_found){.is_known = true};
    if (lstat(out, &st) != 0)
        return 0; /* what is wrong with its folder shows when the marker is made */
    if (S_ISDIR(st.st_mode))
        return sv_error(err, SV_EIO, "is a directory");
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return sv_error(err, SV_EIO, "is not a regular file");
    *f = sv_claim_see(&st);
    return 0;
}

static struct sv_process_id id_of(uint32_t pid)
{
    struct sv_process_id id = sv_process_id_self();
    if (pid != 0 && pid != id.pid) {
        id.pid = pid;
        id.start_ticks = sv_process_start_ticks(pid);
    }
    return id;
}

static int prepare(struct sv_claim *c, const char *out, const struct sv_claim_wish *wish,
                   struct sv_err *err)
{
    if (!sv_claim_names(c, out, 0) ||
        (wish->session &&
         snprintf(c->session, sizeof c->session, "%s", wish->session) >= (int)sizeof c->session))
        return sv_error(err, SV_EUSAGE, "the name is too long");
    c->kind = wish->kind;
    c->segment = wish->segment;
    c->holder = id_of(wish->pid);
    c->whole_bytes = wish->journals ? 0 : SV_CLAIM_UNKNOWN;
    sv_claim_command_of(c->holder.pid, c->command, sizeof c->command);
    int code = check_out(out, &c->found, err);
    int64_t found_ns = c->found.changed_s * 1000000000 + c->found.changed_ns;
    c->keeps = wish->keep_since_ns && c->found.exists && found_ns >= wish->keep_since_ns;
    return code;
}

static int refuse(const struct sv_claim *c, enum sv_claim_state state, struct sv_err *err)
{
    if (state == SV_CLAIM_FOREIGN)
        return sv_error(err, SV_EHELD,
                        "%.300s belongs to another user, or others can write to it: remove it, or "
                        "choose another name",
                        c->marker);
    if (state == SV_CLAIM_UNREADABLE)
        return sv_err_sys(err, "cannot read %.300s", c->marker);
    if (state == SV_CLAIM_DAMAGED)
        return sv_error(err, SV_EHELD,
                        "%.300s is not a claim that this version of Stave understands: remove it "
                        "if no process writes there",
                        c->marker);
    if (sv_process_id_state(&c->holder) == SV_PROCESS_UNKNOWN)
        return sv_error(err, SV_EHELD,
                        "process %u (%.100s) of another machine or container may be writing it: if "
                        "that has ended, remove %.250s",
                        c->holder.pid, c->command, c->marker);
    return sv_error(
        err, SV_EHELD,
        "process %u (%.200s) is writing it: wait until that has ended, or choose another name",
        c->holder.pid, c->command);
}

static bool is_for(const struct sv_claim *c, const struct sv_claim_wish *wish)
{
    struct sv_process_id id = id_of(wish->pid);
    return wish->session && c->session[0] && strcmp(c->session, wish->session) == 0 &&
           sv_process_id_equal(&c->holder, &id);
}

/* It is claimed. 0: not any more, try again; 1: it was made for us; negative: refused. */
static int meet_holder(struct sv_claim *c, const char *out, const struct sv_claim_wish *wish,
                       bool *has_left, struct sv_err *err)
{
    enum sv_claim_state state = sv_claim_open(out, 0, O_RDWR, c);
    int code = 0;
    if (state == SV_CLAIM_NONE)
        return 0;
    if (state == SV_CLAIM_THERE && is_for(c, wish))
        return 1;
    bool is_stale = state == SV_CLAIM_THERE && sv_process_id_state(&c->holder) == SV_PROCESS_GONE;
    if (!is_stale)
        code = refuse(c, state, err);
    else if (lock(c->fd) && holds_marker(c)) /* still the one that was judged */
        move_aside(c, has_left);
    sv_claim_keep(c);
    return code;
}

static int take(struct sv_claim *c, const char *out, const struct sv_claim_wish *wish,
                struct sv_err *err)
{
    bool has_left = false;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int code = prepare(c, out, wish, err);
        if (code < 0)
            return code;
        c->has_left = has_left;
        int error = make_marker(c, rename_new);
        if (error == 0)
            return 0;
        if (error != EEXIST) {
            errno = error;
            return sv_err_sys(err, "cannot create");
        }
        code = meet_holder(c, out, wish, &has_left, err);
        if (code != 0)
            return code < 0 ? code : 0;
    }
    return sv_error(err, SV_EHELD, "other processes keep claiming it");
}

int sv_claim_take(struct sv_claim *c, const char *out, const struct sv_claim_wish *wish,
                  struct sv_err *err)
{
    int code = take(c, out, wish, err);
    if (code < 0)
        return code;
    code = clear_part(c, err);
    if (code < 0)
        sv_claim_release(c);
    else if (!wish->journals)
        sv_claim_keep(c);
    return code;
}

/* ---- the end ---- */

/* Is under the final name what was there when the claim was made? */
static bool is_as_found(const struct sv_claim *c)
{
    struct stat st;
    if (!c->found.is_known || lstat(c->out, &st) != 0)
        return false;
    struct sv_claim_found now = sv_claim_see(&st);
    return is_same(&now, &c->found);
}

/* OUT with the first number before its suffix that no file has. */
static bool numbered_name(const char *out, unsigned last, char *to, size_t size)
{
    char text[16];
    for (unsigned n = 1; n <= last; n++) {
        snprintf(text, sizeof text, ".%u", n);
        if (snprintf(to, size, "%s", out) >= (int)size || !sv_name_insert(to, size, text))
            return false;
        if (!exists(to))
            return true;
    }
    return false;
}

bool sv_claim_free_name(const struct sv_claim *c, char *to, size_t size)
{
    if (exists(c->out) && !is_as_found(c))
        return numbered_name(c->out, SV_CLAIM_NUMBER_MAX, to, size);
    return snprintf(to, size, "%s", c->out) < (int)size;
}

/* The newest trace has the plain name. Between this and the rename of ours nothing has it, and the
 * marker leads to the growing file. */
static void rename_found(struct sv_claim *c)
{
    while (c->keeps && is_as_found(c) &&
           numbered_name(c->out, SV_CLAIM_KEPT_MAX, c->kept, sizeof c->kept)) {
        if (rename_new(c->out, c->kept) == 0)
            return;
        if (errno != EEXIST)
            break;
    }
    c->kept[0] = '\0';
}

static int settle(struct sv_claim *c, const char *from, struct sv_err *err)
{
    char to[SV_CLAIM_PATH_MAX];
    struct stat st;
    if (exists(c->marker) && !holds_marker(c)) /* then the growing file may be theirs, too */
        return sv_error(err, SV_EHELD, "another process has claimed it meanwhile");
    if (lstat(from, &st) == 0 && !S_ISREG(st.st_mode))
        return sv_error(err, SV_EIO, "%.300s has been replaced by another file", from);
    rename_found(c);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (!sv_claim_free_name(c, to, sizeof to))
            return sv_error(err, SV_EIO, "no free name is left for it");
        bool replaces = strcmp(to, c->out) == 0 && is_as_found(c);
        if ((replaces ? rename(from, to) : rename_new(from, to)) == 0) {
            c->has_replaced = replaces && c->found.size > 0 && !c->is_own;
            memcpy(c->out, to, sizeof c->out);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return sv_err_sys(err, "cannot rename the finished file to its name");
}

int sv_claim_settle(struct sv_claim *c, struct sv_err *err)
{
    int code = settle(c, c->part, err);
    if (code >= 0)
        sv_claim_release(c);
    return code;
}

int sv_claim_settle_as(struct sv_claim *c, const char *from, struct sv_err *err)
{
    int code = settle(c, from, err);
    if (code >= 0)
        sv_claim_abandon(c);
    return code;
}

/* Finding what was left: see leftovers.h. Called by `stave recover` only.
 *
 * Three places lead to it: the claims of a name (OUT.session, OUT.session.N), the session
 * directories of this user, and growing files that have no claim any more (OUT.part, OUT.part.N).
 * What two of them lead to is listed once. */
#include "record/output/leftovers.h"
#include "cli/console.h"

#include "core/base/mem.h"
#include "core/files/trusted.h"
#include "record/output/ring_files.h"
#include "record/spool/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sv_leftovers_fini(struct sv_leftovers *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->all[i]);
    for (size_t i = 0; i < l->n_problems; i++)
        free(l->problems[i]);
    free(l->all);
    free(l->problems);
    *l = (struct sv_leftovers){0};
}

__attribute__((format(printf, 2, 3))) static void add_problem(struct sv_leftovers *l,
                                                              const char *fmt, ...)
{
    char text[SV_PATH_MAX + 256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < l->n_problems; i++)
        if (strcmp(l->problems[i], text) == 0)
            return;
    l->problems = sv_grow(l->problems, &l->cap_problems, l->n_problems + 1, sizeof *l->problems);
    l->problems[l->n_problems++] = sv_strndup(text, strlen(text));
}

/* What cannot be opened for want of descriptors, memory or a whole disk is not gone, and must not
 * be removed as if it were. */
static void add_failure(struct sv_leftovers *l, const char *path, const char *why)
{
    add_problem(l, "%s: cannot be read: %s", path, why);
    if (l->failed.code == 0)
        sv_err_set(&l->failed, SV_EIO, SV_NO_POS,
                   "%.300s: cannot be read: %s; nothing was changed, try again", path, why);
}

/* The folder must be there; the file need not. */
bool sv_leftovers_absolute(const char *path, char *to, size_t size)
{
    char folder[PATH_MAX], real[PATH_MAX], link[64];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 1,
                     slash ? path : ".");
    int fd = *name && n < (int)sizeof folder ? sv_trusted_walk(folder) : -1;
    if (fd < 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, real, sizeof real - 1);
    close(fd);
    real[len > 0 ? len : 0] = '\0';
    if (len <= 0 && !realpath(folder, real)) /* without /proc */
        return false;
    return snprintf(to, size, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < (int)size;
}

/* ---- one of them ---- */

/* The growing file must be this user's own: what another one planted under its name is not read. */
static bool look_at_part(struct sv_leftovers *l, struct sv_leftover *o, const char *part)
{
    struct stat st;
    o->part[0] = '\0';
    int fd = *part ? sv_trusted_file(AT_FDCWD, part, O_RDONLY, SV_TRUST_OWN, 0) : -1;
    if (fd < 0) {
        if (*part && sv_trusted_failed(errno))
            add_failure(l, part, strerror(errno));
        else if (*part && errno != ENOENT)
            add_problem(l, "%s: another user could have written it; it is not read", part);
        return false;
    }
    bool ok = fstat(fd, &st) == 0;
    close(fd);
    if (!ok)
        return false;
    snprintf(o->part, sizeof o->part, "%s", part);
    o->part_device = st.st_dev;
    o->part_inode = st.st_ino;
    o->file_bytes = (uint64_t)st.st_size;
    o->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return true;
}

/* How much of the growing file counts: what follows is also in the rings. Where these hold nothing
 * more, what the claim says counts, too (a recorder has other sources besides). Without a journal
 * all of it does. */
static void measure(struct sv_leftover *o)
{
    uint64_t whole = o->has_claim ? o->claim.whole_bytes : SV_CLAIM_UNKNOWN;
    if (o->has_session && atomic_load(&o->dead.session.round) > 0) {
        bool has_rest = o->dead.ring_bytes > 0 || o->dead.ring_losses > 0;
        if (has_rest || whole == SV_CLAIM_UNKNOWN || whole < o->dead.part_bytes)
            whole = o->dead.part_bytes;
    }
    o->part_bytes = whole == SV_CLAIM_UNKNOWN ? o->file_bytes : whole;
    if (o->has_session && !o->part[0])
        o->changed_ns = o->dead.changed_ns;
    if (o->has_claim && o->claim.kind == SV_CLAIM_RECORDER)
        o->spool_bytes = sv_spool_left_bytes(&o->claim, o->part_bytes, o->spool, sizeof o->spool);
}

static bool is_known_session(const struct sv_leftovers *l, const char *dir)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->all[i]->dead.dir, dir) == 0)
            return true;
    return false;
}

static bool is_known_part(const struct sv_leftovers *l, const char *part)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->all[i]->part, part) == 0)
            return true;
    return false;
}

static struct sv_leftover *new_one(const char *out)
{
    struct sv_leftover *o = sv_alloc(sizeof *o);
    snprintf(o->out, sizeof o->out, "%s", out);
    return o;
}

static void keep(struct sv_leftovers *l, struct sv_leftover *o)
{
    measure(o);
    l->all = sv_grow(l->all, &l->cap, l->n + 1, sizeof(struct sv_leftover *));
    l->all[l->n++] = o;
}

/* Negative: there is none, or none of this user. One that cannot be read has a problem. */
static int look_at_session(struct sv_leftover *o, const char *dir, struct sv_err *err)
{
    int code = sv_abandoned_look(dir, &o->dead, err);
    o->has_session = code >= 0;
    if (code == SV_EFORMAT)
        snprintf(o->problem, sizeof o->problem, "%s",
                 o->dead.is_other_version ? "made by another version of libstave" : "damaged");
    return code == SV_EFORMAT ? 0 : code;
}

/* ---- by claims ---- */

static int add_claim(void *ctx, const struct sv_claim *c, enum sv_claim_state state)
{
    struct sv_leftovers *l = ctx;
    struct sv_err err = {0};
    if (state == SV_CLAIM_UNREADABLE) {
        add_failure(l, c->marker, strerror(errno));
        return 0;
    }
    if (state != SV_CLAIM_THERE) {
        add_problem(l,
                    state == SV_CLAIM_FOREIGN
                        ? "%s: another user could have written it; it is not read"
                        : "%s: not a claim that this version understands",
                    c->marker);
        return 0;
    }
    if ((c->session[0] && is_known_session(l, c->session)) || is_known_part(l, c->part))
        return 0;
    struct sv_leftover *o = new_one(c->out);
    o->has_claim = true;
    o->claim = *c;
    look_at_part(l, o, c->part);
    int code = c->session[0] ? look_at_session(o, c->session, &err) : 0;
    if (code == SV_EIO)
        add_failure(l, c->session, err.msg);
    else if (code < 0 && access(c->session, F_OK) == 0) /* it is there, and not to be believed */
        snprintf(o->problem, sizeof o->problem, "another user could have written its session");
    keep(l, o);
    return 0;
}

/* ---- by sessions ---- */

/* Where its growing file is: the claim knows, if there is one. The name in the session may be that
 * of a newer one by now. */
static void find_part(struct sv_leftovers *l, struct sv_leftover *o)
{
    const struct sv_session_file *s = &o->dead.session;
    struct sv_claim c;
    o->has_claim = o->out[0] && sv_claim_of_session(o->out, o->dead.dir, &o->claim);
    if (o->has_claim)
        look_at_part(l, o, o->claim.part);
    else if (s->part[0] == '/' && !is_known_part(l, s->part) &&
             sv_claim_read(s->out, &c) == SV_CLAIM_NONE)
        look_at_part(l, o, s->part);
}

static int add_session(struct sv_leftovers *l, const char *dir, const char *only,
                       struct sv_err *err)
{
    char out[SV_PATH_MAX] = "";
    if (is_known_session(l, dir))
        return 0;
    struct sv_leftover *o = new_one("");
    int code = look_at_session(o, dir, err);
    const char *name = o->has_session ? o->dead.session.out : "";
    if (name[0] == '/' && !sv_leftovers_absolute(name, out, sizeof out))
        snprintf(out, sizeof out, "%s", name);
    if (code < 0 || (only && strcmp(out, only) != 0)) {
        free(o);
        return code;
    }
    snprintf(o->out, sizeof o->out, "%s", out);
    if (o->has_session)
        find_part(l, o);
    keep(l, o);
    return 0;
}

struct visit {
    struct sv_leftovers *list;
    const char *only; /* sessions that write to this name; NULL: all */
};

static int visit_session(void *ctx, const char *dir)
{
    const struct visit *v = ctx;
    struct sv_err err = {0};
    if (add_session(v->list, dir, v->only, &err) < 0 && !v->only)
        add_problem(v->list, "%s", err.msg);
    return 0;
}

static void add_sessions(struct sv_leftovers *l, const char *only)
{
    struct sv_folder folders[SV_FOLDERS_MAX];
    size_t n = sv_folders(folders);
    struct visit v = {l, only};
    for (size_t i = 0; i < n; i++)
        if (sv_abandoned_each(&folders[i], visit_session, &v) < 0 && errno == EPERM)
            add_problem(l, "%s: another user could have written there; it is not looked at",
                        folders[i].path);
}

/* ---- by growing files ---- */

/* OUT.part or OUT.part.N: the length of OUT, else 0. */
static size_t stem_of(const char *entry, const char *suffix)
{
    size_t len = strlen(entry), n = strlen(suffix);
    while (len > 0 && entry[len - 1] >= '0' && entry[len - 1] <= '9')
        len--;
    if (len < strlen(entry)) {
        if (len == 0 || entry[len - 1] != '.')
            return 0;
        len--;
    }
    return len > n && strncmp(entry + len - n, suffix, n) == 0 ? len - n : 0;
}

static void add_part(struct sv_leftovers *l, const char *out, const char *part)
{
    if (is_known_part(l, part))
        return;
    struct sv_leftover *o = new_one(out);
    if (look_at_part(l, o, part) && o->file_bytes > 0)
        keep(l, o);
    else
        free(o);
}

/* Calls add() for the growing files in a folder, or for the names that have claims there. */
static void each_in_folder(struct sv_leftovers *l, const char *folder, const char *suffix,
                           const char *only,
                           void (*add)(struct sv_leftovers *, const char *out, const char *path))
{
    DIR *d = opendir(folder);
    char out[SV_PATH_MAX], path[SV_PATH_MAX];
    for (const struct dirent *e; d && (e = readdir(d));) {
        int n = (int)stem_of(e->d_name, suffix);
        if (n == 0 ||
            snprintf(out, sizeof out, "%s/%.*s", folder, n, e->d_name) >= (int)sizeof out ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
            continue;
        if (!only || strcmp(out, only) == 0)
            add(l, out, path);
    }
    if (d)
        closedir(d);
}

static void add_claims(struct sv_leftovers *l, const char *out, const char *marker)
{
    (void)marker;
    sv_claims_each(out, add_claim, l);
}

/* ---- all of them ---- */

static int newest_first(const void *a, const void *b)
{
    const struct sv_leftover *x = *(struct sv_leftover *const *)a,
                             *y = *(struct sv_leftover *const *)b;
    return x->changed_ns > y->changed_ns ? -1 : x->changed_ns < y->changed_ns;
}

static void sort(struct sv_leftovers *l)
{
    if (l->n > 1)
        qsort(l->all, l->n, sizeof *l->all, newest_first);
}

void sv_leftovers_of_name(struct sv_leftovers *l, const char *name)
{
    char out[SV_PATH_MAX], folder[SV_PATH_MAX];
    if (!sv_leftovers_absolute(name, out, sizeof out)) {
        add_problem(l,
                    errno == EPERM ? "%s: another user made a link on the way there: name the "
                                     "folder that it leads to"
                                   : "%s: there is no such folder",
                    name);
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(out, '/') - out), out);
    sv_claims_each(out, add_claim, l);
    add_sessions(l, out);
    each_in_folder(l, *folder ? folder : "/", SV_PART_SUFFIX, out, add_part);
    sort(l);
}

int sv_leftovers_of_session(struct sv_leftovers *l, const char *dir, struct sv_err *err)
{
    char real[PATH_MAX];
    return add_session(l, realpath(dir, real) ? real : dir, NULL, err);
}

void sv_leftovers_everywhere(struct sv_leftovers *l)
{
    char here[SV_PATH_MAX];
    add_sessions(l, NULL);
    if (getcwd(here, sizeof here)) {
        each_in_folder(l, here, SV_CLAIM_SUFFIX, NULL, add_claims);
        each_in_folder(l, here, SV_PART_SUFFIX, NULL, add_part);
    }
    sort(l);
}

/* ---- what to do with it ---- */

enum sv_process_state sv_leftover_state(const struct sv_leftover *o, uint32_t *pid)
{
    enum sv_process_state state = SV_PROCESS_GONE;
    if (o->has_session) {
        state = o->dead.process;
        *pid = o->dead.session.process.pid;
        if (state == SV_PROCESS_GONE) {
            state = o->dead.clients;
            *pid = o->dead.running_client;
        }
    } else if (o->has_claim) {
        state = sv_process_id_state(&o->claim.holder);
        *pid = o->claim.holder.pid;
    }
    return state;
}

bool sv_leftover_is_bare(const struct sv_leftover *o)
{
    return o->has_claim && !o->part[0] && !o->has_session && !o->problem[0] && !o->claim.segment &&
           o->spool_bytes == 0;
}

bool sv_leftover_is_done(const struct sv_leftover *o)
{
    if (o->spool_bytes > 0)
        return false;
    if (!o->has_session)
        return o->file_bytes == 0 && !o->problem[0];
    if (!sv_abandoned_has_trace(&o->dead) || sv_abandoned_is_kept(&o->dead))
        return true;
    return o->part_bytes == 0 && o->dead.ring_bytes == 0 && o->dead.ring_losses == 0;
}

static void remove_part(const struct sv_leftover *o)
{
    if (o->part[0])
        sv_trusted_remove(o->part, (dev_t)o->part_device, (ino_t)o->part_inode);
}

void sv_leftover_remove(struct sv_leftover *o, bool all)
{
    remove_part(o);
    if (o->spool[0])
        sv_spool_left_remove(o->spool);
    if (o->has_claim && o->claim.segment)
        sv_ring_left_remove(&o->claim);
    if (o->has_session || (all && o->problem[0]))
        sv_abandoned_remove(&o->dead);
    if (o->has_claim)
        sv_claim_release(&o->claim);
}

void sv_leftovers_note(const struct sv_claim *c)
{
    if (c->has_left)
        sv_console_note("%s: an earlier program was killed before its trace was complete; to "
                        "complete it, run: stave recover %s",
                        c->out, c->out);
}

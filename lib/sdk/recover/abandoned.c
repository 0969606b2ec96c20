/* Reads the session of a process that has exited: `stave recover` joins what it finds to the
 * unfinished file.
 *
 * Order: look at the directory (copy and check the session file), then make the source (names,
 * clock pairs, rings from the last committed mark to the head; of the process and of its clients,
 * one after the other). Folders and files must be this user's alone, are mapped read-only and may
 * hold anything. Which mark counts is said in session_layout.h: the newest whose round is not past
 * the session's. */
#include "sdk/recover/abandoned.h"

#include "core/files/trusted.h"
#include "core/files/write_all.h"
#include "sdk/collect/client.h"
#include "sdk/drain/drain.h"
#include "sdk/ring/ring_view.h"
#include "sdk/ring/ringless.h"
#include "sdk/session/sdk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- looking ---- */

static int open_folder(const char *dir, struct sv_err *err)
{
    int fd = sv_trusted_folder(AT_FDCWD, dir, SV_TRUST_PRIVATE);
    if (fd < 0 && sv_trusted_failed(errno))
        return sv_err_sys(err, "%s: cannot be read", dir);
    if (fd < 0 && errno == EPERM)
        return sv_error(err, SV_EINPUT, "%s: another user could have written it; it is not read",
                        dir);
    return fd >= 0 ? fd : sv_error(err, SV_EINPUT, "%s is not a session directory", dir);
}

static int64_t changed_ns(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec : 0;
}

static int read_session(int folder, struct sv_abandoned *d, struct sv_err *err)
{
    struct sv_session_file *s = &d->session;
    int fd = sv_trusted_file(folder, "session", O_RDONLY, SV_TRUST_OWN, 0);
    if (fd < 0 && sv_trusted_failed(errno))
        return sv_err_sys(err, "%s/session: cannot be read", d->dir);
    if (fd < 0)
        return sv_error(err, SV_EINPUT, "%s is not a session directory", d->dir);
    struct stat st;
    bool is_size = fstat(fd, &st) == 0 && st.st_size >= SV_SESSION_BYTES;
    ssize_t n = is_size ? read(fd, s, sizeof *s) : 0;
    if (n < 0) {
        sv_err_sys(err, "%s/session: cannot be read", d->dir);
        close(fd);
        return SV_EIO;
    }
    int64_t changed = changed_ns(fd), folder_changed = changed_ns(folder);
    d->changed_ns = changed > folder_changed ? changed : folder_changed;
    close(fd);
    if (n != (ssize_t)sizeof *s || s->magic != SV_SESSION_MAGIC)
        return sv_error(err, SV_EFORMAT, "%s: the session file is damaged", d->dir);
    d->is_other_version = s->version != SV_LAYOUT_VERSION;
    if (d->is_other_version)
        return sv_error(err, SV_EFORMAT, "%s: made by another version of libstave", d->dir);
    s->out[sizeof s->out - 1] = s->part[sizeof s->part - 1] = '\0';
    s->command[sizeof s->command - 1] = s->name[sizeof s->name - 1] = '\0';
    return 0;
}

static uint64_t above(uint64_t value, uint64_t base)
{
    return value > base ? value - base : 0;
}

/* Adds what the rings hold that the output of `d` lacks. */
static void count_pending(struct sv_abandoned *d, struct sv_client_files *files)
{
    uint64_t round = atomic_load(&d->session.round);
    sv_client_files_rings(files, NULL, round, NULL);
    d->ring_losses += sv_ringless_pending(sv_session_ringless(files->session), round);
    for (size_t i = 0; i < files->n_rings; i++) {
        const struct sv_ring *r = files->rings[i]->ring;
        uint64_t size = files->rings[i]->size, head = atomic_load(&r->head);
        struct sv_ring_progress p = sv_ring_committed(r, size, round);
        uint64_t pos = sv_ring_start(r, size, p.pos, files->session->full);
        if (head > pos && head - pos <= size)
            d->ring_bytes += head - pos;
        d->ring_losses += above(atomic_load(&r->lost_full), p.lost_full) +
                          above(atomic_load(&r->lost_nested), p.lost_nested);
    }
}

struct looking {
    struct sv_abandoned *dead;
    int folder;
};

static int look_at_client(void *ctx, const char *name)
{
    struct looking *l = ctx;
    struct sv_abandoned *d = l->dead;
    struct sv_client_files *files = sv_client_files_open(l->folder, name, false);
    if (!files)
        return 0;
    d->n_clients++;
    count_pending(d, files);
    enum sv_process_state state = sv_process_id_state(&files->process);
    if (state == SV_PROCESS_RUNS || d->clients == SV_PROCESS_GONE)
        d->clients = state;
    if (state != SV_PROCESS_GONE)
        d->running_client = files->process.pid;
    sv_client_files_close(files);
    return 0;
}

int sv_abandoned_look(const char *dir, struct sv_abandoned *d, struct sv_err *err)
{
    memset(d, 0, sizeof *d);
    if (snprintf(d->dir, sizeof d->dir, "%s", dir) >= (int)sizeof d->dir)
        return sv_error(err, SV_EINPUT, "%s: the name is too long", dir);
    int folder = open_folder(dir, err);
    if (folder < 0)
        return folder;
    int code = read_session(folder, d, err);
    if (code >= 0) {
        const struct sv_session_file *s = &d->session;
        d->process = sv_process_id_state(&s->process);
        d->part_bytes = atomic_load(&s->bytes[atomic_load(&s->round) & 1]);
        struct sv_client_files *files = sv_client_files_open(folder, ".", false);
        if (files)
            count_pending(d, files);
        sv_client_files_close(files);
        d->clients = SV_PROCESS_GONE;
        sv_client_files_each(folder, look_at_client, &(struct looking){d, folder});
    }
    close(folder);
    return code < 0 ? code : 0;
}

bool sv_abandoned_has_trace(const struct sv_abandoned *d)
{
    return atomic_load(&d->session.state) != SV_SESSION_CLOSED;
}

bool sv_abandoned_is_kept(const struct sv_abandoned *d)
{
    return atomic_load(&d->session.state) == SV_SESSION_KEPT;
}

struct visiting {
    const struct sv_folder *folder;
    int fd;
    int (*visit)(void *, const char *);
    void *ctx;
};

static int visit_one(void *ctx, const char *name)
{
    const struct visiting *v = ctx;
    char dir[SV_PATH_MAX], file[SV_PATH_MAX];
    struct stat st;
    if (snprintf(dir, sizeof dir, "%s/%s", v->folder->path, name) >= (int)sizeof dir ||
        snprintf(file, sizeof file, "%s/session", name) >= (int)sizeof file ||
        fstatat(v->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_uid != geteuid() ||
        fstatat(v->fd, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    return v->visit(v->ctx, dir);
}

int sv_abandoned_each(const struct sv_folder *f, int (*visit)(void *ctx, const char *dir),
                      void *ctx)
{
    int fd = sv_folder_open(f, false);
    if (fd < 0)
        return -1;
    int status = sv_client_files_each(fd, visit_one, &(struct visiting){f, fd, visit, ctx});
    close(fd);
    return status;
}

/* ---- the source ---- */

/* The process and its clients, one open at a time: the memory of one, however many there are. */
struct dead_source {
    struct sv_source source; /* first: the handle */
    const struct sv_abandoned *dead;
    int folder;
    char **names; /* ".", then the clients' directories */
    size_t n, cap, at;
    struct sv_client client; /* names[at]; files NULL: not opened yet */
    struct sv_ring_view window;
};

static void close_source(struct sv_source *source)
{
    struct dead_source *s = (struct dead_source *)source;
    if (s->client.files)
        sv_client_close(&s->client);
    for (size_t i = 0; i < s->n; i++)
        free(s->names[i]);
    free(s->names);
    sv_ring_view_fini(&s->window);
    if (s->folder >= 0)
        close(s->folder);
    free(s);
}

static int by_raw(const void *a, const void *b)
{
    const struct sv_tick *x = a, *y = b;
    return x->raw < y->raw ? -1 : x->raw > y->raw;
}

/* Where the process died before its second pair: the counter still counts, so one read now makes
 * the line. */
static void read_ticks(const struct sv_session_file *session, struct sv_drain *d)
{
    struct sv_tick ticks[SV_TICKS_MAX + 1];
    uint64_t n = atomic_load(&session->n_ticks);
    size_t count = n < SV_TICKS_MAX ? (size_t)n : SV_TICKS_MAX;
    memcpy(ticks, session->ticks, count * sizeof *ticks);
    if (count < 2)
        ticks[count++] = sv_ticks_read((enum sv_counter)(session->counter == SV_COUNTER_CPU));
    qsort(ticks, count, sizeof *ticks, by_raw);
    for (size_t i = 0; i < count; i++)
        sv_drain_tick(d, &ticks[i]);
}

/* What is there and cannot be opened now ends the recovery: it would be removed as if it had been
 * read. */
static int cannot_read(const struct dead_source *s, int error, struct sv_err *err)
{
    return sv_error(err, SV_EIO, "%s/%s: cannot be read: %s", s->dead->dir, s->names[s->at],
                    strerror(error));
}

/* 1, 0 if there is nothing to read, or an error. */
static int open_client(struct dead_source *s, struct sv_err *err)
{
    struct sv_client *c = &s->client;
    struct sv_dict *dict = s->source.dict;
    const char *name = s->names[s->at];
    if (!sv_client_open(c, s->folder, name, false, dict, s->source.report, &s->window)) {
        if (sv_trusted_failed(errno))
            return cannot_read(s, errno, err);
        sv_report_add(s->source.report, SV_DAMAGE, "a process left no session", 1, SV_NO_POS,
                      "%s/%s", s->dead->dir, name);
        return 0;
    }
    if (!dict->tracks[sv_dict_process(dict, 0, c->files->process.pid)].is_described)
        sv_client_files_describe(c->files, dict);
    uint64_t round = atomic_load(&s->dead->session.round);
    sv_drain_watch(c->drain, c->files->session);
    sv_client_round(c, round);
    if (c->files->error)
        return cannot_read(s, c->files->error, err);
    for (size_t i = 0; i < c->files->n_rings; i++) {
        const struct sv_client_ring *m = c->files->rings[i];
        sv_drain_resume(c->drain, i, sv_ring_committed(m->ring, m->size, round).mark);
        if (c->files->session->full == STAVE_FULL_OVERWRITE)
            sv_drain_ring(c->drain, i)->lost_overwritten =
                sv_ring_forgotten(m->ring, m->data, m->size, sv_drain_ring(c->drain, i)->pos);
    }
    sv_drain_resume_ringless(c->drain, round);
    read_ticks(&s->dead->session, c->drain);
    sv_client_files_name_threads(c->files, c->drain);
    return 1;
}

static void report_fault(const struct dead_source *s, const char *why)
{
    sv_report_add(s->source.report, SV_DAMAGE, "the rest of a process is not read", 1, SV_NO_POS,
                  "process %u: %s", s->client.files->process.pid, why);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct dead_source *s = (struct dead_source *)source;
    for (; s->at < s->n; s->at++) {
        int opened = s->client.files ? 1 : open_client(s, err);
        if (opened < 0)
            return opened;
        if (opened == 0)
            continue;
        const char *why = sv_client_fault(&s->client, SV_CLIENT_BYTES_MAX);
        int n = why ? 0 : sv_client_next(&s->client, b, err);
        if (n != 0)
            return n;
        if (why)
            report_fault(s, why);
        sv_client_close(&s->client);
    }
    return 0;
}

static int add_name(void *ctx, const char *name)
{
    struct dead_source *s = ctx;
    SV_APPEND(s->names, s->n, s->cap) = sv_strndup(name, strlen(name));
    return 0;
}

int sv_abandoned_source(const struct sv_abandoned *d, struct sv_dict *dict,
                        struct sv_report *report, struct sv_source **out, struct sv_err *err)
{
    int folder = open_folder(d->dir, err);
    if (folder < 0)
        return folder;
    struct dead_source *s = sv_alloc(sizeof *s);
    if (dict->clocks.n == 0)
        dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    s->dead = d;
    s->folder = folder;
    s->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_ABANDONED_GIVES,
                                   .dict = dict,
                                   .report = report};
    add_name(s, ".");
    sv_client_files_each(folder, add_name, s);
    *out = &s->source;
    return 0;
}

/* ---- afterwards ---- */

void sv_abandoned_note_kept(const struct sv_abandoned *d)
{
    int folder = sv_trusted_folder(AT_FDCWD, d->dir, SV_TRUST_PRIVATE);
    int fd = folder < 0 ? -1 : sv_trusted_file(folder, "session", O_RDWR, SV_TRUST_OWN, 0);
    uint32_t state = SV_SESSION_KEPT;
    if (fd >= 0) {
        sv_write_all_at(fd, &state, sizeof state, offsetof(struct sv_session_file, state));
        close(fd);
    }
    if (folder >= 0)
        close(folder);
}

static int remove_client(void *ctx, const char *name)
{
    sv_client_files_remove(*(int *)ctx, name);
    return 0;
}

bool sv_abandoned_remove(const struct sv_abandoned *d)
{
    int folder = sv_trusted_folder(AT_FDCWD, d->dir, SV_TRUST_PRIVATE);
    if (folder < 0)
        return false;
    sv_client_files_each(folder, remove_client, &folder);
    close(folder);
    return sv_client_files_remove(AT_FDCWD, d->dir);
}

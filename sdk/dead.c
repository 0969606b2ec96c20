/* Reading the session of a dead process: the rest that `stave recover` joins to the growing file.
 *
 * Order: look at the directory (copy and check the session file), then make the source (names, clock pairs, rings from the last
 * committed mark to the head; of the process and of its guests). Files are mapped read-only and may hold anything. Which
 * mark counts is said in session_layout.h: the newest whose round is not past the session's. */
#include "sdk/dead.h"

#include "sdk/drain.h"
#include "sdk/room.h"
#include "sdk/sdk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- looking ---- */

static int read_session(const char *dir, struct sv_session_file *s, struct sv_err *err)
{
    char path[SV_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/session", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s is no session directory", dir);
    ssize_t n = read(fd, s, sizeof *s);
    close(fd);
    if (n != (ssize_t)sizeof *s || s->magic != SV_SESSION_MAGIC)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: the session file is damaged", dir);
    if (s->version != SV_LAYOUT_VERSION)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: made by another version of libstave",
                          dir);
    s->out[sizeof s->out - 1] = s->part[sizeof s->part - 1] = s->command[sizeof s->command - 1] =
        '\0';
    return 0;
}

/* Bytes in the rings of a room that the output of `d` lacks. */
static uint64_t pending(const struct sv_dead *d, struct sv_room *room)
{
    uint64_t bytes = 0, round = atomic_load(&d->session.round);
    sv_room_rings(room, NULL, round, NULL);
    for (size_t i = 0; i < room->n_rings; i++) {
        const struct sv_ring *r = room->rings[i].ring;
        uint64_t pos = sv_ring_start(r, round, room->session->full), head = atomic_load(&r->head);
        if (head > pos && head - pos <= room->rings[i].size)
            bytes += head - pos;
    }
    return bytes;
}

static int look_at_guest(void *ctx, const char *name)
{
    struct sv_dead *d = ctx;
    char path[SV_PATH_MAX + 300];
    struct sv_room room;
    snprintf(path, sizeof path, "%s/%s", d->dir, name);
    if (!sv_room_open(&room, AT_FDCWD, path, false))
        return 0;
    d->n_guests++;
    d->ring_bytes += pending(d, &room);
    if (sv_room_is_alive(&room))
        d->live_guest = room.pid;
    sv_room_close(&room);
    return 0;
}

int sv_dead_look(const char *dir, struct sv_dead *d, struct sv_err *err)
{
    memset(d, 0, sizeof *d);
    snprintf(d->dir, sizeof d->dir, "%s", dir);
    struct sv_session_file *s = &d->session;
    int code = read_session(dir, s, err);
    if (code < 0)
        return code;
    d->is_alive = s->start_ticks != 0 && sv_process_start_ticks(s->pid) == s->start_ticks;
    d->part_bytes = atomic_load(&s->bytes[atomic_load(&s->round) & 1]);
    struct sv_room room;
    if (sv_room_open(&room, AT_FDCWD, dir, false)) {
        d->ring_bytes = pending(d, &room);
        sv_room_close(&room);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        sv_room_each(fd, look_at_guest, d);
        close(fd);
    }
    return 0;
}

bool sv_dead_has_trace(const struct sv_dead *d)
{
    return atomic_load(&d->session.state) != SV_SESSION_CLOSED;
}

int sv_dead_of_output(const char *out, struct sv_dead *d, struct sv_err *err)
{
    char path[SV_PATH_MAX + 16], dir[SV_PATH_MAX] = {0};
    snprintf(path, sizeof path, "%s.session", out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS,
                          "%s: nothing to recover: no killed program left it (stave recover alone "
                          "lists what is there)",
                          out);
    ssize_t n = read(fd, dir, sizeof dir - 1);
    close(fd);
    dir[n > 0 ? n : 0] = '\0';
    dir[strcspn(dir, "\n")] = '\0';
    return sv_dead_look(dir, d, err);
}

static int each_in(const char *base, int (*visit)(void *, const char *), void *ctx)
{
    DIR *folder = opendir(base);
    int status = 0;
    for (struct dirent *e; folder && status == 0 && (e = readdir(folder));) {
        char dir[SV_PATH_MAX], file[SV_PATH_MAX + 16];
        if (e->d_name[0] == '.' ||
            snprintf(dir, sizeof dir, "%s/%s", base, e->d_name) >= (int)sizeof dir)
            continue;
        snprintf(file, sizeof file, "%s/session", dir);
        if (access(file, R_OK) == 0)
            status = visit(ctx, dir);
    }
    if (folder)
        closedir(folder);
    return status;
}

int sv_dead_each(int (*visit)(void *ctx, const char *dir), void *ctx)
{
    char base[SV_PATH_MAX];
    const char *given = getenv("STAVE_SESSION_DIR"), *run = getenv("XDG_RUNTIME_DIR"),
               *tmp = getenv("TMPDIR");
    int status = given && *given ? each_in(given, visit, ctx) : 0;
    if (status == 0 && run && *run &&
        snprintf(base, sizeof base, "%s/stave", run) < (int)sizeof base)
        status = each_in(base, visit, ctx);
    snprintf(base, sizeof base, "/dev/shm/stave-%u", (unsigned)geteuid());
    if (status == 0)
        status = each_in(base, visit, ctx);
    if (status == 0 && snprintf(base, sizeof base, "%s/stave-%u", tmp && *tmp ? tmp : "/tmp",
                                (unsigned)geteuid()) < (int)sizeof base)
        status = each_in(base, visit, ctx);
    return status;
}

/* ---- the source ---- */

/* The process and its guests, one after the other. */
struct part {
    struct sv_room room;
    struct sv_drain *drain;
};

struct dead_source {
    struct sv_source source; /* first: the handle */
    const struct sv_dead *dead;
    struct part *parts;
    size_t n, cap, at;
};

static void close_source(struct sv_source *source)
{
    struct dead_source *s = (struct dead_source *)source;
    for (size_t i = 0; i < s->n; i++) {
        sv_drain_free(s->parts[i].drain);
        sv_room_close(&s->parts[i].room);
    }
    free(s->parts);
    free(s);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct dead_source *s = (struct dead_source *)source;
    for (; s->at < s->n; s->at++) {
        struct sv_source *inner = sv_drain_source(s->parts[s->at].drain);
        int n = inner->next(inner, b, err);
        if (n != 0)
            return n;
    }
    return 0;
}

static int by_raw(const void *a, const void *b)
{
    const struct sv_tick *x = a, *y = b;
    return x->raw < y->raw ? -1 : x->raw > y->raw;
}

/* Where the process died before its second pair: the counter still counts, so one read now makes the line. */
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

static void name_process(struct sv_dict *dict, const struct sv_session_file *s, uint32_t pid)
{
    sv_track t = sv_dict_process(dict, 0, pid);
    if (dict->tracks[t].is_described)
        return;
    dict->tracks[t].name = sv_dict_str(dict, s->name, strnlen(s->name, sizeof s->name));
    dict->tracks[t].desc = sv_dict_str(dict, s->command, strnlen(s->command, sizeof s->command));
    dict->tracks[t].is_described = true;
    sv_dict_touch(dict, t);
}

static void add_part(struct dead_source *s, const char *path)
{
    s->parts = sv_grow(s->parts, &s->cap, s->n + 1, sizeof *s->parts);
    struct part *p = &s->parts[s->n];
    if (!sv_room_open(&p->room, AT_FDCWD, path, false)) {
        sv_report_add(s->source.report, SV_DAMAGE, "a forked process left no session", 1, SV_NO_POS,
                      "%s", path);
        return;
    }
    s->n++;
    p->drain = sv_drain_new(s->source.dict, s->source.report, p->room.pid, 0);
    sv_drain_watch(p->drain, p->room.session);
    name_process(s->source.dict, p->room.session, p->room.pid);
    sv_room_rings(&p->room, p->drain, atomic_load(&s->dead->session.round), s->source.report);
    for (size_t i = 0; i < p->room.n_rings; i++) {
        const struct sv_room_ring *ring = &p->room.rings[i];
        sv_drain_resume(p->drain, i,
                        sv_ring_last_mark(ring->ring, atomic_load(&s->dead->session.round)));
        if (p->room.session->full == STAVE_FULL_OVERWRITE)
            sv_drain_ring(p->drain, i)->lost_overwritten =
                sv_ring_forgotten(ring->ring, ring->data, sv_drain_ring(p->drain, i)->pos);
    }
    sv_drain_round(p->drain);
    sv_room_names(&p->room, p->drain, s->source.report);
    read_ticks(&s->dead->session, p->drain);
    sv_room_name_threads(&p->room, p->drain);
}

static int add_guest(void *ctx, const char *name)
{
    struct dead_source *s = ctx;
    char path[SV_PATH_MAX + 300];
    snprintf(path, sizeof path, "%s/%s", s->dead->dir, name);
    add_part(s, path);
    return 0;
}

int sv_dead_source(const struct sv_dead *d, struct sv_dict *dict, struct sv_report *report,
                   struct sv_source **out, struct sv_err *err)
{
    (void)err;
    struct dead_source *s = sv_alloc(sizeof *s);
    if (dict->clocks.n == 0)
        dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    s->dead = d;
    s->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_EDGES | SV_HAS_DISORDER,
                                   .dict = dict,
                                   .report = report};
    add_part(s, d->dir);
    int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        sv_room_each(fd, add_guest, s);
        close(fd);
    }
    *out = &s->source;
    return 0;
}

/* ---- cleaning ---- */

static int remove_guest(void *ctx, const char *name)
{
    sv_room_remove(*(int *)ctx, name);
    return 0;
}

void sv_dead_remove(const struct sv_dead *d, bool with_part)
{
    char path[SV_PATH_MAX + 64];
    int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        sv_room_each(fd, remove_guest, &fd);
        close(fd);
    }
    sv_room_remove(AT_FDCWD, d->dir);
    if (!with_part || !d->session.out[0])
        return;
    unlink(d->session.part);
    snprintf(path, sizeof path, "%s.session", d->session.out);
    unlink(path);
}

/* Reading the session of a dead process: the rest that `stave recover` joins to the growing file.
 *
 * Order: look at the directory (copy and check the session file), then make the source (names, clock pairs, rings from the last
 * committed mark to the head). Files are mapped read-only and may hold anything. Which mark counts is said in
 * session_layout.h: the newest whose round is not past the session's. */
#include "sdk/dead.h"

#include "sdk/drain.h"
#include "sdk/sdk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((size_t)64 << 20)

/* ---- files ---- */

static int open_in(const char *dir, const char *name, struct stat *st)
{
    char path[SV_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

struct mapped_ring {
    const struct sv_ring *ring;
    const uint8_t *data;
    uint64_t size;
    void *at;
    size_t bytes;
};

static bool map_twice(int fd, uint64_t size, struct mapped_ring *m)
{
    m->bytes = SV_PAGE + 2 * (size_t)size;
    uint8_t *at =
        mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    m->at = at;
    if (mmap(at, SV_PAGE + size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(at + SV_PAGE + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, SV_PAGE) ==
            MAP_FAILED) {
        munmap(at, m->bytes);
        return false;
    }
    m->ring = (const struct sv_ring *)(const void *)at;
    m->data = at + SV_PAGE;
    m->size = size;
    return true;
}

static bool map_ring(const char *dir, uint32_t number, struct mapped_ring *m)
{
    char name[32];
    struct stat st;
    snprintf(name, sizeof name, "ring.%u", number);
    int fd = open_in(dir, name, &st);
    if (fd < 0)
        return false;
    uint64_t size = st.st_size > SV_PAGE ? (uint64_t)st.st_size - SV_PAGE : 0;
    bool ok = size >= SV_RING_BYTES_MIN && size <= SV_RING_BYTES_MAX && (size & (size - 1)) == 0 &&
              map_twice(fd, size, m);
    close(fd);
    if (ok && (m->ring->magic != SV_RING_MAGIC || m->ring->size != size)) {
        munmap(m->at, m->bytes);
        ok = false;
    }
    return ok;
}

/* Where the growing file ends in this ring. */
static uint64_t committed_pos(const struct sv_ring *r, uint64_t round)
{
    uint64_t best_round = 0, pos = r->size;
    for (int i = 0; i < 2; i++) {
        uint64_t of = atomic_load(&r->mark[i].round), at = atomic_load(&r->mark[i].pos);
        if (of <= round && of >= best_round && at >= r->size) {
            best_round = of;
            pos = at;
        }
    }
    return pos;
}

/* Overwritten rings: the oldest block whose first record is still whole. */
static uint64_t oldest_pos(const struct sv_ring *r, uint64_t head)
{
    uint64_t floor = head > r->size ? head - r->size : 0, best = head;
    for (int i = 0; i < SV_RING_BLOCKS; i++) {
        uint64_t first = atomic_load(&r->block_first[i]);
        if (first > floor + SV_RECORD_BYTES_MAX / 16 && first >= r->size && first < best)
            best = first;
    }
    return best;
}

static uint64_t start_pos(const struct sv_dead *d, const struct sv_ring *r)
{
    uint64_t pos = committed_pos(r, atomic_load(&d->session.round)), head = atomic_load(&r->head);
    if (d->session.full != STAVE_FULL_OVERWRITE || head - pos <= r->size)
        return pos;
    return oldest_pos(r, head);
}

/* ---- looking ---- */

int sv_dead_look(const char *dir, struct sv_dead *d, struct sv_err *err)
{
    memset(d, 0, sizeof *d);
    snprintf(d->dir, sizeof d->dir, "%s", dir);
    struct stat st;
    int fd = open_in(dir, "session", &st);
    if (fd < 0)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s is no session directory", dir);
    ssize_t n = read(fd, &d->session, sizeof d->session);
    close(fd);
    struct sv_session_file *s = &d->session;
    if (n != (ssize_t)sizeof *s || s->magic != SV_SESSION_MAGIC)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: the session file is damaged", dir);
    if (s->version != SV_LAYOUT_VERSION)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: made by another version of libstave",
                          dir);
    s->out[sizeof s->out - 1] = s->part[sizeof s->part - 1] = s->command[sizeof s->command - 1] =
        '\0';
    d->is_alive = s->start_ticks != 0 && sv_process_start_ticks(s->pid) == s->start_ticks;
    d->part_bytes = atomic_load(&s->bytes[atomic_load(&s->round) & 1]);
    uint32_t rings = atomic_load(&s->n_rings);
    for (uint32_t i = 0; i < rings && i < SV_RINGS_MAX; i++) {
        struct mapped_ring m;
        if (!map_ring(dir, i, &m))
            continue;
        uint64_t pos = start_pos(d, m.ring), head = atomic_load(&m.ring->head);
        if (head > pos && head - pos <= m.size)
            d->ring_bytes += head - pos;
        munmap(m.at, m.bytes);
    }
    return 0;
}

int sv_dead_of_output(const char *out, struct sv_dead *d, struct sv_err *err)
{
    char path[SV_PATH_MAX + 16], dir[SV_PATH_MAX] = {0};
    snprintf(path, sizeof path, "%s.session", out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return sv_err_sys(err, "no session belongs to it: %s.session", out);
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

struct dead_source {
    struct sv_source source; /* first: the handle */
    struct sv_drain *drain;
    struct mapped_ring *rings;
    size_t n_rings;
};

static void close_source(struct sv_source *source)
{
    struct dead_source *s = (struct dead_source *)source;
    sv_drain_free(s->drain);
    for (size_t i = 0; i < s->n_rings; i++)
        munmap(s->rings[i].at, s->rings[i].bytes);
    free(s->rings);
    free(s);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_source *inner = sv_drain_source(((struct dead_source *)source)->drain);
    return inner->next(inner, b, err);
}

static void read_names(const struct sv_dead *d, struct dead_source *s)
{
    struct stat st;
    int fd = open_in(d->dir, "names", &st);
    uint64_t n = atomic_load(&d->session.names_bytes);
    if (fd < 0 || n > (uint64_t)st.st_size || n > NAMES_BYTES_MAX) {
        sv_report_add(s->source.report, SV_DAMAGE, "names are missing", 1, SV_NO_POS, NULL);
    } else {
        uint8_t *bytes = sv_alloc((size_t)n + 1);
        ssize_t got = pread(fd, bytes, (size_t)n, 0);
        if (got > 0)
            sv_drain_names(s->drain, bytes, (size_t)got);
        free(bytes);
    }
    if (fd >= 0)
        close(fd);
}

static int by_raw(const void *a, const void *b)
{
    const struct sv_tick *x = a, *y = b;
    return x->raw < y->raw ? -1 : x->raw > y->raw;
}

/* Where the process died before its second pair: the counter still counts, so one read now makes the line. */
static void read_ticks(const struct sv_dead *d, struct dead_source *s)
{
    struct sv_tick ticks[SV_TICKS_MAX + 1];
    uint64_t n = atomic_load(&d->session.n_ticks);
    size_t count = n < SV_TICKS_MAX ? (size_t)n : SV_TICKS_MAX;
    memcpy(ticks, d->session.ticks, count * sizeof *ticks);
    if (count < 2)
        ticks[count++] = sv_ticks_read((enum sv_counter)(d->session.counter == SV_COUNTER_CPU));
    qsort(ticks, count, sizeof *ticks, by_raw);
    for (size_t i = 0; i < count; i++)
        sv_drain_tick(s->drain, &ticks[i]);
}

static void read_rings(const struct sv_dead *d, struct dead_source *s)
{
    uint32_t n = atomic_load(&d->session.n_rings);
    n = n < SV_RINGS_MAX ? n : SV_RINGS_MAX;
    s->rings = sv_alloc((n + 1) * sizeof *s->rings);
    for (uint32_t i = 0; i < n; i++) {
        struct mapped_ring *m = &s->rings[s->n_rings];
        if (!map_ring(d->dir, i, m)) {
            sv_report_add(s->source.report, SV_DAMAGE, "ring is missing or damaged", 1, SV_NO_POS,
                          "ring.%u", i);
            continue;
        }
        s->n_rings++;
        struct sv_drain_ring *r =
            sv_drain_add_ring(s->drain, m->ring, m->data, m->size, start_pos(d, m->ring));
        r->depth = INT32_MAX; /* slices may be open in the part */
    }
    sv_drain_round(s->drain);
    for (size_t i = 0; i < s->n_rings; i++) {
        char name[32] = {0};
        const struct sv_ring *ring = s->rings[i].ring;
        memcpy(name, ring->name[0] ? ring->name : ring->comm, ring->name[0] ? 31 : 15);
        sv_drain_name_thread(s->drain, sv_drain_ring(s->drain, i), name);
    }
}

int sv_dead_source(const struct sv_dead *d, struct sv_dict *dict, struct sv_report *report,
                   struct sv_source **out, struct sv_err *err)
{
    (void)err;
    struct dead_source *s = sv_alloc(sizeof *s);
    if (dict->clocks.n == 0)
        dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    s->drain = sv_drain_new(dict, report, d->session.pid, 0);
    s->source = *sv_drain_source(s->drain);
    s->source.next = next;
    s->source.close = close_source;
    read_names(d, s);
    read_ticks(d, s);
    read_rings(d, s);
    *out = &s->source;
    return 0;
}

/* ---- cleaning ---- */

void sv_dead_remove(const struct sv_dead *d, bool with_part)
{
    char path[SV_PATH_MAX + 64];
    DIR *folder = opendir(d->dir);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        bool is_ours = strcmp(e->d_name, "session") == 0 || strcmp(e->d_name, "names") == 0 ||
                       strncmp(e->d_name, "ring.", 5) == 0;
        if (is_ours)
            unlinkat(dirfd(folder), e->d_name, 0);
    }
    if (folder)
        closedir(folder);
    rmdir(d->dir);
    if (!with_part || !d->session.out[0])
        return;
    unlink(d->session.part);
    snprintf(path, sizeof path, "%s.session", d->session.out);
    unlink(path);
}

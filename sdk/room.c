/* Rooms: see room.h. Used by the writer thread for its guests, by collectors, and by readers of dead sessions. */
#include "sdk/room.h"

#include "base/report.h"
#include "sdk/drain.h"
#include "sdk/sdk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((uint64_t)64 << 20)

/* ---- files ---- */

static int open_file(const struct sv_room *r, const char *name, struct stat *st)
{
    char path[SV_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", r->path, name);
    int fd = openat(r->base_fd, path,
                    (r->is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int protection(const struct sv_room *r)
{
    return r->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
}

bool sv_room_open(struct sv_room *r, int base_fd, const char *path, bool is_writable)
{
    struct stat st;
    *r = (struct sv_room){.base_fd = base_fd, .is_writable = is_writable};
    if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
        return false;
    int fd = open_file(r, "session", &st);
    if (fd < 0)
        return false;
    void *at = st.st_size >= SV_SESSION_BYTES
                   ? mmap(NULL, SV_SESSION_BYTES, protection(r), MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        return false;
    r->session = at;
    madvise(at, SV_SESSION_BYTES, MADV_DONTFORK);
    r->pid = r->session->pid;
    r->start_ticks = r->session->start_ticks;
    if (r->session->magic == SV_SESSION_MAGIC && r->session->version == SV_LAYOUT_VERSION)
        return true;
    sv_room_close(r);
    return false;
}

void sv_room_close(struct sv_room *r)
{
    if (r->session)
        munmap(r->session, SV_SESSION_BYTES);
    for (size_t i = 0; i < r->n_rings; i++)
        munmap(r->rings[i].at, r->rings[i].bytes);
    free(r->rings);
    *r = (struct sv_room){0};
}

bool sv_room_is_alive(const struct sv_room *r)
{
    return r->start_ticks != 0 && sv_process_start_ticks(r->pid) == r->start_ticks;
}

/* ---- rings ---- */

static bool map_twice(const struct sv_room *r, int fd, uint64_t size, struct sv_room_ring *m)
{
    m->bytes = SV_PAGE + 2 * (size_t)size;
    uint8_t *at =
        mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return false;
    m->at = at;
    if (mmap(at, SV_PAGE + size, protection(r), MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(at + SV_PAGE + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, SV_PAGE) ==
            MAP_FAILED) {
        munmap(at, m->bytes);
        return false;
    }
    madvise(at, m->bytes, MADV_DONTFORK);
    m->ring = (struct sv_ring *)(void *)at;
    m->data = at + SV_PAGE;
    m->size = size;
    return true;
}

static bool map_ring(const struct sv_room *r, uint32_t number, struct sv_room_ring *m)
{
    char name[32];
    struct stat st;
    snprintf(name, sizeof name, "ring.%u", number);
    int fd = open_file(r, name, &st);
    if (fd < 0)
        return false;
    uint64_t size = st.st_size > SV_PAGE ? (uint64_t)st.st_size - SV_PAGE : 0;
    bool ok = size >= SV_RING_BYTES_MIN && size <= SV_RING_BYTES_MAX && (size & (size - 1)) == 0 &&
              map_twice(r, fd, size, m);
    close(fd);
    if (ok && (m->ring->magic != SV_RING_MAGIC || m->ring->size != size)) {
        munmap(m->at, m->bytes);
        ok = false;
    }
    return ok;
}

const struct sv_mark *sv_ring_last_mark(const struct sv_ring *r, uint64_t round)
{
    uint64_t best_round = 0;
    const struct sv_mark *best = NULL;
    for (int i = 0; i < 2; i++) {
        uint64_t of = atomic_load(&r->mark[i].round), at = atomic_load(&r->mark[i].pos);
        if (of <= round && of >= best_round && at >= r->size) {
            best_round = of;
            best = &r->mark[i];
        }
    }
    return best;
}

uint64_t sv_ring_committed(const struct sv_ring *r, uint64_t round)
{
    const struct sv_mark *m = sv_ring_last_mark(r, round);
    return m ? atomic_load(&m->pos) : r->size;
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

uint64_t sv_ring_start(const struct sv_ring *r, uint64_t round, uint32_t full)
{
    uint64_t pos = sv_ring_committed(r, round), head = atomic_load(&r->head);
    if (full != STAVE_FULL_OVERWRITE || head - pos <= r->size)
        return pos;
    return oldest_pos(r, head);
}

uint64_t sv_ring_forgotten(const struct sv_ring *r, const uint8_t *data, uint64_t start)
{
    uint64_t n = atomic_load_explicit(&r->lost_overwritten, memory_order_relaxed);
    for (uint64_t pos = r->oldest; pos < start && start - pos <= r->size; n++) {
        uint64_t word;
        memcpy(&word, data + (pos & (r->size - 1)), sizeof word);
        if (sv_word_bytes(word) < SV_RECORD_HEAD)
            break;
        pos += sv_word_bytes(word);
    }
    return n;
}

uint64_t sv_ring_pending(const struct sv_ring *r, const uint8_t *data)
{
    uint64_t pos = atomic_load_explicit(&r->tail, memory_order_acquire), n = 0, size = r->size;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    while (pos < head && head - pos <= size) {
        uint64_t word;
        memcpy(&word, data + (pos & (size - 1)), sizeof word);
        if (sv_word_bytes(word) < SV_RECORD_HEAD)
            break;
        pos += sv_word_bytes(word);
        n++;
    }
    return n;
}

void sv_room_rings(struct sv_room *r, struct sv_drain *d, uint64_t round, struct sv_report *report)
{
    uint32_t n = atomic_load_explicit(&r->session->n_rings, memory_order_acquire);
    for (n = n < SV_RINGS_MAX ? n : SV_RINGS_MAX; r->n_met < n; r->n_met++) {
        r->rings = sv_grow(r->rings, &r->cap_rings, r->n_rings + 1, sizeof *r->rings);
        struct sv_room_ring *m = &r->rings[r->n_rings];
        if (!map_ring(r, r->n_met, m)) {
            if (d)
                sv_report_add(report, SV_DAMAGE, "ring is missing or damaged", 1, SV_NO_POS,
                              "ring.%u", r->n_met);
            continue;
        }
        r->n_rings++;
        if (d)
            sv_drain_add_ring(d, m->ring, m->data, m->size,
                              sv_ring_start(m->ring, round, r->session->full));
    }
}

/* ---- names ---- */

void sv_room_names(struct sv_room *r, struct sv_drain *d, struct sv_report *report)
{
    struct stat st;
    uint64_t end = atomic_load_explicit(&r->session->names_bytes, memory_order_acquire);
    if (end == r->names_read)
        return;
    int fd = open_file(r, "names", &st);
    if (fd < 0 || end < r->names_read || end > (uint64_t)st.st_size || end > NAMES_BYTES_MAX) {
        sv_report_add(report, SV_DAMAGE, "names are missing", 1, SV_NO_POS, NULL);
    } else {
        size_t n = (size_t)(end - r->names_read);
        uint8_t *bytes = sv_realloc(NULL, n);
        ssize_t got = pread(fd, bytes, n, (off_t)r->names_read);
        if (got > 0)
            r->names_read += sv_drain_names(d, bytes, (size_t)got);
        free(bytes);
    }
    if (fd >= 0)
        close(fd);
}

void sv_room_name_threads(const struct sv_room *r, struct sv_drain *d)
{
    for (size_t i = 0; i < r->n_rings; i++) {
        char name[32] = {0};
        const struct sv_ring *ring = r->rings[i].ring;
        memcpy(name, ring->name[0] ? ring->name : ring->comm, ring->name[0] ? 31 : 15);
        sv_drain_name_thread(d, sv_drain_ring(d, i), name);
    }
}

/* ---- directories ---- */

bool sv_room_remove(int base_fd, const char *path)
{
    int fd = openat(base_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *e; (e = readdir(folder));) {
        bool is_ours = strcmp(e->d_name, "session") == 0 || strcmp(e->d_name, "names") == 0 ||
                       strncmp(e->d_name, "ring.", 5) == 0;
        if (is_ours)
            unlinkat(dirfd(folder), e->d_name, 0);
    }
    closedir(folder);
    return unlinkat(base_fd, path, AT_REMOVEDIR) == 0;
}

int sv_room_each(int fd, int (*visit)(void *ctx, const char *name), void *ctx)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    if (!folder) {
        if (copy >= 0)
            close(copy);
        return 0;
    }
    int status = 0;
    for (struct dirent *e; status == 0 && (e = readdir(folder));) {
        struct stat st;
        bool may_be = e->d_type == DT_DIR || e->d_type == DT_UNKNOWN;
        if (e->d_name[0] == '.' || !may_be ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode))
            continue;
        status = visit(ctx, e->d_name);
    }
    closedir(folder);
    return status;
}

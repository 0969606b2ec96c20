/* Files of a client: see client_files.h. Used by the writer thread for its clients, by `stave run`
 * and the like, and by readers of abandoned sessions. */
#include "sdk/collect/client_files.h"

#include "core/base/mem.h"
#include "core/base/report.h"
#include "core/files/out_name.h"
#include "core/files/trusted.h"
#include "core/stream/dict.h"
#include "sdk/drain/drain.h"
#include "sdk/session/sdk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((uint64_t)64 << 20)
enum { NAMES_CHUNK = 512 << 10 }; /* more than the longest record of an honest client */

/* ---- files ---- */

static int open_in(const struct sv_client_files *r, int base_fd, const char *path, const char *name,
                   struct stat *st)
{
    int folder = sv_trusted_folder(base_fd, path, SV_TRUST_PRIVATE);
    if (folder < 0)
        return -1;
    int fd = sv_trusted_file(folder, name, r->is_writable ? O_RDWR : O_RDONLY, SV_TRUST_OWN, 0);
    int error = errno;
    close(folder);
    if (fd >= 0 && fstat(fd, st) != 0) {
        error = errno;
        close(fd);
        fd = -1;
    }
    errno = error;
    return fd;
}

static int open_file(const struct sv_client_files *r, const char *name, struct stat *st)
{
    return open_in(r, r->base_fd, r->path, name, st);
}

/* The second directory of the session, as it says; copied first: the text may change while it is
 * read. */
static bool more_of(const struct sv_session_file *s, char more[SV_PATH_MAX])
{
    memcpy(more, s->more, SV_PATH_MAX);
    more[SV_PATH_MAX - 1] = '\0';
    return more[0] == '/';
}

static int protection(const struct sv_client_files *r)
{
    return r->is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
}

static bool map_session(struct sv_client_files *r)
{
    struct stat st;
    int fd = open_file(r, "session", &st);
    if (fd < 0)
        return false;
    void *at = st.st_size >= SV_SESSION_BYTES
                   ? mmap(NULL, SV_SESSION_BYTES, protection(r), MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED) {
        errno = EINVAL;
        return false;
    }
    r->session = at;
    madvise(at, SV_SESSION_BYTES, MADV_DONTFORK);
    sv_guard_add(&r->guarded, at, SV_SESSION_BYTES, &r->is_gone);
    return true;
}

struct sv_client_files *sv_client_files_open(int base_fd, const char *path, bool is_writable)
{
    struct sv_client_files *r = sv_alloc(sizeof *r);
    r->base_fd = base_fd;
    r->is_writable = is_writable;
    int error = ENAMETOOLONG;
    if (snprintf(r->path, sizeof r->path, "%s", path) < (int)sizeof r->path) {
        if (map_session(r)) {
            r->process = r->session->process;
            if (r->session->magic == SV_SESSION_MAGIC && r->session->version == SV_LAYOUT_VERSION &&
                !r->is_gone)
                return r;
            errno = EINVAL;
        }
        error = errno;
    }
    sv_client_files_close(r);
    errno = error;
    return NULL;
}

static void unmap_ring(struct sv_client_ring *m)
{
    void *at = m->guarded.at;
    size_t bytes = m->guarded.bytes;
    sv_guard_remove(&m->guarded);
    munmap(at, bytes);
    free(m);
}

void sv_client_files_close(struct sv_client_files *r)
{
    if (!r)
        return;
    if (r->session) {
        sv_guard_remove(&r->guarded);
        munmap(r->session, SV_SESSION_BYTES);
    }
    for (size_t i = 0; i < r->n_rings; i++)
        unmap_ring(r->rings[i]);
    free(r->rings);
    free(r);
}

/* ---- rings ---- */

static uint8_t *map_twice(const struct sv_client_files *r, int fd, uint64_t size)
{
    size_t bytes = SV_PAGE + 2 * (size_t)size;
    uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (mmap(at, SV_PAGE + size, protection(r), MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
        mmap(at + SV_PAGE + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, SV_PAGE) ==
            MAP_FAILED) {
        munmap(at, bytes);
        return NULL;
    }
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

static struct sv_client_ring *map_ring(struct sv_client_files *r, uint32_t number)
{
    char name[32];
    struct stat st;
    snprintf(name, sizeof name, "ring.%u", number);
    char more[SV_PATH_MAX];
    int fd = open_file(r, name, &st);
    if (fd < 0 && errno == ENOENT && more_of(r->session, more))
        fd = open_in(r, AT_FDCWD, more, name, &st);
    if (fd < 0) {
        r->error = sv_trusted_failed(errno) ? errno : 0;
        return NULL;
    }
    uint64_t size = st.st_size > SV_PAGE ? (uint64_t)st.st_size - SV_PAGE : 0;
    bool is_size = size >= SV_RING_BYTES_MIN && size <= SV_RING_BYTES_MAX &&
                   (size & (size - 1)) == 0;
    uint8_t *at = is_size ? map_twice(r, fd, size) : NULL;
    r->error = is_size && !at ? errno : 0;
    close(fd);
    if (!at)
        return NULL;
    struct sv_client_ring *m = sv_alloc(sizeof *m);
    m->ring = (struct sv_ring *)(void *)at;
    m->data = at + SV_PAGE;
    m->size = size;
    sv_guard_add(&m->guarded, at, SV_PAGE + 2 * (size_t)size, &r->is_gone);
    if (m->ring->magic == SV_RING_MAGIC && m->ring->size == size)
        return m;
    unmap_ring(m);
    return NULL;
}

struct sv_ring_progress sv_ring_committed(const struct sv_ring *r, uint64_t size, uint64_t round)
{
    struct sv_ring_progress p = {.pos = size};
    uint64_t best_round = 0;
    for (int i = 0; i < 2; i++) {
        const struct sv_mark *m = &r->mark[i];
        uint64_t of = atomic_load(&m->round), at = atomic_load(&m->pos);
        if (of <= round && of >= best_round && at >= size && at % 8 == 0) {
            best_round = of;
            p = (struct sv_ring_progress){at, atomic_load(&m->lost_full),
                                          atomic_load(&m->lost_nested), m};
        }
    }
    return p;
}

/* Overwritten rings: the oldest block whose first record is still whole. */
static uint64_t oldest_pos(const struct sv_ring *r, uint64_t size, uint64_t head)
{
    uint64_t floor = head > size ? head - size : 0, best = head;
    for (int i = 0; i < SV_RING_BLOCKS; i++) {
        uint64_t first = atomic_load(&r->block_first[i]);
        if (first > floor + SV_RECORD_BYTES_MAX / 16 && first >= size && first < best &&
            first % 8 == 0)
            best = first;
    }
    return best;
}

uint64_t sv_ring_start(const struct sv_ring *r, uint64_t size, uint64_t committed, uint32_t full)
{
    uint64_t head = atomic_load(&r->head);
    if (full != STAVE_FULL_OVERWRITE || head - committed <= size)
        return committed;
    return oldest_pos(r, size, head);
}

uint64_t sv_ring_forgotten(const struct sv_ring *r, const uint8_t *data, uint64_t size,
                           uint64_t start)
{
    uint64_t oldest, n;
    sv_ring_forgot(r, &oldest, &n);
    for (uint64_t pos = oldest; pos < start && start - pos <= size; n++) {
        uint64_t word;
        memcpy(&word, data + (pos & (size - 8)), sizeof word); /* wherever it is */
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

/* The ring as it is read from now on: after what the output has of it. */
static void add_to_drain(const struct sv_client_files *r, const struct sv_client_ring *m,
                         struct sv_drain *d, uint64_t round)
{
    struct sv_ring_progress p = sv_ring_committed(m->ring, m->size, round);
    uint64_t start = sv_ring_start(m->ring, m->size, p.pos, r->session->full);
    struct sv_drain_ring *to = sv_drain_add_ring(d, m->ring, m->data, m->size, start);
    to->lost_full = p.lost_full;
    to->lost_nested = p.lost_nested;
}

void sv_client_files_rings(struct sv_client_files *r, struct sv_drain *d, uint64_t round,
                           struct sv_report *report)
{
    uint32_t n = atomic_load_explicit(&r->session->n_rings, memory_order_acquire);
    for (n = n < SV_RINGS_MAX ? n : SV_RINGS_MAX; r->n_met < n; r->n_met++) {
        struct sv_client_ring *m = map_ring(r, r->n_met);
        if (!m && r->error) /* perhaps in the next round */
            return;
        if (!m) {
            if (d)
                sv_report_add(report, SV_DAMAGE, "ring is missing or damaged", 1, SV_NO_POS,
                              "ring.%u", r->n_met);
            continue;
        }
        SV_APPEND(r->rings, r->n_rings, r->cap_rings) = m;
        if (d)
            add_to_drain(r, m, d, round);
    }
}

/* ---- names ---- */

/* From the file in pieces: its length is another process's word. */
static bool read_names(struct sv_client_files *r, struct sv_drain *d, int fd, uint64_t end)
{
    size_t cap = end - r->names_read < NAMES_CHUNK ? (size_t)(end - r->names_read) : NAMES_CHUNK;
    uint8_t *bytes = sv_realloc(NULL, cap);
    bool ok = true;
    while (ok && r->names_read < end) {
        size_t n = end - r->names_read < cap ? (size_t)(end - r->names_read) : cap;
        ssize_t got = pread(fd, bytes, n, (off_t)r->names_read);
        size_t used = got > 0 ? sv_drain_names(d, bytes, (size_t)got) : 0;
        r->names_read += used;
        ok = used > 0;
    }
    free(bytes);
    return ok;
}

bool sv_client_files_names(struct sv_client_files *r, struct sv_drain *d, struct sv_report *report)
{
    struct stat st;
    uint64_t end = atomic_load_explicit(&r->session->names_bytes, memory_order_acquire);
    if (end == r->names_read)
        return true;
    int fd = open_file(r, "names", &st);
    if (fd < 0 && sv_trusted_failed(errno)) {
        r->error = errno;
        return false;
    }
    if (fd < 0 || end < r->names_read || end > (uint64_t)st.st_size || end > NAMES_BYTES_MAX)
        sv_report_add(report, SV_DAMAGE, "names are missing", 1, SV_NO_POS, NULL);
    else if (!read_names(r, d, fd, end))
        sv_report_add(report, SV_DAMAGE, "names are damaged", 1, (int64_t)r->names_read, NULL);
    r->names_read = end; /* once is enough */
    if (fd >= 0)
        close(fd);
    return true;
}

/* In the first round, the second, the fourth and so on. */
static bool is_due(const struct sv_client_ring *m)
{
    return (m->n_looks & (m->n_looks - 1)) == 0 && m->ring->name[0] == '\0' &&
           atomic_load(&m->ring->state) == SV_RING_LIVE;
}

bool sv_client_files_names_due(struct sv_client_files *r)
{
    bool some = false;
    for (size_t i = 0; i < r->n_rings; i++) {
        r->rings[i]->n_looks++;
        some |= is_due(r->rings[i]);
    }
    return some;
}

void sv_client_files_read_comms(struct sv_client_files *r)
{
    for (size_t i = 0; i < r->n_rings; i++) {
        struct sv_client_ring *m = r->rings[i];
        char path[64], text[sizeof m->comm + 1];
        if (!is_due(m))
            continue;
        snprintf(path, sizeof path, "/proc/%u/task/%u/comm", r->process.pid,
                 atomic_load(&m->ring->tid));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
        if (fd >= 0)
            close(fd);
        if (n > 1 && (size_t)n <= sizeof m->comm) {
            memcpy(m->comm, text, (size_t)n - 1); /* without the line's end */
            m->comm[n - 1] = '\0';
        }
    }
}

void sv_client_files_name_threads(const struct sv_client_files *r, struct sv_drain *d)
{
    for (size_t i = 0; i < r->n_rings; i++) {
        char name[SV_GIVEN_NAME] = {0};
        const struct sv_ring *ring = r->rings[i]->ring;
        bool is_given = ring->name[0] != '\0';
        const char *comm = r->rings[i]->comm[0] ? r->rings[i]->comm : ring->comm;
        memcpy(name, is_given ? ring->name : comm,
               is_given ? sizeof ring->name - 1 : sizeof ring->comm - 1);
        sv_drain_name_thread(d, sv_drain_ring(d, i), name);
    }
}

/* Copied first: the texts may change while they are read. */
void sv_client_files_describe(const struct sv_client_files *r, struct sv_dict *dict)
{
    char command[sizeof r->session->command], name[sizeof r->session->name];
    memcpy(command, r->session->command, sizeof command);
    memcpy(name, r->session->name, sizeof name);
    command[sizeof command - 1] = name[sizeof name - 1] = '\0';
    sv_track t = sv_dict_process(dict, 0, r->process.pid);
    sv_str str = sv_dict_cstr(dict, name);
    if (dict->tracks[t].is_described && dict->tracks[t].name == str)
        return;
    dict->tracks[t].name = str;
    dict->tracks[t].desc = sv_dict_cstr(dict, command);
    dict->tracks[t].is_described = true;
    sv_dict_touch(dict, t);
}

/* ---- directories ---- */

static void remove_rings(int folder, uint32_t n)
{
    char name[32];
    for (uint32_t i = 0; i < n && i < SV_RINGS_MAX; i++) {
        snprintf(name, sizeof name, "ring.%u", i);
        unlinkat(folder, name, 0);
    }
}

/* The second directory of a session that is being removed, by its session file: only one of the
 * same name, and only rings in it. Returns how many rings the session has. */
static uint32_t remove_more(int folder, const char *path)
{
    struct sv_session_file s;
    char more[SV_PATH_MAX];
    const char *own = sv_base_name(path);
    int fd = sv_trusted_file(folder, "session", O_RDONLY, SV_TRUST_OWN, 0);
    bool ok = fd >= 0 && read(fd, &s, sizeof s) == (ssize_t)sizeof s &&
              s.magic == SV_SESSION_MAGIC && s.version == SV_LAYOUT_VERSION;
    if (fd >= 0)
        close(fd);
    uint32_t n = ok ? atomic_load(&s.n_rings) : 0;
    if (!ok || !more_of(&s, more) || strncmp(sv_base_name(more), own, strlen(own)) != 0)
        return n;
    int at = sv_trusted_folder(AT_FDCWD, more, SV_TRUST_PRIVATE);
    if (at >= 0) {
        remove_rings(at, n);
        close(at);
        rmdir(more);
    }
    return n;
}

bool sv_client_files_remove(int base_fd, const char *path)
{
    int fd = sv_trusted_folder(base_fd, path, SV_TRUST_PRIVATE);
    if (fd < 0)
        return false;
    uint32_t n = remove_more(fd, path);
    DIR *folder = fdopendir(fd);
    if (!folder) { /* no memory: what must be there */
        remove_rings(fd, n);
        unlinkat(fd, "names", 0);
        unlinkat(fd, "session", 0);
        close(fd);
        return unlinkat(base_fd, path, AT_REMOVEDIR) == 0;
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

int sv_client_files_each(int fd, int (*visit)(void *ctx, const char *name), void *ctx)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy >= 0 ? fdopendir(copy) : NULL;
    if (!folder) {
        bool is_memory = errno == ENOMEM;
        if (copy >= 0)
            close(copy);
        if (is_memory) /* not as if there were none */
            sv_out_of_memory(0);
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

/* A process as a client in the session of another one: joining, waiting for the collector, leaving
 * it.
 *
 * A client has rings and names, but no writer thread and no output: its collector (the traced
 * parent of a forked child, or a command) reads its rings. So a worker that ends by _exit or is
 * killed loses nothing. When the collector ends first, the client continues by itself: the
 * collector hands it over (its state becomes OPEN), or the client finds that its collector has
 * exited and leaves. The marks of the rings say what the collector has read.
 *
 * joining runs under the process's lock and allocates nothing: a signal handler may be below. */
#include "sdk/session/joining.h"

#include "core/files/trusted.h"
#include "sdk/ring/ringless.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { COLLECTOR_SILENT_MS = 5000 };

/* The last state of a collector outside of our container: its process cannot be seen from here, but
 * its clock readings advance. */
static struct {
    uint64_t n_ticks;
    int64_t moved_ns; /* 0: not looked at yet */
} far_collector;

static bool is_running(const struct sv_session_file *collector)
{
    enum sv_process_state state = sv_process_id_state(&collector->process);
    if (state != SV_PROCESS_UNKNOWN)
        return state == SV_PROCESS_RUNS;
    uint64_t n = atomic_load_explicit(&collector->n_ticks, memory_order_relaxed);
    int64_t now = stave_now_ns();
    if (n != far_collector.n_ticks || far_collector.moved_ns == 0) {
        far_collector.n_ticks = n;
        far_collector.moved_ns = now;
    }
    return now - far_collector.moved_ns < COLLECTOR_SILENT_MS * 1000000ll;
}

static int open_collector(const char *dir, int flags)
{
    struct stat st;
    int folder = sv_trusted_folder(AT_FDCWD, dir, SV_TRUST_PRIVATE);
    int fd = folder < 0 ? -1 : sv_trusted_file(folder, "session", flags, SV_TRUST_OWN, 0);
    int error = errno;
    if (folder >= 0)
        close(folder);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_size < SV_SESSION_BYTES)) {
        close(fd);
        fd = -1;
        error = ESRCH;
    }
    errno = error;
    return fd;
}

/* The collector's session file, to look at. */
static const struct sv_session_file *map_collector(const char *dir)
{
    int fd = open_collector(dir, O_RDONLY);
    if (fd < 0)
        return NULL;
    void *at = mmap(NULL, SV_SESSION_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, SV_SESSION_BYTES, MADV_DONTFORK);
    const struct sv_session_file *collector = at;
    far_collector.moved_ns = 0;
    if (collector->magic == SV_SESSION_MAGIC && collector->version == SV_LAYOUT_VERSION &&
        atomic_load(&collector->state) == SV_SESSION_OPEN && is_running(collector))
        return collector;
    munmap(at, SV_SESSION_BYTES);
    errno = ESRCH;
    return NULL;
}

bool sv_collector_reads(const char *dir)
{
    enum { LOOKS = 100, PAUSE_NS = 2000000 };
    struct stat st;
    if (stat("/proc/self/task", &st) == 0 && st.st_nlink == 3) /* one thread: no writer */
        return false;
    const struct sv_session_file *collector = map_collector(dir);
    if (!collector)
        return false;
    uint64_t first = atomic_load(&collector->n_ticks);
    bool reads = false;
    for (int i = 0; i < LOOKS && !reads; i++) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        reads = atomic_load(&collector->n_ticks) != first;
    }
    munmap((void *)(uintptr_t)collector, SV_SESSION_BYTES);
    return reads;
}

/* The collector's page of counters, for whatever cannot be recorded from here on. A forked child
 * has it from its parent. */
static void use_counters(const char *dir)
{
    int fd = sv_ringless_are_used() ? -1 : open_collector(dir, O_RDWR);
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, SV_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SV_RINGLESS_AT);
    if (fd >= 0)
        close(fd);
    if (at != MAP_FAILED)
        sv_ringless_use(at);
}

bool sv_join(struct sv_process *p, const char *dir, const struct sv_plan *plan)
{
    if (p->session)
        return p->collector != NULL;
    const struct sv_session_file *collector = map_collector(dir);
    if (!collector)
        return false;
    use_counters(dir);
    if (!sv_files_open(p, dir)) {
        int error = errno;
        munmap((void *)(uintptr_t)collector, SV_SESSION_BYTES);
        errno = error;
        return false;
    }
    p->session->counter = sv_ticks_counter();
    p->session->full = plan->full;
    if (!sv_names_flush()) { /* its records could not be read */
        int error = errno;
        sv_files_remove(p);
        __atomic_store_n(&p->session, NULL, __ATOMIC_RELEASE);
        errno = error;
        return false;
    }
    __atomic_store_n(&p->collector, collector, __ATOMIC_RELEASE);
    /* Pairs with the acquire of the collector: from here on it reads us. */
    atomic_store_explicit(&p->session->state, SV_SESSION_CLIENT, memory_order_release);
    return true;
}

/* Without a system call: its state and its clock readings are in memory that we share. */
bool sv_collector_is_seen(struct sv_process *p)
{
    enum { SILENT_MS = 250 };
    const struct sv_session_file *c = __atomic_load_n(&p->collector, __ATOMIC_ACQUIRE);
    if (!c || atomic_load_explicit(&p->session->state, memory_order_acquire) != SV_SESSION_CLIENT ||
        atomic_load_explicit(&c->state, memory_order_acquire) != SV_SESSION_OPEN)
        return false;
    uint64_t n = atomic_load_explicit(&c->n_ticks, memory_order_relaxed);
    int64_t now = stave_now_ns();
    if (atomic_exchange(&p->collector_ticks, n) != n)
        atomic_store(&p->collector_moved_ns, now);
    return now - atomic_load(&p->collector_moved_ns) < SILENT_MS * 1000000ll;
}

enum sv_collector_state sv_collector_look(const struct sv_process *p, bool is_thorough)
{
    switch (atomic_load_explicit(&p->session->state, memory_order_acquire)) {
    case SV_SESSION_OFF: return SV_COLLECTOR_FAILED;
    case SV_SESSION_CLIENT: break;
    default: return SV_COLLECTOR_LEFT;
    }
    if (!is_thorough)
        return SV_COLLECTOR_THERE;
    bool is_there = atomic_load_explicit(&p->collector->state, memory_order_acquire) ==
                        SV_SESSION_OPEN &&
                    is_running(p->collector);
    return is_there ? SV_COLLECTOR_THERE : SV_COLLECTOR_LEFT;
}

/* DIR/COLLECTOR/SELF → DIR/SELF, where sessions of their own are. */
static bool move_out(struct sv_process *p)
{
    char from[SV_PATH_MAX], to[SV_PATH_MAX];
    memcpy(from, p->dir, sizeof from);
    char *self = strrchr(from, '/');
    if (!self || self == from)
        return false;
    *self = '\0';
    char *slash = strrchr(from, '/');
    if (!slash)
        return false;
    *slash = '\0';
    if (snprintf(to, sizeof to, "%s/%s", from, self + 1) >= (int)sizeof to)
        return false;
    *slash = '/';
    if (rename(p->dir, to) != 0 && (errno != ENOENT || access(to, W_OK) != 0))
        return false;
    rmdir(from); /* fails as long as another process uses it */
    memcpy(p->dir, to, sizeof p->dir);
    return true;
}

bool sv_leave_collector(struct sv_process *p)
{
    struct sv_session_file *s = p->session;
    uint32_t state = SV_SESSION_CLIENT;
    if (atomic_compare_exchange_strong(&s->state, &state, SV_SESSION_OPEN))
        atomic_store(&s->round,
                     atomic_load(&p->collector->round)); /* else the collector has said it */
    bool ok = move_out(p);
    __atomic_store_n(&p->collector, NULL,
                     __ATOMIC_RELEASE); /* mapped: others may be looking at it */
    return ok;
}

/* Until the collector has read what is there now. The collector commits at least every 50 ms while
 * there is something to read. */
bool sv_joined_flush(const struct sv_process *p)
{
    uint32_t n = atomic_load_explicit(&p->n_rings, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        const struct sv_ring *r = p->rings[i].ring;
        uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
        for (unsigned k = 0; atomic_load_explicit(&r->tail, memory_order_acquire) < head; k++) {
            if (sv_collector_look(p, k % 64 == 63) != SV_COLLECTOR_THERE)
                return false;
            struct timespec pause = {.tv_nsec = 1000000};
            nanosleep(&pause, NULL);
        }
    }
    return true;
}

bool sv_joined_end(const struct sv_process *p)
{
    uint32_t state = SV_SESSION_CLIENT;
    if (atomic_load(&p->session->state) == SV_SESSION_DONE)
        return true; /* stave_finish() came before the end of the program */
    return sv_collector_look(p, true) == SV_COLLECTOR_THERE &&
           atomic_compare_exchange_strong(&p->session->state, &state, SV_SESSION_DONE);
}

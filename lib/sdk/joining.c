/* A process as a guest of another one's session: joining, waiting for the host, leaving it.
 *
 * A guest has rings and names, but no thread and no output: its host (the traced parent of a forked child, or a collector) empties its
 * rings. So a worker that ends by _exit or is killed loses nothing. When the host ends first, the guest goes on by itself: the host
 * gives it away (its state becomes OPEN), or it finds its host dead and gives itself away; what the host has read is in the marks of the rings.
 *
 * joining runs under the process's lock and allocates nothing: a signal handler may be below. */
#include "sdk/joining.h"

#include "core/files/trusted.h"
#include "sdk/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOST_SILENT_MS = 5000 };

/* What was last seen of a host that is outside of our container: its process cannot be found from here, but its clock readings go on. */
static struct {
    uint64_t n_ticks;
    int64_t moved_ns; /* 0: not looked at yet */
} far_host;

static bool is_running(const struct sv_session_file *host)
{
    enum sv_process_state state = sv_process_id_state(&host->process);
    if (state != SV_PROCESS_UNKNOWN)
        return state == SV_PROCESS_RUNS;
    uint64_t n = atomic_load_explicit(&host->n_ticks, memory_order_relaxed);
    int64_t now = stave_now_ns();
    if (n != far_host.n_ticks || far_host.moved_ns == 0) {
        far_host.n_ticks = n;
        far_host.moved_ns = now;
    }
    return now - far_host.moved_ns < HOST_SILENT_MS * 1000000ll;
}

static int open_host(const char *dir)
{
    struct stat st;
    int folder = sv_trusted_folder(AT_FDCWD, dir, SV_TRUST_PRIVATE);
    int fd = folder < 0 ? -1 : sv_trusted_file(folder, "session", O_RDONLY, SV_TRUST_OWN, 0);
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

/* The host's session file, to look at. */
static const struct sv_session_file *map_host(const char *dir)
{
    int fd = open_host(dir);
    if (fd < 0)
        return NULL;
    void *at = mmap(NULL, SV_SESSION_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, SV_SESSION_BYTES, MADV_DONTFORK);
    const struct sv_session_file *host = at;
    far_host.moved_ns = 0;
    if (host->magic == SV_SESSION_MAGIC && host->version == SV_LAYOUT_VERSION &&
        atomic_load(&host->state) == SV_SESSION_OPEN && is_running(host))
        return host;
    munmap(at, SV_SESSION_BYTES);
    errno = ESRCH;
    return NULL;
}

bool sv_join(struct sv_process *p, const char *dir, const struct sv_plan *plan)
{
    if (p->session)
        return p->host != NULL;
    const struct sv_session_file *host = map_host(dir);
    if (!host)
        return false;
    if (!sv_files_open(p, dir)) {
        int error = errno;
        munmap((void *)(uintptr_t)host, SV_SESSION_BYTES);
        errno = error;
        return false;
    }
    p->session->counter = sv_ticks_counter();
    p->session->full = plan->full;
    p->host = host;
    if (!sv_names_flush())
        return false;
    /* Pairs with the acquire of the host: from here on it reads us. */
    atomic_store_explicit(&p->session->state, SV_SESSION_GUEST, memory_order_release);
    return true;
}

enum sv_host_state sv_host_look(const struct sv_process *p, bool is_thorough)
{
    switch (atomic_load_explicit(&p->session->state, memory_order_acquire)) {
    case SV_SESSION_OFF: return SV_HOST_FAILED;
    case SV_SESSION_GUEST: break;
    default: return SV_HOST_LEFT;
    }
    if (!is_thorough)
        return SV_HOST_THERE;
    bool is_there = atomic_load_explicit(&p->host->state, memory_order_acquire) ==
                        SV_SESSION_OPEN &&
                    is_running(p->host);
    return is_there ? SV_HOST_THERE : SV_HOST_LEFT;
}

/* DIR/HOST/SELF → DIR/SELF, where sessions of their own are. */
static bool move_out(struct sv_process *p)
{
    char from[SV_PATH_MAX], to[SV_PATH_MAX];
    memcpy(from, p->dir, sizeof from);
    char *self = strrchr(from, '/');
    if (!self || self == from)
        return false;
    *self = '\0';
    char *host = strrchr(from, '/');
    if (!host)
        return false;
    *host = '\0';
    if (snprintf(to, sizeof to, "%s/%s", from, self + 1) >= (int)sizeof to)
        return false;
    *host = '/';
    if (rename(p->dir, to) != 0 && (errno != ENOENT || access(to, W_OK) != 0))
        return false;
    rmdir(from); /* in vain as long as somebody else is there */
    memcpy(p->dir, to, sizeof p->dir);
    return true;
}

bool sv_leave_host(struct sv_process *p)
{
    struct sv_session_file *s = p->session;
    uint32_t state = SV_SESSION_GUEST;
    if (atomic_compare_exchange_strong(&s->state, &state, SV_SESSION_OPEN))
        atomic_store(&s->round, atomic_load(&p->host->round)); /* else the host has said it */
    bool ok = move_out(p);
    munmap((void *)(uintptr_t)p->host, SV_SESSION_BYTES);
    p->host = NULL;
    return ok;
}

/* Until the host has read what is there now. The host commits at least every 50 ms while there is something to read. */
bool sv_guest_flush(const struct sv_process *p)
{
    uint32_t n = atomic_load_explicit(&p->n_rings, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        const struct sv_ring *r = p->rings[i].ring;
        uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
        for (unsigned k = 0; atomic_load_explicit(&r->tail, memory_order_acquire) < head; k++) {
            if (sv_host_look(p, k % 64 == 63) != SV_HOST_THERE)
                return false;
            struct timespec pause = {.tv_nsec = 1000000};
            nanosleep(&pause, NULL);
        }
    }
    return true;
}

bool sv_guest_end(const struct sv_process *p)
{
    uint32_t state = SV_SESSION_GUEST;
    if (atomic_load(&p->session->state) == SV_SESSION_DONE)
        return true; /* stave_finish() came before the end of the program */
    return sv_host_look(p, true) == SV_HOST_THERE &&
           atomic_compare_exchange_strong(&p->session->state, &state, SV_SESSION_DONE);
}

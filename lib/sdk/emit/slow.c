/* The slow way: what the hot path leaves to others.
 *
 * sv_slow() is called with an open gate when a site is new, the thread has no ring, the ring looks
 * full, or a signal handler interrupted its own thread's hot path. A thread gets its ring at its
 * first event and gives it back when it ends (a thread-specific key's destructor; one that traces
 * after that gets another). Rings are taken over by later threads once empty.
 *
 * It may run in a signal handler: no malloc here, memory comes from mmap; the lock knows its
 * holder, and a second entry of the same thread is counted as lost instead of waiting for
 * itself. */
#include "sdk/session/sdk.h"

#include "sdk/emit/ticks.h"
#include "sdk/ring/ringless.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLAB_BYTES = 64 << 10, FORK_WAITS = 2000, RINGS_LARGE = 16, RINGS_MEDIUM = 128 };
enum { WAIT_NS_MIN = 20000, WAIT_NS_MAX = 200000 };
enum { SPINS_MAX = 1 << 25 }; /* some 10 to 100 ms: callers ask again */
#define RETRY_NS 1000000000ll /* a ring that could not be made is tried again after this time */

struct sv_process *sv_process;
static pthread_key_t ended_key;
static _Atomic uint32_t key_made;
static uint32_t generation; /* inherited by fork, so that it grows from parent to child */

static uint32_t this_thread(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* ---- the lock: the holder, and whether others wait. Taking it is one instruction, so that a
 * signal handler sees either nobody or its own thread. A thread is known by an address of its own:
 * asking the system for its number would be a system call. ---- */

static _Thread_local uint64_t own_address __attribute__((tls_model("initial-exec")));
#define WAITERS ((uint64_t)1)

static uint64_t lock_name(void)
{
    return (uint64_t)(uintptr_t)&own_address;
}

static void futex(_Atomic uint32_t *at, int op, uint32_t value)
{
    syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

/* The half of the lock that has the bit of the waiters. */
static _Atomic uint32_t *low_half(_Atomic uint64_t *lock)
{
    return (_Atomic uint32_t *)(uintptr_t)lock + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

bool sv_lock(void)
{
    struct sv_process *p = sv_process;
    if (!p)
        return false;
    uint64_t me = lock_name(), mine = me, seen = 0;
    while (!atomic_compare_exchange_strong_explicit(&p->lock, &seen, mine, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if ((seen & ~WAITERS) == me)
            return false;
        mine = me | WAITERS; /* others may wait, too: each waiter wakes the next one */
        if (seen == 0)
            continue;
        uint64_t marked = seen | WAITERS;
        if (seen == marked ||
            atomic_compare_exchange_strong_explicit(&p->lock, &seen, marked, memory_order_relaxed,
                                                    memory_order_relaxed))
            futex(low_half(&p->lock), FUTEX_WAIT_PRIVATE, (uint32_t)marked);
        seen = 0;
    }
    return true;
}

bool sv_lock_within(unsigned ms)
{
    struct sv_process *p = sv_process;
    for (unsigned i = 0; i <= 10 * ms; i++) {
        uint64_t nobody = 0;
        if (atomic_compare_exchange_strong_explicit(&p->lock, &nobody, lock_name(),
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
        usleep(100);
    }
    return false;
}

void sv_unlock(void)
{
    struct sv_process *p = sv_process;
    if (atomic_exchange_explicit(&p->lock, 0, memory_order_release) & WAITERS)
        futex(low_half(&p->lock), FUTEX_WAKE_PRIVATE, 1);
}

/* ---- the process ---- */

static void *wiped_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_WIPEONFORK);
    return p;
}

static _Thread_local bool has_asked_writer;

/* The writer pauses, or is too busy to: after a tenth of a second the fork continues without. */
static void before_fork(void)
{
    struct sv_process *p = sv_process;
    has_asked_writer = p && atomic_load(&p->ready) == 2;
    if (has_asked_writer) {
        atomic_fetch_add(&p->forks, 1);
        atomic_fetch_add(&p->n_forked, 1);
        for (int i = 0; i < FORK_WAITS && atomic_load(&p->writer_works); i++)
            usleep(50);
    }
    sv_registry_before_fork();
}

static void after_fork_parent(void)
{
    sv_registry_after_fork(false);
    if (has_asked_writer)
        atomic_fetch_sub(&sv_process->forks, 1);
}

static void after_fork_child(void)
{
    sv_self = &sv_nobody;
    sv_registry_after_fork(true);
    /* Where the kernel does not wipe (before Linux 4.14, some emulators) the ordinary fork is
     * handled here. */
    if (sv_process && sv_process->pid != 0)
        memset(sv_process, 0, sizeof *sv_process);
}

static void thread_ended(void *arg)
{
    struct sv_thread *t = arg;
    struct sv_process *p = sv_process;
    if (sv_self != t || !p || p->pid != (uint32_t)getpid() || !t->ring)
        return;
    sv_self = &sv_nobody;
    struct sv_ring *ring = t->ring;
    *t = (struct sv_thread){0};
    atomic_store_explicit(&ring->state, SV_RING_ENDED, memory_order_release);
    if (sv_lock()) {
        t->data = (uint8_t *)p->free_threads;
        p->free_threads = t;
        sv_unlock();
    }
}

/* Rings of threads that may still write to them stay. */
static void drop_rings(struct sv_process *p)
{
    uint32_t n = atomic_load(&p->n_rings), me = this_thread();
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&p->rings[i].ring->state) != SV_RING_ENDED &&
            atomic_load(&p->rings[i].ring->tid) != me)
            return;
    sv_self = &sv_nobody;
    atomic_store(&p->n_rings, 0);
    for (uint32_t i = 0; i < n; i++)
        munmap(p->rings[i].ring, SV_PAGE + 2 * p->rings[i].ring->size);
}

void sv_process_unload(void)
{
    if (atomic_exchange(&key_made, 3) == 2)
        pthread_key_delete(ended_key);
    struct sv_process *p = sv_process;
    if (!p || atomic_load(&p->ready) != 2 || p->has_writer || !sv_lock())
        return;
    drop_rings(p);
    sv_registry_drop();
    sv_unlock();
}

/* Once in the life of the program, inherited by children: key and handlers. */
static void make_key_once(void)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&key_made, &none, 1))
        return;
    if (pthread_key_create(&ended_key, thread_ended) == 0)
        atomic_store(&key_made, 2);
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* In a child the pages are wiped: `ready` is 0 again, and the first thread fills them. */
bool sv_process_init(void)
{
    struct sv_process *p = __atomic_load_n(&sv_process, __ATOMIC_ACQUIRE);
    if (p && atomic_load_explicit(&p->ready, memory_order_acquire) == 2)
        return true;
    if (!p) {
        struct sv_process *fresh = wiped_pages(sizeof *fresh), *none = NULL;
        if (!fresh)
            return false;
        if (__atomic_compare_exchange_n(&sv_process, &none, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            p = fresh;
        else {
            munmap(fresh, sizeof *fresh);
            p = none;
        }
    }
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&p->ready, &none, 1)) {
        make_key_once();
        p->pid = (uint32_t)getpid();
        p->generation = ++generation;
        p->names_fd = p->dir_fd = p->more_fd = -1;
        if (getrandom(&p->flow_base, sizeof p->flow_base, GRND_NONBLOCK) != sizeof p->flow_base)
            p->flow_base = sv_ticks_raw(SV_COUNTER_MONOTONIC) * 0x9e3779b97f4a7c15u ^ p->pid;
        atomic_store_explicit(&p->ready, 2, memory_order_release);
    }
    while (atomic_load_explicit(&p->ready, memory_order_acquire) != 2)
        sched_yield();
    return true;
}

/* ---- rings for threads ---- */

static struct sv_thread *new_thread(struct sv_process *p)
{
    struct sv_thread *t = p->free_threads;
    if (t) {
        p->free_threads = (struct sv_thread *)(void *)t->data;
        return t;
    }
    if (!p->slab || (p->slab_used + 1) * sizeof *t > SLAB_BYTES) {
        p->slab = wiped_pages(SLAB_BYTES);
        p->slab_used = 0;
        if (!p->slab)
            return NULL;
    }
    return &p->slab[p->slab_used++];
}

/* One that its thread has left and that was read to the end. */
static struct sv_ring_ref *find_left_ring(struct sv_process *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct sv_ring *r = p->rings[i].ring;
        if (p->ring_bytes_given && r->size != p->ring_bytes)
            continue; /* of an earlier session */
        if (atomic_load_explicit(&r->state, memory_order_acquire) == SV_RING_ENDED &&
            atomic_load_explicit(&r->tail, memory_order_acquire) ==
                atomic_load_explicit(&r->head, memory_order_relaxed))
            return &p->rings[i];
    }
    return NULL;
}

/* Nobody empties the rings of a flight recorder: with many of them, those of threads that have
 * ended are given up, the longest first. */
static struct sv_ring_ref *find_ended_ring(struct sv_process *p, uint32_t n)
{
    struct sv_ring_ref *ref = NULL;
    for (uint32_t i = 0; i < n && !ref; i++, p->ended_at = (p->ended_at + 1) % n)
        if (atomic_load_explicit(&p->rings[p->ended_at].ring->state, memory_order_acquire) ==
            SV_RING_ENDED)
            ref = &p->rings[p->ended_at];
    if (!ref)
        return NULL;
    struct sv_ring *r = ref->ring;
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed), oldest, lost;
    sv_ring_forgot(r, &oldest, &lost);
    if (head - oldest > r->size) /* of an earlier session */
        oldest = head;
    while (oldest < head) {
        uint64_t word;
        memcpy(&word, ref->data + (oldest & (r->size - 1)), sizeof word);
        oldest += sv_word_bytes(word) ? sv_word_bytes(word) : SV_RECORD_HEAD;
        lost++;
    }
    sv_ring_forget(r, oldest, lost);
    for (int i = 0; i < SV_RING_BLOCKS; i++)
        atomic_store_explicit(&r->block_first[i], 0, memory_order_relaxed);
    return ref;
}

/* Many threads get small rings, unless the user gave a size. */
static uint64_t ring_bytes(const struct sv_process *p, uint32_t n)
{
    if (p->ring_bytes_given || n < RINGS_LARGE)
        return p->ring_bytes;
    return p->ring_bytes >> (n < RINGS_MEDIUM ? 2 : 4);
}

static bool make_ring_in(struct sv_process *p, uint32_t n, enum sv_ring_place from,
                         enum sv_ring_place to)
{
    int error = 0; /* of the first place */
    for (uint64_t bytes = ring_bytes(p, n); bytes >= SV_RING_BYTES_MIN; bytes >>= 1) {
        for (enum sv_ring_place place = from; place <= to; place++) {
            if (sv_ring_open(p, n, bytes, place, &p->rings[n]))
                return true;
            error = place == from ? errno : error;
        }
    }
    errno = error;
    return false;
}

/* Where there is no space, elsewhere; then a smaller one. Memory without a name comes last: neither
 * a collector nor recovery finds it. */
static bool make_ring(struct sv_process *p, uint32_t n)
{
    if (make_ring_in(p, n, SV_RING_IN_DIR, SV_RING_IN_MORE))
        return true;
    int error = errno;
    bool ok = !p->collector && make_ring_in(p, n, SV_RING_IN_MEMORY, SV_RING_IN_MEMORY);
    errno = error;
    return ok;
}

static struct sv_ring_ref *take_ring(struct sv_process *p)
{
    uint32_t n = atomic_load_explicit(&p->n_rings, memory_order_relaxed);
    struct sv_ring_ref *ref = find_left_ring(p, n);
    if (!ref && p->full == STAVE_FULL_OVERWRITE && n >= RINGS_MEDIUM)
        ref = find_ended_ring(p, n);
    if (ref || n == SV_RINGS_MAX)
        return ref;
    if (!make_ring(p, n))
        return NULL;
    atomic_store_explicit(&p->n_rings, n + 1, memory_order_release);
    atomic_store_explicit(&p->session->n_rings, n + 1, memory_order_release);
    return &p->rings[n];
}

static struct sv_thread *attach_locked(struct sv_process *p)
{
    struct sv_ring_ref *ref = take_ring(p);
    if (!ref)
        return NULL;
    struct sv_thread *t = new_thread(p);
    if (!t)
        return NULL;
    struct sv_ring *r = ref->ring;
    atomic_store_explicit(&r->tid, this_thread(), memory_order_relaxed);
    r->name[0] = '\0';
    prctl(PR_GET_NAME, r->comm);
    atomic_fetch_add_explicit(&r->owner, 1, memory_order_release);
    atomic_store_explicit(&r->state, SV_RING_LIVE, memory_order_release);
    *t = (struct sv_thread){.head = atomic_load_explicit(&r->head, memory_order_relaxed),
                            .mask = r->size - 1,
                            .data = ref->data,
                            .ring = r,
                            .fates = ~(uint64_t)0,
                            .counter = (uint32_t)sv_ticks_counter(),
                            .slice_base = (uint64_t)p->generation << SV_SLICE_RECORD_BITS |
                                          sv_slice_id(r->number, 0)};
    t->full_limit = t->limit = t->head;
    return t;
}

/* Was there no ring a short time ago? Events of threads without one make no system calls. */
static bool has_just_failed(const _Atomic int64_t *when_ns)
{
    int64_t when = atomic_load_explicit(when_ns, memory_order_relaxed);
    return when != 0 && stave_now_ns() - when < RETRY_NS;
}

struct sv_thread *sv_attach(void)
{
    if (!sv_process_init())
        return NULL;
    struct sv_process *p = sv_process;
    if (has_just_failed(&p->ring_failed_ns))
        return NULL;
    if (!p->session) /* a forked child's first event */
        sv_session_inherit();
    if (!p->session || !sv_lock())
        return NULL;
    struct sv_quiet quiet;
    sv_quiet_begin(&quiet);
    errno = 0;
    struct sv_thread *t = attach_locked(p);
    int error = errno;
    sv_quiet_end(&quiet);
    sv_unlock();
    if (!t) {
        atomic_store(&p->ring_failed_ns, stave_now_ns());
        sv_session_count_only("cannot make a ring", error);
        return NULL;
    }
    atomic_store(&p->ring_failed_ns, 0);
    if (atomic_load(&key_made) == 2)
        pthread_setspecific(ended_key, t);
    sv_self = t;
    return t;
}

/* ---- who has no ring ---- */

static void count(_Atomic uint64_t *lost)
{
    atomic_fetch_add_explicit(lost, 1, memory_order_relaxed);
}

static struct sv_ringless *counters; /* ordinary memory: forked children count in the same page */

void sv_ringless_use(struct sv_ringless *page)
{
    counters = page;
    if (sv_process)
        atomic_store(&sv_process->lost_slot, 0);
}

bool sv_ringless_are_used(void)
{
    return counters != NULL;
}

void sv_ringless_begin(struct sv_ringless *page)
{
    for (unsigned i = 0; i < SV_LOST_SLOTS; i++)
        atomic_store_explicit(&page->slots[i].lost, 0, memory_order_relaxed);
    atomic_store(&page->has_said, 0);
}

/* By the number of the process: one that ended before with the same number has the same track. */
static uint32_t find_slot(struct sv_ringless *page, uint32_t pid)
{
    for (uint32_t i = 0; i < SV_LOST_SLOTS - 1; i++) {
        uint32_t seen = 0;
        if (atomic_compare_exchange_strong(&page->slots[i].pid, &seen, pid) || seen == pid)
            return i;
    }
    return SV_LOST_SLOTS - 1;
}

static struct sv_lost_slot *my_slot(void)
{
    struct sv_ringless *page = counters;
    if (!page || !sv_process_init())
        return NULL;
    uint32_t slot = atomic_load_explicit(&sv_process->lost_slot, memory_order_relaxed);
    if (slot == 0) {
        slot = find_slot(page, sv_process->pid) + 1;
        atomic_store_explicit(&sv_process->lost_slot, slot, memory_order_relaxed);
    }
    return &page->slots[slot - 1];
}

void sv_ringless_count(void)
{
    struct sv_lost_slot *slot = my_slot();
    if (slot)
        count(&slot->lost);
}

uint64_t sv_ringless_mine(void)
{
    uint32_t slot = sv_process ? atomic_load(&sv_process->lost_slot) : 0;
    return counters && slot ? atomic_load(&counters->slots[slot - 1].lost) : 0;
}

bool sv_ringless_may_say(void)
{
    return !counters || !atomic_exchange(&counters->has_said, 1);
}

/* ---- a full ring ---- */

void sv_wake_writer(void)
{
    struct sv_process *p = sv_process;
    atomic_fetch_add(&p->wake, 1); /* before it looks at `dozes`: doze.c has the other order */
    futex(&p->wake, FUTEX_WAKE_PRIVATE, 1);
    for (uint32_t i = 0; i < SPINS_MAX && atomic_load(&p->dozes); i++) {}
}

void sv_wait_at(_Atomic uint32_t *at, uint32_t value, unsigned ms)
{
    struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

/* A signal handler must not come in between. */
static void set_limit(struct sv_thread *t, uint64_t full_limit)
{
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t kept = t->full_limit - t->limit;
    t->full_limit = full_limit;
    t->limit = full_limit - kept;
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
}

/* Nobody is woken here: that would be a system call, and the program may have forbidden itself all
 * of them. The writer looks at the rings by the clock. Returns the tail that it saw. */
static uint64_t refresh_limit(struct sv_thread *t)
{
    /* Pairs with the release of the writer: it has read what is before the tail. */
    uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
    set_limit(t, tail + t->ring->size);
    return tail;
}

/* Whatever begins before end - size is about to be written over. Some nanoseconds for each of
 * them, and the lines are needed next anyway. */
static void count_overwritten(const struct sv_thread *t, uint64_t end)
{
    struct sv_ring *r = t->ring;
    uint64_t oldest, lost;
    sv_ring_forgot(r, &oldest, &lost);
    while (oldest + r->size < end && oldest < t->head) {
        uint64_t word;
        memcpy(&word, t->data + (oldest & t->mask), sizeof word);
        oldest += sv_word_bytes(word) ? sv_word_bytes(word) : SV_RECORD_HEAD;
        lost++;
    }
    sv_ring_forget(r, oldest, lost);
}

/* The newest stay: the limit is the end of the block, whose first record is noted for the
 * reader. */
static void overwrite(struct sv_thread *t, uint64_t need)
{
    uint64_t block_bytes = t->ring->size / SV_RING_BLOCKS;
    uint64_t block = t->head / block_bytes, kept = t->full_limit - t->limit;
    if (t->block != (uint32_t)block + 1) {
        atomic_store_explicit(&t->ring->block_first[block % SV_RING_BLOCKS], t->head,
                              memory_order_release);
        t->block = (uint32_t)block + 1;
    }
    uint64_t end = (block + 1) * block_bytes;
    if (end < t->head + need + kept)
        end = t->head + need + kept;
    t->busy = 1; /* until set_limit() is done: a signal handler must not come in between */
    atomic_signal_fence(memory_order_seq_cst);
    count_overwritten(t, end);
    set_limit(t, end);
}

/* Asks by the clock, not woken by the writer: a woken thread is put beside its waker, and two that
 * wake each other in turn end up on one core. It sleeps for a small part of what the writer needs
 * for a full ring. */
static bool wait_for_writer(struct sv_thread *t, uint64_t need)
{
    const struct sv_process *p = sv_process;
    uint64_t ns = t->ring->size / 16;
    ns = ns < WAIT_NS_MIN ? WAIT_NS_MIN : ns > WAIT_NS_MAX ? WAIT_NS_MAX : ns;
    for (;;) {
        uint64_t tail = refresh_limit(t);
        if (t->head + need <= t->limit)
            return true;
        sv_wake_writer();
        if (tail == t->head) /* empty and yet no space: the open slices have reserved it all */
            return false;
        bool is_off = atomic_load_explicit(&sv_epoch, memory_order_acquire) == 0 ||
                      atomic_load_explicit(&p->is_orphan, memory_order_relaxed);
        bool is_emptied = p->collector
                              ? !is_off
                              : atomic_load(&p->writer_state) == SV_WRITER_RUNS &&
                                    !atomic_load(&p->start_failed); /* it leaves them as they are */
        if (!is_emptied) /* a writer that ends still does it, for who waits by then */
            return false;
        if (p->collector)
            sv_session_check_collector();
        struct timespec pause = {.tv_nsec = (long)ns};
        nanosleep(&pause, NULL);
    }
}

static bool wait_for_space(struct sv_thread *t, uint64_t need)
{
    atomic_fetch_add(&sv_process->n_waiting, 1);
    bool ok = wait_for_writer(t, need);
    atomic_fetch_sub(&sv_process->n_waiting, 1);
    return ok;
}

static bool make_space(struct sv_thread *t, uint64_t need)
{
    if (need > t->ring->size / 4) /* too large for this ring */
        return false;
    if (sv_process->full == STAVE_FULL_OVERWRITE) {
        overwrite(t, need);
        return true;
    }
    refresh_limit(t);
    if (t->head + need <= t->limit)
        return true;
    if (sv_process->collector && sv_session_check_collector())
        return wait_for_space(t, need); /* its own writer has just begun */
    return sv_process->full == STAVE_FULL_BLOCK && wait_for_space(t, need);
}

/* ---- the whole slow way ---- */

/* A signal handler inside its thread's hot path is counted. An end is recorded whatever is switched
 * off by now. */
static uint32_t slow(struct stave_site *site, const uint64_t *values, struct sv_on *on)
{
    struct sv_thread *t = sv_self;
    bool is_end = on && on->is_end;
    if (t->ring && t->busy) {
        count(&t->ring->lost_nested);
        return 0;
    }
    uint64_t word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
    if (word == 0) {
        bool is_on = sv_site_register(site) || (__atomic_load_n(&site->state, __ATOMIC_RELAXED) &&
                                                atomic_load(&sv_epoch) != 0);
        word = __atomic_load_n(&site->word, __ATOMIC_ACQUIRE);
        if (word == 0 && is_on && !is_end)
            sv_ringless_count(); /* it could not be registered here */
        if (word == 0 || (!is_on && !is_end))
            return 0;
    }
    if (!is_end && !__atomic_load_n(&site->state, __ATOMIC_RELAXED)) {
        if (t->ring && atomic_load(&sv_epoch) == 0) /* the session has ended on its way here */
            count(&t->ring->lost_full);
        return 0;
    }
    if (!t->ring) {
        t = sv_attach();
        if (!t) {
            if (!is_end && atomic_load(&sv_epoch) != 0)
                sv_ringless_count();
            return 0;
        }
    }
    uint32_t done = sv_emit_try(t, word, site, values, on);
    if (done)
        return done;
    uint64_t need = site->flags & SV_SITE_TEXT ? sv_emit_bytes(site, values) : sv_word_bytes(word);
    uint64_t kept = on && on->kept > SV_RECORD_HEAD ? on->kept : SV_RECORD_HEAD;
    if (make_space(t, need + kept))
        done = sv_emit_try(t, word, site, values, on);
    if (!done)
        count(&t->ring->lost_full);
    return done;
}

bool stave_i_first(struct stave_site *site)
{
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    bool on = sv_site_register(site);
    if (!on && __atomic_load_n(&site->state, __ATOMIC_RELAXED) == STAVE_I_NEW &&
        atomic_load(&sv_epoch) != 0)
        sv_ringless_count(); /* in a signal handler: not this time */
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return on;
}

uint32_t sv_slow_on(struct stave_site *site, const uint64_t *values, struct sv_on *on)
{
    int saved = errno, cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* not while it holds the lock */
    uint32_t done = slow(site, values, on);
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    return done;
}

uint32_t sv_slow(struct stave_site *site, const uint64_t *values)
{
    return sv_slow_on(site, values, NULL);
}

uint64_t stave_flow_new(void)
{
    if (!sv_process_init())
        return 0;
    uint64_t id = sv_process->flow_base +
                  atomic_fetch_add_explicit(&sv_process->flow_next, 1, memory_order_relaxed);
    return id ? id : stave_flow_new();
}

int64_t stave_now_ns(void)
{
    return (int64_t)sv_ticks_raw(SV_COUNTER_MONOTONIC);
}

/* Who released a lock last. Of locks for which threads wait, at most LOCKS at one time.
 *
 * Lock-free: a place belongs to the address that was put there by compare-and-swap, and may go to
 * another one when nobody waits. The release is written by one thread at a time (`is_written`),
 * and read under a version that is odd meanwhile. */
#include "locks.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>

enum { LOCKS = 1024, TRIES = 8 };

struct lock_entry {
    _Atomic uintptr_t address;
    _Atomic uint32_t waiters;
    _Atomic uint32_t version;
    _Atomic bool is_written;
    _Atomic int64_t since_ns; /* when the first of those who wait began to */
    struct lock_release release;
};
static struct lock_entry table[LOCKS];

static size_t first_place(uintptr_t address)
{
    return (size_t)((uint64_t)address * 0x9e3779b97f4a7c15u >> 54);
}

static struct lock_entry *find(uintptr_t address)
{
    size_t at = first_place(address);
    for (size_t i = 0; i < TRIES; i++) {
        struct lock_entry *e = &table[(at + i) % LOCKS];
        uintptr_t is = atomic_load_explicit(&e->address, memory_order_acquire);
        if (is == address)
            return e;
        if (!is)
            return NULL; /* places are never emptied */
    }
    return NULL;
}

/* A place that nobody waits at. */
static struct lock_entry *make(uintptr_t address)
{
    size_t at = first_place(address);
    for (size_t i = 0; i < TRIES; i++) {
        struct lock_entry *e = &table[(at + i) % LOCKS];
        uintptr_t is = atomic_load(&e->address);
        if (is && atomic_load(&e->waiters))
            continue;
        if (atomic_compare_exchange_strong(&e->address, &is, address) || is == address)
            return e;
    }
    return NULL;
}

struct lock_entry *lock_wait_begin(uintptr_t address, int64_t now_ns)
{
    struct lock_entry *e = find(address);
    e = e ? e : make(address);
    if (!e)
        return NULL;
    if (atomic_fetch_add(&e->waiters, 1) == 0)
        atomic_store_explicit(&e->since_ns, now_ns, memory_order_release);
    return e;
}

void lock_wait_end(struct lock_entry *e)
{
    if (e)
        atomic_fetch_sub(&e->waiters, 1);
}

static void write_release(struct lock_entry *e, int64_t now, const void *caller)
{
    struct lock_release *r = &e->release;
    bool no = false;
    if (!atomic_compare_exchange_strong(&e->is_written, &no, true))
        return; /* another one releases it, too: a semaphore */
    atomic_fetch_add(&e->version, 1);
    atomic_thread_fence(memory_order_seq_cst);
    r->ns = now;
    r->tid = pre_thread()->tid;
    prctl(PR_GET_NAME, r->name);
    pre_stack_take(&r->stack, caller);
    atomic_fetch_add(&e->version, 1);
    atomic_store(&e->is_written, false);
}

/* A place may have gone to another address meanwhile: the waiter looks at the address again. */
void lock_released(uintptr_t address, const void *caller)
{
    struct lock_entry *e = find(address);
    if (!e || !atomic_load_explicit(&e->waiters, memory_order_acquire) || !pre_on(caller))
        return;
    int64_t now = stave_now_ns();
    if (now - atomic_load_explicit(&e->since_ns, memory_order_acquire) < WAIT_LEAST_NS)
        return;
    int error = errno;
    pre_self.is_quiet = PRE_AT_WORK;
    write_release(e, now, caller);
    pre_self.is_quiet = 0;
    errno = error;
}

bool lock_last_release(struct lock_entry *e, int64_t since_ns, struct lock_release *to)
{
    uint32_t version = e ? atomic_load(&e->version) : 1;
    if (version & 1)
        return false;
    memcpy(to, &e->release, sizeof *to);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load(&e->version) == version && to->ns >= since_ns && to->tid;
}

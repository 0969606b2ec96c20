/* Device clocks: pairs of readings, and the line between them.
 *
 * The newest pairs are kept; a time is put on the line between the two pairs around it, before the
 * first and after the last on the nearest one's. With one pair only the offset is known. Readers
 * take no lock: a clock's pairs have a sequence number that is odd while they change. Called by
 * everything that records; must not allocate. */
#include "gpu/impl.h"

#include <stdio.h>
#include <string.h>

enum { TIES = 16 };
#define RATE_SPAN_NS 1000000 /* pairs nearer than this say nothing about drift */

struct tie {
    _Atomic int64_t ticks, host_ns;
};

struct clock {
    char name[NAME_MAX_BYTES];
    double ns_per_tick; /* nominal */
    _Atomic uint32_t sequence;
    _Atomic uint32_t n; /* pairs ever */
    struct tie ties[TIES];
};

static struct clock clocks[CLOCKS_MAX]; /* [0]: the host's */
static _Atomic uint32_t n_clocks;

stave_gpu_clock_t stave_gpu_clock(const char *name, uint64_t ticks_per_second)
{
    sv_gpu_lock();
    uint32_t n = atomic_load_explicit(&n_clocks, memory_order_relaxed), at = 1;
    while (at <= n && strncmp(clocks[at].name, name, NAME_MAX_BYTES - 1) != 0)
        at++;
    if (at > n && at < CLOCKS_MAX) {
        snprintf(clocks[at].name, sizeof clocks[at].name, "%s", name);
        clocks[at].ns_per_tick = ticks_per_second ? 1e9 / (double)ticks_per_second : 1;
        atomic_store_explicit(&n_clocks, at, memory_order_release);
    }
    sv_gpu_unlock();
    return at < CLOCKS_MAX ? at : 0;
}

static struct clock *clock_of(stave_gpu_clock_t number)
{
    return number && number <= atomic_load_explicit(&n_clocks, memory_order_acquire)
               ? &clocks[number]
               : NULL;
}

#define TIE(F)                                   \
    F("", STAVE_I_TRACK, STAVE_PROCESS)          \
    F("", STAVE_I_START, host_ns)                \
    F("clock", STAVE_I_TEXT, (uintptr_t)c->name) \
    F("ticks", STAVE_I_INT, ticks)               \
    F("uncertainty_ns", STAVE_I_INT, uncertainty_ns)
SHAPE(tie, TIE);

static void add_tie(struct clock *c, int64_t ticks, int64_t host_ns)
{
    uint32_t n = atomic_load_explicit(&c->n, memory_order_relaxed);
    uint32_t sequence = atomic_load_explicit(&c->sequence, memory_order_relaxed);
    atomic_store_explicit(&c->sequence, sequence + 1, memory_order_relaxed);
    /* The odd number is seen before anything of the new pair: pairs with the fence in host_ns(). */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&c->ties[n % TIES].ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&c->ties[n % TIES].host_ns, host_ns, memory_order_relaxed);
    atomic_store_explicit(&c->n, n + 1, memory_order_relaxed);
    atomic_store_explicit(&c->sequence, sequence + 2, memory_order_release);
}

void stave_gpu_clock_tie(stave_gpu_clock_t clock, int64_t ticks, int64_t host_ns,
                         int64_t uncertainty_ns)
{
    static struct stave_site place = PLACE(tie, STAVE_KIND_INSTANT, "gpu_clock");
    struct clock *c = clock_of(clock);
    if (!c)
        return;
    sv_gpu_lock();
    place.name = "clock tie";
    uint32_t n = atomic_load_explicit(&c->n, memory_order_relaxed);
    /* Pairs in order only: a clock that went back starts anew. */
    if (n && ticks <= atomic_load_explicit(&c->ties[(n - 1) % TIES].ticks, memory_order_relaxed))
        atomic_store_explicit(&c->n, 0, memory_order_relaxed);
    add_tie(c, ticks, host_ns);
    sv_gpu_unlock();
    if (stave_i_on(&place))
        stave_i_emit(&place, (const uint64_t[]){TIE(F_WORD)});
}

struct pair {
    int64_t ticks, host_ns;
};

static struct pair pair_at(const struct clock *c, uint32_t i)
{
    return (struct pair){atomic_load_explicit(&c->ties[i % TIES].ticks, memory_order_relaxed),
                         atomic_load_explicit(&c->ties[i % TIES].host_ns, memory_order_relaxed)};
}

/* From the newest pair back to the one before the time, or the oldest. */
static int64_t on_line(const struct clock *c, uint32_t n, int64_t ticks)
{
    uint32_t oldest = n > TIES ? n - TIES : 0;
    struct pair newer = pair_at(c, n - 1), older = newer;
    for (uint32_t i = n - 1; i-- > oldest;) {
        older = pair_at(c, i);
        if (ticks >= newer.ticks || ticks >= older.ticks || i == oldest)
            break;
        newer = older;
    }
    double rate = c->ns_per_tick;
    int64_t span = newer.host_ns - older.host_ns;
    if (span >= RATE_SPAN_NS && newer.ticks > older.ticks) {
        double measured = (double)span / (double)(newer.ticks - older.ticks);
        if (measured > rate * 0.99 && measured < rate * 1.01) /* else a reading was wrong */
            rate = measured;
    }
    return newer.host_ns + (int64_t)((double)(ticks - newer.ticks) * rate);
}

int64_t stave_gpu_clock_ns(stave_gpu_clock_t clock, int64_t ticks)
{
    const struct clock *c = clock_of(clock);
    if (!c)
        return ticks;
    for (;;) {
        uint32_t sequence = atomic_load_explicit(&c->sequence, memory_order_acquire);
        uint32_t n = atomic_load_explicit(&c->n, memory_order_relaxed);
        int64_t ns = n ? on_line(c, n, ticks) : (int64_t)((double)ticks * c->ns_per_tick);
        atomic_thread_fence(memory_order_acquire);
        if (!(sequence & 1) && atomic_load_explicit(&c->sequence, memory_order_relaxed) == sequence)
            return ns;
    }
}

int64_t sv_gpu_ns(const struct device *d, const struct stave_gpu_at *at, int64_t ticks)
{
    return d->clock && !(at->flags & STAVE_GPU_HOST_TIME) ? stave_gpu_clock_ns(d->clock, ticks)
                                                          : ticks;
}

/* Allocations of device memory: an instant each (a slice, where the duration is known), and two
 * counters per device.
 *
 * Called by users on any thread. The table of live allocations is kept while tracing is off, too (a
 * program may be traced from its middle), under the library's lock; it holds at most LIVE_MAX of
 * them. */
#include "gpu/impl.h"

#include <stdlib.h>
#include <string.h>

#define LIVE_MAX ((size_t)1 << 24)

struct live {
    uint64_t address, bytes;
    struct device *device; /* NULL: free slot */
};
static struct live *table;
static size_t n_live, capacity;

void sv_gpu_memory_reset(void)
{
    if (table)
        memset(table, 0, capacity * sizeof *table);
    n_live = 0;
}

static size_t home(const struct device *d, uint64_t address)
{
    uint64_t h = (address >> 4 ^ (uint64_t)d->id << 40) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 20) & (capacity - 1);
}

static struct live *find(const struct device *d, uint64_t address)
{
    size_t i = home(d, address);
    while (table[i].device && (table[i].device != d || table[i].address != address))
        i = (i + 1) & (capacity - 1);
    return &table[i];
}

static bool grow(void)
{
    size_t had = capacity;
    struct live *old = table;
    if (n_live < capacity / 2)
        return true;
    if (n_live >= LIVE_MAX)
        return false;
    size_t now = capacity ? 2 * capacity : 1024;
    struct live *bigger = calloc(now, sizeof *bigger);
    if (!bigger)
        return false;
    table = bigger;
    capacity = now;
    for (size_t i = 0; i < had; i++)
        if (old[i].device)
            *find(old[i].device, old[i].address) = old[i];
    free(old);
    return true;
}

/* The slot becomes free; those after it that wanted it move up. */
static void take_out(struct live *l)
{
    size_t hole = (size_t)(l - table), mask = capacity - 1;
    for (size_t i = (hole + 1) & mask; table[i].device; i = (i + 1) & mask) {
        size_t wanted = home(table[i].device, table[i].address);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            table[hole] = table[i];
            hole = i;
        }
    }
    table[hole] = (struct live){0};
    n_live--;
}

static void count(struct device *d, int64_t bytes, int64_t n)
{
    atomic_fetch_add_explicit(&d->in_use, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&d->live, n, memory_order_relaxed);
}

static void note_alloc(struct device *d, uint64_t address, uint64_t bytes)
{
    sv_gpu_lock();
    if (address && grow()) {
        struct live *l = find(d, address);
        if (l->device) /* its free was never reported */
            count(d, -(int64_t)l->bytes, -1);
        else
            n_live++;
        *l = (struct live){address, bytes, d};
    }
    count(d, (int64_t)bytes, 1);
    sv_gpu_unlock();
}

/* Bytes of the allocation, or what was given where it is not known. */
static uint64_t note_free(struct device *d, uint64_t address, uint64_t bytes)
{
    sv_gpu_lock();
    struct live *l = table ? find(d, address) : NULL;
    if (l && l->device) {
        bytes = l->bytes;
        count(d, -(int64_t)bytes, -1);
        take_out(l);
    }
    sv_gpu_unlock();
    return bytes;
}

#define MEMORY(F)                                       \
    F("", STAVE_I_TRACK, track)                         \
    F("", STAVE_I_START, start)                         \
    F("", STAVE_I_NAME, (uintptr_t)name)                \
    F(STAVE_CORRELATION, STAVE_I_UINT, at->correlation) \
    F(STAVE_FLOW_IN, STAVE_I_UINT, flow)                \
    F("Addr", STAVE_I_UINT, a->address)                 \
    F("Bytes", STAVE_I_INT, bytes)                      \
    F("Device Id", STAVE_I_UINT, d->id)                 \
    F("Total Allocated", STAVE_I_INT, in_use)           \
    F("memory", STAVE_I_TEXT, (uintptr_t)memory)        \
    F("", STAVE_I_ARGS, (uintptr_t)rare)                \
    F("", STAVE_I_ARGS, (uintptr_t)at->more)
SHAPE(memory, MEMORY);

#define TIMED_MEMORY(F) F("", STAVE_I_DUR, sv_gpu_ns(d, at, at->end) - start) MEMORY(F)
SHAPE(timed, TIMED_MEMORY);

#define VALUE(F)                             \
    F("", STAVE_I_TRACK, d->counters[which]) \
    F("", STAVE_I_START, start)              \
    F("", STAVE_I_INT, value)
SHAPE(value, VALUE);

static void put_value(const struct device *d, enum counter which, int64_t start, int64_t value)
{
    static struct stave_site place = PLACE(value, STAVE_KIND_COUNTER, "gpu_counter");
    if (d->counters[which] && stave_i_on(&place))
        stave_i_emit(&place, (const uint64_t[]){VALUE(F_WORD)});
}

static const struct stave_args *who(struct stave_args *storage, const struct stave_args *rare,
                                    const struct stave_gpu_alloc *a)
{
    if (!rare)
        stave_args_init(storage);
    if (a->allocator)
        stave_args_text(storage, "allocator", a->allocator);
    if (a->purpose)
        stave_args_text(storage, "purpose", a->purpose);
    return storage;
}

static bool put_memory(const struct stave_gpu_alloc *a, struct device *d, const char *usual,
                       int64_t bytes, bool is_counted)
{
    static const char *const memories[] = {"device", "pageable", "pinned",
                                           "device", "array",    "managed"};
    static struct stave_site place = PLACE(memory, STAVE_KIND_INSTANT, "gpu_alloc"),
                             timed_place = PLACE(timed, STAVE_KIND_COMPLETE, "gpu_alloc");
    const struct stave_gpu_at *at = &a->at;
    bool is_timed = at->end > at->begin; /* how long the call took is known */
    if (!stave_i_on(is_timed ? &timed_place : &place))
        return false;
    stave_track_t track = at->stream ? stave_gpu_stream_track(at->stream) : d->track;
    const char *name = at->name ? at->name : usual;
    const char *memory =
        stave_enum((int64_t)a->memory, memories, sizeof memories / sizeof *memories);
    int64_t start = sv_gpu_ns(d, at, at->begin);
    int64_t in_use = atomic_load_explicit(&d->in_use, memory_order_relaxed);
    uint64_t flow = at->flags & STAVE_GPU_NO_FLOW ? 0 : sv_gpu_flow_of(d, at->correlation);
    struct stave_args storage;
    const struct stave_args *rare = sv_gpu_has_more(at) ? sv_gpu_more(&storage, at, d) : NULL;
    if (a->allocator || a->purpose)
        rare = who(&storage, rare, a);
    bool done = is_timed ? sv_gpu_emit(&timed_place, (const uint64_t[]){TIMED_MEMORY(F_WORD)}, d)
                         : sv_gpu_emit(&place, (const uint64_t[]){MEMORY(F_WORD)}, d);
    if (done && is_counted) {
        put_value(d, COUNTER_IN_USE, start, in_use);
        put_value(d, COUNTER_LIVE, start, atomic_load_explicit(&d->live, memory_order_relaxed));
    }
    return done;
}

static struct device *device_of(const struct stave_gpu_alloc *a)
{
    return a->at.stream ? sv_gpu_stream(a->at.stream)->device : sv_gpu_device(a->device);
}

static bool is_of_device(const struct stave_gpu_alloc *a)
{
    return a->memory != STAVE_GPU_PAGEABLE && a->memory != STAVE_GPU_PINNED;
}

bool stave_gpu_add_alloc(const struct stave_gpu_alloc *a)
{
    struct device *d = device_of(a);
    if (is_of_device(a))
        note_alloc(d, a->address, a->bytes);
    return put_memory(a, d, "alloc", (int64_t)a->bytes, is_of_device(a));
}

bool stave_gpu_add_free(const struct stave_gpu_alloc *a)
{
    struct device *d = device_of(a);
    uint64_t bytes = is_of_device(a) ? note_free(d, a->address, a->bytes) : a->bytes;
    return put_memory(a, d, "free", -(int64_t)bytes, is_of_device(a));
}

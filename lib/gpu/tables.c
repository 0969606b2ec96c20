/* Devices, contexts and streams by the driver's numbers: made once, found without a lock.
 *
 * Called by everything that records. Entries never move and are never freed: a number that was
 * given out stays valid, in forked children, too. Must not wait for anything but this library's own
 * lock, which only making an entry takes. */
#include "gpu/impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[DEVICES_MAX]; /* [0]: none */
static _Atomic uint32_t n_devices;
static struct stream streams[STREAMS_MAX]; /* [0]: none */
static _Atomic uint32_t n_streams;
static _Atomic uint32_t slots[2 * STREAMS_MAX]; /* hash table of streams */
static _Atomic uint64_t flow_base;              /* of this process */

struct context {
    uint32_t device;
    uint64_t id;
    char name[NAME_MAX_BYTES];
};
enum { CONTEXTS_MAX = 1024 };
static struct context contexts[CONTEXTS_MAX]; /* those with a name */
static size_t n_contexts;

void sv_gpu_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sv_gpu_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- fork: the child has the tables, arrows of its own and no memory of the device ---- */

static void in_child(void)
{
    atomic_store(&flow_base, 0);
    for (uint32_t i = 0; i < DEVICES_MAX; i++) {
        atomic_store_explicit(&devices[i].in_use, 0, memory_order_relaxed);
        atomic_store_explicit(&devices[i].live, 0, memory_order_relaxed);
    }
    sv_gpu_memory_reset();
    sv_gpu_unlock();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void watch_forks(void)
{
    pthread_atfork(sv_gpu_lock, sv_gpu_unlock, in_child);
}

/* ---- devices ---- */

/* Number 0 exists as soon as it is used: a row for work that names no stream. */
static void open_nothing(void)
{
    sv_gpu_lock();
    if (!devices[0].track) {
        devices[0].track = stave_track_as(STAVE_ROW_GPU, STAVE_PROCESS, "GPU");
        streams[0].device = &devices[0];
        atomic_store(&streams[0].track, devices[0].track);
    }
    sv_gpu_unlock();
}

struct device *sv_gpu_device(stave_gpu_device_t number)
{
    if (number == 0 || number > atomic_load_explicit(&n_devices, memory_order_acquire)) {
        open_nothing();
        return &devices[0];
    }
    return &devices[number];
}

static void put_uint(struct stave_args *a, const char *key, uint64_t v)
{
    if (v)
        stave_args_uint(a, key, v);
}

static void put_text(struct stave_args *a, const char *key, const char *v)
{
    if (v)
        stave_args_text(a, key, v);
}

/* What is known of a device, as arguments (the names of Kineto's deviceProperties where it has
 * one). */
static struct stave_args *about(uint32_t id, const struct stave_gpu_device_info *info)
{
    struct stave_args *a = malloc(sizeof *a);
    if (!a)
        return NULL;
    stave_args_init(a);
    stave_args_uint(a, "id", id);
    put_text(a, "name", info->name);
    put_text(a, "vendor", info->vendor);
    put_text(a, "uuid", info->uuid);
    put_text(a, "pci", info->pci);
    put_uint(a, "computeMajor", info->compute_major);
    put_uint(a, "computeMinor", info->compute_minor);
    put_uint(a, "totalGlobalMem", info->total_memory);
    put_uint(a, "clockRate", info->clock_khz);
    put_uint(a, "memoryClockRate", info->memory_clock_khz);
    put_uint(a, "memoryBusWidth", info->memory_bus_bits);
    put_uint(a, "numSms", info->multiprocessors);
    put_uint(a, "maxThreadsPerMultiprocessor", info->max_threads_per_multiprocessor);
    put_uint(a, "warpSize", info->warp_size);
    /* Whole items, copied after: both are lists of items at the top level. */
    if (info->more && info->more->len <= STAVE_ARGS_BYTES - a->len) {
        memcpy(a->bytes + a->len, info->more->bytes, info->more->len);
        a->len += info->more->len;
    }
    return a;
}

static void make_device(struct device *d, uint32_t id, const struct stave_gpu_device_info *info)
{
    static const struct {
        const char *name, *unit;
    } counters[COUNTERS] = {
        [COUNTER_IN_USE] = {"memory in use", "bytes"},
        [COUNTER_LIVE] = {"live allocations", "count"},
        [COUNTER_H2D] = {"copy bandwidth (H→D)", "GB/s"},
        [COUNTER_D2H] = {"copy bandwidth (D→H)", "GB/s"},
        [COUNTER_D2D] = {"copy bandwidth (D→D)", "GB/s"},
    };
    static const struct stave_gpu_device_info nothing;
    const struct stave_gpu_device_info *i = info ? info : &nothing;
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s %u%s%s", i->kind ? i->kind : "GPU", id, i->name ? " " : "",
             i->name ? i->name : "");
    d->id = id;
    d->clock = i->clock;
    d->domain = i->has_own_correlations ? (uint64_t)id + 1 : 0;
    d->about = info ? about(id, info) : NULL;
    d->track = stave_track_as(STAVE_ROW_GPU, STAVE_PROCESS, name);
    stave_set_track_order(d->track, id);
    for (unsigned c = 0; c < COUNTERS; c++)
        d->counters[c] = stave_counter(d->track, counters[c].name, counters[c].unit);
}

stave_gpu_device_t stave_gpu_device(uint32_t id, const struct stave_gpu_device_info *info)
{
    pthread_once(&once, watch_forks);
    sv_gpu_lock();
    uint32_t n = atomic_load_explicit(&n_devices, memory_order_relaxed), at = 1;
    while (at <= n && devices[at].id != id)
        at++;
    if (at > n && at < DEVICES_MAX) {
        make_device(&devices[at], id, info);
        /* Pairs with the acquire of sv_gpu_device(). */
        atomic_store_explicit(&n_devices, at, memory_order_release);
    }
    sv_gpu_unlock();
    return at < DEVICES_MAX ? at : 0;
}

stave_track_t stave_gpu_device_track(stave_gpu_device_t device)
{
    return sv_gpu_device(device)->track;
}

#define ABOUT(F)                   \
    F("", STAVE_I_TRACK, d->track) \
    F("", STAVE_I_ARGS, (uintptr_t)d->about)
SHAPE(about, ABOUT);

void sv_gpu_describe(struct device *d, uint32_t session)
{
    static struct stave_site place = PLACE(about, STAVE_KIND_INSTANT, "gpu_device");
    place.name = "device";
    atomic_store_explicit(&d->session, session, memory_order_relaxed);
    if (stave_i_on(&place))
        stave_i_emit(&place, (const uint64_t[]){ABOUT(F_WORD)});
}

/* ---- streams ---- */

static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

static uint32_t first_slot(const struct device *d, uint64_t context, uint64_t id)
{
    return (uint32_t)mix(mix(id ^ (uint64_t)d->id << 32) + context) & (2 * STREAMS_MAX - 1);
}

/* The stream, or 0 and the slot where it belongs. */
static uint32_t find(const struct device *d, uint64_t context, uint64_t id, uint32_t *slot)
{
    for (*slot = first_slot(d, context, id);; *slot = (*slot + 1) & (2 * STREAMS_MAX - 1)) {
        /* Pairs with the release of make_stream(). */
        uint32_t n = atomic_load_explicit(&slots[*slot], memory_order_acquire);
        if (n == 0 ||
            (streams[n].device == d && streams[n].context == context && streams[n].id == id))
            return n;
    }
}

static stave_track_t context_track(const struct device *d, uint64_t context)
{
    if (context == 0)
        return d->track;
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "Context %llu", (unsigned long long)context);
    for (size_t i = 0; i < n_contexts; i++)
        if (contexts[i].device == d->id && contexts[i].id == context)
            memcpy(name, contexts[i].name, sizeof name);
    return stave_track(d->track, name);
}

void stave_gpu_set_context_name(stave_gpu_device_t device, uint64_t context, const char *name)
{
    const struct device *d = sv_gpu_device(device);
    sv_gpu_lock();
    if (name && n_contexts < CONTEXTS_MAX) {
        struct context *c = &contexts[n_contexts++];
        c->device = d->id;
        c->id = context;
        snprintf(c->name, sizeof c->name, "%s", name);
    }
    sv_gpu_unlock();
}

static stave_track_t stream_track(const struct device *d, uint64_t context, uint64_t id,
                                  const char *name)
{
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof text, "Stream %llu", (unsigned long long)id);
    stave_track_t track =
        stave_track_as(STAVE_ROW_STREAM, context_track(d, context), name ? name : text);
    stave_set_track_order(track, (int64_t)id);
    return track;
}

static uint32_t make_stream(struct device *d, uint64_t context, uint64_t id, const char *name)
{
    uint32_t slot, found = find(d, context, id, &slot);
    uint32_t n = atomic_load_explicit(&n_streams, memory_order_relaxed) + 1;
    if (found || n >= STREAMS_MAX)
        return found;
    streams[n].device = d;
    streams[n].context = context;
    streams[n].id = id;
    atomic_store_explicit(&streams[n].track, stream_track(d, context, id, name),
                          memory_order_relaxed);
    atomic_store_explicit(&n_streams, n, memory_order_relaxed);
    atomic_store_explicit(&slots[slot], n, memory_order_release);
    return n;
}

stave_gpu_stream_t stave_gpu_stream(stave_gpu_device_t device, uint64_t context, uint64_t id,
                                    const char *name)
{
    struct device *d = sv_gpu_device(device);
    uint32_t slot, n = find(d, context, id, &slot);
    if (n && !name)
        return n;
    sv_gpu_lock();
    if (!n)
        n = make_stream(d, context, id, name);
    else
        atomic_store_explicit(&streams[n].track, stream_track(d, context, id, name),
                              memory_order_relaxed);
    sv_gpu_unlock();
    return n;
}

struct stream *sv_gpu_stream(stave_gpu_stream_t number)
{
    if (number == 0 || number > atomic_load_explicit(&n_streams, memory_order_acquire)) {
        open_nothing();
        return &streams[0];
    }
    return &streams[number];
}

stave_track_t stave_gpu_stream_track(stave_gpu_stream_t stream)
{
    return atomic_load_explicit(&sv_gpu_stream(stream)->track, memory_order_relaxed);
}

/* ---- arrows ---- */

/* One number of the SDK, which no other process has, spread over this process's correlation
 * numbers. */
uint64_t sv_gpu_flow_of(const struct device *d, uint64_t correlation)
{
    if (correlation == 0)
        return 0;
    uint64_t base = atomic_load_explicit(&flow_base, memory_order_relaxed);
    if (__builtin_expect(base == 0, 0)) {
        pthread_once(&once, watch_forks);
        uint64_t fresh = stave_flow_new();
        if (atomic_compare_exchange_strong(&flow_base, &base, fresh))
            base = fresh;
    }
    uint64_t flow = mix(base + mix(correlation + (d->domain << 48)));
    return flow ? flow : 1;
}

uint64_t stave_gpu_flow(stave_gpu_device_t device, uint64_t correlation)
{
    return sv_gpu_flow_of(sv_gpu_device(device), correlation);
}

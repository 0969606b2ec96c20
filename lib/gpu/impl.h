/* Inside libstave-gpu: tables of devices and streams, and how an event becomes a record of the SDK.
 *
 * An event's shape is one list of fields, F(key, type, value): its keys, its types and its words
 * cannot disagree. */
#pragma once

#include <stave/gpu.h>
#include <stdatomic.h>

enum { DEVICES_MAX = 256, STREAMS_MAX = 16384, CLOCKS_MAX = 64, NAME_MAX_BYTES = 200 };

/* ---- tables.c ---- */

enum counter { COUNTER_IN_USE, COUNTER_LIVE, COUNTER_H2D, COUNTER_D2H, COUNTER_D2D, COUNTERS };

struct device {
    stave_track_t track;
    uint32_t id;
    stave_gpu_clock_t clock;
    uint64_t domain; /* of correlation numbers */
    stave_track_t counters[COUNTERS];
    _Atomic uint32_t session;     /* the last one that got the device's description */
    struct stave_args *about;     /* NULL: nothing is known of it */
    _Atomic int64_t in_use, live; /* bytes, allocations */
};

struct stream {
    struct device *device;
    _Atomic stave_track_t track;
    uint64_t context, id;
};

/* Never NULL: number 0 and unknown numbers are a device and a stream without a name of their
 * own. */
struct device *sv_gpu_device(stave_gpu_device_t number);
struct stream *sv_gpu_stream(stave_gpu_stream_t number);
void sv_gpu_lock(void);
void sv_gpu_unlock(void);
/* Records the description of the device, once per session. */
void sv_gpu_describe(struct device *d, uint32_t session);

/* ---- clocks.c ---- */

int64_t sv_gpu_ns(const struct device *d, const struct stave_gpu_at *at, int64_t ticks);

/* ---- memory.c ---- */

void sv_gpu_memory_reset(void); /* in a forked child: the lock is held */

/* ---- more.c ---- */

/* What few events have, as arguments: NULL when there is nothing. `storage` is filled only then. */
const struct stave_args *sv_gpu_more(struct stave_args *storage, const struct stave_gpu_at *at,
                                     const struct device *d);
bool sv_gpu_has_more(const struct stave_gpu_at *at);
uint64_t sv_gpu_flow_of(const struct device *d, uint64_t correlation);

/* ---- shapes ---- */

#define F_KEY(key, type, value)  key,
#define F_TYPE(key, type, value) (type),
#define F_WORD(key, type, value) (uint64_t)(value),

/* Keys and types of the shape `id` from its list of fields, and a call site of it. */
#define SHAPE(id, FIELDS)                                     \
    static const char *const id##_keys[] = {FIELDS(F_KEY) 0}; \
    static const uint8_t id##_types[] = {FIELDS(F_TYPE)}
#define PLACE(id, kind_, cat_)                                                                \
    {                                                                                         \
        .state = STAVE_I_NEW, .kind = (kind_), .n_args = sizeof id##_types, .line = __LINE__, \
        .cat = (cat_), .file = __FILE__, .func = "", .keys = id##_keys, .types = id##_types,  \
        .dso = &stave_i_dso                                                                   \
    }

/* Fields that all work begins with; s, start, dur, name, flow_in, flow_out, at, rare are in
 * scope. */
#define WORK_HEAD(F)                                                            \
    F("", STAVE_I_TRACK, atomic_load_explicit(&s->track, memory_order_relaxed)) \
    F("", STAVE_I_START, start)                                                 \
    F("", STAVE_I_DUR, dur)                                                     \
    F("", STAVE_I_NAME, (uintptr_t)name)                                        \
    WORK_COMMON(F)
#define WORK_COMMON(F)                                  \
    F(STAVE_CORRELATION, STAVE_I_UINT, at->correlation) \
    F(STAVE_FLOW_IN, STAVE_I_UINT, flow)                \
    F("device", STAVE_I_UINT, s->device->id)            \
    F("context", STAVE_I_UINT, s->context)              \
    F("stream", STAVE_I_UINT, s->id)
#define WORK_TAIL(F)                     \
    F("", STAVE_I_ARGS, (uintptr_t)rare) \
    F("", STAVE_I_ARGS, (uintptr_t)at->more)

/* Opens the scope that the fields above need, and leaves when the place is off. */
#define WORK_BEGIN(place, at_, default_name)                                                    \
    if (!stave_i_on(&(place)))                                                                  \
        return false;                                                                           \
    const struct stave_gpu_at *at = (at_);                                                      \
    const struct stream *s = sv_gpu_stream(at->stream);                                         \
    const char *name = at->name ? at->name : (default_name);                                    \
    int64_t start = sv_gpu_ns(s->device, at, at->begin);                                        \
    int64_t dur = at->end > at->begin ? sv_gpu_ns(s->device, at, at->end) - start : 0;          \
    uint64_t flow = at->flags & STAVE_GPU_NO_FLOW ? 0                                           \
                                                  : sv_gpu_flow_of(s->device, at->correlation); \
    struct stave_args storage;                                                                  \
    const struct stave_args *rare = sv_gpu_has_more(at) ? sv_gpu_more(&storage, at, s->device)  \
                                                        : NULL;                                 \
    (void)dur

static inline bool sv_gpu_emit(struct stave_site *place, const uint64_t *words, struct device *d)
{
    uint32_t session = stave_i_emit(place, words);
    if (__builtin_expect(session != 0 && d->about &&
                             session != atomic_load_explicit(&d->session, memory_order_relaxed),
                         0))
        sv_gpu_describe(d, session);
    return session != 0;
}

/* Work on a stream: kernels, copies, fills, waits, collectives, ranges.
 *
 * Called by users on any thread. Each event is one record of the SDK; copies add two values of a
 * counter. Must not lock or allocate. */
#include "gpu/impl.h"

#include <stdio.h>

#define KERNEL(F)                                                          \
    WORK_HEAD(F)                                                           \
    F("grid", STAVE_I_ARRAY, 3)                                            \
    F("", STAVE_I_UINT, k->grid[0])                                        \
    F("", STAVE_I_UINT, k->grid[1])                                        \
    F("", STAVE_I_UINT, k->grid[2])                                        \
    F("block", STAVE_I_ARRAY, 3)                                           \
    F("", STAVE_I_UINT, k->block[0])                                       \
    F("", STAVE_I_UINT, k->block[1])                                       \
    F("", STAVE_I_UINT, k->block[2])                                       \
    F("registers per thread", STAVE_I_UINT, k->registers)                  \
    F("shared memory", STAVE_I_UINT, k->static_shared + k->dynamic_shared) \
    WORK_TAIL(F)
SHAPE(kernel, KERNEL);

/* Shared memory of both kinds, and occupancy. */
static const struct stave_args *kernel_more(struct stave_args *storage,
                                            const struct stave_args *rare,
                                            const struct stave_gpu_kernel *k)
{
    if (!rare)
        stave_args_init(storage);
    if (k->dynamic_shared) {
        stave_args_uint(storage, "static shared memory", k->static_shared);
        stave_args_uint(storage, "dynamic shared memory", k->dynamic_shared);
    }
    if (k->occupancy > 0)
        stave_args_double(storage, "est. achieved occupancy %", k->occupancy);
    return storage;
}

bool stave_gpu_add_kernel(const struct stave_gpu_kernel *k)
{
    static struct stave_site place = PLACE(kernel, STAVE_KIND_COMPLETE, "kernel");
    WORK_BEGIN(place, &k->at, "kernel");
    if (k->dynamic_shared || k->occupancy > 0)
        rare = kernel_more(&storage, rare, k);
    return sv_gpu_emit(&place, (const uint64_t[]){KERNEL(F_WORD)}, s->device);
}

/* ---- copies ---- */

static const char *const memories[] = {"Unknown", "Pageable", "Pinned",
                                       "Device",  "Array",    "Managed"};

static const char *memory_name(enum stave_gpu_memory m)
{
    return stave_enum((int64_t)m, memories, sizeof memories / sizeof *memories);
}

static const char *kind_name(enum stave_gpu_copy_kind kind)
{
    static const char *const kinds[] = {"HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "Unknown"};
    return stave_enum((int64_t)kind, kinds, sizeof kinds / sizeof *kinds);
}

/* Kineto's: "Memcpy HtoD (Pinned -> Device)". */
static const char *copy_name(char *storage, size_t size, const struct stave_gpu_copy *c)
{
    if (c->from == STAVE_GPU_MEMORY_UNKNOWN && c->to == STAVE_GPU_MEMORY_UNKNOWN)
        snprintf(storage, size, "Memcpy %s", kind_name(c->kind));
    else
        snprintf(storage, size, "Memcpy %s (%s -> %s)", kind_name(c->kind), memory_name(c->from),
                 memory_name(c->to));
    return storage;
}

#define BANDWIDTH(F)            \
    F("", STAVE_I_TRACK, track) \
    F("", STAVE_I_START, when)  \
    F("", STAVE_I_DOUBLE, stave_i_from_double(value))
SHAPE(counter, BANDWIDTH);

static bool put_counter(stave_track_t track, int64_t when, double value)
{
    static struct stave_site place = PLACE(counter, STAVE_KIND_COUNTER, "gpu_counter");
    return stave_i_on(&place) && stave_i_emit(&place, (const uint64_t[]){BANDWIDTH(F_WORD)});
}

/* Copies of one direction go one after the other: each is a step of its counter. */
static void count_copy(const struct device *d, enum stave_gpu_copy_kind kind, int64_t start,
                       int64_t dur, double gb_per_s)
{
    enum counter c = kind == STAVE_GPU_H2D   ? COUNTER_H2D
                     : kind == STAVE_GPU_D2H ? COUNTER_D2H
                                             : COUNTER_D2D;
    if (d->counters[c] == 0)
        return;
    put_counter(d->counters[c], start, gb_per_s);
    put_counter(d->counters[c], start + dur, 0);
}

#define COPY(F)                                                                 \
    WORK_HEAD(F)                                                                \
    F("copyKind", STAVE_I_TEXT, (uintptr_t)kind_name(c->kind))                  \
    F("bytes", STAVE_I_UINT, c->bytes)                                          \
    F("memory bandwidth (GB/s)", STAVE_I_DOUBLE, stave_i_from_double(gb_per_s)) \
    F("from address", STAVE_I_POINTER, c->from_address)                         \
    F("to address", STAVE_I_POINTER, c->to_address)                             \
    WORK_TAIL(F)
SHAPE(copy, COPY);

static const struct stave_args *copy_more(struct stave_args *storage, const struct stave_args *rare,
                                          const struct stave_gpu_copy *c)
{
    if (!rare)
        stave_args_init(storage);
    stave_args_uint(storage, "fromDevice", c->from_device);
    stave_args_uint(storage, "toDevice", c->to_device);
    return storage;
}

bool stave_gpu_add_copy(const struct stave_gpu_copy *c)
{
    static struct stave_site place = PLACE(copy, STAVE_KIND_COMPLETE, "gpu_memcpy");
    char text[64];
    WORK_BEGIN(place, &c->at, NULL);
    if (!name)
        name = copy_name(text, sizeof text, c);
    double gb_per_s = dur > 0 ? (double)c->bytes / (double)dur : 0;
    if (c->kind == STAVE_GPU_P2P)
        rare = copy_more(&storage, rare, c);
    bool done = sv_gpu_emit(&place, (const uint64_t[]){COPY(F_WORD)}, s->device);
    if (done && gb_per_s > 0)
        count_copy(s->device, c->kind, start, dur, gb_per_s);
    return done;
}

#define FILL(F)                                                                 \
    WORK_HEAD(F)                                                                \
    F("bytes", STAVE_I_UINT, f->bytes)                                          \
    F("memory bandwidth (GB/s)", STAVE_I_DOUBLE, stave_i_from_double(gb_per_s)) \
    F("to address", STAVE_I_POINTER, f->address)                                \
    F("value", STAVE_I_UINT, f->value)                                          \
    WORK_TAIL(F)
SHAPE(fill, FILL);

bool stave_gpu_add_set(const struct stave_gpu_set *f)
{
    static struct stave_site place = PLACE(fill, STAVE_KIND_COMPLETE, "gpu_memset");
    char text[64];
    WORK_BEGIN(place, &f->at, NULL);
    if (!name) {
        snprintf(text, sizeof text, "Memset (%s)",
                 memory_name(f->memory ? f->memory : STAVE_GPU_DEVICE_MEMORY));
        name = text;
    }
    double gb_per_s = dur > 0 ? (double)f->bytes / (double)dur : 0;
    return sv_gpu_emit(&place, (const uint64_t[]){FILL(F_WORD)}, s->device);
}

/* ---- waits ---- */

#define WAIT(F)                                        \
    WORK_HEAD(F)                                       \
    F("cuda_sync_kind", STAVE_I_TEXT, (uintptr_t)kind) \
    WORK_TAIL(F)
SHAPE(wait, WAIT);

static const struct stave_args *wait_more(struct stave_args *storage, const struct stave_args *rare,
                                          const struct stave_gpu_wait *w)
{
    if (!rare)
        stave_args_init(storage);
    stave_args_uint(storage, "wait_on_stream", w->wait_on_stream);
    stave_args_uint(storage, "wait_on_cuda_event_record_corr_id", w->wait_on_correlation);
    stave_args_uint(storage, "wait_on_cuda_event_id", w->event);
    return storage;
}

bool stave_gpu_add_wait(const struct stave_gpu_wait *w)
{
    static const char *const kinds[] = {"Stream Sync", "Context Sync", "Event Sync",
                                        "Stream Wait Event"};
    static struct stave_site place = PLACE(wait, STAVE_KIND_COMPLETE, "cuda_sync");
    const char *kind = stave_enum((int64_t)w->kind, kinds, sizeof kinds / sizeof *kinds);
    WORK_BEGIN(place, &w->at, kind);
    if (w->event || w->wait_on_stream || w->wait_on_correlation)
        rare = wait_more(&storage, rare, w);
    return sv_gpu_emit(&place, (const uint64_t[]){WAIT(F_WORD)}, s->device);
}

/* ---- collectives ---- */

#define COLLECTIVE(F)                                                       \
    WORK_HEAD(F)                                                            \
    F("Collective name", STAVE_I_TEXT, (uintptr_t)names[kind].kineto)       \
    F("dtype", STAVE_I_TEXT, (uintptr_t)(c->data_type ? c->data_type : "")) \
    F("In msg nelems", STAVE_I_UINT, c->count)                              \
    F("bytes", STAVE_I_UINT, c->bytes)                                      \
    F("Rank", STAVE_I_UINT, c->rank)                                        \
    F("Group size", STAVE_I_UINT, c->world_size)                            \
    WORK_TAIL(F)
SHAPE(collective, COLLECTIVE);

static const struct stave_args *collective_more(struct stave_args *storage,
                                                const struct stave_args *rare,
                                                const struct stave_gpu_collective *c)
{
    if (!rare)
        stave_args_init(storage);
    if (c->reduction)
        stave_args_text(storage, "reduction", c->reduction);
    if (c->group)
        stave_args_text(storage, "Process Group Name", c->group);
    if (c->kind == STAVE_GPU_SEND || c->kind == STAVE_GPU_RECV)
        stave_args_int(storage, "peer", c->peer);
    return storage;
}

bool stave_gpu_add_collective(const struct stave_gpu_collective *c)
{
    static const struct {
        const char *kernel, *kineto;
    } names[] = {
        {"ncclDevKernel_AllReduce", "allreduce"},
        {"ncclDevKernel_AllGather", "allgather"},
        {"ncclDevKernel_ReduceScatter", "reduce_scatter"},
        {"ncclDevKernel_Broadcast", "broadcast"},
        {"ncclDevKernel_Reduce", "reduce"},
        {"ncclDevKernel_AllToAll", "all_to_all"},
        {"ncclDevKernel_Send", "send"},
        {"ncclDevKernel_Recv", "recv"},
        {"ncclDevKernel", ""},
    };
    static struct stave_site place = PLACE(collective, STAVE_KIND_COMPLETE, "kernel");
    unsigned kind = (unsigned)c->kind <= STAVE_GPU_RECV ? (unsigned)c->kind : STAVE_GPU_RECV + 1;
    WORK_BEGIN(place, &c->at, names[kind].kernel);
    rare = collective_more(&storage, rare, c);
    return sv_gpu_emit(&place, (const uint64_t[]){COLLECTIVE(F_WORD)}, s->device);
}

/* ---- ranges and counters ---- */

#define RANGE(F) WORK_HEAD(F) WORK_TAIL(F)
SHAPE(range, RANGE);

bool stave_gpu_add_range(const struct stave_gpu_at *range)
{
    static struct stave_site place = PLACE(range, STAVE_KIND_COMPLETE, "gpu_user_annotation");
    WORK_BEGIN(place, range, "range");
    return sv_gpu_emit(&place, (const uint64_t[]){RANGE(F_WORD)}, s->device);
}

bool stave_gpu_add_counter(stave_gpu_device_t device, const char *name, const char *unit,
                           int64_t at, double value)
{
    const struct device *d = sv_gpu_device(device);
    const struct stave_gpu_at no_flags = {0};
    return stave_enabled("gpu_counter") &&
           put_counter(stave_counter(d->track, name, unit), sv_gpu_ns(d, &no_flags, at), value);
}

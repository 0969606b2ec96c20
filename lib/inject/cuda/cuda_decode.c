/* Activity records → work of libstave-gpu.
 *
 * Called with a full buffer, under the caller's lock, so that tables here need none. A buffer is
 * walked twice: devices, contexts, names and external ids first, because records that need them may
 * come before them. Unrecognised records are counted and reported as loss.
 *
 * The buffer was written by CUPTI, thus by another's code: fields are read through views that end
 * where the record's version or the buffer does. */
#include "inject/cuda/cuda.h"

#include <string.h>

enum { DEVICES = 64, CONTEXTS = 1024, EXTERNALS = 1 << 16, EVENTS = 4096, UNKNOWN_ID = -1 };

static struct {
    stave_gpu_device_t devices[DEVICES];
    struct {
        uint32_t id, device;
        bool is_known;
    } contexts[CONTEXTS];
    struct {
        uint32_t correlation;
        uint64_t id;
    } externals[EXTERNALS];
    struct {
        uint32_t context, id, stream, correlation;
    } events[EVENTS];
    uint64_t not_understood, without_times;
} seen;
static struct stave_args storage; /* too large for the stack of a thread of others */

static stave_gpu_device_t device_of(struct cuda_decoder *d, uint32_t id)
{
    if (id >= DEVICES)
        id = DEVICES - 1;
    if (!seen.devices[id])
        seen.devices[id] = stave_gpu_device(
            id, &(struct stave_gpu_device_info){.vendor = "NVIDIA", .clock = d->clock});
    return seen.devices[id];
}

/* Loss belongs to no device that CUPTI names: the first one that is known. */
stave_gpu_device_t cuda_any_device(struct cuda_decoder *d)
{
    for (unsigned i = 0; i < DEVICES; i++)
        if (seen.devices[i])
            return seen.devices[i];
    return device_of(d, 0);
}

static uint32_t device_of_context(uint32_t context)
{
    return seen.contexts[context % CONTEXTS].id == context
               ? seen.contexts[context % CONTEXTS].device
               : 0;
}

static int64_t host_ns(const struct cuda_decoder *d, uint64_t time)
{
    return d->clock ? stave_gpu_clock_ns(d->clock, (int64_t)time) : (int64_t)time;
}

/* ---- first walk ---- */

static void read_device(struct cuda_decoder *d, struct cuda_view v)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t id = (uint32_t)CUDA_GET(v, DEVICE, id);
    const uint8_t *uuid = cuda_field_at(v, CUDA_DEVICE_uuid);
    char text[40] = "";
    for (unsigned i = 0, n = 0; uuid && i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[n++] = '-';
        text[n++] = digits[uuid[i] >> 4];
        text[n++] = digits[uuid[i] & 15];
    }
    if (id >= DEVICES || seen.devices[id])
        return;
    stave_args_init(&storage);
    stave_args_uint(&storage, "memory bandwidth (kB/s)",
                    CUDA_GET(v, DEVICE, globalMemoryBandwidth));
    stave_args_uint(&storage, "L2 bytes", CUDA_GET(v, DEVICE, l2CacheSize));
    stave_args_uint(&storage, "copy engines", CUDA_GET(v, DEVICE, numMemcpyEngines));
    stave_args_bool(&storage, "ECC", CUDA_GET(v, DEVICE, eccEnabled) != 0);
    stave_args_bool(&storage, "MIG", CUDA_GET(v, DEVICE, isMigEnabled) != 0);
    uint32_t warp = (uint32_t)CUDA_GET(v, DEVICE, numThreadsPerWarp);
    seen.devices[id] = stave_gpu_device(
        id, &(struct stave_gpu_device_info){
                .name = cuda_text(v, CUDA_DEVICE_name),
                .vendor = "NVIDIA",
                .uuid = text,
                .compute_major = (uint32_t)CUDA_GET(v, DEVICE, computeCapabilityMajor),
                .compute_minor = (uint32_t)CUDA_GET(v, DEVICE, computeCapabilityMinor),
                .total_memory = CUDA_GET(v, DEVICE, globalMemorySize),
                .clock_khz = CUDA_GET(v, DEVICE, coreClockRate),
                .multiprocessors = (uint32_t)CUDA_GET(v, DEVICE, numMultiprocessors),
                .max_threads_per_multiprocessor =
                    (uint32_t)CUDA_GET(v, DEVICE, maxWarpsPerMultiprocessor) * warp,
                .warp_size = warp,
                .clock = d->clock,
                .more = &storage});
}

static void read_context(struct cuda_view v)
{
    uint32_t id = (uint32_t)CUDA_GET(v, CONTEXT, contextId), at = id % CONTEXTS;
    seen.contexts[at].id = id;
    seen.contexts[at].device = (uint32_t)CUDA_GET(v, CONTEXT, deviceId);
    seen.contexts[at].is_known = true;
}

static void read_external(struct cuda_view v)
{
    uint32_t correlation = (uint32_t)CUDA_GET(v, EXTERNAL, correlationId);
    seen.externals[correlation % EXTERNALS].correlation = correlation;
    seen.externals[correlation % EXTERNALS].id = CUDA_GET(v, EXTERNAL, externalId);
}

static void read_event(struct cuda_view v)
{
    uint32_t context = (uint32_t)CUDA_GET(v, EVENT, contextId),
             id = (uint32_t)CUDA_GET(v, EVENT, eventId), at = (context * 31 + id) % EVENTS;
    seen.events[at].context = context;
    seen.events[at].id = id;
    seen.events[at].stream = (uint32_t)CUDA_GET(v, EVENT, streamId);
    seen.events[at].correlation = (uint32_t)CUDA_GET(v, EVENT, correlationId);
}

/* Names of streams and contexts; threads and devices are named elsewhere. An object's id is three
 * words: context and stream are the second and third, the device is the first. */
static void read_name(struct cuda_decoder *d, struct cuda_view v)
{
    const uint8_t *id = cuda_field_at(v, CUDA_NAME_objectId);
    const char *name = cuda_text(v, CUDA_NAME_name);
    uint32_t kind = (uint32_t)CUDA_GET(v, NAME, objectKind), words[3];
    if (!id || !name)
        return;
    memcpy(words, id, sizeof words);
    if (kind == CUPTI_ACTIVITY_OBJECT_STREAM)
        stave_gpu_stream(device_of(d, words[0]), words[1], words[2], name);
    else if (kind == CUPTI_ACTIVITY_OBJECT_CONTEXT)
        stave_gpu_set_context_name(device_of(d, words[0]), words[1], name);
}

static void learn(struct cuda_decoder *d, enum cuda_record record, struct cuda_view v)
{
    switch (record) {
    case CUDA_DEVICE: read_device(d, v); break;
    case CUDA_CONTEXT: read_context(v); break;
    case CUDA_EXTERNAL: read_external(v); break;
    case CUDA_EVENT: read_event(v); break;
    case CUDA_NAME: read_name(d, v); break;
    default: break;
    }
}

/* ---- work ---- */

/* More arguments, if there are any; the storage is shared, thus one at a time. */
static struct stave_args *more_for(uint32_t correlation)
{
    stave_args_init(&storage);
    if (correlation && seen.externals[correlation % EXTERNALS].correlation == correlation)
        stave_args_uint(&storage, "External id", seen.externals[correlation % EXTERNALS].id);
    return &storage;
}

static struct stave_gpu_at place(struct cuda_decoder *d, uint64_t device, uint64_t context,
                                 uint64_t stream, uint64_t start, uint64_t end)
{
    return (struct stave_gpu_at){
        .stream = stave_gpu_stream(device_of(d, (uint32_t)device), context, stream, NULL),
        .begin = (int64_t)start,
        .end = (int64_t)end};
}

/* CUPTI writes 0 for times that it could not get. */
static bool has_times(const struct stave_gpu_at *at)
{
    if (at->begin && at->end >= at->begin)
        return true;
    seen.without_times++;
    return false;
}

#define PLACE(record)                                                       \
    place(d, CUDA_GET(v, record, deviceId), CUDA_GET(v, record, contextId), \
          CUDA_GET(v, record, streamId), CUDA_GET(v, record, start), CUDA_GET(v, record, end))

static void read_kernel(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_kernel k = {.at = PLACE(KERNEL)};
    k.at.name = cuda_kernel_name(cuda_text(v, CUDA_KERNEL_name));
    k.at.correlation = CUDA_GET(v, KERNEL, correlationId);
    k.at.queued = (int64_t)CUDA_GET(v, KERNEL, queued);
    k.at.submitted = (int64_t)CUDA_GET(v, KERNEL, submitted);
    k.at.graph = CUDA_GET(v, KERNEL, graphId);
    k.at.graph_node = CUDA_GET(v, KERNEL, graphNodeId);
    k.registers = (uint32_t)CUDA_GET(v, KERNEL, registersPerThread);
    k.static_shared = CUDA_GET(v, KERNEL, staticSharedMemory);
    k.dynamic_shared = CUDA_GET(v, KERNEL, dynamicSharedMemory);
    for (int i = 0; i < 3; i++) {
        k.grid[i] = (uint32_t)cuda_field(v, (enum cuda_field)(CUDA_KERNEL_gridX + i));
        k.block[i] = (uint32_t)cuda_field(v, (enum cuda_field)(CUDA_KERNEL_blockX + i));
    }
    struct stave_args *more = more_for((uint32_t)k.at.correlation);
    uint32_t launch = (uint32_t)CUDA_GET(v, KERNEL, launchType);
    if (launch)
        stave_args_text(more, "launch", launch == 1 ? "cooperative" : "cooperative, many devices");
    if (CUDA_GET(v, KERNEL, clusterX) > 1 || CUDA_GET(v, KERNEL, clusterY) > 1 ||
        CUDA_GET(v, KERNEL, clusterZ) > 1) {
        stave_args_list(more, "cluster");
        for (int i = 0; i < 3; i++)
            stave_args_uint(more, NULL, cuda_field(v, (enum cuda_field)(CUDA_KERNEL_clusterX + i)));
        stave_args_end(more);
    }
    if (CUDA_GET(v, KERNEL, localMemoryPerThread))
        stave_args_uint(more, "local memory per thread", CUDA_GET(v, KERNEL, localMemoryPerThread));
    if (CUDA_GET(v, KERNEL, isDeviceLaunched))
        stave_args_bool(more, "launched by the device", true);
    k.at.more = more->len ? more : NULL;
    if (has_times(&k.at))
        stave_gpu_add_kernel(&k);
}

static enum stave_gpu_memory memory_of(uint64_t kind)
{
    static const uint8_t kinds[] = {STAVE_GPU_MEMORY_UNKNOWN, STAVE_GPU_PAGEABLE, STAVE_GPU_PINNED,
                                    STAVE_GPU_DEVICE_MEMORY,  STAVE_GPU_ARRAY,    STAVE_GPU_MANAGED,
                                    STAVE_GPU_DEVICE_MEMORY,  STAVE_GPU_MANAGED};
    return kind < sizeof kinds ? (enum stave_gpu_memory)kinds[kind] : STAVE_GPU_MEMORY_UNKNOWN;
}

/* CUPTI_ACTIVITY_MEMCPY_KIND_…: an array is memory of the device. */
static enum stave_gpu_copy_kind copy_kind_of(uint64_t kind)
{
    static const uint8_t kinds[] = {STAVE_GPU_COPY_OTHER, STAVE_GPU_H2D, STAVE_GPU_D2H,
                                    STAVE_GPU_H2D,        STAVE_GPU_D2H, STAVE_GPU_D2D,
                                    STAVE_GPU_D2D,        STAVE_GPU_D2D, STAVE_GPU_D2D,
                                    STAVE_GPU_H2H,        STAVE_GPU_P2P};
    return kind < sizeof kinds ? (enum stave_gpu_copy_kind)kinds[kind] : STAVE_GPU_COPY_OTHER;
}

static void send_copy(struct stave_gpu_copy *c, uint64_t flags)
{
    struct stave_args *more = more_for((uint32_t)c->at.correlation);
    if (flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC)
        stave_args_bool(more, "async", true);
    c->at.more = more->len ? more : NULL;
    if (has_times(&c->at))
        stave_gpu_add_copy(c);
}

static void read_memcpy(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_copy c = {.at = PLACE(MEMCPY)};
    c.at.correlation = CUDA_GET(v, MEMCPY, correlationId);
    c.at.graph = CUDA_GET(v, MEMCPY, graphId);
    c.at.graph_node = CUDA_GET(v, MEMCPY, graphNodeId);
    c.kind = copy_kind_of(CUDA_GET(v, MEMCPY, copyKind));
    c.from = memory_of(CUDA_GET(v, MEMCPY, srcKind));
    c.to = memory_of(CUDA_GET(v, MEMCPY, dstKind));
    c.bytes = CUDA_GET(v, MEMCPY, bytes);
    send_copy(&c, CUDA_GET(v, MEMCPY, flags));
}

static void read_peer_copy(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_copy c = {.at = PLACE(PEERCPY), .kind = STAVE_GPU_P2P};
    c.at.correlation = CUDA_GET(v, PEERCPY, correlationId);
    c.at.graph = CUDA_GET(v, PEERCPY, graphId);
    c.at.graph_node = CUDA_GET(v, PEERCPY, graphNodeId);
    c.from = memory_of(CUDA_GET(v, PEERCPY, srcKind));
    c.to = memory_of(CUDA_GET(v, PEERCPY, dstKind));
    c.bytes = CUDA_GET(v, PEERCPY, bytes);
    c.from_device = (uint32_t)CUDA_GET(v, PEERCPY, srcDeviceId);
    c.to_device = (uint32_t)CUDA_GET(v, PEERCPY, dstDeviceId);
    send_copy(&c, CUDA_GET(v, PEERCPY, flags));
}

static void read_memset(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_set s = {.at = PLACE(MEMSET)};
    s.at.correlation = CUDA_GET(v, MEMSET, correlationId);
    s.at.graph = CUDA_GET(v, MEMSET, graphId);
    s.at.graph_node = CUDA_GET(v, MEMSET, graphNodeId);
    s.memory = memory_of(CUDA_GET(v, MEMSET, memoryKind));
    s.bytes = CUDA_GET(v, MEMSET, bytes);
    s.value = (uint32_t)CUDA_GET(v, MEMSET, value);
    struct stave_args *more = more_for((uint32_t)s.at.correlation);
    s.at.more = more->len ? more : NULL;
    if (has_times(&s.at))
        stave_gpu_add_set(&s);
}

static void read_sync(struct cuda_decoder *d, struct cuda_view v)
{
    static const uint8_t kinds[] = {STAVE_GPU_DEVICE_SYNC, STAVE_GPU_EVENT_SYNC,
                                    STAVE_GPU_STREAM_WAIT, STAVE_GPU_STREAM_SYNC,
                                    STAVE_GPU_DEVICE_SYNC};
    uint64_t type = CUDA_GET(v, SYNC, type);
    uint32_t context = (uint32_t)CUDA_GET(v, SYNC, contextId),
             stream = (uint32_t)CUDA_GET(v, SYNC, streamId),
             event = (uint32_t)CUDA_GET(v, SYNC, cudaEventId);
    bool has_stream = stream != (uint32_t)UNKNOWN_ID; /* a wait for the whole context has none */
    struct stave_gpu_wait w = {.at = place(d, device_of_context(context), context,
                                           has_stream ? stream : 0, CUDA_GET(v, SYNC, start),
                                           CUDA_GET(v, SYNC, end)),
                               .kind = type < sizeof kinds ? (enum stave_gpu_wait_kind)kinds[type]
                                                           : STAVE_GPU_DEVICE_SYNC};
    w.at.correlation = CUDA_GET(v, SYNC, correlationId);
    if (event != (uint32_t)UNKNOWN_ID && event) {
        uint32_t at = (context * 31 + event) % EVENTS;
        w.event = event;
        if (seen.events[at].id == event && seen.events[at].context == context) {
            w.wait_on_stream = seen.events[at].stream;
            w.wait_on_correlation = seen.events[at].correlation;
        }
    }
    if (has_times(&w.at))
        stave_gpu_add_wait(&w);
}

static void read_graph(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_at at = PLACE(GRAPH);
    at.name = "CUDA graph";
    at.correlation = CUDA_GET(v, GRAPH, correlationId);
    at.graph = CUDA_GET(v, GRAPH, graphId);
    if (has_times(&at))
        stave_gpu_add_range(&at);
}

/* Pages that the driver moved are copies; faults and the like are points on the device. */
static void read_unified(struct cuda_decoder *d, struct cuda_view v)
{
    static const char *const points[] = {
        NULL,        NULL,         NULL,        "CPU page faults", "GPU page faults",
        "Thrashing", "Throttling", "Remote map"};
    uint64_t kind = CUDA_GET(v, UNIFIED, counterKind);
    bool is_inward = kind == 1 || kind == 8;
    uint64_t device = cuda_field(v, is_inward ? CUDA_UNIFIED_dstId : CUDA_UNIFIED_srcId);
    struct stave_gpu_copy c = {.at = place(d, device, 0, CUDA_GET(v, UNIFIED, streamId),
                                           CUDA_GET(v, UNIFIED, start), CUDA_GET(v, UNIFIED, end)),
                               .from = STAVE_GPU_MANAGED,
                               .to = STAVE_GPU_MANAGED,
                               .bytes = CUDA_GET(v, UNIFIED, value),
                               .from_address = CUDA_GET(v, UNIFIED, address)};
    if (kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD)
        c.kind = STAVE_GPU_H2D;
    else if (kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH)
        c.kind = STAVE_GPU_D2H;
    else
        c.kind = STAVE_GPU_D2D;
    bool is_copy = kind == 1 || kind == 2 || kind == 8;
    if (is_copy && has_times(&c.at)) {
        stave_gpu_add_copy(&c);
    } else if (!is_copy && kind < sizeof points / sizeof *points && points[kind]) {
        stave_args_init(&storage);
        stave_args_uint(&storage, "value", c.bytes);
        stave_args_pointer(&storage, "address", (const void *)(uintptr_t)c.from_address);
        c.at.name = points[kind];
        c.at.more = &storage;
        stave_gpu_add_point(STAVE_GPU_CUSTOM, &c.at, 0);
    }
}

/* ---- memory ---- */

static void read_memory2(struct cuda_decoder *d, struct cuda_view v)
{
    uint32_t device = (uint32_t)CUDA_GET(v, MEMORY2, deviceId);
    struct stave_gpu_alloc a = {.device = device_of(d, device),
                                .memory = memory_of(CUDA_GET(v, MEMORY2, memoryKind)),
                                .address = CUDA_GET(v, MEMORY2, address),
                                .bytes = CUDA_GET(v, MEMORY2, bytes)};
    a.at.begin = a.at.end = (int64_t)CUDA_GET(v, MEMORY2, timestamp);
    a.at.correlation = CUDA_GET(v, MEMORY2, correlationId);
    struct stave_args *more = more_for((uint32_t)a.at.correlation);
    const char *variable = cuda_text(v, CUDA_MEMORY2_name),
               *source = cuda_text(v, CUDA_MEMORY2_source);
    if (variable)
        stave_args_text(more, "variable", variable);
    if (source)
        stave_args_text(more, "source", source);
    if (CUDA_GET(v, MEMORY2, isAsync))
        stave_args_bool(more, "async", true);
    a.at.more = more->len ? more : NULL;
    if (!has_times(&a.at))
        return;
    if (CUDA_GET(v, MEMORY2, memoryOperationType) == 1)
        stave_gpu_add_alloc(&a);
    else
        stave_gpu_add_free(&a);
}

/* Of CUPTI before 11.2: one record for both ends of an allocation's life; 0: not yet freed. */
static void read_memory(struct cuda_decoder *d, struct cuda_view v)
{
    struct stave_gpu_alloc a = {.device = device_of(d, (uint32_t)CUDA_GET(v, MEMORY, deviceId)),
                                .memory = memory_of(CUDA_GET(v, MEMORY, memoryKind)),
                                .address = CUDA_GET(v, MEMORY, address),
                                .bytes = CUDA_GET(v, MEMORY, bytes)};
    a.at.begin = a.at.end = (int64_t)CUDA_GET(v, MEMORY, start);
    if (!has_times(&a.at))
        return;
    stave_gpu_add_alloc(&a);
    a.at.begin = a.at.end = (int64_t)CUDA_GET(v, MEMORY, end);
    if (a.at.begin)
        stave_gpu_add_free(&a);
}

static void read_pool(struct cuda_decoder *d, struct cuda_view v)
{
    static const char *const names[] = {"memory pool", "memory pool created",
                                        "memory pool destroyed", "memory pool trimmed"};
    uint64_t operation = CUDA_GET(v, POOL, memoryPoolOperationType);
    struct stave_gpu_at at = place(d, CUDA_GET(v, POOL, deviceId), 0, 0,
                                   CUDA_GET(v, POOL, timestamp), CUDA_GET(v, POOL, timestamp));
    at.name = names[operation < 4 ? operation : 0];
    at.correlation = CUDA_GET(v, POOL, correlationId);
    at.flags = STAVE_GPU_NO_FLOW;
    stave_args_init(&storage);
    stave_args_pointer(&storage, "pool", (const void *)(uintptr_t)CUDA_GET(v, POOL, address));
    stave_args_uint(&storage, "size", CUDA_GET(v, POOL, size));
    stave_args_uint(&storage, "in use", CUDA_GET(v, POOL, utilizedSize));
    stave_args_uint(&storage, "release threshold", CUDA_GET(v, POOL, releaseThreshold));
    stave_args_uint(&storage, "bytes to keep", CUDA_GET(v, POOL, minBytesToKeep));
    at.more = &storage;
    if (has_times(&at))
        stave_gpu_add_point(STAVE_GPU_CUSTOM, &at, 0);
}

/* ---- the host's side ---- */

static void read_call(struct cuda_decoder *d, struct cuda_view v, bool is_driver)
{
    uint32_t id = (uint32_t)CUDA_GET(v, API, cbid),
             correlation = (uint32_t)CUDA_GET(v, API, correlationId);
    struct stave_args *more = more_for(correlation);
    int64_t result = (int32_t)CUDA_GET(v, API, returnValue);
    stave_args_uint(more, "cbid", id);
    if (result)
        stave_args_int(more, "error", result);
    uint64_t start = CUDA_GET(v, API, start), end = CUDA_GET(v, API, end);
    if (!start || end < start) {
        seen.without_times++;
        return;
    }
    CUpti_CallbackDomain domain = is_driver ? CUPTI_CB_DOMAIN_DRIVER_API
                                            : CUPTI_CB_DOMAIN_RUNTIME_API;
    stave_gpu_add_call(
        &(struct stave_gpu_call){.api = is_driver ? STAVE_GPU_CUDA_DRIVER : STAVE_GPU_CUDA_RUNTIME,
                                 .name = cuda_call_name(d->cupti, domain, id),
                                 .tid = (int64_t)CUDA_GET(v, API, threadId),
                                 .begin_ns = host_ns(d, start),
                                 .end_ns = host_ns(d, end),
                                 .correlation = correlation,
                                 .more = more});
}

static void read_overhead(struct cuda_decoder *d, struct cuda_view v)
{
    static const char *const kinds[] = {"Overhead",
                                        "Buffer Flush",
                                        "Instrumentation",
                                        "Resource",
                                        "Runtime Triggered Module Loading",
                                        "Lazy Function Loading",
                                        "Command Buffer Full",
                                        "Activity Buffer Request",
                                        "Unified Memory Set-up"};
    uint64_t kind = CUDA_GET(v, OVERHEAD, overheadKind), start = CUDA_GET(v, OVERHEAD, start),
             end = CUDA_GET(v, OVERHEAD, end), row = kind >> 16;
    const char *name = kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER ? "Driver Compiler"
                                                                       : kinds[row < 9 ? row : 0];
    if (!start || end < start) {
        seen.without_times++;
        return;
    }
    static stave_track_t track;
    if (!track)
        track = stave_track(STAVE_PROCESS, "CUPTI overhead");
    int64_t begin = host_ns(d, start);
    stave_args_init(&storage);
    if (CUDA_GET(v, OVERHEAD, correlationId))
        stave_args_uint(&storage, "correlation", CUDA_GET(v, OVERHEAD, correlationId));
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_COMPLETE,
                                     .track = track,
                                     .category = "overhead",
                                     .name = name,
                                     .args = &storage,
                                     .start_ns = begin,
                                     .dur_ns = host_ns(d, end) - begin});
}

/* ---- what the machine is made of ---- */

static void read_stream(struct cuda_decoder *d, struct cuda_view v)
{
    uint32_t context = (uint32_t)CUDA_GET(v, STREAM, contextId);
    stave_gpu_stream(device_of(d, device_of_context(context)), context,
                     CUDA_GET(v, STREAM, streamId), NULL);
}

static void read_links(enum cuda_record record, struct cuda_view v)
{
    if (record == CUDA_NVLINK)
        STAVE_INSTANT("gpu_device", "NVLink", "version", CUDA_GET(v, NVLINK, nvlinkVersion),
                      "links", CUDA_GET(v, NVLINK, physicalNvLinkCount), "bandwidth (kB/s)",
                      CUDA_GET(v, NVLINK, bandwidth));
    else if (CUDA_GET(v, PCIE, type) == 0)
        STAVE_INSTANT("gpu_device", "PCIe", "device", CUDA_GET(v, PCIE, id), "generation",
                      CUDA_GET(v, PCIE, pcieGeneration), "rate (GT/s)", CUDA_GET(v, PCIE, linkRate),
                      "width", CUDA_GET(v, PCIE, linkWidth));
}

static void read_event_record(struct cuda_decoder *d, struct cuda_view v)
{
    uint64_t time = CUDA_GET(v, EVENT, deviceTimestamp);
    if (!time)
        return; /* before 12.8 it has none: only waits use it */
    struct stave_gpu_at at = place(d, CUDA_GET(v, EVENT, deviceId), CUDA_GET(v, EVENT, contextId),
                                   CUDA_GET(v, EVENT, streamId), time, time);
    at.correlation = CUDA_GET(v, EVENT, correlationId);
    stave_gpu_add_point(STAVE_GPU_EVENT_RECORD, &at, CUDA_GET(v, EVENT, eventId));
}

static void add_record(struct cuda_decoder *d, uint32_t kind, enum cuda_record record,
                       struct cuda_view v)
{
    switch (record) {
    case CUDA_KERNEL: read_kernel(d, v); break;
    case CUDA_MEMCPY: read_memcpy(d, v); break;
    case CUDA_PEERCPY: read_peer_copy(d, v); break;
    case CUDA_MEMSET: read_memset(d, v); break;
    case CUDA_MEMORY: read_memory(d, v); break;
    case CUDA_MEMORY2: read_memory2(d, v); break;
    case CUDA_POOL: read_pool(d, v); break;
    case CUDA_SYNC: read_sync(d, v); break;
    case CUDA_OVERHEAD: read_overhead(d, v); break;
    case CUDA_UNIFIED: read_unified(d, v); break;
    case CUDA_GRAPH: read_graph(d, v); break;
    case CUDA_EVENT: read_event_record(d, v); break;
    case CUDA_API: read_call(d, v, kind == CUPTI_ACTIVITY_KIND_DRIVER); break;
    case CUDA_STREAM: read_stream(d, v); break;
    case CUDA_NVLINK:
    case CUDA_PCIE: read_links(record, v); break;
    case CUDA_OTHER: seen.not_understood++; break;
    default: break; /* learnt in the first walk */
    }
}

void cuda_decode(struct cuda_decoder *d, uint8_t *buffer, size_t size)
{
    for (int walk = 0; walk < 2; walk++) {
        CUpti_Activity *a = NULL;
        while (d->cupti->next_record(buffer, size, &a) == CUPTI_SUCCESS) {
            size_t at = (size_t)((uint8_t *)a - buffer);
            uint32_t kind;
            if (at >= size || size - at < sizeof kind)
                break;
            memcpy(&kind, a, sizeof kind);
            enum cuda_record record = cuda_record_of(kind);
            struct cuda_view v = cuda_view_of(record, a, size - at, d->cupti->api);
            if (walk == 0)
                learn(d, record, v);
            else
                add_record(d, kind, record, v);
        }
    }
    if (seen.without_times)
        stave_gpu_lost(cuda_any_device(d), seen.without_times, "records without times");
    if (seen.not_understood)
        stave_gpu_lost(cuda_any_device(d), seen.not_understood, "records of unknown kind");
    seen.without_times = seen.not_understood = 0;
}

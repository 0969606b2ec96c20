/*
 * Stave: work of GPUs and other accelerators. Link with -lstave-gpu (pkg-config stave-gpu).
 *
 *     stave_gpu_device_t gpu = stave_gpu_device(0, &(struct stave_gpu_device_info){.name = "A100"});
 *     stave_gpu_stream_t stream = stave_gpu_stream(gpu, 1, 7, NULL);
 *     stave_gpu_call_begin(STAVE_GPU_CUDA_RUNTIME, "cudaLaunchKernel", gpu, 42);
 *     stave_gpu_call_end();
 *     stave_gpu_add_kernel(&(struct stave_gpu_kernel){
 *         .at = {.stream = stream, .name = "gemm", .begin = t0, .end = t1, .correlation = 42}, .grid = {256, 1, 1}});
 *
 * For whoever learns what a device did: a profiler's callback, a driver's log, a simulator. Everything may be called from any
 * thread, costs a few events of stave.h, and returns at once while tracing is off: a call of a function and a branch. Members left 0 are unknown
 * or none. Functions that return bool: false when nothing was recorded.
 */
#ifndef STAVE_GPU_H
#define STAVE_GPU_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- clocks: where the times of a device come from ---- */

typedef uint32_t stave_gpu_clock_t; /* 0: CLOCK_MONOTONIC in ns, as of stave_now_ns() */

/* Made at the first call, the same number ever after. `ticks_per_second` 0: ns. */
STAVE_API stave_gpu_clock_t stave_gpu_clock(const char *name, uint64_t ticks_per_second);
/* At `ticks` of the clock it was host_ns, give or take uncertainty_ns (half the time between two readings of the host's clock with the
 * device's between them). Several of them give the drift. Each is an instant `clock tie` in the trace. */
STAVE_API void stave_gpu_clock_tie(stave_gpu_clock_t clock, int64_t ticks, int64_t host_ns,
                                   int64_t uncertainty_ns);
STAVE_API int64_t stave_gpu_clock_ns(stave_gpu_clock_t clock, int64_t ticks); /* → stave_now_ns() */

/* ---- devices, contexts, streams: rows `GPU 0 NAME` → `Context 1` → `Stream 7` of this process ---- */

typedef uint32_t stave_gpu_device_t; /* small numbers, 0: none */
typedef uint32_t stave_gpu_stream_t;

struct stave_gpu_device_info {
    const char *name, *vendor;
    const char *kind; /* "GPU"; "CPU", "NPU" … begins the row's name */
    const char *uuid, *pci;
    uint32_t compute_major, compute_minor;
    uint64_t total_memory; /* bytes */
    uint64_t clock_khz, memory_clock_khz;
    uint32_t memory_bus_bits, multiprocessors, max_threads_per_multiprocessor, warp_size;
    stave_gpu_clock_t clock;       /* of `begin` and `end` of its work */
    bool has_own_correlations;     /* other devices use the same numbers for other work */
    const struct stave_args *more; /* read during the call */
};

/* `id` is the driver's number. Made at the first call; later ones find it and ignore `info`, which may be NULL. */
STAVE_API stave_gpu_device_t stave_gpu_device(uint32_t id,
                                              const struct stave_gpu_device_info *info);
/* The driver's numbers; context 0: no row for it. `name` NULL: "Stream N"; a name given after the first event makes a new row. */
STAVE_API stave_gpu_stream_t stave_gpu_stream(stave_gpu_device_t device, uint64_t context,
                                              uint64_t id, const char *name);
STAVE_API void stave_gpu_context_name(stave_gpu_device_t device, uint64_t context,
                                      const char *name); /* before its first stream */
STAVE_API stave_track_t stave_gpu_device_track(stave_gpu_device_t device);
STAVE_API stave_track_t stave_gpu_stream_track(stave_gpu_stream_t stream);

/* ---- host calls: on the thread that makes them, or afterwards ---- */

enum stave_gpu_api {
    STAVE_GPU_CUDA_RUNTIME, /* the category: cuda_runtime, cuda_driver, hip_runtime, opencl_runtime … */
    STAVE_GPU_CUDA_DRIVER,
    STAVE_GPU_HIP,
    STAVE_GPU_OPENCL,
    STAVE_GPU_LEVEL_ZERO,
    STAVE_GPU_OTHER
};

/* A slice of the calling thread with an arrow to the work that has the same correlation number; 0: none. The device may be 0
 * unless it has_own_correlations. Begin and end come in pairs, on one thread. */
STAVE_API void stave_gpu_call_begin(enum stave_gpu_api api, const char *name,
                                    stave_gpu_device_t device, uint64_t correlation);
STAVE_API void stave_gpu_call_begin_with(enum stave_gpu_api api, const char *name,
                                         stave_gpu_device_t device, uint64_t correlation,
                                         const struct stave_args *more);
STAVE_API void stave_gpu_call_end(void);
STAVE_API void stave_gpu_call_end_with(const struct stave_args *more);

/* Measured elsewhere (CLOCK_MONOTONIC), of thread `tid` (0: the calling one): on the row `GPU calls` below that thread. */
struct stave_gpu_call {
    enum stave_gpu_api api;
    const char *name;
    int64_t tid;
    int64_t begin_ns, end_ns;
    stave_gpu_device_t device;
    uint64_t correlation;
    const struct stave_args *more;
};
STAVE_API bool stave_gpu_add_call(const struct stave_gpu_call *call);
/* The arrow's number, for a slice of your own: STAVE_SCOPE("op", "add", STAVE_FLOW_OUT, stave_gpu_flow(gpu, 42)) */
STAVE_API uint64_t stave_gpu_flow(stave_gpu_device_t device, uint64_t correlation);

/* ---- work on a stream ---- */

enum stave_gpu_flag {
    STAVE_GPU_HOST_TIME = 1, /* begin and end are CLOCK_MONOTONIC, whatever the device's clock */
    STAVE_GPU_NO_FLOW =
        2 /* no arrow; else one goes through all that has this correlation number, in order of time */
};

/* What all work has. */
struct stave_gpu_at {
    stave_gpu_stream_t stream;
    uint32_t flags; /* enum stave_gpu_flag */
    const char *name;
    int64_t begin, end; /* on the device's clock */
    uint64_t correlation;
    int64_t queued, submitted; /* when the host handed it over, and the driver did; same clock */
    uint64_t graph, graph_node;
    int64_t thread;           /* tid that asked for it */
    const char *const *stack; /* innermost first */
    size_t n_stack;
    const struct stave_args *more; /* anything else */
};

struct stave_gpu_kernel {
    struct stave_gpu_at at;
    uint32_t grid[3], block[3];
    uint32_t registers;                     /* per thread */
    uint64_t static_shared, dynamic_shared; /* bytes */
    double occupancy;                       /* estimated, in percent */
};
STAVE_API bool stave_gpu_add_kernel(const struct stave_gpu_kernel *k);

enum stave_gpu_copy_kind {
    STAVE_GPU_H2D,
    STAVE_GPU_D2H,
    STAVE_GPU_D2D,
    STAVE_GPU_P2P,
    STAVE_GPU_H2H,
    STAVE_GPU_COPY_OTHER
};
enum stave_gpu_memory {
    STAVE_GPU_MEMORY_UNKNOWN,
    STAVE_GPU_PAGEABLE,
    STAVE_GPU_PINNED,
    STAVE_GPU_DEVICE_MEMORY,
    STAVE_GPU_ARRAY,
    STAVE_GPU_MANAGED
};
struct stave_gpu_copy {
    struct stave_gpu_at at; /* name NULL: "Memcpy HtoD (Pinned -> Device)" and the like */
    enum stave_gpu_copy_kind kind;
    enum stave_gpu_memory from, to;
    uint64_t bytes, from_address, to_address;
    uint32_t from_device, to_device; /* P2P */
};
STAVE_API bool stave_gpu_add_copy(const struct stave_gpu_copy *c);

struct stave_gpu_set {
    struct stave_gpu_at at; /* name NULL: "Memset (Device)" */
    enum stave_gpu_memory memory;
    uint64_t bytes, address;
    uint32_t value;
};
STAVE_API bool stave_gpu_add_set(const struct stave_gpu_set *s);

enum stave_gpu_wait_kind {
    STAVE_GPU_STREAM_SYNC,
    STAVE_GPU_DEVICE_SYNC,
    STAVE_GPU_EVENT_SYNC,
    STAVE_GPU_STREAM_WAIT /* a stream waits for an event of another one */
};
struct stave_gpu_wait {
    struct stave_gpu_at at;
    enum stave_gpu_wait_kind kind;
    uint64_t event;                               /* number of the event that is waited for */
    uint64_t wait_on_stream, wait_on_correlation; /* of the record of that event */
};
STAVE_API bool stave_gpu_add_wait(const struct stave_gpu_wait *w);

enum stave_gpu_collective_kind {
    STAVE_GPU_ALL_REDUCE,
    STAVE_GPU_ALL_GATHER,
    STAVE_GPU_REDUCE_SCATTER,
    STAVE_GPU_BROADCAST,
    STAVE_GPU_REDUCE,
    STAVE_GPU_ALL_TO_ALL,
    STAVE_GPU_SEND,
    STAVE_GPU_RECV
};
struct stave_gpu_collective {
    struct stave_gpu_at at; /* name NULL: "ncclDevKernel_AllReduce" and the like */
    enum stave_gpu_collective_kind kind;
    const char *reduction, *data_type; /* "Sum"; "Float16" */
    const char *group;                 /* process group or communicator */
    uint32_t rank, world_size;
    uint64_t count, bytes;
    int32_t peer; /* of SEND and RECV */
};
STAVE_API bool stave_gpu_add_collective(const struct stave_gpu_collective *c);

/* A range that the program named (NVTX on a stream, a debug group): category gpu_user_annotation. */
STAVE_API bool stave_gpu_add_range(const struct stave_gpu_at *range);

/* Instants at at->begin. */
enum stave_gpu_point {
    STAVE_GPU_MARK,
    STAVE_GPU_KERNEL_COMPLETE,
    STAVE_GPU_EVENT_RECORD,
    STAVE_GPU_STREAM_CREATE,
    STAVE_GPU_STREAM_DESTROY,
    STAVE_GPU_CONTEXT_CREATE,
    STAVE_GPU_CONTEXT_DESTROY,
    STAVE_GPU_CUSTOM
};
STAVE_API bool stave_gpu_add_point(enum stave_gpu_point kind, const struct stave_gpu_at *at,
                                   uint64_t event); /* its number, for EVENT_RECORD */

/* ---- memory: the counters `memory in use` and `live allocations` of the device follow ---- */

struct stave_gpu_alloc {
    /* stream 0: `device` says where; name NULL: "alloc" or "free"; `end` may be 0 */
    struct stave_gpu_at at;
    stave_gpu_device_t device;
    enum stave_gpu_memory memory; /* pageable and pinned memory is not the device's */
    uint64_t address, bytes;      /* free: 0 bytes means what the allocation had */
    const char *allocator;
    const char *purpose; /* "activation", "gradient", "parameter", "temporary", "cached" */
};
STAVE_API bool stave_gpu_add_alloc(const struct stave_gpu_alloc *a);
STAVE_API bool stave_gpu_add_free(const struct stave_gpu_alloc *a);

/* ---- counters and loss ---- */

/* A counter of the device; `at` on its clock. */
STAVE_API bool stave_gpu_add_counter(stave_gpu_device_t device, const char *name, const char *unit,
                                     int64_t at, double value);
/* The profiler below us lost so many records. */
STAVE_API bool stave_gpu_lost(stave_gpu_device_t device, uint64_t count, const char *cause);

#ifdef __cplusplus
}
#endif

#endif

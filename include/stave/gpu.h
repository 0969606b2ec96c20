/*
 * Stave: work of GPUs and other accelerators. Link with -lstave-gpu (pkg-config stave-gpu).
 *
 *     stave_gpu_device_t gpu = stave_gpu_device(0, &(struct stave_gpu_device_info){.name =
 *     "A100"});
 *     stave_gpu_stream_t stream = stave_gpu_stream(gpu, 1, 7, NULL);
 *     stave_gpu_call_begin(STAVE_GPU_CUDA_RUNTIME, "cudaLaunchKernel", gpu, 42);
 *     stave_gpu_call_end();
 *     stave_gpu_add_kernel(&(struct stave_gpu_kernel){
 *         .at = {.stream = stream, .name = "gemm", .begin = t0, .end = t1, .correlation = 42},
 *         .grid = {256, 1, 1}});
 *
 * For code that learns what a device did: a profiler's callback, the reader of a driver's log, a
 * simulator. All functions may be called from any thread. Each costs a few events of stave.h, or a
 * function call and a branch while tracing is off. A member left 0 means unknown or none. Functions
 * that return bool return false when nothing was recorded.
 */
#ifndef STAVE_GPU_H
#define STAVE_GPU_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- clocks: where the times of a device come from ---- */

typedef uint32_t stave_gpu_clock_t; /* 0: CLOCK_MONOTONIC in ns, as of stave_now_ns() */

/* The first call with a name makes the clock, later ones return the same number.
 * `ticks_per_second` 0: nanoseconds. */
STAVE_API stave_gpu_clock_t stave_gpu_clock(const char *name, uint64_t ticks_per_second);
/* Relates the clocks: `ticks` of this clock were host_ns, with an error of at most
 * uncertainty_ns (half the time between two readings of the host's clock around that of the
 * device). Several ties give the drift. Each is an instant `clock tie` in the trace. */
STAVE_API void stave_gpu_clock_tie(stave_gpu_clock_t clock, int64_t ticks, int64_t host_ns,
                                   int64_t uncertainty_ns);
/* Converts ticks to the time of stave_now_ns(). */
STAVE_API int64_t stave_gpu_clock_ns(stave_gpu_clock_t clock, int64_t ticks);

/* ---- devices, contexts, streams: rows `GPU 0 NAME` → `Context 1` → `Stream 7` of this process
 * ---- */

typedef uint32_t stave_gpu_device_t; /* small numbers, 0: none */
typedef uint32_t stave_gpu_stream_t;

struct stave_gpu_device_info {
    const char *name, *vendor;
    const char *kind; /* start of the row's name: "GPU" (the default), "CPU", "NPU" … */
    const char *uuid, *pci;
    uint32_t compute_major, compute_minor;
    uint64_t total_memory; /* bytes */
    uint64_t clock_khz, memory_clock_khz;
    uint32_t memory_bus_bits, multiprocessors, max_threads_per_multiprocessor, warp_size;
    stave_gpu_clock_t clock; /* of `begin` and `end` of its work */
    /* Its correlation numbers are its own: other devices use the same numbers for other work. */
    bool has_own_correlations;
    const struct stave_args *more; /* further arguments, read during the call */
};

/* `id` is the driver's number. The first call makes the device; later ones return it and ignore
 * `info`, which may be NULL. */
STAVE_API stave_gpu_device_t stave_gpu_device(uint32_t id,
                                              const struct stave_gpu_device_info *info);
/* `context` and `id` are the driver's numbers. Context 0 gets no row. `name` NULL means "Stream
 * N"; a name given after the first event makes a new row. */
STAVE_API stave_gpu_stream_t stave_gpu_stream(stave_gpu_device_t device, uint64_t context,
                                              uint64_t id, const char *name);
/* Must come before the first stream of the context. */
STAVE_API void stave_gpu_set_context_name(stave_gpu_device_t device, uint64_t context,
                                          const char *name);
STAVE_API stave_track_t stave_gpu_device_track(stave_gpu_device_t device);
STAVE_API stave_track_t stave_gpu_stream_track(stave_gpu_stream_t stream);

/* ---- host calls: recorded by the thread that makes them, or afterwards ---- */

/* Selects the category: cuda_runtime, cuda_driver, hip_runtime, opencl_runtime … */
enum stave_gpu_api {
    STAVE_GPU_CUDA_RUNTIME,
    STAVE_GPU_CUDA_DRIVER,
    STAVE_GPU_HIP,
    STAVE_GPU_OPENCL,
    STAVE_GPU_LEVEL_ZERO,
    STAVE_GPU_OTHER
};

/* A slice of the calling thread with a flow to the work that has the same correlation number (0:
 * no flow). The device may be 0 unless it has_own_correlations. Begin and end come in pairs, on
 * one thread. */
STAVE_API void stave_gpu_call_begin(enum stave_gpu_api api, const char *name,
                                    stave_gpu_device_t device, uint64_t correlation);
STAVE_API void stave_gpu_call_begin_with(enum stave_gpu_api api, const char *name,
                                         stave_gpu_device_t device, uint64_t correlation,
                                         const struct stave_args *more);
STAVE_API void stave_gpu_call_end(void);
STAVE_API void stave_gpu_call_end_with(const struct stave_args *more);

/* A call that was measured elsewhere (CLOCK_MONOTONIC), made by thread `tid` (0: the calling
 * one). It goes to the row `GPU calls` below that thread. */
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
/* The number of the flow, for a slice of your own: STAVE_SCOPE("op", "add", STAVE_FLOW_OUT,
 * stave_gpu_flow(gpu, 42)) */
STAVE_API uint64_t stave_gpu_flow(stave_gpu_device_t device, uint64_t correlation);

/* ---- work on a stream ---- */

enum stave_gpu_flag {
    /* Begin and end are CLOCK_MONOTONIC, whatever the device's clock is. */
    STAVE_GPU_HOST_TIME = 1,
    /* No flow. Without this flag a flow connects all events with this correlation number in time
     * order. */
    STAVE_GPU_NO_FLOW = 2
};

/* What all kinds of work have in common. */
struct stave_gpu_at {
    stave_gpu_stream_t stream;
    uint32_t flags; /* enum stave_gpu_flag */
    const char *name;
    int64_t begin, end; /* on the device's clock */
    uint64_t correlation;
    /* When the program queued it and when the driver submitted it, on the same clock. */
    int64_t queued, submitted;
    uint64_t graph, graph_node;
    int64_t thread;           /* tid that requested it */
    const char *const *stack; /* call stack, innermost first */
    size_t n_stack;
    const struct stave_args *more; /* further arguments */
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
    STAVE_GPU_STREAM_WAIT /* a stream waits for an event of another stream */
};
struct stave_gpu_wait {
    struct stave_gpu_at at;
    enum stave_gpu_wait_kind kind;
    uint64_t event; /* number of the event that it waits for */
    /* Stream and correlation number of the call that recorded the event. */
    uint64_t wait_on_stream, wait_on_correlation;
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

/* A range that the program has named (NVTX on a stream, a debug group). Its category is
 * gpu_user_annotation. */
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
/* `event` is the number of the event, for EVENT_RECORD. */
STAVE_API bool stave_gpu_add_point(enum stave_gpu_point kind, const struct stave_gpu_at *at,
                                   uint64_t event);

/* ---- memory: updates the counters `memory in use` and `live allocations` of the device ---- */

struct stave_gpu_alloc {
    /* With stream 0 it belongs to `device`. Name NULL means "alloc" or "free". `end` may be 0. */
    struct stave_gpu_at at;
    stave_gpu_device_t device;
    enum stave_gpu_memory memory; /* pageable and pinned memory is not counted as the device's */
    uint64_t address, bytes;      /* free: 0 bytes means the size of the allocation */
    const char *allocator;
    const char *purpose; /* "activation", "gradient", "parameter", "temporary", "cached" */
};
STAVE_API bool stave_gpu_add_alloc(const struct stave_gpu_alloc *a);
STAVE_API bool stave_gpu_add_free(const struct stave_gpu_alloc *a);

/* ---- counters and loss ---- */

/* A value of a counter of the device. `at` is on its clock. */
STAVE_API bool stave_gpu_add_counter(stave_gpu_device_t device, const char *name, const char *unit,
                                     int64_t at, double value);
/* The profiler that delivers the records has lost `count` of them. */
STAVE_API bool stave_gpu_lost(stave_gpu_device_t device, uint64_t count, const char *cause);

#ifdef __cplusplus
}
#endif

#endif

/* The layer's own words: the driver below it, what it knows of handles, and the work that waits for
 * its times.
 *
 * Rules of all wrappers: the program's call is made exactly once, with its arguments and its result
 * untouched; no lock of ours is held while a driver runs; whatever fails inside us leaves the call
 * as it would be without us. */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl_layer.h>
#include <stave/gpu.h>
#include <stdatomic.h>

#include "device_clock.h"
#include "handles.h"

extern cl_icd_dispatch cl_real; /* the next layer or the driver */

/* ---- what is known of handles (objects.c) ---- */

struct cl_device_info_of {
    struct cl_node node;
    cl_device_id id;
    stave_gpu_device_t gpu;
    stave_gpu_clock_t gpu_clock;
    pthread_mutex_t lock; /* of `clock` and what follows */
    struct cl_clock clock;
    int64_t tied_ns, timer_ns; /* last tie in the trace; last reading of the device's timer */
    bool has_no_timer;
};

struct cl_context_info_of {
    struct cl_node node;
    atomic_long refs;
    uint32_t number;
    struct cl_device_info_of *device; /* its first, whose memory it is said to be */
};

struct cl_work; /* pending.h */
struct cl_queue {
    struct cl_node node;
    struct cl_queue *next_queue; /* all of them, for ever; dead ones are used again */
    atomic_long refs;
    atomic_bool is_dead;
    struct cl_device_info_of *device;
    stave_gpu_stream_t stream;
    uint32_t number, context;
    bool is_profiled, is_asked, is_in_order; /* is_asked: the program wanted profiling itself */
    cl_queue_properties *asked;              /* its own list, `n_asked` words with the 0; or NULL */
    size_t n_asked;
    atomic_uint enqueued;
    pthread_mutex_t lock, drain; /* of the list; who takes from it */
    struct cl_work *first, **last, *spare;
    atomic_size_t n_pending;
};

enum { CL_ARGS_KEPT = 32 };
struct cl_kernel_info_of {
    struct cl_node node;
    atomic_long refs;
    const char *name; /* for ever */
    atomic_uint n_args;
    atomic_uint_fast64_t sizes[CL_ARGS_KEPT]; /* bytes << 2 | enum cl_arg_kind */
};
enum cl_arg_kind { CL_ARG_VALUE, CL_ARG_MEMORY, CL_ARG_LOCAL, CL_ARG_SVM };

struct cl_memory {
    struct cl_node node;
    atomic_long refs;
    uint64_t bytes;
    bool is_view; /* of another object's memory */
    struct cl_device_info_of *device;
    uint32_t context;
};

/* Each finds the record or makes it by asking the driver; NULL: no memory. */
struct cl_device_info_of *cl_device_of(cl_device_id id);
struct cl_context_info_of *cl_context_of(cl_context context);
struct cl_queue *cl_queue_of(cl_command_queue queue);
struct cl_kernel_info_of *cl_kernel_of(cl_kernel kernel);
struct cl_memory *cl_memory_find(const void *handle); /* NULL: not one that we saw */

/* After the call that made it. */
void cl_queue_made(cl_command_queue queue, bool is_profiled, bool is_asked,
                   const cl_queue_properties *asked);
void cl_memory_made(cl_context context, const void *handle, uint64_t bytes, const char *purpose,
                    bool is_view);

/* Counting references: at the last release the record goes, before the driver can give the handle
 * to another one. */
void cl_context_retained(cl_context context);
void cl_context_released(cl_context context);
void cl_queue_retained(cl_command_queue queue);
void cl_queue_released(cl_command_queue queue);
void cl_kernel_retained(cl_kernel kernel);
void cl_kernel_released(cl_kernel kernel);
void cl_memory_retained(const void *handle);
void cl_memory_released(const void *handle);
void cl_memory_report_live(void); /* at the end of the program */

extern struct cl_queue *_Atomic cl_queues;

const char *cl_keep_name(const char *text); /* a copy for ever, the same for the same text */

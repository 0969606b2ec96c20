/* The wrappers of the calls that enqueue commands, generated from the table. Called by the loader
 * in place of the driver's.
 *
 * Where the program wants no event, one is asked for, and released when its times are known. */
#include "cl_calls.h"

/* ---- what a command is ---- */

static void cl_is_copy(struct cl_work *w, enum stave_gpu_copy_kind direction, uint64_t bytes)
{
    w->kind = CL_WORK_COPY;
    w->direction = direction;
    w->bytes = bytes;
}

static void cl_is_map(struct cl_work *w, const char *name, enum stave_gpu_copy_kind direction,
                      uint64_t bytes)
{
    w->kind = CL_WORK_MAP;
    w->name = name;
    w->direction = direction;
    w->bytes = bytes;
}

static void cl_is_fill(struct cl_work *w, uint64_t bytes)
{
    w->kind = CL_WORK_FILL;
    w->bytes = bytes;
}

static void cl_is_mark(struct cl_work *w, const char *name)
{
    w->kind = CL_WORK_MARK;
    w->name = name;
}

static void cl_is_wait(struct cl_work *w, const char *name, cl_uint n)
{
    w->kind = CL_WORK_WAIT;
    w->name = name;
    w->n_waits = n;
}

static void cl_is_native(struct cl_work *w)
{
    w->kind = CL_WORK_KERNEL;
    w->name = "native kernel";
}

static void cl_is_kernel(struct cl_work *w, cl_kernel kernel, cl_uint dims, const size_t *global,
                         const size_t *local)
{
    struct cl_kernel_info_of *k = cl_kernel_of(kernel);
    w->kind = CL_WORK_KERNEL;
    w->name = k ? k->name : "kernel";
    w->dims = dims > 3 ? 3 : dims;
    if (!global) { /* a task: one work item */
        w->dims = 1;
        w->global[0] = w->local[0] = 1;
    }
    for (uint32_t i = 0; global && i < w->dims; i++) {
        w->global[i] = global[i];
        w->local[i] = local ? local[i] : 0;
    }
    w->n_args = k ? atomic_load_explicit(&k->n_args, memory_order_relaxed) : 0;
    for (uint32_t i = 0; i < w->n_args && i < CL_WORK_ARGS; i++)
        w->args[i] = atomic_load_explicit(&k->sizes[i], memory_order_relaxed);
}

/* The program's callback frees by itself, if there is one. */
static void cl_is_svm_free(struct cl_work *w, cl_uint n, void **p, bool has_callback)
{
    cl_is_mark(w, "Free SVM");
    for (cl_uint i = 0; p && !has_callback && i < n; i++)
        cl_memory_released(p[i]);
}

static uint64_t cl_region(const size_t *region, uint64_t unit)
{
    return region ? unit * region[0] * region[1] * region[2] : 0;
}

static uint64_t cl_pixel(cl_mem image)
{
    size_t size = 0;
    return cl_real.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof size, &size, NULL) ==
                   CL_SUCCESS
               ? size
               : 0;
}

static uint64_t cl_size_of(const void *handle)
{
    const struct cl_memory *m = cl_memory_find(handle);
    return m ? m->bytes : 0;
}

static uint64_t cl_size_of_all(cl_uint n, const cl_mem *m)
{
    uint64_t sum = 0;
    for (cl_uint i = 0; m && i < n; i++)
        sum += cl_size_of(m[i]);
    return sum;
}

static enum stave_gpu_copy_kind cl_svm_direction(const void *to, const void *from)
{
    bool is_up = !cl_memory_find(from), is_down = !cl_memory_find(to);
    return is_up && is_down ? STAVE_GPU_COPY_OTHER
           : is_up          ? STAVE_GPU_H2D
           : is_down        ? STAVE_GPU_D2H
                            : STAVE_GPU_D2D;
}

/* ---- the calls ---- */

#define DEFINE(name, params, args, describe)                                    \
    cl_int CL_API_CALL cl_on_##name params                                      \
    {                                                                           \
        struct cl_work w = {0};                                                 \
        if (!cl_work_begin(&w, queue, #name))                                   \
            return cl_real.name args;                                           \
        describe;                                                               \
        cl_event own = NULL;                                                    \
        bool is_ours = !event;                                                  \
        if (is_ours)                                                            \
            event = &own;                                                       \
        cl_int status = cl_real.name args;                                      \
        cl_work_end(&w, status, status == CL_SUCCESS ? *event : NULL, is_ours); \
        return status;                                                          \
    }
CL_ENQUEUE(DEFINE)

/* Those that return something else. */
void *CL_API_CALL cl_on_clEnqueueMapBuffer(cl_command_queue queue, cl_mem m, cl_bool blocking,
                                           cl_map_flags flags, size_t offset, size_t size, CL_WAITS,
                                           cl_int *status)
{
    struct cl_work w = {0};
    if (!cl_work_begin(&w, queue, "clEnqueueMapBuffer"))
        return cl_real.clEnqueueMapBuffer(queue, m, blocking, flags, offset, size, CL_WAITS_GIVEN,
                                          status);
    cl_is_map(&w, "Map buffer", STAVE_GPU_D2H, size);
    w.is_blocking = blocking;
    cl_event own = NULL, *out = event ? event : &own;
    cl_int own_status = CL_SUCCESS;
    void *p = cl_real.clEnqueueMapBuffer(queue, m, blocking, flags, offset, size, n_waits, waits,
                                         out, &own_status);
    if (status)
        *status = own_status;
    cl_work_end(&w, own_status, own_status == CL_SUCCESS ? *out : NULL, !event);
    return p;
}

void *CL_API_CALL cl_on_clEnqueueMapImage(cl_command_queue queue, cl_mem m, cl_bool blocking,
                                          cl_map_flags flags, const size_t *at,
                                          const size_t *region, size_t *row, size_t *slice,
                                          CL_WAITS, cl_int *status)
{
    struct cl_work w = {0};
    if (!cl_work_begin(&w, queue, "clEnqueueMapImage"))
        return cl_real.clEnqueueMapImage(queue, m, blocking, flags, at, region, row, slice,
                                         CL_WAITS_GIVEN, status);
    cl_is_map(&w, "Map image", STAVE_GPU_D2H, cl_region(region, cl_pixel(m)));
    w.is_blocking = blocking;
    cl_event own = NULL, *out = event ? event : &own;
    cl_int own_status = CL_SUCCESS;
    void *p = cl_real.clEnqueueMapImage(queue, m, blocking, flags, at, region, row, slice, n_waits,
                                        waits, out, &own_status);
    if (status)
        *status = own_status;
    cl_work_end(&w, own_status, own_status == CL_SUCCESS ? *out : NULL, !event);
    return p;
}

cl_int CL_API_CALL cl_on_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
    struct cl_work w = {0};
    if (!cl_work_begin(&w, queue, "clEnqueueMarker"))
        return cl_real.clEnqueueMarker(queue, event);
    cl_is_mark(&w, "Marker");
    cl_int status = cl_real.clEnqueueMarker(queue, event);
    cl_work_end(&w, status, status == CL_SUCCESS && event ? *event : NULL, false);
    return status;
}

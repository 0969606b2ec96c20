/* The wrappers of calls about contexts, queues and memory. Called by the loader in place of the
 * driver's.
 *
 * Profiling is switched on for every queue; a program that did not ask for it sees its queue as if
 * it were off. */
#include <string.h>

#include "cl_calls.h"

/* ---- contexts ---- */

static void context_made(bool begun, cl_context context, cl_int status)
{
    if (context && status == CL_SUCCESS)
        cl_context_of(context);
    cl_call_end(begun, status);
}

cl_context CL_API_CALL cl_on_clCreateContext(const cl_context_properties *properties, cl_uint n,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateContext");
    cl_context c = cl_real.clCreateContext(properties, n, devices, notify, user, status);
    context_made(begun, c, *status);
    return c;
}

cl_context CL_API_CALL
cl_on_clCreateContextFromType(const cl_context_properties *properties, cl_device_type type,
                              void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *),
                              void *user, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateContextFromType");
    cl_context c = cl_real.clCreateContextFromType(properties, type, notify, user, status);
    context_made(begun, c, *status);
    return c;
}

CL_RETAIN(clRetainContext, cl_context, cl_context_retained)

cl_int CL_API_CALL cl_on_clReleaseContext(cl_context context)
{
    bool begun = cl_call_begin("clReleaseContext");
    cl_drain_queues(CL_DRAIN_ALL);
    cl_context_released(context);
    cl_int status = cl_real.clReleaseContext(context);
    cl_call_end(begun, status);
    return status;
}

/* ---- queues ---- */

cl_command_queue CL_API_CALL cl_on_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                        cl_command_queue_properties properties,
                                                        cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateCommandQueue"), on = true;
    cl_command_queue q = cl_real.clCreateCommandQueue(
        context, device, properties | CL_QUEUE_PROFILING_ENABLE, status);
    if (!q && !(properties & CL_QUEUE_PROFILING_ENABLE)) {
        on = false;
        q = cl_real.clCreateCommandQueue(context, device, properties, status);
    }
    if (q)
        cl_queue_made(q, on, properties & CL_QUEUE_PROFILING_ENABLE, NULL);
    cl_call_end(begun, *status);
    return q;
}

enum { PROPERTIES_MAX = 64 };

/* The program's list with profiling added. false: it cannot be (a queue of the device's own, or a
 * list without end). */
static bool with_profiling(const cl_queue_properties *given, cl_queue_properties *list)
{
    size_t n = 0;
    bool has_properties = false;
    for (; given && given[n]; n += 2) {
        if (n + 4 >= PROPERTIES_MAX)
            return false;
        list[n] = given[n];
        list[n + 1] = given[n + 1];
        if (given[n] != CL_QUEUE_PROPERTIES)
            continue;
        if (given[n + 1] & CL_QUEUE_ON_DEVICE)
            return false;
        list[n + 1] |= CL_QUEUE_PROFILING_ENABLE;
        has_properties = true;
    }
    if (!has_properties) {
        list[n++] = CL_QUEUE_PROPERTIES;
        list[n++] = CL_QUEUE_PROFILING_ENABLE;
    }
    list[n] = 0;
    return true;
}

static cl_queue_properties asked_of(const cl_queue_properties *given)
{
    for (size_t n = 0; given && given[n]; n += 2)
        if (given[n] == CL_QUEUE_PROPERTIES)
            return given[n + 1];
    return 0;
}

cl_command_queue CL_API_CALL cl_on_clCreateCommandQueueWithProperties(
    cl_context context, cl_device_id device, const cl_queue_properties *given, cl_int *status)
{
    CL_STATUS_OF(status);
    cl_queue_properties list[PROPERTIES_MAX], asked = asked_of(given);
    bool begun = cl_call_begin("clCreateCommandQueueWithProperties");
    bool on = with_profiling(given, list);
    cl_command_queue q = NULL;
    if (on)
        q = cl_real.clCreateCommandQueueWithProperties(context, device, list, status);
    if (!q) {
        on = asked & CL_QUEUE_PROFILING_ENABLE;
        q = cl_real.clCreateCommandQueueWithProperties(context, device, given, status);
    }
    if (q && !(asked & CL_QUEUE_ON_DEVICE))
        cl_queue_made(q, on, asked & CL_QUEUE_PROFILING_ENABLE, given);
    cl_call_end(begun, *status);
    return q;
}

CL_RETAIN(clRetainCommandQueue, cl_command_queue, cl_queue_retained)
CL_RELEASE(clReleaseCommandQueue, cl_command_queue, cl_queue_released)

/* The list that the program gave when it made the queue, not the one that the driver got. */
static cl_int properties_given(const struct cl_queue *q, size_t size, void *value, size_t *size_out)
{
    size_t n = q->n_asked * sizeof *q->asked;
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value && n)
        memcpy(value, q->asked, n);
    if (size_out)
        *size_out = n;
    return CL_SUCCESS;
}

cl_int CL_API_CALL cl_on_clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what,
                                               size_t size, void *value, size_t *size_out)
{
    bool is_touched = what == CL_QUEUE_PROPERTIES || what == CL_QUEUE_PROPERTIES_ARRAY;
    const struct cl_queue *q = is_touched ? cl_queue_of(queue) : NULL;
    bool is_hidden = q && q->is_profiled && !q->is_asked;
    cl_int status = cl_real.clGetCommandQueueInfo(
        queue, what, is_hidden && what == CL_QUEUE_PROPERTIES_ARRAY ? 0 : size,
        is_hidden && what == CL_QUEUE_PROPERTIES_ARRAY ? NULL : value, size_out);
    if (!is_hidden || status != CL_SUCCESS)
        return status;
    if (what == CL_QUEUE_PROPERTIES_ARRAY)
        return properties_given(q, size, value, size_out);
    cl_command_queue_properties seen;
    if (value && size >= sizeof seen) {
        memcpy(&seen, value, sizeof seen);
        seen &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
        memcpy(value, &seen, sizeof seen);
    }
    return status;
}

/* OpenCL 1.0. Profiling stays on below; what the program sees of it changes. */
cl_int CL_API_CALL cl_on_clSetCommandQueueProperty(cl_command_queue queue,
                                                   cl_command_queue_properties properties,
                                                   cl_bool enable, cl_command_queue_properties *old)
{
    struct cl_queue *q = cl_queue_of(queue);
    cl_command_queue_properties below =
        q && q->is_profiled ? properties & ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE
                            : properties;
    cl_int status = cl_real.clSetCommandQueueProperty(queue, below, enable, old);
    if (!q || !q->is_profiled || status != CL_SUCCESS)
        return status;
    if (old && !q->is_asked)
        *old &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
    if (properties & CL_QUEUE_PROFILING_ENABLE)
        q->is_asked = enable;
    return status;
}

/* ---- memory ---- */

/* What the driver says that it takes; 0: nothing. */
static uint64_t size_of(cl_mem m)
{
    size_t size = 0;
    return cl_real.clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof size, &size, NULL) == CL_SUCCESS ? size
                                                                                              : 0;
}

static void memory_made(bool begun, cl_context context, cl_mem m, cl_int status,
                        const char *purpose, bool is_view)
{
    struct stave_args more;
    if (!m || status != CL_SUCCESS) {
        cl_call_end(begun, status);
        return;
    }
    uint64_t bytes = size_of(m);
    cl_memory_made(context, m, bytes, purpose, is_view);
    stave_args_init(&more);
    stave_args_uint(&more, "bytes", bytes);
    cl_call_end_with(begun, status, &more);
}

/* clang-format off */
#define CREATE(name, params, args, purpose, is_view)   \
    cl_mem CL_API_CALL cl_on_##name params             \
    {                                                  \
        CL_STATUS_OF(status);                             \
        bool begun = cl_call_begin(#name);             \
        cl_mem m = cl_real.name args;                  \
        memory_made(begun, context, m, *status, purpose, is_view); \
        return m;                                      \
    }
CREATE(clCreateBuffer, (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status),
       (context, flags, size, host, status), "buffer", false)
CREATE(clCreateBufferWithProperties, (cl_context context, const cl_mem_properties *p, cl_mem_flags flags, size_t size, void *host, cl_int *status),
       (context, p, flags, size, host, status), "buffer", false)
CREATE(clCreateImage, (cl_context context, cl_mem_flags flags, const cl_image_format *f, const cl_image_desc *d, void *host, cl_int *status),
       (context, flags, f, d, host, status), "image", d && d->mem_object)
CREATE(clCreateImageWithProperties, (cl_context context, const cl_mem_properties *p, cl_mem_flags flags, const cl_image_format *f, const cl_image_desc *d,
       void *host, cl_int *status),
       (context, p, flags, f, d, host, status), "image", d && d->mem_object)
CREATE(clCreateImage2D, (cl_context context, cl_mem_flags flags, const cl_image_format *f, size_t w, size_t h, size_t row, void *host, cl_int *status),
       (context, flags, f, w, h, row, host, status), "image", false)
CREATE(clCreateImage3D, (cl_context context, cl_mem_flags flags, const cl_image_format *f, size_t w, size_t h, size_t d, size_t row, size_t slice,
       void *host, cl_int *status),
       (context, flags, f, w, h, d, row, slice, host, status), "image", false)
CREATE(clCreatePipe, (cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint n, const cl_pipe_properties *p, cl_int *status),
       (context, flags, packet, n, p, status), "pipe", false)
/* clang-format on */

cl_mem CL_API_CALL cl_on_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                           cl_buffer_create_type type, const void *info,
                                           cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateSubBuffer");
    cl_mem m = cl_real.clCreateSubBuffer(buffer, flags, type, info, status);
    cl_context context = NULL;
    cl_real.clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    memory_made(begun, context, m, *status, "sub-buffer", true);
    return m;
}

CL_RETAIN(clRetainMemObject, cl_mem, cl_memory_retained)
CL_RELEASE(clReleaseMemObject, cl_mem, cl_memory_released)

void *CL_API_CALL cl_on_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                                   cl_uint alignment)
{
    struct stave_args more;
    bool begun = cl_call_begin("clSVMAlloc");
    void *p = cl_real.clSVMAlloc(context, flags, size, alignment);
    if (p)
        cl_memory_made(context, p, size, "svm", false);
    stave_args_init(&more);
    stave_args_uint(&more, "bytes", size);
    cl_call_end_with(begun, p ? CL_SUCCESS : CL_OUT_OF_RESOURCES, &more);
    return p;
}

void CL_API_CALL cl_on_clSVMFree(cl_context context, void *p)
{
    bool begun = cl_call_begin("clSVMFree");
    cl_memory_released(p);
    cl_real.clSVMFree(context, p);
    cl_call_end(begun, CL_SUCCESS);
}

/* The wrappers of calls about programs, kernels, events and waiting. Called by the loader in place
 * of the driver's. */
#include <stdlib.h>
#include <string.h>

#include "cl_calls.h"

/* ---- programs ---- */

static void program_made(bool begun, cl_int status, uint64_t bytes)
{
    struct stave_args more;
    stave_args_init(&more);
    stave_args_uint(&more, "bytes", bytes);
    cl_call_end_with(begun, status, &more);
}

cl_program CL_API_CALL cl_on_clCreateProgramWithSource(cl_context context, cl_uint n,
                                                       const char **texts, const size_t *sizes,
                                                       cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateProgramWithSource");
    cl_program p = cl_real.clCreateProgramWithSource(context, n, texts, sizes, status);
    uint64_t bytes = 0;
    for (cl_uint i = 0; begun && *status == CL_SUCCESS && i < n; i++)
        bytes += sizes && sizes[i] ? sizes[i] : strlen(texts[i]);
    program_made(begun, *status, bytes);
    return p;
}

cl_program CL_API_CALL cl_on_clCreateProgramWithBinary(cl_context context, cl_uint n,
                                                       const cl_device_id *devices,
                                                       const size_t *sizes,
                                                       const unsigned char **binaries, cl_int *each,
                                                       cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateProgramWithBinary");
    cl_program p =
        cl_real.clCreateProgramWithBinary(context, n, devices, sizes, binaries, each, status);
    uint64_t bytes = 0;
    for (cl_uint i = 0; *status == CL_SUCCESS && i < n; i++)
        bytes += sizes[i];
    program_made(begun, *status, bytes);
    return p;
}

cl_program CL_API_CALL cl_on_clCreateProgramWithIL(cl_context context, const void *il, size_t size,
                                                   cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateProgramWithIL");
    cl_program p = cl_real.clCreateProgramWithIL(context, il, size, status);
    program_made(begun, *status, size);
    return p;
}

cl_program CL_API_CALL cl_on_clCreateProgramWithBuiltInKernels(cl_context context, cl_uint n,
                                                               const cl_device_id *devices,
                                                               const char *names, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateProgramWithBuiltInKernels");
    cl_program p = cl_real.clCreateProgramWithBuiltInKernels(context, n, devices, names, status);
    cl_call_end(begun, *status);
    return p;
}

typedef void(CL_CALLBACK *notify_fn)(cl_program, void *);

/* The program's callback of a build that continues after the call. */
struct build {
    notify_fn notify;
    void *user;
    int64_t begin_ns;
};

enum { LOG_BYTES = 4000 };

/* What the compiler said, its beginning. */
static void add_log(struct stave_args *more, cl_program program)
{
    cl_device_id ids[16];
    size_t size = 0;
    if (!program || cl_real.clGetProgramInfo(program, CL_PROGRAM_DEVICES, 0, NULL, &size) ||
        size < sizeof ids[0] || size > sizeof ids ||
        cl_real.clGetProgramInfo(program, CL_PROGRAM_DEVICES, size, ids, NULL) ||
        cl_real.clGetProgramBuildInfo(program, ids[0], CL_PROGRAM_BUILD_LOG, 0, NULL, &size) ||
        size < 2)
        return;
    char *log = malloc(size);
    if (log && cl_real.clGetProgramBuildInfo(program, ids[0], CL_PROGRAM_BUILD_LOG, size, log,
                                             NULL) == CL_SUCCESS)
        stave_args_text_n(more, "log", log, strnlen(log, size < LOG_BYTES ? size : LOG_BYTES));
    free(log);
}

static void build_ended(bool begun, cl_int status, cl_program program, const char *options)
{
    struct stave_args more;
    if (!begun)
        return;
    stave_args_init(&more);
    if (options && *options)
        stave_args_text(&more, "options", options);
    if (status != CL_SUCCESS)
        add_log(&more, program);
    cl_call_end_with(begun, status, &more);
}

static void CL_CALLBACK build_notified(cl_program program, void *user)
{
    struct build b = *(struct build *)user;
    free(user);
    if (stave_enabled(NULL))
        stave_complete(stave_track(STAVE_PROCESS, "OpenCL builds"), "opencl_runtime",
                       "program build", b.begin_ns, stave_now_ns() - b.begin_ns);
    b.notify(program, b.user);
}

/* `*notify` and `*user` become ours; without memory they stay the program's. */
static struct build *build_begin(notify_fn *notify, void **user)
{
    struct build *b = *notify && stave_enabled(NULL) ? malloc(sizeof *b) : NULL;
    if (b) {
        *b = (struct build){*notify, *user, stave_now_ns()};
        *notify = build_notified;
        *user = b;
    }
    return b;
}

/* A call that was refused never notifies; one that began a build does, be it with an error. */
static bool is_refused(cl_int status)
{
    return status == CL_INVALID_PROGRAM || status == CL_INVALID_VALUE ||
           status == CL_INVALID_DEVICE || status == CL_INVALID_OPERATION ||
           status == CL_INVALID_CONTEXT;
}

cl_int CL_API_CALL cl_on_clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices,
                                        const char *options, notify_fn notify, void *user)
{
    bool begun = cl_call_begin("clBuildProgram");
    struct build *b = build_begin(&notify, &user);
    cl_int status = cl_real.clBuildProgram(program, n, devices, options, notify, user);
    if (b && is_refused(status))
        free(b);
    build_ended(begun, status, program, options);
    return status;
}

cl_int CL_API_CALL cl_on_clCompileProgram(cl_program program, cl_uint n,
                                          const cl_device_id *devices, const char *options,
                                          cl_uint n_headers, const cl_program *headers,
                                          const char **names, notify_fn notify, void *user)
{
    bool begun = cl_call_begin("clCompileProgram");
    struct build *b = build_begin(&notify, &user);
    cl_int status = cl_real.clCompileProgram(program, n, devices, options, n_headers, headers,
                                             names, notify, user);
    if (b && is_refused(status))
        free(b);
    build_ended(begun, status, program, options);
    return status;
}

cl_program CL_API_CALL cl_on_clLinkProgram(cl_context context, cl_uint n,
                                           const cl_device_id *devices, const char *options,
                                           cl_uint n_programs, const cl_program *programs,
                                           notify_fn notify, void *user, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clLinkProgram");
    struct build *b = build_begin(&notify, &user);
    cl_program p = cl_real.clLinkProgram(context, n, devices, options, n_programs, programs, notify,
                                         user, status);
    if (b && is_refused(*status))
        free(b);
    build_ended(begun, *status, p, options);
    return p;
}

/* ---- kernels ---- */

cl_kernel CL_API_CALL cl_on_clCreateKernel(cl_program program, const char *name, cl_int *status)
{
    CL_STATUS_OF(status);
    struct stave_args more;
    bool begun = cl_call_begin("clCreateKernel");
    cl_kernel k = cl_real.clCreateKernel(program, name, status);
    if (k)
        cl_kernel_of(k);
    stave_args_init(&more);
    if (name)
        stave_args_text(&more, "kernel", name);
    cl_call_end_with(begun, *status, &more);
    return k;
}

cl_kernel CL_API_CALL cl_on_clCloneKernel(cl_kernel source, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCloneKernel");
    cl_kernel k = cl_real.clCloneKernel(source, status);
    struct cl_kernel_info_of *from = cl_kernel_of(source), *to = k ? cl_kernel_of(k) : NULL;
    for (size_t i = 0; from && to && i < CL_ARGS_KEPT; i++)
        atomic_store_explicit(&to->sizes[i], atomic_load(&from->sizes[i]), memory_order_relaxed);
    cl_call_end(begun, *status);
    return k;
}

CL_RETAIN(clRetainKernel, cl_kernel, cl_kernel_retained)

cl_int CL_API_CALL cl_on_clReleaseKernel(cl_kernel kernel)
{
    cl_kernel_released(kernel);
    return cl_real.clReleaseKernel(kernel);
}

/* A value of a handle's size may be a memory object, whose size says more. */
static uint64_t argument(size_t size, const void *value)
{
    const void *handle;
    if (!value)
        return (uint64_t)size << 2 | CL_ARG_LOCAL;
    if (size != sizeof handle)
        return (uint64_t)size << 2 | CL_ARG_VALUE;
    memcpy(&handle, value, sizeof handle);
    const struct cl_memory *m = cl_memory_find(handle);
    return m ? m->bytes << 2 | CL_ARG_MEMORY : (uint64_t)size << 2 | CL_ARG_VALUE;
}

static void argument_set(cl_kernel kernel, cl_uint i, uint64_t packed)
{
    struct cl_kernel_info_of *k = i < CL_ARGS_KEPT ? cl_kernel_of(kernel) : NULL;
    if (k)
        atomic_store_explicit(&k->sizes[i], packed, memory_order_relaxed);
}

cl_int CL_API_CALL cl_on_clSetKernelArg(cl_kernel kernel, cl_uint i, size_t size, const void *value)
{
    cl_int status = cl_real.clSetKernelArg(kernel, i, size, value);
    if (status == CL_SUCCESS && stave_enabled(NULL))
        argument_set(kernel, i, argument(size, value));
    return status;
}

cl_int CL_API_CALL cl_on_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint i, const void *value)
{
    cl_int status = cl_real.clSetKernelArgSVMPointer(kernel, i, value);
    const struct cl_memory *m = status == CL_SUCCESS ? cl_memory_find(value) : NULL;
    if (status == CL_SUCCESS)
        argument_set(kernel, i, (m ? m->bytes : 0) << 2 | CL_ARG_SVM);
    return status;
}

/* ---- waiting ---- */

static cl_int end_and_drain(bool begun, cl_int status, cl_command_queue queue, enum cl_drain how)
{
    cl_call_end(begun, status);
    struct cl_queue *q = begun ? cl_queue_of(queue) : NULL;
    if (q)
        cl_drain_queue(q, how);
    return status;
}

cl_int CL_API_CALL cl_on_clFlush(cl_command_queue queue)
{
    bool begun = cl_call_begin("clFlush");
    return end_and_drain(begun, cl_real.clFlush(queue), queue, CL_DRAIN_SOME);
}

cl_int CL_API_CALL cl_on_clFinish(cl_command_queue queue)
{
    bool begun = cl_call_begin("clFinish");
    return end_and_drain(begun, cl_real.clFinish(queue), queue, CL_DRAIN_WAITED);
}

static struct cl_queue *queue_of_event(cl_event event)
{
    cl_command_queue queue = NULL;
    if (cl_real.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) !=
        CL_SUCCESS)
        return NULL;
    return queue ? cl_queue_of(queue) : NULL;
}

/* The queues of the events; the others as far as they come along. */
cl_int CL_API_CALL cl_on_clWaitForEvents(cl_uint n, const cl_event *events)
{
    bool begun = cl_call_begin("clWaitForEvents");
    cl_int status = cl_real.clWaitForEvents(n, events);
    cl_call_end(begun, status);
    if (!begun)
        return status;
    const struct cl_queue *last = NULL;
    for (cl_uint i = 0; i < n && events && status == CL_SUCCESS; i++) {
        struct cl_queue *q = queue_of_event(events[i]);
        if (q && q != last)
            cl_drain_queue(q, CL_DRAIN_WAITED);
        last = q;
    }
    cl_drain_queues(CL_DRAIN_SOME);
    return status;
}

/* ---- events ---- */

cl_int CL_API_CALL cl_on_clGetEventInfo(cl_event event, cl_event_info what, size_t size,
                                        void *value, size_t *size_out)
{
    struct cl_queue *q = what == CL_EVENT_REFERENCE_COUNT ? queue_of_event(event) : NULL;
    cl_uint ours = 0, seen;
    if (q) {
        cl_drain_queue(q, CL_DRAIN_SOME);
        ours = cl_pending_refs(q, event);
    }
    cl_int status = cl_real.clGetEventInfo(event, what, size, value, size_out);
    if (ours && status == CL_SUCCESS && value && size >= sizeof seen) {
        memcpy(&seen, value, sizeof seen);
        seen -= seen > ours ? ours : 0;
        memcpy(value, &seen, sizeof seen);
    }
    return status;
}

cl_int CL_API_CALL cl_on_clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                 size_t size, void *value, size_t *size_out)
{
    const struct cl_queue *q = queue_of_event(event);
    if (q && q->is_profiled && !q->is_asked)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return cl_real.clGetEventProfilingInfo(event, what, size, value, size_out);
}

/* User events: from their creation to the status that the program gives them. */
struct user_event {
    struct cl_node node;
    int64_t begin_ns;
};
static struct cl_map user_events = CL_MAP_INIT;

cl_event CL_API_CALL cl_on_clCreateUserEvent(cl_context context, cl_int *status)
{
    CL_STATUS_OF(status);
    bool begun = cl_call_begin("clCreateUserEvent");
    cl_event event = cl_real.clCreateUserEvent(context, status);
    cl_call_end(begun, *status);
    struct user_event *u = begun && event ? malloc(sizeof *u) : NULL;
    if (u) {
        free(cl_map_take(&user_events, event)); /* one that was released without a status */
        *u = (struct user_event){{event, NULL}, stave_now_ns()};
        if (cl_map_add(&user_events, &u->node) != &u->node)
            free(u);
    }
    return event;
}

cl_int CL_API_CALL cl_on_clSetUserEventStatus(cl_event event, cl_int value)
{
    struct stave_args more;
    struct user_event *u = (struct user_event *)cl_map_take(&user_events, event);
    bool begun = cl_call_begin("clSetUserEventStatus");
    cl_int status = cl_real.clSetUserEventStatus(event, value);
    stave_args_init(&more);
    stave_args_int(&more, "status", value);
    cl_call_end_with(begun, status, &more);
    if (u && begun)
        stave_complete(stave_async(STAVE_PROCESS, "OpenCL user events", (uintptr_t)event),
                       "opencl_runtime", "user event", u->begin_ns, stave_now_ns() - u->begin_ns,
                       "status", (int64_t)value);
    free(u);
    return status;
}

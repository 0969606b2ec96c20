/* cl_fake LIBRARY MODE: the loader's and a driver's part in one, without OpenCL: hands the layer a
 * table of functions that pretend, and calls the layer's as a program would. For what a real driver
 * does not do to order (a timer of the device, refusals, commands that fail), and for the
 * sanitizers.
 *
 * The device's clock is five seconds ahead of the host's. It ends with 3 if an event was not
 * released as often as it was retained. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_S = 5, KERNEL_NS = 1000 };

struct event {
    atomic_int refs;
    cl_command_queue queue;
    cl_int status;
    cl_ulong at;
};
struct queue {
    cl_command_queue_properties properties;
    atomic_uint n;
};

static atomic_int live;
static bool refuses, fails, has_timer;
static struct queue queues[2];
static int device_, context_, kernel_, buffer_; /* handles are their addresses */
#define DEVICE  ((cl_device_id)(void *)&device_)
#define CONTEXT ((cl_context)(void *)&context_)
#define KERNEL  ((cl_kernel)(void *)&kernel_)

static cl_ulong device_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (cl_ulong)(t.tv_sec + AHEAD_S) * 1000000000 + (cl_ulong)t.tv_nsec;
}

static cl_int answer(const void *from, size_t n, size_t size, void *value, size_t *size_out)
{
    if (value && size < n)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, from, n);
    if (size_out)
        *size_out = n;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info what, size_t size, void *value,
                                      size_t *out)
{
    (void)d;
    if (what == CL_DEVICE_NAME)
        return answer("Pretender", 10, size, value, out);
    cl_device_type type = CL_DEVICE_TYPE_GPU;
    return what == CL_DEVICE_TYPE ? answer(&type, sizeof type, size, value, out) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL context_info(cl_context c, cl_context_info what, size_t size, void *value,
                                       size_t *out)
{
    cl_device_id d = DEVICE;
    (void)c;
    return what == CL_CONTEXT_DEVICES ? answer(&d, sizeof d, size, value, out) : CL_INVALID_VALUE;
}

static cl_command_queue CL_API_CALL create_queue(cl_context c, cl_device_id d,
                                                 cl_command_queue_properties properties, cl_int *e)
{
    static atomic_uint n;
    (void)c;
    (void)d;
    if (refuses && properties & CL_QUEUE_PROFILING_ENABLE) {
        *e = CL_INVALID_QUEUE_PROPERTIES;
        return NULL;
    }
    struct queue *q = &queues[atomic_fetch_add(&n, 1) % 2];
    q->properties = properties;
    *e = CL_SUCCESS;
    return (cl_command_queue)(void *)q;
}

static cl_int CL_API_CALL queue_info(cl_command_queue queue, cl_command_queue_info what,
                                     size_t size, void *value, size_t *out)
{
    cl_device_id d = DEVICE;
    cl_context c = CONTEXT;
    const struct queue *q = (const struct queue *)(void *)queue;
    if (what == CL_QUEUE_DEVICE)
        return answer(&d, sizeof d, size, value, out);
    if (what == CL_QUEUE_CONTEXT)
        return answer(&c, sizeof c, size, value, out);
    return answer(&q->properties, sizeof q->properties, size, value, out);
}

static cl_int CL_API_CALL kernel_info(cl_kernel k, cl_kernel_info what, size_t size, void *value,
                                      size_t *out)
{
    cl_uint n = 1;
    (void)k;
    return what == CL_KERNEL_FUNCTION_NAME ? answer("pretend", 8, size, value, out)
                                           : answer(&n, sizeof n, size, value, out);
}

static cl_int CL_API_CALL enqueue(cl_command_queue queue, cl_kernel k, cl_uint dims,
                                  const size_t *offset, const size_t *global, const size_t *local,
                                  cl_uint n, const cl_event *waits, cl_event *out)
{
    (void)k, (void)dims, (void)offset, (void)global, (void)local, (void)n, (void)waits;
    struct queue *q = (struct queue *)(void *)queue;
    unsigned number = atomic_fetch_add(&q->n, 1);
    struct event *e = out ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return CL_SUCCESS;
    *e = (struct event){.refs = 1, .queue = queue, .at = device_now()};
    e->status = fails && number % 2 ? -5 : CL_COMPLETE;
    atomic_fetch_add(&live, 1);
    *out = (cl_event)(void *)e;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem m, cl_bool blocking,
                                      size_t offset, size_t size, void *p, cl_uint n,
                                      const cl_event *waits, cl_event *out)
{
    (void)m, (void)blocking, (void)offset, (void)size, (void)p;
    return enqueue(queue, KERNEL, 0, NULL, NULL, NULL, n, waits, out);
}

static cl_int CL_API_CALL wait_events(cl_uint n, const cl_event *events)
{
    (void)n, (void)events;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_event(cl_event event)
{
    atomic_fetch_add(&((struct event *)(void *)event)->refs, 1);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    struct event *e = (struct event *)(void *)event;
    if (atomic_fetch_sub(&e->refs, 1) == 1) {
        free(e);
        atomic_fetch_sub(&live, 1);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t size, void *value,
                                     size_t *out)
{
    struct event *e = (struct event *)(void *)event;
    cl_uint refs = (cl_uint)atomic_load(&e->refs);
    if (what == CL_EVENT_COMMAND_QUEUE)
        return answer(&e->queue, sizeof e->queue, size, value, out);
    if (what == CL_EVENT_REFERENCE_COUNT)
        return answer(&refs, sizeof refs, size, value, out);
    return answer(&e->status, sizeof e->status, size, value, out);
}

static cl_int CL_API_CALL event_times(cl_event event, cl_profiling_info what, size_t size,
                                      void *value, size_t *out)
{
    const struct event *e = (const struct event *)(void *)event;
    cl_ulong at = e->at + (what == CL_PROFILING_COMMAND_END ? KERNEL_NS : 0);
    return answer(&at, sizeof at, size, value, out);
}

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    (void)queue;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL timers(cl_device_id d, cl_ulong *device, cl_ulong *host)
{
    (void)d;
    *device = device_now();
    *host = *device;
    return has_timer ? CL_SUCCESS : CL_INVALID_OPERATION;
}

static cl_mem CL_API_CALL create_buffer(cl_context c, cl_mem_flags flags, size_t size, void *host,
                                        cl_int *e)
{
    (void)c, (void)flags, (void)size, (void)host;
    *e = CL_SUCCESS;
    return (cl_mem)(void *)&buffer_;
}

static cl_int CL_API_CALL memory_info(cl_mem m, cl_mem_info what, size_t size, void *value,
                                      size_t *out)
{
    size_t bytes = 4096;
    (void)m, (void)what;
    return answer(&bytes, sizeof bytes, size, value, out);
}

static cl_int CL_API_CALL release_buffer(cl_mem m)
{
    (void)m;
    return CL_SUCCESS;
}

static const cl_icd_dispatch *layer;

static void *enqueue_many(void *arg)
{
    cl_command_queue q = arg;
    size_t global = 100, local = 30;
    for (int i = 0; i < 2000; i++) {
        cl_event event = NULL;
        cl_int e = CL_SUCCESS;
        if (i % 100 == 0) {
            cl_mem m = layer->clCreateBuffer(CONTEXT, 0, 4096, NULL, &e);
            layer->clReleaseMemObject(m);
        }
        layer->clEnqueueNDRangeKernel(q, KERNEL, 1, NULL, &global, &local, 0, NULL,
                                      i % 3 ? NULL : &event);
        cl_uint refs = 0;
        if (event &&
            layer->clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof refs, &refs, NULL))
            exit(4);
        if (event)
            layer->clReleaseEvent(event);
        if (i % 50 == 49)
            layer->clFinish(q);
    }
    return NULL;
}

static int run(bool many)
{
    pthread_t threads[4];
    cl_int e;
    cl_command_queue q[2] = {layer->clCreateCommandQueue(CONTEXT, DEVICE, 0, &e),
                             layer->clCreateCommandQueue(CONTEXT, DEVICE, 0, &e)};
    cl_command_queue_properties seen = 9;
    if (layer->clGetCommandQueueInfo(q[0], CL_QUEUE_PROPERTIES, sizeof seen, &seen, NULL) || seen)
        return 5;
    for (int i = 0; i < (many ? 4 : 1); i++)
        pthread_create(&threads[i], NULL, enqueue_many, q[i % 2]);
    for (int i = 0; i < (many ? 4 : 1); i++)
        pthread_join(threads[i], NULL);
    layer->clReleaseCommandQueue(q[0]);
    layer->clReleaseCommandQueue(q[1]);
    return atomic_load(&live) ? 3 : 0;
}

/* Commands that were waited for, in each way; then the program ends without any handler. */
static int wait_and_quit(void)
{
    enum { MANY = 200 }; /* more than are taken at a time while a program enqueues */
    cl_int e;
    size_t global = 100, local = 30;
    char bytes[16];
    cl_command_queue q = layer->clCreateCommandQueue(CONTEXT, DEVICE, 0, &e);
    for (int way = 0; way < 3; way++) {
        cl_event event = NULL;
        for (int i = 0; i < MANY; i++)
            layer->clEnqueueNDRangeKernel(q, KERNEL, 1, NULL, &global, &local, 0, NULL,
                                          i == MANY - 1 ? &event : NULL);
        if (way == 0)
            layer->clFinish(q);
        else if (way == 1)
            layer->clWaitForEvents(1, &event);
        else
            layer->clEnqueueReadBuffer(q, (cl_mem)(void *)&buffer_, CL_TRUE, 0, sizeof bytes, bytes,
                                       0, NULL, NULL);
        layer->clReleaseEvent(event);
    }
    _exit(0);
}

static cl_icd_dispatch driver(void)
{
    return (cl_icd_dispatch){.clGetDeviceInfo = device_info,
                             .clGetContextInfo = context_info,
                             .clCreateCommandQueue = create_queue,
                             .clReleaseCommandQueue = finish,
                             .clGetCommandQueueInfo = queue_info,
                             .clGetKernelInfo = kernel_info,
                             .clEnqueueNDRangeKernel = enqueue,
                             .clEnqueueReadBuffer = read_buffer,
                             .clWaitForEvents = wait_events,
                             .clRetainEvent = retain_event,
                             .clReleaseEvent = release_event,
                             .clGetEventInfo = event_info,
                             .clGetEventProfilingInfo = event_times,
                             .clFinish = finish,
                             .clCreateBuffer = create_buffer,
                             .clReleaseMemObject = release_buffer,
                             .clGetMemObjectInfo = memory_info,
                             .clGetDeviceAndHostTimer = timers};
}

int main(int argc, char **argv)
{
    pfn_clInitLayer init = NULL;
    pfn_clGetLayerInfo info = NULL;
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "cl_fake: %s\n", argc > 2 ? dlerror() : "LIBRARY MODE");
        return 2;
    }
    *(void **)&init = dlsym(library, "clInitLayer");
    *(void **)&info = dlsym(library, "clGetLayerInfo");
    cl_layer_api_version version = 0;
    char name[2];
    if (info(CL_LAYER_API_VERSION, sizeof version, &version, NULL) || version != 100 ||
        info(CL_LAYER_NAME, sizeof name, name, NULL) != CL_INVALID_VALUE ||
        info(1, sizeof version, &version, NULL) != CL_INVALID_VALUE)
        return 6;
    refuses = strcmp(argv[2], "refuses") == 0;
    fails = strcmp(argv[2], "fails") == 0;
    has_timer = strcmp(argv[2], "timer") == 0;
    cl_icd_dispatch table = driver();
    cl_uint n = sizeof table / sizeof(void *), got = 0;
    if (init(n, NULL, &got, &layer) != CL_INVALID_VALUE)
        return 6;
    if (init(n, &table, &got, &layer) || got != n || layer->clGetPlatformIDs ||
        layer->clEnqueueTask)
        return 6; /* what the driver has not, the layer has not */
    return strcmp(argv[2], "quits") == 0 ? wait_and_quit() : run(strcmp(argv[2], "threads") == 0);
}

/* What the layer knows of devices, contexts, queues, kernels and memory. Called by the wrappers.
 *
 * A handle that was made where the layer does not look (an extension's function) is met at its
 * first use: the driver is asked then. Records of queues stay for ever, since work that waits for
 * its times points to them; those of released queues are used again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"
#include "pending.h"

static struct cl_map devices = CL_MAP_INIT, contexts = CL_MAP_INIT, queues = CL_MAP_INIT,
                     kernels = CL_MAP_INIT, memory = CL_MAP_INIT, names = CL_MAP_INIT;
static atomic_uint n_devices, n_contexts, n_queues, n_names;
static pthread_mutex_t reuse = PTHREAD_MUTEX_INITIALIZER;
struct cl_queue *_Atomic cl_queues;

/* ---- names ---- */

enum { NAMES_MAX = 1 << 16, NAME_BYTES = 1024 };

struct name {
    struct cl_node node; /* the handle is the text's hash */
    char text[];
};

static uint64_t text_hash(const char *s, size_t len)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h | 1;
}

static struct name *name_new(uint64_t h, const char *text, size_t len)
{
    struct name *n = atomic_fetch_add(&n_names, 1) < NAMES_MAX ? calloc(1, sizeof *n + len + 1)
                                                               : NULL;
    if (n) {
        n->node.handle = (const void *)(uintptr_t)h;
        memcpy(n->text, text, len);
    }
    return n;
}

const char *cl_keep_name(const char *text)
{
    size_t len = strnlen(text, NAME_BYTES);
    uint64_t h = text_hash(text, len);
    struct name *n = (struct name *)cl_map_find(&names, (const void *)(uintptr_t)h);
    if (!n) {
        n = name_new(h, text, len);
        struct name *kept = n ? (struct name *)cl_map_add(&names, &n->node) : NULL;
        if (kept != n)
            free(n);
        n = kept;
    }
    if (!n)
        return "(one name too many)";
    /* Two texts of one hash do not happen; if they do, the first one's name is shown. */
    return n->text;
}

/* ---- devices ---- */

static void device_text(cl_device_id id, cl_device_info what, char *text, size_t size)
{
    if (cl_real.clGetDeviceInfo(id, what, size - 1, text, NULL) != CL_SUCCESS)
        text[0] = 0;
    text[size - 1] = 0;
}

static uint64_t device_number(cl_device_id id, cl_device_info what, size_t size)
{
    uint64_t v = 0; /* smaller ones fill the low bytes */
    return cl_real.clGetDeviceInfo(id, what, size, &v, NULL) == CL_SUCCESS ? v : 0;
}

static const char *device_kind(cl_device_id id)
{
    uint64_t type = device_number(id, CL_DEVICE_TYPE, sizeof(cl_device_type));
    if (type & CL_DEVICE_TYPE_CPU)
        return "CPU";
    return type & CL_DEVICE_TYPE_ACCELERATOR ? "Accelerator" : "GPU";
}

static void describe_device(struct cl_device_info_of *d, cl_device_id id, uint32_t number)
{
    char name[256] = "", vendor[128] = "", version[128] = "", driver[128] = "", clock[64];
    device_text(id, CL_DEVICE_NAME, name, sizeof name);
    device_text(id, CL_DEVICE_VENDOR, vendor, sizeof vendor);
    device_text(id, CL_DEVICE_VERSION, version, sizeof version);
    device_text(id, CL_DRIVER_VERSION, driver, sizeof driver);
    bool is_part = device_number(id, CL_DEVICE_PARENT_DEVICE, sizeof(cl_device_id)) != 0;
    if (is_part) {
        size_t len = strnlen(name, sizeof name - 1);
        snprintf(name + len, sizeof name - len, " (sub-device)");
    }
    snprintf(clock, sizeof clock, "OpenCL device %u", number);
    d->gpu_clock = stave_gpu_clock(clock, 0);
    struct stave_args more;
    stave_args_init(&more);
    stave_args_text(&more, "version", version);
    stave_args_text(&more, "driver", driver);
    d->gpu = stave_gpu_device(
        number, &(struct stave_gpu_device_info){
                    .name = name,
                    .vendor = vendor,
                    .kind = device_kind(id),
                    .total_memory = device_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, 8),
                    .clock_khz = device_number(id, CL_DEVICE_MAX_CLOCK_FREQUENCY, 4) * 1000,
                    .multiprocessors = (uint32_t)device_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, 4),
                    .clock = d->gpu_clock,
                    .more = &more});
}

struct cl_device_info_of *cl_device_of(cl_device_id id)
{
    struct cl_device_info_of *d = (struct cl_device_info_of *)cl_map_find(&devices, id);
    if (d || !id)
        return d;
    d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->node.handle = d->id = id;
    pthread_mutex_init(&d->lock, NULL);
    describe_device(d, id, atomic_fetch_add(&n_devices, 1));
    struct cl_node *kept = cl_map_add(&devices, &d->node);
    if (kept != &d->node)
        free(d);
    return (struct cl_device_info_of *)kept;
}

/* ---- contexts ---- */

struct cl_context_info_of *cl_context_of(cl_context context)
{
    struct cl_context_info_of *c = (struct cl_context_info_of *)cl_map_find(&contexts, context);
    if (c || !context)
        return c;
    size_t size = 0;
    if (cl_real.clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &size) != CL_SUCCESS ||
        size < sizeof(cl_device_id))
        return NULL;
    cl_device_id *ids = calloc(1, size);
    c = calloc(1, sizeof *c);
    if (!ids || !c ||
        cl_real.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, ids, NULL) != CL_SUCCESS) {
        free(ids);
        free(c);
        return NULL;
    }
    c->node.handle = context;
    atomic_init(&c->refs, 1);
    c->number = atomic_fetch_add(&n_contexts, 1) + 1;
    c->device = cl_device_of(ids[0]);
    free(ids);
    struct cl_node *kept = cl_map_add(&contexts, &c->node);
    if (kept != &c->node)
        free(c);
    return (struct cl_context_info_of *)kept;
}

void cl_context_retained(cl_context context)
{
    struct cl_context_info_of *c = (struct cl_context_info_of *)cl_map_find(&contexts, context);
    if (c)
        atomic_fetch_add(&c->refs, 1);
}

void cl_context_released(cl_context context)
{
    struct cl_context_info_of *c = (struct cl_context_info_of *)cl_map_find(&contexts, context);
    if (c && atomic_fetch_sub(&c->refs, 1) == 1)
        free(cl_map_take(&contexts, context));
}

/* ---- queues ---- */

/* A released one whose work is all recorded, else a new one. */
static struct cl_queue *queue_record(void)
{
    pthread_mutex_lock(&reuse);
    struct cl_queue *q = atomic_load(&cl_queues);
    while (q && !(atomic_load(&q->is_dead) && atomic_load(&q->n_pending) == 0))
        q = q->next_queue;
    if (q) {
        atomic_store(&q->is_dead, false);
        pthread_mutex_unlock(&reuse);
        free(q->asked);
        q->asked = NULL;
        q->n_asked = 0;
        return q;
    }
    q = calloc(1, sizeof *q);
    if (q) {
        pthread_mutex_init(&q->lock, NULL);
        pthread_mutex_init(&q->drain, NULL);
        q->last = &q->first;
        q->next_queue = atomic_load(&cl_queues);
        atomic_store(&cl_queues, q);
    }
    pthread_mutex_unlock(&reuse);
    return q;
}

static void keep_asked(struct cl_queue *q, const cl_queue_properties *asked)
{
    size_t n = 0;
    while (n < 64 && asked[n])
        n += 2;
    q->asked = malloc((n + 1) * sizeof *q->asked);
    if (!q->asked)
        return;
    memcpy(q->asked, asked, (n + 1) * sizeof *q->asked);
    q->n_asked = n + 1;
}

void cl_queue_made(cl_command_queue queue, bool is_profiled, bool is_asked,
                   const cl_queue_properties *asked)
{
    cl_device_id device = NULL;
    cl_context context = NULL;
    cl_command_queue_properties properties = 0;
    cl_real.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    cl_real.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    cl_real.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    struct cl_queue *q = queue_record();
    struct cl_device_info_of *d = cl_device_of(device);
    if (!q || !d) {
        if (q)
            atomic_store(&q->is_dead, true);
        return;
    }
    q->node.handle = queue;
    atomic_store(&q->refs, 1);
    q->device = d;
    q->number = atomic_fetch_add(&n_queues, 1) + 1;
    struct cl_context_info_of *c = cl_context_of(context);
    q->context = c ? c->number : 0;
    q->is_profiled = is_profiled;
    q->is_asked = is_asked;
    q->is_in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    if (asked)
        keep_asked(q, asked);
    char name[64];
    snprintf(name, sizeof name, "Queue %u%s", q->number, q->is_in_order ? "" : " (out of order)");
    q->stream = stave_gpu_stream(d->gpu, q->context, q->number, name);
    if (cl_map_add(&queues, &q->node) != &q->node)
        atomic_store(&q->is_dead, true);
    else
        cl_read_timer(d);
}

struct cl_queue *cl_queue_of(cl_command_queue queue)
{
    struct cl_queue *q = (struct cl_queue *)cl_map_find(&queues, queue);
    if (q || !queue)
        return q;
    cl_command_queue_properties properties = 0;
    if (cl_real.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                      NULL) != CL_SUCCESS)
        return NULL; /* not a queue: the driver will say so */
    bool on = properties & CL_QUEUE_PROFILING_ENABLE;
    cl_queue_made(queue, on, on, NULL);
    return (struct cl_queue *)cl_map_find(&queues, queue);
}

void cl_queue_retained(cl_command_queue queue)
{
    struct cl_queue *q = (struct cl_queue *)cl_map_find(&queues, queue);
    if (q)
        atomic_fetch_add(&q->refs, 1);
}

void cl_queue_released(cl_command_queue queue)
{
    struct cl_queue *q = (struct cl_queue *)cl_map_find(&queues, queue);
    if (!q)
        return;
    cl_drain_queue(q, CL_DRAIN_ALL);
    if (atomic_fetch_sub(&q->refs, 1) == 1 && cl_map_take(&queues, queue))
        atomic_store(&q->is_dead, true);
}

/* ---- kernels ---- */

struct cl_kernel_info_of *cl_kernel_of(cl_kernel kernel)
{
    struct cl_kernel_info_of *k = (struct cl_kernel_info_of *)cl_map_find(&kernels, kernel);
    if (k || !kernel)
        return k;
    char name[NAME_BYTES] = "";
    cl_uint n_args = 0;
    if (cl_real.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL) !=
            CL_SUCCESS ||
        cl_real.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof n_args, &n_args, NULL) !=
            CL_SUCCESS)
        return NULL;
    k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->node.handle = kernel;
    atomic_init(&k->refs, 1);
    atomic_init(&k->n_args, n_args < CL_ARGS_KEPT ? n_args : CL_ARGS_KEPT);
    k->name = cl_keep_name(name);
    struct cl_node *kept = cl_map_add(&kernels, &k->node);
    if (kept != &k->node)
        free(k);
    return (struct cl_kernel_info_of *)kept;
}

void cl_kernel_retained(cl_kernel kernel)
{
    struct cl_kernel_info_of *k = (struct cl_kernel_info_of *)cl_map_find(&kernels, kernel);
    if (k)
        atomic_fetch_add(&k->refs, 1);
}

void cl_kernel_released(cl_kernel kernel)
{
    struct cl_kernel_info_of *k = (struct cl_kernel_info_of *)cl_map_find(&kernels, kernel);
    if (k && atomic_fetch_sub(&k->refs, 1) == 1)
        free(cl_map_take(&kernels, kernel));
}

/* ---- memory ---- */

struct cl_memory *cl_memory_find(const void *handle)
{
    return handle ? (struct cl_memory *)cl_map_find(&memory, handle) : NULL;
}

void cl_memory_made(cl_context context, const void *handle, uint64_t bytes, const char *purpose,
                    bool is_view)
{
    struct cl_context_info_of *c = cl_context_of(context);
    struct cl_memory *m = calloc(1, sizeof *m);
    if (!m || !c) {
        free(m);
        return;
    }
    m->node.handle = handle;
    atomic_init(&m->refs, 1);
    m->bytes = bytes;
    m->is_view = is_view;
    m->device = c->device;
    m->context = c->number;
    if (cl_map_add(&memory, &m->node) != &m->node) {
        free(m); /* an import of the same object */
        return;
    }
    if (!is_view && m->device)
        stave_gpu_add_alloc(&(struct stave_gpu_alloc){
            .at = {.flags = STAVE_GPU_HOST_TIME | STAVE_GPU_NO_FLOW, .begin = stave_now_ns()},
            .device = m->device->gpu,
            .memory = STAVE_GPU_DEVICE_MEMORY,
            .address = (uintptr_t)handle,
            .bytes = bytes,
            .allocator = "OpenCL",
            .purpose = purpose});
}

void cl_memory_retained(const void *handle)
{
    struct cl_memory *m = cl_memory_find(handle);
    if (m)
        atomic_fetch_add(&m->refs, 1);
}

void cl_memory_released(const void *handle)
{
    struct cl_memory *m = cl_memory_find(handle);
    if (!m || atomic_fetch_sub(&m->refs, 1) != 1 || !cl_map_take(&memory, handle))
        return;
    if (!m->is_view && m->device)
        stave_gpu_add_free(&(struct stave_gpu_alloc){
            .at = {.flags = STAVE_GPU_HOST_TIME | STAVE_GPU_NO_FLOW, .begin = stave_now_ns()},
            .device = m->device->gpu,
            .memory = STAVE_GPU_DEVICE_MEMORY,
            .address = (uintptr_t)handle,
            .bytes = m->bytes,
            .allocator = "OpenCL"});
    free(m);
}

struct live {
    uint64_t n, bytes;
};

static void count_live(struct cl_node *n, void *arg)
{
    const struct cl_memory *m = (const struct cl_memory *)n;
    struct live *live = arg;
    if (!m->is_view) {
        live->n++;
        live->bytes += m->bytes;
    }
}

void cl_memory_report_live(void)
{
    struct live live = {0};
    cl_map_each(&memory, count_live, &live);
    if (live.n)
        STAVE_INSTANT("opencl_runtime", "memory never released", "allocations", live.n, "bytes",
                      live.bytes);
}

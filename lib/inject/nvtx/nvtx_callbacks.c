/* The functions that NVTX calls, and their places in its tables.
 *
 * Each does its work and then, where another tool was injected before us, calls that tool's
 * function with that tool's own handles: domains, registered strings and ranges remember them.
 * Without another tool that costs one predicted branch. */
#include "inject/nvtx/nvtx.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

bool nvtx_has_next;

static NvtxFunctionPointer next_core[NVTX_CBID_CORE_SIZE], next_core2[NVTX_CBID_CORE2_SIZE],
    next_cuda[NVTX_CBID_CUDA_SIZE], next_cudart[NVTX_CBID_CUDART_SIZE],
    next_opencl[NVTX_CBID_OPENCL_SIZE], next_sync[NVTX_CBID_SYNC_SIZE];

#define HAS_NEXT(table, id)   __builtin_expect(nvtx_has_next && (table)[id] != NULL, 0)
#define NEXT(table, id, type) ((type)(table)[id])
#define CALL_NEXT(table, id, type, ...)         \
    do {                                        \
        if (HAS_NEXT(table, id))                \
            NEXT(table, id, type)(__VA_ARGS__); \
    } while (0)

/* ---- the default domain ---- */

static struct nvtx_domain *standard(void)
{
    return nvtx_domain_of(NULL);
}

/* Attributes as the next tool must see them: a registered string is its own. */
static const nvtxEventAttributes_t *for_next(const nvtxEventAttributes_t *a,
                                             nvtxEventAttributes_t *copy)
{
    if (!a || a->size < sizeof *a || a->messageType != NVTX_MESSAGE_TYPE_REGISTERED ||
        !a->message.registered)
        return a;
    *copy = *a;
    copy->message.registered = ((const struct nvtx_name *)a->message.registered)->next;
    return copy;
}

static void mark_ex(const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    nvtx_event_read(&e, standard(), a);
    nvtx_mark(&e);
    CALL_NEXT(next_core, NVTX_CBID_CORE_MarkEx, nvtxMarkEx_impl_fntype, for_next(a, &copy));
}

static void mark_a(const char *message)
{
    struct nvtx_event e;
    nvtx_event_init(&e, standard(), message);
    nvtx_mark(&e);
    CALL_NEXT(next_core, NVTX_CBID_CORE_MarkA, nvtxMarkA_impl_fntype, message);
}

static void mark_w(const wchar_t *message)
{
    struct nvtx_event e;
    nvtx_event_init(&e, standard(), nvtx_narrow(message, e.narrow, sizeof e.narrow));
    nvtx_mark(&e);
    CALL_NEXT(next_core, NVTX_CBID_CORE_MarkW, nvtxMarkW_impl_fntype, message);
}

static nvtxRangeId_t start_ex(const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    nvtxRangeId_t next = 0;
    if (HAS_NEXT(next_core, NVTX_CBID_CORE_RangeStartEx))
        next = NEXT(next_core, NVTX_CBID_CORE_RangeStartEx,
                    nvtxRangeStartEx_impl_fntype)(for_next(a, &copy));
    nvtx_event_read(&e, standard(), a);
    return nvtx_start(&e, next);
}

static nvtxRangeId_t start_a(const char *message)
{
    struct nvtx_event e;
    nvtxRangeId_t next = 0;
    if (HAS_NEXT(next_core, NVTX_CBID_CORE_RangeStartA))
        next = NEXT(next_core, NVTX_CBID_CORE_RangeStartA, nvtxRangeStartA_impl_fntype)(message);
    nvtx_event_init(&e, standard(), message);
    return nvtx_start(&e, next);
}

static nvtxRangeId_t start_w(const wchar_t *message)
{
    struct nvtx_event e;
    nvtxRangeId_t next = 0;
    if (HAS_NEXT(next_core, NVTX_CBID_CORE_RangeStartW))
        next = NEXT(next_core, NVTX_CBID_CORE_RangeStartW, nvtxRangeStartW_impl_fntype)(message);
    nvtx_event_init(&e, standard(), nvtx_narrow(message, e.narrow, sizeof e.narrow));
    return nvtx_start(&e, next);
}

static void range_end(nvtxRangeId_t id)
{
    nvtxRangeId_t next = nvtx_end(id, NULL);
    CALL_NEXT(next_core, NVTX_CBID_CORE_RangeEnd, nvtxRangeEnd_impl_fntype, next);
}

static int push_ex(const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    CALL_NEXT(next_core, NVTX_CBID_CORE_RangePushEx, nvtxRangePushEx_impl_fntype,
              for_next(a, &copy));
    nvtx_event_read(&e, standard(), a);
    return nvtx_push(&e);
}

static int push_a(const char *message)
{
    CALL_NEXT(next_core, NVTX_CBID_CORE_RangePushA, nvtxRangePushA_impl_fntype, message);
    return nvtx_push_text(standard(), message);
}

static int push_w(const wchar_t *message)
{
    char narrow[NVTX_TEXT_MAX + 4];
    CALL_NEXT(next_core, NVTX_CBID_CORE_RangePushW, nvtxRangePushW_impl_fntype, message);
    return nvtx_push_text(standard(), nvtx_narrow(message, narrow, sizeof narrow));
}

static int pop(void)
{
    int level = nvtx_pop(standard(), NULL);
    if (HAS_NEXT(next_core, NVTX_CBID_CORE_RangePop))
        NEXT(next_core, NVTX_CBID_CORE_RangePop, nvtxRangePop_impl_fntype)();
    return level;
}

static void name_category_a(uint32_t category, const char *name)
{
    nvtx_category_name(standard(), category, name);
    CALL_NEXT(next_core, NVTX_CBID_CORE_NameCategoryA, nvtxNameCategoryA_impl_fntype, category,
              name);
}

static void name_category_w(uint32_t category, const wchar_t *name)
{
    char narrow[NVTX_TEXT_MAX];
    nvtx_category_name(standard(), category, nvtx_narrow(name, narrow, sizeof narrow));
    CALL_NEXT(next_core, NVTX_CBID_CORE_NameCategoryW, nvtxNameCategoryW_impl_fntype, category,
              name);
}

static void name_thread_a(uint32_t tid, const char *name)
{
    nvtx_thread_name(tid, name);
    CALL_NEXT(next_core, NVTX_CBID_CORE_NameOsThreadA, nvtxNameOsThreadA_impl_fntype, tid, name);
}

static void name_thread_w(uint32_t tid, const wchar_t *name)
{
    char narrow[NVTX_TEXT_MAX];
    nvtx_thread_name(tid, nvtx_narrow(name, narrow, sizeof narrow));
    CALL_NEXT(next_core, NVTX_CBID_CORE_NameOsThreadW, nvtxNameOsThreadW_impl_fntype, tid, name);
}

/* ---- domains ---- */

static nvtxDomainHandle_t next_domain(nvtxDomainHandle_t domain)
{
    return nvtx_domain_of(domain)->next; /* the default one is NULL for everybody */
}

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    nvtx_event_read(&e, nvtx_domain_of(domain), a);
    nvtx_mark(&e);
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainMarkEx, nvtxDomainMarkEx_impl_fntype,
              next_domain(domain), for_next(a, &copy));
}

static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    nvtxRangeId_t next = 0;
    if (HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainRangeStartEx))
        next = NEXT(next_core2, NVTX_CBID_CORE2_DomainRangeStartEx,
                    nvtxDomainRangeStartEx_impl_fntype)(next_domain(domain), for_next(a, &copy));
    nvtx_event_read(&e, nvtx_domain_of(domain), a);
    return nvtx_start(&e, next);
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    nvtxRangeId_t next = nvtx_end(id, NULL);
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainRangeEnd, nvtxDomainRangeEnd_impl_fntype,
              next_domain(domain), next);
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    struct nvtx_event e;
    nvtxEventAttributes_t copy;
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainRangePushEx, nvtxDomainRangePushEx_impl_fntype,
              next_domain(domain), for_next(a, &copy));
    nvtx_event_read(&e, nvtx_domain_of(domain), a);
    return nvtx_push(&e);
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    int level = nvtx_pop(nvtx_domain_of(domain), NULL);
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainRangePop, nvtxDomainRangePop_impl_fntype,
              next_domain(domain));
    return level;
}

/* A resource is a name for something; threads are the ones whose names we can use. */
struct resource {
    nvtxResourceHandle_t next;
};

static const char *resource_name(const nvtxResourceAttributes_t *a, char *narrow, size_t size)
{
    switch (a->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII: return a->message.ascii;
    case NVTX_MESSAGE_TYPE_UNICODE: return nvtx_narrow(a->message.unicode, narrow, size);
    case NVTX_MESSAGE_TYPE_REGISTERED:
        return a->message.registered ? ((const struct nvtx_name *)a->message.registered)->text
                                     : NULL;
    default: return NULL;
    }
}

static void resource_use(const nvtxResourceAttributes_t *a)
{
    char narrow[NVTX_TEXT_MAX];
    const char *name = resource_name(a, narrow, sizeof narrow);
    uint64_t id = a->identifier.ullValue;
    if (a->identifierType == (int32_t)NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE)
        nvtx_thread_name((uint32_t)id, name);
    else if (a->identifierType == (int32_t)NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX &&
             id == (uint64_t)pthread_self())
        nvtx_thread_name((uint32_t)syscall(SYS_gettid), name);
    else
        nvtx_object_name("resource", id, name);
}

static nvtxResourceHandle_t resource_create(nvtxDomainHandle_t domain, nvtxResourceAttributes_t *a)
{
    struct resource *r = calloc(1, sizeof *r);
    if (a && a->size >= sizeof *a)
        resource_use(a);
    if (r && HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainResourceCreate) && a) {
        nvtxResourceAttributes_t copy = *a;
        if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED && a->message.registered)
            copy.message.registered = ((const struct nvtx_name *)a->message.registered)->next;
        r->next = NEXT(next_core2, NVTX_CBID_CORE2_DomainResourceCreate,
                       nvtxDomainResourceCreate_impl_fntype)(next_domain(domain), &copy);
    }
    return (nvtxResourceHandle_t)r;
}

static void resource_destroy(nvtxResourceHandle_t handle)
{
    struct resource *r = (struct resource *)handle;
    if (r)
        CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainResourceDestroy,
                  nvtxDomainResourceDestroy_impl_fntype, r->next);
    free(r);
}

static void domain_category_a(nvtxDomainHandle_t domain, uint32_t category, const char *name)
{
    nvtx_category_name(nvtx_domain_of(domain), category, name);
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainNameCategoryA, nvtxDomainNameCategoryA_impl_fntype,
              next_domain(domain), category, name);
}

static void domain_category_w(nvtxDomainHandle_t domain, uint32_t category, const wchar_t *name)
{
    char narrow[NVTX_TEXT_MAX];
    nvtx_category_name(nvtx_domain_of(domain), category, nvtx_narrow(name, narrow, sizeof narrow));
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainNameCategoryW, nvtxDomainNameCategoryW_impl_fntype,
              next_domain(domain), category, name);
}

/* A handle is needed even when there are too many names: a text of its own, outside the table. */
static struct nvtx_name *registered(nvtxDomainHandle_t domain, const char *text)
{
    struct nvtx_domain *d = nvtx_domain_of(domain);
    text = text ? text : "";
    struct nvtx_name *n = nvtx_name_find(d, text);
    size_t len = n ? 0 : strnlen(text, NVTX_TEXT_MAX);
    if (!n && (n = calloc(1, sizeof *n + len + 1))) {
        n->domain = d;
        n->len = (uint32_t)len;
        memcpy(n->text, text, len);
    }
    return n;
}

static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char *text)
{
    struct nvtx_name *n = registered(domain, text);
    if (n && HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainRegisterStringA))
        n->next = NEXT(next_core2, NVTX_CBID_CORE2_DomainRegisterStringA,
                       nvtxDomainRegisterStringA_impl_fntype)(next_domain(domain), text);
    return (nvtxStringHandle_t)n;
}

static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t *text)
{
    char narrow[NVTX_TEXT_MAX + 1];
    struct nvtx_name *n = registered(domain, nvtx_narrow(text, narrow, sizeof narrow));
    if (n && HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainRegisterStringW))
        n->next = NEXT(next_core2, NVTX_CBID_CORE2_DomainRegisterStringW,
                       nvtxDomainRegisterStringW_impl_fntype)(next_domain(domain), text);
    return (nvtxStringHandle_t)n;
}

/* NULL is the default domain: a program that gets it for a domain of its own still works. */
static nvtxDomainHandle_t handle_of(struct nvtx_domain *d)
{
    return d->is_default ? NULL : (nvtxDomainHandle_t)d;
}

static nvtxDomainHandle_t domain_create_a(const char *name)
{
    struct nvtx_domain *d = nvtx_domain_make(name);
    if (HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainCreateA) && !d->is_default)
        d->next =
            NEXT(next_core2, NVTX_CBID_CORE2_DomainCreateA, nvtxDomainCreateA_impl_fntype)(name);
    return handle_of(d);
}

static nvtxDomainHandle_t domain_create_w(const wchar_t *name)
{
    char narrow[NVTX_TEXT_MAX];
    struct nvtx_domain *d = nvtx_domain_make(nvtx_narrow(name, narrow, sizeof narrow));
    if (HAS_NEXT(next_core2, NVTX_CBID_CORE2_DomainCreateW) && !d->is_default)
        d->next =
            NEXT(next_core2, NVTX_CBID_CORE2_DomainCreateW, nvtxDomainCreateW_impl_fntype)(name);
    return handle_of(d);
}

/* Another shared object may use the domain of this name: it stays. */
static void domain_destroy(nvtxDomainHandle_t domain)
{
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_DomainDestroy, nvtxDomainDestroy_impl_fntype,
              next_domain(domain));
}

static void initialize(const void *reserved)
{
    CALL_NEXT(next_core2, NVTX_CBID_CORE2_Initialize, nvtxInitialize_impl_fntype, reserved);
}

/* ---- names of things on devices: one function per kind, narrow and wide ---- */

#define NAMED(table, module, api, kind, object)                                                   \
    static void name_##api##_a(object o, const char *name)                                        \
    {                                                                                             \
        nvtx_object_name(kind, (uint64_t)(uintptr_t)o, name);                                     \
        CALL_NEXT(table, NVTX_CBID_##module##_Name##api##A, nvtxName##api##A_fakeimpl_fntype, o,  \
                  name);                                                                          \
    }                                                                                             \
    static void name_##api##_w(object o, const wchar_t *name)                                     \
    {                                                                                             \
        char narrow[NVTX_TEXT_MAX];                                                               \
        nvtx_object_name(kind, (uint64_t)(uintptr_t)o, nvtx_narrow(name, narrow, sizeof narrow)); \
        CALL_NEXT(table, NVTX_CBID_##module##_Name##api##W, nvtxName##api##W_fakeimpl_fntype, o,  \
                  name);                                                                          \
    }
#define ROW(module, api)                                                       \
    [NVTX_CBID_##module##_Name##api##A] = (NvtxFunctionPointer)name_##api##_a, \
    [NVTX_CBID_##module##_Name##api##W] = (NvtxFunctionPointer)name_##api##_w

NAMED(next_cuda, CUDA, CuDevice, "CUDA device", nvtx_CUdevice)
NAMED(next_cuda, CUDA, CuContext, "CUDA context", nvtx_CUcontext)
NAMED(next_cuda, CUDA, CuStream, "CUDA stream", nvtx_CUstream)
NAMED(next_cuda, CUDA, CuEvent, "CUDA event", nvtx_CUevent)
NAMED(next_cudart, CUDART, CudaDevice, "CUDA device", int)
NAMED(next_cudart, CUDART, CudaStream, "CUDA stream", nvtx_cudaStream_t)
NAMED(next_cudart, CUDART, CudaEvent, "CUDA event", nvtx_cudaEvent_t)
NAMED(next_opencl, OPENCL, ClDevice, "OpenCL device", nvtx_cl_device_id)
NAMED(next_opencl, OPENCL, ClContext, "OpenCL context", nvtx_cl_context)
NAMED(next_opencl, OPENCL, ClCommandQueue, "OpenCL queue", nvtx_cl_command_queue)
NAMED(next_opencl, OPENCL, ClMemObject, "OpenCL memory", nvtx_cl_mem)
NAMED(next_opencl, OPENCL, ClSampler, "OpenCL sampler", nvtx_cl_sampler)
NAMED(next_opencl, OPENCL, ClProgram, "OpenCL program", nvtx_cl_program)
NAMED(next_opencl, OPENCL, ClEvent, "OpenCL event", nvtx_cl_event)

static const NvtxFunctionPointer ours_cuda[] = {ROW(CUDA, CuDevice), ROW(CUDA, CuContext),
                                                ROW(CUDA, CuStream), ROW(CUDA, CuEvent)};
static const NvtxFunctionPointer ours_cudart[] = {ROW(CUDART, CudaDevice), ROW(CUDART, CudaStream),
                                                  ROW(CUDART, CudaEvent)};
static const NvtxFunctionPointer ours_opencl[] = {
    ROW(OPENCL, ClDevice),    ROW(OPENCL, ClContext), ROW(OPENCL, ClCommandQueue),
    ROW(OPENCL, ClMemObject), ROW(OPENCL, ClSampler), ROW(OPENCL, ClProgram),
    ROW(OPENCL, ClEvent)};

/* ---- synchronisation objects of the user ---- */

/* Same layout as nvtxResourceAttributes_t's head: version, size, message. */
struct sync_attributes {
    uint16_t version, size;
    int32_t message_type;
    nvtxMessageValue_t message;
};

struct sync_object {
    struct nvtx_domain *domain; /* of its own, so that its ranges have their own stack */
    void *next;
    char acquire[NVTX_TEXT_MAX], release[NVTX_TEXT_MAX];
};

static void *sync_create(nvtxDomainHandle_t domain, const void *attributes)
{
    const struct sync_attributes *a = attributes;
    struct sync_object *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    char narrow[NVTX_TEXT_MAX] = "";
    nvtxResourceAttributes_t named = {0};
    if (a && a->size >= sizeof *a) {
        named.messageType = a->message_type;
        named.message = a->message;
    }
    const char *name = resource_name(&named, narrow, sizeof narrow);
    snprintf(s->acquire, sizeof s->acquire, "acquire %s", name ? name : "lock");
    snprintf(s->release, sizeof s->release, "release %s", name ? name : "lock");
    s->domain = nvtx_domain_of(domain);
    if (HAS_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserCreate))
        s->next = NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserCreate,
                       nvtxDomainSyncUserCreate_fakeimpl_fntype)(next_domain(domain), attributes);
    return s;
}

static void sync_destroy(void *handle)
{
    struct sync_object *s = handle;
    if (s)
        CALL_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserDestroy,
                  nvtxDomainSyncUserDestroy_fakeimpl_fntype, s->next);
    free(s);
}

static void sync_acquire(void *handle)
{
    struct sync_object *s = handle;
    if (!s)
        return;
    nvtx_push_text(s->domain, s->acquire);
    CALL_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserAcquireStart,
              nvtxDomainSyncUserAcquireStart_fakeimpl_fntype, s->next);
}

static void sync_failed(void *handle)
{
    struct sync_object *s = handle;
    struct stave_args *args = nvtx_args();
    if (!s)
        return;
    if (args)
        stave_args_bool(args, "failed", true);
    nvtx_pop(s->domain, args);
    CALL_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserAcquireFailed,
              nvtxDomainSyncUserAcquireFailed_fakeimpl_fntype, s->next);
}

static void sync_acquired(void *handle)
{
    struct sync_object *s = handle;
    if (!s)
        return;
    nvtx_pop(s->domain, NULL);
    CALL_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserAcquireSuccess,
              nvtxDomainSyncUserAcquireSuccess_fakeimpl_fntype, s->next);
}

static void sync_releasing(void *handle)
{
    struct sync_object *s = handle;
    if (!s)
        return;
    struct nvtx_event e;
    nvtx_event_init(&e, s->domain, s->release);
    nvtx_mark(&e);
    CALL_NEXT(next_sync, NVTX_CBID_SYNC_DomainSyncUserReleasing,
              nvtxDomainSyncUserReleasing_fakeimpl_fntype, s->next);
}

/* ---- the tables ---- */

#define AT(id, function) [NVTX_CBID_##id] = (NvtxFunctionPointer)(function)

static const NvtxFunctionPointer ours_core[] = {
    AT(CORE_MarkEx, mark_ex),
    AT(CORE_MarkA, mark_a),
    AT(CORE_MarkW, mark_w),
    AT(CORE_RangeStartEx, start_ex),
    AT(CORE_RangeStartA, start_a),
    AT(CORE_RangeStartW, start_w),
    AT(CORE_RangeEnd, range_end),
    AT(CORE_RangePushEx, push_ex),
    AT(CORE_RangePushA, push_a),
    AT(CORE_RangePushW, push_w),
    AT(CORE_RangePop, pop),
    AT(CORE_NameCategoryA, name_category_a),
    AT(CORE_NameCategoryW, name_category_w),
    AT(CORE_NameOsThreadA, name_thread_a),
    AT(CORE_NameOsThreadW, name_thread_w),
};

static const NvtxFunctionPointer ours_core2[] = {
    AT(CORE2_DomainMarkEx, domain_mark),
    AT(CORE2_DomainRangeStartEx, domain_start),
    AT(CORE2_DomainRangeEnd, domain_end),
    AT(CORE2_DomainRangePushEx, domain_push),
    AT(CORE2_DomainRangePop, domain_pop),
    AT(CORE2_DomainResourceCreate, resource_create),
    AT(CORE2_DomainResourceDestroy, resource_destroy),
    AT(CORE2_DomainNameCategoryA, domain_category_a),
    AT(CORE2_DomainNameCategoryW, domain_category_w),
    AT(CORE2_DomainRegisterStringA, register_a),
    AT(CORE2_DomainRegisterStringW, register_w),
    AT(CORE2_DomainCreateA, domain_create_a),
    AT(CORE2_DomainCreateW, domain_create_w),
    AT(CORE2_DomainDestroy, domain_destroy),
    AT(CORE2_Initialize, initialize),
};

static const NvtxFunctionPointer ours_sync[] = {
    AT(SYNC_DomainSyncUserCreate, sync_create),
    AT(SYNC_DomainSyncUserDestroy, sync_destroy),
    AT(SYNC_DomainSyncUserAcquireStart, sync_acquire),
    AT(SYNC_DomainSyncUserAcquireFailed, sync_failed),
    AT(SYNC_DomainSyncUserAcquireSuccess, sync_acquired),
    AT(SYNC_DomainSyncUserReleasing, sync_releasing),
};

#define TABLE(module, name) \
    [NVTX_CB_MODULE_##      \
        module] = {sizeof ours_##name / sizeof(NvtxFunctionPointer), ours_##name, next_##name}

const struct nvtx_table *nvtx_table_of(NvtxCallbackModule module)
{
    static const struct nvtx_table tables[] = {TABLE(CORE, core),     TABLE(CORE2, core2),
                                               TABLE(CUDA, cuda),     TABLE(CUDART, cudart),
                                               TABLE(OPENCL, opencl), TABLE(SYNC, sync)};
    return (unsigned)module < sizeof tables / sizeof *tables && tables[module].n ? &tables[module]
                                                                                 : NULL;
}

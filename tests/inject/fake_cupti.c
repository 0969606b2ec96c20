/* A libcupti.so for machines without a GPU: answers as CUPTI of a chosen version does and fills
 * buffers with records of that version, made of the toolkit's own structs.
 *
 * FAKE_CUPTI_API: cuptiGetVersion's answer. FAKE_CUPTI_SCENE: all (default), owned, failing,
 * refusing, many, cut, old_clock. From 13.0 on the records are walked by the real libcupti
 * (FAKE_CUPTI_REAL), which needs no driver for that; older ones by the sizes of their structs. */
#include "tests/inject/cuda_layout_check.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint64_t (*clock_of_user)(void);
static bool is_enabled[64];
static uint64_t base;
static uint8_t *buffer;
static size_t size, used;
static struct {
    size_t at, bytes;
} records[4096];
static size_t n_records;

static uint32_t api(void)
{
    const char *text = getenv("FAKE_CUPTI_API");
    return text ? (uint32_t)strtoul(text, NULL, 10) : CUPTI_API_VERSION;
}

static bool is_scene(const char *name)
{
    const char *scene = getenv("FAKE_CUPTI_SCENE");
    return strcmp(scene ? scene : "all", name) == 0;
}

static uint64_t now(void)
{
    struct timespec t;
    if (clock_of_user)
        return clock_of_user();
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- records ---- */

static void put(const void *record, size_t bytes)
{
    CUpti_ActivityKind kind = ((const CUpti_Activity *)record)->kind;
    if (!is_enabled[kind] || used + bytes > size)
        return;
    memcpy(buffer + used, record, bytes);
    if (n_records < sizeof records / sizeof *records) {
        records[n_records].at = used;
        records[n_records++].bytes = bytes;
    }
    used += bytes;
}

#define KERNEL(type, more)                                       \
    do {                                                         \
        type k = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, \
                  .start = base + 1000,                          \
                  .end = base + 3000,                            \
                  .deviceId = 1,                                 \
                  .contextId = 2,                                \
                  .streamId = 7,                                 \
                  .gridX = 64,                                   \
                  .gridY = 2,                                    \
                  .gridZ = 1,                                    \
                  .blockX = 128,                                 \
                  .blockY = 1,                                   \
                  .blockZ = 1,                                   \
                  .registersPerThread = 40,                      \
                  .staticSharedMemory = 1024,                    \
                  .dynamicSharedMemory = 2048,                   \
                  .correlationId = 11,                           \
                  .queued = base + 100,                          \
                  .submitted = base + 400,                       \
                  .launchType = 1,                               \
                  .name = "_Z6vecAddPKfS0_Pf"};                  \
        more;                                                    \
        put(&k, sizeof k);                                       \
    } while (0)
#define GRAPH k.graphId = 5, k.graphNodeId = 50

static void kernels(void)
{
    if (api() >= 130000)
        KERNEL(CUpti_ActivityKernel10,
               (GRAPH, k.clusterX = 2, k.clusterY = 1, k.clusterZ = 1, k.isDeviceLaunched = 1));
    else if (api() >= 19)
        KERNEL(CUpti_ActivityKernel9, (GRAPH, k.clusterX = 2, k.clusterY = 1, k.clusterZ = 1));
    else if (api() >= 18)
        KERNEL(CUpti_ActivityKernel8, (GRAPH, k.clusterX = 2, k.clusterY = 1, k.clusterZ = 1));
    else if (api() >= 17)
        KERNEL(CUpti_ActivityKernel7, GRAPH);
    else if (api() >= 15)
        KERNEL(CUpti_ActivityKernel6, GRAPH);
    else if (api() >= 13)
        KERNEL(CUpti_ActivityKernel5, GRAPH);
    else
        KERNEL(CUpti_ActivityKernel4, (void)0);
}

#define COPY(type, more)                                        \
    do {                                                        \
        type k = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,           \
                  .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,  \
                  .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED, \
                  .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, \
                  .flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC,    \
                  .bytes = 4096,                                \
                  .start = base + 4000,                         \
                  .end = base + 5000,                           \
                  .deviceId = 1,                                \
                  .contextId = 2,                               \
                  .streamId = 7,                                \
                  .correlationId = 12};                         \
        more;                                                   \
        put(&k, sizeof k);                                      \
    } while (0)
#define PEER(type, more)                                        \
    do {                                                        \
        type k = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,          \
                  .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,  \
                  .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, \
                  .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, \
                  .bytes = 8192,                                \
                  .start = base + 5000,                         \
                  .end = base + 6000,                           \
                  .deviceId = 1,                                \
                  .contextId = 2,                               \
                  .streamId = 7,                                \
                  .srcDeviceId = 1,                             \
                  .dstDeviceId = 0,                             \
                  .correlationId = 13};                         \
        more;                                                   \
        put(&k, sizeof k);                                      \
    } while (0)
#define SET(type, more)                                             \
    do {                                                            \
        type k = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,               \
                  .value = 255,                                     \
                  .bytes = 512,                                     \
                  .start = base + 6000,                             \
                  .end = base + 6500,                               \
                  .deviceId = 1,                                    \
                  .contextId = 2,                                   \
                  .streamId = 7,                                    \
                  .correlationId = 14,                              \
                  .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE}; \
        more;                                                       \
        put(&k, sizeof k);                                          \
    } while (0)

static void copies(void)
{
    if (api() >= 26)
        COPY(CUpti_ActivityMemcpy6, GRAPH);
    else if (api() >= 17)
        COPY(CUpti_ActivityMemcpy5, GRAPH);
    else if (api() >= 14)
        COPY(CUpti_ActivityMemcpy4, GRAPH);
    else if (api() >= 13)
        COPY(CUpti_ActivityMemcpy3, k.graphNodeId = 50);
    else
        COPY(CUpti_ActivityMemcpy, (void)0);
    if (api() >= 17)
        PEER(CUpti_ActivityMemcpyPtoP4, GRAPH);
    else if (api() >= 14)
        PEER(CUpti_ActivityMemcpyPtoP3, GRAPH);
    else if (api() >= 13)
        PEER(CUpti_ActivityMemcpyPtoP2, k.graphNodeId = 50);
    else
        PEER(CUpti_ActivityMemcpyPtoP, (void)0);
    if (api() >= 17)
        SET(CUpti_ActivityMemset4, GRAPH);
    else if (api() >= 14)
        SET(CUpti_ActivityMemset3, GRAPH);
    else if (api() >= 13)
        SET(CUpti_ActivityMemset2, k.graphNodeId = 50);
    else
        SET(CUpti_ActivityMemset, (void)0);
}

#define MEMORY(type, operation, time, more)                                                \
    do {                                                                                   \
        type k = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2,                                     \
                  .memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_##operation, \
                  .memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,                         \
                  .correlationId = 15,                                                     \
                  .address = 0x7000,                                                       \
                  .bytes = 65536,                                                          \
                  .timestamp = base + (time),                                              \
                  .deviceId = 1,                                                           \
                  .contextId = 2,                                                          \
                  .streamId = 7};                                                          \
        more;                                                                              \
        put(&k, sizeof k);                                                                 \
    } while (0)

static void memory(void)
{
    if (api() >= 26) {
        MEMORY(CUpti_ActivityMemory4, ALLOCATION, 500, (k.source = "libtorch.so"));
        MEMORY(CUpti_ActivityMemory4, RELEASE, 9000, (void)0);
        CUpti_ActivityMemoryPool3 p = {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                       .memoryPoolOperationType = 1,
                                       .deviceId = 1,
                                       .address = 0x9000,
                                       .size = 1 << 20,
                                       .utilizedSize = 77,
                                       .timestamp = base + 300};
        put(&p, sizeof p);
    } else if (api() >= 17) {
        MEMORY(CUpti_ActivityMemory3, ALLOCATION, 500, (void)0);
        MEMORY(CUpti_ActivityMemory3, RELEASE, 9000, (void)0);
    } else {
        MEMORY(CUpti_ActivityMemory2, ALLOCATION, 500, (void)0);
        MEMORY(CUpti_ActivityMemory2, RELEASE, 9000, (void)0);
        CUpti_ActivityMemoryPool p = {.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                      .memoryPoolOperationType = 1,
                                      .deviceId = 1,
                                      .address = 0x9000,
                                      .size = 1 << 20,
                                      .timestamp = base + 300};
        put(&p, sizeof p);
    }
}

static void waits(void)
{
    if (api() >= 26) {
        CUpti_ActivityCudaEvent2 e = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                      .correlationId = 16,
                                      .contextId = 2,
                                      .streamId = 7,
                                      .eventId = 3,
                                      .deviceId = 1,
                                      .deviceTimestamp = base + 6600};
        put(&e, sizeof e);
        CUpti_ActivitySynchronization2 s = {
            .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
            .type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
            .start = base + 7000,
            .end = base + 8000,
            .correlationId = 17,
            .contextId = 2,
            .streamId = 9,
            .cudaEventId = 3};
        put(&s, sizeof s);
    } else {
        CUpti_ActivityCudaEvent e = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                     .correlationId = 16,
                                     .contextId = 2,
                                     .streamId = 7,
                                     .eventId = 3};
        put(&e, sizeof e);
        CUpti_ActivitySynchronization s = {
            .kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
            .type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
            .start = base + 7000,
            .end = base + 8000,
            .correlationId = 17,
            .contextId = 2,
            .streamId = 9,
            .cudaEventId = 3};
        put(&s, sizeof s);
    }
}

static void machine(void)
{
#define DEVICE(type)                                  \
    do {                                              \
        type k = {.kind = CUPTI_ACTIVITY_KIND_DEVICE, \
                  .id = 1,                            \
                  .name = "Fake GPU",                 \
                  .globalMemorySize = 1 << 30,        \
                  .numMultiprocessors = 108,          \
                  .numThreadsPerWarp = 32,            \
                  .computeCapabilityMajor = 8,        \
                  .coreClockRate = 1410000};          \
        k.uuid.bytes[0] = (char)0xab;                 \
        put(&k, sizeof k);                            \
    } while (0)
#define CONTEXT(type)                                                                  \
    do {                                                                               \
        type k = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT, .contextId = 2, .deviceId = 1}; \
        put(&k, sizeof k);                                                             \
    } while (0)
    if (api() >= 26)
        DEVICE(CUpti_ActivityDevice5);
    else if (api() >= 15)
        DEVICE(CUpti_ActivityDevice4);
    else if (api() >= 13)
        DEVICE(CUpti_ActivityDevice3);
    else
        DEVICE(CUpti_ActivityDevice2);
    if (api() >= 130000)
        CONTEXT(CUpti_ActivityContext3);
    else if (api() >= 26)
        CONTEXT(CUpti_ActivityContext2);
    else
        CONTEXT(CUpti_ActivityContext);
    CUpti_ActivityName n = {.kind = CUPTI_ACTIVITY_KIND_NAME,
                            .objectKind = CUPTI_ACTIVITY_OBJECT_STREAM,
                            .name = "copies"};
    n.objectId.dcs.deviceId = 1;
    n.objectId.dcs.contextId = 2;
    n.objectId.dcs.streamId = 9;
    put(&n, sizeof n);
    CUpti_ActivityStream s = {.kind = CUPTI_ACTIVITY_KIND_STREAM, .contextId = 2, .streamId = 9};
    put(&s, sizeof s);
}

static void calls(void)
{
    CUpti_ActivityAPI a = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
                           .cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
                           .start = base + 50,
                           .end = base + 450,
                           .threadId = 4711,
                           .correlationId = 11};
    put(&a, sizeof a);
    a.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    a.cbid = CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2;
    a.start = base + 3500;
    a.end = base + 3600;
    a.correlationId = 12;
    a.returnValue = 2;
    put(&a, sizeof a);
}

static void rest(void)
{
    /* After the call that it belongs to. */
    CUpti_ActivityExternalCorrelation e = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           .externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                           .externalId = 4242,
                                           .correlationId = 11};
    put(&e, sizeof e);
#define OVERHEAD(type)                                                        \
    do {                                                                      \
        type k = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,                       \
                  .overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, \
                  .start = base + 10,                                         \
                  .end = base + 20};                                          \
        put(&k, sizeof k);                                                    \
    } while (0)
    if (api() >= 26)
        OVERHEAD(CUpti_ActivityOverhead3);
    else if (api() >= 22)
        OVERHEAD(CUpti_ActivityOverhead2);
    else
        OVERHEAD(CUpti_ActivityOverhead);
#define UNIFIED(type, counter, n)                                                      \
    do {                                                                               \
        type k = {.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER,                  \
                  .counterKind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_##counter, \
                  .value = (n),                                                        \
                  .start = base + 2000,                                                \
                  .end = base + 2500,                                                  \
                  .address = 0x5000,                                                   \
                  .srcId = 1,                                                          \
                  .dstId = 1};                                                         \
        put(&k, sizeof k);                                                             \
    } while (0)
    if (api() >= 26) {
        UNIFIED(CUpti_ActivityUnifiedMemoryCounter3, BYTES_TRANSFER_HTOD, 2048);
        UNIFIED(CUpti_ActivityUnifiedMemoryCounter3, GPU_PAGE_FAULT, 3);
    } else {
        UNIFIED(CUpti_ActivityUnifiedMemoryCounter2, BYTES_TRANSFER_HTOD, 2048);
        UNIFIED(CUpti_ActivityUnifiedMemoryCounter2, GPU_PAGE_FAULT, 3);
    }
    CUpti_ActivityGraphTrace2 g = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                   .correlationId = 18,
                                   .start = base + 9000,
                                   .end = base + 9500,
                                   .deviceId = 1,
                                   .graphId = 5,
                                   .contextId = 2,
                                   .streamId = 7};
    put(&g, api() >= 26 ? sizeof g : sizeof(CUpti_ActivityGraphTrace));
    CUpti_ActivityPcie p = {.kind = CUPTI_ACTIVITY_KIND_PCIE, .pcieGeneration = 4, .linkWidth = 16};
    put(&p, sizeof p);
    CUpti_ActivityNvLink4 l = {.kind = CUPTI_ACTIVITY_KIND_NVLINK, .physicalNvLinkCount = 12};
    put(&l, sizeof l);
    if (api() >= 130000) /* a kernel whose times CUPTI could not get */
        put(&(CUpti_ActivityKernel10){.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .deviceId = 1},
            sizeof(CUpti_ActivityKernel10));
}

static void one_buffer(void)
{
    size_t most = 0;
    buffer = NULL;
    used = n_records = 0;
    request(&buffer, &size, &most);
    if (!buffer) {
        puts("fake: no buffer");
        return;
    }
    machine();
    kernels();
    calls();
    copies();
    memory();
    waits();
    rest();
    complete(NULL, 0, buffer, size, is_scene("cut") ? records[n_records - 1].at + 20 : used);
}

/* ---- the functions ---- */

#define API __attribute__((visibility("default")))

API CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = api();
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_NOT_COMPATIBLE ? "CUPTI_ERROR_NOT_COMPATIBLE"
                                                 : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *data)
{
    (void)f, (void)data;
    *s = (CUpti_SubscriberHandle)0x1;
    return is_scene("owned")     ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
           : is_scene("failing") ? CUPTI_ERROR_UNKNOWN
                                 : CUPTI_SUCCESS;
}

API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle s)
{
    (void)s;
    int left = 0;
    for (int i = 0; i < 64; i++)
        left += is_enabled[i];
    printf("fake: unsubscribed, %d kinds enabled\n", left);
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
                                               CUpti_BuffersCallbackCompleteFunc c)
{
    request = r;
    complete = c;
    base = now();
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (is_scene("refusing"))
        return CUPTI_ERROR_NOT_COMPATIBLE;
    if ((kind == CUPTI_ACTIVITY_KIND_MEMORY2 && api() < 14) || kind >= 64)
        return CUPTI_ERROR_INVALID_KIND;
    is_enabled[kind] = true;
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    is_enabled[kind] = false;
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    (void)flag;
    if (!is_scene("many")) {
        one_buffer();
        return CUPTI_SUCCESS;
    }
    uint8_t *held[100]; /* a program that is faster than its buffers are read */
    int n = 0;
    size_t bytes, most;
    for (; n < 100; n++) {
        request(&held[n], &bytes, &most);
        if (!held[n])
            break;
    }
    printf("fake: %d buffers\n", n);
    while (n-- > 0)
        complete(NULL, 0, held[n], bytes, 0);
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext c, uint32_t stream, size_t *n)
{
    static bool is_reported;
    (void)c, (void)stream;
    *n = is_reported ? 0 : 17;
    is_reported = true;
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityGetNextRecord(uint8_t *at, size_t valid, CUpti_Activity **record)
{
    static CUptiResult (*real)(uint8_t *, size_t, CUpti_Activity **);
    const char *path = getenv("FAKE_CUPTI_REAL");
    if (api() >= 130000 && path && *path) {
        void *library = real ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void *f = library ? dlsym(library, "cuptiActivityGetNextRecord") : NULL;
        if (f)
            memcpy(&real, &f, sizeof f);
        if (real)
            return real(at, valid, record);
    }
    size_t next = 0;
    if (*record)
        while (next < n_records && at + records[next++].at != (uint8_t *)*record)
            ;
    if (next >= n_records || records[next].at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)(at + records[next].at);
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API &&
                    id == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
                ? "cudaLaunchKernel_v7000"
                : "cuMemcpyHtoDAsync_v2";
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiGetTimestamp(uint64_t *ns)
{
    *ns = now();
    return CUPTI_SUCCESS;
}

API CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f)
{
    if (is_scene("old_clock"))
        return CUPTI_ERROR_NOT_COMPATIBLE;
    clock_of_user = f;
    return CUPTI_SUCCESS;
}

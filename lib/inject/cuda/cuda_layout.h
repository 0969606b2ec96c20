/* Where the fields of CUPTI's activity records lie, in every version that the toolkits 11 to 13
 * write.
 *
 * A record does not say its version: that follows from the version of the libcupti that wrote it.
 * New versions only ever append, so that one table of offsets serves all of them, and a field is
 * there if it ends within the size of the version. A test holds all of this against the toolkit's
 * own structs. A field that is not there reads as 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(record, field, offset, bytes): the fields that are used. */
#define CUDA_FIELDS(X)                          \
    X(KERNEL, registersPerThread, 6, 2)         \
    X(KERNEL, start, 16, 8)                     \
    X(KERNEL, end, 24, 8)                       \
    X(KERNEL, deviceId, 40, 4)                  \
    X(KERNEL, contextId, 44, 4)                 \
    X(KERNEL, streamId, 48, 4)                  \
    X(KERNEL, gridX, 52, 4)                     \
    X(KERNEL, gridY, 56, 4)                     \
    X(KERNEL, gridZ, 60, 4)                     \
    X(KERNEL, blockX, 64, 4)                    \
    X(KERNEL, blockY, 68, 4)                    \
    X(KERNEL, blockZ, 72, 4)                    \
    X(KERNEL, staticSharedMemory, 76, 4)        \
    X(KERNEL, dynamicSharedMemory, 80, 4)       \
    X(KERNEL, localMemoryPerThread, 84, 4)      \
    X(KERNEL, correlationId, 92, 4)             \
    X(KERNEL, name, 104, 8)                     \
    X(KERNEL, queued, 120, 8)                   \
    X(KERNEL, submitted, 128, 8)                \
    X(KERNEL, launchType, 136, 1)               \
    X(KERNEL, graphNodeId, 144, 8)              \
    X(KERNEL, graphId, 156, 4)                  \
    X(KERNEL, channelID, 168, 4)                \
    X(KERNEL, clusterX, 176, 4)                 \
    X(KERNEL, clusterY, 180, 4)                 \
    X(KERNEL, clusterZ, 184, 4)                 \
    X(KERNEL, isDeviceLaunched, 208, 1)         \
    X(MEMCPY, copyKind, 4, 1)                   \
    X(MEMCPY, srcKind, 5, 1)                    \
    X(MEMCPY, dstKind, 6, 1)                    \
    X(MEMCPY, flags, 7, 1)                      \
    X(MEMCPY, bytes, 8, 8)                      \
    X(MEMCPY, start, 16, 8)                     \
    X(MEMCPY, end, 24, 8)                       \
    X(MEMCPY, deviceId, 32, 4)                  \
    X(MEMCPY, contextId, 36, 4)                 \
    X(MEMCPY, streamId, 40, 4)                  \
    X(MEMCPY, correlationId, 44, 4)             \
    X(MEMCPY, graphNodeId, 64, 8)               \
    X(MEMCPY, graphId, 72, 4)                   \
    X(MEMCPY, copyCount, 88, 8)                 \
    X(PEERCPY, srcKind, 5, 1)                   \
    X(PEERCPY, dstKind, 6, 1)                   \
    X(PEERCPY, flags, 7, 1)                     \
    X(PEERCPY, bytes, 8, 8)                     \
    X(PEERCPY, start, 16, 8)                    \
    X(PEERCPY, end, 24, 8)                      \
    X(PEERCPY, deviceId, 32, 4)                 \
    X(PEERCPY, contextId, 36, 4)                \
    X(PEERCPY, streamId, 40, 4)                 \
    X(PEERCPY, srcDeviceId, 44, 4)              \
    X(PEERCPY, dstDeviceId, 52, 4)              \
    X(PEERCPY, correlationId, 60, 4)            \
    X(PEERCPY, graphNodeId, 72, 8)              \
    X(PEERCPY, graphId, 80, 4)                  \
    X(MEMSET, value, 4, 4)                      \
    X(MEMSET, bytes, 8, 8)                      \
    X(MEMSET, start, 16, 8)                     \
    X(MEMSET, end, 24, 8)                       \
    X(MEMSET, deviceId, 32, 4)                  \
    X(MEMSET, contextId, 36, 4)                 \
    X(MEMSET, streamId, 40, 4)                  \
    X(MEMSET, correlationId, 44, 4)             \
    X(MEMSET, flags, 48, 2)                     \
    X(MEMSET, memoryKind, 50, 2)                \
    X(MEMSET, graphNodeId, 64, 8)               \
    X(MEMSET, graphId, 72, 4)                   \
    X(MEMORY, memoryKind, 4, 4)                 \
    X(MEMORY, address, 8, 8)                    \
    X(MEMORY, bytes, 16, 8)                     \
    X(MEMORY, start, 24, 8)                     \
    X(MEMORY, end, 32, 8)                       \
    X(MEMORY, deviceId, 60, 4)                  \
    X(MEMORY, contextId, 64, 4)                 \
    X(MEMORY, name, 72, 8)                      \
    X(MEMORY2, memoryOperationType, 4, 4)       \
    X(MEMORY2, memoryKind, 8, 4)                \
    X(MEMORY2, correlationId, 12, 4)            \
    X(MEMORY2, address, 16, 8)                  \
    X(MEMORY2, bytes, 24, 8)                    \
    X(MEMORY2, timestamp, 32, 8)                \
    X(MEMORY2, deviceId, 52, 4)                 \
    X(MEMORY2, contextId, 56, 4)                \
    X(MEMORY2, streamId, 60, 4)                 \
    X(MEMORY2, name, 64, 8)                     \
    X(MEMORY2, isAsync, 72, 4)                  \
    X(MEMORY2, source, 120, 8)                  \
    X(POOL, memoryPoolOperationType, 4, 4)      \
    X(POOL, memoryPoolType, 8, 4)               \
    X(POOL, correlationId, 12, 4)               \
    X(POOL, deviceId, 20, 4)                    \
    X(POOL, minBytesToKeep, 24, 8)              \
    X(POOL, address, 32, 8)                     \
    X(POOL, size, 40, 8)                        \
    X(POOL, releaseThreshold, 48, 8)            \
    X(POOL, timestamp, 56, 8)                   \
    X(POOL, utilizedSize, 64, 8)                \
    X(SYNC, type, 4, 4)                         \
    X(SYNC, start, 8, 8)                        \
    X(SYNC, end, 16, 8)                         \
    X(SYNC, correlationId, 24, 4)               \
    X(SYNC, contextId, 28, 4)                   \
    X(SYNC, streamId, 32, 4)                    \
    X(SYNC, cudaEventId, 36, 4)                 \
    X(OVERHEAD, overheadKind, 4, 4)             \
    X(OVERHEAD, start, 24, 8)                   \
    X(OVERHEAD, end, 32, 8)                     \
    X(OVERHEAD, correlationId, 40, 4)           \
    X(UNIFIED, counterKind, 4, 4)               \
    X(UNIFIED, value, 8, 8)                     \
    X(UNIFIED, start, 16, 8)                    \
    X(UNIFIED, end, 24, 8)                      \
    X(UNIFIED, address, 32, 8)                  \
    X(UNIFIED, srcId, 40, 4)                    \
    X(UNIFIED, dstId, 44, 4)                    \
    X(UNIFIED, streamId, 48, 4)                 \
    X(GRAPH, correlationId, 4, 4)               \
    X(GRAPH, start, 8, 8)                       \
    X(GRAPH, end, 16, 8)                        \
    X(GRAPH, deviceId, 24, 4)                   \
    X(GRAPH, graphId, 28, 4)                    \
    X(GRAPH, contextId, 32, 4)                  \
    X(GRAPH, streamId, 36, 4)                   \
    X(CONTEXT, contextId, 4, 4)                 \
    X(CONTEXT, deviceId, 8, 4)                  \
    X(CONTEXT, nullStreamId, 14, 2)             \
    X(DEVICE, globalMemoryBandwidth, 8, 8)      \
    X(DEVICE, globalMemorySize, 16, 8)          \
    X(DEVICE, l2CacheSize, 28, 4)               \
    X(DEVICE, numThreadsPerWarp, 32, 4)         \
    X(DEVICE, coreClockRate, 36, 4)             \
    X(DEVICE, numMemcpyEngines, 40, 4)          \
    X(DEVICE, numMultiprocessors, 44, 4)        \
    X(DEVICE, maxWarpsPerMultiprocessor, 52, 4) \
    X(DEVICE, computeCapabilityMajor, 104, 4)   \
    X(DEVICE, computeCapabilityMinor, 108, 4)   \
    X(DEVICE, id, 112, 4)                       \
    X(DEVICE, eccEnabled, 116, 4)               \
    X(DEVICE, uuid, 120, 16)                    \
    X(DEVICE, name, 136, 8)                     \
    X(DEVICE, isMigEnabled, 145, 1)             \
    X(EVENT, correlationId, 4, 4)               \
    X(EVENT, contextId, 8, 4)                   \
    X(EVENT, streamId, 12, 4)                   \
    X(EVENT, eventId, 16, 4)                    \
    X(EVENT, deviceId, 24, 4)                   \
    X(EVENT, deviceTimestamp, 40, 8)            \
    X(API, cbid, 4, 4)                          \
    X(API, start, 8, 8)                         \
    X(API, end, 16, 8)                          \
    X(API, threadId, 28, 4)                     \
    X(API, correlationId, 32, 4)                \
    X(API, returnValue, 36, 4)                  \
    X(EXTERNAL, externalKind, 4, 4)             \
    X(EXTERNAL, externalId, 8, 8)               \
    X(EXTERNAL, correlationId, 16, 4)           \
    X(STREAM, contextId, 4, 4)                  \
    X(STREAM, streamId, 8, 4)                   \
    X(STREAM, priority, 12, 4)                  \
    X(STREAM, flag, 16, 4)                      \
    X(STREAM, correlationId, 20, 4)             \
    X(NAME, objectKind, 4, 4)                   \
    X(NAME, objectId, 8, 12)                    \
    X(NAME, name, 24, 8)                        \
    X(NVLINK, nvlinkVersion, 4, 4)              \
    X(NVLINK, idDev0, 16, 16)                   \
    X(NVLINK, idDev1, 32, 16)                   \
    X(NVLINK, physicalNvLinkCount, 52, 4)       \
    X(NVLINK, bandwidth, 120, 8)                \
    X(PCIE, type, 4, 4)                         \
    X(PCIE, id, 8, 4)                           \
    X(PCIE, pcieGeneration, 16, 2)              \
    X(PCIE, linkRate, 18, 2)                    \
    X(PCIE, linkWidth, 20, 2)

/* X(record, struct of the toolkit, CUPTI's API version that wrote it first, bytes). API versions:
 * 13 is CUDA 11.0, 19 is 12.0, 26 is 12.8, from 13.0 on they are written like 130000. Where the
 * toolkit's notes name no first version, a later one is taken: a field too few, never bytes of the
 * next record. */
#define CUDA_VERSIONS(X)                       \
    X(KERNEL, Kernel4, 0, 144)                 \
    X(KERNEL, Kernel5, 13, 160)                \
    X(KERNEL, Kernel6, 15, 168)                \
    X(KERNEL, Kernel7, 17, 176)                \
    X(KERNEL, Kernel8, 18, 200)                \
    X(KERNEL, Kernel9, 19, 208)                \
    X(KERNEL, Kernel10, 130000, 216)           \
    X(MEMCPY, Memcpy, 0, 64)                   \
    X(MEMCPY, Memcpy3, 13, 72)                 \
    X(MEMCPY, Memcpy4, 14, 80)                 \
    X(MEMCPY, Memcpy5, 17, 88)                 \
    X(MEMCPY, Memcpy6, 26, 96)                 \
    X(PEERCPY, MemcpyPtoP, 0, 72)              \
    X(PEERCPY, MemcpyPtoP2, 13, 80)            \
    X(PEERCPY, MemcpyPtoP3, 14, 88)            \
    X(PEERCPY, MemcpyPtoP4, 17, 96)            \
    X(MEMSET, Memset, 0, 64)                   \
    X(MEMSET, Memset2, 13, 72)                 \
    X(MEMSET, Memset3, 14, 80)                 \
    X(MEMSET, Memset4, 17, 88)                 \
    X(MEMORY, Memory, 0, 80)                   \
    X(MEMORY2, Memory2, 0, 112)                \
    X(MEMORY2, Memory3, 17, 120)               \
    X(MEMORY2, Memory4, 26, 128)               \
    X(POOL, MemoryPool, 0, 64)                 \
    X(POOL, MemoryPool2, 17, 72)               \
    X(POOL, MemoryPool3, 26, 80)               \
    X(SYNC, Synchronization, 0, 40)            \
    X(SYNC, Synchronization2, 26, 56)          \
    X(OVERHEAD, Overhead, 0, 40)               \
    X(OVERHEAD, Overhead2, 22, 48)             \
    X(OVERHEAD, Overhead3, 26, 56)             \
    X(UNIFIED, UnifiedMemoryCounter2, 0, 64)   \
    X(UNIFIED, UnifiedMemoryCounter3, 26, 104) \
    X(GRAPH, GraphTrace, 0, 48)                \
    X(GRAPH, GraphTrace2, 26, 56)              \
    X(CONTEXT, Context, 0, 16)                 \
    X(CONTEXT, Context2, 26, 24)               \
    X(CONTEXT, Context3, 130000, 32)           \
    X(DEVICE, Device2, 0, 144)                 \
    X(DEVICE, Device3, 13, 152)                \
    X(DEVICE, Device4, 15, 176)                \
    X(DEVICE, Device5, 26, 184)                \
    X(EVENT, CudaEvent, 0, 24)                 \
    X(EVENT, CudaEvent2, 26, 56)               \
    X(API, API, 0, 40)                         \
    X(EXTERNAL, ExternalCorrelation, 0, 24)    \
    X(STREAM, Stream, 0, 24)                   \
    X(NAME, Name, 0, 32)                       \
    X(NVLINK, NvLink3, 0, 136)                 \
    X(NVLINK, NvLink4, 15, 136)                \
    X(PCIE, Pcie, 0, 168)

enum cuda_record {
    CUDA_KERNEL,
    CUDA_MEMCPY,
    CUDA_PEERCPY,
    CUDA_MEMSET,
    CUDA_MEMORY,
    CUDA_MEMORY2,
    CUDA_POOL,
    CUDA_SYNC,
    CUDA_OVERHEAD,
    CUDA_UNIFIED,
    CUDA_GRAPH,
    CUDA_CONTEXT,
    CUDA_DEVICE,
    CUDA_EVENT,
    CUDA_API,
    CUDA_EXTERNAL,
    CUDA_STREAM,
    CUDA_NAME,
    CUDA_NVLINK,
    CUDA_PCIE,
    CUDA_RECORDS,
    CUDA_OTHER = CUDA_RECORDS
};

#define CUDA_FIELD_ENUM(record, field, at, bytes) CUDA_##record##_##field,
enum cuda_field { CUDA_FIELDS(CUDA_FIELD_ENUM) CUDA_FIELDS_N };

/* A record in its buffer. */
struct cuda_view {
    const uint8_t *at;
    size_t size; /* what its version has, and what is left of the buffer */
};

enum cuda_record cuda_record_of(uint32_t kind); /* CUPTI_ACTIVITY_KIND_… */
struct cuda_view cuda_view_of(enum cuda_record record, const void *at, size_t left, uint32_t api);
/* The field's bytes, NULL when the record is too short for it. */
const uint8_t *cuda_field_at(struct cuda_view v, enum cuda_field field);
uint64_t cuda_field(struct cuda_view v, enum cuda_field field);
const char *cuda_text(struct cuda_view v, enum cuda_field field); /* NULL: none */

#define CUDA_GET(v, record, field) cuda_field(v, CUDA_##record##_##field)

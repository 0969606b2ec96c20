/* The tables of cuda_layout.h against the toolkit's structs, when fake_cupti.c is compiled.
 *
 * Every offset and size is compared with the headers of CUDA 13, which still define all older
 * versions; older headers lack the newer structs, and the check is left to those who have them. */
#pragma once

#include "inject/cuda/cuda_layout.h"

#include <cupti.h>

#if CUPTI_API_VERSION >= 130000
#define SIZE_IS(record, type, api, size) \
    _Static_assert(sizeof(CUpti_Activity##type) == (size), #type);
CUDA_VERSIONS(SIZE_IS)

#define AT(type, field, offset, size)                                        \
    _Static_assert(offsetof(CUpti_Activity##type, field) == (offset) &&      \
                       sizeof(((CUpti_Activity##type *)0)->field) == (size), \
                   #type "." #field);

/* The newest of each kind has every field … */
#define TYPE_KERNEL                            Kernel10
#define TYPE_MEMCPY                            Memcpy6
#define TYPE_PEERCPY                           MemcpyPtoP4
#define TYPE_MEMSET                            Memset4
#define TYPE_MEMORY                            Memory
#define TYPE_MEMORY2                           Memory4
#define TYPE_POOL                              MemoryPool3
#define TYPE_SYNC                              Synchronization2
#define TYPE_OVERHEAD                          Overhead3
#define TYPE_UNIFIED                           UnifiedMemoryCounter3
#define TYPE_GRAPH                             GraphTrace2
#define TYPE_CONTEXT                           Context3
#define TYPE_DEVICE                            Device5
#define TYPE_EVENT                             CudaEvent2
#define TYPE_API                               API
#define TYPE_EXTERNAL                          ExternalCorrelation
#define TYPE_STREAM                            Stream
#define TYPE_NAME                              Name
#define TYPE_NVLINK                            NvLink4
#define TYPE_PCIE                              Pcie
#define AT_(type, field, offset, size)         AT(type, field, offset, size)
#define NEWEST_IS(record, field, offset, size) AT_(TYPE_##record, field, offset, size)
CUDA_FIELDS(NEWEST_IS)

/* … and the older ones have the same at the same place, up to their end. */
#define KERNEL_HEAD(type)                 \
    AT(type, registersPerThread, 6, 2)    \
    AT(type, start, 16, 8)                \
    AT(type, end, 24, 8)                  \
    AT(type, deviceId, 40, 4)             \
    AT(type, contextId, 44, 4)            \
    AT(type, streamId, 48, 4)             \
    AT(type, gridX, 52, 4)                \
    AT(type, gridY, 56, 4)                \
    AT(type, gridZ, 60, 4)                \
    AT(type, blockX, 64, 4)               \
    AT(type, blockY, 68, 4)               \
    AT(type, blockZ, 72, 4)               \
    AT(type, staticSharedMemory, 76, 4)   \
    AT(type, dynamicSharedMemory, 80, 4)  \
    AT(type, localMemoryPerThread, 84, 4) \
    AT(type, correlationId, 92, 4)        \
    AT(type, name, 104, 8)                \
    AT(type, queued, 120, 8)              \
    AT(type, submitted, 128, 8)           \
    AT(type, launchType, 136, 1)
#define KERNEL_GRAPH(type) AT(type, graphNodeId, 144, 8) AT(type, graphId, 156, 4)
KERNEL_HEAD(Kernel4)
KERNEL_HEAD(Kernel5)
KERNEL_HEAD(Kernel6)
KERNEL_HEAD(Kernel7)
KERNEL_HEAD(Kernel8)
KERNEL_HEAD(Kernel9)
KERNEL_GRAPH(Kernel5)
KERNEL_GRAPH(Kernel6)
KERNEL_GRAPH(Kernel7)
KERNEL_GRAPH(Kernel8)
KERNEL_GRAPH(Kernel9)
AT(Kernel7, channelID, 168, 4)
AT(Kernel8, channelID, 168, 4)
AT(Kernel9, channelID, 168, 4)
AT(Kernel8, clusterX, 176, 4)
AT(Kernel9, clusterX, 176, 4)

#define COPY_HEAD(type)        \
    AT(type, srcKind, 5, 1)    \
    AT(type, dstKind, 6, 1)    \
    AT(type, flags, 7, 1)      \
    AT(type, bytes, 8, 8)      \
    AT(type, start, 16, 8)     \
    AT(type, end, 24, 8)       \
    AT(type, deviceId, 32, 4)  \
    AT(type, contextId, 36, 4) \
    AT(type, streamId, 40, 4)
COPY_HEAD(Memcpy)
COPY_HEAD(Memcpy3)
COPY_HEAD(Memcpy4)
COPY_HEAD(Memcpy5)
COPY_HEAD(MemcpyPtoP)
COPY_HEAD(MemcpyPtoP2)
COPY_HEAD(MemcpyPtoP3)
AT(Memcpy, correlationId, 44, 4)
AT(Memcpy3, correlationId, 44, 4)
AT(Memcpy3, graphNodeId, 64, 8)
AT(Memcpy4, correlationId, 44, 4)
AT(Memcpy4, graphNodeId, 64, 8)
AT(Memcpy4, graphId, 72, 4)
AT(Memcpy5, correlationId, 44, 4)
AT(Memcpy5, graphNodeId, 64, 8)
AT(Memcpy5, graphId, 72, 4)
AT(MemcpyPtoP, correlationId, 60, 4)
AT(MemcpyPtoP2, correlationId, 60, 4)
AT(MemcpyPtoP2, graphNodeId, 72, 8)
AT(MemcpyPtoP3, correlationId, 60, 4)
AT(MemcpyPtoP3, graphId, 80, 4)

#define SET_HEAD(type)             \
    AT(type, value, 4, 4)          \
    AT(type, bytes, 8, 8)          \
    AT(type, start, 16, 8)         \
    AT(type, end, 24, 8)           \
    AT(type, deviceId, 32, 4)      \
    AT(type, contextId, 36, 4)     \
    AT(type, streamId, 40, 4)      \
    AT(type, correlationId, 44, 4) \
    AT(type, memoryKind, 50, 2)
SET_HEAD(Memset)
SET_HEAD(Memset2)
SET_HEAD(Memset3)
AT(Memset2, graphNodeId, 64, 8)
AT(Memset3, graphNodeId, 64, 8)
AT(Memset3, graphId, 72, 4)

#define MEMORY_HEAD(type)               \
    AT(type, memoryOperationType, 4, 4) \
    AT(type, memoryKind, 8, 4)          \
    AT(type, correlationId, 12, 4)      \
    AT(type, address, 16, 8)            \
    AT(type, bytes, 24, 8)              \
    AT(type, timestamp, 32, 8)          \
    AT(type, deviceId, 52, 4)           \
    AT(type, contextId, 56, 4)          \
    AT(type, streamId, 60, 4)           \
    AT(type, name, 64, 8)
MEMORY_HEAD(Memory2)
MEMORY_HEAD(Memory3)
AT(MemoryPool, timestamp, 56, 8)
AT(MemoryPool, releaseThreshold, 48, 8)
AT(MemoryPool2, timestamp, 56, 8)
AT(MemoryPool2, utilizedSize, 64, 8)
AT(Synchronization, type, 4, 4)
AT(Synchronization, start, 8, 8)
AT(Synchronization, end, 16, 8)
AT(Synchronization, correlationId, 24, 4)
AT(Synchronization, contextId, 28, 4)
AT(Synchronization, streamId, 32, 4)
AT(Synchronization, cudaEventId, 36, 4)
AT(Overhead, overheadKind, 4, 4)
AT(Overhead, start, 24, 8)
AT(Overhead, end, 32, 8)
AT(Overhead2, correlationId, 40, 4)
AT(UnifiedMemoryCounter2, counterKind, 4, 4)
AT(UnifiedMemoryCounter2, value, 8, 8)
AT(UnifiedMemoryCounter2, start, 16, 8)
AT(UnifiedMemoryCounter2, dstId, 44, 4)
AT(GraphTrace, correlationId, 4, 4)
AT(GraphTrace, start, 8, 8)
AT(GraphTrace, graphId, 28, 4)
AT(GraphTrace, streamId, 36, 4)
AT(Context, contextId, 4, 4)
AT(Context, deviceId, 8, 4)
AT(Context2, nullStreamId, 14, 2)
AT(Device2, id, 112, 4)
AT(Device2, uuid, 120, 16)
AT(Device2, name, 136, 8)
AT(Device3, name, 136, 8)
AT(Device4, name, 136, 8)
AT(Device4, isMigEnabled, 145, 1)
AT(CudaEvent, eventId, 16, 4)
AT(NvLink3, bandwidth, 120, 8)
#endif

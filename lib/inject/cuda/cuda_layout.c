/* The tables of cuda_layout.h. tests/inject/cuda_layout_check.h holds them against the toolkit's
 * structs. */
#include "inject/cuda/cuda_layout.h"

#include <cupti.h>
#include <string.h>

static const struct {
    uint16_t at;
    uint8_t bytes;
} fields[] = {
#define ROW(record, field, offset, size) [CUDA_##record##_##field] = {offset, size},
    CUDA_FIELDS(ROW)
#undef ROW
};

static const struct {
    uint8_t record;
    uint32_t api;
    uint16_t size;
} versions[] = {
#define ROW(record, type, api, size) {CUDA_##record, api, size},
    CUDA_VERSIONS(ROW)
#undef ROW
};

enum cuda_record cuda_record_of(uint32_t kind)
{
    static const uint8_t records[] = {
        [CUPTI_ACTIVITY_KIND_KERNEL] = CUDA_KERNEL + 1,
        [CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = CUDA_KERNEL + 1,
        [CUPTI_ACTIVITY_KIND_MEMCPY] = CUDA_MEMCPY + 1,
        [CUPTI_ACTIVITY_KIND_MEMCPY2] = CUDA_PEERCPY + 1,
        [CUPTI_ACTIVITY_KIND_MEMSET] = CUDA_MEMSET + 1,
        [CUPTI_ACTIVITY_KIND_MEMORY] = CUDA_MEMORY + 1,
        [49] = CUDA_MEMORY2 + 1, /* MEMORY2, since 11.2 */
        [50] = CUDA_POOL + 1,    /* MEMORY_POOL, since 11.2 */
        [CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = CUDA_SYNC + 1,
        [CUPTI_ACTIVITY_KIND_OVERHEAD] = CUDA_OVERHEAD + 1,
        [CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER] = CUDA_UNIFIED + 1,
        [51] = CUDA_GRAPH + 1, /* GRAPH_TRACE, since 11.7 */
        [CUPTI_ACTIVITY_KIND_CONTEXT] = CUDA_CONTEXT + 1,
        [CUPTI_ACTIVITY_KIND_DEVICE] = CUDA_DEVICE + 1,
        [CUPTI_ACTIVITY_KIND_CUDA_EVENT] = CUDA_EVENT + 1,
        [CUPTI_ACTIVITY_KIND_RUNTIME] = CUDA_API + 1,
        [CUPTI_ACTIVITY_KIND_DRIVER] = CUDA_API + 1,
        [CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] = CUDA_EXTERNAL + 1,
        [CUPTI_ACTIVITY_KIND_STREAM] = CUDA_STREAM + 1,
        [CUPTI_ACTIVITY_KIND_NAME] = CUDA_NAME + 1,
        [CUPTI_ACTIVITY_KIND_NVLINK] = CUDA_NVLINK + 1,
        [CUPTI_ACTIVITY_KIND_PCIE] = CUDA_PCIE + 1,
    };
    return kind < sizeof records && records[kind] ? (enum cuda_record)(records[kind] - 1)
                                                  : CUDA_OTHER;
}

struct cuda_view cuda_view_of(enum cuda_record record, const void *at, size_t left, uint32_t api)
{
    struct cuda_view v = {at, 0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i].record == record && versions[i].api <= api)
            v.size = versions[i].size;
    v.size = v.size < left ? v.size : left;
    return v;
}

const uint8_t *cuda_field_at(struct cuda_view v, enum cuda_field field)
{
    return fields[field].at + (size_t)fields[field].bytes <= v.size ? v.at + fields[field].at
                                                                    : NULL;
}

uint64_t cuda_field(struct cuda_view v, enum cuda_field field)
{
    const uint8_t *at = cuda_field_at(v, field);
    uint64_t value = 0;
    if (at)
        memcpy(&value, at, fields[field].bytes < 8 ? fields[field].bytes : 8);
    return value;
}

const char *cuda_text(struct cuda_view v, enum cuda_field field)
{
    return (const char *)(uintptr_t)cuda_field(v, field);
}

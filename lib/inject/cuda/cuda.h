/* libstave-cuda.so, inside. The driver calls cuda_entry.c, which loads CUPTI (cuda_cupti.c) and
 * gives it buffers; full ones come back and are read by cuda_decode.c, which calls libstave-gpu. */
#pragma once

#include "inject/cuda/cuda_layout.h"

#include <cupti.h>
#include <stave/gpu.h>

/* ---- cuda_cupti.c: CUPTI, loaded at run time. Members after `optional_` are NULL in versions that
 * lack them ---- */

struct cuda_cupti {
    uint32_t api; /* what cuptiGetVersion says */
    CUptiResult (*get_version)(uint32_t *version);
    CUptiResult (*result_string)(CUptiResult result, const char **text);
    CUptiResult (*subscribe)(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *data);
    CUptiResult (*unsubscribe)(CUpti_SubscriberHandle s);
    CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc request,
                                      CUpti_BuffersCallbackCompleteFunc complete);
    CUptiResult (*enable)(CUpti_ActivityKind kind);
    CUptiResult (*disable)(CUpti_ActivityKind kind);
    CUptiResult (*flush_all)(uint32_t flag);
    CUptiResult (*next_record)(uint8_t *buffer, size_t size, CUpti_Activity **record);
    CUptiResult (*dropped)(CUcontext context, uint32_t stream, size_t *n);
    CUptiResult (*callback_name)(CUpti_CallbackDomain domain, uint32_t id, const char **name);
    CUptiResult (*timestamp)(uint64_t *ns);
    CUptiResult (*optional_timestamp_callback)(uint64_t (*clock)(void));
    CUptiResult (*optional_thread_ids)(CUpti_ActivityThreadIdType type);
    CUptiResult (*optional_flush_period)(uint32_t ms);
    CUptiResult (*optional_latency)(uint8_t enable);
    CUptiResult (*optional_unified)(CUpti_ActivityUnifiedMemoryCounterConfig *c, uint32_t n);
};

/* False after one line on stderr. */
bool cuda_cupti_load(struct cuda_cupti *c);
void cuda_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- cuda_decode.c ---- */

/* One reader at a time: the caller holds a lock. `clock` is that of CUPTI's times, 0:
 * CLOCK_MONOTONIC. */
struct cuda_decoder {
    const struct cuda_cupti *cupti;
    stave_gpu_clock_t clock;
};
void cuda_decode(struct cuda_decoder *d, uint8_t *buffer, size_t size);
stave_gpu_device_t cuda_any_device(struct cuda_decoder *d);

/* ---- cuda_names.c ---- */

/* The name without what the compiler adds, where the program has a demangler; a text of ours or the
 * one given. */
const char *cuda_kernel_name(const char *name);
/* "cudaLaunchKernel" of "cudaLaunchKernel_v7000". */
const char *cuda_call_name(const struct cuda_cupti *c, CUpti_CallbackDomain domain, uint32_t id);

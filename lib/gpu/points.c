/* Instants of a device: marks, creation and destruction, records of events, completion; and what a
 * profiler lost. */
#include "gpu/impl.h"

#define POINT(F)                                                                \
    F("", STAVE_I_TRACK, atomic_load_explicit(&s->track, memory_order_relaxed)) \
    F("", STAVE_I_START, start)                                                 \
    F("", STAVE_I_NAME, (uintptr_t)name)                                        \
    WORK_COMMON(F)                                                              \
    WORK_TAIL(F)
SHAPE(point, POINT);

bool stave_gpu_add_point(enum stave_gpu_point kind, const struct stave_gpu_at *where,
                         uint64_t event)
{
    static struct stave_site places[] = {
        [STAVE_GPU_MARK] = PLACE(point, STAVE_KIND_INSTANT, "gpu_user_annotation"),
        [STAVE_GPU_KERNEL_COMPLETE] = PLACE(point, STAVE_KIND_INSTANT, "kernel"),
        [STAVE_GPU_EVENT_RECORD] = PLACE(point, STAVE_KIND_INSTANT, "gpu_event"),
        [STAVE_GPU_STREAM_CREATE] = PLACE(point, STAVE_KIND_INSTANT, "gpu_stream"),
        [STAVE_GPU_STREAM_DESTROY] = PLACE(point, STAVE_KIND_INSTANT, "gpu_stream"),
        [STAVE_GPU_CONTEXT_CREATE] = PLACE(point, STAVE_KIND_INSTANT, "gpu_context"),
        [STAVE_GPU_CONTEXT_DESTROY] = PLACE(point, STAVE_KIND_INSTANT, "gpu_context"),
        [STAVE_GPU_CUSTOM] = PLACE(point, STAVE_KIND_INSTANT, "gpu"),
    };
    static const char *const names[] = {
        [STAVE_GPU_MARK] = "mark",
        [STAVE_GPU_KERNEL_COMPLETE] = "kernel complete",
        [STAVE_GPU_EVENT_RECORD] = "event record",
        [STAVE_GPU_STREAM_CREATE] = "stream create",
        [STAVE_GPU_STREAM_DESTROY] = "stream destroy",
        [STAVE_GPU_CONTEXT_CREATE] = "context create",
        [STAVE_GPU_CONTEXT_DESTROY] = "context destroy",
        [STAVE_GPU_CUSTOM] = "custom",
    };
    if ((unsigned)kind > STAVE_GPU_CUSTOM)
        return false;
    WORK_BEGIN(places[kind], where, names[kind]);
    if (event) {
        if (!rare)
            stave_args_init(&storage);
        stave_args_uint(&storage, "event", event);
        rare = &storage;
    }
    return sv_gpu_emit(&places[kind], (const uint64_t[]){POINT(F_WORD)}, s->device);
}

#define LOST(F)                           \
    F("", STAVE_I_TRACK, d->track)        \
    F("", STAVE_I_NAME, (uintptr_t)cause) \
    F("", STAVE_I_UINT, count)
SHAPE(lost, LOST);

bool stave_gpu_lost(stave_gpu_device_t device, uint64_t count, const char *cause)
{
    static struct stave_site place = PLACE(lost, STAVE_KIND_LOSS, "gpu");
    struct device *d = sv_gpu_device(device);
    return stave_i_on(&place) && sv_gpu_emit(&place, (const uint64_t[]){LOST(F_WORD)}, d);
}

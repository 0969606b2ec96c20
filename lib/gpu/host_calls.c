/* Host calls: slices of the calling thread as they happen, or of any thread afterwards.
 *
 * One call site per programming interface, so that a category that is off costs one branch. Must
 * not lock or allocate. */
#include "gpu/impl.h"

#include <sys/syscall.h>
#include <unistd.h>

#define BEGUN(F)                                    \
    F("", STAVE_I_NAME, (uintptr_t)name)            \
    F(STAVE_CORRELATION, STAVE_I_UINT, correlation) \
    F(STAVE_FLOW_OUT, STAVE_I_UINT, flow)           \
    F("", STAVE_I_ARGS, (uintptr_t)more)
SHAPE(begun, BEGUN);

#define CATEGORIES(F, kind, shape)                                 \
    [STAVE_GPU_CUDA_RUNTIME] = F(shape, kind, "cuda_runtime"),     \
    [STAVE_GPU_CUDA_DRIVER] = F(shape, kind, "cuda_driver"),       \
    [STAVE_GPU_HIP] = F(shape, kind, "hip_runtime"),               \
    [STAVE_GPU_OPENCL] = F(shape, kind, "opencl_runtime"),         \
    [STAVE_GPU_LEVEL_ZERO] = F(shape, kind, "level_zero_runtime"), \
    [STAVE_GPU_OTHER] = F(shape, kind, "gpu_runtime")

static unsigned known(enum stave_gpu_api api)
{
    return (unsigned)api <= STAVE_GPU_OTHER ? (unsigned)api : STAVE_GPU_OTHER;
}

/* Which of the thread's open calls have a slice: the newest in the lowest bit. */
static _Thread_local uint64_t open_calls;

void stave_gpu_call_begin_with(enum stave_gpu_api api, const char *name, stave_gpu_device_t device,
                               uint64_t correlation, const struct stave_args *more)
{
    static struct stave_site places[] = {CATEGORIES(PLACE, STAVE_KIND_BEGIN, begun)};
    struct stave_site *place = &places[known(api)];
    open_calls <<= 1;
    if (!stave_i_on(place))
        return;
    uint64_t flow = stave_gpu_flow(device, correlation);
    uint32_t session = stave_i_emit(place, (const uint64_t[]){BEGUN(F_WORD)});
    stave_i_note_begin(session);
    open_calls |= 1;
}

void stave_gpu_call_begin(enum stave_gpu_api api, const char *name, stave_gpu_device_t device,
                          uint64_t correlation)
{
    stave_gpu_call_begin_with(api, name, device, correlation, NULL);
}

static bool take_open(void)
{
    bool is_open = open_calls & 1;
    open_calls >>= 1;
    return is_open;
}

void stave_gpu_call_end(void)
{
    if (take_open())
        stave_i_end0();
}

#define ENDED(F) F("", STAVE_I_ARGS, (uintptr_t)more)
SHAPE(ended, ENDED);

void stave_gpu_call_end_with(const struct stave_args *more)
{
    static struct stave_site place = PLACE(ended, STAVE_KIND_END, "");
    if (!take_open())
        return;
    if (more)
        stave_i_end(&place, (const uint64_t[]){ENDED(F_WORD)});
    else
        stave_i_end0();
}

#define CALL(F)                                                               \
    F("", STAVE_I_TRACK, track)                                               \
    F("", STAVE_I_START, c->begin_ns)                                         \
    F("", STAVE_I_DUR, c->end_ns > c->begin_ns ? c->end_ns - c->begin_ns : 0) \
    F("", STAVE_I_NAME, (uintptr_t)c->name)                                   \
    F(STAVE_CORRELATION, STAVE_I_UINT, c->correlation)                        \
    F(STAVE_FLOW_OUT, STAVE_I_UINT, flow)                                     \
    F("", STAVE_I_ARGS, (uintptr_t)c->more)
SHAPE(call, CALL);

static _Thread_local struct {
    int64_t tid;
    stave_track_t track;
} last_row; /* profilers report the calls of one thread one after the other */

static stave_track_t calls_row(int64_t tid)
{
    if (tid == 0)
        tid = syscall(SYS_gettid);
    if (last_row.tid != tid || !last_row.track) {
        last_row.tid = tid;
        last_row.track = stave_track(stave_thread_track(tid), "GPU calls");
    }
    return last_row.track;
}

bool stave_gpu_add_call(const struct stave_gpu_call *c)
{
    static struct stave_site places[] = {CATEGORIES(PLACE, STAVE_KIND_COMPLETE, call)};
    struct stave_site *place = &places[known(c->api)];
    if (!stave_i_on(place))
        return false;
    stave_track_t track = calls_row(c->tid);
    uint64_t flow = stave_gpu_flow(c->device, c->correlation);
    return stave_i_emit(place, (const uint64_t[]){CALL(F_WORD)}) != 0;
}

/* The vocabulary of accelerator work (docs/gpu.md): which categories mean what, and what the
 * arguments say.
 *
 * The one list of them: analysis, writers and stages ask here. Kineto's words, the older ones of
 * PyTorch's profiler and TraceSmith's are understood. */
#pragma once

#include "core/stream/dict.h"

enum sv_gpu_class {
    SV_GPU_NONE,
    SV_GPU_KERNEL,
    SV_GPU_COPY,
    SV_GPU_SET,
    SV_GPU_WAIT,  /* cuda_sync: on a stream, but no work */
    SV_GPU_RANGE, /* gpu_user_annotation: what the program calls a stretch of a stream */
    SV_GPU_CALL,  /* a host call: cuda_runtime … */
    SV_GPU_ALLOC, /* instants: allocation and release */
    SV_GPU_POINT, /* other instants of a device */
    SV_GPU_CLASSES
};

/* Of a category; several joined by ',' count by the first that is known. */
enum sv_gpu_class sv_gpu_class(const char *cat, size_t len);

/* Does it keep a device busy? Kernels, copies, fills. */
static inline bool sv_gpu_is_work(enum sv_gpu_class c)
{
    return c >= SV_GPU_KERNEL && c <= SV_GPU_SET;
}
/* Does it belong to a stream? Work, waits, ranges. */
static inline bool sv_gpu_is_on_stream(enum sv_gpu_class c)
{
    return c >= SV_GPU_KERNEL && c <= SV_GPU_RANGE;
}

enum sv_gpu_direction {
    SV_GPU_DIR_UNKNOWN,
    SV_GPU_DIR_H2D,
    SV_GPU_DIR_D2H,
    SV_GPU_DIR_D2D,
    SV_GPU_DIR_P2P,
    SV_GPU_DIR_H2H
};
/* By the name or `copyKind` of a copy: "Memcpy HtoD (Pinned -> Device)", "CopyHostToDevice". */
enum sv_gpu_direction sv_gpu_direction(const char *name, size_t len);

/* Keys of arguments, as strings of one dictionary. */
struct sv_gpu_words {
    sv_str correlation[2], device[3], context[1], stream[2], bytes[3], copy_kind[1];
    uint8_t *classes; /* by category, of the first n strings */
    size_t n, cap;
};
void sv_gpu_words_init(struct sv_gpu_words *w, struct sv_dict *d);
void sv_gpu_words_fini(struct sv_gpu_words *w);
enum sv_gpu_class sv_gpu_class_of(struct sv_gpu_words *w, const struct sv_dict *d, sv_str cat);

/* A whole number, also one that is written as text. */
bool sv_gpu_whole(const struct sv_arg *a, int64_t *out);

/* What an event says of itself. Absent numbers are -1 (correlation: 0). */
struct sv_gpu_facts {
    enum sv_gpu_class class_;
    int64_t device, context, stream, bytes;
    uint64_t correlation;
    enum sv_gpu_direction direction; /* of copies */
};
struct sv_gpu_facts sv_gpu_facts(struct sv_gpu_words *w, const struct sv_dict *d,
                                 const struct sv_event *e);

/* The number in the name of a device or stream track ("GPU 0 A100", "stream 7"), -1 without one. */
int64_t sv_gpu_number_in(struct sv_text name);
/* The device or stream above a track (itself included), 0 when there is none. */
sv_track sv_gpu_device_of(const struct sv_dict *d, sv_track t);
sv_track sv_gpu_stream_of(const struct sv_dict *d, sv_track t);

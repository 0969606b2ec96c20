/* A complete command in the trace's words: the device's slice with its arguments. Called while
 * lists are drained, on any thread. */
#include <string.h>

#include "pending.h"

/* ---- "buffer 4096, 4, local 256" without printf: this is done for every kernel ---- */

struct text {
    char bytes[256];
    size_t len;
};

static void put(struct text *t, const char *s)
{
    while (*s && t->len < sizeof t->bytes - 1)
        t->bytes[t->len++] = *s++;
    t->bytes[t->len] = 0;
}

static void put_number(struct text *t, uint64_t v)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    put(t, digits + at);
}

static void put_arguments(struct text *t, const struct cl_work *w, uint64_t *local_bytes)
{
    static const char *const words[] = {"", "memory ", "local ", "svm "};
    uint32_t n = w->n_args < CL_WORK_ARGS ? w->n_args : CL_WORK_ARGS;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = w->args[i] >> 2;
        enum cl_arg_kind kind = (enum cl_arg_kind)(w->args[i] & 3);
        if (kind == CL_ARG_LOCAL)
            *local_bytes += bytes;
        put(t, i ? ", " : "");
        put(t, words[kind]);
        put_number(t, bytes);
    }
    if (n < w->n_args)
        put(t, ", …");
}

static void put_size(struct text *t, const size_t size[3], uint32_t dims)
{
    for (uint32_t i = 0; i < dims && i < 3; i++) {
        put(t, i ? " x " : "");
        put_number(t, size[i]);
    }
}

static struct stave_gpu_at place(const struct cl_work *w, const struct cl_clock *c)
{
    return (struct stave_gpu_at){
        .stream = w->queue->stream,
        .flags = STAVE_GPU_HOST_TIME,
        .name = w->name,
        .begin = cl_clock_host(c, w->started),
        .end = cl_clock_host(c, w->ended < w->started ? w->started : w->ended),
        .correlation = w->correlation,
        .queued = w->queued ? cl_clock_host(c, w->queued) : w->before,
        .submitted = w->submitted ? cl_clock_host(c, w->submitted) : 0};
}

static uint32_t groups(size_t global, size_t local)
{
    size_t n = local ? (global + local - 1) / local : 0;
    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* The global size is grid times block, unless the driver chose the block or the last group is not
 * full. */
static bool is_even(const struct cl_work *w)
{
    for (uint32_t i = 0; i < w->dims; i++)
        if (!w->local[i] || w->global[i] % w->local[i])
            return false;
    return w->dims > 0;
}

static void record_kernel(const struct cl_work *w, struct stave_gpu_at at)
{
    struct stave_args more;
    struct text global = {.len = 0}, arguments = {.len = 0};
    struct stave_gpu_kernel k = {.at = at};
    stave_args_init(&more);
    if (!is_even(w)) {
        put_size(&global, w->global, w->dims);
        stave_args_text_n(&more, "global size", global.bytes, global.len);
    }
    for (uint32_t i = 0; i < 3 && w->local[0]; i++) {
        k.grid[i] = i < w->dims ? groups(w->global[i], w->local[i]) : 1;
        k.block[i] = i < w->dims ? (uint32_t)w->local[i] : 1;
    }
    if (w->n_args) {
        put_arguments(&arguments, w, &k.dynamic_shared);
        stave_args_text_n(&more, "arguments", arguments.bytes, arguments.len);
    }
    k.at.more = &more;
    stave_gpu_add_kernel(&k);
}

static void record_copy(const struct cl_work *w, struct stave_gpu_at at)
{
    bool is_up = w->direction == STAVE_GPU_H2D, is_down = w->direction == STAVE_GPU_D2H;
    struct stave_args more;
    struct stave_gpu_copy copy = {
        .at = at,
        .kind = w->direction,
        .from = is_up ? STAVE_GPU_PAGEABLE : STAVE_GPU_DEVICE_MEMORY,
        .to = is_down ? STAVE_GPU_PAGEABLE : STAVE_GPU_DEVICE_MEMORY,
        .bytes = w->bytes,
    };
    if (w->kind == CL_WORK_MAP) {
        stave_args_init(&more);
        stave_args_uint(&more, "mapped bytes", w->bytes);
        copy.bytes = 0;
        copy.at.more = &more;
    }
    stave_gpu_add_copy(&copy);
}

static void record_wait(const struct cl_work *w, struct stave_gpu_at at)
{
    struct stave_args more;
    stave_args_init(&more);
    stave_args_uint(&more, "events", w->n_waits);
    at.more = &more;
    stave_gpu_add_wait(&(struct stave_gpu_wait){.at = at, .kind = STAVE_GPU_STREAM_WAIT});
}

void cl_record_work(const struct cl_work *w, const struct cl_clock *clock)
{
    struct stave_gpu_at at = place(w, clock);
    switch (w->kind) {
    case CL_WORK_KERNEL: record_kernel(w, at); break;
    case CL_WORK_COPY:
    case CL_WORK_MAP: record_copy(w, at); break;
    case CL_WORK_FILL:
        stave_gpu_add_set(&(struct stave_gpu_set){
            .at = at, .memory = STAVE_GPU_DEVICE_MEMORY, .bytes = w->bytes});
        break;
    case CL_WORK_MARK:
        at.begin = at.end;
        stave_gpu_add_point(STAVE_GPU_MARK, &at, 0);
        break;
    case CL_WORK_WAIT: record_wait(w, at); break;
    }
}

/* It ended in an error, or its times cannot be had: where it was enqueued, with what is known. */
void cl_record_failed(const struct cl_work *w)
{
    struct stave_args more;
    stave_args_init(&more);
    if (w->status < 0)
        stave_args_int(&more, "error", w->status);
    else
        stave_args_text(&more, "error", "the driver has no times for it");
    stave_gpu_add_point(STAVE_GPU_MARK,
                        &(struct stave_gpu_at){.stream = w->queue->stream,
                                               .flags = STAVE_GPU_HOST_TIME,
                                               .name = w->name ? w->name : "command failed",
                                               .begin = w->after,
                                               .correlation = w->correlation,
                                               .more = &more},
                        0);
}

/* gpu_report [KERNELS]: the GPU report on so many kernels (5 M) with their launches, copies and
 * steps.
 *
 * The trace is made in memory, so that no reader is measured with it. Prints `name value unit`
 * lines; fails when the report does not add up. */
#include "subjects/gpu/figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STREAMS = 4, NAMES = 200, PER_STEP = 1000 };

struct maker {
    struct sv_dict *d;
    struct sv_sink *sink;
    sv_track host, streams[STREAMS];
    sv_str names[NAMES], kernel, copy, call, launch, copy_name, step_cat;
    sv_str correlation, device, stream, bytes;
};

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void init(struct maker *m, struct sv_trace *t)
{
    char name[32];
    m->sink = sv_trace_sink(t);
    m->host = sv_dict_thread(m->d, 0, 100, 100);
    for (int i = 0; i < STREAMS; i++)
        m->streams[i] = sv_dict_thread(m->d, 0, 0, i);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "kernel_%d", i);
        m->names[i] = sv_dict_cstr(m->d, name);
    }
    m->kernel = sv_dict_cstr(m->d, "kernel");
    m->copy = sv_dict_cstr(m->d, "gpu_memcpy");
    m->call = sv_dict_cstr(m->d, "cuda_runtime");
    m->launch = sv_dict_cstr(m->d, "cudaLaunchKernel");
    m->copy_name = sv_dict_cstr(m->d, "Memcpy HtoD (Pinned -> Device)");
    m->step_cat = sv_dict_cstr(m->d, "user_annotation");
    m->correlation = sv_dict_cstr(m->d, "correlation");
    m->device = sv_dict_cstr(m->d, "device");
    m->stream = sv_dict_cstr(m->d, "stream");
    m->bytes = sv_dict_cstr(m->d, "bytes");
}

static void put(struct maker *m, struct sv_event e, struct sv_arg *args, uint16_t n)
{
    struct sv_err err = {0};
    e.kind = SV_SLICE;
    e.args = args;
    e.n_args = n;
    if (m->sink->write(m->sink, &e, 1, &err) < 0) {
        fprintf(stderr, "gpu_report: %s\n", err.msg);
        exit(1);
    }
}

static void put_kernel(struct maker *m, uint64_t i)
{
    int64_t at = (int64_t)i * 10000;
    bool is_copy = i % 10 == 0;
    unsigned stream = (unsigned)(i % STREAMS);
    struct sv_arg args[] = {{.key = m->correlation, .type = SV_ARG_INT, .i = (int64_t)i + 1},
                            {.key = m->device, .type = SV_ARG_INT, .i = 0},
                            {.key = m->stream, .type = SV_ARG_INT, .i = stream},
                            {.key = m->bytes, .type = SV_ARG_INT, .i = 4096}};
    put(m,
        (struct sv_event){
            .ts_ns = at, .dur_ns = 3000, .track = m->host, .name = m->launch, .cat = m->call},
        args, 1);
    put(m,
        (struct sv_event){.ts_ns = at + 8000,
                          .dur_ns = 7000 + (int64_t)(i * 2654435761u % 5000),
                          .track = m->streams[stream],
                          .name = is_copy ? m->copy_name : m->names[i % NAMES],
                          .cat = is_copy ? m->copy : m->kernel},
        args, is_copy ? 4 : 3);
}

static void put_steps(struct maker *m, uint64_t kernels)
{
    char name[32];
    for (uint64_t i = 0; i < kernels / PER_STEP; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)i);
        put(m,
            (struct sv_event){.ts_ns = (int64_t)(i * PER_STEP) * 10000,
                              .dur_ns = PER_STEP * 10000,
                              .track = m->host,
                              .name = sv_dict_cstr(m->d, name),
                              .cat = m->step_cat},
            NULL, 0);
    }
}

int main(int argc, char **argv)
{
    uint64_t kernels = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000000;
    struct maker m = {.d = sv_dict_new()};
    struct sv_trace *t = sv_trace_new(m.d, NULL, 0);
    struct sv_err err = {0};
    struct sv_gpu_report r;
    init(&m, t);
    put_steps(&m, kernels);
    for (uint64_t i = 0; i < kernels; i++)
        put_kernel(&m, i);
    if (sv_trace_finish(t, &err) < 0)
        return 1;
    double start = seconds();
    sv_gpu_report_make(&r, t, NULL);
    printf("gpu_report %.2f s\n", seconds() - start);
    bool is_whole = r.n_work == kernels && r.without_launch == 0 && r.without_work == 0 &&
                    r.n_devices == 1 && r.n_streams == STREAMS;
    sv_gpu_report_fini(&r);
    sv_trace_free(t);
    sv_dict_free(m.d);
    return is_whole ? 0 : 1;
}

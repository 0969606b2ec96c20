/* What a GPU event costs its caller, in a session that drops what does not fit: sdk_gpu [EVENTS].
 * Prints "ns NAME VALUE" lines; run it with STAVE_OUT=/dev/shm/x.pftrace STAVE_FULL=block or
 * without for the cost of "off". */
#include <stave/gpu.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15 };

static void report(const char *name, double best)
{
    printf("ns %-20s %8.1f\n", name, best);
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : 20000;
    stave_gpu_device_t gpu = stave_gpu_device(0, &(struct stave_gpu_device_info){.name = "bench"});
    stave_gpu_stream_t stream = stave_gpu_stream(gpu, 1, 7, NULL);
    double kernel = 1e9, call = 1e9, plain = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t t0 = stave_now_ns();
        for (int64_t i = 0; i < n; i++) {
            struct stave_gpu_kernel k = {.at = {.stream = stream,
                                                .name = "ampere_sgemm_128x64_tn",
                                                .begin = t0 + i * 10,
                                                .end = t0 + i * 10 + 5,
                                                .correlation = (uint64_t)i + 1},
                                         .grid = {256, 1, 1},
                                         .block = {128, 1, 1},
                                         .registers = 32};
            stave_gpu_add_kernel(&k);
        }
        int64_t t1 = stave_now_ns();
        stave_flush();
        int64_t t2 = stave_now_ns();
        for (int64_t i = 0; i < n; i++) {
            stave_gpu_call_begin(STAVE_GPU_CUDA_RUNTIME, "cudaLaunchKernel", gpu, (uint64_t)i + 1);
            stave_gpu_call_end();
        }
        int64_t t3 = stave_now_ns();
        stave_flush();
        int64_t t4 = stave_now_ns();
        for (int64_t i = 0; i < n; i++)
            stave_complete(STAVE_PROCESS, "kernel", "gemm", t4 + i * 10, 5, "correlation", i,
                           "stream", 7);
        int64_t t5 = stave_now_ns();
        stave_flush();
        double a = (double)(t1 - t0) / (double)n, b = (double)(t3 - t2) / (double)n,
               c = (double)(t5 - t4) / (double)n;
        kernel = a < kernel ? a : kernel;
        call = b < call ? b : call;
        plain = c < plain ? c : plain;
    }
    report("gpu_kernel", kernel);
    report("gpu_call", call);
    report("complete_2_args", plain);
    return 0;
}

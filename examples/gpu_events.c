/* Six events of a GPU, measured elsewhere and recorded after the fact: allocation, copies, a kernel
 * and its completion on the streams of a device, with their parameters, and an arrow through the
 * events of each correlation number.
 *
 *     STAVE_OUT=gpu.pftrace gpu_events && stave convert gpu.pftrace --dialect tracesmith -o
 *     gpu.json */
#include <stave/gpu.h>

#define MIB 1048576

static int64_t base_ns;

static struct stave_gpu_at at(stave_gpu_stream_t stream, const char *name, int64_t start_us,
                              int64_t dur_us, uint64_t correlation)
{
    return (struct stave_gpu_at){.stream = stream,
                                 .name = name,
                                 .begin = base_ns + start_us * 1000,
                                 .end = base_ns + (start_us + dur_us) * 1000,
                                 .correlation = correlation};
}

static void put_dims(struct stave_args *a, const char *key, unsigned x, unsigned y, unsigned z)
{
    stave_args_list(a, key);
    stave_args_uint(a, NULL, x);
    stave_args_uint(a, NULL, y);
    stave_args_uint(a, NULL, z);
    stave_args_end(a);
}

/* A kernel's end as an event of its own, with the same parameters. */
static void add_completion(stave_gpu_stream_t stream)
{
    struct stave_args more;
    stave_args_init(&more);
    put_dims(&more, "grid", 256, 1, 1);
    put_dims(&more, "block", 256, 1, 1);
    stave_args_uint(&more, "registers per thread", 32);
    struct stave_gpu_at end = at(stream, "vectorAdd", 1850, 0, 2);
    end.more = &more;
    stave_gpu_add_point(STAVE_GPU_KERNEL_COMPLETE, &end, 0);
}

int main(void)
{
    base_ns = (stave_now_ns() - 10000000) / 1000 * 1000;
    stave_gpu_device_t gpu = stave_gpu_device(0, NULL);
    stave_gpu_stream_t first = stave_gpu_stream(gpu, 0, 0, NULL),
                       second = stave_gpu_stream(gpu, 0, 1, NULL);
    stave_gpu_add_alloc(&(struct stave_gpu_alloc){
        .at = at(first, "cudaMalloc", 1000, 50, 1), .address = 0x100000000, .bytes = MIB});
    stave_gpu_add_copy(&(struct stave_gpu_copy){.at = at(second, "cudaMemcpy", 1100, 200, 1),
                                                .kind = STAVE_GPU_H2D,
                                                .bytes = MIB,
                                                .from_address = 0x7fff00000000,
                                                .to_address = 0x100000000});
    stave_gpu_add_kernel(&(struct stave_gpu_kernel){.at = at(second, "vectorAdd", 1350, 500, 2),
                                                    .grid = {256, 1, 1},
                                                    .block = {256, 1, 1},
                                                    .registers = 32});
    add_completion(second);
    stave_gpu_add_copy(&(struct stave_gpu_copy){.at = at(second, "cudaMemcpy", 1900, 180, 3),
                                                .kind = STAVE_GPU_D2H,
                                                .bytes = MIB,
                                                .from_address = 0x100000000,
                                                .to_address = 0x7fff00000000});
    stave_gpu_add_wait(&(struct stave_gpu_wait){
        .at = at(second, "cudaStreamSynchronize", 2100, 50, 3), .kind = STAVE_GPU_STREAM_SYNC});
    return 0;
}

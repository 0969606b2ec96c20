/* What a user of stave/gpu.h writes: gpu_feed SCENE. Checked by gpu.sh. */
#include <pthread.h>
#include <stave/gpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t t0;

static struct stave_gpu_at work(stave_gpu_stream_t s, const char *name, int64_t begin_us,
                                int64_t dur_us, uint64_t correlation)
{
    return (struct stave_gpu_at){.stream = s,
                                 .name = name,
                                 .begin = t0 + begin_us * 1000,
                                 .end = t0 + (begin_us + dur_us) * 1000,
                                 .correlation = correlation};
}

static void rare_members(stave_gpu_stream_t s)
{
    const char *stack[] = {"inner", "outer"};
    struct stave_args more;
    stave_args_init(&more);
    stave_args_text(&more, "note", "a \"quoted\" word");
    struct stave_gpu_kernel k = {.at = work(s, "rare", 100, 10, 8),
                                 .static_shared = 16,
                                 .dynamic_shared = 32,
                                 .occupancy = 62.5};
    k.at.queued = k.at.begin - 3000;
    k.at.submitted = k.at.begin - 2000;
    k.at.graph = 5;
    k.at.graph_node = 6;
    k.at.thread = 77;
    k.at.stack = stack;
    k.at.n_stack = 2;
    k.at.more = &more;
    stave_gpu_add_kernel(&k);
}

static void memory(stave_gpu_device_t gpu, stave_gpu_stream_t s)
{
    struct stave_gpu_alloc a = {.at = work(s, NULL, 200, 0, 0),
                                .address = 0x1000,
                                .bytes = 4096,
                                .allocator = "caching",
                                .purpose = "gradient"};
    stave_gpu_add_alloc(&a);
    a = (struct stave_gpu_alloc){
        .at = work(0, "cudaMalloc", 201, 0, 0), .device = gpu, .address = 0x9000, .bytes = 100};
    stave_gpu_add_alloc(&a);
    a = (struct stave_gpu_alloc){.at = work(0, "cudaMallocHost", 202, 0, 0),
                                 .device = gpu,
                                 .memory = STAVE_GPU_PINNED,
                                 .bytes = 1 << 20};
    stave_gpu_add_alloc(&a);
    a = (struct stave_gpu_alloc){.at = work(s, NULL, 203, 0, 0), .address = 0x1000};
    stave_gpu_add_free(&a);
}

/* Every kind of event, once. */
static void scene_all(void)
{
    stave_gpu_device_t gpu = stave_gpu_device(
        0, &(struct stave_gpu_device_info){
               .name = "Model X", .vendor = "ACME", .total_memory = 1 << 30, .warp_size = 32});
    stave_gpu_stream_t s = stave_gpu_stream(gpu, 1, 7, NULL),
                       q = stave_gpu_stream(gpu, 0, 2, "Queue 2");
    stave_gpu_call_begin(STAVE_GPU_CUDA_RUNTIME, "cudaLaunchKernel", 0, 1);
    stave_gpu_call_end();
    stave_gpu_add_kernel(&(struct stave_gpu_kernel){.at = work(s, "gemm", 0, 50, 1),
                                                    .grid = {256, 2, 1},
                                                    .block = {128, 1, 4},
                                                    .registers = 32});
    rare_members(s);
    stave_gpu_add_copy(&(struct stave_gpu_copy){.at = work(q, NULL, 60, 10, 2),
                                                .from = STAVE_GPU_PINNED,
                                                .to = STAVE_GPU_DEVICE_MEMORY,
                                                .bytes = 20000,
                                                .from_address = 0x7000,
                                                .to_address = 0x1000});
    stave_gpu_add_copy(&(struct stave_gpu_copy){
        .at = work(q, NULL, 70, 10, 3), .kind = STAVE_GPU_P2P, .bytes = 8, .to_device = 1});
    stave_gpu_add_set(
        &(struct stave_gpu_set){.at = work(q, NULL, 80, 5, 4), .bytes = 64, .value = 255});
    stave_gpu_add_wait(&(struct stave_gpu_wait){.at = work(s, NULL, 90, 5, 5),
                                                .kind = STAVE_GPU_STREAM_WAIT,
                                                .event = 3,
                                                .wait_on_stream = 2,
                                                .wait_on_correlation = 4});
    stave_gpu_add_wait(
        &(struct stave_gpu_wait){.at = work(s, NULL, 95, 1, 6), .kind = STAVE_GPU_DEVICE_SYNC});
    stave_gpu_add_collective(&(struct stave_gpu_collective){.at = work(s, NULL, 120, 30, 9),
                                                            .kind = STAVE_GPU_REDUCE_SCATTER,
                                                            .reduction = "Sum",
                                                            .data_type = "BFloat16",
                                                            .group = "dp",
                                                            .rank = 1,
                                                            .world_size = 8,
                                                            .count = 512,
                                                            .bytes = 1024});
    struct stave_gpu_at range = work(q, "forward", 0, 500, 0);
    stave_gpu_add_range(&range);
    for (int kind = STAVE_GPU_MARK; kind <= STAVE_GPU_CUSTOM; kind++) {
        struct stave_gpu_at at = work(s, NULL, 300 + kind, 0, 0);
        stave_gpu_add_point((enum stave_gpu_point)kind, &at,
                            kind == STAVE_GPU_EVENT_RECORD ? 3 : 0);
    }
    memory(gpu, s);
    stave_gpu_add_counter(gpu, "SM %", "%", t0 + 1000, 87.5);
    stave_gpu_lost(gpu, 12, "CUPTI buffers");
    stave_gpu_add_call(&(struct stave_gpu_call){.api = STAVE_GPU_OPENCL,
                                                .name = "clEnqueueNDRangeKernel",
                                                .begin_ns = t0 + 1000,
                                                .end_ns = t0 + 2000,
                                                .correlation = 10});
    struct stave_gpu_at nowhere = work(0, "no stream", 400, 1, 0);
    stave_gpu_add_range(&nowhere);
}

/* A device that counts in µs, 1 s behind, 100 ppm fast: the middle of two ties, and past them. */
static void scene_clock(void)
{
    stave_gpu_clock_t c = stave_gpu_clock("device", 1000000);
    int64_t now = 5000000000;
    if (stave_gpu_clock("device", 0) != c || stave_gpu_clock_ns(c, 7) != 7000)
        exit(1);
    stave_gpu_clock_tie(c, 1000000, now, 50);
    if (stave_gpu_clock_ns(c, 1000010) != now + 10000)
        exit(2);
    stave_gpu_clock_tie(c, 2000000, now + 1000100000, 50);
    if (stave_gpu_clock_ns(c, 1500000) != now + 500050000 ||
        stave_gpu_clock_ns(c, 3000000) != now + 2000200000 ||
        stave_gpu_clock_ns(c, 500000) != now - 500050000)
        exit(3);
    for (int i = 3; i < 40; i++)
        stave_gpu_clock_tie(c, i * 1000000, now + i * INT64_C(1000000000), 50);
    if (stave_gpu_clock_ns(c, 30500000) != now + INT64_C(30500000000))
        exit(4);
    stave_gpu_clock_tie(c, 5, now, 50); /* it was reset */
    if (stave_gpu_clock_ns(c, 15) != now + 10000)
        exit(5);
    stave_gpu_device_t gpu = stave_gpu_device(3, &(struct stave_gpu_device_info){.clock = c});
    struct stave_gpu_at at = {
        .stream = stave_gpu_stream(gpu, 0, 1, NULL), .name = "ticks", .begin = 15, .end = 25};
    stave_gpu_add_range(&at);
    at = work(at.stream, "host time", 0, 1, 0);
    at.flags = STAVE_GPU_HOST_TIME;
    stave_gpu_add_range(&at);
}

enum { THREADS = 4, EACH = 5000 };

static void *feed(void *arg)
{
    uint64_t thread = (uintptr_t)arg;
    for (uint64_t i = 0; i < EACH; i++) {
        stave_gpu_device_t gpu = stave_gpu_device((uint32_t)(i % 3), NULL);
        stave_gpu_stream_t s = stave_gpu_stream(gpu, 1, i % 7, NULL);
        uint64_t correlation = thread * EACH + i + 1;
        stave_gpu_call_begin(STAVE_GPU_HIP, "launch", gpu, correlation);
        stave_gpu_call_end();
        struct stave_gpu_kernel k = {.at = work(s, "k", (int64_t)correlation * 10, 5, correlation)};
        stave_gpu_add_kernel(&k);
        struct stave_gpu_alloc a = {
            .device = gpu, .at = {.begin = t0}, .address = correlation << 8, .bytes = 10};
        stave_gpu_add_alloc(&a);
        if (i % 2)
            stave_gpu_add_free(&a);
    }
    return NULL;
}

static void scene_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, feed, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The same number means other work: on a device with numbers of its own, and in another process. */
static void scene_flows(void)
{
    stave_gpu_device_t shared = stave_gpu_device(0, NULL), other = stave_gpu_device(1, NULL);
    stave_gpu_device_t own =
        stave_gpu_device(2, &(struct stave_gpu_device_info){.has_own_correlations = true});
    uint64_t flow = stave_gpu_flow(shared, 5);
    if (flow == 0 || stave_gpu_flow(other, 5) != flow || stave_gpu_flow(own, 5) == flow ||
        stave_gpu_flow(0, 5) != flow || stave_gpu_flow(shared, 6) == flow ||
        stave_gpu_flow(shared, 0))
        exit(1);
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(stave_gpu_flow(shared, 5) == flow ? 2 : 0);
    if (waitpid(pid, &status, 0) != pid || status)
        exit(2);
}

int main(int argc, char **argv)
{
    t0 = stave_now_ns() - 1000000000;
    const char *scene = argc > 1 ? argv[1] : "all";
    if (strcmp(scene, "clock") == 0)
        scene_clock();
    else if (strcmp(scene, "threads") == 0)
        scene_threads();
    else if (strcmp(scene, "flows") == 0)
        scene_flows();
    else
        scene_all();
    return 0;
}

/* Six events of a GPU, measured elsewhere and recorded after the fact: allocation, copies, a kernel and its completion on the streams of a
 * device, with their parameters, and an arrow from the first to the last event of each correlation number.
 *
 *     STAVE_OUT=gpu.pftrace gpu_events */
#include <stave/stave.h>

#include <stdio.h>

struct gpu_event {
    const char *name, *category, *row;
    const char *type; /* the profiler's number of its kind */
    unsigned stream;
    uint64_t correlation;
    int64_t start_us, dur_us;
    bool is_kernel;
    uint64_t size, from, to; /* copies and allocations */
};

static const struct gpu_event events[] = {
    {"cudaMalloc", "memory", "GPU Memory Ops", "15", 0, 1, 1000, 50, false, 1 << 20, 0,
     0x100000000},
    {"cudaMemcpy", "memory", "GPU Memory Copy (H->D)", "3", 1, 1, 1100, 200, false, 1 << 20,
     0x7fff00000000, 0x100000000},
    {"vectorAdd", "kernel", "GPU Compute", "1", 1, 2, 1350, 500, true, 0, 0, 0},
    {"vectorAdd", "kernel", "GPU Compute", "2", 1, 2, 1850, 0, true, 0, 0, 0},
    {"cudaMemcpy", "memory", "GPU Memory Copy (D->H)", "4", 1, 3, 1900, 180, false, 1 << 20,
     0x100000000, 0x7fff00000000},
    {"cudaStreamSynchronize", "stream", "GPU Synchronization", "7", 1, 3, 2100, 50, false, 0, 0, 0},
};
enum { DEVICE = 0, N_CORRELATIONS = 4 };

static stave_track_t stream_track(unsigned stream)
{
    char name[32];
    snprintf(name, sizeof name, "GPU Device %d", DEVICE);
    stave_track_t group = stave_group(STAVE_ROOT, name);
    snprintf(name, sizeof name, "Stream %u", stream);
    return stave_track(group, name);
}

static void put_dims(struct stave_args *a, const char *key, unsigned x, unsigned y, unsigned z)
{
    stave_args_list(a, key);
    stave_args_uint(a, NULL, x);
    stave_args_uint(a, NULL, y);
    stave_args_uint(a, NULL, z);
    stave_args_end(a);
}

static void describe(struct stave_args *a, const struct gpu_event *e)
{
    stave_args_init(a);
    stave_args_text(a, "track_name", e->row);
    stave_args_uint(a, "correlation_id", e->correlation);
    stave_args_text(a, "event_type", e->type);
    stave_args_uint(a, "device_id", DEVICE);
    stave_args_uint(a, "stream_id", e->stream);
    if (e->size) {
        stave_args_uint(a, "size_bytes", e->size);
        stave_args_pointer(a, "src_address", (const void *)(uintptr_t)e->from);
        stave_args_pointer(a, "dst_address", (const void *)(uintptr_t)e->to);
    }
    if (e->is_kernel) {
        put_dims(a, "grid_dim", 256, 1, 1);
        put_dims(a, "block_dim", 256, 1, 1);
        stave_args_uint(a, "shared_memory_bytes", 0);
        stave_args_uint(a, "registers_per_thread", 32);
    }
}

int main(void)
{
    uint64_t flows[N_CORRELATIONS] = {0};
    int64_t base = stave_now_ns() - 10000000;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        const struct gpu_event *e = &events[i];
        uint64_t *flow = &flows[e->correlation];
        struct stave_args args;
        describe(&args, e);
        if (*flow == 0) {
            *flow = stave_flow_new();
            stave_args_flow(&args, STAVE_FLOW_OUT, *flow);
        } else {
            stave_args_flow(&args, STAVE_FLOW_IN, *flow);
        }
        stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                         .kind = STAVE_KIND_COMPLETE,
                                         .track = stream_track(e->stream),
                                         .category = e->category,
                                         .name = e->name,
                                         .args = &args,
                                         .start_ns = base + e->start_us * 1000,
                                         .dur_ns = e->dur_us * 1000});
    }
    return 0;
}

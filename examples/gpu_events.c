/* Six events of a GPU, measured elsewhere and recorded after the fact: kernels and copies on streams of devices, with their
 * parameters, and arrows between a launch and what it causes.
 *
 *     STAVE_OUT=gpu.pftrace gpu_events */
#include <stave/stave.h>

#include <stdio.h>

struct gpu_event {
    const char *name, *category, *row;
    unsigned device, stream;
    uint64_t correlation;
    int64_t start_ns, dur_ns;
    unsigned grid, block;    /* kernels */
    uint64_t size, from, to; /* copies */
};

static const struct gpu_event events[] = {
    {"cudaMemcpyHostToDevice", "memory", "GPU Memory Copy (H->D)", 0, 1, 1, 1000, 200, 0, 0,
     1 << 20, 0x7fff00000000, 0x100000000},
    {"vector_add", "kernel", "GPU Compute", 0, 1, 1, 1250, 150, 256, 256, 0, 0, 0},
    {"matmul", "kernel", "GPU Compute", 0, 2, 2, 1350, 400, 64, 1024, 0, 0, 0},
    {"cudaStreamSynchronize", "sync", "GPU Synchronization", 0, 2, 2, 1850, 50, 0, 0, 0, 0, 0},
    {"reduce", "kernel", "GPU Compute", 1, 1, 3, 2000, 300, 128, 128, 0, 0, 0},
    {"cudaMemcpyDeviceToHost", "memory", "GPU Memory Copy (D->H)", 1, 1, 3, 2350, 250, 0, 0,
     1 << 20, 0x100000000, 0x7fff00000000},
};

static stave_track_t stream_track(unsigned device, unsigned stream)
{
    char name[32];
    snprintf(name, sizeof name, "GPU Device %u", device);
    stave_track_t group = stave_group(STAVE_ROOT, name);
    snprintf(name, sizeof name, "Stream %u", stream);
    return stave_track(group, name);
}

static void describe(struct stave_args *a, const struct gpu_event *e, const uint64_t *flows)
{
    stave_args_init(a);
    stave_args_text(a, "track_name", e->row);
    stave_args_uint(a, "device_id", e->device);
    stave_args_uint(a, "stream_id", e->stream);
    stave_args_uint(a, "correlation_id", e->correlation);
    if (e->grid) {
        const unsigned dims[2] = {e->grid, e->block};
        const char *const keys[2] = {"grid_dim", "block_dim"};
        for (int i = 0; i < 2; i++) {
            stave_args_list(a, keys[i]);
            stave_args_uint(a, NULL, dims[i]);
            stave_args_uint(a, NULL, 1);
            stave_args_uint(a, NULL, 1);
            stave_args_end(a);
        }
        stave_args_uint(a, "registers_per_thread", 32);
    } else if (e->size) {
        stave_args_uint(a, "size_bytes", e->size);
        stave_args_pointer(a, "src_address", (const void *)(uintptr_t)e->from);
        stave_args_pointer(a, "dst_address", (const void *)(uintptr_t)e->to);
    }
    stave_args_flow(a, STAVE_FLOW_OUT, flows[e->correlation]);
}

int main(void)
{
    uint64_t flows[4];
    for (int i = 0; i < 4; i++)
        flows[i] = stave_flow_new();
    int64_t base = stave_now_ns() - 10000;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        const struct gpu_event *e = &events[i];
        struct stave_args args;
        describe(&args, e, flows);
        stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                         .kind = STAVE_KIND_COMPLETE,
                                         .track = stream_track(e->device, e->stream),
                                         .category = e->category,
                                         .name = e->name,
                                         .args = &args,
                                         .start_ns = base + e->start_ns,
                                         .dur_ns = e->dur_ns});
    }
    return 0;
}

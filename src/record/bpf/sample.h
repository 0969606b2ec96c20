/* Probe `sample`: stacks of the followed threads, taken by a clock of each CPU. Both sides include it; the program is for the kernel only. */
#ifndef SV_RECORD_BPF_SAMPLE_H
#define SV_RECORD_BPF_SAMPLE_H

#include "records.h"

/* The head's `what` is the CPU. Addresses follow, innermost first: the kernel's, then the process's. */
struct sv_wire_sample {
    struct sv_wire_head head;
    __u16 n_kernel, n_user;
    __u32 pad;
};

#if defined(__bpf__)

enum { STACK_BYTES_MASK = 0x3f8 }; /* 127 addresses */

struct stack_scratch {
    struct sv_wire_sample sample;
    __u64 frames[2 * 128];
};

/* Its own: the clock may interrupt another program of this CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct stack_scratch);
} stacks SEC(".maps");

SEC("perf_event")
int on_sample(void *ctx)
{
    __u32 zero = 0;
    const struct sv_wire_task *task = followed_self();
    if (!task)
        return 0;
    struct stack_scratch *s = bpf_map_lookup_elem(&stacks, &zero);
    void *ring = my_ring();
    if (!s || !ring)
        return 0;
    fill_head(&s->sample.head, SV_WIRE_SAMPLE, bpf_get_smp_processor_id(), pids_in(task));
    long kernel = bpf_get_stack(ctx, s->frames, STACK_BYTES_MASK, 0);
    __u64 from = kernel > 0 ? (__u64)kernel & STACK_BYTES_MASK : 0;
    long user = bpf_get_stack(ctx, (char *)s->frames + from, STACK_BYTES_MASK, BPF_F_USER_STACK);
    __u64 more = user > 0 ? (__u64)user & STACK_BYTES_MASK : 0;
    s->sample.n_kernel = (__u16)(from / 8);
    s->sample.n_user = (__u16)(more / 8);
    s->sample.pad = 0;
    __u64 size = sizeof s->sample + from + more;
    if (size <= sizeof *s)
        put(ring, s, size, SV_WIRE_SAMPLE);
    return 0;
}

#endif

#endif

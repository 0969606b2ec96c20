/* Probe `sample`: stacks of the followed threads, taken by a clock of each CPU. Both sides include
 * it; the program is for the kernel only. */
#ifndef SV_RECORD_BPF_SAMPLE_H
#define SV_RECORD_BPF_SAMPLE_H

#include "stack.h"

/* The head's `what` is the CPU. */
struct sv_wire_sample {
    struct sv_wire_head head;
    struct sv_wire_stack stack;
};

#if defined(__bpf__)

SEC("perf_event")
int on_sample(void *ctx)
{
    struct sv_wire_task *task = followed_self();
    struct stack_room *r = task ? stack_room(STACK_OF_SAMPLE) : 0;
    if (!r)
        return 0;
    __u64 size = take_stack(ctx, r, task, STACK_OF_SAMPLE, !config.user_samples);
    fill_head(&r->head, SV_WIRE_SAMPLE, bpf_get_smp_processor_id(), pids_in(task));
    send_stack(r, size, task, SV_WIRE_SAMPLE);
    return 0;
}

#endif

#endif

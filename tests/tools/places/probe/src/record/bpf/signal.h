/* Probe `signal`: signals that are delivered to the followed tasks. Both sides include it; the
 * program is for the kernel only. */
#ifndef SV_RECORD_BPF_SIGNAL_H
#define SV_RECORD_BPF_SIGNAL_H

#include "records.h"

struct sv_wire_signal {
    struct sv_wire_head head;
    __s32 number;
    __u32 pad;
};

#if defined(__bpf__) && KNOWS_KERNEL

TRACEPOINT(signal_deliver)
int BPF_PROG(on_signal, int number)
{
    const struct sv_wire_task *task = followed_self();
    void *ring = my_ring();
    if (!task || !ring)
        return 0;
    struct sv_wire_signal *s = bpf_ringbuf_reserve(ring, sizeof *s, 0);
    count(SV_WIRE_SIGNAL, s != 0);
    if (!s)
        return 0;
    fill_head(&s->head, SV_WIRE_SIGNAL, 0, pids_in(task));
    s->number = number;
    s->pad = 0;
    bpf_ringbuf_submit(s, wake_flags(ring, sizeof *s));
    return 0;
}

#endif

#endif

/* The end of a recording: calls that have begun and not ended, and the last states of threads. Part
 * of syscalls.h. */
#ifndef SV_RECORD_BPF_IN_FLIGHT_H
#define SV_RECORD_BPF_IN_FLIGHT_H

#include "sched.h"

/* Run when exits are no longer recorded: calls that have begun and not ended. Their paths cannot be
 * read from here. */
SEC("iter/task")
int in_flight(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct sv_wire_task *s = task ? followed(task) : 0;
    void *ring = my_ring();
    if (s && config.has_states)
        put_state(s, SV_STATE_DEAD, now_ns()); /* what is known of it ends here */
    if (!s || s->is_open != shared.call_period || !ring)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = now_ns();
    if (!(p->wants & SV_WIRE_WANTED) || now - s->start_ns < shared.call_min_ns ||
        (p->waits & SV_WIRE_IF_WAITED && GET(task, nvcsw) == s->switches))
        return 0;
    struct sv_wire_call *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CALL, c != 0);
    if (!c)
        return 0;
    fill_call(c, s, p, -1, now, false);
    c->head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    if (p->wants & SV_WIRE_VECTOR)
        c->size = ~0ull;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#endif

/* States of the followed threads, as the scheduler changes them. Part of io.bpf.c; loaded only when asked for.
 *
 * sched_waking is told by who wakes, so it says who that is; sched_wakeup may be told by the CPU that the thread will run on. */
#ifndef SV_CAPTURE_BPF_SCHED_H
#define SV_CAPTURE_BPF_SCHED_H

/* The kernel's bits (include/linux/sched.h). */
enum {
    TASK_SLEEPS = 1,
    TASK_WAITS = 2,
    TASK_STOPPED_OR_TRACED = 4 | 8,
    TASK_DIES = 0x10 | 0x20 | 0x80
};

static __always_inline void put_state(struct task_struct *task, unsigned state)
{
    void *ring = my_ring();
    if (!ring)
        return;
    struct sv_wire_head *h = bpf_ringbuf_reserve(ring, sizeof *h, 0);
    count(SV_WIRE_STATE, h != 0);
    if (!h)
        return;
    fill_head(h, SV_WIRE_STATE, bpf_get_smp_processor_id());
    h->flags = (__u16)state;
    h->tgid = (__u32)GET(task, tgid);
    h->tid = (__u32)GET(task, pid);
    bpf_ringbuf_submit(h, wake_flags(ring, sizeof *h));
}

static __always_inline void put_wake(struct task_struct *task)
{
    void *ring = my_ring();
    if (!ring)
        return;
    struct sv_wire_wake *w = bpf_ringbuf_reserve(ring, sizeof *w, 0);
    count(SV_WIRE_STATE, w != 0);
    if (!w)
        return;
    fill_head(&w->head, SV_WIRE_STATE, bpf_get_smp_processor_id());
    w->waker_tgid = w->head.tgid;
    w->waker_tid = w->head.tid;
    bpf_get_current_comm(w->waker_comm, sizeof w->waker_comm);
    w->head.flags = SV_STATE_RUNNABLE;
    w->head.tgid = (__u32)GET(task, tgid);
    w->head.tid = (__u32)GET(task, pid);
    bpf_ringbuf_submit(w, wake_flags(ring, sizeof *w));
}

static __always_inline unsigned state_of(struct task_struct *task, __u32 bits)
{
    if (bits & TASK_DIES)
        return SV_STATE_DEAD;
    if (bits & TASK_STOPPED_OR_TRACED)
        return SV_STATE_STOPPED;
    if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
        return SV_STATE_IO;
    return bits & TASK_WAITS ? SV_STATE_BLOCKED : SV_STATE_SLEEPING;
}

TRACEPOINT(sched_switch)
int BPF_PROG(on_sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
    if (followed(prev)) {
        /* Otherwise it is asked for, which may be a little late. */
        __u32 bits = config.switch_tells_state ? (__u32)ctx[3] : GET(prev, __state);
        put_state(prev, is_preempted || bits == 0 ? SV_STATE_PREEMPTED : state_of(prev, bits));
    }
    if (followed(next))
        put_state(next, SV_STATE_RUNNING);
    return 0;
}

TRACEPOINT(sched_waking)
int BPF_PROG(on_sched_waking, struct task_struct *task)
{
    if (followed(task))
        put_wake(task);
    return 0;
}

TRACEPOINT(sched_wakeup_new)
int BPF_PROG(on_sched_new, struct task_struct *task)
{
    if (followed(task))
        put_wake(task);
    return 0;
}

#endif

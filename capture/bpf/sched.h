/* States of the followed threads, as the scheduler changes them. Part of io.bpf.c, which includes it last; loaded only when asked for. */
#ifndef SV_CAPTURE_BPF_SCHED_H
#define SV_CAPTURE_BPF_SCHED_H

/* Whether sched_switch brings the state of the thread that leaves (since 5.18). Otherwise it is asked for, which may be a little late. */
const volatile bool switch_tells_state = false;

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
    h->tgid = (__u32)task->tgid;
    h->tid = (__u32)task->pid;
    bpf_ringbuf_submit(h, wake_flags(ring, sizeof *h));
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

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
    if (followed(prev)) {
        __u32 bits = switch_tells_state ? (__u32)ctx[3] : prev->__state;
        put_state(prev, is_preempted || bits == 0 ? SV_STATE_PREEMPTED : state_of(prev, bits));
    }
    if (followed(next))
        put_state(next, SV_STATE_RUNNING);
    return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_sched_wakeup, struct task_struct *task)
{
    if (followed(task))
        put_state(task, SV_STATE_RUNNABLE);
    return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_sched_new, struct task_struct *task)
{
    if (followed(task))
        put_state(task, SV_STATE_RUNNABLE);
    return 0;
}

#endif

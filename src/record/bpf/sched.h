/* Probe `sched`: states of the followed threads, as the scheduler changes them. Both sides include
 * it; the functions are for the kernel only, called by the programs of joint.h.
 *
 * sched_waking runs in the waking task, so the waker is known; sched_wakeup may run on the CPU of
 * the woken thread. */
#ifndef SV_RECORD_BPF_SCHED_H
#define SV_RECORD_BPF_SCHED_H

#include "records.h"
#include "under_way.h"

/* What the scheduler did with a thread: in the flags of the head; `what` is the CPU. */
enum sv_wire_state {
    SV_STATE_RUNNING = 1,
    SV_STATE_RUNNABLE,  /* woken, waits for a CPU */
    SV_STATE_PREEMPTED, /* could continue, another thread got the CPU */
    SV_STATE_SLEEPING,  /* waits, and signals wake it */
    SV_STATE_IO,        /* waits for a disk or a file system */
    SV_STATE_BLOCKED,   /* waits, and signals do not wake it */
    SV_STATE_STOPPED,   /* by a signal or a debugger */
    SV_STATE_DEAD,
    SV_STATES
};
/* Of a wait: the switch that ended it was not seen. Of a state: /proc was looked at (watch/). */
#define SV_STATE_INFERRED 0x100u
/* Of a wait for a CPU: for most of it the thread's group had used its quota. */
#define SV_STATE_QUOTA 0x200u
#define SV_STATE_ONLY  0xffu

#define SV_WIRE_SEMAPHORE (1ull << 32)

/* A thread is woken. The head is that of the woken thread. */
struct sv_wire_wake {
    struct sv_wire_head head;
    __u32 waker_tgid, waker_tid;   /* 0: an interrupt; SV_WIRE_NO_PID: not visible */
    char waker_comm[SV_WIRE_COMM]; /* or the name of the interrupt, "": not known */
};

/* A thread runs again, and for a part of the time in which it could its group's quota was used. */
struct sv_wire_ran {
    struct sv_wire_head head;
    __u64 quota_ns;
    __u64 cgroup; /* the number of the folder of the group */
};

/* A thread waits, in a call that is known. */
struct sv_wire_wait {
    struct sv_wire_head head;
    /* The address of the futex, the inode of the file that is locked or of the message queue,
     * SV_WIRE_SEMAPHORE and the number of a System V semaphore; 0: none. */
    __u64 lock;
    __u32 nr;
    /* The descriptor: of locks of files and of message queues. Of other calls the mode of the file
     * that their descriptor is; 0: not known. */
    __u32 file;
};

#if defined(__bpf__) && KNOWS_KERNEL

#include "quota.h"

/* The kernel's bits (include/linux/sched.h). */
enum {
    TASK_SLEEPS = 1,
    TASK_WAITS = 2,
    TASK_STOPPED_OR_TRACED = 4 | 8,
    TASK_DIES = 0x10 | 0x20 | 0x80
};

static __always_inline void *ring_of_states(unsigned state)
{
    return shared.is_ending && state != SV_STATE_DEAD ? 0 : my_ring();
}

static __always_inline void put_state(const struct sv_wire_task *s, unsigned state, __u64 now)
{
    void *ring = ring_of_states(state);
    if (!ring)
        return;
    struct sv_wire_head *h = bpf_ringbuf_reserve(ring, sizeof *h, 0);
    count(SV_WIRE_STATE, h != 0);
    if (!h)
        return;
    fill_head_at(h, SV_WIRE_STATE, bpf_get_smp_processor_id(), pids_in(s), now);
    h->flags = (__u16)state;
    bpf_ringbuf_submit(h, wake_flags(ring, sizeof *h));
}

static __always_inline void put_running(const struct sv_wire_task *s, const struct quota *q,
                                        __u64 now)
{
    void *ring = q->ns ? ring_of_states(SV_STATE_RUNNING) : 0;
    if (!ring) {
        put_state(s, SV_STATE_RUNNING, now);
        return;
    }
    struct sv_wire_ran *r = bpf_ringbuf_reserve(ring, sizeof *r, 0);
    count(SV_WIRE_STATE, r != 0);
    if (!r)
        return;
    fill_head_at(&r->head, SV_WIRE_STATE, bpf_get_smp_processor_id(), pids_in(s), now);
    r->head.flags = SV_STATE_RUNNING;
    r->quota_ns = q->ns;
    r->cgroup = q->cgroup;
    bpf_ringbuf_submit(r, wake_flags(ring, sizeof *r));
}

/* With the call that it is in, where that is known. */
static __always_inline void put_wait(const struct sv_wire_task *s, unsigned state,
                                     struct call_under_way c, __u64 now)
{
    void *ring = ring_of_states(state);
    if (state == SV_STATE_PREEMPTED || c.nr == SV_WIRE_NO_CALL || !ring) {
        put_state(s, state, now);
        return;
    }
    struct sv_wire_wait *w = bpf_ringbuf_reserve(ring, sizeof *w, 0);
    count(SV_WIRE_STATE, w != 0);
    if (!w)
        return;
    fill_head_at(&w->head, SV_WIRE_STATE, bpf_get_smp_processor_id(), pids_in(s), now);
    w->head.flags = (__u16)state;
    w->lock = c.lock;
    w->nr = c.nr;
    w->file = c.file;
    bpf_ringbuf_submit(w, wake_flags(ring, sizeof *w));
}

static __always_inline void put_wake(const struct sv_wire_task *s, const struct waker *by,
                                     __u64 now)
{
    void *ring = ring_of_states(SV_STATE_RUNNABLE);
    if (!ring)
        return;
    struct sv_wire_wake *w = bpf_ringbuf_reserve(ring, sizeof *w, 0);
    count(SV_WIRE_STATE, w != 0);
    if (!w)
        return;
    fill_head_at(&w->head, SV_WIRE_STATE, bpf_get_smp_processor_id(), pids_in(s), now);
    w->head.flags = SV_STATE_RUNNABLE;
    w->waker_tgid = by->pids.tgid;
    w->waker_tid = by->pids.tid;
    __builtin_memcpy(w->waker_comm, by->name, sizeof w->waker_comm);
    bpf_ringbuf_submit(w, wake_flags(ring, sizeof *w));
}

static __always_inline unsigned state_by(struct task_struct *task, __u32 bits)
{
    if (bits & TASK_DIES)
        return SV_STATE_DEAD;
    if (bits & TASK_STOPPED_OR_TRACED)
        return SV_STATE_STOPPED;
    if (BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
        return SV_STATE_IO;
    return bits & TASK_WAITS ? SV_STATE_BLOCKED : SV_STATE_SLEEPING;
}

/* Of the thread that leaves, by what the tracepoint brings; otherwise the task's own member is
 * read, which may already be newer. */
static __always_inline unsigned state_at_switch(const unsigned long long *ctx, bool is_preempted,
                                                struct task_struct *prev)
{
    __u32 bits = config.switch_has_state ? (__u32)ctx[3] : GET(prev, __state);
    return is_preempted || bits == 0 ? SV_STATE_PREEMPTED : state_by(prev, bits);
}

#endif

#endif

/* The programs of events that several probes want: one for each event, because each program that
 * the kernel calls costs every process of the machine, followed or not. What the probes do not want
 * is constant in `config`, and the kernel removes it. Part of io.bpf.c.
 *
 * Times are read once for all: a state and a wait that begin with the same switch have the same
 * stamp. */
#ifndef SV_RECORD_BPF_JOINT_H
#define SV_RECORD_BPF_JOINT_H

#if KNOWS_KERNEL && KNOWS_CALLS && STACK_CAN_COPY
#define HAS_WAITS config.has_waits
#else
#define HAS_WAITS 0

static __always_inline int leave_wait(void *ctx, struct sv_wire_task *s)
{
    (void)ctx;
    (void)s;
    return 0;
}

#if KNOWS_KERNEL

static __always_inline void goes_away(void *ctx, struct sv_wire_task *s, unsigned state,
                                      struct call_under_way c, __u64 now)
{
    (void)ctx;
    (void)s;
    (void)state;
    (void)c;
    (void)now;
}

static __always_inline void comes_back(struct sv_wire_task *s, __u64 now, __u64 quota_ns)
{
    (void)s;
    (void)now;
    (void)quota_ns;
}

static __always_inline void is_woken(void *ctx, struct sv_wire_task *s, const struct waker *by,
                                     __u64 now)
{
    (void)ctx;
    (void)s;
    (void)by;
    (void)now;
}

#endif
#endif

static __noinline int leave_kernel(struct exit_context *ctx)
{
    struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    leave_call(ctx, s);
    return HAS_WAITS ? leave_wait(ctx, s) : 0;
}

EXITS
int on_exit(struct exit_context *ctx)
{
    return is_not_followed(REGISTERS()) ? 0 : leave_kernel(ctx);
}

#if KNOWS_KERNEL

/* Locks and queues of the kernel itself: which one the current thread waits for. */
static __always_inline void find_lock(struct call_under_way *c)
{
#if KNOWS_CALLS
    switch (c->nr) {
    case CALL_FCNTL:
    case CALL_FLOCK:
    case CALL_MQ_SEND:
    case CALL_MQ_RECEIVE:
        c->lock = number_of_file((__s32)c->arg0);
        c->file = (__u32)c->arg0;
        break;
    case CALL_SEMOP:
    case CALL_SEMTIMEDOP: c->lock = SV_WIRE_SEMAPHORE | (__u32)c->arg0; break;
    }
#endif
    (void)c;
}

static __always_inline void leaves_cpu(void *ctx, struct sv_wire_task *s, struct task_struct *task,
                                       unsigned state, __u64 now)
{
    struct call_under_way c = call_under_way(task);
    find_lock(&c);
    if (config.has_states)
        put_wait(s, state, c, now);
    if (HAS_WAITS)
        goes_away(ctx, s, state, c, now);
}

TRACEPOINT(sched_switch)
int BPF_PROG(on_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
    struct sv_wire_task *leaves = followed(prev), *comes = followed(next);
    if (!leaves && !comes && !config.has_rivals)
        return 0;
    const __u64 now = now_ns();
    unsigned state = leaves ? state_at_switch(ctx, is_preempted, prev) : 0;
    if (config.has_rivals) {
        end_turn(prev, leaves, state, now);
        note_turn(next, comes, now);
    }
    if (leaves)
        leaves_cpu(ctx, leaves, prev, state, now);
    if (!comes)
        return 0;
    struct quota q = {0};
    if (config.has_rivals)
        q = begin_turn(next, comes, now);
    if (config.has_states)
        put_running(comes, &q, now);
    if (HAS_WAITS)
        comes_back(comes, now, q.ns);
    return 0;
}

static __always_inline void can_run(void *ctx, struct sv_wire_task *s, struct task_struct *task,
                                    bool is_new)
{
    struct waker by;
    const __u64 now = now_ns();
    by.pids = find_waker(by.name);
    if (config.has_states)
        put_wake(s, &by, now);
    if (config.has_rivals)
        note_woken(s, task, now);
    if (HAS_WAITS && !is_new)
        is_woken(ctx, s, &by, now);
}

TRACEPOINT(sched_waking)
int BPF_PROG(on_waking, struct task_struct *task)
{
    struct sv_wire_task *s = followed(task);
    if (s)
        can_run(ctx, s, task, false);
    return 0;
}

TRACEPOINT(sched_wakeup_new)
int BPF_PROG(on_waking_new, struct task_struct *task)
{
    struct sv_wire_task *s = followed(task);
    if (s)
        can_run(ctx, s, task, true);
    return 0;
}

#endif

#endif

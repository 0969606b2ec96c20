/* Which tasks are followed, and by which pids. Part of io.bpf.c.
 *
 * A process has a pid in each pid namespace from the initial one down to its own. The recorder uses
 * those of its own namespace, as its /proc does. They are looked up once, when a task is followed,
 * and kept in its state. A task that the recorder's namespace does not show is not followed, and is
 * counted. */
#ifndef SV_RECORD_BPF_FOLLOWING_H
#define SV_RECORD_BPF_FOLLOWING_H

struct pids {
    __u32 tgid, tid; /* 0: none */
};

static __always_inline void count_invisible(void)
{
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->invisible++;
}

static __always_inline bool is_followed(const struct sv_wire_task *s)
{
    return s && s->tgid;
}

static __always_inline struct pids pids_in(const struct sv_wire_task *s)
{
    return (struct pids){s->tgid, s->tid};
}

static __always_inline struct sv_wire_task *followed_self(void)
{
    struct sv_wire_task *s = own_state();
    return is_followed(s) ? s : 0;
}

#if KNOWS_KERNEL

enum { LEVELS_MAX = 33 }; /* the kernel's MAX_PID_NS_LEVEL and the initial one */

static __always_inline struct sv_wire_task *followed(struct task_struct *task)
{
    struct sv_wire_task *s = state_of(task);
    return is_followed(s) ? s : 0;
}

static __always_inline struct upid *upid_at(struct pid *pid, unsigned level)
{
    return (struct upid *)((char *)pid + bpf_core_field_offset(struct pid, numbers) +
                           level * bpf_core_type_size(struct upid));
}

/* A pid in the recorder's namespace, 0: it has none. */
static __noinline __u32 pid_here(struct pid *pid)
{
    unsigned deepest = BPF_CORE_READ(pid, level);
    for (unsigned i = 0; i < LEVELS_MAX && i <= deepest; i++) {
        struct upid *u = upid_at(pid, i);
        if (BPF_CORE_READ(u, ns, ns.inum) == config.pid_namespace)
            return (__u32)BPF_CORE_READ(u, nr);
    }
    return 0;
}

static __always_inline struct pids pids_of(struct task_struct *task)
{
    struct pids n;
    if (config.pid_namespace) {
        n.tgid = pid_here(BPF_CORE_READ(task, group_leader, thread_pid));
        n.tid = pid_here(BPF_CORE_READ(task, thread_pid));
    } else {
        n.tgid = (__u32)GET(task, tgid);
        n.tid = (__u32)GET(task, pid);
    }
    return n;
}

static __always_inline struct sv_wire_sched counted_of(struct task_struct *task)
{
    struct sv_wire_sched c = {.run_ns = BPF_CORE_READ(task, se.sum_exec_runtime)};
    if (bpf_core_field_exists(task->sched_info)) {
        c.delay_ns = BPF_CORE_READ(task, sched_info.run_delay);
        c.switches = BPF_CORE_READ(task, sched_info.pcount);
    }
    return c;
}

/* NULL: it is the recorder itself, or not visible, or there is no memory for it. */
static __always_inline struct sv_wire_task *follow(struct task_struct *task)
{
    struct pids n = pids_of(task);
    bool is_visible = n.tgid && n.tid;
    if (!is_visible)
        count_invisible();
    if ((!is_visible || n.tgid == config.own_tgid) && !config.follow_all)
        return 0;
    struct sv_wire_task *s = make_state(task);
    if (!s)
        return 0;
    s->tid = n.tid;
    if (config.has_rivals)
        s->counted = counted_of(task);
    s->tgid = is_visible && n.tgid != config.own_tgid ? n.tgid : 0; /* is not asked again */
    return is_followed(s) ? s : 0;
}

static __always_inline struct sv_wire_task *follow_self(void)
{
    return follow(current_task());
}

static __always_inline struct pids own_pids(void)
{
    return pids_of(current_task());
}

#else

#include "pids_plain.h"

#endif

#endif

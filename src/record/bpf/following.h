/* Who is followed, and by which numbers. Part of io.bpf.c.
 *
 * A process has a number in each pid namespace from the initial one down to its own. The recorder knows processes by those of its own namespace,
 * as its /proc does: neither the initial nor the innermost number will do. They are looked up once, when a task is followed, and kept in
 * its state. What the recorder's namespace does not show is not followed, and counted. */
#ifndef SV_RECORD_BPF_FOLLOWING_H
#define SV_RECORD_BPF_FOLLOWING_H

struct numbers {
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

static __always_inline struct numbers numbers_in(const struct sv_wire_task *s)
{
    return (struct numbers){s->tgid, s->tid};
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

static __always_inline struct upid *number_at(struct pid *pid, unsigned level)
{
    return (struct upid *)((char *)pid + bpf_core_field_offset(struct pid, numbers) +
                           level * bpf_core_type_size(struct upid));
}

/* The number of a process in the recorder's namespace, 0: it has none. */
static __noinline __u32 number_here(struct pid *pid)
{
    unsigned deepest = BPF_CORE_READ(pid, level);
    for (unsigned i = 0; i < LEVELS_MAX && i <= deepest; i++) {
        struct upid *u = number_at(pid, i);
        if (BPF_CORE_READ(u, ns, ns.inum) == config.pid_namespace)
            return (__u32)BPF_CORE_READ(u, nr);
    }
    return 0;
}

static __always_inline struct numbers numbers_of(struct task_struct *task)
{
    struct numbers n;
    if (config.pid_namespace) {
        n.tgid = number_here(BPF_CORE_READ(task, group_leader, thread_pid));
        n.tid = number_here(BPF_CORE_READ(task, thread_pid));
    } else {
        n.tgid = (__u32)GET(task, tgid);
        n.tid = (__u32)GET(task, pid);
    }
    return n;
}

/* NULL: it is the recorder itself, or not visible, or there is no memory for it. */
static __always_inline struct sv_wire_task *follow(struct task_struct *task)
{
    struct numbers n = numbers_of(task);
    bool is_visible = n.tgid && n.tid;
    if (!is_visible)
        count_invisible();
    if ((!is_visible || n.tgid == config.own_tgid) && !config.follow_all)
        return 0;
    struct sv_wire_task *s = make_state(task);
    if (!s)
        return 0;
    s->tid = n.tid;
    s->tgid = is_visible && n.tgid != config.own_tgid ? n.tgid : 0; /* is not asked again */
    return is_followed(s) ? s : 0;
}

static __always_inline struct sv_wire_task *follow_self(void)
{
    return follow(current_task());
}

static __always_inline struct numbers own_numbers(void)
{
    return numbers_of(current_task());
}

#else

#include "pids_plain.h"

#endif

#endif

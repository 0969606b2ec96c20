/* How long the group of a thread was held back by its quota of CPU time (cpu.max,
 * cpu.cfs_quota_us): as the scheduler counts it. Part of rivals.h, on the kernel's side only. */
#ifndef SV_RECORD_BPF_QUOTA_H
#define SV_RECORD_BPF_QUOTA_H

enum { GROUPS_DEEP = 8 };
#define NO_QUOTA (~0ull) /* the kernel's RUNTIME_INF */

static __always_inline bool knows_quotas(void)
{
    return bpf_core_field_exists(((struct task_struct *)0)->sched_task_group) &&
           bpf_core_field_exists(((struct task_group *)0)->cfs_bandwidth);
}

/* Of a time in which a thread could run. */
struct quota {
    __u64 ns;     /* its group's was used up for so long */
    __u64 cgroup; /* the number of the folder of that group */
};

/* Of its group and of those above it, of all CPUs. */
static __always_inline __u64 throttled_ns(struct task_struct *task)
{
    __u64 sum = 0;
    if (!knows_quotas())
        return 0;
    struct task_group *g = GET(WALK(struct task_struct, task), sched_task_group);
    for (int i = 0; i < GROUPS_DEEP && g; i++) {
        sum += GET(g, cfs_bandwidth.throttled_time);
        g = GET(g, parent);
    }
    return sum;
}

/* The number of the folder of the group whose quota it is. */
static __always_inline __u64 limited_group(struct task_struct *task)
{
    if (!knows_quotas())
        return 0;
    struct task_group *g = BPF_CORE_READ(task, sched_task_group);
    for (int i = 0; i < GROUPS_DEEP && g; i++) {
        if (BPF_CORE_READ(g, cfs_bandwidth.quota) != NO_QUOTA &&
            BPF_CORE_READ(g, cfs_bandwidth.nr_throttled) > 0)
            return BPF_CORE_READ(g, css.cgroup, kn, id);
        g = BPF_CORE_READ(g, parent);
    }
    return 0;
}

#endif

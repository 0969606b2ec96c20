/* Processes that are followed when they get a name (--comm) or enter a cgroup (--cgroup). Part of
 * process.h. */
#ifndef SV_RECORD_BPF_JOIN_H
#define SV_RECORD_BPF_JOIN_H

static __always_inline bool is_called_so(const char *comm)
{
    char name[SV_WIRE_COMM] = {0};
    if (!config.join_comm[0] || bpf_probe_read_kernel_str(name, sizeof name, comm) < 0)
        return false;
    for (int i = 0; i < SV_WIRE_COMM; i++) {
        if (name[i] != config.join_comm[i])
            return false;
        if (!name[i])
            break;
    }
    return true;
}

/* At an exec: the name is the new one, and a process that was started in the cgroup is found
 * here. */
static __always_inline bool joins_by_exec(struct task_struct *task)
{
    if (!is_called_so(task->comm) &&
        !(config.join_cgroup && bpf_get_current_cgroup_id() == config.join_cgroup))
        return false;
    return follow(task) != 0;
}

TRACEPOINT(cgroup_attach_task)
int BPF_PROG(on_join_cgroup, struct cgroup *to, const char *path, struct task_struct *task)
{
    for (int i = 0; i < 16 && to; i++) { /* it, or one below it */
        if (BPF_CORE_READ(to, kn, id) == config.join_cgroup) {
            if (!followed(task))
                follow(task);
            return 0;
        }
        to = (struct cgroup *)BPF_CORE_READ(to, self.parent);
    }
    return 0;
}

#endif

/* Processes that already run when the recording begins. Part of io.bpf.c. */
#ifndef SV_RECORD_BPF_FOLLOW_RUNNING_H
#define SV_RECORD_BPF_FOLLOW_RUNNING_H

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} roots SEC(".maps");

/* Follows the roots and all that descends from followed tasks. The loader runs it until it finds no
 * new one. */
SEC("iter/task")
int enroll(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    struct pids n = pids_of(task);
    if (n.tgid == config.own_tgid || followed(task))
        return 0;
    struct task_struct *parent = GET(task, real_parent);
    bool is_root = bpf_map_lookup_elem(&roots, &n.tgid) != 0;
    if (!is_root && !(parent && followed(parent)))
        return 0;
    if (follow(task))
        shared.n_enrolled++;
    return 0;
}

#endif

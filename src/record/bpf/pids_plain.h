/* Pids where the kernel's memory cannot be read. Part of following.h.
 *
 * A helper gives the current task's numbers, if it is in the very namespace of the recorder; those
 * in a container inside of it are not visible this way. Numbers of others, such as a child that was
 * just made, are known to the initial namespace only: so a child gets its pids when it makes its
 * first call, and its start is recorded then. */
#ifndef SV_RECORD_BPF_PIDS_PLAIN_H
#define SV_RECORD_BPF_PIDS_PLAIN_H

/* Processes that already ran, by the numbers that the recorder knows. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32); /* tid */
    __type(value, __u8);
} roots SEC(".maps");

static __always_inline struct pids own_pids(void)
{
    __u64 id = bpf_get_current_pid_tgid();
    struct pids n = {.tgid = (__u32)(id >> 32), .tid = (__u32)id};
    struct bpf_pidns_info here = {0};
    if (!config.pid_namespace)
        return n;
    bpf_get_ns_current_pid_tgid(config.pid_namespace_device, config.pid_namespace, &here,
                                sizeof here);
    n.tgid = here.tgid; /* 0 when it is not there */
    n.tid = here.pid;
    return n;
}

static __always_inline struct sv_wire_task *follow_self(void)
{
    struct pids n = own_pids();
    bool is_visible = n.tgid && n.tid;
    if (!is_visible)
        count_invisible();
    if ((!is_visible || n.tgid == config.own_tgid) && !config.follow_all)
        return 0;
    struct sv_wire_task *s = make_state_of_tid((__u32)bpf_get_current_pid_tgid());
    if (!s)
        return 0;
    s->tid = n.tid;
    s->tgid = is_visible && n.tgid != config.own_tgid ? n.tgid : 0;
    return is_followed(s) ? s : 0;
}

#endif

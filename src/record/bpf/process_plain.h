/* Process starts, execs, exits and names by plain tracepoints, whose records are a stable interface
 * of the kernel. Part of process.h.
 *
 * They have less: the reader takes the command line from /proc, and the exit code is the argument
 * of exit_group(). */
#ifndef SV_RECORD_BPF_PROCESS_PLAIN_H
#define SV_RECORD_BPF_PROCESS_PLAIN_H

enum { CODE_UNKNOWN = -1 };

struct newtask_context {
    __u64 common;
    int pid;
    char comm[SV_WIRE_COMM];
    __u64 clone_flags;
};

struct exec_context {
    __u64 common;
    __u32 filename; /* where it is in the record, and how long */
    int pid, old_pid;
};

struct task_exit_context {
    __u64 common;
    char comm[SV_WIRE_COMM];
    int pid, prio;
    bool is_last;
};

struct rename_context {
    __u64 common;
    int pid;
    char oldcomm[SV_WIRE_COMM], newcomm[SV_WIRE_COMM];
};

SEC("tracepoint/task/task_newtask")
int on_fork(struct newtask_context *ctx)
{
    const struct sv_wire_task *parent = followed_self();
    if (parent)
        note_start(parent, (__u32)ctx->pid, ctx->clone_flags, ctx->comm);
    return 0;
}

static __always_inline bool is_called_so(const char *name)
{
    for (int i = 0; i < SV_WIRE_COMM; i++) {
        if (name[i] != config.join_comm[i])
            return false;
        if (!name[i])
            break;
    }
    return config.join_comm[0] != 0;
}

static __always_inline bool joins_by_exec(void)
{
    char name[SV_WIRE_COMM] = {0};
    bpf_get_current_comm(name, sizeof name);
    if (!is_called_so(name) &&
        !(config.join_cgroup && bpf_get_current_cgroup_id() == config.join_cgroup))
        return false;
    return follow_self() != 0;
}

SEC("tracepoint/sched/sched_process_exec")
int on_exec(struct exec_context *ctx)
{
    __u32 zero = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    move_state_of_tid((__u32)ctx->pid, (__u32)ctx->old_pid);
    struct sv_wire_task *s = followed_self();
    if (!s && joins_by_exec())
        s = followed_self();
    if (!c || !s)
        return 0;
    struct sv_wire_head *h = &c->call.head;
    long len = begin_exec(h, s, (char *)ctx + (ctx->filename & 0xffff));
    __u64 all = sizeof *h + (__u64)len;
    if (all <= sizeof *c)
        put(&process_ring, c, all, SV_WIRE_EXEC);
    return 0;
}

SEC("tracepoint/sched/sched_process_exit")
int on_task_exit(struct task_exit_context *ctx)
{
    struct sv_wire_task *s = followed_self();
    if (!s) {
        drop_own_state(); /* it may be marked as not followed */
        return 0;
    }
    struct sv_wire_exit *e = bpf_ringbuf_reserve(&process_ring, sizeof *e, 0);
    count(SV_WIRE_EXIT, e != 0);
    if (e) {
        fill_head(&e->head, SV_WIRE_EXIT, 0, pids_in(s));
        e->code = s->nr == ENDS_PROCESS ? (__s32)(s->args[0] & 0xff) << 8 : CODE_UNKNOWN;
        /* Mostly the first thread is the last one. */
        e->is_last = config.exit_has_last ? ctx->is_last : e->head.tid == e->head.tgid;
        bpf_ringbuf_submit(e, wake_flags(&process_ring, sizeof *e));
    }
    drop_own_state();
    return 0;
}

SEC("tracepoint/task/task_rename")
int on_rename(struct rename_context *ctx)
{
    const struct sv_wire_task *s = followed_self();
    if (!s || (__u32)ctx->pid != (__u32)bpf_get_current_pid_tgid())
        return 0; /* the process of another thread is not known here */
    struct sv_wire_name *n = bpf_ringbuf_reserve(&process_ring, sizeof *n, 0);
    count(SV_WIRE_NAME, n != 0);
    if (!n)
        return 0;
    fill_head(&n->head, SV_WIRE_NAME, 0, pids_in(s));
    bpf_probe_read_kernel_str(n->comm, sizeof n->comm, ctx->newcomm);
    bpf_ringbuf_submit(n, wake_flags(&process_ring, sizeof *n));
    return 0;
}

#endif

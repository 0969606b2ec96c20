/* Births, names and deaths of the followed tasks. Part of io.bpf.c. */
#ifndef SV_CAPTURE_BPF_BIRTHS_H
#define SV_CAPTURE_BPF_BIRTHS_H

static __always_inline void count_not_followed(void)
{
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->not_followed++;
}

/* The current task is the parent. */
static __always_inline void put_fork(__u32 tgid, __u32 tid, const char *comm)
{
    struct sv_wire_fork *f = bpf_ringbuf_reserve(&lives, sizeof *f, 0);
    count(SV_WIRE_FORK, f != 0);
    if (!f)
        return;
    fill_head(&f->head, SV_WIRE_FORK, 0);
    f->tgid = tgid;
    f->tid = tid;
    bpf_probe_read_kernel_str(f->comm, sizeof f->comm, comm);
    bpf_ringbuf_submit(f, wake_flags(&lives, sizeof *f));
}

#if KNOWS_KERNEL

#include "newcomers.h"

/* Where tasks are known by their number, the number is free from here on. */
static __always_inline void leave(struct task_struct *task)
{
#if !defined(SV_HOOKS_BTF)
    if (config.has_states)
        put_state(task, SV_STATE_DEAD); /* its last switch finds nobody */
#endif
    (void)task;
    unfollow_self();
}

TRACEPOINT(sched_process_fork)
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    if (!followed(parent))
        return 0;
    if (!follow(child))
        count_not_followed();
    put_fork((__u32)GET(child, tgid), (__u32)GET(child, pid), child->comm);
    return 0;
}

TRACEPOINT(sched_process_exec)
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
    __u32 zero = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    if (!c || (!followed(task) && !joins_by_exec(task)))
        return 0;
    struct sv_wire_head *h = &c->call.head;
    char *text = (char *)(h + 1);
    fill_head(h, SV_WIRE_EXEC, (__u32)old_pid);
    long len = bpf_probe_read_kernel_str(text, SV_WIRE_PATH_MAX, GET(bprm, filename));
    if (len <= 0 || len > SV_WIRE_PATH_MAX)
        len = 0;
    struct mm_struct *mm = GET(task, mm);
    if (mm) {
        __u64 size = GET(mm, arg_end) - GET(mm, arg_start);
        if (size > SV_WIRE_PATH_MAX)
            size = SV_WIRE_PATH_MAX;
        if (bpf_probe_read_user(text + len, (__u32)size, (void *)GET(mm, arg_start)) == 0)
            len += (long)size;
    }
    __u64 all = sizeof *h + (__u64)len;
    if (all <= sizeof *c)
        put(&lives, c, all, SV_WIRE_EXEC);
    return 0;
}

TRACEPOINT(sched_process_exit)
int BPF_PROG(on_task_exit, struct task_struct *task)
{
    if (!followed(task))
        return 0;
    leave(task);
    struct sv_wire_exit *e = bpf_ringbuf_reserve(&lives, sizeof *e, 0);
    count(SV_WIRE_EXIT, e != 0);
    if (!e)
        return 0;
    fill_head(&e->head, SV_WIRE_EXIT, 0);
    e->code = GET(task, exit_code);
    struct signal_struct *signal = GET(task, signal);
    e->is_last = signal && GET(signal, live.counter) == 0;
    bpf_ringbuf_submit(e, wake_flags(&lives, sizeof *e));
    return 0;
}

TRACEPOINT(task_rename)
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
    if (!followed(task) && !(is_called_so(comm) && join(task)))
        return 0;
    struct sv_wire_name *n = bpf_ringbuf_reserve(&lives, sizeof *n, 0);
    count(SV_WIRE_NAME, n != 0);
    if (!n)
        return 0;
    fill_head(&n->head, SV_WIRE_NAME, 0);
    n->head.tgid = (__u32)GET(task, tgid); /* another thread may give the name */
    n->head.tid = (__u32)GET(task, pid);
    bpf_probe_read_kernel_str(n->comm, sizeof n->comm, comm);
    bpf_ringbuf_submit(n, wake_flags(&lives, sizeof *n));
    return 0;
}

#else

#include "plain.h"

#endif

#endif

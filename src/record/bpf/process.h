/* Probe `process`: starts, execs, exits and names of the followed tasks. Both sides include it; the
 * programs are for the kernel only.
 *
 * These records have a ring of their own (io.bpf.c). The record of an exec is a head, then the file
 * and the words of the command line. */
#ifndef SV_RECORD_BPF_PROCESS_H
#define SV_RECORD_BPF_PROCESS_H

#include "process_start.h"

struct sv_wire_exit {
    struct sv_wire_head head;
    __s32 code; /* as wait() returns it */
    __u32 is_last;
};

/* A thread has a new name. */
struct sv_wire_name {
    struct sv_wire_head head;
    char comm[SV_WIRE_COMM];
};

#if defined(__bpf__)

#include "syscalls.h"

#if KNOWS_KERNEL

#include "join.h"
#include "page_fault.h"
#include "rivals.h"
#include "sched.h"

/* Where tasks are known by their tid, the tid may be used again from here on. */
static __always_inline void leave(const struct sv_wire_task *s)
{
#if !defined(SV_HOOKS_BTF)
    if (config.has_states)
        put_state(s, SV_STATE_DEAD, now_ns()); /* its last switch no longer finds its state */
#endif
    (void)s;
    drop_own_state();
}

/* Its pid in its own pid namespace, when that is not the recorder's. */
static __always_inline struct inner inner_of(struct task_struct *task)
{
    struct inner none = {0};
    struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
    unsigned level = BPF_CORE_READ(pid, level);
    if (level == 0 || level >= LEVELS_MAX)
        return none;
    struct upid *u = upid_at(pid, level);
    struct inner own = {.tgid = (__u32)BPF_CORE_READ(u, nr),
                        .namespace = BPF_CORE_READ(u, ns, ns.inum)};
    return own.namespace == config.pid_namespace ? none : own;
}

TRACEPOINT(sched_process_fork)
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    const struct sv_wire_task *s = followed(parent);
    if (!s)
        return 0;
    struct sv_wire_task *new_one = follow(child);
    if (new_one)
        new_one->origin = s->origin ? s->origin : s->tgid;
    else
        count_not_followed();
    put_fork(pids_in(s), pids_of(child), inner_of(child), child->comm);
    return 0;
}

/* Of a script the file is its interpreter, whose path is not in the record. The first stack of a
 * process wakes the recorder (stack.h), unless all is known that it would look up then. */
static __always_inline void take_image(struct sv_wire_image *x, struct sv_wire_task *s,
                                       struct task_struct *task, struct mm_struct *mm,
                                       struct linux_binprm *bprm)
{
    struct inode *inode = BPF_CORE_READ(bprm, file, f_inode);
    x->inode = BPF_CORE_READ(inode, i_ino);
    x->device = BPF_CORE_READ(inode, i_sb, s_dev);
    x->groups = bpf_core_field_exists(task->cgroups) ? (__u64)BPF_CORE_READ(task, cgroups) : 0;
    x->has_auxv = GET(bprm, interp) == GET(bprm, filename) &&
                  bpf_core_read(x->auxv, sizeof x->auxv, &mm->saved_auxv) == 0;
    s->is_sampled = x->has_auxv && shared.programs[x->inode & (SV_WIRE_PROGRAMS - 1)];
}

TRACEPOINT(sched_process_exec)
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
    __u32 zero = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    move_state(task, old_pid);
    struct sv_wire_task *s = followed(task);
    if (!s && joins_by_exec(task))
        s = followed(task);
    if (!c || !s)
        return 0;
    note_code((__u64)BPF_CORE_READ(bprm, file));
    struct sv_wire_head *h = &c->call.head;
    char *text = (char *)(h + 1);
    long len = begin_exec(h, s, GET(bprm, filename));
    struct mm_struct *mm = GET(WALK(struct task_struct, task), mm);
    if (mm) {
        __u64 size = GET(mm, arg_end) - GET(mm, arg_start);
        if (size > SV_WIRE_PATH_MAX)
            size = SV_WIRE_PATH_MAX;
        if (bpf_probe_read_user(text + len, (__u32)size, (void *)GET(mm, arg_start)) == 0)
            len += (long)size;
        h->flags = SV_WIRE_HAS_IMAGE;
        take_image((struct sv_wire_image *)(text + len), s, task, mm, bprm);
        len += sizeof(struct sv_wire_image);
    }
    __u64 all = sizeof *h + (__u64)len;
    if (all <= sizeof *c)
        put(&process_ring, c, all, SV_WIRE_EXEC);
    return 0;
}

TRACEPOINT(sched_process_exit)
int BPF_PROG(on_task_exit, struct task_struct *task)
{
    struct sv_wire_task *s = followed(task);
    if (!s) {
        drop_own_state(); /* it may be marked as not followed */
        return 0;
    }
    struct pids n = pids_in(s);
    finish_fault(s);
    put_totals(s, task);
    leave(s);
    struct sv_wire_exit *e = bpf_ringbuf_reserve(&process_ring, sizeof *e, 0);
    count(SV_WIRE_EXIT, e != 0);
    if (!e)
        return 0;
    fill_head(&e->head, SV_WIRE_EXIT, 0, n);
    e->code = GET(task, exit_code);
    struct signal_struct *signal = GET(WALK(struct task_struct, task), signal);
    e->is_last = signal && GET(signal, live.counter) == 0;
    bpf_ringbuf_submit(e, wake_flags(&process_ring, sizeof *e));
    return 0;
}

TRACEPOINT(task_rename)
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
    const struct sv_wire_task *s = followed(task); /* another thread may give the name */
    if (!s && is_called_so(comm))
        s = follow(task);
    if (!s)
        return 0;
    struct sv_wire_name *n = bpf_ringbuf_reserve(&process_ring, sizeof *n, 0);
    count(SV_WIRE_NAME, n != 0);
    if (!n)
        return 0;
    fill_head(&n->head, SV_WIRE_NAME, 0, pids_in(s));
    bpf_probe_read_kernel_str(n->comm, sizeof n->comm, comm);
    bpf_ringbuf_submit(n, wake_flags(&process_ring, sizeof *n));
    return 0;
}

#else

#include "process_plain.h"

#endif

#endif

#endif

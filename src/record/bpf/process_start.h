/* Process starts: their record, and the state of a task that enters a system call. Part of the
 * probes `process` and `syscalls`. */
#ifndef SV_RECORD_BPF_PROCESS_START_H
#define SV_RECORD_BPF_PROCESS_START_H

#include "records.h"

/* A task has started another one. The head is the parent's. */
struct sv_wire_fork {
    struct sv_wire_head head;
    __u32 tgid, tid; /* the child's */
    /* The child's pid in its own pid namespace, and that namespace; 0: it is the recorder's. */
    __u32 inner_tgid, inner_namespace;
    char comm[SV_WIRE_COMM];
};

/* Behind the words of an exec, by the flag of its head: the file that runs, and what the kernel
 * told it of where things are. With the calls that map the rest it says what is at which
 * address. */
enum { SV_WIRE_HAS_IMAGE = 1, SV_WIRE_AUXV = 32 };

struct sv_wire_image {
    __u64 inode;
    __u64 groups; /* the same for processes that are in the same cgroups */
    __u32 device, has_auxv;
    __u64 auxv[SV_WIRE_AUXV]; /* pairs */
};

#if defined(__bpf__)

static __always_inline void count_not_followed(void)
{
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->not_followed++;
}

struct inner {
    __u32 tgid, namespace;
};

static __always_inline void put_fork(struct pids parent, struct pids child, struct inner inner,
                                     const char *comm)
{
    struct sv_wire_fork *f = bpf_ringbuf_reserve(&process_ring, sizeof *f, 0);
    count(SV_WIRE_FORK, f != 0);
    if (!f)
        return;
    fill_head(&f->head, SV_WIRE_FORK, 0, parent);
    f->tgid = child.tgid;
    f->tid = child.tid;
    f->inner_tgid = inner.tgid;
    f->inner_namespace = inner.namespace;
    bpf_probe_read_kernel_str(f->comm, sizeof f->comm, comm);
    bpf_ringbuf_submit(f, wake_flags(&process_ring, sizeof *f));
}

/* The record of an exec up to the name of the file, which may be cut. Returns the length of the
 * name. */
static __always_inline long begin_exec(struct sv_wire_head *h, struct sv_wire_task *s,
                                       const void *filename)
{
    s->tid = s->tgid; /* whichever thread it was: it is the first one now */
    s->origin = s->is_sampled = 0;
    s->code_at = 0;
    fill_head(h, SV_WIRE_EXEC, 0, pids_in(s));
    long len = bpf_probe_read_kernel_str(h + 1, SV_WIRE_PATH_MAX, filename);
    if (len <= 0 || len > SV_WIRE_PATH_MAX)
        len = 0;
    return len;
}

#if KNOWS_KERNEL

/* Of a call that begins; NULL: not followed. */
static __always_inline struct sv_wire_task *state_at_entry(void)
{
    struct sv_wire_task *s = own_state();
    if (s || !config.follow_all)
        return is_followed(s) ? s : 0;
    return follow_self();
}

#else

enum { MAKES_THREAD = 0x10000 }; /* CLONE_THREAD */
#define STARTS \
    0xffffffffu /* number of a call: it has made none yet, and its start is not recorded yet */

/* The start of a task until it is recorded, kept where the arguments of its first call will be. */
struct start {
    struct pids parent;
    char comm[SV_WIRE_COMM];
};

/* Its pids are known when it makes its first call. A task in a pid namespace of its own has
 * none. */
static __always_inline void report_start(struct sv_wire_task *s)
{
    struct start *start = (struct start *)s->args;
    struct pids n = own_pids();
    s->nr = 0;
    if (!n.tgid || !n.tid) {
        count_invisible();
        return;
    }
    s->tgid = n.tgid;
    s->tid = n.tid;
    put_fork(start->parent, n, (struct inner){0}, start->comm);
}

/* Of a call that begins; NULL: not followed. */
static __always_inline struct sv_wire_task *state_at_entry(void)
{
    struct sv_wire_task *s = own_state();
    if (s && s->nr == STARTS)
        report_start(s);
    if (s)
        return is_followed(s) ? s : 0;
    if (config.follow_all)
        return follow_self();
    if (!config.pid_namespace)
        return 0;
    struct pids n = own_pids();
    return n.tid && bpf_map_lookup_elem(&roots, &n.tid) ? follow_self() : 0;
}

/* The current task starts another one. `tid` is a number of the initial pid namespace. */
static __always_inline void note_start(const struct sv_wire_task *parent, __u32 tid, __u64 flags,
                                       const char *comm)
{
    struct sv_wire_task *s = make_state_of_tid(tid);
    if (!s) {
        count_not_followed();
        return;
    }
    if (config.pid_namespace) {
        struct start *start = (struct start *)s->args;
        start->parent = pids_in(parent);
        bpf_probe_read_kernel_str(start->comm, sizeof start->comm, comm);
        s->nr = STARTS;
        return;
    }
    s->tgid = flags & MAKES_THREAD ? parent->tgid : tid;
    s->tid = tid;
    put_fork(pids_in(parent), pids_in(s), (struct inner){0}, comm);
}

#endif

#endif

#endif

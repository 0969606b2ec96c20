/* Probe `rivals`: who had the CPU while a followed thread could run and did not, and what the
 * kernel counted of each thread. Both sides include it; the functions are for the kernel only,
 * called by the programs of joint.h.
 *
 * Each CPU remembers its last turns (turns.h). When a followed thread gets a CPU after a
 * millisecond or more, the turns since it could run on all CPUs that it may use are its rivals',
 * whoever they are; after less, those of the CPU that it gets. They are summed per thread and rival
 * and sent when the thread ends, or the recording. Switches to other threads cost one note of who
 * comes. */
#ifndef SV_RECORD_BPF_RIVALS_H
#define SV_RECORD_BPF_RIVALS_H

#include "records.h"

/* In `what`. */
enum sv_wire_rival_what {
    SV_RIVAL_IS_THREAD,
    SV_RIVAL_IS_REST,  /* the sum of all that have no record of their own */
    SV_RIVAL_IS_QUOTA, /* no rival: the thread's group had used its quota of CPU time */
    SV_RIVAL_IS_CROWD  /* the sum of short-lived or small ones of one name: no pid */
};

/* The head is that of the thread that did not run. */
struct sv_wire_rival {
    struct sv_wire_head head;
    __u64 dur_ns;
    __u64 cgroup; /* the number of the folder of the group with the quota; 0: not known, or none */
    __u32 n;      /* times */
    __u32 tgid, tid;   /* SV_WIRE_NO_PID: not in the recorder's pid namespace */
    __u32 is_followed; /* 0: outside of the recording */
    char comm[SV_WIRE_COMM];
};

/* What the kernel counts of a thread, since it is followed. */
struct sv_wire_schedstat {
    struct sv_wire_head head;
    struct sv_wire_sched counted;
};

#if defined(__bpf__) && KNOWS_KERNEL

#include "sched.h"

#include "turns.h"

#include "rivals_of.h"

#define LEAST_DELAY_NS 10000   /* less is what a switch takes */
#define LONG_DELAY_NS  1000000 /* of these all CPUs are looked at, and quotas */
#define LEAST_RIVAL_NS 100000  /* who had less in all is not named */

/* On one CPU whoever had it is a rival. Of several CPUs each has its part of the time in which none
 * of them was idle: while one is, the thread waits for the scheduler to use it, not for a rival.
 * Nor does it while its group has used its quota. */
__noinline int credit_turns(__u32 pid, __u64 since_ns, __u64 until_ns, __u64 mask, __u64 quota_ns)
{
    const __u64 all = 1ull << SHARE_BITS;
    struct look *x = my_look();
    if (!x || !rivals_for(pid))
        return 0;
    x->since_ns = since_ns;
    x->until_ns = until_ns;
    x->mask = mask;
    x->pid = pid;
    x->own_cpu = bpf_get_smp_processor_id();
    x->left = LOOKED_CPUS;
    x->busy_ns = x->most_idle_ns = 0;
    x->share = mask || quota_ns ? 0 : all;
    look_at_cpus();
    if (x->share || !x->busy_ns)
        return 0;
    __u64 no_rival = mask && x->most_idle_ns > quota_ns ? x->most_idle_ns : quota_ns,
          time = until_ns - since_ns;
    time = time > no_rival ? time - no_rival : 0;
    x->share = time < x->busy_ns ? (time << SHARE_BITS) / x->busy_ns : all;
    x->left = LOOKED_CPUS;
    if (x->share)
        look_at_cpus();
    return 0;
}

static __always_inline void add_quota(__u32 pid, const struct quota *q)
{
    struct rivals *r = rivals_for(pid);
    if (!r)
        return;
    r->quota_ns += q->ns;
    r->n_quota++;
    r->cgroup = q->cgroup;
}

static __always_inline void can_run_from(struct sv_wire_task *s, struct task_struct *task,
                                         __u64 now)
{
    s->can_run_ns = now;
    s->throttled_ns = throttled_ns(task);
}

static __always_inline void end_turn(struct task_struct *prev, struct sv_wire_task *leaves,
                                     unsigned state, __u64 now)
{
    if (!leaves)
        return;
    leaves->can_run_ns = 0;
    if (state == SV_STATE_PREEMPTED)
        can_run_from(leaves, prev, now);
}

static __always_inline struct quota begin_turn(struct task_struct *next, struct sv_wire_task *comes,
                                               __u64 now)
{
    struct quota q = {0};
    __u64 since = comes->can_run_ns, mask = 0;
    __u32 pid = (__u32)GET(next, pid);
    comes->can_run_ns = 0;
    if (!since || now - since < LEAST_DELAY_NS)
        return q;
    if (now - since >= LONG_DELAY_NS) {
        q.ns = throttled_ns(next) - comes->throttled_ns;
        q.ns = q.ns < now - since ? q.ns : now - since;
        if (GET(next, nr_cpus_allowed) > 1)
            mask = (__u64)BPF_CORE_READ(next, cpus_ptr); /* as a number */
    }
    if (q.ns) {
        q.cgroup = limited_group(next);
        add_quota(pid, &q);
    }
    credit_turns(pid, since, now, mask, q.ns);
    return q;
}

static __always_inline void note_woken(struct sv_wire_task *s, struct task_struct *task, __u64 now)
{
    if (!s->can_run_ns)
        can_run_from(s, task, now);
}

/* ---- sending ---- */

static __always_inline void put_rival(const struct sv_wire_task *s, const struct rival *r,
                                      enum sv_wire_rival_what what, __u64 cgroup)
{
    void *ring = r->n ? my_ring() : 0;
    struct sv_wire_rival *x = ring ? bpf_ringbuf_reserve(ring, sizeof *x, 0) : 0;
    if (r->n)
        count(SV_WIRE_RIVAL, x != 0);
    if (!x)
        return;
    fill_head(&x->head, SV_WIRE_RIVAL, what, pids_in(s));
    x->dur_ns = r->dur_ns;
    x->cgroup = cgroup;
    x->n = r->n;
    x->tgid = r->tgid;
    x->tid = r->tid;
    x->is_followed = r->is_followed;
    __builtin_memcpy(x->comm, r->comm, sizeof x->comm);
    bpf_ringbuf_submit(x, wake_flags(ring, sizeof *x));
}

static __always_inline void put_schedstat(const struct sv_wire_task *s, struct task_struct *task)
{
    struct sv_wire_sched now = counted_of(task);
    void *ring = my_ring();
    struct sv_wire_schedstat *x = ring ? bpf_ringbuf_reserve(ring, sizeof *x, 0) : 0;
    count(SV_WIRE_SCHEDSTAT, x != 0);
    if (!x)
        return;
    fill_head(&x->head, SV_WIRE_SCHEDSTAT, 0, pids_in(s));
    x->counted.run_ns = now.run_ns - s->counted.run_ns;
    x->counted.delay_ns = now.delay_ns - s->counted.delay_ns;
    x->counted.switches = now.switches - s->counted.switches;
    bpf_ringbuf_submit(x, wake_flags(ring, sizeof *x));
}

/* At the end of a thread or of the recording, once. */
static __always_inline void put_totals(struct sv_wire_task *s, struct task_struct *task)
{
    __u32 pid = (__u32)GET(task, pid);
    if (!config.has_rivals || s->is_summed)
        return;
    s->is_summed = 1;
    put_schedstat(s, task);
    struct rivals *r = bpf_map_lookup_elem(&rivals_of, &pid);
    if (!r)
        return;
    for (__u32 i = 0; i < RIVALS; i++) {
        if (r->all[i].dur_ns >= LEAST_RIVAL_NS)
            put_rival(s, &r->all[i], SV_RIVAL_IS_THREAD, 0);
        else if (r->all[i].n)
            join_crowd(pid, i);
    }
    for (int i = 0; i < CROWDS; i++) {
        if (r->crowds[i].dur_ns >= LEAST_RIVAL_NS)
            put_rival(s, &r->crowds[i], SV_RIVAL_IS_CROWD, 0);
        else
            add_to(&r->others, r->crowds[i].dur_ns, r->crowds[i].n);
    }
    put_rival(s, &r->others, SV_RIVAL_IS_REST, 0);
    const struct rival quota = {.dur_ns = r->quota_ns, .n = r->n_quota};
    put_rival(s, &quota, SV_RIVAL_IS_QUOTA, r->cgroup);
    bpf_map_delete_elem(&rivals_of, &pid);
}

/* Run at the end of the recording, for the threads that go on. */
SEC("iter/task")
int sum_up(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct sv_wire_task *s = task ? followed(task) : 0;
    if (s)
        put_totals(s, task);
    return 0;
}

#endif

#endif

/* Probe `rivals`: who had the CPU while a followed thread could run and did not, and what the
 * kernel counted of each thread. Both sides include it; the functions are for the kernel only,
 * called by the programs of joint.h.
 *
 * Each CPU remembers its last turns: who ran until when. When a followed thread gets a CPU, the
 * turns there since it could run are its rivals', whoever they are. They are summed per thread and
 * rival and sent when the thread ends, or the recording. Switches to other threads cost one note of
 * who leaves. */
#ifndef SV_RECORD_BPF_RIVALS_H
#define SV_RECORD_BPF_RIVALS_H

#include "records.h"

/* The head is that of the thread that did not run; `what` is 1 for the sum of all that have no
 * record of their own. */
struct sv_wire_rival {
    struct sv_wire_head head;
    __u64 dur_ns;
    __u32 n;         /* times */
    __u32 tgid, tid; /* SV_WIRE_NO_PID: not in the recorder's pid namespace */
    __u32 pad;
    char comm[SV_WIRE_COMM];
};

/* What the kernel counts of a thread, since it is followed. */
struct sv_wire_schedstat {
    struct sv_wire_head head;
    struct sv_wire_sched counted;
};

#if defined(__bpf__) && KNOWS_KERNEL

#include "sched.h"

enum { TURNS = 128, RIVALS = 16 }; /* powers of two */
#define LEAST_DELAY_NS 10000       /* less is what a switch takes */
#define LEAST_RIVAL_NS 100000      /* who had less in all is not named */

struct turn {
    __u64 end_ns;
    __u32 pid; /* 0: the CPU was idle */
    __u32 tgid, tid;
    char comm[SV_WIRE_COMM];
};

struct cpu_turns {
    __u32 n;
    struct turn last[TURNS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct cpu_turns);
} turns SEC(".maps");

struct rival {
    __u64 dur_ns;
    __u64 rank_ns; /* at least dur_ns: what those had whose place it has is in it */
    __u32 n;
    __u32 pid; /* 0: free */
    __u32 tgid, tid;
    char comm[SV_WIRE_COMM];
};

struct rivals {
    struct rival all[RIVALS];
    struct rival others;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __u32); /* of the thread, in the initial pid namespace */
    __type(value, struct rivals);
} rivals_of SEC(".maps");

static const struct rivals no_rivals = {};

static __always_inline struct rivals *rivals_for(__u32 pid)
{
    struct rivals *r = bpf_map_lookup_elem(&rivals_of, &pid);
    if (r)
        return r;
    bool is_made = bpf_map_update_elem(&rivals_of, &pid, &no_rivals, BPF_NOEXIST) == 0;
    count(SV_WIRE_RIVAL, is_made);
    return is_made ? bpf_map_lookup_elem(&rivals_of, &pid) : 0;
}

static __always_inline void add_to(struct rival *r, __u64 ns, __u32 n)
{
    r->dur_ns += ns;
    r->n += n;
}

/* A new one takes the place of the least, and its rank: so who had a sixteenth of all has a place,
 * however many others there are. Not static, and with numbers only: so the kernel checks it once,
 * not for each turn. */
__noinline int credit(__u32 pid, __u32 turn, __u64 ns)
{
    __u32 zero = 0;
    struct rival *to = 0;
    struct rivals *r = bpf_map_lookup_elem(&rivals_of, &pid);
    struct cpu_turns *c = bpf_map_lookup_elem(&turns, &zero);
    if (!r || !c)
        return 0;
    const struct turn *t = &c->last[turn & (TURNS - 1)];
    for (int i = 0; i < RIVALS; i++) {
        struct rival *x = &r->all[i];
        if (x->pid == t->pid) {
            to = x;
            break;
        }
        if (!to || x->rank_ns < to->rank_ns)
            to = x;
    }
    if (!to)
        return 0;
    if (to->pid != t->pid) {
        add_to(&r->others, to->dur_ns, to->n);
        to->dur_ns = to->n = 0;
        to->pid = t->pid;
    }
    to->tgid = t->tgid;
    to->tid = t->tid;
    __builtin_memcpy(to->comm, t->comm, sizeof to->comm);
    to->rank_ns += ns;
    add_to(to, ns, 1);
    return 0;
}

/* Whoever leaves the CPU has had it until now. */
static __always_inline void note_turn(struct cpu_turns *c, struct task_struct *prev,
                                      const struct sv_wire_task *leaves, __u64 now)
{
    struct turn *t = &c->last[c->n & (TURNS - 1)];
    t->end_ns = now;
    t->pid = (__u32)GET(prev, pid);
    t->tgid = leaves                 ? leaves->tgid
              : config.pid_namespace ? SV_WIRE_NO_PID
                                     : (__u32)GET(prev, tgid);
    t->tid = leaves ? leaves->tid : config.pid_namespace ? SV_WIRE_NO_PID : t->pid;
    bpf_probe_read_kernel(t->comm, sizeof t->comm, &prev->comm);
    c->n++;
}

struct turns_since {
    __u64 since_ns;
    __u32 pid; /* of the thread that could run */
};

/* The turn before the last i, as far as it was since then. */
static long credit_turn(__u32 i, void *of)
{
    const struct turns_since *x = of;
    __u32 zero = 0;
    const struct cpu_turns *c = bpf_map_lookup_elem(&turns, &zero);
    if (!c || ++i > c->n || i > TURNS)
        return 1;
    const struct turn *t = &c->last[(c->n - i) & (TURNS - 1)];
    const struct turn *before = &c->last[(c->n - i - 1) & (TURNS - 1)];
    __u64 begin = i < TURNS && i < c->n ? before->end_ns : x->since_ns;
    begin = begin > x->since_ns ? begin : x->since_ns;
    if (t->end_ns <= begin)
        return 1;
    if (t->pid && t->pid != x->pid)
        credit(x->pid, c->n - i, t->end_ns - begin);
    return begin == x->since_ns;
}

/* The turns since a thread could run, the last one first. */
__noinline int credit_turns(__u32 pid, __u64 since_ns)
{
    struct turns_since x = {.since_ns = since_ns, .pid = pid};
    if (rivals_for(pid))
        REPEAT(TURNS, credit_turn, &x);
    return 0;
}

static __always_inline void end_turn(struct task_struct *prev, struct sv_wire_task *leaves,
                                     unsigned state, __u64 now)
{
    __u32 zero = 0;
    struct cpu_turns *c = bpf_map_lookup_elem(&turns, &zero);
    if (c)
        note_turn(c, prev, leaves, now);
    if (leaves)
        leaves->can_run_ns = state == SV_STATE_PREEMPTED ? now : 0;
}

static __always_inline void begin_turn(struct task_struct *next, struct sv_wire_task *comes,
                                       __u64 now)
{
    __u64 since = comes->can_run_ns;
    comes->can_run_ns = 0;
    if (since && now - since >= LEAST_DELAY_NS)
        credit_turns((__u32)GET(next, pid), since);
}

static __always_inline void note_woken(struct sv_wire_task *s, __u64 now)
{
    if (!s->can_run_ns)
        s->can_run_ns = now;
}

/* ---- sending ---- */

static __always_inline void put_rival(const struct sv_wire_task *s, const struct rival *r,
                                      __u32 is_others)
{
    void *ring = r->n ? my_ring() : 0;
    struct sv_wire_rival *x = ring ? bpf_ringbuf_reserve(ring, sizeof *x, 0) : 0;
    if (r->n)
        count(SV_WIRE_RIVAL, x != 0);
    if (!x)
        return;
    fill_head(&x->head, SV_WIRE_RIVAL, is_others, pids_in(s));
    x->dur_ns = r->dur_ns;
    x->n = r->n;
    x->tgid = r->tgid;
    x->tid = r->tid;
    x->pad = 0;
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
    for (int i = 0; i < RIVALS; i++) {
        if (r->all[i].dur_ns >= LEAST_RIVAL_NS)
            put_rival(s, &r->all[i], 0);
        else
            add_to(&r->others, r->all[i].dur_ns, r->all[i].n);
    }
    put_rival(s, &r->others, 1);
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

/* Who has which CPU, and who had it before: kept by sched_switch. Part of rivals.h, on the kernel's
 * side only.
 *
 * A thread that could run and did not looks here. Each CPU writes its own turns and reads those of
 * others, which go on meanwhile: what it reads is from TURNS switches ago at most. */
#ifndef SV_RECORD_BPF_TURNS_H
#define SV_RECORD_BPF_TURNS_H

enum {
    TURNS = 128,       /* a power of two */
    LOOKED_TURNS = 32, /* of other CPUs than its own */
    LOOKED_CPUS = 32,  /* its own, and those with the next numbers */
    SHARE_BITS = 20    /* of a share: it is in parts of 1 << SHARE_BITS */
};

struct turn {
    __u64 since_ns;
    __u32 pid; /* 0: the CPU is idle */
    __u32 tgid, tid, is_followed;
    char comm[SV_WIRE_COMM];
};

struct cpu_turns {
    __u32 n, pad;
    struct turn last[TURNS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1); /* one per CPU, set by the loader */
    __type(key, __u32);
    __type(value, struct cpu_turns);
} turns SEC(".maps");

/* A look at the CPUs. sched_switch makes one at a time on a CPU. */
struct look {
    __u64 since_ns, until_ns;
    __u64 next_ns;      /* of the CPU that is looked at: what is before it is still to do */
    __u64 idle_ns;      /* of that CPU */
    __u64 busy_ns;      /* of all that were looked at: others had them */
    __u64 most_idle_ns; /* of the one that was idle for longest */
    __u64 mask;         /* the address of the CPUs that it may use; 0: its own one only */
    __u64 share;        /* of that time each rival is given; 0: nothing, it is counted only */
    __u32 pid;          /* of the thread that could run */
    __u32 own_cpu, cpu, n, most, left;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct look);
} looks SEC(".maps");

static __always_inline struct look *my_look(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&looks, &zero);
}

/* Whoever comes has the CPU from now on. */
static __always_inline void note_turn(struct task_struct *next, const struct sv_wire_task *comes,
                                      __u64 now)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct cpu_turns *c = bpf_map_lookup_elem(&turns, &cpu);
    if (!c)
        return;
    struct turn *t = &c->last[c->n & (TURNS - 1)];
    t->since_ns = now;
    t->pid = (__u32)GET(next, pid);
    t->tgid = comes ? comes->tgid : config.pid_namespace ? SV_WIRE_NO_PID : (__u32)GET(next, tgid);
    t->tid = comes ? comes->tid : config.pid_namespace ? SV_WIRE_NO_PID : t->pid;
    t->is_followed = comes != 0;
    bpf_probe_read_kernel(t->comm, sizeof t->comm, &next->comm);
    c->n++;
}

int credit(__u32 pid, __u32 cpu, __u32 turn, __u64 ns); /* rivals.h */

/* The turn before the last i, as far as it was in the time that is looked at. */
static long look_at_turn(__u32 i, void *of)
{
    struct look *x = my_look();
    (void)of;
    if (!x || i >= x->n || i >= x->most)
        return 1;
    __u32 at = x->n - 1 - i, cpu = x->cpu;
    const struct cpu_turns *c = bpf_map_lookup_elem(&turns, &cpu);
    if (!c)
        return 1;
    const struct turn *t = &c->last[at & (TURNS - 1)];
    __u64 begin = t->since_ns;
    if (begin < x->since_ns || i + 1 == x->most)
        begin = x->since_ns;
    if (x->next_ns <= begin)
        return 0;
    __u64 ns = x->next_ns - begin;
    x->next_ns = begin;
    if (!t->pid) {
        x->idle_ns += ns;
    } else if (t->pid != x->pid) {
        x->busy_ns += ns;
        if (x->share)
            credit(x->pid, cpu, at, ns * x->share >> SHARE_BITS);
    }
    return begin <= x->since_ns;
}

/* Not static, and with numbers only: the kernel checks it once. */
__noinline int look_at_cpu(__u32 cpu)
{
    struct look *x = my_look();
    const struct cpu_turns *c = bpf_map_lookup_elem(&turns, &cpu);
    if (!x || !c)
        return 0;
    x->cpu = cpu;
    x->n = c->n;
    x->most = cpu == x->own_cpu ? TURNS : LOOKED_TURNS;
    x->next_ns = x->until_ns;
    x->idle_ns = 0;
    REPEAT(TURNS, look_at_turn, &cpu);
    if (x->idle_ns > x->most_idle_ns)
        x->most_idle_ns = x->idle_ns;
    return 0;
}

static long look_if_allowed(__u32 i, void *of)
{
    struct look *x = my_look();
    __u64 word = 0;
    (void)of;
    if (!x || i >= config.n_cpus || !x->left)
        return 1;
    __u32 cpu = x->own_cpu + i;
    cpu = cpu >= config.n_cpus ? cpu - config.n_cpus : cpu;
    if (i > 0) {
        bpf_probe_read_kernel(&word, sizeof word, (void *)(x->mask + cpu / 64 * sizeof word));
        if (!(word >> (cpu & 63) & 1))
            return 0;
    }
    x->left--;
    look_at_cpu(cpu);
    return 0;
}

__noinline int look_at_cpus(void)
{
    enum { CPUS_MAX = 1024 };
    __u32 none = 0;
    struct look *x = my_look();
    if (!x)
        return 0;
    if (x->mask)
        REPEAT(CPUS_MAX, look_if_allowed, &none);
    else
        look_at_cpu(x->own_cpu);
    return 0;
}

#endif

/* The rivals of each thread: who has a place among them, with the sums. Part of rivals.h, on the
 * kernel's side only. turns.h tells whose turns they were. */
#ifndef SV_RECORD_BPF_RIVALS_OF_H
#define SV_RECORD_BPF_RIVALS_OF_H

enum { RIVALS = 16, CROWDS = 8 }; /* RIVALS: a power of two */

struct rival {
    __u64 dur_ns;
    __u64 rank_ns; /* at least dur_ns: what those had whose place it has is in it */
    __u32 n;
    __u32 pid; /* 0: free */
    __u32 tgid, tid;
    __u32 is_followed, pad;
    char comm[SV_WIRE_COMM];
};

struct rivals {
    struct rival all[RIVALS];
    struct rival crowds[CROWDS]; /* by name: who had no place, or lost it; no pid */
    struct rival others;
    __u64 quota_ns, cgroup;
    __u32 n_quota, pad;
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

static __always_inline bool is_of_crowd(const struct rival *r, const struct rival *crowd)
{
    const __u64 *a = (const void *)r->comm, *b = (const void *)crowd->comm;
    return a[0] == b[0] && a[1] == b[1] && r->is_followed == crowd->is_followed;
}

/* The rival i gives its time to those of its name: a build starts thousands of short compilers,
 * none of which has a sixteenth. Of the names those with the most have a place, as in credit(). */
__noinline int join_crowd(__u32 pid, __u32 i)
{
    struct rival *to = 0;
    struct rivals *r = bpf_map_lookup_elem(&rivals_of, &pid);
    if (!r)
        return 0;
    struct rival *x = &r->all[i & (RIVALS - 1)]; /* the kernel sees that it is in there */
    for (int k = 0; k < CROWDS; k++) {
        struct rival *crowd = &r->crowds[k];
        if (is_of_crowd(x, crowd)) {
            to = crowd;
            break;
        }
        if (!to || crowd->rank_ns < to->rank_ns)
            to = crowd;
    }
    if (!to)
        return 0;
    if (!is_of_crowd(x, to)) {
        add_to(&r->others, to->dur_ns, to->n);
        to->dur_ns = to->n = 0;
        to->is_followed = x->is_followed;
        __builtin_memcpy(to->comm, x->comm, sizeof to->comm);
    }
    to->rank_ns += x->dur_ns;
    add_to(to, x->dur_ns, x->n);
    x->dur_ns = x->n = 0;
    return 0;
}

/* A new one takes the place of the least, and its rank: so who had a sixteenth of all has a place,
 * however many others there are. Not static, and with numbers only: so the kernel checks it once,
 * not for each turn. */
__noinline int credit(__u32 pid, __u32 cpu, __u32 turn, __u64 ns)
{
    struct rival *to = 0;
    __u32 place = 0;
    struct rivals *r = bpf_map_lookup_elem(&rivals_of, &pid);
    struct cpu_turns *c = bpf_map_lookup_elem(&turns, &cpu);
    if (!r || !c)
        return 0;
    const struct turn *t = &c->last[turn & (TURNS - 1)];
    for (__u32 i = 0; i < RIVALS; i++) {
        struct rival *x = &r->all[i];
        if (x->pid == t->pid) {
            to = x;
            break;
        }
        if (!to || x->rank_ns < to->rank_ns) {
            to = x;
            place = i;
        }
    }
    if (!to)
        return 0;
    if (to->pid != t->pid) {
        if (to->n)
            join_crowd(pid, place);
        to->pid = t->pid;
    }
    to->tgid = t->tgid;
    to->tid = t->tid;
    to->is_followed = t->is_followed;
    __builtin_memcpy(to->comm, t->comm, sizeof to->comm);
    to->rank_ns += ns;
    add_to(to, ns, 1);
    return 0;
}

#endif

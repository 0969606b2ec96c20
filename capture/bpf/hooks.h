/* How the programs are attached: one source, compiled three times. Part of io.bpf.c.
 *
 *   SV_HOOKS_BTF    typed tracepoints (tp_btf) and storage of the task itself: the fastest; Linux 5.11 or newer
 *   SV_HOOKS_RAW    raw tracepoints, memory of the kernel read by a helper, tasks known by their number: Linux 5.8 or newer
 *   SV_HOOKS_PLAIN  tracepoints by name, nothing of the kernel's own memory: system calls and processes, no type information needed
 *
 * GET(p, field) is a field of the kernel's struct at p. */
#ifndef SV_CAPTURE_BPF_HOOKS_H
#define SV_CAPTURE_BPF_HOOKS_H

#if defined(SV_HOOKS_BTF)
#define TRACEPOINT(name) SEC("tp_btf/" #name)
#define GET(p, field)    ((p)->field)
#define KNOWS_KERNEL     1
#elif defined(SV_HOOKS_RAW)
#define TRACEPOINT(name) SEC("raw_tp/" #name)
#define GET(p, field)    BPF_CORE_READ(p, field)
#define KNOWS_KERNEL     1
#elif defined(SV_HOOKS_PLAIN)
#define KNOWS_KERNEL 0
#else
#error "one of SV_HOOKS_BTF, SV_HOOKS_RAW, SV_HOOKS_PLAIN"
#endif

struct task_state {
    __u64 start_ns;
    __u64 args[8]; /* six, and room so that no number of an argument is out of bounds */
    __u32 nr;
    __u32 is_open;
};

#if defined(SV_HOOKS_BTF)

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task_state);
} tasks SEC(".maps");

static __always_inline struct task_struct *current_task(void)
{
    return bpf_get_current_task_btf();
}

/* The state of a task that is followed. One look at the task itself answers for nearly all others: they have no storage of any map, and the
 * call of a helper costs them more than the rest. */
static __always_inline struct task_state *followed(struct task_struct *task)
{
    if (bpf_core_field_exists(task->bpf_storage) && !task->bpf_storage)
        return 0;
    return bpf_task_storage_get(&tasks, task, 0, 0);
}

static __always_inline struct task_state *followed_self(void)
{
    return followed(bpf_get_current_task_btf());
}

static __always_inline struct task_state *follow(struct task_struct *task)
{
    return bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline struct task_state *follow_self(void)
{
    return follow(bpf_get_current_task_btf());
}

static __always_inline void unfollow_self(void)
{
    /* the storage ends with its task */
}

#else

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1 << 16);
    __type(key, __u32); /* the thread's number */
    __type(value, struct task_state);
} tasks SEC(".maps");

static __always_inline struct task_state *followed_number(__u32 tid)
{
    return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline struct task_state *follow_number(__u32 tid)
{
    struct task_state none = {0};
    bpf_map_update_elem(&tasks, &tid, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline struct task_state *followed_self(void)
{
    return followed_number((__u32)bpf_get_current_pid_tgid());
}

static __always_inline struct task_state *follow_self(void)
{
    return follow_number((__u32)bpf_get_current_pid_tgid());
}

static __always_inline void unfollow_self(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    bpf_map_delete_elem(&tasks, &tid);
}

#if KNOWS_KERNEL

static __always_inline struct task_struct *current_task(void)
{
    return (struct task_struct *)bpf_get_current_task();
}

static __always_inline struct task_state *followed(struct task_struct *task)
{
    return followed_number((__u32)GET(task, pid));
}

static __always_inline struct task_state *follow(struct task_struct *task)
{
    return follow_number((__u32)GET(task, pid));
}

#endif
#endif

#endif

/* How the programs are attached: one source, compiled three times. Part of io.bpf.c.
 *
 *   SV_HOOKS_BTF    typed tracepoints (tp_btf) and storage of the task itself: the fastest; Linux
 *                   5.13 or newer
 *   SV_HOOKS_RAW    raw tracepoints, memory of the kernel read by a helper, tasks known by their
 *                   number: Linux 5.8 or newer
 *   SV_HOOKS_PLAIN  tracepoints by name, nothing of the kernel's own memory: system calls and
 *                   processes, no type information needed
 *
 * GET(p, field) is a field of the kernel's struct at p. */
#ifndef SV_RECORD_BPF_HOOKS_H
#define SV_RECORD_BPF_HOOKS_H

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

/* A function that the kernel checks once, by itself, not at every place that calls it: nothing is
 * known of its arguments, which are numbers, and pointers to structs where hooks are typed (since
 * Linux 5.12). */
#if defined(SV_HOOKS_BTF)
#define CHECKED_ONCE __noinline
#else
#define CHECKED_ONCE static __noinline
#endif

/* Calls `step` with 0, 1, … and `of` until it returns 1. The kernel checks the step once where it
 * has a helper that repeats it (Linux 5.17), else each time anew. Programs that use the helper need
 * Linux 5.13 to load at all. */
#if defined(SV_HOOKS_BTF)
#define REPEAT(times, step, of)                                                  \
    do {                                                                         \
        if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))         \
            bpf_loop(times, step, of, 0);                                        \
        else                                                                     \
            for (__u32 repeat_i = 0; repeat_i < (times) && !step(repeat_i, of);) \
                repeat_i++;                                                      \
    } while (0)
#else
#define REPEAT(times, step, of)                                          \
    for (__u32 repeat_i = 0; repeat_i < (times) && !step(repeat_i, of);) \
    repeat_i++
#endif

#if defined(SV_HOOKS_BTF)

void *bpf_rdonly_cast(const void *at, __u32 type) __ksym __weak;

/* The struct at p, to read pointers from it: for each one that is read from a struct which it
 * trusts the kernel searches all its types by name several times, a millisecond, when it checks the
 * programs. */
#define WALK(type, p) \
    (config.has_casts ? (type *)bpf_rdonly_cast(p, bpf_core_type_id_kernel(type)) : (p))

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct sv_wire_task);
} tasks SEC(".maps");

static __always_inline struct task_struct *current_task(void)
{
    return bpf_get_current_task_btf();
}

/* What is kept of a task. A look at the task itself is enough for nearly all others: they have no
 * storage of any map, and a call of a helper would cost them more than the rest. */
static __always_inline struct sv_wire_task *state_of(struct task_struct *task)
{
    if (bpf_core_field_exists(task->bpf_storage) && !WALK(struct task_struct, task)->bpf_storage)
        return 0;
    return bpf_task_storage_get(&tasks, task, 0, 0);
}

static __always_inline struct sv_wire_task *own_state(void)
{
    return state_of(bpf_get_current_task_btf());
}

/* Whether the caller may be a followed task is decided by the address of its registers, which are
 * at the end of the task's kernel stack: no helper is called, and a call of another process costs
 * one load. Two stacks may share a byte, and the stack of a followed task may be used again: those
 * calls take the long way. Stacks are aligned to their size, 16 KiB or up to four times as much. */
enum { STACK_SHIFT = 14, STACK_PARTS = 4 };

static __always_inline void mark_stack(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
    if (bpf_core_field_exists(task->stack)) {
        __u64 stack = (__u64)BPF_CORE_READ(task, stack) >> STACK_SHIFT;
        for (int i = 0; i < STACK_PARTS; i++)
            shared.stacks[(stack + i) & (SV_WIRE_STACKS - 1)] = 1;
    }
#endif
    (void)task;
}

/* The lower half of a pointer as a number. The kernel does not let a pointer be shifted, but half
 * of it be copied: w2 = w2, which the compiler's default instruction set does not have. */
static __always_inline __u64 lower_half(const void *p)
{
    __u64 half;
    asm("r2 = %1\n"
        ".byte 0xbc, 0x22, 0, 0, 0, 0, 0, 0\n"
        "%0 = r2"
        : "=r"(half)
        : "r"(p)
        : "r2");
    return half;
}

static __always_inline bool is_not_followed(const void *regs)
{
#if defined(__TARGET_ARCH_x86)
    return bpf_core_field_exists(((struct task_struct *)0)->stack) &&
           !shared.stacks[lower_half(regs) >> STACK_SHIFT & (SV_WIRE_STACKS - 1)];
#else
    (void)regs;
    return false;
#endif
}

static __always_inline struct sv_wire_task *make_state(struct task_struct *task)
{
    mark_stack(task);
    return bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void drop_own_state(void)
{
    /* the storage ends with its task */
}

/* The thread that makes the exec has the storage, whatever number it gets. */
static __always_inline void move_state(struct task_struct *task, int old_pid)
{
    (void)task;
    (void)old_pid;
}

#else

#define WALK(type, p) (p)

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1 << 16);
    __type(key, __u32); /* the thread's number */
    __type(value, struct sv_wire_task);
} tasks SEC(".maps");

static __always_inline bool is_not_followed(const void *regs)
{
    (void)regs;
    return false;
}

static __always_inline struct sv_wire_task *state_of_tid(__u32 tid)
{
    return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline struct sv_wire_task *make_state_of_tid(__u32 tid)
{
    struct sv_wire_task none = {0};
    bpf_map_update_elem(&tasks, &tid, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&tasks, &tid);
}

static __always_inline struct sv_wire_task *own_state(void)
{
    return state_of_tid((__u32)bpf_get_current_pid_tgid());
}

static __always_inline void drop_own_state(void)
{
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    bpf_map_delete_elem(&tasks, &tid);
}

/* A thread that makes an exec gets the number of the first one, which is gone by then. */
static __always_inline void move_state_of_tid(__u32 tid, __u32 old_tid)
{
    const struct sv_wire_task *old = tid != old_tid ? state_of_tid(old_tid) : 0;
    if (!old)
        return;
    bpf_map_update_elem(&tasks, &tid, old, BPF_ANY);
    bpf_map_delete_elem(&tasks, &old_tid);
}

#if KNOWS_KERNEL

static __always_inline struct task_struct *current_task(void)
{
    return (struct task_struct *)bpf_get_current_task();
}

static __always_inline struct sv_wire_task *state_of(struct task_struct *task)
{
    return state_of_tid((__u32)GET(task, pid));
}

static __always_inline struct sv_wire_task *make_state(struct task_struct *task)
{
    return make_state_of_tid((__u32)GET(task, pid));
}

static __always_inline void move_state(struct task_struct *task, int old_pid)
{
    move_state_of_tid((__u32)GET(task, pid), (__u32)old_pid);
}

#endif
#endif

#endif

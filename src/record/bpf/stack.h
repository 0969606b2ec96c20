/* What a kernel program takes of the stack of the current thread: its registers, a copy of the
 * upper end of its stack, the kernel's frames, and those of Python (stack_python.h). Both sides
 * include it; the functions are for the kernel only.
 *
 * A record with a stack is a head, a struct sv_wire_stack, and behind it: n_kernel addresses,
 * n_user addresses (innermost first), n_python frames (innermost first), copy_bytes bytes.
 * sv_stacks_frames() (record/stacks/) makes names of it. A probe that wants a stack asks for room,
 * fills the head, and sends what take_stack() returns:
 *
 *     struct stack_room *r = stack_room(STACK_OF_SAMPLE);
 *     if (r) {
 *         __u64 size = take_stack(ctx, r, task, STACK_OF_SAMPLE, true);
 *         fill_head(&r->head, …);
 *         send_stack(r, size, task, SV_WIRE_…);
 *     } */
#ifndef SV_RECORD_BPF_STACK_H
#define SV_RECORD_BPF_STACK_H

#include "records.h"

/* Registers of x86-64 in the order in which unwind information numbers them. */
enum { SV_STACK_BP = 6, SV_STACK_SP = 7, SV_STACK_IP = 16, SV_STACK_REGS = 17 };

enum {
    SV_STACK_COPY_MAX = 64 << 10, /* PyTorch's stacks are up to 40 KiB deep */
    SV_STACK_ADDRESSES_MAX = 127, /* of the kernel, and of the process by frame pointers */
    SV_STACK_PYTHON_MAX = 128
};

/* Whose stacks are taken. */
enum stack_room_of { STACK_OF_SAMPLE, STACK_OF_SWITCH, STACK_ROOMS };

/* How the frames of a process are found. */
enum sv_stack_way {
    SV_STACK_NONE, /* the innermost only */
    SV_STACK_FP,   /* by frame pointers, in the kernel */
    SV_STACK_COPY  /* from registers and a copy of the stack, in the recorder */
};

struct sv_wire_pyframe {
    __u64 code; /* the address of its code object */
    __u32 at;   /* where in its bytecode, in bytes */
    __u8 owner; /* as CPython has it */
    __u8 is_entry;
    __u16 pad;
};

struct sv_wire_stack {
    __u64 regs[SV_STACK_REGS]; /* all 0: not known */
    __u64 own[2];              /* of the probe */
    __u32 copy_bytes;          /* of the stack, from its pointer on */
    __u16 n_kernel, n_user, n_python;
    __u16 has_more_python; /* there were more frames than SV_STACK_PYTHON_MAX */
    __u32 pad;
};

/* A code object of Python whose address is in frames that follow. Behind it: linetable_bytes
 * bytes. */
struct sv_wire_code {
    struct sv_wire_head head;
    __u64 code;
    __u32 first_line, linetable_bytes;
    __u8 name_kind, file_kind; /* bytes per character */
    __u16 name_bytes, file_bytes, pad;
    char name[256], file[512]; /* of a longer file its end */
};

/* Where CPython keeps what (record/stacks/python_offsets.c). */
#define SV_PYTHON_NONE 0xffffffffu
struct sv_wire_python {
    __u64 runtime;                             /* address of _PyRuntime */
    __u32 current, interpreters;               /* current: NONE where the interpreter has it */
    __u32 threads, holder, locked;             /* of the interpreter; the holder of its lock */
    __u32 next, native_id, cframe;             /* of the thread's state; cframe may be NONE */
    __u32 frame;                               /* of the cframe, or of the thread's state */
    __u32 code, previous, instr, owner, entry; /* of a frame; entry may be NONE */
    __u32 first_line, file, name, linetable, bytecode; /* of a code object */
    __u32 text_ascii, text_other;                      /* where the characters of a text begin */
};

#if defined(__bpf__)

#define STACK_BYTES_MASK 0x3f8 /* 127 addresses */

/* Addresses, frames and copy follow one another; the bounds that the kernel proves are those of all
 * maxima together. */
struct stack_room {
    struct sv_wire_head head;
    struct sv_wire_stack stack;
    char bytes[4096 + SV_STACK_COPY_MAX + 4096];
};

/* One for each CPU and probe: the clock may interrupt another program of this CPU. Not a map per
 * CPU, whose values are limited to 32 KiB. The loader sets the number. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, STACK_ROOMS);
    __type(key, __u32);
    __type(value, struct stack_room);
} stack_rooms SEC(".maps");

static __always_inline struct stack_room *stack_room(__u32 of)
{
    __u32 at = bpf_get_smp_processor_id() * STACK_ROOMS + of;
    return bpf_map_lookup_elem(&stack_rooms, &at);
}

#if defined(SV_HOOKS_BTF) && defined(__TARGET_ARCH_x86)
#define STACK_CAN_COPY 1

static __always_inline bool take_registers(__u64 regs[SV_STACK_REGS])
{
    struct pt_regs *r = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
    regs[0] = r->ax;
    regs[1] = r->dx;
    regs[2] = r->cx;
    regs[3] = r->bx;
    regs[4] = r->si;
    regs[5] = r->di;
    regs[SV_STACK_BP] = r->bp;
    regs[SV_STACK_SP] = r->sp;
    regs[8] = r->r8;
    regs[9] = r->r9;
    regs[10] = r->r10;
    regs[11] = r->r11;
    regs[12] = r->r12;
    regs[13] = r->r13;
    regs[14] = r->r14;
    regs[15] = r->r15;
    regs[SV_STACK_IP] = r->ip;
    return regs[SV_STACK_SP] != 0;
}

/* How much of the stack there is, at most SV_STACK_COPY_MAX. The first thread's ends where the
 * kernel put the arguments of the program, that of another one where its own memory is, which glibc
 * puts behind the stack. */
static __always_inline __u64 stack_depth(__u64 sp)
{
    struct task_struct *task = bpf_get_current_task_btf();
    __u64 depth = SV_STACK_COPY_MAX;
    __u64 first = BPF_CORE_READ(task, mm, start_stack) - sp;
    __u64 own = BPF_CORE_READ(task, thread.fsbase) - sp;
    if (first < depth)
        depth = first;
    if (own < depth)
        depth = own;
    return depth;
}

enum { STACK_BEFORE_COPY = 4096 }; /* a power of two: more than what is before it needs */

struct stack_copy {
    __u64 offset, sp, depth, first, end; /* `first`: of the first page */
    __u32 room;
};

static long copy_page(__u32 i, void *of)
{
    struct stack_copy *c = of;
    struct stack_room *r = stack_room(c->room);
    __u64 at = i ? c->first + (i - 1) * 4096ull : 0, to = i ? 4096 : c->first;
    if (!r || at >= c->depth || at > SV_STACK_COPY_MAX)
        return 1;
    __u64 size = c->depth - at < to ? c->depth - at : to;
    if (size > 4096)
        return 1; /* never; the kernel wants to be sure */
    if (bpf_probe_read_user(r->bytes + (c->offset & (STACK_BEFORE_COPY - 1)) + at, size,
                            (void *)(c->sp + at)) == 0)
        c->end = at + size;
    return 0;
}

/* The functions that are not static are checked by the kernel one by one: together they would be
 * too much for it. So they take and return numbers only.
 *
 * Page by page, because a page may not be there: it reads as zeros, and those behind it are tried
 * all the same. Returns the end of the last one that was read. */
__noinline __u64 copy_stack(__u32 room, __u64 offset)
{
    struct stack_room *r = stack_room(room);
    if (!r || offset >= STACK_BEFORE_COPY)
        return 0;
    __u64 sp = r->stack.regs[SV_STACK_SP];
    struct stack_copy c = {
        .room = room, .offset = offset, .sp = sp, .depth = stack_depth(sp), .first = -sp & 4095};
    REPEAT(SV_STACK_COPY_MAX / 4096 + 1, copy_page, &c);
    return c.end & (2 * SV_STACK_COPY_MAX - 1);
}
#else
#define STACK_CAN_COPY 0
#endif

#include "stack_python.h"

/* Stacks are large. They have half of the ring: what is short always finds its place. */
static __always_inline bool is_crowded(void)
{
    void *ring = my_ring();
    if (!ring || bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) < 2 * config.wake_bytes)
        return false;
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->no_stack++;
    return true;
}

/* Stacks of waits cost up to 15 µs each here and as much again to name, and threads that take turns
 * make ten thousand waits a second. So each CPU has 400 a second of them, and 2,000 saved up while
 * it needs fewer. Some stacks leave a part of what is saved to those that say more. */
#define STACK_NEXT_NS  2500000ull
#define STACK_SAVED_NS (2000 * STACK_NEXT_NS)

/* What a stack leaves to others, in quarters: of a wait of 10 ms or more, of who ends a wait for a
 * lock, of a wait of 1 ms or more, of a shorter one (--offcpu-min). */
enum { STACK_OF_LONG_WAIT, STACK_OF_WAKER, STACK_OF_WAIT, STACK_OF_SHORT_WAIT };

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64); /* up to when its stacks are spent */
} stack_budget SEC(".maps");

/* Whether there may be a stack; it is spent then, else counted. */
static __always_inline bool may_take_stack(__u64 now, __u32 leaves)
{
    __u32 zero = 0;
    __u64 *spent = bpf_map_lookup_elem(&stack_budget, &zero);
    if (!spent)
        return true;
    if (now > STACK_SAVED_NS && *spent < now - STACK_SAVED_NS)
        *spent = now - STACK_SAVED_NS;
    bool is_left = !shared.has_no_stacks && *spent + leaves * (STACK_SAVED_NS / 4) < now;
    struct sv_wire_counts *c = is_left ? 0 : my_counts();
    if (is_left)
        *spent += STACK_NEXT_NS;
    else if (c)
        c->no_stack++;
    return is_left;
}

/* Fills all but the head. Returns the size of the record, 0: it does not fit. */
static __always_inline __u64 take_stack(void *ctx, struct stack_room *r, struct sv_wire_task *task,
                                        __u32 room, bool has_kernel)
{
    __u64 n = 0;
    struct sv_wire_stack *s = &r->stack;
    s->n_user = s->n_python = s->has_more_python = 0;
    s->copy_bytes = s->pad = 0;
    const bool has_room = !is_crowded(); /* otherwise only the innermost frame */
    if (has_kernel && has_room) {
        long kernel = bpf_get_stack(ctx, r->bytes, STACK_BYTES_MASK, 0);
        n = kernel > 0 ? (__u64)kernel & STACK_BYTES_MASK : 0;
    }
    s->n_kernel = (__u16)(n / 8);
    bool has_registers = false;
#if STACK_CAN_COPY
    if (config.stack_way != SV_STACK_FP)
        has_registers = take_registers(s->regs);
#endif
    if (!has_registers)
        __builtin_memset(s->regs, 0, sizeof s->regs);
    if (config.stack_way == SV_STACK_FP) {
        long user = bpf_get_stack(ctx, r->bytes + n, STACK_BYTES_MASK, BPF_F_USER_STACK);
        __u64 more = user > 0 ? (__u64)user & STACK_BYTES_MASK : 0;
        s->n_user = (__u16)(more / 8);
        n += more;
    }
#if STACK_HAS_PYTHON
    if (config.has_python && has_room)
        n += take_python(room, n, python_process(task), task->tgid, task->tid);
#endif
#if STACK_CAN_COPY
    if (config.stack_way == SV_STACK_COPY && has_registers && has_room) {
        __u64 copied = copy_stack(room, n);
        s->copy_bytes = (__u32)copied;
        n += copied;
    }
#endif
    (void)task;
    (void)room;
    return n <= sizeof r->bytes ? sizeof r->head + sizeof r->stack + n : 0;
}

/* The reader is woken by the first stack of a thread: it has to read the maps of the process while
 * that lives. */
static __always_inline void send_stack(struct stack_room *r, __u64 size, struct sv_wire_task *task,
                                       unsigned kind)
{
    void *ring = my_ring();
    if (!ring || size == 0 || size > sizeof *r)
        return;
    __u64 flags = task->is_sampled ? wake_flags(ring, size) : BPF_RB_FORCE_WAKEUP;
    task->is_sampled = 1;
    count(kind, bpf_ringbuf_output(ring, r, size, flags) == 0);
}

#endif

#endif

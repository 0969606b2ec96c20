/* What a task is doing in the kernel: the system call that it is in, and whether the current code
 * is an interrupt. For programs of the scheduler.
 *
 * Calls are known with typed tracepoints of x86-64 and config.knows_calls. */
#ifndef SV_RECORD_BPF_UNDER_WAY_H
#define SV_RECORD_BPF_UNDER_WAY_H

#include "records.h"

#if defined(__bpf__) && KNOWS_KERNEL

struct call_under_way {
    __u32 nr;   /* SV_WIRE_NO_CALL */
    __u64 arg0; /* its first argument */
    __u64 lock; /* as in struct sv_wire_wait, and `file` */
    __u32 file;
    __u64 ip; /* where it left the program */
};

#if defined(SV_HOOKS_BTF) && defined(__TARGET_ARCH_x86)
#define KNOWS_CALLS 1

enum {
    CALL_SEMOP = 65,
    CALL_FCNTL = 72,
    CALL_FLOCK = 73,
    CALL_FUTEX = 202,
    CALL_SEMTIMEDOP = 220,
    CALL_MQ_SEND = 242, /* mq_timedsend, mq_timedreceive */
    CALL_MQ_RECEIVE = 243,
    CALL_FUTEX_WAIT = 455
};

static __always_inline bool is_futex(__u32 nr)
{
    return nr == CALL_FUTEX || nr == CALL_FUTEX_WAIT;
}

/* Between calls the kernel keeps -1 there, in interrupts and faults, too. */
static __always_inline struct call_under_way call_under_way(struct task_struct *task)
{
    struct call_under_way c = {.nr = SV_WIRE_NO_CALL};
    if (!config.knows_calls)
        return c;
    struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
    __u64 nr = regs->orig_ax;
    c.ip = regs->ip;
    if (nr >= SV_WIRE_CALLS_MAX)
        return c;
    c.nr = (__u32)nr;
    c.arg0 = regs->di;
    if (is_futex(c.nr))
        c.lock = c.arg0;
    return c;
}

enum { IS_KERNEL_THREAD = 0x00200000 };

/* A message to this machine is delivered by a soft interrupt that the sender itself runs: it is the
 * waker. */
static __always_inline bool is_sending(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (task->flags & IS_KERNEL_THREAD)
        return false;
    switch (call_under_way(task).nr) {
    case 1:   /* write */
    case 3:   /* close */
    case 20:  /* writev */
    case 40:  /* sendfile */
    case 42:  /* connect */
    case 44:  /* sendto */
    case 46:  /* sendmsg */
    case 48:  /* shutdown */
    case 275: /* splice */
    case 307: /* sendmmsg */ return true;
    }
    return false;
}

#else
#define KNOWS_CALLS 0

static __always_inline struct call_under_way call_under_way(struct task_struct *task)
{
    (void)task;
    return (struct call_under_way){.nr = SV_WIRE_NO_CALL};
}

static __always_inline bool is_sending(void)
{
    return false;
}

#endif

/* ---- interrupts ---- */

/* What a CPU serves. The kernel's own count of this cannot be read by programs where /proc/kallsyms
 * has no variables. */
enum interrupt { NO_INTERRUPT, BY_TIMER, BY_DEVICE, BY_NET, BY_BLOCK, BY_OTHER };
struct interrupts {
    __u32 hard, soft; /* enum interrupt; a hard one may come while a soft one is served */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct interrupts);
} interrupts SEC(".maps");

static __always_inline struct interrupts *my_interrupts(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&interrupts, &zero);
}

static __always_inline int serve_hard(__u32 what)
{
    struct interrupts *i = my_interrupts();
    if (i)
        i->hard = what;
    return 0;
}

static __always_inline int serve_soft(__u32 what)
{
    struct interrupts *i = my_interrupts();
    if (i)
        i->soft = what;
    return 0;
}

TRACEPOINT(hrtimer_expire_entry)
int on_waker_timer(void *ctx)
{
    (void)ctx;
    return serve_hard(BY_TIMER);
}

TRACEPOINT(hrtimer_expire_exit)
int on_waker_timer_end(void *ctx)
{
    (void)ctx;
    return serve_hard(NO_INTERRUPT);
}

TRACEPOINT(irq_handler_entry)
int on_waker_device(void *ctx)
{
    (void)ctx;
    return serve_hard(BY_DEVICE);
}

TRACEPOINT(irq_handler_exit)
int on_waker_device_end(void *ctx)
{
    (void)ctx;
    return serve_hard(NO_INTERRUPT);
}

TRACEPOINT(softirq_entry)
int BPF_PROG(on_waker_soft, unsigned vector)
{
    enum { HI, TIMER, NET_TX, NET_RX, BLOCK, POLL, TASKLET, SCHED, HRTIMER }; /* the kernel's */
    switch (vector) {
    case TIMER:
    case HRTIMER: return serve_soft(BY_TIMER);
    case NET_TX:
    case NET_RX: return serve_soft(BY_NET);
    case BLOCK:
    case POLL: return serve_soft(BY_BLOCK);
    }
    return serve_soft(BY_OTHER);
}

TRACEPOINT(softirq_exit)
int on_waker_soft_end(void *ctx)
{
    (void)ctx;
    return serve_soft(NO_INTERRUPT);
}

static __always_inline __u32 interrupt_under_way(void)
{
    const struct interrupts *i = my_interrupts();
    if (!i)
        return NO_INTERRUPT;
    if (i->hard)
        return i->hard;
    return i->soft == BY_NET && is_sending() ? NO_INTERRUPT : i->soft;
}

static __always_inline void name_interrupt(char name[SV_WIRE_COMM], __u32 what)
{
    static const char names[][8] = {"", "timer", "device", "net", "block", ""};
    __builtin_memset(name, 0, SV_WIRE_COMM);
    if (what < sizeof names / sizeof *names)
        __builtin_memcpy(name, names[what], sizeof *names);
}

/* Who wakes a thread: the current task. 0: an interrupt, or the idle task, which only an interrupt
 * can have stopped; it has pid 0 in every namespace. */
static __always_inline struct pids find_waker(char name[SV_WIRE_COMM])
{
    struct pids n = {0, 0};
    __u32 interrupt = interrupt_under_way();
    if (interrupt) {
        name_interrupt(name, interrupt);
        return n;
    }
    n = own_pids();
    if (!(__u32)bpf_get_current_pid_tgid()) {
        name_interrupt(name, NO_INTERRUPT);
        return n;
    }
    bpf_get_current_comm(name, SV_WIRE_COMM);
    if (config.pid_namespace && !n.tid)
        n.tgid = n.tid = SV_WIRE_NO_PID;
    return n;
}

struct waker {
    struct pids pids;
    char name[SV_WIRE_COMM]; /* or that of the interrupt */
};

#endif

#endif

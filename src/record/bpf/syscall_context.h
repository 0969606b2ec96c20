/* What sys_enter and sys_exit give to their programs, for each kind of hooks. Part of
 * syscalls.h. */
#ifndef SV_RECORD_BPF_SYSCALL_CONTEXT_H
#define SV_RECORD_BPF_SYSCALL_CONTEXT_H

#if defined(SV_HOOKS_PLAIN)

struct enter_context {
    __u64 common;
    long id;
    unsigned long args[6];
};

struct exit_context {
    __u64 common;
    long id, ret;
};

#define ENTERS           SEC("tracepoint/raw_syscalls/sys_enter")
#define EXITS            SEC("tracepoint/raw_syscalls/sys_exit")
#define NUMBER_OF_EXIT() ((unsigned long)ctx->id)
#define RESULT_OF_EXIT() (ctx->ret)
#define REGISTERS()      0

static __always_inline bool is_foreign(const struct enter_context *ctx)
{
    (void)ctx; /* not known */
    return false;
}

static __always_inline void save_args(struct sv_wire_task *s, const struct enter_context *ctx)
{
    for (int i = 0; i < 6; i++)
        s->args[i] = ctx->args[i];
}

#if defined(__TARGET_ARCH_x86)
enum { ENDS_PROCESS = 231 }; /* exit_group */
#else
enum { ENDS_PROCESS = 94 };
#endif

/* Its argument is the exit code, which no plain tracepoint has. */
static __always_inline void note_end(struct sv_wire_task *s, const struct enter_context *ctx)
{
    if (s && ctx->id == ENDS_PROCESS) {
        s->nr = ENDS_PROCESS;
        s->args[0] = ctx->args[0];
    }
}

#else

struct enter_context {
    struct pt_regs *regs;
    long id;
};

struct exit_context {
    struct pt_regs *regs;
    long ret;
};

#define ENTERS           TRACEPOINT(sys_enter)
#define EXITS            TRACEPOINT(sys_exit)
#define NUMBER_OF_EXIT() number_of(ctx->regs)
#define RESULT_OF_EXIT() (ctx->ret)
#define REGISTERS()      (ctx->regs)

static __always_inline void save_args(struct sv_wire_task *s, const struct enter_context *ctx)
{
    struct pt_regs *regs = ctx->regs;
#if defined(__TARGET_ARCH_x86)
    s->args[0] = GET(regs, di);
    s->args[1] = GET(regs, si);
    s->args[2] = GET(regs, dx);
    s->args[3] = GET(regs, r10);
    s->args[4] = GET(regs, r8);
    s->args[5] = GET(regs, r9);
#else
    for (int i = 0; i < 6; i++)
        s->args[i] = GET(regs, regs[i]);
#endif
}

static __always_inline bool is_foreign(const struct enter_context *ctx)
{
#if defined(__TARGET_ARCH_x86)
    struct pt_regs *regs = ctx->regs;
    return GET(regs, cs) == 0x23; /* 32-bit code: other numbers, other arguments */
#else
    (void)ctx;
    return false;
#endif
}

static __always_inline void note_end(struct sv_wire_task *s, const struct enter_context *ctx)
{
    (void)s; /* the task has it */
    (void)ctx;
}

static __always_inline __u64 number_of(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    return GET(regs, orig_ax);
#else
    return (__u64)(long)GET(regs, syscallno);
#endif
}

#endif

#endif

/* What the libraries that LD_PRELOAD holds share (lib/inject/io, lib/inject/locks): the libc's own
 * functions behind theirs, whether a call is recorded, and how it gets into the trace.
 *
 *     WRAP(int, fsync, int fd)                    defines the function that the program calls
 *     {
 *         if (!PRE_ON())                          off, too early, or libstave's own call
 *             return NEXT(fsync)(fd);
 *         int64_t start = stave_now_ns();
 *         int done = NEXT(fsync)(fd);
 *         …pre_call("fsync", start, &args)        keeps errno
 *     }
 *
 * This code runs in every program below the recorder, at any time: before constructors, in signal
 * handlers, in children of fork and vfork. It never allocates with malloc and takes no lock; what
 * needs memory has it in .bss, with a bound. Each library has a copy of its own. */
#pragma once

#include <stave/stave.h>
#include <stdbool.h>
#include <stdint.h>

#define EXPORT    __attribute__((visibility("default")))
#define RARELY(x) __builtin_expect(!!(x), 0)

/* ---- the functions behind ours ---- */

typedef void pre_fn(void);
struct pre_next {
    const char *name;
    pre_fn *found; /* atomic */
};
/* Looks the function up; once, by the constructor, unless the program calls it earlier. */
pre_fn *pre_find(struct pre_next *next);
static inline pre_fn *pre_next(struct pre_next *next)
{
    pre_fn *found = __atomic_load_n(&next->found, __ATOMIC_RELAXED);
    return RARELY(!found) ? pre_find(next) : found;
}

/* The C name is ours, the symbol the libc's: its headers may rename or inline what they declare. */
#define WRAP(type, name, ...)                                                                    \
    static struct pre_next next_##name __attribute__((section("pre_nexts"), used)) = {#name, 0}; \
    typedef type fn_##name(__VA_ARGS__);                                                         \
    EXPORT type on_##name(__VA_ARGS__) __asm__(#name);                                           \
    type on_##name(__VA_ARGS__)
#define NEXT(name) ((fn_##name *)pre_next(&next_##name))

/* ---- is a call recorded? ---- */

enum { PRE_AT_WORK = 2 };
struct pre_thread {
    uint8_t is_quiet; /* first: PRE_AT_WORK, or 1 in a child of vfork */
    uint32_t tid, generation;
    stave_track_t calls, waits; /* rows below the thread */
};
extern _Thread_local struct pre_thread pre_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern const uint32_t *pre_gate __attribute__((visibility("hidden"))); /* NULL: too early */
extern uintptr_t pre_own_from, pre_own_to;                             /* code of libstave */

/* The thread is quiet: a call of a signal handler that came between is lost, and counted. Returns
 * false. */
bool pre_missed(const void *caller);

static inline bool pre_on(const void *caller)
{
    const uint32_t *gate = __atomic_load_n(&pre_gate, __ATOMIC_RELAXED);
    if (!gate || !__atomic_load_n(gate, __ATOMIC_RELAXED))
        return false;
    if (RARELY(pre_self.is_quiet))
        return pre_missed(caller);
    return (uintptr_t)caller < pre_own_from || (uintptr_t)caller >= pre_own_to;
}
#define PRE_CALLER() __builtin_return_address(0)
#define PRE_ON()     pre_on(PRE_CALLER())

/* The thread as it is now: in a forked child it is a new one. Only while it is quiet. */
struct pre_thread *pre_thread(void);

/* ---- calls ---- */

/* clang-format off */
/* ARG(member, key, type): arguments of a call, in the order in which the recorder's decoder writes
 * them (src/record/probes/syscalls.c). */
#define PRE_ARGS(ARG)                     \
    ARG(FD, "fd", INT)                    \
    ARG(PATH, "path", TEXT)               \
    ARG(FD2, "fd2", INT)                  \
    ARG(PATH2, "path2", TEXT)             \
    ARG(REQUESTED, "requested", INT)      \
    ARG(LENGTH, "length", INT)            \
    ARG(FLAGS, "flags", INT)              \
    ARG(MODE, "mode", INT)                \
    ARG(OFFSET, "offset", INT)            \
    ARG(ERRNO, "errno", INT)              \
    ARG(BYTES, "bytes", INT)              \
    ARG(RET, "ret", INT)                  \
    ARG(ADDRESS, "address", POINTER)      \
    ARG(OFFSET2, "offset2", INT)          \
    ARG(PEER, "peer", TEXT)               \
    ARG(PORT, "port", INT)                \
    ARG(PEER_PID, "peer_pid", INT)        \
    ARG(WAKER_TID, "waker_tid", INT)
/* clang-format on */
enum pre_arg {
#define PRE_MEMBER(member, key, type) PRE_##member,
    PRE_ARGS(PRE_MEMBER)
#undef PRE_MEMBER
        PRE_N_ARGS
};

struct pre_call {
    uint32_t has; /* bits of pre_arg */
    uint64_t v[PRE_N_ARGS];
};
static inline void pre_put(struct pre_call *c, enum pre_arg arg, uint64_t v)
{
    c->has |= 1u << arg;
    c->v[arg] = v;
}
static inline void pre_put_text(struct pre_call *c, enum pre_arg arg, const char *text)
{
    if (text)
        pre_put(c, arg, (uintptr_t)text);
}

stave_track_t pre_calls_row(void); /* `system calls` of this thread */
/* Records a call from start_ns to end_ns on the row `system calls` of this thread. `name` is a
 * literal. The thread is quiet. */
void pre_record(const char *name, int64_t start_ns, int64_t end_ns, const struct pre_call *c);

/* ---- stacks: stacks.c ---- */

enum { PRE_NATIVE_MAX = 12, PRE_PYTHON_BYTES = 1400 };
struct pre_stack {
    uint32_t n_native;
    uint32_t python_len;              /* each text with its NUL, innermost first */
    uintptr_t native[PRE_NATIVE_MAX]; /* innermost first */
    char python[PRE_PYTHON_BYTES];
};
void pre_stacks_init(void);
/* Of the calling thread; `caller`: who called the function of the libc. */
void pre_stack_take(struct pre_stack *s, const void *caller);
/* Is it a part of CPython's own lock? */
bool pre_is_gil(uintptr_t address);

/* ---- waits: waits.c ---- */

struct pre_wait {
    const char *reason;   /* a word of src/why/words.h */
    const char *function; /* of the libc */
    const void *caller;
    int64_t start_ns, end_ns;
    uintptr_t lock;                   /* 0: none */
    uint32_t by_tid;                  /* who ended it; 0: not known */
    const char *by_name;              /* of that thread, at most 16 bytes; NULL */
    const struct pre_stack *by_stack; /* NULL */
    bool is_timeout;
};
/* Only while the thread is quiet. */
void pre_waited(const struct pre_wait *w);

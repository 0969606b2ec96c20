/* The vocabulary of waiting (docs/why.md): states of threads, reasons of a wait, wakers, locks,
 * stacks. Beside kernel_words.h, which has the categories and rows.
 *
 * The one list of them. The recorder's probes write these words, the analyses look for them. A
 * thread has one state at a time: a slice of category thread_state on the row `state` below the
 * thread. What is known of a wait are arguments of the slice of the wait itself (Sleeping, Blocked
 * on I/O, Blocked), given at its begin or its end; who woke the thread are arguments of the slice
 * Runnable that follows it, and may also be on the wait. Everything but the state is optional:
 * readers derive what is missing from the system call that is open on the thread, and say so. */
#ifndef SV_WHY_WORDS_H
#define SV_WHY_WORDS_H

/* clang-format off */
/* Names of the slices: STATE(member, text). */
#define SV_WAIT_STATES(STATE)              \
    STATE(RUNNING, "Running")              \
    STATE(RUNNABLE, "Runnable")    /* woken, waits for a CPU */ \
    STATE(PREEMPTED, "Preempted")  /* could continue, another thread got the CPU */ \
    STATE(SLEEPING, "Sleeping")    /* waits, and signals wake it */ \
    STATE(IO, "Blocked on I/O")    /* waits for a disk or a file system */ \
    STATE(BLOCKED, "Blocked")      /* waits, and signals do not wake it */ \
    STATE(STOPPED, "Stopped")      /* by a signal or a debugger */

/* Texts of the argument `reason`: REASON(member, text, what for). */
#define SV_WAIT_REASONS(REASON)                                    \
    REASON(CPU, "cpu", "a CPU")                                    \
    REASON(DISK, "disk", "a disk or a file system")                \
    REASON(LOCK, "lock", "a lock")                                 \
    REASON(GIL, "gil", "the interpreter lock of Python")           \
    REASON(PIPE, "pipe", "the other end of a pipe")                \
    REASON(SOCKET, "socket", "a peer, on a socket")                \
    REASON(POLL, "poll", "one of several descriptors")             \
    REASON(CHILD, "child", "the end of a process or thread")       \
    REASON(SLEEP, "sleep", "a time that it chose itself")          \
    REASON(TERMINAL, "terminal", "a terminal")                     \
    REASON(FAULT, "fault", "a page of a mapped file")              \
    REASON(DATA, "data", "data from a loader")                     \
    REASON(GPU, "gpu", "a GPU")                                    \
    REASON(RANK, "rank", "another rank")                           \
    REASON(STOPPED, "stopped", "a signal that lets it continue")   \
    REASON(OTHER, "other", "something that is not known")
/* clang-format on */

enum sv_wait_state {
    SV_WAIT_NO_STATE,
#define SV_WAIT_STATE_MEMBER(member, text) SV_WAIT_STATE_##member,
    SV_WAIT_STATES(SV_WAIT_STATE_MEMBER)
#undef SV_WAIT_STATE_MEMBER
        SV_N_WAIT_STATES
};

enum sv_wait_reason {
    SV_WAIT_NO_REASON,
#define SV_WAIT_REASON_MEMBER(member, text, what) SV_WAIT_FOR_##member,
    SV_WAIT_REASONS(SV_WAIT_REASON_MEMBER)
#undef SV_WAIT_REASON_MEMBER
        SV_N_WAIT_REASONS
};

/* Keys of arguments of a wait. Where it stopped running is its stack (SV_ARG_STACK, as samples have
 * it: without key, outermost frame first). */
#define SV_WAIT_REASON    "reason"    /* text: one of the reasons */
#define SV_WAIT_LOCK      "lock"      /* uint: the address of the futex, or of the GIL */
#define SV_WAIT_LOCK_NAME "lock_name" /* text: its symbol, where known */
#define SV_WAIT_HOLDER_TID \
    "holder_tid"                /* int: the thread that held it for the last part of the wait */
#define SV_WAIT_HOLDER "holder" /* text: name of that thread */
#define SV_WAIT_PATH   "path"   /* text: the file, pipe or socket, where the probe knows it */

/* Keys of arguments of Runnable: who ended the wait. */
#define SV_WAIT_WAKER       "waker"       /* text: name of the thread */
#define SV_WAIT_WAKER_TID   "waker_tid"   /* int; absent: not in this pid namespace */
#define SV_WAIT_WAKER_STACK "waker_stack" /* list of texts, outermost first, as the stack */
/* int 1: an interrupt woke it. `waker` then has the name of the interrupt where it is known
 * ("timer", "block", "net"), and there is no waker_tid: the thread that the interrupt stopped has
 * nothing to do with it. */
#define SV_WAIT_INTERRUPT "interrupt"

/* Categories beside those of kernel_words.h. */
#define SV_CAT_OFFCPU_SAMPLE "offcpu_sample" /* instants with a stack, one per wait */
#define SV_WAIT_DUR          "dur"           /* int: how long, in ns; it begins with the instant */
#define SV_WAIT_QUEUED \
    "queued" /* int: the last part of dur, in ns: it was woken, and waited for a CPU */

#endif

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
    REASON(QUEUE, "queue", "a message queue")                      \
    REASON(QUOTA, "quota", "its group's quota of CPU time")        \
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
#define SV_WAIT_REASON "reason" /* text: one of the reasons */
/* uint: the address of the futex, or of the GIL; of the lock of a file its inode; of a System V
 * semaphore SV_WAIT_SEMAPHORE and its number */
#define SV_WAIT_LOCK      "lock"
#define SV_WAIT_SEMAPHORE ((uint64_t)1 << 32)
#define SV_WAIT_LOCK_NAME "lock_name" /* text: its symbol, where known; the file; "semaphore 5" */
#define SV_WAIT_HOLDER_TID \
    "holder_tid"                /* int: the thread that held it for the last part of the wait */
#define SV_WAIT_HOLDER "holder" /* text: name of that thread */
#define SV_WAIT_PATH   "path"   /* text: the file, pipe or socket, where the probe knows it */

/* int: of Runnable and Preempted, given at their end: for so long, in ns, the CPU was not given to
 * the thread because its group had used its quota. `reason` is then quota. */
#define SV_WAIT_QUOTA "quota_ns"

/* Keys of arguments of Runnable: who ended the wait. */
#define SV_WAIT_WAKER       "waker"       /* text: name of the thread */
#define SV_WAIT_WAKER_TID   "waker_tid"   /* int; absent: not in this pid namespace */
#define SV_WAIT_WAKER_STACK "waker_stack" /* list of texts, outermost first, as the stack */
/* int 1: an interrupt woke it. `waker` then has the name of the interrupt where it is known
 * ("timer", "block", "net"), and there is no waker_tid: the thread that the interrupt stopped has
 * nothing to do with it. */
#define SV_WAIT_INTERRUPT "interrupt"

/* What a recording has: metadata SV_COVERAGE_KEY + name of the part. The value is
 * SV_COVERAGE_NO, or by which means it was recorded ("kernel", "perf", "proc", "preload",
 * "program"), and then its
 * limits as words: min_ns=N (shorter ones are left out), every_ns=N (sampled), groups=A,B (of
 * system calls), off_ns=N and less_ns=N (--budget: for so long nothing or less was recorded, of
 * of_ns=N), path=PREFIX (last, up to the end). PART(member, name, category of its events):
 * the category shows in files without the metadata that it was recorded; "" where none does. */
#define SV_COVERAGE_KEY "recorded."
#define SV_COVERAGE_NO  "no"
/* clang-format off */
#define SV_COVERAGE_PARTS(PART)                                              \
    PART(STATES, "states", "thread_state")       /* of threads */            \
    PART(WAITS, "waits", "offcpu_sample")        /* with stacks and wakers */ \
    PART(CALLS, "calls", "syscall")              /* on files */              \
    PART(SOCKETS, "sockets", "network")          /* at least calls that waited */ \
    PART(BLOCK, "block", "block")                /* requests */              \
    PART(PAGE_CACHE, "page_cache", "page_cache") /* misses */                \
    PART(FAULTS, "faults", "fault")              /* on files */              \
    PART(PROCESSES, "processes", "process")      /* starts and exits */      \
    PART(SAMPLES, "samples", "cpu_sample")       /* of stacks */             \
    PART(COUNTERS, "counters", "")               /* of utilisation */        \
    PART(GPU, "gpu", "")                         /* counters or work of GPUs */ \
    PART(SDK, "sdk", "")                         /* events of programs that trace themselves */
/* clang-format on */

enum sv_coverage_part {
#define SV_COVERAGE_MEMBER(member, name, cat) SV_COVERAGE_##member,
    SV_COVERAGE_PARTS(SV_COVERAGE_MEMBER)
#undef SV_COVERAGE_MEMBER
        SV_N_COVERAGE_PARTS
};

/* int 1: the kernel did not show this switch. That the thread ran is known by what it did: a call,
 * a page fault or a sample. On the end of a state, on the Running that follows it, on a wait. */
#define SV_WAIT_INFERRED "inferred"

/* Categories beside those of kernel_words.h. */
#define SV_CAT_OFFCPU_SAMPLE "offcpu_sample" /* slices with a stack, one per wait */
/* int: how long, in ns, of a wait that a file has as an instant; the store makes it a slice */
#define SV_WAIT_DUR "dur"
/* int: the last part of the slice, in ns: it was woken, and waited for a CPU */
#define SV_WAIT_QUEUED "queued"

/* Who had the CPU while a thread could run and did not (Runnable, Preempted): instants of this
 * category on the thread's row, one for each rival with its sum, at the end of the thread or of the
 * recording. Those of one name that had little each, or lived for a short time,
 * are one rival without pid; "others" is the sum of those that are not named. */
#define SV_CAT_CPU_RIVAL "cpu_rival"
#define SV_RIVAL         "rival"     /* text: the name of the rival's thread */
#define SV_RIVAL_PID     "rival_pid" /* int; absent: not in this pid namespace */
#define SV_RIVAL_TID     "rival_tid" /* int */
#define SV_RIVAL_DUR     SV_WAIT_DUR /* int: how long it had the CPU meanwhile, in ns */
#define SV_RIVAL_N       "n"         /* int: how often */
#define SV_RIVAL_CGROUP  "cgroup"    /* text: where known */
#define SV_RIVAL_OUTSIDE "outside"   /* int 1: it is not part of the recording */
#define SV_RIVAL_OTHERS  "others"
/* No rival: the quota of CPU time (cpu.max) of the thread's group, or of one above it, was used up.
 * `cgroup` is that group. */
#define SV_RIVAL_QUOTA "quota"
#define SV_QUOTA_NAME  "CPU quota" /* name of the instant: a process may be called quota, too */

/* What the kernel counts of a thread: an instant of this category at the same time. */
#define SV_CAT_SCHEDSTAT      "schedstat"
#define SV_SCHEDSTAT_RUN      "run_ns"   /* int: it ran */
#define SV_SCHEDSTAT_DELAY    "delay_ns" /* int: it could run and waited for a CPU */
#define SV_SCHEDSTAT_SWITCHES "switches" /* int: how often it got a CPU */

#endif

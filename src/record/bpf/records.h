/* The wire: records that the kernel programs put into the ring buffers, and the plan that they
 * follow.
 *
 * Included by both sides, so only fixed-width types of <linux/types.h>, no pointers, no holes. All
 * times are CLOCK_BOOTTIME, like those of the SDK. A record ends where the ring says; its texts
 * follow the struct, each with its NUL. */
#ifndef SV_RECORD_BPF_RECORDS_H
#define SV_RECORD_BPF_RECORDS_H

#include <linux/types.h>

enum {
    SV_WIRE_CALLS_MAX = 512, /* system call numbers; a power of two */
    SV_WIRE_PATH_MAX = 4096, /* PATH_MAX, with the NUL */
    SV_WIRE_COMM = 16,
    SV_WIRE_PREFIX_MAX = 64, /* of --path, a power of two; more is decided by the reader */
    SV_WIRE_STACKS = 1 << 16,
    SV_WIRE_PROGRAMS = 1 << 12
};

#define SV_WIRE_NO_PID 0xffffffffu /* of a task that the recorder's pid namespace does not show */

/* The kinds of records, by the line of their probe in list.h. Each probe's header says what its
 * records are. */
enum sv_wire_kind {
    SV_WIRE_NO_KIND,
#define SV_PROBE(name, option, ...) __VA_ARGS__,
#include "record/probes/list.h"
#undef SV_PROBE
    SV_WIRE_KINDS
};

struct sv_wire_head {
    __u16 kind; /* enum sv_wire_kind */
    __u16 flags;
    __u32 tgid, tid; /* the process and the thread, as the recorder's pid namespace numbers them */
    __u32 what;      /* what the probe says: the number of the call, the CPU … */
    __u64 ts_ns;     /* when it was complete: records of one thread are ordered by this */
};

/* What to take from a call: numbers of its arguments, SV_WIRE_NONE where it has none. */
enum { SV_WIRE_NONE = 7 };

enum sv_wire_wants {
    SV_WIRE_WANTED = 1,
    SV_WIRE_CHANGES_FDS = 2, /* opens, closes, duplicates, maps: sent in spite of filters */
    SV_WIRE_POSITION = 4,    /* ask the open file where the transfer began */
    SV_WIRE_OPENS = 16,      /* what it returns is a new descriptor of its path */
    SV_WIRE_CLOSES = 32,
    SV_WIRE_RETURNS_FD = 64, /* what it returns is a new descriptor */
    SV_WIRE_PAIR = 128,      /* `size` points to two new descriptors: they are given instead */
    SV_WIRE_WRITES = 256,    /* a transfer into `fd` */
    SV_WIRE_SUBMITS = 512,   /* requests of asynchronous I/O: see aio.h */
    SV_WIRE_REAPS = 1024,
    SV_WIRE_VECTOR = 8 /* argument 1 is a vector of buffers, `size` says how many */
};

struct sv_wire_plan {
    __u16 wants;
    __u8 fd, path, path2, size, offset, aux;
    /* Of a call that copies from `fd` to `aux`: the arguments that point to the offsets of the two,
     * the second one times 16. 0: it copies nothing. */
    __u8 places;
    __u8 waits; /* enum sv_wire_waits */
    __u8 maps;  /* 1: it maps its file, so its inode is always given, and the device as `aux` */
    __u8 pad;
};

/* Of calls that may wait for a peer (peer.h). */
enum sv_wire_waits {
    SV_WIRE_IF_WAITED = 1, /* left out where the thread did not wait */
    SV_WIRE_HAS_PEER = 2,  /* on a socket: give its other end */
    SV_WIRE_IS_FILE = 4,   /* mostly not on a socket: look only where it took long */
    SV_WIRE_POLLS = 8      /* arguments 0 and 1: the descriptors of poll, and how many */
};

/* Set by the loader before the programs are loaded: constants to the kernel, which removes the code
 * that they switch off. */
struct sv_wire_config {
    struct sv_wire_plan plans[SV_WIRE_CALLS_MAX];
    __u64 wake_bytes;
    __u64
        /* what the recorder's time namespace adds to BOOTTIME, of which the kernel's own clock
         * knows nothing */
        boot_offset_ns;
    __u64 join_cgroup; /* the number of its folder; 0: none */
    __u64 pid_namespace_device;
    __u32 pid_namespace; /* the inode of the recorder's own; 0: it is the initial one */
    __u32 own_tgid, path_prefix_len;
    char join_comm[SV_WIRE_COMM]; /* "": none */
    char path_prefix[SV_WIRE_PREFIX_MAX];
    __u8 follow_all;
    __u8 has_states;       /* --sched */
    __u8 complete_has_cqe; /* io_uring_complete brings the completion itself, not its parts */
    __u8 switch_has_state; /* sched_switch brings the state of who leaves (since 5.18) */
    __u8 exit_has_last;    /* the plain sched_process_exit says whether it was the last thread */
    __u8 stack_way;        /* enum sv_stack_way (stack.h) */
    __u8 has_python;       /* frames of Python are read, too */
    __u8
        /* the kernel lets memory of its own be read by an address without a helper (since 6.2) */
        has_casts;
    __u8 knows_calls; /* the registers of a task can be read: which call it is in */
    __u8 has_rivals;
    __u8 has_waits;    /* --offcpu, and this kernel can */
    __u8 user_samples; /* no frames of the kernel in samples */
    __u32 n_cpus, pad2;
    __u64 call_ring_bytes;
};

enum { SV_WIRE_CALL_RING_LEAST = 32 << 10 };

/* The records of system calls of a CPU, in memory that both sides map (call_room.h). Positions only
 * grow. */
struct sv_wire_call_ring {
    __u64 consumer, pad[511]; /* pages of their own */
    __u64 producer;
    __u64 is_busy; /* a record is being written */
    __u64 pad2[510];
    char data[]; /* a power of two */
};

/* What both sides write while the programs run. */
struct sv_wire_shared {
    __u8 stacks
        /* by a part of the address of a kernel stack; 0: no followed task has it. See hooks.h */
        [SV_WIRE_STACKS];
    /* By a part of the inode: 1: what the recorder needs to name its stacks comes with its exec. */
    __u8 programs[SV_WIRE_PROGRAMS];
    __u32 n_enrolled;
    __u32 is_ending; /* states only end from now on */
    /* What --budget changes while the programs run. */
    __u64 call_min_ns;   /* shorter calls are left out */
    __u64 wait_min_ns;   /* --offcpu: shorter waits are left out */
    __u32 has_no_stacks; /* of waits and of who ends them */
    __u32 call_period;   /* from 1 on: how often the programs of calls were attached */
};

/* A time in which a thread did not run. */
struct sv_wire_away {
    __u64 begin_ns;         /* 0: it runs */
    __u64 woken_ns, end_ns; /* 0: not yet */
    __u64 lock;             /* as in struct sv_wire_wait */
    __u64 ip;               /* where it was, where it was not in a call */
    __u32 nr;               /* the call that it was in; SV_WIRE_NO_CALL */
    __u32 state;            /* enum sv_wire_state (sched.h) */
    __u32 file;             /* as in struct sv_wire_wait */
    __u32 waker_tid;        /* 0: an interrupt; SV_WIRE_NO_PID: not known */
    char waker_comm[SV_WIRE_COMM];
};

#define SV_WIRE_NO_CALL 0xffffffffu

/* What the kernel counts of a thread, as /proc/PID/task/TID/schedstat has it. */
struct sv_wire_sched {
    __u64 run_ns, delay_ns, switches;
};

/* What the programs keep of a task. The loader writes one only where tasks are known by their
 * numbers. */
struct sv_wire_task {
    __u64 start_ns;
    __u64 inode;   /* of the descriptor that the call under way began with; 0: it has none */
    __u64 args[8]; /* six, padded so that no index of an argument is out of bounds */
    __u32 nr;
    __u32 is_open; /* it is in that call: the period (call_period) in which it began; 0: in none */
    __u32 is_outside; /* that descriptor's file is not below --path */
    __u32 tgid, tid;  /* as the recorder numbers it. 0: not followed, and not to be asked again */
    __u32 origin;     /* the process whose program it runs since its fork; 0: its own */
    __u32 is_sampled; /* a stack of it was recorded since its last exec */
    __u32 fault_is;   /* enum fault_is (page_fault.h): what is known of its last page fault */
    struct sv_wire_away away; /* of the probe offcpu; its begin is looked at with each call */
    __u64 fault_n;            /* the faults of the task that were complete when it began */
    __u64 fault_ns, fault_inode, fault_offset, fault_bytes;
    __u64 fault_from, fault_to; /* what it brought into the cache, where there was nothing before */
    __u64 code_at, code_inode;  /* the file of the last one on code: its address and number */
    __u32 fault_device;
    __s32 fault_fd;
    __u64 socket_ns;    /* the end of its last transfer on a socket */
    __u64 switches;     /* how often it had waited when the call under way began */
    __u64 limited_lock; /* the last one for which it has waited until a time limit; 0: none */
    __u64 limited_ns;   /* the end of that wait; 0: it has been woken from another one since */
    __u64
        can_run_ns; /* of the probe rivals: since when it could run and does not; 0: it runs or waits */
    __u64 throttled_ns;           /* of its groups at that time, see quota.h */
    struct sv_wire_sched counted; /* when it was followed */
    __u32 is_summed, pad;         /* its sums were sent */
};

/* What could not be kept, per CPU, by kind of record. */
struct sv_wire_counts {
    __u64 lost[SV_WIRE_KINDS];
    __u64 no_stack;     /* stacks that were left out because the ring was half full */
    __u64 not_followed; /* children whose storage could not be made */
    __u64 filtered;     /* calls left out by the filters, as asked */
    __u64 foreign;      /* calls of 32-bit programs, whose numbers differ */
    /* threads that were to be followed, but have no number in the recorder's pid namespace */
    __u64 invisible;
};

#endif

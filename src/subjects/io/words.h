/* The vocabulary of I/O and kernel events (docs/io.md): categories, rows, names of events, keys of
 * arguments.
 *
 * The one list of them. The recorder's probes write these words, readers of system logs write the
 * same ones, reports and plots look for them. */
#pragma once

#include "core/stream/dict.h"

#define SV_CAT_SYSCALL      "syscall"
#define SV_CAT_CALL_SUM     "syscall_sum" /* many short calls, as one event */
#define SV_CAT_PROCESS      "process"
#define SV_CAT_BLOCK        "block"
#define SV_CAT_PAGE_CACHE   "page_cache"
#define SV_CAT_PAGE_CREATED "page_created" /* nothing was read for them */
#define SV_CAT_FAULT        "fault"
#define SV_CAT_THREAD_STATE "thread_state"
#define SV_CAT_SCHED        "sched"
#define SV_CAT_CPU_SAMPLE   "cpu_sample"
#define SV_CAT_IO_URING     "io_uring"
#define SV_CAT_AIO          "aio"
#define SV_CAT_NETWORK      "network"

/* Rows: custom tracks below a thread, and groups at the top. */
#define SV_ROW_SYSCALLS    "system calls"
#define SV_ROW_SHORT_CALLS "short calls"
#define SV_ROW_PAGE_CACHE  "page cache misses"
#define SV_ROW_PAGE_FAULTS "page faults"
#define SV_ROW_STATE       "state"
#define SV_ROW_SAMPLES     "samples"
#define SV_ROW_OFFCPU      "off CPU"
#define SV_ROW_IO_URING    "io_uring"
#define SV_ROW_AIO         "aio"
#define SV_ROW_NETWORK     "network"
#define SV_ROW_DISKS       "Disks"
#define SV_ROW_LOST        "Lost"

/* clang-format off */
/* Keys of arguments and names of events: WORD(member, text). */
#define SV_KERNEL_WORDS(WORD)              \
    WORD(cat_syscall, SV_CAT_SYSCALL)  \
    WORD(cat_process, SV_CAT_PROCESS)  \
    WORD(cat_block, SV_CAT_BLOCK)      \
    WORD(cat_page_cache, SV_CAT_PAGE_CACHE) \
    WORD(cat_page_created, SV_CAT_PAGE_CREATED) \
    WORD(cat_fault, SV_CAT_FAULT)      \
    WORD(cat_state, SV_CAT_THREAD_STATE) \
    WORD(cat_sample, SV_CAT_CPU_SAMPLE) \
    WORD(cat_io_uring, SV_CAT_IO_URING) \
    WORD(cat_network, SV_CAT_NETWORK) \
    /* files and transfers */          \
    WORD(fd, "fd")                     \
    WORD(fixed_file, "fixed_file")     \
    WORD(path, "path")                 \
    WORD(root, "root")                 \
    /* of a call that copies: where it writes to */ \
    WORD(fd2, "fd2")                   \
    WORD(path2, "path2")               \
    WORD(offset2, "offset2")           \
    WORD(requested, "requested")       \
    WORD(bytes, "bytes")               \
    WORD(offset, "offset")             \
    WORD(length, "length")             \
    WORD(address, "address")           \
    WORD(flags, "flags")               \
    WORD(mode, "mode")                 \
    WORD(ret, "ret")                   \
    WORD(error, "errno")               \
    WORD(inode, "inode")               \
    WORD(opcode, "opcode")             \
    /* processes */                    \
    WORD(fork, "fork")                 \
    WORD(exec, "exec")                 \
    WORD(exit, "exit")                 \
    WORD(child, "child")               \
    WORD(status, "status")             \
    WORD(cgroup, "cgroup")             \
    WORD(container, "container")       \
    WORD(inner_pid, "inner_pid")       \
    WORD(pid_namespace, "pid_namespace") \
    WORD(pid, "pid")                   \
    WORD(comm, "comm")                 \
    /* block requests */               \
    WORD(device, "device")             \
    WORD(sector, "sector")             \
    WORD(queue_ns, "queue_ns")         \
    /* the page cache */               \
    WORD(add, "add")                   \
    WORD(create, "create")             \
    WORD(readahead, "readahead")       \
    WORD(file, "file")                 \
    WORD(mapped, "mapped")             \
    WORD(major, "major")               \
    WORD(count, "count")               \
    /* sockets */                      \
    WORD(tcp_send, "tcp_send")         \
    WORD(tcp_recv, "tcp_recv")         \
    WORD(peer, "peer")                 \
    WORD(peer_pid, "peer_pid")         \
    WORD(port, "port")                 \
    /* threads and CPUs */             \
    WORD(cpu, "cpu")                   \
    WORD(io_wait, "io_wait")           \
    WORD(waker, "waker")               \
    WORD(waker_tid, "waker_tid")       \
    WORD(interrupt, "interrupt")
/* clang-format on */

/* The words as strings of one dictionary. */
struct sv_kernel_words {
#define SV_KERNEL_MEMBER(member, text) sv_str member;
    SV_KERNEL_WORDS(SV_KERNEL_MEMBER)
#undef SV_KERNEL_MEMBER
};

void sv_kernel_words_init(struct sv_kernel_words *w, struct sv_dict *dict);

/* The few kernel types that the programs read, with the fields that they read; the loader moves
 * each access to where the running kernel has the field. So the build needs neither the kernel's
 * BTF nor root. */
#ifndef SV_RECORD_BPF_KERNEL_TYPES_H
#define SV_RECORD_BPF_KERNEL_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inode;
struct super_block {
    __u32 s_dev;
};
struct inode {
    __u16 i_mode;
    unsigned long i_ino;
    struct super_block *i_sb;
    long long i_size;
    __u32 i_generation;
};
struct address_space {
    struct inode *host;
};
struct folio {
    struct address_space *mapping;
    unsigned long index;
    unsigned long _flags_1; /* its low byte: the order of a large one */
};
enum pageflags { PG_head = 6 };
struct file {
    long long f_pos;
    struct inode *f_inode;
    void *private_data;
};
struct timespec64 {
    long long tv_sec;
};
struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};
struct files_struct {
    struct {
        int counter;
    } count;
    struct fdtable *fdt;
};
struct mm_struct {
    unsigned long start_stack, arg_start, arg_end;
    unsigned long saved_auxv[2]; /* and more */
};
struct signal_struct {
    struct {
        int counter;
    } live;
};
struct ns_common {
    unsigned int inum;
};
struct pid_namespace {
    struct ns_common ns;
};
struct upid {
    int nr;
    struct pid_namespace *ns;
};
struct pid {
    unsigned int level;
    struct upid numbers[1]; /* one per namespace, the initial one's first: level + 1 of them */
};
#if defined(__TARGET_ARCH_x86)
struct thread_struct {
    unsigned long fsbase;
};
#endif
struct sched_entity {
    __u64 sum_exec_runtime;
};
struct sched_info {
    unsigned long pcount;
    unsigned long long run_delay;
};
struct cgroup;
struct task_group;
struct task_struct {
    struct sched_entity se;
    struct task_group *sched_task_group;
    void *cgroups;
    void *cpus_ptr; /* the bits of the CPUs that it may use */
    int nr_cpus_allowed;
    struct sched_info sched_info;
    int pid, tgid;
    struct pid *thread_pid;
    int exit_code;
    __u64 start_time;
    unsigned long min_flt, maj_flt;
    unsigned long nvcsw;
    unsigned int flags;
    unsigned int __state;
    unsigned in_iowait : 1;
    struct mm_struct *mm;
    struct files_struct *files;
    void *bpf_storage;
    void *stack;
    struct signal_struct *signal;
    struct task_struct *real_parent, *group_leader;
    char comm[16];
#if defined(__TARGET_ARCH_x86)
    struct thread_struct thread;
#endif
};
struct linux_binprm {
    const char *filename, *interp;
    struct file *file;
};

struct gendisk {
    int major, first_minor;
};
struct request_queue {
    struct gendisk *disk;
};
struct request {
    struct request_queue *q;
    unsigned int cmd_flags;
    unsigned int __data_len;
    unsigned long long __sector;
};

struct in6_addr {
    __u32 words[4];
};
struct net {
    struct ns_common ns;
};
typedef struct {
    struct net *net;
} possible_net_t;
struct sock_common {
    __u32 skc_daddr, skc_rcv_saddr;
    __u16 skc_dport, skc_num, skc_family;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct socket;
struct sock {
    struct sock_common __sk_common;
    __u16 sk_type;
    struct socket *sk_socket;
    struct pid *sk_peer_pid;
};
struct socket {
    struct file *file;
    struct sock *sk;
};
struct unix_address {
    int len; /* of the sockaddr_un that follows */
};
struct unix_sock {
    struct sock sk; /* first, so a pointer to it is one to the struct */
    struct unix_address *addr;
    struct sock *peer;
};

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};
struct kernfs_node {
    __u64 id;
};
struct cgroup {
    struct cgroup_subsys_state self; /* first, so a pointer to it is one to the cgroup */
    struct kernfs_node *kn;
};

struct cfs_bandwidth {
    __u64 quota, throttled_time;
    int nr_throttled;
};
struct task_group {
    struct cgroup_subsys_state css;
    struct task_group *parent;
    struct cfs_bandwidth cfs_bandwidth;
};

struct io_cqe {
    __u64 user_data;
    int fd; /* until it completes */
};
struct io_kiocb {
    struct file *file;
    __u8 opcode;
    __u64 flags;
    struct io_cqe cqe;
};
struct kiocb {
    long long ki_pos;
};
struct io_rw {
    struct kiocb kiocb;
    __u32 len;
};
struct filename {
    const char *name;
};
struct io_open {
    int dfd;
    __u32 file_slot;
    struct filename *filename;
};
struct io_close {
    int fd;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs;
    unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
    unsigned long regs[31];
    int syscallno;
};
#endif

struct bpf_iter_meta {
    void *seq;
};
struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop

#endif

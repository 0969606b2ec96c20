/* The open file behind a descriptor of the current task: its position and inode. Part of
 * syscalls.h. Plain tracepoints cannot read it. */
#ifndef SV_RECORD_BPF_OPEN_FILE_H
#define SV_RECORD_BPF_OPEN_FILE_H

#if KNOWS_KERNEL

/* Functions of their own, not static: the kernel checks each once, when it loads the programs, not
 * at every place that calls it. A pointer that is read from the current task takes it a millisecond
 * to check. */
__u64 file_address(__s32 fd);
__s64 position(__s32 fd);
__u64 inode_of(__s32 fd);

#if defined(SV_HOOKS_BTF)

/* A pointer at an address, and a file's position: where the kernel can, by loads that give 0 if
 * they fail, instead of calls of a helper. */
static __always_inline struct file *pointer_at(struct file **at)
{
    struct file *file = 0;
    if (config.has_casts) { /* any type that begins with 64 bits */
        const struct timespec64 *bits =
            bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct timespec64));
        return (struct file *)bits->tv_sec;
    }
    return bpf_probe_read_kernel(&file, sizeof file, at) == 0 ? file : 0;
}

static __always_inline long long position_in(const struct file *file)
{
    long long pos = -1;
    if (config.has_casts) {
        const struct file *typed = bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file));
        return typed->f_pos;
    }
    return BPF_CORE_READ_INTO(&pos, file, f_pos) == 0 ? pos : -1;
}

static __always_inline __u64 inode_in(const struct file *file)
{
    if (config.has_casts) {
        const struct file *typed = bpf_rdonly_cast(file, bpf_core_type_id_kernel(struct file));
        return typed->f_inode->i_ino;
    }
    return BPF_CORE_READ(file, f_inode, i_ino);
}

#else

static __always_inline struct file *pointer_at(struct file **at)
{
    struct file *file = 0;
    return bpf_probe_read_kernel(&file, sizeof file, at) == 0 ? file : 0;
}

static __always_inline long long position_in(const struct file *file)
{
    long long pos = -1;
    return BPF_CORE_READ_INTO(&pos, file, f_pos) == 0 ? pos : -1;
}

static __always_inline __u64 inode_in(const struct file *file)
{
    return BPF_CORE_READ(file, f_inode, i_ino);
}

#endif

__noinline __u64 file_address(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(WALK(struct task_struct, task), files);
    if (!files)
        return 0;
    struct fdtable *fdt = GET(files, fdt);
    if (!fdt || (__u32)fd >= GET(fdt, max_fds))
        return 0;
    return (__u64)pointer_at(GET(fdt, fd) + (__u32)fd);
}

static __always_inline struct file *file_of(__s32 fd)
{
    return (struct file *)file_address(fd);
}

/* The position of the descriptor's file after the transfer. */
__noinline __s64 position(__s32 fd)
{
    const struct file *file = file_of(fd);
    return file ? position_in(file) : -1;
}

/* Only where threads share descriptors: otherwise no other thread can change one during a call. */
__noinline __u64 inode_of(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(WALK(struct task_struct, task), files);
    if (!files || GET(files, count.counter) < 2)
        return 0;
    struct file *file = file_of(fd);
    return file ? inode_in(file) : 0;
}

/* Pages are known by device and inode: whose they are is learnt when their file is mapped. */
static __always_inline __u64 mapped_inode(__s32 fd, __u64 *device)
{
    struct file *file = file_of(fd);
    *device = file ? BPF_CORE_READ(file, f_inode, i_sb, s_dev) : 0;
    return file ? inode_in(file) : 0;
}

#else

static __always_inline void *file_of(__s32 fd)
{
    (void)fd;
    return 0;
}

static __always_inline __s64 position(__s32 fd)
{
    (void)fd;
    return -1;
}

static __always_inline __u64 inode_of(__s32 fd)
{
    (void)fd;
    return 0;
}

static __always_inline __u64 mapped_inode(__s32 fd, __u64 *device)
{
    (void)fd;
    *device = 0;
    return 0;
}

#endif

#endif

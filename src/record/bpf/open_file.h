/* The open file behind a descriptor of the current task: its position and inode. Part of syscalls.h. Plain tracepoints cannot read it. */
#ifndef SV_RECORD_BPF_OPEN_FILE_H
#define SV_RECORD_BPF_OPEN_FILE_H

#if KNOWS_KERNEL

static __always_inline struct file *file_of(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(task, files);
    struct file **table, *file = 0;
    if (!files)
        return 0;
    struct fdtable *fdt = GET(files, fdt);
    if (!fdt || (__u32)fd >= GET(fdt, max_fds))
        return 0;
    table = GET(fdt, fd);
    if (bpf_probe_read_kernel(&file, sizeof file, table + (__u32)fd) != 0)
        return 0;
    return file;
}

/* The position of the descriptor's file after the transfer. */
static __always_inline __s64 position(__s32 fd)
{
    struct file *file = file_of(fd);
    long long pos = -1;
    if (!file || BPF_CORE_READ_INTO(&pos, file, f_pos) != 0)
        return -1;
    return pos;
}

/* Only where threads share descriptors: otherwise no other thread can change one during a call. */
static __always_inline __u64 inode_of(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(task, files);
    if (!files || GET(files, count.counter) < 2)
        return 0;
    struct file *file = file_of(fd);
    return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
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

#endif

#endif

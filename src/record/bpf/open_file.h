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

static __always_inline __u64 number_of_file(__s32 fd)
{
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

/* Files that followed tasks execute. Pages of them that are in the cache are mapped by the hundred
 * when a program starts: half of all events of a build. A number may be used again for another
 * file, which has another generation then. */
struct code_file {
    __u64 inode;
    __u32 device, generation;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, struct code_file);
    __type(value, __u8);
} code_files SEC(".maps");

static __always_inline bool is_code(struct inode *inode)
{
    struct super_block *sb = inode ? GET(inode, i_sb) : 0;
    if (!sb)
        return false;
    struct code_file key = {GET(inode, i_ino), GET(sb, s_dev), GET(inode, i_generation)};
    return bpf_map_lookup_elem(&code_files, &key) != 0;
}

CHECKED_ONCE int note_code(__u64 file_address)
{
    struct inode *inode = BPF_CORE_READ((struct file *)file_address, f_inode);
    struct code_file key = {BPF_CORE_READ(inode, i_ino), BPF_CORE_READ(inode, i_sb, s_dev),
                            BPF_CORE_READ(inode, i_generation)};
    __u8 one = 1;
    if (inode && !bpf_map_lookup_elem(&code_files, &key))
        bpf_map_update_elem(&code_files, &key, &one, BPF_ANY);
    return 0;
}

#else

static __always_inline int note_code(__u64 file_address)
{
    (void)file_address;
    return 0;
}

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

static __always_inline __u64 number_of_file(__s32 fd)
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

/* Only files below a path: what the kernel's side can decide. Part of io.bpf.c; the reader decides again, with full paths.
 *
 * An absolute path without doubled slashes and dots that leaves the wanted one within its first bytes is elsewhere. The file that such
 * an open gives is remembered by its address, so that calls on all its descriptors are left out, those of children and copies, too. Relative
 * paths, directories and what was open before are told as always. */
#ifndef SV_CAPTURE_BPF_ELSEWHERE_H
#define SV_CAPTURE_BPF_ELSEWHERE_H

enum { PREFIX_MAX = SV_WIRE_PREFIX_MAX, DECIDED_BYTES = 192 };
enum { OPEN_DIRECTORY = 0200000, OPEN_PATH = 010000000 }; /* O_DIRECTORY, O_PATH */

/* Files that are elsewhere. One that is forgotten is told again; one whose address is used again is set right by its own open. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64); /* struct file */
    __type(value, __u8);
} elsewhere SEC(".maps");

/* Descriptors of such files: a close cannot ask for the file any more. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64); /* tgid << 32 | fd */
    __type(value, __u8);
} elsewhere_fds SEC(".maps");

static __noinline bool is_elsewhere(const char *text, long len)
{
    bool is_other = false;
    if (!text || len > DECIDED_BYTES || text[0] != '/')
        return false;
    for (int i = 1; i < DECIDED_BYTES && i < len; i++) {
        if (text[i - 1] == '/' && (text[i] == '/' || text[i] == '.'))
            return false;
        if (i < PREFIX_MAX && i < config.path_prefix_len && text[i] &&
            text[i] != config.path_prefix[i & (PREFIX_MAX - 1)])
            is_other = true;
    }
    return is_other;
}

static __always_inline __u64 descriptor_key(__s32 fd)
{
    return (bpf_get_current_pid_tgid() & ~0xffffffffull) | (__u32)fd;
}

static __always_inline void count_filtered(void)
{
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->filtered++;
}

/* After an open that succeeded. */
static __always_inline void note_open(__s32 fd, bool is_other)
{
    __u64 file = (__u64)file_of(fd), key = descriptor_key(fd);
    __u8 one = 1;
    if (is_other && file) {
        bpf_map_update_elem(&elsewhere, &file, &one, BPF_ANY);
        bpf_map_update_elem(&elsewhere_fds, &key, &one, BPF_ANY);
    } else {
        bpf_map_delete_elem(&elsewhere, &file);
        bpf_map_delete_elem(&elsewhere_fds, &key);
    }
}

/* A call with one path. True: it is left out. */
static __always_inline bool leaves_out_path(const char *text, long len,
                                            const volatile struct sv_wire_plan *p, long ret,
                                            __u32 flags)
{
    if (!config.path_prefix_len)
        return false;
    bool opens = p->wants & SV_WIRE_OPENS;
    if (p->wants & SV_WIRE_KEEPS_BOOK && !opens)
        return false;
    bool is_other = !(opens && flags & (OPEN_DIRECTORY | OPEN_PATH)) && is_elsewhere(text, len);
    if (opens && ret >= 0)
        note_open((__s32)ret, is_other);
    if (is_other)
        count_filtered();
    return is_other;
}

/* A call on a descriptor. */
static __always_inline bool leaves_out_fd(__s32 fd, const volatile struct sv_wire_plan *p)
{
    if (!config.path_prefix_len || p->fd == SV_WIRE_NONE)
        return false;
    bool is_other;
    if (p->wants & SV_WIRE_CLOSES) {
        __u64 key = descriptor_key(fd);
        is_other = bpf_map_delete_elem(&elsewhere_fds, &key) == 0;
    } else if (p->wants & SV_WIRE_KEEPS_BOOK) {
        return false;
    } else {
        __u64 file = (__u64)file_of(fd);
        is_other = file && bpf_map_lookup_elem(&elsewhere, &file);
    }
    if (is_other)
        count_filtered();
    return is_other;
}

#endif

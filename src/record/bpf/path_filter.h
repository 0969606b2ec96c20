/* --path: only files below it, as far as the kernel's side can decide. Part of syscalls.h; the
 * reader decides again, with full paths.
 *
 * An absolute path without doubled slashes and dots that differs from the wanted one within its
 * first bytes is outside. The file that such an open gives is remembered by its address, so that
 * calls on all its descriptors are left out, those of children and copies, too. Relative paths,
 * directories and what was open before are always recorded. */
#ifndef SV_RECORD_BPF_PATH_FILTER_H
#define SV_RECORD_BPF_PATH_FILTER_H

enum { PREFIX_MAX = SV_WIRE_PREFIX_MAX, DECIDED_BYTES = 192 };
enum { OPEN_DIRECTORY = 0200000, OPEN_PATH = 010000000 }; /* O_DIRECTORY, O_PATH */

/* Open files outside of the path. The map may drop an entry: its calls are then recorded. An
 * address that is used again is corrected by the open. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64); /* struct file */
    __type(value, __u8);
} outside SEC(".maps");

static __noinline bool is_outside(const char *text, long len)
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

static __always_inline void count_filtered(void)
{
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->filtered++;
}

/* After an open that succeeded. */
static __always_inline void note_open(__s32 fd, bool is_other)
{
    __u64 file = (__u64)file_of(fd);
    __u8 one = 1;
    if (is_other && file)
        bpf_map_update_elem(&outside, &file, &one, BPF_ANY);
    else
        bpf_map_delete_elem(&outside, &file);
}

/* A call with one path. True: it is left out. */
static __always_inline bool leaves_out_path(const char *text, long len,
                                            const volatile struct sv_wire_plan *p, long ret,
                                            __u32 flags)
{
    if (!config.path_prefix_len)
        return false;
    bool opens = p->wants & SV_WIRE_OPENS;
    if (p->wants & SV_WIRE_RETURNS_FD && !opens && ret >= 0)
        note_open((__s32)ret, false); /* what it opens is recorded, wherever it is */
    if (p->wants & SV_WIRE_CHANGES_FDS && !opens)
        return false;
    bool is_other = !(opens && flags & (OPEN_DIRECTORY | OPEN_PATH)) && is_outside(text, len);
    if (opens && ret >= 0)
        note_open((__s32)ret, is_other);
    if (is_other)
        count_filtered();
    return is_other;
}

/* At the entry of a call on a descriptor. Calls that change descriptors are recorded all the same,
 * except close and mmap. */
static __always_inline bool is_outside_fd(__s32 fd, const volatile struct sv_wire_plan *p)
{
    if (!config.path_prefix_len ||
        (p->wants & SV_WIRE_CHANGES_FDS && !(p->wants & SV_WIRE_CLOSES) && !p->maps))
        return false;
    __u64 file = (__u64)file_of(fd);
    return file && bpf_map_lookup_elem(&outside, &file);
}

/* At its exit. True: it is left out. */
static __always_inline bool leaves_out_fd(const struct sv_wire_task *s)
{
    if (config.path_prefix_len && s->is_outside)
        count_filtered();
    return config.path_prefix_len && s->is_outside;
}

#endif

/* Probe `page_fault`: pages of mapped files that a followed task touches and that are not mapped
 * yet. Both sides include it; the programs are for the kernel only.
 *
 * The kernel first maps what the page cache has around the page, 64 KiB by default
 * (mm_filemap_map_pages, at its end). Where the page itself is not among that it is looked up or
 * brought in (mm_filemap_fault, at its beginning). A fault that had to wait for its page is then
 * tried again from the start, and counted when it is complete: two events with the same number of
 * complete faults are of one fault. So what an event means is known with the next one, and the time
 * between the two tries is the time of the wait. */
#ifndef SV_RECORD_BPF_PAGE_FAULT_H
#define SV_RECORD_BPF_PAGE_FAULT_H

#include "page_cache.h"

enum sv_wire_fault_flag {
    SV_WIRE_FAULT_WAITED = 1, /* for its page, from start_ns to ts_ns */
    SV_WIRE_FAULT_CACHED = 2, /* all that it needed was in the cache */
    SV_WIRE_FAULT_MAJOR = 4   /* it had its page read; else that was under way */
};

struct sv_wire_fault {
    struct sv_wire_cache page; /* what was mapped; `pad`: enum sv_wire_fault_flag */
    __u64 start_ns;
    __u64 touched; /* the offset of the page that was needed; ~0: not known */
};

#if defined(__bpf__) && KNOWS_KERNEL

static __always_inline __u64 complete_faults(void)
{
    struct task_struct *task = current_task();
    return (__u64)GET(task, min_flt) + GET(task, maj_flt);
}

static __always_inline bool has_begun(const struct sv_wire_task *s)
{
    return s->fault_is == FAULT_BEGUN || s->fault_is == FAULT_READS;
}

static __always_inline __u32 wait_flags(const struct sv_wire_task *s)
{
    return SV_WIRE_FAULT_WAITED | (s->fault_is == FAULT_READS ? SV_WIRE_FAULT_MAJOR : 0);
}

static __always_inline void send_fault(struct sv_wire_task *s, __u64 offset, __u64 bytes,
                                       __u64 touched, __u32 flags)
{
    void *ring = my_ring();
    struct sv_wire_fault *f = ring ? bpf_ringbuf_reserve(ring, sizeof *f, 0) : 0;
    count(SV_WIRE_FAULT, f != 0);
    s->fault_is = FAULT_SENT;
    if (!f)
        return;
    fill_head(&f->page.head, SV_WIRE_FAULT, 0, pids_in(s));
    f->page.inode = s->fault_inode;
    f->page.device = s->fault_device;
    f->page.fd = s->fault_fd;
    f->page.offset = offset;
    f->page.bytes = (__u32)bytes;
    f->page.pad = flags;
    f->start_ns = s->fault_ns;
    f->touched = touched;
    bpf_ringbuf_submit(f, wake_flags(ring, sizeof *f));
}

/* The fault before this one is complete: there was nothing to wait for. */
static __always_inline void finish_fault(struct sv_wire_task *s)
{
    if (s->fault_is == FAULT_AROUND)
        send_fault(s, s->fault_offset, s->fault_bytes, ~0ull, SV_WIRE_FAULT_CACHED);
    else if (has_begun(s))
        send_fault(s, s->fault_offset, s->fault_bytes, s->fault_offset, 0);
}

/* Of pages first … last, what the file has. */
static __always_inline __u64 bytes_in(struct address_space *mapping, __u64 first, __u64 last)
{
    struct inode *inode = mapping ? GET(WALK(struct address_space, mapping), host) : 0;
    __u64 size = inode ? (__u64)GET(inode, i_size) : 0, from = first << 12, to = (last + 1) << 12;
    to = to < size ? to : size;
    return to > from ? to - from : 0;
}

static __always_inline void note_fault(struct sv_wire_task *s, struct address_space *mapping,
                                       __u64 first, __u64 last, __u32 is)
{
    struct sv_wire_cache page;
    fill_page(&page, s, mapping);
    s->fault_inode = page.inode;
    s->fault_device = page.device;
    s->fault_fd = page.fd;
    s->fault_offset = first << 12;
    s->fault_bytes = bytes_in(mapping, first, last);
    s->fault_ns = now_ns();
    s->fault_n = complete_faults();
    s->fault_is = is;
}

/* The wait is over: what is around the page is mapped with it. Where the cache had nothing of it
 * before, that is what was read for this fault. */
static __always_inline void send_around(struct sv_wire_task *s, __u64 from, __u64 bytes)
{
    __u64 to = from + bytes;
    if (s->fault_is == FAULT_READS && s->fault_from < s->fault_to) {
        from = from > s->fault_from ? from : s->fault_from;
        to = to < s->fault_to ? to : s->fault_to;
    }
    send_fault(s, from, to > from ? to - from : 0, s->fault_offset, wait_flags(s));
}

/* Most faults of a program are on the file of its last one, which is looked up once. */
static __always_inline bool is_of_code(struct sv_wire_task *s, struct address_space *mapping)
{
    struct inode *inode = mapping ? GET(WALK(struct address_space, mapping), host) : 0;
    __u64 number = inode ? GET(inode, i_ino) : 0;
    if (!number)
        return false;
    if (s->code_at == (__u64)inode && s->code_inode == number)
        return true;
    if (!is_code(inode))
        return false;
    s->code_at = (__u64)inode;
    s->code_inode = number;
    return true;
}

/* The cache has pages around one that is touched in memory: they are mapped now. */
TRACEPOINT(mm_filemap_map_pages)
int BPF_PROG(on_page_fault_around, struct address_space *mapping, unsigned long first,
             unsigned long last)
{
    struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    bool is_same = s->fault_is && s->fault_n == complete_faults();
    if (is_same && has_begun(s)) {
        send_around(s, (__u64)first << 12, bytes_in(mapping, first, last));
    } else if (!is_same || s->fault_is != FAULT_SENT) {
        if (!is_same)
            finish_fault(s);
        if (is_of_code(s, mapping)) {
            s->fault_n = complete_faults();
            s->fault_is = FAULT_OF_CODE;
        } else {
            note_fault(s, mapping, first, last, FAULT_AROUND);
        }
    }
    return 0;
}

/* A page of a file is touched in memory and neither mapped nor in the cache, or has to be looked
 * at. */
TRACEPOINT(mm_filemap_fault)
int BPF_PROG(on_page_fault, struct address_space *mapping, unsigned long index)
{
    struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    bool is_same = s->fault_is && s->fault_n == complete_faults();
    if (is_same && s->fault_is == FAULT_SENT)
        return 0;
    if (is_same && has_begun(s)) {
        send_fault(s, s->fault_offset, s->fault_bytes, s->fault_offset, wait_flags(s));
        return 0;
    }
    if (!is_same)
        finish_fault(s); /* else the pages around it were mapped before, and it was not there */
    note_fault(s, mapping, index, index, FAULT_BEGUN);
    s->fault_from = is_same ? 0 : ~0ull; /* 0: the cache had some of them */
    s->fault_to = is_same ? ~0ull : 0;
    return 0;
}

#endif

#endif

/* Probe `page_cache`: pages that enter the page cache because a followed task needs them. Both
 * sides include it; the programs are for the kernel only. */
#ifndef SV_RECORD_BPF_PAGE_CACHE_H
#define SV_RECORD_BPF_PAGE_CACHE_H

#include "records.h"

struct sv_wire_cache { /* a page entered the page cache: it had to be read or made */
    struct sv_wire_head head;
    __u64 inode, offset;
    __u32 device, bytes;
    __s32 fd;  /* of the call that caused it, when it is on this very file; -1 */
    __u32 pad; /* enum sv_wire_page; of a fault: its flags */
};

/* Why a page enters the cache. */
enum sv_wire_page {
    SV_WIRE_PAGE_READ,    /* it is read because it is needed */
    SV_WIRE_PAGE_CREATED, /* it is written to, and nothing of it has to be read */
    SV_WIRE_PAGE_AHEAD    /* it is read, and nobody has asked for it yet */
};

#if defined(__bpf__) && KNOWS_KERNEL

/* What is known of the last page fault of a task: see page_fault.h. */
enum fault_is {
    FAULT_NONE,
    FAULT_AROUND,  /* pages of the cache were mapped, maybe the one that was needed */
    FAULT_OF_CODE, /* the same, of a program or a library: no event unless it has to wait */
    FAULT_BEGUN,   /* it was not among them */
    FAULT_READS,   /* nor in the cache */
    FAULT_SENT     /* its record is on its way, whatever follows */
};

/* A folio is one page or several that are managed together. Its flags come first, in a struct or
 * not, depending on the kernel. */
static __always_inline __u32 folio_bytes(struct folio *folio)
{
    unsigned long flags = 0;
    if (bpf_probe_read_kernel(&flags, sizeof flags, folio) != 0 ||
        !(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1) ||
        !bpf_core_field_exists(folio->_flags_1))
        return 4096;
    return 4096u << (GET(folio, _flags_1) & 15);
}

/* The descriptor of the call that is under way, if it is this file's: so the page's file has a
 * path. */
static __always_inline __s32 descriptor_of(const struct sv_wire_task *s, struct inode *inode)
{
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    if (!s->is_open || p->fd == SV_WIRE_NONE || p->path != SV_WIRE_NONE)
        return -1;
    __s32 fd = (__s32)s->args[p->fd & 7];
    struct file *file = file_of(fd);
    if (file && BPF_CORE_READ(file, f_inode) == inode)
        return fd;
    if (!p->places)
        return -1;
    fd = (__s32)s->args[p->aux & 7]; /* what a copy writes to */
    file = file_of(fd);
    return file && BPF_CORE_READ(file, f_inode) == inode ? fd : -1;
}

/* The page against what the call under way transfers: where that begins, which its file knows until
 * the call is over, and how much it is. The length of a vector is not known. */
static __noinline __u32 page_of_call(const struct sv_wire_task *s, __s32 fd, __u64 offset,
                                     __u64 bytes)
{
    if (!s)
        return SV_WIRE_PAGE_READ;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    bool writes = p->wants & SV_WIRE_WRITES;
    if (p->places)
        return fd == (__s32)s->args[p->aux & 7] ? SV_WIRE_PAGE_CREATED : SV_WIRE_PAGE_READ;
    if (p->size == SV_WIRE_NONE || (p->offset == SV_WIRE_NONE && !(p->wants & SV_WIRE_POSITION)))
        return SV_WIRE_PAGE_READ;
    __s64 from = p->offset == SV_WIRE_NONE ? position(fd) : (__s64)s->args[p->offset & 7];
    __u64 size = p->wants & SV_WIRE_VECTOR ? 1ull << 62 : s->args[p->size & 7];
    if (from < 0)
        return SV_WIRE_PAGE_READ;
    if (writes)
        return offset >= (__u64)from && offset + bytes <= from + size ? SV_WIRE_PAGE_CREATED
                                                                      : SV_WIRE_PAGE_READ;
    return offset + bytes > (__u64)from && offset < from + size ? SV_WIRE_PAGE_READ
                                                                : SV_WIRE_PAGE_AHEAD;
}

/* Behind the end of its file a page has nothing that could be read. */
static __always_inline __u32 page_is(const struct sv_wire_task *s, const struct sv_wire_cache *c,
                                     __s64 file_size)
{
    if ((__s64)c->offset >= file_size)
        return SV_WIRE_PAGE_CREATED;
    if (c->fd >= 0)
        return page_of_call(s, c->fd, c->offset, c->bytes);
    bool is_fault = s->fault_is == FAULT_BEGUN || s->fault_is == FAULT_READS;
    if (is_fault && s->fault_inode == c->inode &&
        (s->fault_offset < c->offset || s->fault_offset >= c->offset + c->bytes))
        return SV_WIRE_PAGE_AHEAD;
    return SV_WIRE_PAGE_READ;
}

static __always_inline void fill_page(struct sv_wire_cache *c, const struct sv_wire_task *s,
                                      struct address_space *mapping)
{
    struct inode *inode = mapping ? GET(WALK(struct address_space, mapping), host) : 0;
    struct super_block *sb = inode ? GET(inode, i_sb) : 0;
    c->inode = inode ? GET(inode, i_ino) : 0;
    c->device = sb ? GET(sb, s_dev) : 0;
    c->fd = inode ? descriptor_of(s, inode) : -1;
    c->pad = 0;
}

/* A page fault under way has pages read: its own, and others before and behind it. */
static __always_inline void note_read(struct sv_wire_task *s, const struct sv_wire_cache *c)
{
    __u64 end = c->offset + c->bytes;
    if ((s->fault_is != FAULT_BEGUN && s->fault_is != FAULT_READS) || s->fault_inode != c->inode)
        return;
    if (c->offset <= s->fault_offset && s->fault_offset < end)
        s->fault_is = FAULT_READS;
    s->fault_from = c->offset < s->fault_from ? c->offset : s->fault_from;
    s->fault_to = end > s->fault_to ? end : s->fault_to;
}

/* A page enters the cache: it is read or made now. Only for followed tasks, with their
 * read-ahead. */
TRACEPOINT(mm_filemap_add_to_page_cache)
int BPF_PROG(on_page_cache_add, struct folio *folio)
{
    struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    void *ring = my_ring();
    if (!ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CACHE, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_CACHE, 0, pids_in(s));
    struct address_space *mapping = GET(WALK(struct folio, folio), mapping);
    fill_page(c, s, mapping);
    c->offset = (__u64)GET(folio, index) << 12;
    c->bytes = folio_bytes(folio);
    c->pad = page_is(s, c, mapping ? BPF_CORE_READ(mapping, host, i_size) : 0);
    note_read(s, c);
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#endif

#endif

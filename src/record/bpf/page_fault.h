/* Probe `page_fault`: pages of mapped files that a followed task touches and that are not mapped yet. Both sides include it; the program is for the kernel only. */
#ifndef SV_RECORD_BPF_PAGE_FAULT_H
#define SV_RECORD_BPF_PAGE_FAULT_H

#include "page_cache.h"

#if defined(__bpf__) && KNOWS_KERNEL

/* A page of a file is touched in memory and not mapped there yet. */
TRACEPOINT(mm_filemap_fault)
int BPF_PROG(on_page_fault, struct address_space *mapping, unsigned long index)
{
    struct sv_wire_task *s = followed_self();
    void *ring = s ? my_ring() : 0;
    if (!s || !ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_FAULT, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_FAULT, 0, pids_in(s));
    fill_page(c, s, mapping);
    c->offset = (__u64)index << 12;
    c->bytes = 4096;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#endif

#endif

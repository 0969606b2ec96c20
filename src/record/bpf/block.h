/* Probe `block`: requests to block devices, of the whole machine, from queue to completion. Both
 * sides include it; the programs are for the kernel only. */
#ifndef SV_RECORD_BPF_BLOCK_H
#define SV_RECORD_BPF_BLOCK_H

#include "records.h"

struct sv_wire_block { /* the head is that of who queued it; ts_ns: completion */
    struct sv_wire_head head;
    __u64 queue_ns, issue_ns; /* queue_ns 0: not seen */
    __u64 sector;
    __u32 device; /* major << 20 | minor */
    __u32 bytes;
    __u32 command; /* the kernel's cmd_flags */
    __s32 error;
    char comm[SV_WIRE_COMM];
};

#if defined(__bpf__) && KNOWS_KERNEL

struct request_state {
    __u64 queue_ns, issue_ns;
    __u32 tgid, tid;
    char comm[SV_WIRE_COMM];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64); /* address of the request */
    __type(value, struct request_state);
} requests SEC(".maps");

static __always_inline void note_request(struct request *rq, bool is_issue)
{
    __u64 key = (__u64)rq, now = now_ns();
    struct request_state *old = bpf_map_lookup_elem(&requests, &key);
    if (is_issue && old) {
        old->issue_ns = now;
        return;
    }
    struct pids n = own_pids();
    struct request_state s = {.tgid = n.tgid, .tid = n.tid};
    if (is_issue)
        s.issue_ns = now;
    else
        s.queue_ns = now;
    bpf_get_current_comm(s.comm, sizeof s.comm);
    if (bpf_map_update_elem(&requests, &key, &s, BPF_ANY) != 0)
        count(SV_WIRE_BLOCK, false);
}

TRACEPOINT(block_rq_insert)
int BPF_PROG(on_block_insert, struct request *rq)
{
    note_request(rq, false);
    return 0;
}

TRACEPOINT(block_rq_issue)
int BPF_PROG(on_block_issue, struct request *rq)
{
    note_request(rq, true);
    return 0;
}

TRACEPOINT(block_rq_complete)
int BPF_PROG(on_block_complete, struct request *rq, int error, unsigned int bytes)
{
    __u64 key = (__u64)rq;
    struct request_state *s = bpf_map_lookup_elem(&requests, &key);
    void *ring = my_ring();
    if (!s || !ring)
        return 0;
    struct sv_wire_block *b = bpf_ringbuf_reserve(ring, sizeof *b, 0);
    count(SV_WIRE_BLOCK, b != 0);
    if (b) {
        fill_head(&b->head, SV_WIRE_BLOCK, 0, (struct pids){s->tgid, s->tid});
        b->queue_ns = s->queue_ns;
        b->issue_ns = s->issue_ns;
        b->sector = GET(rq, __sector);
        struct request_queue *q = GET(WALK(struct request, rq), q);
        struct gendisk *disk = q ? GET(q, disk) : 0;
        b->device = disk ? (__u32)GET(disk, major) << 20 | (__u32)GET(disk, first_minor) : 0;
        b->bytes = bytes;
        b->command = GET(rq, cmd_flags);
        b->error = error;
        __builtin_memcpy(b->comm, s->comm, sizeof b->comm);
        bpf_ringbuf_submit(b, wake_flags(ring, sizeof *b));
    }
    if (GET(rq, __data_len) <= bytes)
        bpf_map_delete_elem(&requests, &key);
    return 0;
}

#endif

#endif

/* Probe `io_uring`: requests from submission to completion. Both sides include it; the programs are
 * for the kernel only.
 *
 * A request is identified by its address until it completes. The submitter may be a kernel thread
 * that works for the process (SQPOLL): it belongs to the same group, and is followed with its
 * leader. */
#ifndef SV_RECORD_BPF_IO_URING_H
#define SV_RECORD_BPF_IO_URING_H

#include "records.h"

enum { SV_WIRE_FIXED_FILE = 1 }; /* flag of the head: fd is a number of the ring's own table */

/* The head is that of the submitting thread, its `what` the operation, its ts_ns the completion. */
struct sv_wire_uring {
    struct sv_wire_head head;
    __u64 start_ns, user_data;
    __s64 offset; /* -1: not known, or the position of the file */
    __u64 inode;
    __u32 device, len;
    __s32 fd, res;
};

#if defined(__bpf__) && KNOWS_KERNEL

enum { CQE_MORE = 2 };             /* IORING_CQE_F_MORE */
enum { REQUEST_FIXED_FILE = 1 };   /* REQ_F_FIXED_FILE */
#define OPS_WITH_RANGE 0xc00036ull /* readv, writev, read_fixed, write_fixed, read, write */
#define OPS_WITH_FILE \
    0x80000041c2013eull /* these, fsync, sync_file_range, fallocate, fadvise, splice, ftruncate */

struct uring_state {
    __u64 start_ns, offset, user_data;
    __u32 tgid, tid, len;
    __s32 fd;
    __u8 opcode, is_fixed;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u64); /* address of the request */
    __type(value, struct uring_state);
} urings SEC(".maps");

TRACEPOINT(io_uring_submit_req)
int BPF_PROG(on_io_uring_submit, struct io_kiocb *req)
{
    struct task_struct *task = current_task();
    if (!followed(task)) {
        struct task_struct *leader = GET(task, group_leader);
        if (!leader || !followed(leader))
            return 0;
    }
    __u64 key = (__u64)req;
    struct pids n = own_pids();
    struct uring_state s = {.start_ns = now_ns(),
                            .offset = ~0ull,
                            .user_data = GET(req, cqe.user_data),
                            .tgid = n.tgid,
                            .tid = n.tid,
                            .fd = GET(req, cqe.fd),
                            .opcode = GET(req, opcode),
                            .is_fixed = GET(req, flags) & REQUEST_FIXED_FILE};
    if (s.opcode < 64 && OPS_WITH_RANGE >> s.opcode & 1 && bpf_core_type_exists(struct io_rw)) {
        struct io_rw *rw = (struct io_rw *)req;
        s.offset = (__u64)BPF_CORE_READ(rw, kiocb.ki_pos);
        s.len = BPF_CORE_READ(rw, len);
    }
    if (bpf_map_update_elem(&urings, &key, &s, BPF_ANY) != 0)
        count(SV_WIRE_URING, false);
    return 0;
}

TRACEPOINT(io_uring_complete)
int BPF_PROG(on_io_uring_complete, void *ring_ctx, void *req)
{
    __u64 key = (__u64)req;
    struct uring_state *s = bpf_map_lookup_elem(&urings, &key);
    void *ring = my_ring();
    if (!s || !ring)
        return 0;
    struct {
        __u64 user_data;
        __s32 res;
        __u32 flags;
    } cqe = {0};
    if (config.complete_has_cqe) {
        bpf_probe_read_kernel(&cqe, sizeof cqe, (void *)ctx[2]);
    } else {
        cqe.res = (__s32)ctx[3];
        cqe.flags = (__u32)ctx[4];
    }
    struct sv_wire_uring *u = bpf_ringbuf_reserve(ring, sizeof *u, 0);
    count(SV_WIRE_URING, u != 0);
    if (u) {
        fill_head(&u->head, SV_WIRE_URING, s->opcode, (struct pids){s->tgid, s->tid});
        u->head.flags = s->is_fixed ? SV_WIRE_FIXED_FILE : 0;
        u->start_ns = s->start_ns;
        u->user_data = s->user_data;
        u->offset = (__s64)s->offset;
        u->len = s->len;
        u->fd = s->fd;
        u->res = cqe.res;
        u->inode = 0;
        u->device = 0;
        if (s->opcode < 64 && OPS_WITH_FILE >> s->opcode & 1) {
            struct io_kiocb *r = req;
            struct file *file = BPF_CORE_READ(r, file);
            if (file) {
                u->inode = BPF_CORE_READ(file, f_inode, i_ino);
                u->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
            }
        }
        bpf_ringbuf_submit(u, wake_flags(ring, sizeof *u));
    }
    if (cqe.flags & CQE_MORE)
        s->start_ns = now_ns(); /* the next one counts from here */
    else
        bpf_map_delete_elem(&urings, &key);
    return 0;
}

#endif

#endif

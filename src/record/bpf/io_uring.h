/* Probe `io_uring`: requests from submission to completion. Both sides include it; the programs are
 * for the kernel only.
 *
 * A request is identified by its address until it completes. The submitter may be a kernel thread
 * that works for the process (SQPOLL): it belongs to the same group, and is followed with its
 * leader. */
#ifndef SV_RECORD_BPF_IO_URING_H
#define SV_RECORD_BPF_IO_URING_H

#include "records.h"

/* Flags of the head. */
enum {
    SV_WIRE_FIXED_FILE = 1, /* fd is a number of the ring's own table */
    /* An open is submitted: the path that it was given follows; fd is the directory that it starts
     * from, len is not 0 if the file goes to the ring's own table. */
    SV_WIRE_URING_OPENS = 2
};

/* The head is that of the submitting thread, its `what` the operation, its ts_ns the completion. */
struct sv_wire_uring {
    struct sv_wire_head head;
    __u64 start_ns, user_data;
    __s64 offset; /* -1: not known, or the position of the file; of an open: which request it is */
    __u64 inode;
    __u32 device, len;
    __s32 fd, res;
};

#if defined(__bpf__) && KNOWS_KERNEL

enum { CQE_MORE = 2 }; /* IORING_CQE_F_MORE */
enum { OP_OPENAT = 18, OP_CLOSE = 19, OP_OPENAT2 = 28 };
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

struct uring_open {
    struct sv_wire_uring request;
    char text[SV_WIRE_PATH_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct uring_open);
} uring_opens SEC(".maps");

/* The kernel has copied the path of an open when it is submitted, and frees it with the request. */
static __noinline int send_path(struct io_kiocb *req, const struct uring_state *s)
{
    __u32 zero = 0;
    struct uring_open *o = bpf_map_lookup_elem(&uring_opens, &zero);
    void *ring = my_ring();
    if (!o || !ring || !s || !bpf_core_type_exists(struct io_open))
        return 0;
    struct io_open *open = (struct io_open *)req;
    const char *name = BPF_CORE_READ(open, filename, name);
    fill_head(&o->request.head, SV_WIRE_URING, s->opcode, (struct pids){s->tgid, s->tid});
    o->request.head.flags = SV_WIRE_URING_OPENS;
    o->request.start_ns = s->start_ns;
    o->request.user_data = s->user_data;
    o->request.offset = (__s64)s->offset;
    o->request.fd = BPF_CORE_READ(open, dfd);
    o->request.len = s->len;
    o->request.inode = 0;
    o->request.device = 0;
    o->request.res = 0;
    long len = bpf_probe_read_kernel_str(o->text, sizeof o->text, name);
    if (len > 0 && len <= SV_WIRE_PATH_MAX)
        put(ring, o, sizeof o->request + (__u32)len, SV_WIRE_URING);
    return 0;
}

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
    if (s.opcode == OP_OPENAT || s.opcode == OP_OPENAT2) {
        s.offset = s.start_ns; /* a thread submits one after the other */
        if (bpf_core_type_exists(struct io_open))
            s.len = BPF_CORE_READ((struct io_open *)req, file_slot);
        send_path(req, &s);
    }
    if (s.opcode == OP_CLOSE && bpf_core_type_exists(struct io_close))
        s.fd = BPF_CORE_READ((struct io_close *)req, fd);
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

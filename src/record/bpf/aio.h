/* Probe `aio`: requests of io_submit() (libaio), from there to the io_getevents() that brings them
 * back. Both sides include it; the programs are for the kernel only.
 *
 * The kernel has no event for them. What the two calls are given says all: they are read when the
 * call ends (syscalls.h), as far as it took or brought them. */
#ifndef SV_RECORD_BPF_AIO_H
#define SV_RECORD_BPF_AIO_H

#include "records.h"

enum { SV_WIRE_AIO_DONE = 1 }; /* flag of the head: it is back */

/* The head's `what` is the operation; of one that is back only `request` and `res` are known. */
struct sv_wire_aio {
    struct sv_wire_head head;
    __u64 start_ns;
    __u64 request; /* where the program keeps it */
    __s64 offset, res;
    __u64 len;
    __s32 fd;
    __u32 pad;
};

#if defined(__bpf__)

enum { AIO_MAX = 256 }; /* per call; more are counted as lost */

/* As the program has it (linux/aio_abi.h). */
struct aio_request {
    __u64 data;
    __u32 key, rw_flags;
    __u16 opcode;
    __s16 priority;
    __u32 fd;
    __u64 at, len;
    __s64 offset;
};
struct aio_event {
    __u64 data, request;
    __s64 res, res2;
};

static __always_inline bool fill_submitted(struct sv_wire_aio *a, __u64 pointers, __u32 i)
{
    struct aio_request r;
    if (bpf_probe_read_user(&a->request, sizeof a->request, (void *)(pointers + 8ull * i)) != 0 ||
        bpf_probe_read_user(&r, sizeof r, (void *)a->request) != 0)
        return false;
    a->head.what = r.opcode;
    a->offset = r.offset;
    a->len = r.len;
    a->fd = (__s32)r.fd;
    return true;
}

static __always_inline bool fill_done(struct sv_wire_aio *a, __u64 events, __u32 i)
{
    struct aio_event e;
    if (bpf_probe_read_user(&e, sizeof e, (void *)(events + sizeof e * i)) != 0)
        return false;
    a->head.flags = SV_WIRE_AIO_DONE;
    a->request = e.request;
    a->res = e.res;
    return true;
}

/* Of a call that took or brought `n` of them. */
static __noinline int send_requests(const struct sv_wire_task *s, __u32 wants, long n)
{
    void *ring = my_ring();
    if (!s || !ring)
        return 0;
    for (__u32 i = 0; i < AIO_MAX && i < n; i++) {
        struct sv_wire_aio a = {.start_ns = s->start_ns, .offset = -1, .fd = -1};
        fill_head(&a.head, SV_WIRE_AIO, 0, pids_in(s));
        bool is_there = wants & SV_WIRE_SUBMITS ? fill_submitted(&a, s->args[2], i)
                                                : fill_done(&a, s->args[3], i);
        if (is_there)
            put(ring, &a, sizeof a, SV_WIRE_AIO);
        else
            count(SV_WIRE_AIO, false);
    }
    for (long i = AIO_MAX; i < n && i < 2 * AIO_MAX; i++)
        count(SV_WIRE_AIO, false);
    return 0;
}

#endif

#endif

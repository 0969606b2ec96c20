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

struct aio_requests {
    __u64 at; /* where the program has them */
    long n;
    struct sv_wire_head head;
    __u64 start_ns;
    __u32 is_submitted;
};

static long send_request(__u32 i, void *of)
{
    const struct aio_requests *all = of;
    struct sv_wire_aio a = {.head = all->head, .start_ns = all->start_ns, .offset = -1, .fd = -1};
    void *ring = my_ring();
    if (i >= all->n || !ring)
        return 1;
    if (i < AIO_MAX &&
        (all->is_submitted ? fill_submitted(&a, all->at, i) : fill_done(&a, all->at, i)))
        put(ring, &a, sizeof a, SV_WIRE_AIO);
    else
        count(SV_WIRE_AIO, false);
    return 0;
}

/* Of a call of the current task that took or brought `n` of them. Not static: the kernel checks it
 * once. */
__noinline int send_requests(__u32 wants, long n)
{
    const struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    struct aio_requests all = {.at = wants & SV_WIRE_SUBMITS ? s->args[2] : s->args[3],
                               .n = n,
                               .start_ns = s->start_ns,
                               .is_submitted = wants & SV_WIRE_SUBMITS};
    fill_head(&all.head, SV_WIRE_AIO, 0, pids_in(s));
    REPEAT(2 * AIO_MAX, send_request, &all);
    return 0;
}

#endif

#endif

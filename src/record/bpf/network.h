/* Probe `network`: what followed tasks send and receive over TCP, and with whom. Both sides include
 * it; the programs are for the kernel only. */
#ifndef SV_RECORD_BPF_NETWORK_H
#define SV_RECORD_BPF_NETWORK_H

#include "records.h"

struct sv_wire_transfer {
    struct sv_wire_head head; /* `what`: 1 sent, 0 received */
    __u64 start_ns;           /* the system call's, where it is recorded */
    __s32 ret;                /* bytes or -errno */
    __u16 family;             /* AF_INET, AF_INET6 */
    __u16 pad;
    __u16 peer_port, port;
    __u32 peer[4]; /* in the order of the network; one word of IPv4 */
    __u32 pad2;
};

#if defined(__bpf__) && KNOWS_KERNEL

enum { FAMILY_INET = 2, FAMILY_INET6 = 10, TYPE_STREAM = 1, WOULD_BLOCK = 11 };

static __always_inline void fill_peer(struct sv_wire_transfer *t, struct sock *sk)
{
    t->family = GET(sk, __sk_common.skc_family);
    t->peer_port = __builtin_bswap16(GET(sk, __sk_common.skc_dport));
    t->port = GET(sk, __sk_common.skc_num);
    t->peer[0] = GET(sk, __sk_common.skc_daddr);
    t->peer[1] = t->peer[2] = t->peer[3] = 0;
    if (t->family == FAMILY_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
        bpf_probe_read_kernel(t->peer, sizeof t->peer, &sk->__sk_common.skc_v6_daddr);
}

/* Both tracepoints are where the socket's own function has returned, in the task that called it. */
static __always_inline int transferred(struct sock *sk, int ret, __u32 is_sent)
{
    struct sv_wire_task *s = followed_self();
    if (!s || ret == -WOULD_BLOCK)
        return 0;
    __u16 family = GET(sk, __sk_common.skc_family);
    void *ring = my_ring();
    if ((family != FAMILY_INET && family != FAMILY_INET6) || GET(sk, sk_type) != TYPE_STREAM ||
        !ring)
        return 0;
    struct sv_wire_transfer *t = bpf_ringbuf_reserve(ring, sizeof *t, 0);
    count(SV_WIRE_TRANSFER, t != 0);
    if (!t)
        return 0;
    fill_head(&t->head, SV_WIRE_TRANSFER, is_sent, pids_in(s));
    t->start_ns = s->is_open ? s->start_ns : t->head.ts_ns;
    if (t->start_ns < s->socket_ns) /* a call may transfer several times */
        t->start_ns = s->socket_ns;
    s->socket_ns = t->head.ts_ns;
    t->ret = ret;
    t->pad = 0;
    t->pad2 = 0;
    fill_peer(t, sk);
    bpf_ringbuf_submit(t, wake_flags(ring, sizeof *t));
    return 0;
}

TRACEPOINT(sock_send_length)
int BPF_PROG(on_network_send, struct sock *sk, int ret)
{
    return transferred(sk, ret, 1);
}

TRACEPOINT(sock_recv_length)
int BPF_PROG(on_network_receive, struct sock *sk, int ret)
{
    return transferred(sk, ret, 0);
}

#endif

#endif

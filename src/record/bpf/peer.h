/* Calls that wait for the other end of a socket: whether they waited, and who that is. Both sides
 * include it; the functions are for the kernel only, part of syscalls.h. Plain tracepoints know
 * nothing of it. */
#ifndef SV_RECORD_BPF_PEER_H
#define SV_RECORD_BPF_PEER_H

#include <linux/types.h>

enum { SV_WIRE_FAMILY_UNIX = 1, SV_WIRE_FAMILY_INET = 2, SV_WIRE_FAMILY_INET6 = 10 };

/* Behind the record of a call, whose size is a multiple of 4. The name of a socket of family UNIX
 * follows, with its NUL; one without a place in the file system begins with '@'. */
struct sv_wire_peer {
    __s32 fd;          /* the descriptor; -1: not known */
    __u32 inode, peer; /* of both ends of a UNIX socket; 0: not known */
    __u32 pid;         /* who made the other end, by its credentials; 0: not known */
    __u32 net;         /* the network namespace */
    __u16 family;      /* 0: not a socket with a peer */
    __u16 is_local;    /* both ends have the same address */
    __u16 peer_port, port;
    __u32 address[4]; /* in the order of the network; one word of IPv4 */
};
enum { SV_WIRE_PEER_NAME = 108 }; /* at most, without the NUL */

#if defined(__bpf__)

enum { IN_PROGRESS = 115 }; /* of a connection */
enum { PEER_BYTES_MAX = sizeof(struct sv_wire_peer) + 128 };

#if KNOWS_KERNEL

enum { IS_KIND = 0170000, IS_SOCKET = 0140000, TOOK_LONG_NS = 20000 };

/* The kernel counts how often a task has given up its CPU to wait. */
static __always_inline void note_waits(struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p)
{
    if (p->waits & SV_WIRE_IF_WAITED)
        s->switches = GET(current_task(), nvcsw);
}

static __always_inline bool is_without_wait(const struct sv_wire_task *s,
                                            const volatile struct sv_wire_plan *p)
{
    return p->waits & SV_WIRE_IF_WAITED && GET(current_task(), nvcsw) == s->switches;
}

static __always_inline struct sock *sock_of(struct file *file)
{
    if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & IS_KIND) != IS_SOCKET)
        return 0;
    struct socket *socket = BPF_CORE_READ(file, private_data);
    return BPF_CORE_READ(socket, sk);
}

static __always_inline bool gives_peer(const struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p, __u64 now)
{
    if (!(p->waits & SV_WIRE_HAS_PEER))
        return false;
    return !(p->waits & SV_WIRE_IS_FILE) ||
           (now - s->start_ns >= TOOK_LONG_NS && sock_of(file_of((__s32)s->args[p->fd & 7])));
}

/* The first one that is ready, of those that are looked at. */
CHECKED_ONCE __s32 ready_descriptor(__u64 at, __u64 n_all)
{
    enum { LOOKED_AT = 16 }; /* a power of two, one less is read */
    struct {
        __s32 fd;
        __u16 events, revents;
    } all[LOOKED_AT] = {0};
    __u64 n = n_all < LOOKED_AT ? n_all : LOOKED_AT - 1;
    if (bpf_probe_read_user(all, (n & (LOOKED_AT - 1)) * sizeof *all, (void *)at) != 0)
        return -1;
    for (int i = 0; i < LOOKED_AT; i++)
        if (all[i].revents)
            return all[i].fd;
    return -1;
}

static __always_inline __s32 peer_descriptor(const struct sv_wire_task *s,
                                             const volatile struct sv_wire_plan *p, long ret)
{
    if (p->waits & SV_WIRE_POLLS)
        return ret > 0 ? ready_descriptor(s->args[0], s->args[1]) : -1;
    if (p->wants & SV_WIRE_RETURNS_FD && ret >= 0) /* accept */
        return (__s32)ret;
    return p->fd == SV_WIRE_NONE ? -1 : (__s32)s->args[p->fd & 7];
}

static __always_inline void fill_inet(struct sv_wire_peer *w, struct sock *sk)
{
    w->peer_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
    w->port = BPF_CORE_READ(sk, __sk_common.skc_num);
    w->net = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
    if (w->family == SV_WIRE_FAMILY_INET6 && bpf_core_field_exists(sk->__sk_common.skc_v6_daddr)) {
        __u32 own[4] = {0};
        bpf_core_read(w->address, sizeof w->address, &sk->__sk_common.skc_v6_daddr);
        bpf_core_read(own, sizeof own, &sk->__sk_common.skc_v6_rcv_saddr);
        w->is_local = own[0] == w->address[0] && own[1] == w->address[1] &&
                      own[2] == w->address[2] && own[3] == w->address[3];
    } else {
        w->address[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
        w->is_local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) == w->address[0];
    }
}

/* The name of a socket to `text`, with its NUL; its bytes, 0: it has none. */
static __always_inline __u64 unix_name(char *text, struct sock *sk)
{
    struct unix_address *a = BPF_CORE_READ((struct unix_sock *)sk, addr);
    __u64 n = a ? (__u32)BPF_CORE_READ(a, len) - 2 : 0; /* without its family */
    if (n == 0 || n > SV_WIRE_PEER_NAME)
        return 0;
    const char *from = (const char *)a + bpf_core_field_offset(struct unix_address, len) +
                       sizeof a->len + 2;
    if (bpf_probe_read_kernel(text, n & 127, from) != 0)
        return 0;
    if (!text[0])
        text[0] = '@';
    text[n & 127] = 0;
    return (n & 127) + 1;
}

/* The listener has the name, and of a connection the end that was accepted, too. */
static __always_inline __u64 fill_unix(struct sv_wire_peer *w, char *text, struct sock *sk)
{
    struct pid *made_by = BPF_CORE_READ(sk, sk_peer_pid);
    if (made_by)
        w->pid = config.pid_namespace ? pid_here(made_by) : BPF_CORE_READ(made_by, numbers[0].nr);
    if (!bpf_core_field_exists(((struct unix_sock *)0)->peer))
        return 0;
    struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
    w->inode = (__u32)BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
    if (!peer)
        return unix_name(text, sk);
    w->peer = (__u32)BPF_CORE_READ(peer, sk_socket, file, f_inode, i_ino);
    __u64 n = unix_name(text, peer);
    return n ? n : unix_name(text, sk);
}

/* Returns its bytes, at most PEER_BYTES_MAX. */
static __always_inline __u64 put_peer(char *at, __s32 fd)
{
    struct sv_wire_peer w = {.fd = fd};
    struct sock *sk = sock_of(file_of(fd));
    __u64 name = 0;
    if (sk)
        w.family = BPF_CORE_READ(sk, __sk_common.skc_family);
    if (w.family == SV_WIRE_FAMILY_UNIX)
        name = fill_unix(&w, at + sizeof w, sk);
    else if (w.family == SV_WIRE_FAMILY_INET || w.family == SV_WIRE_FAMILY_INET6)
        fill_inet(&w, sk);
    else
        w.family = 0;
    __builtin_memcpy(at, &w, sizeof w);
    return sizeof w + name;
}

#else

static __always_inline void note_waits(struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p)
{
    (void)s;
    (void)p;
}

static __always_inline bool is_without_wait(const struct sv_wire_task *s,
                                            const volatile struct sv_wire_plan *p)
{
    (void)s;
    return p->waits & SV_WIRE_IF_WAITED;
}

static __always_inline bool gives_peer(const struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p, __u64 now)
{
    (void)s;
    (void)p;
    (void)now;
    return false;
}

static __always_inline __s32 peer_descriptor(const struct sv_wire_task *s,
                                             const volatile struct sv_wire_plan *p, long ret)
{
    (void)s;
    (void)p;
    (void)ret;
    return -1;
}

static __always_inline __u64 put_peer(char *at, __s32 fd)
{
    (void)at;
    (void)fd;
    return 0;
}

#endif

#endif

#endif

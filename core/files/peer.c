/* Who is at the other end: see peer.h.
 *
 * The kernel is asked by sock_diag for one socket by its addresses; where that is not possible (no
 * module, a filter of system calls), /proc/net/tcp and tcp6 are read. A socket without inode has no
 * owner any more, or not yet: the kernel then says user 0, which must not be believed. */
#include "core/files/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Both ends in one form; addresses and ports in the order of the network. */
struct tuple {
    int family;
    uint32_t own[4], peer[4]; /* of the socket that is looked for: it is the peer's */
    uint16_t own_port, peer_port;
};

static bool put_address(const struct sockaddr *a, int *family, uint32_t to[4], uint16_t *port)
{
    memset(to, 0, 4 * sizeof *to);
    *family = a->sa_family;
    if (a->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, a, sizeof in);
        to[0] = in.sin_addr.s_addr;
        *port = in.sin_port;
        return true;
    }
    if (a->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 in6;
    memcpy(&in6, a, sizeof in6);
    *port = in6.sin6_port;
    memcpy(to, &in6.sin6_addr, sizeof in6.sin6_addr);
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
        *family = AF_INET;
        to[0] = to[3];
        to[1] = to[2] = to[3] = 0;
    }
    return true;
}

bool sv_peer_is_loopback(const struct sockaddr *address)
{
    uint32_t a[4];
    uint16_t port;
    int family;
    if (!put_address(address, &family, a, &port))
        return address->sa_family == AF_UNIX;
    if (family == AF_INET)
        return ntohl(a[0]) >> 24 == 127;
    return (a[0] | a[1] | a[2]) == 0 && a[3] == htonl(1);
}

/* ---- sock_diag ---- */

struct answer {
    uid_t uid;
    bool is_there, has_failed;
};

/* States in which a socket has an owner: a listener, or a connection that is not being opened or
 * gone. */
static bool is_owned(unsigned state, uint32_t inode, bool is_listener)
{
    bool is_right = is_listener ? state == TCP_LISTEN
                                : state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 ||
                                      state == TCP_FIN_WAIT2 || state == TCP_CLOSE_WAIT ||
                                      state == TCP_LAST_ACK || state == TCP_CLOSING;
    return is_right && inode != 0;
}

static struct answer ask_kernel(const struct tuple *t, bool is_listener)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {.head = {.nlmsg_len = sizeof ask,
                      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                      .nlmsg_flags = NLM_F_REQUEST},
             .body = {.sdiag_family = (uint8_t)t->family,
                      .sdiag_protocol = IPPROTO_TCP,
                      .idiag_states = ~0u,
                      .id = {.idiag_sport = t->own_port,
                             .idiag_dport = t->peer_port,
                             .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } got;
    struct answer a = {.uid = SV_PEER_UNKNOWN, .has_failed = true};
    memcpy(ask.body.id.idiag_src, t->own, sizeof t->own);
    memcpy(ask.body.id.idiag_dst, t->peer, sizeof t->peer);
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return a;
    struct timeval limit = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t n = send(fd, &ask, sizeof ask, 0) == sizeof ask ? recv(fd, &got, sizeof got, 0) : -1;
    close(fd);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(int)) || got.head.nlmsg_len > (uint32_t)n)
        return a;
    if (got.head.nlmsg_type == NLMSG_ERROR) {
        int error;
        memcpy(&error, NLMSG_DATA(&got.head), sizeof error);
        a.has_failed = error != -ENOENT || t->family == AF_INET6;
        return a;
    }
    struct inet_diag_msg m;
    if (got.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)NLMSG_LENGTH(sizeof m))
        return a;
    memcpy(&m, NLMSG_DATA(&got.head), sizeof m);
    a.has_failed = false;
    a.is_there = is_owned(m.idiag_state, m.idiag_inode, is_listener) &&
                 m.id.idiag_sport == t->own_port && m.id.idiag_dport == t->peer_port;
    if (a.is_there)
        a.uid = m.idiag_uid;
    return a;
}

/* ---- /proc ---- */

/* "0100007F:1F90", or 32 digits for IPv6: words as the kernel has them in memory. */
static bool read_end(const char *text, uint32_t to[4], int *family, uint16_t *port)
{
    const char *colon = strchr(text, ':');
    size_t digits = colon ? (size_t)(colon - text) : 0;
    char word[9] = {0};
    memset(to, 0, 4 * sizeof *to);
    if (digits != 8 && digits != 32)
        return false;
    for (size_t i = 0; i < digits / 8; i++) {
        memcpy(word, text + 8 * i, 8);
        to[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    *family = digits == 8 ? AF_INET : AF_INET6;
    if (digits == 32 && to[0] == 0 && to[1] == 0 && to[2] == htonl(0xffff)) {
        *family = AF_INET;
        to[0] = to[3];
        to[1] = to[2] = to[3] = 0;
    }
    *port = htons((uint16_t)strtoul(colon + 1, NULL, 16));
    return true;
}

static bool is_any(const uint32_t a[4])
{
    return (a[0] | a[1] | a[2] | a[3]) == 0;
}

static bool take_line(const char *line, const struct tuple *t, bool is_listener, uid_t *uid)
{
    char own_text[48], peer_text[48];
    unsigned state, owner;
    unsigned long inode;
    uint32_t own[4], peer[4];
    uint16_t own_port, peer_port;
    int family, other;
    if (sscanf(line, " %*u: %47s %47s %x %*s %*s %*s %u %*u %lu", own_text, peer_text, &state,
               &owner, &inode) != 5 ||
        !read_end(own_text, own, &family, &own_port) ||
        !read_end(peer_text, peer, &other, &peer_port))
        return false;
    bool is_address = (family == t->family && memcmp(own, t->own, sizeof own) == 0) ||
                      (is_listener && is_any(own));
    if (!is_address || own_port != t->own_port ||
        !is_owned(state, (uint32_t)(inode != 0), is_listener))
        return false;
    if (!is_listener && (memcmp(peer, t->peer, sizeof peer) != 0 || peer_port != t->peer_port))
        return false;
    *uid = owner;
    return true;
}

static uid_t search_file(const char *path, const struct tuple *t, bool is_listener)
{
    char text[8192];
    size_t n = 0;
    uid_t uid = SV_PEER_UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && uid == SV_PEER_UNKNOWN;) {
        got = read(fd, text + n, sizeof text - 1 - n);
        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
        char *line = text, *end;
        while ((end = strchr(line, '\n')) && uid == SV_PEER_UNKNOWN) {
            *end = '\0';
            take_line(line, t, is_listener, &uid);
            line = end + 1;
        }
        n -= (size_t)(line - text);
        memmove(text, line, n);
        if (n == sizeof text - 1)
            break;
    }
    if (fd >= 0)
        close(fd);
    return uid;
}

static uid_t find(const struct tuple *t, bool is_listener)
{
    struct answer a = ask_kernel(t, is_listener);
    if (!a.has_failed)
        return a.uid;
    uid_t uid = search_file("/proc/net/tcp", t, is_listener);
    return uid != SV_PEER_UNKNOWN ? uid : search_file("/proc/net/tcp6", t, is_listener);
}

/* ---- for callers ---- */

uid_t sv_peer_uid_of(const struct sockaddr *own, const struct sockaddr *peer)
{
    struct tuple t = {0};
    int family;
    if (!sv_peer_is_loopback(peer) || !put_address(peer, &t.family, t.own, &t.own_port) ||
        !put_address(own, &family, t.peer, &t.peer_port) || family != t.family)
        return SV_PEER_UNKNOWN;
    return find(&t, false);
}

uid_t sv_peer_listener(const struct sockaddr *address)
{
    struct tuple t = {0};
    if (!sv_peer_is_loopback(address) || !put_address(address, &t.family, t.own, &t.own_port))
        return SV_PEER_UNKNOWN;
    return find(&t, true);
}

uid_t sv_peer_uid_unix(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.uid : SV_PEER_UNKNOWN;
}

uid_t sv_peer_uid(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage all;
    } own = {0}, peer = {0};
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    if (getsockname(fd, &own.any, &own_len) != 0)
        return SV_PEER_UNKNOWN;
    if (own.any.sa_family == AF_UNIX)
        return sv_peer_uid_unix(fd);
    if (getpeername(fd, &peer.any, &peer_len) != 0)
        return SV_PEER_UNKNOWN;
    return sv_peer_uid_of(&own.any, &peer.any);
}

/* The number at *at, which moves behind it; false at the end or where there is none. */
static bool next_number(const char **at, unsigned long *number)
{
    char *end;
    const char *p = *at + (**at == ',');
    if (*p < '0' || *p > '9')
        return false;
    errno = 0;
    *number = strtoul(p, &end, 10);
    *at = end;
    return errno == 0 && *number < (unsigned long)SV_PEER_UNKNOWN && (*end == ',' || *end == '\0');
}

bool sv_peer_may(uid_t uid, const char *list)
{
    unsigned long number;
    if (list && strcmp(list, "any") == 0)
        return true;
    if (uid == SV_PEER_UNKNOWN)
        return false;
    if (uid == geteuid() || uid == 0)
        return true;
    while (list && next_number(&list, &number))
        if (number == uid)
            return true;
    return false;
}

bool sv_peer_list_is_valid(const char *list)
{
    unsigned long number;
    if (strcmp(list, "any") == 0)
        return true;
    bool is_valid = *list != ',' && next_number(&list, &number);
    while (is_valid && *list)
        is_valid = next_number(&list, &number);
    return is_valid;
}

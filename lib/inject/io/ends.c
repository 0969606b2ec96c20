/* Who is at the other end of a pipe or a socket: who wrote last to it, or emptied it.
 *
 * A table that all processes of a recording share: memory of the recorder's, by STAVE_IO_ENDS. A
 * place holds the last thread that used an end; two ends with the same place lose to the newer one,
 * and the reader sees by the number that it is not its own. Without the table nothing is said. */
#include "io.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = 2048 };
struct place {
    _Atomic uint64_t who; /* number of the end << 32 | thread */
    _Atomic int64_t ns;
    _Atomic uint32_t pid;
    uint32_t unused;
};
static struct place *places;

void io_ends_init(void)
{
    const char *path = getenv("STAVE_IO_ENDS");
    struct stat is;
    if (!path)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *at = MAP_FAILED;
    if (fstat(fd, &is) == 0 && is.st_size >= (off_t)(PLACES * sizeof *places))
        at = mmap(NULL, PLACES * sizeof *places, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    places = at != MAP_FAILED ? at : NULL;
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 0x9e3779b97f4a7c15u) ^ b * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    return (x ^ (x >> 32)) | 1;
}

static unsigned port_of(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    return a->ss_family == AF_INET    ? ntohs(v4->sin_port)
           : a->ss_family == AF_INET6 ? ntohs(v6->sin6_port)
                                      : 0;
}

static bool is_here(const struct sockaddr_storage *a)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    return a->ss_family == AF_INET    ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
           : a->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
                                      : false;
}

/* A connection within this machine is known by its two ports. */
static struct io_ends socket_ends(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t n = sizeof own, m = sizeof peer;
    if (getsockname(fd, (void *)&own, &n) != 0 || getpeername(fd, (void *)&peer, &m) != 0 ||
        !is_here(&peer))
        return (struct io_ends){0, 0};
    uint64_t here = port_of(&own), there = port_of(&peer);
    return (struct io_ends){mix(here << 16 | there, 2), mix(there << 16 | here, 2)};
}

struct io_ends io_ends_find(int fd, const char *path)
{
    if (!places)
        return (struct io_ends){0, 0};
    if (strncmp(path, "pipe:[", 6) == 0) {
        uint64_t number = mix(strtoull(path + 6, NULL, 10), 1);
        return (struct io_ends){number, number};
    }
    return strncmp(path, "socket:[", 8) == 0 ? socket_ends(fd) : (struct io_ends){0, 0};
}

struct io_ends io_ends_between(int fd, int other)
{
    const char *a = io_path(fd), *b = io_path(other);
    if (!places || !a || !b || strncmp(a, "socket:[", 8) != 0 || strncmp(b, "socket:[", 8) != 0)
        return (struct io_ends){0, 0};
    return (struct io_ends){mix(strtoull(a + 8, NULL, 10), 3), mix(strtoull(b + 8, NULL, 10), 3)};
}

/* ---- who ---- */

/* What is emptied has another number than what is filled. */
static uint64_t number_of(struct io_ends ends, bool fills, bool is_mine)
{
    uint64_t end = fills == is_mine ? ends.out : ends.in;
    return fills ? end : end ^ 0x5555555500000000u;
}

static struct place *place_of(uint64_t number)
{
    return &places[(number >> 32) % PLACES];
}

void io_ends_used(int fd, bool is_out)
{
    struct io_ends ends = io_ends(fd);
    if (!ends.in || !places)
        return;
    uint64_t number = number_of(ends, is_out, true);
    struct place *p = place_of(number);
    static _Atomic uint32_t pid, of_generation;
    struct pre_thread *t = pre_thread();
    if (RARELY(atomic_load_explicit(&of_generation, memory_order_relaxed) != t->generation)) {
        atomic_store_explicit(&pid, (uint32_t)getpid(), memory_order_relaxed);
        atomic_store_explicit(&of_generation, t->generation, memory_order_relaxed);
    }
    atomic_store_explicit(&p->ns, stave_now_ns(), memory_order_relaxed);
    atomic_store_explicit(&p->pid, atomic_load_explicit(&pid, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&p->who, (number & 0xffffffff) << 32 | t->tid, memory_order_release);
}

/* The address of the other end, of calls that waited. */
static void put_peer(struct io_call *c, int fd)
{
    static _Thread_local char text[INET6_ADDRSTRLEN + 16]
        __attribute__((tls_model("initial-exec")));
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t n = sizeof own, m = sizeof peer;
    char name[INET6_ADDRSTRLEN] = "";
    if (getpeername(fd, (void *)&peer, &m) != 0 || !port_of(&peer))
        return;
    bool is_v6 = peer.ss_family == AF_INET6;
    const struct sockaddr_in *v4 = (const void *)&peer;
    const struct sockaddr_in6 *v6 = (const void *)&peer;
    inet_ntop(peer.ss_family, is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, name,
              sizeof name);
    snprintf(text, sizeof text, is_v6 ? "[%s]:%u" : "%s:%u", name, port_of(&peer));
    pre_put_text(&c->args, PRE_PEER, text);
    if (getsockname(fd, (void *)&own, &n) == 0)
        pre_put(&c->args, PRE_PORT, port_of(&own));
}

uint32_t io_ends_waker(struct io_call *c, int fd, bool is_out)
{
    enum { WAITED_NS = 1000000 };
    if (c->end_ns - c->start_ns < WAITED_NS)
        return 0;
    struct io_ends ends = io_ends(fd);
    put_peer(c, fd);
    if (!ends.in || !places)
        return 0;
    /* It waited to send until the other end was emptied, or to receive until that was filled. */
    uint64_t number = number_of(ends, !is_out, false);
    const struct place *p = place_of(number);
    uint64_t who = atomic_load_explicit(&p->who, memory_order_acquire);
    int64_t ns = atomic_load_explicit(&p->ns, memory_order_relaxed);
    if (who >> 32 != (number & 0xffffffff) || ns < c->start_ns || ns > c->end_ns)
        return 0;
    pre_put(&c->args, PRE_WAKER_TID, (uint32_t)who);
    if (ends.in != ends.out)
        pre_put(&c->args, PRE_PEER_PID, atomic_load_explicit(&p->pid, memory_order_relaxed));
    return (uint32_t)who;
}

/* Calls that wait for somebody: sockets, poll, children, sleep. Recorded where they took a
 * millisecond; shorter ones are many and explain nothing. */
#include "io.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- sockets ---- */

static void used(int fd, bool is_out)
{
    int error = errno;
    IO_ENTER();
    io_ends_used(fd, is_out);
    IO_LEAVE();
    errno = error;
}

/* SYMBOL, system call, parameters, arguments, bytes asked for. */
#define SOCKET_TRANSFER(symbol, call, params, args, size) \
    WRAP(ssize_t, symbol, IO_INSIDE params)               \
    {                                                     \
        struct io_call c;                                 \
        if (!PRE_ON())                                    \
            return NEXT(symbol) args;                     \
        used(fd, call[0] == 's');                         \
        io_begin(&c, call);                               \
        ssize_t got = NEXT(symbol) args;                  \
        io_end(&c, got < 0);                              \
        io_put_bytes(&c, got, size);                      \
        io_ends_waker(&c, fd, call[0] == 's');            \
        io_done_if_waited(&c, "socket", fd);              \
        return got;                                       \
    }
SOCKET_TRANSFER(recv, "recvfrom", (int fd, void *to, size_t n, int how), (fd, to, n, how), n)
SOCKET_TRANSFER(__recv_chk, "recvfrom", (int fd, void *to, size_t n, size_t room, int how),
                (fd, to, n, room, how), n)
SOCKET_TRANSFER(recvfrom, "recvfrom",
                (int fd, void *to, size_t n, int how, void *from, socklen_t *size),
                (fd, to, n, how, from, size), n)
SOCKET_TRANSFER(send, "sendto", (int fd, const void *p, size_t n, int how), (fd, p, n, how), n)
SOCKET_TRANSFER(sendto, "sendto",
                (int fd, const void *p, size_t n, int how, const void *to, socklen_t size),
                (fd, p, n, how, to, size), n)
/* How much was asked for is not looked up. */
SOCKET_TRANSFER(recvmsg, "recvmsg", (int fd, struct msghdr *m, int how), (fd, m, how),
                (uint64_t)got)
SOCKET_TRANSFER(sendmsg, "sendmsg", (int fd, const struct msghdr *m, int how), (fd, m, how),
                (uint64_t)got)

WRAP(int, connect, int fd, const void *to, socklen_t size)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(connect)(fd, to, size);
    io_begin(&c, "connect");
    int done = NEXT(connect)(fd, to, size);
    io_end(&c, done < 0);
    io_fd_unknown(fd); /* it has a peer now */
    io_done_if_waited(&c, "socket", fd);
    return done;
}

static int accepted(struct io_call *c, int fd, int made)
{
    io_end(c, made < 0);
    if (made >= 0)
        io_fd_unknown(made);
    io_done_if_waited(c, "socket", fd);
    return made;
}

WRAP(int, accept, int fd, void *from, socklen_t *size)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(accept)(fd, from, size);
    io_begin(&c, "accept");
    return accepted(&c, fd, NEXT(accept)(fd, from, size));
}

WRAP(int, accept4, int fd, void *from, socklen_t *size, int flags)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(accept4)(fd, from, size, flags);
    io_begin(&c, "accept4");
    return accepted(&c, fd, NEXT(accept4)(fd, from, size, flags));
}

/* ---- several descriptors ---- */

/* `fd`: the one that the call is about, or that was ready alone; -1: not one. */
static int polled(struct io_call *c, int ready, int fd)
{
    io_end(c, ready < 0);
    if (ready >= 0)
        pre_put(&c->args, PRE_RET, (uint64_t)ready);
    if (ready > 0 && fd >= 0)
        io_ends_waker(c, fd, false);
    io_done_if_waited(c, "poll", fd);
    return ready;
}

static int ready_one(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; fds && i < n && i < 1024; i++)
        if (fds[i].revents)
            return fds[i].fd;
    return -1;
}

#define POLL(symbol, call, params, args, fd) \
    WRAP(int, symbol, IO_INSIDE params)      \
    {                                        \
        struct io_call c;                    \
        if (!PRE_ON())                       \
            return NEXT(symbol) args;        \
        io_begin(&c, call);                  \
        int ready = NEXT(symbol) args;       \
        return polled(&c, ready, fd);        \
    }
#define READY_ONE (ready > 0 ? ready_one(fds, n) : -1)
POLL(poll, "poll", (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), READY_ONE)
POLL(__poll_chk, "poll", (struct pollfd * fds, nfds_t n, int ms, size_t room), (fds, n, ms, room),
     READY_ONE)
POLL(ppoll, "ppoll", (struct pollfd * fds, nfds_t n, const void *limit, const void *mask),
     (fds, n, limit, mask), READY_ONE)
POLL(__ppoll_chk, "ppoll",
     (struct pollfd * fds, nfds_t n, const void *limit, const void *mask, size_t room),
     (fds, n, limit, mask, room), READY_ONE)
POLL(select, "select", (int n, void *r, void *w, void *x, void *limit), (n, r, w, x, limit), -1)
POLL(pselect, "pselect6", (int n, void *r, void *w, void *x, const void *limit, const void *mask),
     (n, r, w, x, limit, mask), -1)
POLL(epoll_wait, "epoll_wait", (int fd, void *events, int n, int ms), (fd, events, n, ms), fd)
POLL(epoll_pwait, "epoll_pwait", (int fd, void *events, int n, int ms, const void *mask),
     (fd, events, n, ms, mask), fd)

/* ---- children ---- */

static pid_t waited(struct io_call *c, pid_t child)
{
    io_end(c, child < 0);
    if (child > 0) {
        pre_put(&c->args, PRE_RET, (uint64_t)child);
        pre_put(&c->args, PRE_WAKER_TID, (uint64_t)child);
    }
    io_done_if_waited(c, "child", -1);
    return child;
}

#define WAIT(symbol, params, args)            \
    WRAP(pid_t, symbol, IO_INSIDE params)     \
    {                                         \
        struct io_call c;                     \
        if (!PRE_ON())                        \
            return NEXT(symbol) args;         \
        io_begin(&c, "wait4");                \
        return waited(&c, NEXT(symbol) args); \
    }
WAIT(wait, (int *status), (status))
WAIT(waitpid, (pid_t pid, int *status, int how), (pid, status, how))
WAIT(wait3, (int *status, int how, void *usage), (status, how, usage))
WAIT(wait4, (pid_t pid, int *status, int how, void *usage), (pid, status, how, usage))

WRAP(int, waitid, int type, id_t id, siginfo_t *info, int how)
{
    struct io_call c;
    if (!PRE_ON())
        return NEXT(waitid)(type, id, info, how);
    io_begin(&c, "waitid");
    int done = NEXT(waitid)(type, id, info, how);
    waited(&c, done < 0 ? -1 : info ? info->si_pid : 0);
    return done;
}

/* ---- a time that the program chose ---- */

#define SLEEP(symbol, type, params, args)   \
    WRAP(type, symbol, IO_INSIDE params)    \
    {                                       \
        struct io_call c;                   \
        if (!PRE_ON())                      \
            return NEXT(symbol) args;       \
        io_begin(&c, "clock_nanosleep");    \
        type done = NEXT(symbol) args;      \
        io_end(&c, false);                  \
        io_done_if_waited(&c, "sleep", -1); \
        return done;                        \
    }
SLEEP(nanosleep, int, (const struct timespec *t, struct timespec *left), (t, left))
SLEEP(clock_nanosleep, int,
      (clockid_t clock, int how, const struct timespec *t, struct timespec *left),
      (clock, how, t, left))
SLEEP(usleep, int, (useconds_t us), (us))
SLEEP(sleep, unsigned, (unsigned s), (s))

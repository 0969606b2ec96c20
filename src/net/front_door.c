/* See front_door.h. Called by stave-server's HTTP front.
 *
 * A client of HTTP/2 that knows what the server speaks begins with "PRI * HTTP/2.0"; no method of
 * HTTP/1 begins with PRI. The bytes stay in the socket: whoever gets it reads them again. */
#include "net/front_door.h"

#include "core/base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PAUSE_MS = 20, EVENTS = 64, LATE_MAX = 4096, SAID_MAX = 200 };

enum said { NOTHING_YET, GONE, HTTP1, HTTP2 };

/* A connection that has not said enough. */
struct guest {
    struct guest *prev, *next;
    struct sv_visitor *visitor;
    struct sockaddr_storage from;
    socklen_t len;
    int fd;
};

struct sv_door {
    struct sv_door_options o;
    int poll, bell; /* bell: an eventfd that ends the thread */
    pthread_t thread;
    bool has_stopped;
    struct guest *first;
};

static enum said listen_to(int fd)
{
    static const char preface[] = "PRI";
    char head[3];
    ssize_t n;
    do
        n = recv(fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN))
        return NOTHING_YET;
    if (n <= 0)
        return GONE;
    if (memcmp(head, preface, (size_t)n) != 0)
        return HTTP1;
    return n == sizeof head ? HTTP2 : NOTHING_YET;
}

/* What comes is taken, so that closing does not reset what was sent. */
static void part_with(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char space[4096];
    shutdown(fd, SHUT_WR);
    while (poll(&p, 1, wait_ms) > 0 && recv(fd, space, sizeof space, MSG_DONTWAIT) > 0)
        ;
    close(fd);
}

/* SETTINGS without any, and GOAWAY: why it ends (RFC 9113, 6.8). */
static void refuse_http2(int fd, uint32_t code, const char *message, int wait_ms)
{
    uint8_t out[9 + 9 + 8 + SAID_MAX] = {[3] = 4};
    size_t n = strlen(message);
    n = n < SAID_MAX ? n : SAID_MAX;
    uint8_t *goaway = out + 9;
    goaway[2] = (uint8_t)(8 + n);
    goaway[3] = 7;
    uint32_t word = htonl(code);
    memcpy(goaway + 13, &word, sizeof word);
    memcpy(goaway + 17, message, n);
    send(fd, out, 9 + 17 + n, MSG_DONTWAIT | MSG_NOSIGNAL);
    part_with(fd, wait_ms);
}

/* ---- guests ---- */

static void forget(struct sv_door *d, struct guest *g)
{
    sv_gate_leave(d->o.gate, g->visitor);
    *(g->prev ? &g->prev->next : &d->first) = g->next;
    if (g->next)
        g->next->prev = g->prev;
    free(g);
}

static void lead(struct sv_door *d, int fd, const struct sockaddr *from, socklen_t len,
                 enum said said)
{
    enum { HTTP_1_1_REQUIRED = 13 };
    if (said == HTTP1)
        d->o.http1(d->o.ctx, fd, from, len);
    else if (said == GONE)
        close(fd);
    else if (d->o.http2)
        d->o.http2(d->o.ctx, fd);
    else
        refuse_http2(fd, HTTP_1_1_REQUIRED, d->o.no_http2, 0);
}

static uint32_t address_of(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;
    return from->ss_family == AF_INET ? ntohl(in->sin_addr.s_addr) : 0;
}

/* Edges only: of one that has said too little, only more is of interest. */
static void let_wait(struct sv_door *d, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    struct guest *g = sv_alloc(sizeof *g);
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = g};
    *g = (struct guest){.from = *from, .len = len, .fd = fd, .next = d->first};
    if (d->first)
        d->first->prev = g;
    d->first = g;
    g->visitor = sv_gate_enter(d->o.gate, fd, address_of(from));
    if (epoll_ctl(d->poll, EPOLL_CTL_ADD, fd, &e) == 0)
        return;
    forget(d, g);
    close(fd);
}

/* At its end nothing more comes, whatever lies there. */
static void hear(struct sv_door *d, struct guest *g, bool has_ended)
{
    enum said said = listen_to(g->fd);
    if (said == NOTHING_YET && !has_ended)
        return;
    said = said == NOTHING_YET ? GONE : said;
    struct guest gone = *g;
    epoll_ctl(d->poll, EPOLL_CTL_DEL, g->fd, NULL);
    forget(d, g);
    lead(d, gone.fd, (const struct sockaddr *)&gone.from, gone.len, said);
}

/* False: it is better to wait a little. */
static bool accept_all(struct sv_door *d)
{
    for (int i = 0; i < EVENTS; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof from;
        if (d->o.is_full && d->o.is_full(d->o.ctx))
            return false;
        int fd =
            accept4(d->o.listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
        enum said said = listen_to(fd);
        if (said == NOTHING_YET)
            let_wait(d, fd, &from, len);
        else
            lead(d, fd, (const struct sockaddr *)&from, len, said);
    }
    return true;
}

static void *run(void *arg)
{
    struct sv_door *d = arg;
    struct epoll_event events[EVENTS];
    for (;;) {
        bool may_accept = true;
        int n = epoll_wait(d->poll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &d->bell)
                return NULL;
            if (events[i].data.ptr == d)
                may_accept = accept_all(d);
            else
                hear(d, events[i].data.ptr, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
        }
        if (!may_accept) /* the listener is ready all the time */
            poll(&(struct pollfd){.fd = d->bell, .events = POLLIN}, 1, PAUSE_MS);
    }
}

/* ---- opening and closing ---- */

static bool watch(const struct sv_door *d, int fd, const void *what)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)what};
    return fd >= 0 && epoll_ctl(d->poll, EPOLL_CTL_ADD, fd, &e) == 0;
}

int sv_door_open(const struct sv_door_options *o, struct sv_door **out, struct sv_err *err)
{
    struct sv_door *d = sv_alloc(sizeof *d);
    d->o = *o;
    d->poll = epoll_create1(EPOLL_CLOEXEC);
    d->bell = eventfd(0, EFD_CLOEXEC);
    bool is_good = d->poll >= 0 && watch(d, d->o.listener, d) && watch(d, d->bell, &d->bell);
    if (is_good)
        is_good = (errno = pthread_create(&d->thread, NULL, run, d)) == 0;
    if (is_good) {
        *out = d;
        return 0;
    }
    int code = sv_err_sys(err, "cannot wait for connections");
    if (d->poll >= 0)
        close(d->poll);
    if (d->bell >= 0)
        close(d->bell);
    free(d);
    return code;
}

void sv_door_stop(struct sv_door *d)
{
    uint64_t one = 1;
    if (!d || d->has_stopped)
        return;
    while (write(d->bell, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(d->thread, NULL);
    d->has_stopped = true;
}

static void refuse(int fd, const char *message)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    enum said said = listen_to(fd);
    if (said == NOTHING_YET && poll(&p, 1, PAUSE_MS) > 0)
        said = listen_to(fd);
    if (said == HTTP2) {
        refuse_http2(fd, 0, message, PAUSE_MS);
        return;
    }
    sv_gate_refuse(fd, 503, message);
    part_with(fd, PAUSE_MS);
}

void sv_door_close(struct sv_door *d, const char *message)
{
    if (!d)
        return;
    sv_door_stop(d);
    for (int fd; d->first;) {
        fd = d->first->fd;
        forget(d, d->first);
        refuse(fd, message);
    }
    /* Closing the port would reset them. */
    struct pollfd p = {.fd = d->o.listener, .events = POLLIN};
    for (int i = 0; i < LATE_MAX && poll(&p, 1, 0) > 0; i++) {
        int fd = accept4(d->o.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            refuse(fd, message);
    }
    close(d->o.listener);
    close(d->poll);
    close(d->bell);
    free(d);
}

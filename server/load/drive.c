/* The connections: one thread, one epoll, HTTP/1.1 with keep-alive.
 *
 * In a closed loop a connection sends its next request when the answer is there. In an open loop
 * requests leave at their times on any free connection; one that finds none waits, and its latency
 * counts from the time it should have left. Answers are hostile: bounded, and what cannot be
 * understood breaks the connection, which is counted and made again. */
#include "server/load/load_plan.h"

#include "core/base/mem.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX   16384
#define ANSWER_MAX (64u << 20)
#define EVENTS     256

struct conn {
    int fd;
    bool is_busy;
    const struct sv_buf *body;
    size_t sent;
    int64_t due_ns, deadline_ns;
    char *in; /* cap bytes; a NUL is kept after len */
    size_t len, cap;
    size_t whole; /* of the answer; 0: its head is not there yet */
    size_t head;
    int status;
    bool is_last;             /* the server closes after it */
    struct sv_load_span span; /* with --trace */
};

struct driving {
    const struct sv_drive *d;
    struct sv_load_tally *tally;
    struct conn *conns;
    uint32_t *free, n_free;
    int epoll, timer;
    uint64_t next, open;
    uint32_t broken_in_row;
    int64_t start_ns, stop_ns;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool open_conn(struct driving *g, struct conn *c)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    if (connect(c->fd, (const struct sockaddr *)&g->d->target->address,
                sizeof g->d->target->address) != 0 ||
        epoll_ctl(g->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0) {
        close(c->fd);
        c->fd = -1;
        return false;
    }
    return true;
}

static void note_error(struct driving *g, const char *text, size_t len)
{
    if (!g->tally->first_error[0])
        snprintf(g->tally->first_error, sizeof g->tally->first_error, "%.*s", (int)len, text);
}

/* The request is over, whatever became of it. */
static void finish(struct driving *g, struct conn *c, enum sv_outcome outcome)
{
    if (g->d->is_traced)
        sv_load_trace_end(&c->span, outcome, outcome == SV_LOAD_BROKEN ? 0 : c->status);
    g->tally->counts[outcome]++;
    c->is_busy = false;
    g->open--;
    g->free[g->n_free++] = (uint32_t)(c - g->conns);
}

static void break_conn(struct driving *g, struct conn *c, const char *why)
{
    close(c->fd);
    c->fd = -1;
    g->broken_in_row++;
    if (!c->is_busy)
        return;
    note_error(g, why, strlen(why));
    finish(g, c, SV_LOAD_BROKEN);
}

/* ---- sending ---- */

static void watch_writable(struct driving *g, struct conn *c, bool wanted)
{
    struct epoll_event e = {.events = EPOLLIN | (wanted ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
    epoll_ctl(g->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void push_out(struct driving *g, struct conn *c)
{
    bool had_begun = c->sent > 0;
    while (c->sent < c->body->len) {
        ssize_t n = send(c->fd, c->body->data + c->sent, c->body->len - c->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            watch_writable(g, c, true);
            return;
        }
        if (n < 0) {
            break_conn(g, c, "the connection broke while sending");
            return;
        }
        c->sent += (size_t)n;
    }
    if (had_begun)
        watch_writable(g, c, false);
}

static void send_next(struct driving *g, int64_t due_ns, int64_t now)
{
    struct conn *c = &g->conns[g->free[--g->n_free]];
    c->is_busy = true;
    c->body = &g->d->bodies[g->next % g->d->n_bodies];
    if (g->d->is_traced) {
        sv_load_trace_begin(&c->span, c->body, (uint32_t)(c - g->conns));
        c->body = &c->span.bytes;
    }
    c->sent = c->len = c->whole = 0;
    c->due_ns = due_ns;
    c->deadline_ns = now + g->d->timeout_ns;
    g->next++;
    g->open++;
    g->tally->sent++;
    if (c->fd < 0 && !open_conn(g, c)) {
        note_error(g, "cannot connect", 14);
        g->broken_in_row++;
        finish(g, c, SV_LOAD_BROKEN);
        return;
    }
    push_out(g, c);
}

/* ---- receiving ---- */

static bool read_head(struct conn *c)
{
    const char *end = memmem(c->in, c->len, "\r\n\r\n", 4);
    if (!end)
        return c->len < HEAD_MAX;
    c->head = (size_t)(end - c->in) + 4;
    if (c->len < 12 || memcmp(c->in, "HTTP/1.", 7) != 0)
        return false;
    c->status = (int)strtol(c->in + 9, NULL, 10);
    size_t length = 0;
    c->is_last = false;
    for (const char *line = memchr(c->in, '\n', c->head); line && line + 1 < end;
         line = memchr(line, '\n', c->head - (size_t)(line - c->in))) {
        line++;
        if (strncasecmp(line, "Content-Length:", 15) == 0)
            length = strtoull(line + 15, NULL, 10);
        else if (strncasecmp(line, "Connection: close", 17) == 0)
            c->is_last = true;
    }
    if (length > ANSWER_MAX)
        return false;
    c->whole = c->head + length;
    return true;
}

static void keep_latency(struct sv_load_tally *t, int64_t ns)
{
    SV_APPEND(t->latencies_ns, t->n, t->cap) = ns;
}

static void judge(struct driving *g, struct conn *c)
{
    static const char key[] = "\"batch_size\":";
    enum sv_outcome outcome = c->status == 200                       ? SV_LOAD_OK
                              : c->status == 429 || c->status == 503 ? SV_LOAD_REJECTED
                                                                     : SV_LOAD_FAILED;
    g->broken_in_row = 0;
    if (outcome == SV_LOAD_OK) {
        const char *batch = memmem(c->in + c->head, c->whole - c->head, key, sizeof key - 1);
        keep_latency(g->tally, now_ns() - c->due_ns);
        if (batch)
            g->tally->batch_rows += strtoull(batch + sizeof key - 1, NULL, 10);
    } else if (outcome == SV_LOAD_FAILED) {
        note_error(g, c->in + c->head, c->whole - c->head);
    }
    finish(g, c, outcome);
    if (c->is_last) {
        close(c->fd);
        c->fd = -1;
    }
}

static void pull_in(struct driving *g, struct conn *c)
{
    size_t want = c->whole ? c->whole - c->len : HEAD_MAX;
    if (c->len + want + 1 > c->cap)
        c->in = sv_grow(c->in, &c->cap, c->len + want + 1, 1);
    ssize_t n = recv(c->fd, c->in + c->len, c->cap - 1 - c->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        break_conn(g, c, n == 0 ? "the server closed the connection" : "the connection broke");
        return;
    }
    c->len += (size_t)n;
    c->in[c->len] = 0;
    if (!c->is_busy || (!c->whole && !read_head(c))) {
        break_conn(g, c, "malformed HTTP response");
        return;
    }
    if (c->whole && c->len >= c->whole)
        judge(g, c);
}

/* ---- the loop ---- */

static bool may_send(const struct driving *g, int64_t now)
{
    return g->n_free > 0 && g->next < g->d->arrivals.n && (g->stop_ns == 0 || now < g->stop_ns);
}

static void send_due(struct driving *g)
{
    int64_t now = now_ns();
    const int64_t *times = g->d->arrivals.times_ns;
    while (may_send(g, now)) {
        int64_t due = times ? g->start_ns + times[g->next] : now;
        if (due > now) {
            struct itimerspec at = {
                .it_value = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000}};
            timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &at, NULL);
            return;
        }
        send_next(g, due, now);
        if (!times)
            now = now_ns();
        if (g->broken_in_row > 1000)
            return;
    }
}

static void drop_late(struct driving *g)
{
    int64_t now = now_ns();
    for (uint32_t i = 0; i < g->d->concurrency; i++)
        if (g->conns[i].is_busy && g->conns[i].deadline_ns < now)
            break_conn(g, &g->conns[i], "no answer in time");
}

static void handle(struct driving *g, const struct epoll_event *e)
{
    struct conn *c = e->data.ptr;
    if (!c) {
        uint64_t ticks;
        if (read(g->timer, &ticks, sizeof ticks) < 0)
            return;
        return;
    }
    if (c->fd >= 0 && (e->events & EPOLLOUT) && c->is_busy)
        push_out(g, c);
    if (c->fd >= 0 && (e->events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        pull_in(g, c);
}

static int loop(struct driving *g, struct sv_err *err)
{
    struct epoll_event events[EVENTS];
    int64_t checked = g->start_ns;
    for (;;) {
        send_due(g);
        int64_t now = now_ns();
        bool is_over = g->next >= g->d->arrivals.n || (g->stop_ns && now >= g->stop_ns);
        if (g->open == 0 && is_over)
            return 0;
        if (g->broken_in_row > 1000)
            return sv_error(err, SV_EIO, "%s: 1000 connections in a row failed: stopped",
                            g->d->target->host);
        int n = epoll_wait(g->epoll, events, EVENTS, 50);
        for (int i = 0; i < n; i++)
            handle(g, &events[i]);
        if (now - checked > 100000000) {
            drop_late(g);
            checked = now;
        }
    }
}

int sv_drive_run(const struct sv_drive *d, struct sv_load_tally *out, struct sv_err *err)
{
    struct driving g = {.d = d, .tally = out, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event e = {.events = EPOLLIN};
    int code = 0;
    g.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    g.conns = sv_alloc(d->concurrency * sizeof *g.conns);
    g.free = sv_alloc(d->concurrency * sizeof *g.free);
    epoll_ctl(g.epoll, EPOLL_CTL_ADD, g.timer, &e);
    for (uint32_t i = 0; i < d->concurrency && code == 0; i++) {
        g.free[g.n_free++] = i;
        if (!open_conn(&g, &g.conns[i]))
            code =
                sv_err_sys(err, "%s: connection %u of %u", d->target->host, i + 1, d->concurrency);
    }
    g.start_ns = now_ns();
    g.stop_ns = d->duration_ns ? g.start_ns + d->duration_ns : 0;
    if (code == 0)
        code = loop(&g, err);
    out->elapsed_ns = now_ns() - g.start_ns;
    for (uint32_t i = 0; i < d->concurrency; i++) {
        if (g.conns[i].fd > 0)
            close(g.conns[i].fd);
        free(g.conns[i].in);
        sv_buf_fini(&g.conns[i].span.bytes);
    }
    close(g.epoll);
    close(g.timer);
    free(g.conns);
    free(g.free);
    return code;
}

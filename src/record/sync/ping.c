/* The exchange of pings: see ping.h. The server never blocks but in epoll_wait(); the client waits
 * with limits. */
#include "record/sync/ping.h"

#include "core/base/mem.h"
#include "net/listen_socket.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "STVSYNC1"
enum {
    MAGIC_BYTES = 8,
    HELLO_BYTES = MAGIC_BYTES + SV_PING_TOKEN,
    NUMBER_BYTES = 8,
    ANSWER_BYTES = 24,
    PEERS_MAX = 8192,
    STRANGERS_MAX = 64,
    HELLO_MS = 5000,
    IDLE_MS = 600000,
    PINGS_MIN = 8,
    PINGS_MAX = 64,
    ROUND_MS = 100,
    ANSWER_MS = 2000,
    FULL_MS = 10,
    BACKLOG = 1024
};

struct welcome {
    char magic[MAGIC_BYTES];
    struct sv_clock_owner owner;
};
_Static_assert(sizeof(struct welcome) == 8 + 256 + 40 + 64, "as it is sent");

int64_t sv_ping_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- tokens ---- */

bool sv_ping_token_new(uint8_t token[static SV_PING_TOKEN])
{
    return getrandom(token, SV_PING_TOKEN, 0) == SV_PING_TOKEN;
}

void sv_ping_token_text(const uint8_t token[static SV_PING_TOKEN],
                        char to[static SV_PING_TOKEN_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SV_PING_TOKEN; i++) {
        to[2 * i] = digits[token[i] >> 4];
        to[2 * i + 1] = digits[token[i] & 15];
    }
    to[2 * SV_PING_TOKEN] = '\0';
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sv_ping_token_parse(const char *text, uint8_t token[static SV_PING_TOKEN])
{
    for (size_t i = 0; i < SV_PING_TOKEN; i++) {
        int high = digit_of(text[2 * i]), low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0)
            return false;
        token[i] = (uint8_t)(high << 4 | low);
    }
    char after = text[2 * SV_PING_TOKEN];
    return after == '\0' || after == '\n';
}

/* Takes the same time whatever the first difference. */
static bool is_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < n; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* ---- addresses ---- */

/* Takes HOST, HOST:PORT, [HOST] or [HOST]:PORT apart. */
static bool split(const char *text, char host[static NI_MAXHOST], char port[static NI_MAXSERV])
{
    const char *end = text + strlen(text), *after;
    bool is_bracketed = *text == '[';
    const char *from = text + is_bracketed;
    const char *to = is_bracketed ? strchr(text, ']') : strchr(text, ':');
    if (!to && is_bracketed)
        return false;
    to = to ? to : end;
    after = to + is_bracketed;
    size_t n = (size_t)(to - from), n_port = *after ? (size_t)(end - after) - 1 : 0;
    if (n == 0 || n >= NI_MAXHOST || n_port >= NI_MAXSERV || (*after && *after != ':') ||
        strspn(*after ? after + 1 : "", "0123456789") != n_port)
        return false;
    memcpy(host, from, n);
    host[n] = '\0';
    snprintf(port, NI_MAXSERV, "%s", n_port ? after + 1 : "0");
    return true;
}

static int resolve(const char *address, bool is_server, struct addrinfo **out, struct sv_err *err)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | (is_server ? AI_PASSIVE : 0)};
    if (!split(address, host, port) || (!is_server && strcmp(port, "0") == 0))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "'%.200s' is not HOST%s", address,
                          is_server ? " or HOST:PORT" : ":PORT");
    int code = getaddrinfo(host, port, &hints, out);
    if (code != 0)
        return sv_err_set(err, code == EAI_SERVICE ? SV_EUSAGE : SV_EIO, SV_NO_POS, "%.200s: %s",
                          address, gai_strerror(code));
    return 0;
}

static void send_at_once(int fd)
{
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* ---- the server ---- */

struct peer {
    int fd;
    bool has_token;
    size_t n; /* bytes of what it is sending */
    uint8_t in[HELLO_BYTES];
    int64_t last_ns;
    size_t at; /* in the list */
};

struct sv_ping_server {
    int fd, epoll;
    uint8_t token[SV_PING_TOKEN];
    struct welcome welcome;
    struct peer **peers;
    size_t n, cap, n_strangers, n_met;
    int64_t looked_ns;
    char address[NI_MAXHOST + NI_MAXSERV + 4];
};

static void name_server(struct sv_ping_server *s)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "0";
    if (getsockname(s->fd, (struct sockaddr *)&a, &len) == 0)
        getnameinfo((struct sockaddr *)&a, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(s->address, sizeof s->address, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* Each rank has a connection. What was started before keeps its own limit. */
static void raise_limit(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= PEERS_MAX + 256)
        return;
    files.rlim_cur = files.rlim_max < PEERS_MAX + 256 ? files.rlim_max : PEERS_MAX + 256;
    setrlimit(RLIMIT_NOFILE, &files);
}

int sv_ping_server_open(const char *address, const uint8_t token[static SV_PING_TOKEN],
                        struct sv_ping_server **out, struct sv_err *err)
{
    struct addrinfo *found = NULL;
    *out = NULL;
    int code = resolve(address, true, &found, err);
    if (code < 0)
        return code;
    raise_limit();
    struct sv_ping_server *s = sv_alloc(sizeof *s);
    s->fd = found ? sv_listen_on(found->ai_addr, found->ai_addrlen, BACKLOG) : -1;
    s->epoll = s->fd >= 0 ? epoll_create1(EPOLL_CLOEXEC) : -1;
    freeaddrinfo(found);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->fd, &e) < 0) {
        sv_err_sys(err, "cannot listen on %.200s", address);
        sv_ping_server_close(s);
        return SV_EIO;
    }
    memcpy(s->token, token, SV_PING_TOKEN);
    memcpy(s->welcome.magic, MAGIC, MAGIC_BYTES);
    sv_clock_owner_self(&s->welcome.owner);
    name_server(s);
    *out = s;
    return 0;
}

static void drop(struct sv_ping_server *s, struct peer *p)
{
    close(p->fd); /* also leaves the epoll set */
    s->n_strangers -= !p->has_token;
    s->peers[p->at] = s->peers[--s->n];
    s->peers[p->at]->at = p->at;
    free(p);
}

void sv_ping_server_close(struct sv_ping_server *s)
{
    if (!s)
        return;
    while (s->n > 0)
        drop(s, s->peers[s->n - 1]);
    if (s->fd >= 0)
        close(s->fd);
    if (s->epoll >= 0)
        close(s->epoll);
    free(s->peers);
    free(s);
}

static void drop_oldest_stranger(struct sv_ping_server *s)
{
    struct peer *oldest = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (!s->peers[i]->has_token && (!oldest || s->peers[i]->last_ns < oldest->last_ns))
            oldest = s->peers[i];
    if (oldest)
        drop(s, oldest);
}

static void take_peer(struct sv_ping_server *s)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && errno != EAGAIN) { /* no descriptors: strangers give theirs, else it waits */
        if (s->n_strangers > 0)
            drop_oldest_stranger(s);
        else
            poll(NULL, 0, FULL_MS);
    }
    if (fd < 0)
        return;
    if (s->n_strangers >= STRANGERS_MAX)
        drop_oldest_stranger(s);
    struct peer *p = sv_alloc(sizeof *p);
    *p = (struct peer){.fd = fd, .last_ns = sv_ping_now_ns(), .at = s->n};
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    if (s->n >= PEERS_MAX || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        close(fd);
        free(p);
        return;
    }
    send_at_once(fd);
    s->peers = sv_grow(s->peers, &s->cap, s->n + 1, sizeof(struct peer *));
    s->peers[s->n++] = p;
    s->n_strangers++;
}

static bool put(int fd, const void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n; /* small: all of it or none */
}

static bool greet(struct sv_ping_server *s, struct peer *p)
{
    bool is_one = memcmp(p->in, MAGIC, MAGIC_BYTES) == 0;
    if (!is_equal(p->in + MAGIC_BYTES, s->token, SV_PING_TOKEN) || !is_one)
        return false;
    p->has_token = true;
    s->n_strangers--;
    s->n_met++;
    return put(p->fd, &s->welcome, sizeof s->welcome);
}

static bool answer(const struct peer *p, int64_t came_ns)
{
    uint64_t out[3] = {0, htole64((uint64_t)came_ns), 0};
    memcpy(&out[0], p->in, NUMBER_BYTES);
    out[2] = htole64((uint64_t)sv_ping_now_ns());
    return put(p->fd, out, sizeof out);
}

/* False: it left, or it is to be cut off. */
static bool hear(struct sv_ping_server *s, struct peer *p)
{
    size_t whole = p->has_token ? NUMBER_BYTES : HELLO_BYTES;
    ssize_t n = recv(p->fd, p->in + p->n, whole - p->n, 0);
    int64_t now = sv_ping_now_ns();
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    p->n += (size_t)n;
    if (p->n < whole)
        return true;
    p->n = 0;
    p->last_ns = now;
    return p->has_token ? answer(p, now) : greet(s, p);
}

static void drop_silent(struct sv_ping_server *s)
{
    int64_t now = sv_ping_now_ns();
    if (now - s->looked_ns < 1000000000)
        return;
    s->looked_ns = now;
    for (size_t i = s->n; i-- > 0;) {
        int64_t limit = s->peers[i]->has_token ? IDLE_MS : HELLO_MS;
        if (now - s->peers[i]->last_ns > limit * 1000000)
            drop(s, s->peers[i]);
    }
}

void sv_ping_server_turn(struct sv_ping_server *s, int timeout_ms)
{
    enum { EVENTS = 64 };
    struct epoll_event events[EVENTS];
    bool has_new = false;
    int n = epoll_wait(s->epoll, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        struct peer *p = events[i].data.ptr;
        if (!p)
            has_new = true;
        else if (!hear(s, p))
            drop(s, p);
    }
    if (has_new) /* last: it may drop one of the others */
        take_peer(s);
    drop_silent(s);
}

const char *sv_ping_server_address(const struct sv_ping_server *s)
{
    return s->address;
}

size_t sv_ping_server_met(const struct sv_ping_server *s)
{
    return s->n_met;
}

size_t sv_ping_server_peers(const struct sv_ping_server *s)
{
    return s->n - s->n_strangers;
}

/* ---- the client ---- */

/* Ready for `events` before the deadline? */
static bool wait_for(int fd, short events, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    for (;;) {
        int64_t left_ms = (deadline_ns - sv_ping_now_ns()) / 1000000;
        int n = left_ms < 0 ? 0 : poll(&p, 1, (int)left_ms + 1);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR) {
            errno = n == 0 ? ETIMEDOUT : errno;
            return false;
        }
    }
}

static bool get(int fd, void *to, size_t n, int64_t deadline_ns)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, (uint8_t *)to + at, n - at, MSG_DONTWAIT);
        if (got == 0)
            errno = ECONNRESET;
        bool can_wait = got < 0 && (errno == EAGAIN || errno == EINTR);
        if (got > 0)
            at += (size_t)got;
        else if (!can_wait || !wait_for(fd, POLLIN, deadline_ns))
            return false;
    }
    return true;
}

/* A connected socket, or -1 with errno. */
static int reach(const struct addrinfo *a, int64_t deadline_ns)
{
    int error = 0, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof error;
    if (fd < 0)
        return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
        error = errno;
    else if (!wait_for(fd, POLLOUT, deadline_ns))
        error = errno;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* What a peer calls itself: texts that end. */
static bool is_owner(const struct sv_clock_owner *o)
{
    return memchr(o->host, 0, sizeof o->host) && memchr(o->boot, 0, sizeof o->boot) &&
           memchr(o->times, 0, sizeof o->times) && o->boot[0];
}

static int shake_hands(struct sv_ping_client *c, const char *address,
                       const uint8_t token[static SV_PING_TOKEN], int64_t deadline_ns,
                       struct sv_err *err)
{
    uint8_t hello[HELLO_BYTES];
    struct welcome w;
    memcpy(hello, MAGIC, MAGIC_BYTES);
    memcpy(hello + MAGIC_BYTES, token, SV_PING_TOKEN);
    if (!put(c->fd, hello, sizeof hello) || !get(c->fd, &w, sizeof w, deadline_ns))
        return sv_err_set(err, SV_EIO, SV_NO_POS,
                          "%.200s closed the connection or gave no greeting (is the token the same "
                          "on both sides?): %s",
                          address, strerror(errno));
    if (memcmp(w.magic, MAGIC, MAGIC_BYTES) != 0 || !is_owner(&w.owner))
        return sv_err_set(err, SV_EIO, SV_NO_POS, "%.200s does not answer as 'stave sync' does",
                          address);
    c->server = w.owner;
    return 0;
}

int sv_ping_connect(struct sv_ping_client *c, const char *address,
                    const uint8_t token[static SV_PING_TOKEN], int timeout_ms, struct sv_err *err)
{
    struct addrinfo *found = NULL;
    int64_t deadline_ns = sv_ping_now_ns() + (int64_t)timeout_ms * 1000000;
    *c = (struct sv_ping_client){.fd = -1};
    int code = resolve(address, false, &found, err);
    if (code < 0)
        return code;
    for (const struct addrinfo *a = found; a && c->fd < 0; a = a->ai_next)
        c->fd = reach(a, deadline_ns);
    freeaddrinfo(found);
    if (c->fd < 0)
        return sv_err_sys(err, "cannot connect to %.200s", address);
    send_at_once(c->fd);
    code = shake_hands(c, address, token, deadline_ns, err);
    if (code < 0)
        sv_ping_disconnect(c);
    return code;
}

void sv_ping_disconnect(struct sv_ping_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static bool ping(int fd, uint64_t number, struct sv_ping *out)
{
    uint64_t in[3], sent = htole64(number);
    int64_t deadline_ns = sv_ping_now_ns() + (int64_t)ANSWER_MS * 1000000;
    out->t1 = sv_ping_now_ns();
    if (!put(fd, &sent, sizeof sent) || !get(fd, in, sizeof in, deadline_ns))
        return false;
    out->t4 = sv_ping_now_ns();
    out->t2 = (int64_t)le64toh(in[1]);
    out->t3 = (int64_t)le64toh(in[2]);
    if (in[0] == sent)
        return true;
    errno = EPROTO;
    return false;
}

int sv_ping_round(struct sv_ping_client *c, struct sv_sync_round *out, struct sv_err *err)
{
    struct sv_ping pings[PINGS_MAX];
    size_t n = 0;
    int64_t began_ns = sv_ping_now_ns();
    while (n < PINGS_MAX &&
           (n < PINGS_MIN || sv_ping_now_ns() - began_ns < (int64_t)ROUND_MS * 1000000)) {
        if (!ping(c->fd, n + 1, &pings[n])) {
            sv_err_sys(err, "no answer from host %.100s", c->server.host);
            sv_ping_disconnect(c);
            return SV_EIO;
        }
        n++;
    }
    if (sv_sync_round_of(pings, n, out))
        return 0;
    sv_ping_disconnect(c);
    return sv_err_set(err, SV_EIO, SV_NO_POS, "host %.100s answers with times that cannot be",
                      c->server.host);
}

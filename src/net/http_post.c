/* See http_post.h. Called by `stave export --to otlp`. */
#include "net/http_post.h"
#include "core/base/now.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, BODY_MAX = 65536, ANSWER_MAX = HEAD_MAX + BODY_MAX };

/* ---- where ---- */

static bool is_plain(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
            return false;
    return true;
}

/* HOST or HOST:PORT, the host in brackets where it has colons. */
static bool read_authority(struct sv_http_target *t, const char *p, size_t n)
{
    const char *end = p + n, *host = p, *close = NULL;
    if (n > 0 && *p == '[') {
        close = memchr(p, ']', n);
        if (!close)
            return false;
        host = p + 1;
    }
    const char *colon = memchr(close ? close : p, ':', (size_t)(end - (close ? close : p)));
    const char *host_end = close ? close : colon ? colon : end;
    size_t host_len = (size_t)(host_end - host);
    if (host_len == 0 || host_len >= sizeof t->host || memchr(p, '@', n))
        return false;
    snprintf(t->host, sizeof t->host, "%.*s", (int)host_len, host);
    if (!colon)
        return !close || close + 1 == end;
    size_t port_len = (size_t)(end - colon - 1);
    if (port_len == 0 || port_len > 5 || strspn(colon + 1, "0123456789") < port_len)
        return false;
    snprintf(t->port, sizeof t->port, "%.*s", (int)port_len, colon + 1);
    unsigned long number = strtoul(t->port, NULL, 10);
    return number > 0 && number < 65536;
}

/* `path` where the URL has none; NULL: it must have none. */
static int read_target(struct sv_http_target *t, const char *scheme, const char *url,
                       const char *port, const char *path, struct sv_err *err)
{
    size_t n_scheme = strlen(scheme);
    if (strncasecmp(url, scheme, n_scheme) != 0)
        return sv_error(err, SV_EUSAGE, "%.200s: expected %sHOST:PORT", url, scheme);
    const char *from = url + n_scheme;
    size_t n = strcspn(from, "/?#");
    bool has_path = from[n] && strcmp(from + n, "/") != 0;
    const char *rest = has_path || !path ? from + n : path;
    snprintf(t->port, sizeof t->port, "%s", port);
    snprintf(t->path, sizeof t->path, "%s", rest);
    if (!read_authority(t, from, n) || (path ? *rest != '/' : has_path) ||
        strlen(rest) >= sizeof t->path || strchr(rest, '#') || !is_plain(url, strlen(url)))
        return sv_error(err, SV_EUSAGE, "%.200s: not a URL of the form %sHOST:PORT%s", url, scheme,
                        path ? "/PATH" : "");
    return 0;
}

int sv_http_target_read(struct sv_http_target *t, const char *url, const char *port,
                        const char *path, struct sv_err *err)
{
    if (strncasecmp(url, "https://", 8) == 0)
        return sv_error(err, SV_EUSAGE,
                        "%.200s: https is not supported here: send to a collector on this machine "
                        "over http, which passes it on",
                        url);
    return read_target(t, "http://", url, port, path, err);
}

int sv_grpc_target_read(struct sv_http_target *t, const char *url, const char *port,
                        struct sv_err *err)
{
    return read_target(t, "grpc://", url, port, NULL, err);
}

/* ---- the connection ---- */

/* False: not in time. */
static bool wait_for(int fd, short what, int64_t until_ms)
{
    struct pollfd p = {.fd = fd, .events = what};
    for (;;) {
        int64_t left = until_ms - sv_now_ms();
        int n = left > 0 ? poll(&p, 1, left > 60000 ? 60000 : (int)left) : 0;
        if (n > 0)
            return true;
        if ((n < 0 && errno != EINTR) || left <= 0) {
            errno = n < 0 ? errno : ETIMEDOUT;
            return false;
        }
    }
}

static int connect_one(const struct addrinfo *a, int64_t until_ms)
{
    int yes = 1, error = 0;
    socklen_t len = sizeof error;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, until_ms) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
        return fd;
    int kept = error ? error : errno;
    close(fd);
    errno = kept;
    return -1;
}

static int connect_to(const struct sv_http_target *t, int64_t until_ms, struct sv_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int fd = -1, code = getaddrinfo(t->host, t->port, &hints, &found);
    if (code != 0)
        return sv_error(err, SV_EAGAIN, "%s: %s", t->host, gai_strerror(code));
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = connect_one(a, until_ms);
    freeaddrinfo(found);
    if (fd < 0)
        return sv_error(err, SV_EAGAIN, "%s port %s: %s", t->host, t->port, strerror(errno));
    return fd;
}

static bool send_all(int fd, const uint8_t *p, size_t n, int64_t until_ms)
{
    while (n > 0) {
        ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
        if (done < 0 && errno == EAGAIN && wait_for(fd, POLLOUT, until_ms))
            continue;
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* ---- the answer ---- */

/* The value of a header in [head, end), or NULL; it ends with its line. */
static const char *header(const char *head, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = memchr(head, '\n', (size_t)(end - head)); line && line + 1 < end;
         line = memchr(line + 1, '\n', (size_t)(end - line - 1))) {
        const char *at = line + 1;
        if ((size_t)(end - at) > n && strncasecmp(at, name, n) == 0 && at[n] == ':') {
            for (at += n + 1; at < end && (*at == ' ' || *at == '\t'); at++)
                ;
            return at;
        }
    }
    return NULL;
}

/* The answer so far: is it whole? *body: where its body begins, 0: its head is not there yet. */
static bool is_whole(const struct sv_buf *b, size_t *body, uint64_t *length, bool *has_length)
{
    const char *text = (const char *)b->data;
    const char *end = b->len ? memmem(text, b->len, "\r\n\r\n", 4) : NULL;
    *body = 0;
    if (!end)
        return false;
    *body = (size_t)(end - text) + 4;
    const char *value = header(text, end + 2, "Content-Length");
    *has_length = value && isdigit((unsigned char)*value);
    *length = *has_length ? strtoull(value, NULL, 10) : 0;
    return *has_length && b->len - *body >= *length;
}

/* Chunks as one text, in place; what is not as it should be ends it. */
static void join_chunks(struct sv_buf *b)
{
    size_t at = 0, to = 0;
    while (at < b->len) {
        char *end;
        const char *line = (const char *)b->data + at;
        const char *eol = memmem(line, b->len - at, "\r\n", 2);
        if (!eol)
            break;
        unsigned long n = strtoul(line, &end, 16);
        at = (size_t)(eol + 2 - (const char *)b->data);
        if (end == line || n == 0 || n > b->len - at)
            break;
        memmove(b->data + to, b->data + at, n);
        to += n;
        at += n + 2;
    }
    b->len = to;
}

static bool take_answer(struct sv_buf *all, struct sv_http_reply *reply)
{
    size_t body;
    uint64_t length;
    bool has_length;
    const char *text = sv_buf_cstr(all);
    (void)is_whole(all, &body, &length, &has_length);
    if (body == 0 || sscanf(text, "HTTP/1.%*c %3u", &reply->status) != 1)
        return false;
    const char *after = header(text, text + body - 2, "Retry-After");
    if (after && isdigit((unsigned char)*after))
        reply->retry_after_s = (unsigned)strtoul(after, NULL, 10);
    const char *coding = header(text, text + body - 2, "Transfer-Encoding");
    size_t n = all->len - body < BODY_MAX ? all->len - body : BODY_MAX;
    sv_buf_add(&reply->body, all->data + body, has_length && length < n ? (size_t)length : n);
    if (coding && strncasecmp(coding, "chunked", 7) == 0)
        join_chunks(&reply->body);
    return true;
}

static int receive(int fd, int64_t until_ms, struct sv_http_reply *reply, struct sv_err *err)
{
    char piece[8192];
    struct sv_buf all;
    size_t body;
    uint64_t length;
    bool has_length;
    ssize_t got = 1;
    int code = 0;
    sv_buf_init(&all, ANSWER_MAX + 1); /* and the end of a string */
    for (size_t left; got > 0 && (left = ANSWER_MAX - all.len) > 0 &&
                      !is_whole(&all, &body, &length, &has_length);) {
        got = recv(fd, piece, left < sizeof piece ? left : sizeof piece, 0);
        if (got < 0 && (errno == EINTR || (errno == EAGAIN && wait_for(fd, POLLIN, until_ms))))
            got = 1;
        else if (got > 0)
            sv_buf_add(&all, piece, (size_t)got);
    }
    if (got < 0 || (got == 0 && all.len == 0))
        code = sv_error(err, SV_EAGAIN, "no answer: %s",
                        got < 0 ? strerror(errno) : "the connection was closed");
    else if (!take_answer(&all, reply))
        code = sv_error(err, SV_EIO, "the answer is not one of HTTP");
    sv_buf_fini(&all);
    return code;
}

int sv_http_post(const struct sv_http_target *t, const char *type, const char *headers,
                 const void *bytes, size_t len, int64_t limit_ms, struct sv_http_reply *reply,
                 struct sv_err *err)
{
    char head[8192];
    int64_t until = sv_now_ms() + limit_ms;
    *reply = (struct sv_http_reply){0};
    sv_buf_init(&reply->body, BODY_MAX + 1);
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: %s\r\nContent-Length: "
                     "%zu\r\nUser-Agent: stave\r\nConnection: close\r\n%s\r\n",
                     t->path, t->host, t->port, type, len, headers ? headers : "");
    if (n < 0 || (size_t)n >= sizeof head)
        return sv_error(err, SV_EUSAGE, "the headers are too long");
    int fd = connect_to(t, until, err);
    if (fd < 0)
        return fd;
    /* A server that refuses may answer and close before it has read all: its answer counts. */
    bool is_sent = send_all(fd, (const uint8_t *)head, (size_t)n, until) &&
                   send_all(fd, bytes, len, until);
    int kept = errno;
    int code = receive(fd, until, reply, err);
    if (code == SV_EAGAIN && !is_sent && err) {
        sv_err_clear(err);
        sv_error(err, SV_EAGAIN, "%s port %s: %s", t->host, t->port, strerror(kept));
    }
    close(fd);
    return code;
}

/* Streaming: packets to `stave listen` over a socket instead of to a file.
 *
 * The sink writes to memory; each commit sends what has gathered. A listener that does not take it within a time (STAVE_STREAM_MS,
 * default 5000) is given up: tracing ends with one line, and threads that waited for room go on. Only addresses, no names: no
 * resolver in other people's processes. Used by the writer thread alone. */
#include "sdk/writer.h"

#include "base/trusted.h"
#include "formats/formats.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES_MAX ((size_t)1 << 30)

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in inet;
};

bool sv_stream_is(const char *out)
{
    return strncmp(out, "unix:", 5) == 0 || strncmp(out, "tcp:", 4) == 0;
}

/* 0: not an address. */
static socklen_t parse(const char *out, union address *a)
{
    memset(a, 0, sizeof *a);
    if (out[0] == 'u') {
        size_t n = strlen(out + 5);
        if (n == 0 || n >= sizeof a->local.sun_path)
            return 0;
        a->local.sun_family = AF_UNIX;
        memcpy(a->local.sun_path, out + 5, n);
        return (socklen_t)sizeof a->local;
    }
    const char *colon = strrchr(out + 4, ':');
    char host[64], *end;
    if (!colon || colon == out + 3 || (size_t)(colon - out - 4) >= sizeof host)
        return 0;
    memcpy(host, out + 4, (size_t)(colon - out - 4));
    host[colon - out - 4] = '\0';
    unsigned long port = strtoul(colon + 1, &end, 10);
    a->inet.sin_family = AF_INET;
    a->inet.sin_port = htons((uint16_t)port);
    bool ok = inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                        &a->inet.sin_addr) == 1;
    return ok && *end == '\0' && port > 0 && port < 65536 ? (socklen_t)sizeof a->inet : 0;
}

const char *sv_stream_check(const char *out)
{
    union address a;
    return parse(out, &a) ? NULL : "expected unix:PATH or tcp:ADDRESS:PORT";
}

static int limit_ms(void)
{
    const char *text = sv_trusted_getenv("STAVE_STREAM_MS");
    long ms = text ? strtol(text, NULL, 10) : 0;
    return ms > 0 && ms < 3600000 ? (int)ms : 5000;
}

static bool send_all(int fd, const void *bytes, size_t n, struct sv_err *err)
{
    const uint8_t *from = bytes;
    int64_t give_up = sv_writer_now_ns() + limit_ms() * 1000000ll;
    while (n > 0) {
        ssize_t done = send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done > 0) {
            from += done;
            n -= (size_t)done;
            continue;
        }
        if (done < 0 && errno != EAGAIN && errno != EINTR) {
            sv_err_sys(err, "the listener is gone");
            return false;
        }
        int64_t left = (give_up - sv_writer_now_ns()) / 1000000;
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        if (left <= 0 || poll(&p, 1, (int)left) == 0) {
            sv_err_set(err, SV_EIO, SV_NO_POS, "the listener takes nothing");
            return false;
        }
    }
    return true;
}

static int connect_to(const char *out, struct sv_err *err)
{
    union address a;
    socklen_t size = parse(out, &a);
    int fd = size ? socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || connect(fd, &a.any, size) != 0) {
        sv_err_sys(err, "cannot reach the listener");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    const char *token = sv_trusted_getenv("STAVE_TOKEN");
    char hello[256];
    int n = snprintf(hello, sizeof hello, "STAVE 1 %.200s\n", token ? token : "");
    if (!send_all(fd, hello, (size_t)n, err)) {
        close(fd);
        return -1;
    }
    return fd;
}

int sv_stream_open(struct sv_writer *w, struct sv_err *err)
{
    w->fd = connect_to(w->out, err);
    if (w->fd < 0)
        return SV_EIO;
    sv_buf_init(&w->bytes, BYTES_MAX);
    struct sv_output *o;
    int status = sv_output_open_buf(&w->bytes, SV_PLAIN, &o, err);
    if (status < 0)
        return status;
    struct sv_write_options options = {0};
    status = sv_perfetto_sink(o, &options, w->dict, &w->report, &w->sink, err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}

bool sv_stream_send(struct sv_writer *w, struct sv_err *err)
{
    bool ok = send_all(w->fd, w->bytes.data, w->bytes.len, err);
    sv_buf_clear(&w->bytes);
    return ok;
}

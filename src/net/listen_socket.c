/* Listening sockets: see listen_socket.h. */
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

int sv_address_read(const char *text, struct sockaddr_in *out, struct sv_err *err)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    char *end;
    *out = (struct sockaddr_in){.sin_family = AF_INET};
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon[1] < '0' || colon[1] > '9' || *end || port > 65535 ||
        (size_t)(colon - text) >= sizeof host)
        return sv_error(err, SV_EUSAGE, "address must be HOST:PORT, not '%s'", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (inet_pton(AF_INET, number, &out->sin_addr) != 1)
        return sv_error(err, SV_EUSAGE, "address: '%s' is not an IPv4 address", host);
    out->sin_port = htons((uint16_t)port);
    return 0;
}

int sv_listen_on(const struct sockaddr *a, socklen_t len, int backlog)
{
    int yes = 1, fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (a->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (a->sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, a, len) == 0 && listen(fd, backlog) == 0)
        return fd;
    int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

int sv_listeners_open(struct sv_listeners *l, const char *address, int64_t metrics_port,
                      struct sv_err *err)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    *l = (struct sv_listeners){.main = -1, .metrics = -1};
    int code = sv_address_read(address, &a, err);
    if (code < 0)
        return code;
    l->main = sv_listen_on((const struct sockaddr *)&a, sizeof a, BACKLOG);
    if (l->main < 0)
        return sv_err_sys(err,
                          "cannot listen on %s (is another server running? address: 127.0.0.1:0 "
                          "takes a free port)",
                          address);
    if (metrics_port) {
        struct sockaddr_in other = a;
        other.sin_port = htons((uint16_t)metrics_port);
        l->metrics = sv_listen_on((const struct sockaddr *)&other, sizeof other, BACKLOG);
        if (l->metrics < 0)
            return sv_err_sys(err, "cannot listen on metrics_port %lld", (long long)metrics_port);
    }
    getsockname(l->main, (struct sockaddr *)&a, &len);
    l->port = ntohs(a.sin_port);
    return 0;
}

void sv_listeners_close(struct sv_listeners *l)
{
    if (l->main >= 0)
        close(l->main);
    if (l->metrics >= 0)
        close(l->metrics);
    l->main = l->metrics = -1;
}

/* Sockets of the server: see listen_socket.h. Called once, by main. */
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int read_address(const char *text, struct sockaddr_in *out, struct sv_err *err)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    char *end;
    *out = (struct sockaddr_in){.sin_family = AF_INET};
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon[1] < '0' || colon[1] > '9' || *end || port > 65535 ||
        (size_t)(colon - text) >= sizeof host)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "address must be HOST:PORT, not '%s'", text);
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (inet_pton(AF_INET, number, &out->sin_addr) != 1)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "address: '%s' is not an IPv4 address", host);
    out->sin_port = htons((uint16_t)port);
    return 0;
}

/* A listening socket, or -1 with errno. */
static int listen_on(const struct sockaddr_in *a)
{
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)a, sizeof *a) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    close(fd);
    return -1;
}

int sv_listeners_open(struct sv_listeners *l, const char *address, int64_t metrics_port,
                      struct sv_err *err)
{
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    *l = (struct sv_listeners){.main = -1, .metrics = -1};
    int code = read_address(address, &a, err);
    if (code < 0)
        return code;
    l->main = listen_on(&a);
    if (l->main < 0)
        return sv_err_sys(err,
                          "cannot listen on %s (is another server running? address: 127.0.0.1:0 "
                          "takes a free port)",
                          address);
    if (metrics_port) {
        struct sockaddr_in other = a;
        other.sin_port = htons((uint16_t)metrics_port);
        l->metrics = listen_on(&other);
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

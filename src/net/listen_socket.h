/* Listening sockets, and those of the server. Opened before anything else: a port that is taken is
 * found before a file is made or a model is loaded. */
#pragma once

#include "core/base/err.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* HOST:PORT; a host is an IPv4 address or localhost. */
int sv_address_read(const char *text, struct sockaddr_in *out, struct sv_err *err);

/* A listening socket, or -1 with errno. One for IPv6 leaves IPv4 alone. */
int sv_listen_on(const struct sockaddr *a, socklen_t len, int backlog);

struct sv_listeners {
    int main, metrics; /* -1: none, or given away */
    uint16_t port;     /* of main, also when any free one was asked for */
};

/* HOST:PORT, and a second port on the same host (0: none). Clients that connect now wait. */
int sv_listeners_open(struct sv_listeners *l, const char *address, int64_t metrics_port,
                      struct sv_err *err);
void sv_listeners_close(struct sv_listeners *l); /* those that are left */

/* Addresses of `stave listen`: see listen/address.h. No names are resolved. */
#include "listen/address.h"

#include "core/files/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* ---- local ---- */

/* A socket that an ended listener left behind refuses connections. */
static int clear_path(const struct sockaddr_un *a, struct sv_err *err)
{
    struct stat st;
    if (lstat(a->sun_path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
        return sv_error(err, SV_EIO, "%s exists and is not a socket of yours", a->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_served = fd >= 0 && (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 ||
                                 errno != ECONNREFUSED);
    if (fd >= 0)
        close(fd);
    if (is_served)
        return sv_error(err, SV_EIO, "another listener uses %s", a->sun_path);
    if (unlink(a->sun_path) != 0)
        return sv_err_sys(err, "cannot replace %s", a->sun_path);
    return 0;
}

static int open_local(struct sv_address *to, const char *path, bool is_shared, struct sv_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    if (!*path || strlen(path) >= sizeof a.sun_path)
        return sv_error(err, SV_EUSAGE, "'unix:%.200s' is no address: the path is %s", path,
                        *path ? "longer than 107 bytes" : "empty");
    memcpy(a.sun_path, path, strlen(path));
    int code = clear_path(&a, err);
    if (code < 0)
        return code;
    to->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (to->fd < 0)
        return sv_err_sys(err, "cannot make a socket");
    mode_t mask = umask(is_shared ? 0111 : 0177);
    int rc = bind(to->fd, (struct sockaddr *)&a, sizeof a);
    int error = errno;
    umask(mask);
    errno = error;
    if (rc != 0 || lstat(path, &st) != 0)
        return sv_err_sys(err, "cannot listen on %s", path);
    memcpy(to->unix_path, path, strlen(path) + 1);
    to->device = st.st_dev;
    to->inode = st.st_ino;
    return 0;
}

/* ---- the network ---- */

static int bad_inet(const char *text, struct sv_err *err)
{
    return sv_error(err, SV_EUSAGE,
                    "'tcp:%.200s' is no address: expected tcp:ADDRESS:PORT, the address with four "
                    "numbers or localhost, the port from 1 to 65535",
                    text);
}

static int open_inet(struct sv_address *to, const char *text, bool has_token, struct sv_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[64] = {0}, *end;
    if (!colon || (size_t)(colon - text) >= sizeof host)
        return bad_inet(text, err);
    memcpy(host, text, (size_t)(colon - text));
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a.sin_addr) != 1 ||
        *end || port == 0 || port > 65535)
        return bad_inet(text, err);
    bool is_loopback = (ntohl(a.sin_addr.s_addr) >> 24) == 127;
    if (!is_loopback && !has_token)
        return sv_error(err, SV_EUSAGE,
                        "tcp:%.200s: an address that other machines can reach needs --token", text);
    a.sin_port = htons((uint16_t)port);
    to->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    setsockopt(to->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (to->fd < 0 || bind(to->fd, (struct sockaddr *)&a, sizeof a) != 0)
        return sv_err_sys(err, "cannot listen on %s", text);
    return 0;
}

int sv_address_open(struct sv_address *a, const char *text, bool has_token, bool is_shared,
                    struct sv_err *err)
{
    *a = (struct sv_address){.fd = -1};
    int code = strncmp(text, "unix:", 5) == 0 ? open_local(a, text + 5, is_shared, err)
               : strncmp(text, "tcp:", 4) == 0
                   ? open_inet(a, text + 4, has_token, err)
                   : sv_error(err, SV_EUSAGE,
                              "'%.200s' is no address: expected unix:PATH or tcp:ADDRESS:PORT",
                              text);
    if (code >= 0 && listen(a->fd, BACKLOG) != 0)
        code = sv_err_sys(err, "cannot listen on %s", text);
    return code;
}

void sv_address_close(struct sv_address *a)
{
    struct stat st;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    if (a->unix_path[0] && lstat(a->unix_path, &st) == 0 && st.st_dev == a->device &&
        st.st_ino == a->inode)
        unlink(a->unix_path);
    a->unix_path[0] = '\0';
}

/* ---- who comes ---- */

static void describe_local(int fd, struct sv_peer *peer)
{
    struct ucred who = {0};
    socklen_t len = sizeof who;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
    peer->id = who.uid;
    peer->uid = sv_peer_uid(fd);
    peer->is_local = true;
    snprintf(peer->name, sizeof peer->name, "process %d", (int)who.pid);
}

/* A machine that is switched off says nothing: keep-alive finds out, in some minutes. */
static void describe_inet(int fd, const struct sockaddr_in *from, struct sv_peer *peer)
{
    char host[INET_ADDRSTRLEN] = "?";
    int yes = 1, idle = 60;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    inet_ntop(AF_INET, &from->sin_addr, host, sizeof host);
    peer->id = ntohl(from->sin_addr.s_addr);
    peer->is_local = peer->id >> 24 == 127;
    peer->uid = sv_peer_uid(fd);
    if (peer->is_local && peer->uid != SV_PEER_UNKNOWN)
        peer->id = UINT64_C(1) << 32 | peer->uid; /* its places are those of its user */
    snprintf(peer->name, sizeof peer->name, "%s port %u", host, ntohs(from->sin_port));
}

int sv_address_accept(const struct sv_address *a, struct sv_peer *peer)
{
    union {
        struct sockaddr any;
        struct sockaddr_in inet;
        struct sockaddr_un local;
    } from = {0};
    socklen_t len = sizeof from;
    int fd = accept4(a->fd, &from.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    *peer = (struct sv_peer){0};
    if (from.any.sa_family == AF_INET)
        describe_inet(fd, &from.inet, peer);
    else
        describe_local(fd, peer);
    return fd;
}

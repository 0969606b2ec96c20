/* Who is at the other end of a connection: by the kernel's answer about one socket, and by its lists where that cannot be asked. */
#include "core/files/peer.h"

#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A listener on loopback; its address goes to *a. -1: no such family here. */
static int listen_on(int family, union address *a)
{
    socklen_t len = sizeof *a;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(a, 0, sizeof *a);
    a->any.sa_family = (sa_family_t)family;
    if (family == AF_INET)
        a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        a->v6.sin6_addr = in6addr_loopback;
    if (bind(fd, &a->any, len) != 0 || listen(fd, 4) != 0 || getsockname(fd, &a->any, &len) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void check_family(int family)
{
    union address a;
    int listener = listen_on(family, &a);
    if (listener < 0)
        return; /* no IPv6 here */
    CHECK_UINT_EQ(sv_peer_listener(&a.any), geteuid());
    int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(client, &a.any, sizeof a) == 0);
    /* Not accepted yet: that socket is nobody's, and the kernel says root. */
    CHECK_UINT_EQ(sv_peer_uid(client), SV_PEER_UNKNOWN);
    int server = accept(listener, NULL, NULL);
    REQUIRE(server >= 0);
    CHECK_UINT_EQ(sv_peer_uid(server), geteuid());
    CHECK_UINT_EQ(sv_peer_uid(client), geteuid());
    close(client);
    CHECK_UINT_EQ(sv_peer_uid(server), SV_PEER_UNKNOWN); /* its owner is gone: not root's */
    close(server);
    close(listener);
    CHECK_UINT_EQ(sv_peer_listener(&a.any), SV_PEER_UNKNOWN);
}

/* An IPv6 socket that speaks IPv4. */
static void check_mapped(void)
{
    union address a, from = {.v6 = {.sin6_family = AF_INET6}};
    int listener = listen_on(AF_INET, &a);
    int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    from.v6.sin6_port = a.v4.sin_port;
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &from.v6.sin6_addr);
    CHECK(sv_peer_is_loopback(&from.any));
    if (client >= 0 && connect(client, &from.any, sizeof from.v6) == 0) {
        int server = accept(listener, NULL, NULL);
        CHECK_UINT_EQ(sv_peer_uid(server), geteuid());
        CHECK_UINT_EQ(sv_peer_uid(client), geteuid());
        close(server);
    }
    close(client);
    close(listener);
}

TEST(the_kernel_knows_whose_a_connection_is)
{
    check_family(AF_INET);
    check_family(AF_INET6);
    check_mapped();
}

static void check_lists(void)
{
    if (!test_refuse_call(SYS_socket, 0, AF_NETLINK, EPERM))
        SKIP("no filters of system calls here");
    CHECK(socket(AF_NETLINK, SOCK_DGRAM, 0) < 0);
    check_family(AF_INET);
    check_family(AF_INET6);
    check_mapped();
}

TEST(the_lists_of_sockets_say_the_same)
{
    if (access("/proc/net/tcp", R_OK) != 0 || !test_in_child(check_lists))
        SKIP("no /proc/net/tcp, or no filters of system calls here");
}

TEST(a_peer_of_a_unix_socket_has_credentials)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    CHECK_UINT_EQ(sv_peer_uid(ends[0]), geteuid());
    close(ends[0]);
    close(ends[1]);
    CHECK_UINT_EQ(sv_peer_uid(-1), SV_PEER_UNKNOWN);
}

TEST(peers_are_allowed_by_user)
{
    uid_t other = geteuid() + 1;
    char list[64];
    CHECK(sv_peer_may(geteuid(), NULL) && sv_peer_may(0, NULL));
    CHECK(!sv_peer_may(other, NULL) && !sv_peer_may(SV_PEER_UNKNOWN, NULL));
    CHECK(sv_peer_may(other, "any") && sv_peer_may(SV_PEER_UNKNOWN, "any"));
    snprintf(list, sizeof list, "7,%u", (unsigned)other);
    CHECK(sv_peer_may(other, list) && !sv_peer_may(other + 1, list));
    CHECK(!sv_peer_may(SV_PEER_UNKNOWN, list) && !sv_peer_may(other, "") &&
          !sv_peer_may(other, "x"));
    static const char *const good[] = {"any", "0", "1,2,4294967294"};
    static const char *const bad[] = {"",    ",",  "1,",   ",1",         "root",
                                      "1;2", "-1", "1,,2", "4294967295", "99999999999999999999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(sv_peer_list_is_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CONTEXT("%s", bad[i]);
        CHECK(!sv_peer_list_is_valid(bad[i]));
    }
}

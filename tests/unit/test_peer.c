/* Who is at the other end of a connection: by the kernel's answer about one socket, and by its
 * lists where that cannot be asked. */
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
    CHECK_UINT_EQ(sv_peer_uid(listener), SV_PEER_UNKNOWN); /* no connection */
    shutdown(client, SHUT_WR); /* one half is closed: both ends have owners */
    CHECK_UINT_EQ(sv_peer_uid(server), geteuid());
    CHECK_UINT_EQ(sv_peer_uid(client), geteuid());
    close(client);
    CHECK_UINT_EQ(sv_peer_uid(server), SV_PEER_UNKNOWN); /* its owner is gone: not root's */
    close(server);
    close(listener);
    CHECK_UINT_EQ(sv_peer_listener(&a.any), SV_PEER_UNKNOWN);
}

/* A listener on all addresses, and connections of another user among many. */
static void check_many(void)
{
    enum { MANY = 120 };
    union address a;
    int clients[MANY], servers[MANY], listener = listen_on(AF_INET, &a);
    socklen_t len = sizeof a;
    CHECK(listener >= 0);
    uid_t other = geteuid() == 0 ? 65534 : geteuid();
    for (int i = 0; i < MANY; i++) {
        bool is_other = i % 50 == 49 && geteuid() == 0;
        if (is_other)
            CHECK_INT_EQ(seteuid(other), 0);
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (is_other)
            CHECK_INT_EQ(seteuid(0), 0);
        REQUIRE(connect(clients[i], &a.any, sizeof a.v4) == 0);
        servers[i] = accept(listener, NULL, NULL);
    }
    for (int i = 0; i < MANY; i++) {
        CONTEXT("connection %d", i);
        CHECK_UINT_EQ(sv_peer_uid(servers[i]), i % 50 == 49 ? other : geteuid());
        CHECK_UINT_EQ(sv_peer_uid(clients[i]), geteuid());
    }
    for (int i = 0; i < MANY; i++) {
        close(clients[i]);
        close(servers[i]);
    }
    close(listener);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.v4 = (struct sockaddr_in){.sin_family = AF_INET};
    REQUIRE(bind(listener, &a.any, sizeof a.v4) == 0 && listen(listener, 4) == 0);
    REQUIRE(getsockname(listener, &a.any, &len) == 0);
    CHECK_UINT_EQ(sv_peer_listener(&a.any), SV_PEER_UNKNOWN); /* no address of loopback */
    a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_UINT_EQ(sv_peer_listener(&a.any), geteuid());
    a.v4.sin_port ^= htons(1);
    CHECK_UINT_EQ(sv_peer_listener(&a.any), SV_PEER_UNKNOWN);
    close(listener);
}

TEST(loopback_is_this_machine)
{
    static const struct {
        const char *text;
        bool is_loopback;
    } rows[] = {{"127.0.0.1", true},
                {"127.255.0.3", true},
                {"126.0.0.1", false},
                {"128.0.0.1", false},
                {"10.0.0.127", false},
                {"::1", true},
                {"::2", false},
                {"::", false},
                {"1::1", false},
                {"0:0:1::1", false},
                {"::1:0:1", false},
                {"::ffff:127.0.0.1", true},
                {"::ffff:10.0.0.1", false},
                {"::127.0.0.1", false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        union address a = {0};
        bool is_six = strchr(rows[i].text, ':') != NULL;
        CONTEXT("%s", rows[i].text);
        a.any.sa_family = is_six ? AF_INET6 : AF_INET;
        REQUIRE(inet_pton(a.any.sa_family, rows[i].text,
                          is_six ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr) == 1);
        CHECK_INT_EQ(sv_peer_is_loopback(&a.any), rows[i].is_loopback);
    }
    CHECK(sv_peer_is_loopback(&(struct sockaddr){.sa_family = AF_UNIX}));
    CHECK(!sv_peer_is_loopback(&(struct sockaddr){.sa_family = AF_NETLINK}));
    union address four = {.v4 = {.sin_family = AF_INET}}, six = {.v6 = {.sin6_family = AF_INET6}};
    four.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    six.v6.sin6_addr = in6addr_loopback;
    CHECK_UINT_EQ(sv_peer_uid_of(&four.any, &six.any), SV_PEER_UNKNOWN);
    CHECK_UINT_EQ(sv_peer_listener(&(struct sockaddr){.sa_family = AF_UNIX}), SV_PEER_UNKNOWN);
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
    check_many();
}

static void check_lists(void)
{
    if (!test_refuse_call(SYS_socket, 0, AF_NETLINK, EPERM))
        SKIP("no filters of system calls here");
    CHECK(socket(AF_NETLINK, SOCK_DGRAM, 0) < 0);
    check_family(AF_INET);
    check_family(AF_INET6);
    check_mapped();
    check_many();
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

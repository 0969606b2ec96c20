/* Addresses of the listener: which can be, who comes, and what stays behind. */
#include "listen/address.h"

#include "core/files/peer.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int try_open(const char *text, bool has_token, struct sv_err *err)
{
    struct sv_address a;
    *err = (struct sv_err){0};
    int code = sv_address_open(&a, text, has_token, false, err);
    CHECK(code < 0 || a.fd >= 0);
    sv_address_close(&a);
    CHECK_INT_EQ(a.fd, -1);
    sv_address_close(&a);
    return code;
}

TEST(texts_of_addresses)
{
    static const char *const bad[] = {
        "",
        "unix",
        "unix:",
        "127.0.0.1:99",
        "tcp:127.0.0.1",
        "tcp:",
        "tcp::",
        "tcp:host:99",
        "tcp:127.0.0.1:0",
        "tcp:127.0.0.1:65536",
        "tcp:1:2:3",
        "tcp:127.0.0.1:9x",
        "udp:127.0.0.1:99",
        "tcp:0000000000000000000000000000000000000000000000000000000000000000:1"};
    struct sv_err err;
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        CONTEXT("%s", bad[i]);
        CHECK_INT_EQ(try_open(bad[i], true, &err), SV_EUSAGE);
        CHECK(strstr(err.msg, "is no address") != NULL);
    }
    CHECK_INT_EQ(try_open("tcp:0.0.0.0:1", false, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "needs --token") != NULL);
    CHECK_INT_EQ(try_open("tcp:128.0.0.1:1", false, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "needs --token") != NULL);
}

static struct sockaddr_un local(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", test_scratch(name));
    return a;
}

TEST(a_socket_with_a_name)
{
    struct sockaddr_un at = local("s");
    struct sv_address a, second;
    struct sv_peer peer;
    struct sv_err err = {0};
    struct stat st;
    char text[200], name[40];
    snprintf(text, sizeof text, "unix:%s", at.sun_path);
    umask(0);
    REQUIRE(sv_address_open(&a, text, false, false, &err) == 0);
    CHECK(stat(at.sun_path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK_UINT_EQ(umask(0), 0);
    CHECK(sv_address_accept(&a, &peer) == -1 && errno == EAGAIN);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    int got = sv_address_accept(&a, &peer);
    REQUIRE(got >= 0);
    snprintf(name, sizeof name, "process %d", (int)getpid());
    CHECK_STR_EQ(peer.name, name);
    CHECK(peer.is_local && peer.uid == geteuid() && peer.id == geteuid());
    close(got);
    close(fd);
    CHECK_INT_EQ(sv_address_open(&second, text, false, false, &err), SV_EIO);
    CHECK(strstr(err.msg, "another listener uses") != NULL);
    sv_address_close(&second);
    CHECK_INT_EQ(access(at.sun_path, F_OK), 0);
    sv_address_close(&a);
    CHECK_INT_EQ(access(at.sun_path, F_OK), -1);
    REQUIRE(sv_address_open(&a, text, false, true, &err) == 0);
    CHECK(stat(at.sun_path, &st) == 0 && (st.st_mode & 0777) == 0666);
    unlink(at.sun_path);
    REQUIRE(sv_address_open(&second, text, false, false, &err) == 0);
    sv_address_close(&a); /* what is there by now is another's */
    CHECK_INT_EQ(access(at.sun_path, F_OK), 0);
    close(second.fd); /* as if it were killed: the socket is left, and replaced */
    REQUIRE(sv_address_open(&second, text, false, false, &err) == 0);
    sv_address_close(&second);
    CHECK_INT_EQ(access(at.sun_path, F_OK), -1);
}

TEST(names_that_are_taken)
{
    struct sockaddr_un at = local("s");
    struct sv_err err;
    char text[300];
    snprintf(text, sizeof text, "unix:%s", at.sun_path);
    test_write_file(at.sun_path, "precious");
    CHECK_INT_EQ(try_open(text, false, &err), SV_EIO);
    CHECK(strstr(err.msg, "exists and is not a socket of yours") != NULL);
    CHECK_STR_EQ(test_read_file(at.sun_path), "precious");
    snprintf(text, sizeof text, "unix:%s/none/s", test_scratch("."));
    CHECK_INT_EQ(try_open(text, false, &err), SV_EIO);
    CHECK(strstr(err.msg, "cannot listen on") != NULL);
    memset(text + 5, 'n', 200);
    text[5 + sizeof at.sun_path] = '\0';
    CHECK_INT_EQ(try_open(text, false, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "longer than 107 bytes") != NULL);
    if (geteuid() != 0)
        return; /* the rest needs another owner */
    unlink(at.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    close(fd);
    REQUIRE(chown(at.sun_path, 65534, (gid_t)-1) == 0);
    snprintf(text, sizeof text, "unix:%s", at.sun_path);
    CHECK_INT_EQ(try_open(text, false, &err), SV_EIO);
    CHECK_INT_EQ(access(at.sun_path, F_OK), 0);
}

TEST(a_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in from = {0};
    socklen_t len = sizeof at;
    struct sv_address a, second;
    struct sv_peer peer;
    struct sv_err err = {0};
    char text[64], name[40];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* finds a free one */
    REQUIRE(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    close(fd);
    snprintf(text, sizeof text, "tcp:localhost:%u", ntohs(at.sin_port));
    REQUIRE(sv_address_open(&a, text, false, false, &err) == 0);
    CHECK_INT_EQ(sv_address_open(&second, text, false, false, &err), SV_EIO);
    sv_address_close(&second);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&from, &len) == 0);
    struct pollfd p = {.fd = a.fd, .events = POLLIN};
    REQUIRE(poll(&p, 1, -1) == 1);
    int got = sv_address_accept(&a, &peer);
    REQUIRE(got >= 0);
    snprintf(name, sizeof name, "127.0.0.1 port %u", ntohs(from.sin_port));
    CHECK_STR_EQ(peer.name, name);
    CHECK(peer.is_local && peer.uid == geteuid());
    CHECK_UINT_EQ(peer.id, UINT64_C(1) << 32 | geteuid());
    close(got);
    close(fd);
    sv_address_close(&a);
}

/* One port for two protocols: who gets which connection, with all of its bytes, and what those are
 * told that nobody gets. */
#include "net/front_door.h"

#include "net/listen_socket.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { LONG_MS = 1000000 };

struct house {
    struct sv_gate *gate;
    struct sv_door *door;
    struct sockaddr_in address;
    int pipes[2][2]; /* descriptors that the door gave away, of HTTP/1 and HTTP/2 */
    _Atomic bool is_full;
};

static void got(const struct house *h, bool is_http2, int fd)
{
    REQUIRE(write(h->pipes[is_http2][1], &fd, sizeof fd) == sizeof fd);
}

static void http1(void *ctx, int fd, const struct sockaddr *from, socklen_t len)
{
    CHECK_INT_EQ(from->sa_family, AF_INET);
    CHECK_UINT_EQ(len, sizeof(struct sockaddr_in));
    got(ctx, false, fd);
}

static void http2(void *ctx, int fd)
{
    got(ctx, true, fd);
}

static bool is_full(void *ctx)
{
    struct house *h = ctx;
    return atomic_load(&h->is_full);
}

static void open_house(struct house *h, bool has_http2, int64_t header_ms)
{
    struct sv_gate_limits limits = {.all_bytes = 1,
                                    .client_bytes = 1,
                                    .header_ms = header_ms,
                                    .request_ms = LONG_MS,
                                    .idle_ms = LONG_MS,
                                    .answer_ms = LONG_MS};
    socklen_t len = sizeof h->address;
    *h = (struct house){.address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    struct sv_door_options o = {.http1 = http1,
                                .http2 = has_http2 ? http2 : NULL,
                                .no_http2 = "speak HTTP/1.1",
                                .is_full = is_full,
                                .ctx = h};
    REQUIRE(sv_gate_open(&limits, &h->gate, NULL) == 0);
    REQUIRE(pipe(h->pipes[0]) == 0 && pipe(h->pipes[1]) == 0);
    o.gate = h->gate;
    o.listener = sv_listen_on((const struct sockaddr *)&h->address, len, 16);
    REQUIRE(o.listener >= 0);
    REQUIRE(getsockname(o.listener, (struct sockaddr *)&h->address, &len) == 0);
    REQUIRE(sv_door_open(&o, &h->door, NULL) == 0);
}

static void close_house(struct house *h)
{
    sv_door_close(h->door, "closed");
    CHECK_UINT_EQ(sv_gate_count(h->gate).connections, 0);
    sv_gate_close(h->gate);
    for (int i = 0; i < 4; i++)
        close(h->pipes[i / 2][i % 2]);
}

static int call(const struct house *h, const char *words)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(fd, (const struct sockaddr *)&h->address, sizeof h->address) == 0);
    REQUIRE(send(fd, words, strlen(words), MSG_NOSIGNAL) == (ssize_t)strlen(words));
    return fd;
}

/* The connection that was given away, which has all these bytes. */
static void expect(const struct house *h, bool is_http2, const char *words)
{
    char text[64] = "";
    int fd;
    REQUIRE(read(h->pipes[is_http2][0], &fd, sizeof fd) == sizeof fd);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    REQUIRE(poll(&p, 1, -1) == 1);
    CHECK_INT_EQ(recv(fd, text, sizeof text - 1, 0), strlen(words));
    CHECK_STR_EQ(text, words);
    CHECK_INT_EQ(poll(&(struct pollfd){.fd = h->pipes[!is_http2][0], .events = POLLIN}, 1, 0), 0);
    close(fd);
}

static void until_guests(const struct house *h, size_t n)
{
    while (sv_gate_count(h->gate).connections != n)
        usleep(100);
}

/* All that it is told, until the end. */
static size_t hear(int fd, char *text, size_t size)
{
    size_t n = 0;
    for (ssize_t got; n < size && (got = recv(fd, text + n, size - n, 0)) > 0;)
        n += (size_t)got;
    close(fd);
    return n;
}

TEST(door_knows_who_speaks_what)
{
    struct house h;
    open_house(&h, true, LONG_MS);
    close(call(&h, "GET / HTTP/1.1\r\n"));
    expect(&h, false, "GET / HTTP/1.1\r\n");
    close(call(&h, "PRI * HTTP/2.0\r\n\r\n"));
    expect(&h, true, "PRI * HTTP/2.0\r\n\r\n");
    close(call(&h, "PUT"));
    expect(&h, false, "PUT");
    int fd = call(&h, "P");
    until_guests(&h, 1);
    REQUIRE(send(fd, "R", 1, 0) == 1);
    int other = call(&h, "X"); /* the door has seen both by then */
    expect(&h, false, "X");
    close(other);
    CHECK_UINT_EQ(sv_gate_count(h.gate).connections, 1);
    REQUIRE(send(fd, "I *", 3, 0) == 3);
    expect(&h, true, "PRI *");
    close(fd);
    fd = call(&h, "PR");
    until_guests(&h, 1);
    REQUIRE(send(fd, "O", 1, 0) == 1);
    expect(&h, false, "PRO");
    close(fd);
    close_house(&h);
}

TEST(door_ends_who_says_nothing)
{
    struct house h;
    char text[512];
    open_house(&h, true, 20);
    size_t n = hear(call(&h, ""), text, sizeof text);
    CHECK(n > 13 && memcmp(text, "HTTP/1.1 408 ", 13) == 0);
    until_guests(&h, 0);
    close_house(&h);
    open_house(&h, true, LONG_MS);
    int fd = call(&h, "P");
    until_guests(&h, 1);
    close(fd); /* it leaves */
    until_guests(&h, 0);
    close_house(&h);
}

/* SETTINGS, then GOAWAY with this code and this reason. */
static void expect_goaway(int fd, unsigned code, const char *why)
{
    char text[512];
    size_t n = hear(fd, text, sizeof text);
    CHECK_UINT_EQ(n, 9 + 17 + strlen(why));
    CHECK_MEM_EQ(text, "\0\0\0\4\0\0\0\0\0", 9);
    CHECK_INT_EQ(text[9 + 2], 8 + strlen(why));
    CHECK_INT_EQ(text[9 + 3], 7);
    CHECK_INT_EQ(text[9 + 16], code);
    CHECK_MEM_EQ(text + 9 + 17, why, strlen(why));
}

TEST(door_tells_why_there_is_no_http2)
{
    struct house h;
    open_house(&h, false, LONG_MS);
    expect_goaway(call(&h, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 13, "speak HTTP/1.1");
    close_house(&h);
}

static void *wait_and_open(void *arg)
{
    struct house *h = arg;
    usleep(1000);
    atomic_store(&h->is_full, false);
    return NULL;
}

TEST(door_lets_wait_while_it_is_full)
{
    struct house h;
    pthread_t thread;
    open_house(&h, true, LONG_MS);
    atomic_store(&h.is_full, true);
    int fd = call(&h, "GET /");
    REQUIRE(pthread_create(&thread, NULL, wait_and_open, &h) == 0);
    expect(&h, false, "GET /");
    pthread_join(thread, NULL);
    close(fd);
    close_house(&h);
}

/* Who waits inside, and who has connected since the stop. */
TEST(door_refuses_the_rest_at_its_end)
{
    struct house h;
    char text[512];
    open_house(&h, true, LONG_MS);
    int inside = call(&h, "P");
    until_guests(&h, 1);
    sv_door_stop(h.door);
    int late = call(&h, "GET / HTTP/1.1\r\n"), late2 = call(&h, "PRI * HTTP/2.0\r\n\r\n");
    close_house(&h);
    size_t n = hear(inside, text, sizeof text);
    CHECK(n > 13 && memcmp(text, "HTTP/1.1 503 ", 13) == 0);
    n = hear(late, text, sizeof text);
    CHECK(n > 13 && memcmp(text, "HTTP/1.1 503 ", 13) == 0);
    expect_goaway(late2, 0, "closed");
}

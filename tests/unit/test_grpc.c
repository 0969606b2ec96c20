/* The gRPC server, asked by a client that speaks HTTP/2 by hand: answers, refusals, streams, and
 * clients that leave. */
#include "net/grpc.h"

#include "core/base/buf.h"
#include "core/files/output.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the client: one call on a connection ---- */

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, HEAD_BYTES = 9 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

struct client {
    int fd;
    struct sv_buf headers, data; /* of all frames that came */
    unsigned kinds;              /* of them, a bit each */
    bool has_ended, was_reset, is_closed;
    bool is_slow; /* it does not answer pings */
};

static void send_frame(struct client *c, unsigned type, unsigned flags, uint32_t stream,
                       const void *bytes, size_t n)
{
    uint8_t frame[70000];
    REQUIRE(n + HEAD_BYTES <= sizeof frame);
    frame[0] = (uint8_t)(n >> 16);
    frame[1] = (uint8_t)(n >> 8);
    frame[2] = (uint8_t)n;
    frame[3] = (uint8_t)type;
    frame[4] = (uint8_t)flags;
    stream = htonl(stream);
    memcpy(frame + 5, &stream, 4);
    if (n)
        memcpy(frame + HEAD_BYTES, bytes, n);
    REQUIRE(send(c->fd, frame, HEAD_BYTES + n, MSG_NOSIGNAL) == (ssize_t)(HEAD_BYTES + n));
}

/* A header as it is, neither indexed nor packed. */
static void add_header(struct sv_buf *b, const char *name, const char *value)
{
    REQUIRE(strlen(name) < 127 && strlen(value) < 127);
    sv_buf_byte(b, 0);
    sv_buf_byte(b, (uint8_t)strlen(name));
    sv_buf_str(b, name);
    sv_buf_byte(b, (uint8_t)strlen(value));
    sv_buf_str(b, value);
}

static void begin_call(struct client *c, uint32_t stream, const char *path, const char *name,
                       const char *value, bool is_last)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 16);
    add_header(&b, ":method", "POST");
    add_header(&b, ":scheme", "http");
    add_header(&b, ":path", path);
    add_header(&b, ":authority", "localhost");
    add_header(&b, "te", "trailers");
    add_header(&b, "content-type", "application/grpc");
    if (name)
        add_header(&b, name, value);
    send_frame(c, HEADERS, END_HEADERS | (is_last ? END_STREAM : 0), stream, b.data, b.len);
    sv_buf_fini(&b);
}

static struct client call(const struct sv_grpc *g, const char *path, const char *name,
                          const char *value, bool is_last)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct client c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(sv_grpc_port(g)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    sv_buf_init(&c.headers, 1 << 20);
    sv_buf_init(&c.data, 1 << 20);
    REQUIRE(connect(c.fd, (const struct sockaddr *)&a, sizeof a) == 0);
    REQUIRE(send(c.fd, preface, sizeof preface - 1, MSG_NOSIGNAL) == sizeof preface - 1);
    send_frame(&c, SETTINGS, 0, 0, NULL, 0);
    begin_call(&c, 1, path, name, value, is_last);
    return c;
}

static void say(struct client *c, bool is_packed, const void *bytes, size_t n, bool is_last)
{
    uint8_t message[60000];
    uint32_t len = htonl((uint32_t)n);
    REQUIRE(n + 5 <= sizeof message);
    message[0] = is_packed;
    memcpy(message + 1, &len, 4);
    memcpy(message + 5, bytes, n);
    send_frame(c, DATA, is_last ? END_STREAM : 0, 1, message, n + 5);
}

static bool read_all(int fd, void *to, size_t n)
{
    return n == 0 || recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* One frame further. */
static void hear_one(struct client *c)
{
    uint8_t head[HEAD_BYTES], *bytes;
    if (!read_all(c->fd, head, sizeof head)) {
        c->has_ended = c->was_reset = c->is_closed = true;
        return;
    }
    size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    bytes = malloc(n + 1);
    REQUIRE(bytes && read_all(c->fd, bytes, n));
    if (head[3] == SETTINGS && !(head[4] & ACK))
        send_frame(c, SETTINGS, ACK, 0, NULL, 0);
    c->kinds |= 1U << (head[3] & 31);
    if (head[3] == PING && !(head[4] & ACK) && !c->is_slow)
        send_frame(c, PING, ACK, 0, bytes, n);
    if (head[3] == DATA)
        sv_buf_add(&c->data, bytes, n);
    if (head[3] == HEADERS)
        sv_buf_add(&c->headers, bytes, n);
    c->was_reset |= head[3] == RST_STREAM;
    c->has_ended |= c->was_reset || (head[3] <= HEADERS && (head[4] & END_STREAM));
    free(bytes);
}

static void hear(struct client *c)
{
    while (!c->has_ended)
        hear_one(c);
}

/* The value of a header that was sent as it is, or "". */
static const char *header_of(const struct client *c, const char *name)
{
    static char value[256];
    const uint8_t *at = c->headers.len ? memmem(c->headers.data, c->headers.len, name, strlen(name))
                                       : NULL;
    value[0] = '\0';
    if (at) {
        at += strlen(name);
        size_t n = *at & 0x7f;
        snprintf(value, sizeof value, "%.*s", (int)n, (const char *)at + 1);
    }
    return value;
}

/* "STATUS: the messages, each after its length". */
static const char *heard(struct client *c)
{
    static char text[8192];
    hear(c);
    int n = snprintf(text, sizeof text, "%s:", header_of(c, "grpc-status"));
    for (size_t at = 0; at + 5 <= c->data.len;) {
        uint32_t len;
        memcpy(&len, c->data.data + at + 1, 4);
        len = ntohl(len);
        n += snprintf(text + n, sizeof text - (size_t)n, " %u %.*s", len, (int)len,
                      (const char *)c->data.data + at + 5);
        at += 5 + len;
    }
    return text;
}

static void hang_up(struct client *c)
{
    close(c->fd);
    sv_buf_fini(&c->headers);
    sv_buf_fini(&c->data);
}

/* ---- the server ---- */

static struct {
    pthread_mutex_t lock;
    struct sv_grpc_call *calls[16]; /* that wait for their answer */
    unsigned n;
    uid_t uid;
    char header[64];
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void echo(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    size_t n = 0;
    const char *given = sv_grpc_header(c, "x-name", &n);
    (void)ctx;
    pthread_mutex_lock(&held.lock);
    held.uid = sv_grpc_uid(c);
    snprintf(held.header, sizeof held.header, "%.*s", (int)n, given ? given : "");
    pthread_mutex_unlock(&held.lock);
    sv_grpc_answer_header(c, "x-answer", "first");
    sv_grpc_answer_header(c, "x-later", "ignored");
    sv_grpc_answer(c, bytes, len);
}

static void fail(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    char text[64];
    (void)ctx;
    snprintf(text, sizeof text, "not %.*s", (int)len, (const char *)bytes);
    sv_grpc_fail(c, SV_GRPC_NOT_FOUND, text);
}

static void keep(void *ctx, struct sv_grpc_call *c, const uint8_t *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    pthread_mutex_lock(&held.lock);
    held.calls[held.n++] = c;
    pthread_mutex_unlock(&held.lock);
}

static unsigned n_held(void)
{
    pthread_mutex_lock(&held.lock);
    unsigned n = held.n;
    pthread_mutex_unlock(&held.lock);
    return n;
}

static const struct sv_grpc_method methods[] = {
    {"/t.S/Echo", echo, false},  {"/t.S/Fail", fail, false}, {"/t.S/Keep", keep, false},
    {"/t.S/Echoes", echo, true}, {"/t.S/Fails", fail, true}, {"/t.S/Keeps", keep, true}};

static struct sv_grpc *open_server(struct sv_grpc_options o)
{
    struct sv_grpc *g;
    struct sv_err err = {0};
    char why[256];
    if (!sv_grpc_version(why, sizeof why))
        SKIP("no libgrpc here");
    held.n = 0;
    o.methods = methods;
    o.n_methods = TEST_COUNT(methods);
    o.message_max = 1000;
    REQUIRE(sv_grpc_open(&o, "127.0.0.1:0", &g, &err) == 0);
    REQUIRE(sv_grpc_start(g, &err) == 0);
    CHECK(sv_grpc_port(g) != 0);
    return g;
}

/* A whole unary call. */
static const char *ask(const struct sv_grpc *g, const char *path, const char *text)
{
    static char answer[8192];
    struct client c = call(g, path, NULL, NULL, false);
    say(&c, false, text, strlen(text), true);
    size_t n = (size_t)snprintf(answer, sizeof answer, "%s ", heard(&c));
    snprintf(answer + n, sizeof answer - n, "%s", header_of(&c, "grpc-message"));
    hang_up(&c);
    return answer;
}

TEST(calls_and_their_ends)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){0});
    CHECK_STR_EQ(ask(g, "/t.S/Echo", "hello"), "0: 5 hello ");
    CHECK_STR_EQ(ask(g, "/t.S/Echo", ""), "0: 0  ");
    CHECK_STR_EQ(ask(g, "/t.S/Fail", "x"), "5: not x");
    CHECK_STR_EQ(ask(g, "/t.S/None", "x"), "12: no such method");
    CHECK_STR_EQ(ask(g, "/t.S/Echo2", "x"), "12: no such method");
    struct client c = call(g, "/t.S/Echo", NULL, NULL, true);
    CHECK_STR_EQ(heard(&c), "3:");
    CHECK_STR_EQ(header_of(&c, "grpc-message"), "the call has no message");
    hang_up(&c);
    for (int i = 0; i < 100; i++) { /* more than wait at once for somebody */
        CONTEXT("call %d", i);
        if (strcmp(ask(g, "/t.S/Echo", "again"), "0: 5 again ") != 0) {
            CHECK(false);
            break;
        }
    }
    while (sv_grpc_count(g).open)
        sched_yield();
    struct sv_grpc_counts n = sv_grpc_count(g);
    CHECK_UINT_EQ(n.calls, 106);
    CHECK_UINT_EQ(n.failed, 4);
    CHECK(n.gone == 0 && n.late == 0 && n.refused == 0);
    CHECK(sv_grpc_close(g, 1000));
    CHECK(sv_grpc_close(NULL, 0));
}

TEST(headers_and_users)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.threads = 2});
    struct client c = call(g, "/t.S/Echo", "x-name", "value", false);
    say(&c, false, "m", 1, true);
    CHECK_STR_EQ(heard(&c), "0: 1 m");
    CHECK_STR_EQ(header_of(&c, "x-answer"), "first");
    CHECK_STR_EQ(header_of(&c, "x-later"), "");
    hang_up(&c);
    pthread_mutex_lock(&held.lock);
    CHECK_STR_EQ(held.header, "value");
    CHECK_UINT_EQ(held.uid, geteuid());
    pthread_mutex_unlock(&held.lock);
    CHECK(sv_grpc_close(g, 1000));
}

TEST(streams_keep_their_order)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.stream_max = 2});
    struct client c = call(g, "/t.S/Echoes", NULL, NULL, false);
    char expected[512] = "0:";
    for (int i = 0; i < 40; i++) {
        char text[16];
        snprintf(text, sizeof text, "m%d", i);
        say(&c, false, text, strlen(text), i == 39);
        snprintf(expected + strlen(expected), 40, " %zu %s", strlen(text), text);
    }
    CHECK_STR_EQ(heard(&c), expected);
    hang_up(&c);
    c = call(g, "/t.S/Echoes", NULL, NULL, true); /* without any */
    CHECK_STR_EQ(heard(&c), "0:");
    hang_up(&c);
    c = call(g, "/t.S/Fails", NULL, NULL, false);
    say(&c, false, "a", 1, false);
    CHECK_STR_EQ(heard(&c), "5:"); /* the stream ends with it */
    hang_up(&c);
    CHECK(sv_grpc_close(g, 1000));
}

/* So many messages of a stream wait at most; answers from another thread. */
TEST(a_stream_waits_for_its_answers)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.stream_max = 3});
    struct client c = call(g, "/t.S/Keeps", NULL, NULL, false);
    for (int i = 0; i < 5; i++)
        say(&c, false, "m", 1, i == 4);
    while (n_held() < 3)
        sched_yield();
    CHECK_STR_EQ(ask(g, "/t.S/Echo", "other"), "0: 5 other "); /* others are not held up */
    CHECK_UINT_EQ(n_held(), 3);
    sv_grpc_answer(held.calls[0], "one", 3);
    while (n_held() < 4)
        sched_yield();
    sv_grpc_answer(held.calls[1], "two", 3);
    while (n_held() < 5)
        sched_yield();
    for (int i = 2; i < 5; i++)
        sv_grpc_answer(held.calls[i], "x", 1);
    CHECK_STR_EQ(heard(&c), "0: 3 one 3 two 1 x 1 x 1 x");
    hang_up(&c);
    CHECK(sv_grpc_close(g, 1000));
}

TEST(messages_have_a_size)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){0});
    char text[1002], zeros[1001];
    struct sv_buf b;
    struct sv_err err = {0};
    struct sv_output *o;
    memset(text, 't', sizeof text);
    text[1001] = '\0';
    CHECK(strncmp(ask(g, "/t.S/Echo", text), "8:", 2) == 0);
    text[1000] = '\0';
    CHECK(strncmp(ask(g, "/t.S/Echo", text), "0: 1000 ttt", 11) == 0);
    memset(zeros, 'z', sizeof zeros);
    for (size_t n = 1000; n <= 1001; n++) { /* as it was before it was packed */
        CONTEXT("%zu bytes", n);
        sv_buf_init(&b, 1 << 16);
        REQUIRE(sv_output_open_buf(&b, SV_GZIP, &o, &err) == 0);
        sv_output_write(o, zeros, n);
        REQUIRE(sv_output_close(o, &err) == 0);
        struct client c = call(g, "/t.S/Echo", "grpc-encoding", "gzip", false);
        say(&c, true, b.data, b.len, true);
        CHECK(strncmp(heard(&c), n == 1000 ? "0: 1000 zzz" : "8:", n == 1000 ? 11 : 2) == 0);
        hang_up(&c);
        c = call(g, "/t.S/Echo", "grpc-encoding", "gzip", false);
        say(&c, true, b.data, b.len - 9, true); /* cut */
        CHECK_STR_EQ(heard(&c), n == 1000 ? "3:" : "8:");
        hang_up(&c);
        sv_buf_fini(&b);
    }
    CHECK(sv_grpc_close(g, 1000));
}

TEST(clients_that_leave)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.calls_max = 1});
    struct client c = call(g, "/t.S/Keep", NULL, NULL, false);
    say(&c, false, "m", 1, true);
    while (n_held() < 1)
        sched_yield();
    CHECK(!sv_grpc_is_gone(held.calls[0]));
    CHECK_UINT_EQ(sv_grpc_count(g).open, 1);
    CHECK_STR_EQ(ask(g, "/t.S/Echo", "x"), "8: too many open calls");
    CHECK_UINT_EQ(sv_grpc_count(g).refused, 1);
    hang_up(&c);
    while (!sv_grpc_is_gone(held.calls[0]))
        sched_yield();
    CHECK_UINT_EQ(sv_grpc_count(g).gone, 1);
    sv_grpc_answer(held.calls[0], "nobody hears it", 15);
    while (sv_grpc_count(g).open)
        sched_yield();
    CHECK_STR_EQ(ask(g, "/t.S/Echo", "x"), "0: 1 x "); /* the place is free again */
    CHECK(sv_grpc_close(g, 1000));
}

TEST(messages_that_do_not_come)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.read_ms = 1});
    struct client c = call(g, "/t.S/Echo", NULL, NULL, false);
    CHECK_STR_EQ(heard(&c), "4:");
    CHECK_UINT_EQ(sv_grpc_count(g).late, 1);
    hang_up(&c);
    CHECK(sv_grpc_close(g, 1000));
}

TEST(a_server_that_stops)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){0});
    struct client c = call(g, "/t.S/Keep", NULL, NULL, false);
    say(&c, false, "m", 1, true);
    while (n_held() < 1)
        sched_yield();
    sv_grpc_stop(g);
    CHECK_STR_EQ(ask(g, "/t.S/Echo", "x"), "14: the server stops");
    sv_grpc_answer(held.calls[0], "done", 4); /* the open ones continue */
    CHECK_STR_EQ(heard(&c), "0: 4 done");
    hang_up(&c);
    c = call(g, "/t.S/Echo", NULL, NULL, false); /* never ends */
    CHECK(sv_grpc_close(g, 200));
    hang_up(&c);
}

static void *close_it(void *arg)
{
    return sv_grpc_close(arg, 1000) ? arg : NULL;
}

/* The client has seen nothing of the stop yet when it calls, and is too slow to say that it has
 * when the library asks. */
TEST(a_call_that_crosses_the_stop_is_not_reset)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){.threads = 2});
    struct client c = call(g, "/t.S/Echo", NULL, NULL, false);
    pthread_t closer;
    void *is_closed;
    say(&c, false, "m", 1, true);
    CHECK_STR_EQ(heard(&c), "0: 1 m");
    c.is_slow = true;
    REQUIRE(pthread_create(&closer, NULL, close_it, g) == 0);
    while (!c.is_closed && !(c.kinds & 1U << GOAWAY))
        hear_one(&c);
    begin_call(&c, 3, "/t.S/Echo", NULL, NULL, false);
    while (!c.is_closed)
        hear_one(&c);
    CHECK(!(c.kinds & 1U << RST_STREAM)); /* closed: its client takes that for UNAVAILABLE */
    pthread_join(closer, &is_closed);
    CHECK(is_closed != NULL);
    hang_up(&c);
}

/* One that waits for messages, and one that has an answer to come. */
TEST(streams_end_when_the_server_stops)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){0});
    struct client idle = call(g, "/t.S/Echoes", NULL, NULL, false);
    struct client busy = call(g, "/t.S/Keeps", NULL, NULL, false);
    say(&idle, false, "a", 1, false);
    while (idle.data.len == 0)
        hear_one(&idle);
    say(&busy, false, "b", 1, false);
    while (n_held() < 1)
        sched_yield();
    sv_grpc_stop(g);
    CHECK_STR_EQ(heard(&idle), "14: 1 a");
    CHECK_STR_EQ(header_of(&idle, "grpc-message"), "the server stops");
    CHECK(!busy.has_ended);
    sv_grpc_answer(held.calls[0], "done", 4);
    CHECK_STR_EQ(heard(&busy), "14: 4 done");
    hang_up(&idle);
    hang_up(&busy);
    CHECK(sv_grpc_close(g, 1000));
}

TEST(ports)
{
    test_leaves_open();
    struct sv_grpc *g = open_server((struct sv_grpc_options){0}), *second = NULL;
    struct sv_grpc_options o = {.methods = methods, .n_methods = 1, .message_max = 10};
    struct sv_err err = {0};
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", sv_grpc_port(g));
    CHECK_INT_EQ(sv_grpc_open(&o, address, &second, &err), SV_EIO);
    CHECK(strstr(err.msg, "for gRPC") != NULL);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_grpc_open(&o, "nowhere", &second, &err), SV_EUSAGE);
    err = (struct sv_err){0};
    REQUIRE(sv_grpc_open(&o, "127.0.0.1:0", &second, &err) == 0);
    CHECK(sv_grpc_close(second, 0)); /* never started */
    CHECK(sv_grpc_close(g, 1000));
}

/* A POST and its answer: what is sent, and what servers of every kind may answer. */
#include "net/http_post.h"

#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 1000000 }; /* never reached */

struct server {
    int listener, said; /* said: what it was sent, when it has ended */
    pid_t pid;
    struct sv_http_target to;
};

static int listen_here(struct sv_http_target *t)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 4) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(t->host, sizeof t->host, "127.0.0.1");
    snprintf(t->port, sizeof t->port, "%u", ntohs(a.sin_port));
    snprintf(t->path, sizeof t->path, "/p?q=1");
    return fd;
}

/* Takes one request, `take` bytes of it after its head, and answers in pieces of `step` bytes. */
static _Noreturn void serve(int listener, int to, size_t take, const char *answer, size_t n,
                            size_t step)
{
    char *text = calloc(1, take + 10000), *body = NULL;
    int fd = accept(listener, NULL, NULL);
    size_t at = 0;
    while (text && (!body || at < (size_t)(body - text) + take)) {
        ssize_t got = recv(fd, text + at, take + 9999 - at, 0);
        if (got <= 0)
            break;
        at += (size_t)got;
        body = strstr(text, "\r\n\r\n");
        body = body ? body + 4 : NULL;
    }
    for (size_t done = 0; done < n; done += step)
        send(fd, answer + done, n - done < step ? n - done : step, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    size_t head = body && text ? (size_t)(body - text) : at;
    for (size_t i = head; text && i < at; i++)
        if ((unsigned char)text[i] != i - head + 'a' && take > 100 &&
            (unsigned char)text[i] != (i - head) % 251)
            _exit(2);
    _exit(text && write(to, text, at < 2000 ? at : 2000) >= 0 ? 0 : 1);
}

static struct server start(size_t take, const char *answer, size_t n, size_t step)
{
    struct server s;
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    s.listener = listen_here(&s.to);
    s.pid = fork();
    if (s.pid == 0)
        serve(s.listener, ends[1], take, answer, n, step);
    close(ends[1]);
    s.said = ends[0];
    return s;
}

/* What it was sent, up to 2,000 bytes. */
static const char *stop(struct server *s)
{
    static char text[2048];
    int status = -1;
    size_t at = 0;
    for (ssize_t n; (n = read(s->said, text + at, sizeof text - 1 - at)) > 0;)
        at += (size_t)n;
    text[at] = '\0';
    CHECK(waitpid(s->pid, &status, 0) == s->pid && status == 0);
    close(s->said);
    close(s->listener);
    return text;
}

TEST(what_is_sent)
{
    static const char answer[] = "HTTP/1.1 204 No Content\r\n\r\n";
    struct server s = start(3, answer, strlen(answer), 100);
    struct sv_http_reply reply;
    struct sv_err err = {0};
    char expected[512];
    CHECK_INT_EQ(
        sv_http_post(&s.to, "text/x", "A: b\r\nC: d\r\n", "abc", 3, LIMIT_MS, &reply, &err), 0);
    CHECK_UINT_EQ(reply.status, 204);
    snprintf(expected, sizeof expected,
             "POST /p?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: text/x\r\n"
             "Content-Length: 3\r\nUser-Agent: stave\r\nConnection: close\r\nA: b\r\nC: d\r\n\r\n"
             "abc",
             s.to.port);
    CHECK_STR_EQ(stop(&s), expected);
    sv_buf_fini(&reply.body);
}

TEST(answers)
{
    static const struct {
        const char *answer;
        int code;
        unsigned status, retry_s;
        const char *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0, 200, 0, "hello"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", 0, 200, 0, "hello"},
        {"HTTP/1.1 200 OK\r\ncontent-length:\t 5\r\nA: b\r\n\r\nhello", 0, 200, 0, "hello"},
        {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello", 0, 200, 0, "hello"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", 0, 200, 0, "hello"},
        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 0, 200, 0, "until the end"},
        {"HTTP/1.1 404\r\n\r\n", 0, 404, 0, ""},
        {"HTTP/1.1 503 X\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n", 0, 503, 17, ""},
        {"HTTP/1.1 503 X\r\nA: b\r\nretry-after:9\r\n\r\n", 0, 503, 9, ""},
        {"HTTP/1.1 503 X\r\nRetry-After: soon\r\n\r\n", 0, 503, 0, ""},
        {"HTTP/1.1 503 X\r\nRetry-Afterwards: 3\r\nX-Retry-After: 4\r\n\r\n", 0, 503, 0, ""},
        {"HTTP/1.1 503 X\r\nA: b\r\n\r\nz\r\nRetry-After: 3\r\n", 0, 503, 0,
         "z\r\nRetry-After: 3\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5\r\nhello\r\nB;x=y\r\n, all of us\r\n1\r\n!\r\n0\r\n\r\n",
         0, 200, 0, "hello, all of us!"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 0, 200, 0,
         "hello"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\nx\r\n", 0, 200,
         0, "hello"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nabc", 0, 200, 0,
         "hello"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9", 0, 200, 0,
         "hello"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc", 0, 200, 0, "abc"},
        {"", SV_EAGAIN, 0, 0, "no answer: the connection was closed"},
        {"nonsense", SV_EIO, 0, 0, "the answer is not one of HTTP"},
        {"SIP/2.0 200 OK\r\n\r\n", SV_EIO, 0, 0, "the answer is not one of HTTP"},
        {"HTTP/1.1 OK\r\n\r\n", SV_EIO, 0, 0, "the answer is not one of HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Le", SV_EIO, 0, 0, "the answer is not one of HTTP"},
    };
    static const size_t steps[] = {10000, 1};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        for (size_t k = 0; k < TEST_COUNT(steps); k++) {
            CONTEXT("row %zu in steps of %zu", i, steps[k]);
            struct server s = start(1, rows[i].answer, strlen(rows[i].answer), steps[k]);
            struct sv_http_reply reply;
            struct sv_err err = {0};
            CHECK_INT_EQ(sv_http_post(&s.to, "t", NULL, "a", 1, LIMIT_MS, &reply, &err),
                         rows[i].code);
            if (rows[i].code == 0) {
                CHECK_UINT_EQ(reply.status, rows[i].status);
                CHECK_UINT_EQ(reply.retry_after_s, rows[i].retry_s);
            }
            CHECK_STR_EQ(rows[i].code ? err.msg : sv_buf_cstr(&reply.body), rows[i].body);
            stop(&s);
            sv_buf_fini(&reply.body);
        }
    }
}

/* More than a socket holds, to a server that begins late. */
TEST(large_bodies)
{
    enum { MANY = 6000000 };
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    unsigned char *bytes = malloc(MANY);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < MANY; i++)
        bytes[i] = (unsigned char)(i % 251);
    struct server s = start(MANY, answer, strlen(answer), 100);
    struct sv_http_reply reply;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_http_post(&s.to, "t", NULL, bytes, MANY, LIMIT_MS, &reply, &err), 0);
    CHECK_UINT_EQ(reply.status, 200);
    CHECK_STR_EQ(sv_buf_cstr(&reply.body), "ok");
    stop(&s);
    sv_buf_fini(&reply.body);
    free(bytes);
}

/* An answer that is larger than what is kept is not taken for ever. */
TEST(large_answers)
{
    enum { MANY = 300000 };
    char *answer = malloc(MANY);
    REQUIRE(answer != NULL);
    memset(answer, 'x', MANY);
    memcpy(answer, "HTTP/1.1 200 OK\r\n\r\n", 19);
    struct server s = start(1, answer, MANY, MANY);
    struct sv_http_reply reply;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_http_post(&s.to, "t", NULL, "a", 1, LIMIT_MS, &reply, &err), 0);
    CHECK_UINT_EQ(reply.status, 200);
    CHECK_UINT_EQ(reply.body.len, 65536);
    CHECK(reply.body.data[0] == 'x' && reply.body.data[65535] == 'x');
    kill(s.pid, SIGKILL); /* it may wait for us */
    waitpid(s.pid, NULL, 0);
    close(s.said);
    close(s.listener);
    sv_buf_fini(&reply.body);
    free(answer);
}

TEST(nobody_answers)
{
    struct sv_http_target t;
    struct sv_http_reply reply;
    struct sv_err err = {0};
    char *headers = calloc(1, 9000);
    int listener = listen_here(&t); /* takes the connection, says nothing */
    static const int64_t times[] = {0, 4000000000000000};
    test_clock_script(times, TEST_COUNT(times));
    CHECK_INT_EQ(sv_http_post(&t, "t", NULL, "a", 1, LIMIT_MS, &reply, &err), SV_EAGAIN);
    test_clock_script(NULL, 0);
    CHECK(strstr(err.msg, strerror(ETIMEDOUT)) != NULL);
    sv_buf_fini(&reply.body);
    REQUIRE(headers != NULL);
    memset(headers, 'h', 8999);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_http_post(&t, "t", headers, "a", 1, LIMIT_MS, &reply, &err), SV_EUSAGE);
    sv_buf_fini(&reply.body);
    free(headers);
    close(listener); /* nobody listens */
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_http_post(&t, "t", NULL, "a", 1, LIMIT_MS, &reply, &err), SV_EAGAIN);
    CHECK(strstr(err.msg, "127.0.0.1 port ") && strstr(err.msg, strerror(ECONNREFUSED)));
    sv_buf_fini(&reply.body);
}

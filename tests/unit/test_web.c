/* The viewer's web server: who is let in, and what answers look like. */
#include "net/web.h"

#include "core/files/input.h"
#include "net/listen_socket.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LARGE = 5000 };
static const char fixed[] = "fixed bytes";

static void answer(void *ctx, const struct sv_web_request *q, struct sv_web_answer *a)
{
    (void)ctx;
    if (strcmp(q->path, "/fixed") == 0) {
        a->fixed = fixed;
        a->fixed_len = sizeof fixed - 1;
        a->type = "text/plain";
    } else if (strcmp(q->path, "/large") == 0) {
        for (int i = 0; i < LARGE; i++)
            sv_buf_byte(&a->body, (uint8_t)('a' + i % 7));
    } else if (strcmp(q->path, "/too-large") == 0) {
        for (int i = 0; i < 100000; i++)
            sv_buf_byte(&a->body, 'x');
    } else if (strcmp(q->path, "/busy") == 0) {
        sv_web_error(a, 503, "busy with \"%s\"", "it");
    } else if (q->is_post) {
        sv_buf_printf(&a->body, "%zu:%.*s", q->len, (int)q->len,
                      q->body ? (const char *)q->body : "");
    } else {
        const char *x = sv_web_param(q, "x"), *h = sv_web_header(q, "H");
        sv_buf_printf(&a->body, "%s x=%s h=%s client=%x uid=%d", q->path, x ? x : "-", h ? h : "-",
                      sv_web_client(q), sv_web_uid(q) == geteuid());
    }
}

static struct sv_web *open_web(const char *path)
{
    struct sv_web_options o = {.answer = answer,
                               .policy = "default-src 'self'",
                               .body_max = 1000,
                               .answer_max = 60000,
                               .socket = path};
    struct sv_web *w = NULL;
    struct sv_err err = {0};
    if (!(sv_web_load(&(struct sv_err){0}) == 0))
        SKIP("built without libmicrohttpd");
    REQUIRE(sv_web_open(&o, &w, &err) == 0);
    return w;
}

/* All that comes back for these bytes. */
static const char *talk(int fd, const char *text)
{
    static char got[16384];
    size_t at = 0;
    REQUIRE(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    for (ssize_t n; (n = recv(fd, got + at, sizeof got - 1 - at, 0)) > 0;)
        at += (size_t)n;
    got[at] = '\0';
    close(fd);
    return got;
}

static int connect_to(const struct sv_web *w, int family)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(sv_web_port(w)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 b = {.sin6_family = AF_INET6,
                             .sin6_port = htons(sv_web_port(w)),
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = family == AF_INET ? connect(fd, (struct sockaddr *)&a, sizeof a)
                                 : connect(fd, (struct sockaddr *)&b, sizeof b);
    if (code == 0)
        return fd;
    close(fd);
    return -1;
}

static const char *ask(const struct sv_web *w, const char *first, const char *headers,
                       const char *body)
{
    char text[4096], host[64] = "";
    int fd = connect_to(w, AF_INET);
    REQUIRE(fd >= 0);
    if (!strstr(headers, "Host:"))
        snprintf(host, sizeof host, "Host: 127.0.0.1:%u\r\n", sv_web_port(w));
    snprintf(text, sizeof text, "%s HTTP/1.1\r\n%s%sConnection: close\r\n\r\n%s", first, host,
             headers, body);
    return talk(fd, text);
}

static unsigned status_of(const char *got)
{
    unsigned status = 0;
    return sscanf(got, "HTTP/1.1 %u", &status) == 1 ? status : 0;
}

static const char *body_of(const char *got)
{
    const char *end = strstr(got, "\r\n\r\n");
    return end ? end + 4 : "(none)";
}

TEST(answers_and_their_headers)
{
    struct sv_web *w = open_web(NULL);
    const char *got = ask(w, "GET /a/b?x=1%202", "H: v\r\n", "");
    CHECK_UINT_EQ(status_of(got), 200);
    CHECK_STR_EQ(body_of(got), "/a/b x=1 2 h=v client=7f000001 uid=1");
    static const char *const headers[] = {"Content-Type: application/json",
                                          "Content-Security-Policy: default-src 'self'",
                                          "X-Content-Type-Options: nosniff",
                                          "Referrer-Policy: no-referrer",
                                          "Cache-Control: no-store",
                                          "Cross-Origin-Resource-Policy: same-origin",
                                          "Cross-Origin-Opener-Policy: same-origin"};
    for (size_t i = 0; i < TEST_COUNT(headers); i++) {
        CONTEXT("%s", headers[i]);
        CHECK(strstr(got, headers[i]) != NULL);
    }
    CHECK(strstr(got, "Retry-After") == NULL && strstr(got, "Content-Encoding") == NULL);
    got = ask(w, "GET /fixed", "", "");
    CHECK_UINT_EQ(status_of(got), 200);
    CHECK_STR_EQ(body_of(got), fixed);
    CHECK(strstr(got, "Content-Type: text/plain") != NULL);
    got = ask(w, "GET /busy", "", "");
    CHECK_UINT_EQ(status_of(got), 503);
    CHECK_STR_EQ(body_of(got), "{\"error\":\"busy with \\\"it\\\"\"}");
    CHECK(strstr(got, "\r\nRetry-After: 1\r\n") != NULL);
    got = ask(w, "GET /too-large", "", "");
    CHECK_UINT_EQ(status_of(got), 413);
    CHECK_STR_EQ(body_of(got), "{\"error\":\"the answer is too large: ask for less\"}");
    got = ask(w, "PUT /a", "Content-Length: 0\r\n", "");
    CHECK_UINT_EQ(status_of(got), 405);
    sv_web_close(w);
    sv_web_close(NULL);
}

/* An answer as it goes out: the number of its status, headers without the date, and body. */
static const char *whole(const struct sv_web *w, const char *request)
{
    static char text[16384];
    char full[1024];
    int fd = connect_to(w, AF_INET);
    REQUIRE(fd >= 0);
    snprintf(full, sizeof full, "%s\r\nHost: 127.0.0.1:%u\r\n\r\n", request, sv_web_port(w));
    snprintf(text, sizeof text, "%s", talk(fd, full)); /* the server closes the connection */
    char *date = strstr(text, "Date: "), *next = date ? strchr(date, '\n') : NULL;
    if (next)
        memmove(date, next + 1, strlen(next + 1) + 1);
    size_t n = 0;
    for (const char *at = text + sizeof "HTTP/1.1" * (strncmp(text, "HTTP/1.1 ", 9) == 0); *at;
         at++)
        if (*at != '\r')
            text[n++] = *at;
    text[n] = '\0';
    memmove(text + 3, text + strcspn(text, "\n"), strlen(text + strcspn(text, "\n")) + 1);
    return text;
}

#define HEADERS(type)                                                                  \
    "Connection: close\nContent-Type: " type                                           \
    "\nContent-Security-Policy: default-src 'self'\nX-Content-Type-Options: nosniff\n" \
    "Referrer-Policy: no-referrer\nCache-Control: no-store\n"                          \
    "Cross-Origin-Resource-Policy: same-origin\nCross-Origin-Opener-Policy: same-origin\n"
#define ANSWER(status, more, length, body) \
    status "\n" HEADERS("application/json") more "Content-Length: " length "\n\n" body

TEST(whole_answers)
{
    static const struct {
        const char *request, *answer;
    } rows[] = {
        {"GET /a HTTP/1.1\r\nConnection: close",
         ANSWER("200", "", "32", "/a x=- h=- client=7f000001 uid=1")},
        {"GET /a HTTP/1.0", ANSWER("200", "", "32", "/a x=- h=- client=7f000001 uid=1")},
        {"GET /fixed HTTP/1.1\r\nConnection: close",
         "200\n" HEADERS("text/plain") "Content-Length: 11\n\nfixed bytes"},
        {"GET /busy HTTP/1.1\r\nConnection: close",
         ANSWER("503", "Retry-After: 1\n", "28", "{\"error\":\"busy with \\\"it\\\"\"}")},
        {"GET /too-large HTTP/1.1",
         ANSWER("413", "", "49", "{\"error\":\"the answer is too large: ask for less\"}")},
        {"POST /a HTTP/1.1\r\nContent-Length: 1001",
         ANSWER("413", "", "36", "{\"error\":\"the request is too large\"}")},
        {"POST /a HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
         ANSWER("400", "", "70",
                "{\"error\":\"Content-Length and Transfer-Encoding contradict each other\"}")},
        {"PUT /a HTTP/1.1\r\nConnection: close",
         ANSWER("405", "", "43", "{\"error\":\"only GET and POST are supported\"}")},
        {"HEAD /fixed HTTP/1.1\r\nConnection: close", ANSWER("405", "", "43", "")},
    };
    struct sv_web *w = open_web(NULL);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].request);
        CHECK_STR_EQ(whole(w, rows[i].request), rows[i].answer);
    }
    sv_web_close(w);
}

TEST(large_answers_are_packed_if_the_page_is_far)
{
    struct sv_web *w = open_web(NULL);
    const char *got = ask(w, "GET /large", "", "");
    CHECK(strlen(body_of(got)) == LARGE && !strstr(got, "Content-Encoding"));
    got = ask(w, "GET /large", "Accept-Encoding: gzip\r\nX-Stave-Near: 1\r\n", "");
    CHECK(strlen(body_of(got)) == LARGE && !strstr(got, "Content-Encoding"));
    got = ask(w, "GET /large", "Accept-Encoding: br\r\n", "");
    CHECK(strlen(body_of(got)) == LARGE);
    got = ask(w, "GET /small", "Accept-Encoding: gzip\r\n", "");
    CHECK(strncmp(body_of(got), "/small ", 7) == 0);
    got = ask(w, "GET /large", "Accept-Encoding: br, gzip\r\n", "");
    CHECK(strstr(got, "\r\nContent-Encoding: gzip\r\n") != NULL);
    const char *length = strstr(got, "Content-Length: ");
    size_t n = 0;
    REQUIRE(length && sscanf(length, "Content-Length: %zu", &n) == 1);
    struct sv_input *in;
    struct sv_err err = {0};
    REQUIRE(sv_input_open_memory(body_of(got), n, "answer", &in, &err) == 0);
    CHECK_INT_EQ(sv_input_need(in, LARGE + 1, &err), 0);
    CHECK(in->len == LARGE && in->data[0] == 'a' && in->data[LARGE - 1] == 'a' + (LARGE - 1) % 7);
    CHECK(!in->truncated && !in->has_trailing);
    sv_input_close(in);
    sv_web_close(w);
}

/* The text with the port for each %; how long it is. */
static size_t put_port(char *to, const char *text, unsigned port)
{
    char *at = to;
    for (; *text; text++) {
        if (*text == '%')
            at += snprintf(at, 8, "%u", port);
        else
            *at++ = *text;
    }
    return (size_t)(at - to);
}

TEST(only_this_machines_pages_with_the_token)
{
    struct sv_web *w = open_web(NULL);
    char own[64], token[128], wrong[64];
    unsigned port = sv_web_port(w);
    CHECK(strlen(sv_web_token(w)) == 32 && strspn(sv_web_token(w), "0123456789abcdef") == 32);
    static const struct {
        const char *host, *origin; /* with the port for % */
        unsigned status;
    } rows[] = {
        {"127.0.0.1:%", NULL, 200},
        {"localhost:%", NULL, 200},
        {"[::1]:%", NULL, 200},
        {"localhost:%", "http://localhost:%", 200},
        {"localhost:%", "http://127.0.0.1:%", 403},
        {"localhost:%", "https://localhost:%", 403},
        {"localhost:%", "http://example.org", 403},
        {"localhost:%", "null", 403},
        {"localhost", NULL, 403},
        {"localhost:1", NULL, 403},
        {"localhost.example.org:%", NULL, 403},
        {"example.org:%", "http://example.org:%", 403},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char headers[400];
        size_t n = (size_t)snprintf(headers, sizeof headers, "Host: ");
        n += put_port(headers + n, rows[i].host, port);
        n +=
            (size_t)snprintf(headers + n, sizeof headers - n, rows[i].origin ? "\r\nOrigin: " : "");
        n += rows[i].origin ? put_port(headers + n, rows[i].origin, port) : 0;
        snprintf(headers + n, sizeof headers - n, "\r\n");
        CONTEXT("%s", headers);
        CHECK_UINT_EQ(status_of(ask(w, "GET /a", headers, "")), rows[i].status);
    }
    CONTEXT("tokens");
    snprintf(own, sizeof own, "%s", sv_web_token(w));
    snprintf(token, sizeof token, "X-Stave-Token: %s\r\n", own);
    CHECK_UINT_EQ(status_of(ask(w, "GET /api/x", token, "")), 200);
    CHECK_UINT_EQ(status_of(ask(w, "GET /api/x", "", "")), 401);
    CHECK_UINT_EQ(status_of(ask(w, "GET /api", "", "")), 401);
    CHECK_UINT_EQ(status_of(ask(w, "GET /ap", "", "")), 200);
    for (size_t i = 0; i < 33; i += 8) { /* a wrong digit, and one that is missing or too many */
        snprintf(wrong, sizeof wrong, "%s", own);
        wrong[i < 32 ? i : 31] = i < 32 ? (wrong[i] == '0' ? '1' : '0') : '\0';
        snprintf(token, sizeof token, "X-Stave-Token: %s\r\n", wrong);
        CHECK_UINT_EQ(status_of(ask(w, "GET /api/x", token, "")), 401);
    }
    snprintf(token, sizeof token, "X-Stave-Token: %s0\r\n", own);
    CHECK_UINT_EQ(status_of(ask(w, "GET /api/x", token, "")), 401);
    sv_web_close(w);
}

TEST(bodies_of_requests)
{
    struct sv_web *w = open_web(NULL);
    char body[1100], length[64], all[1200];
    memset(body, 'b', sizeof body);
    body[1000] = '\0';
    CHECK_STR_EQ(body_of(ask(w, "POST /a", "Content-Length: 5\r\n", "hello")), "5:hello");
    CHECK_STR_EQ(body_of(ask(w, "POST /a", "Content-Length: 0\r\n", "")), "0:");
    CHECK_STR_EQ(body_of(ask(w, "POST /a", "Transfer-Encoding: chunked\r\n",
                             "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")),
                 "5:abcde");
    snprintf(length, sizeof length, "Content-Length: 1000\r\n");
    snprintf(all, sizeof all, "1000:%s", body);
    CHECK_STR_EQ(body_of(ask(w, "POST /a", length, body)), all);
    CHECK_UINT_EQ(status_of(ask(w, "POST /a", "Content-Length: 1001\r\n", "")), 413);
    snprintf(all, sizeof all, "3e9\r\n%sb\r\n0\r\n\r\n", body); /* 1001 bytes, not said before */
    CHECK_UINT_EQ(status_of(ask(w, "POST /a", "Transfer-Encoding: chunked\r\n", all)), 413);
    snprintf(all, sizeof all, "3e8\r\n%s\r\n0\r\n\r\n", body);
    CHECK_UINT_EQ(status_of(ask(w, "POST /a", "Transfer-Encoding: chunked\r\n", all)), 200);
    static const char *const bad[] = {"Content-Length: 5\r\nContent-Length: 5\r\n",
                                      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                      "Transfer-Encoding: gzip\r\n", "Content-Length : 5\r\n",
                                      "Content-Length: 5x\r\n"};
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        CONTEXT("%s", bad[i]);
        CHECK_UINT_EQ(status_of(ask(w, "POST /a", bad[i], "hello")), 400);
    }
    sv_web_close(w);
}

TEST(both_families_and_ports_that_are_taken)
{
    struct sv_web *w = open_web(NULL);
    char text[200];
    int fd = connect_to(w, AF_INET6);
    if (fd >= 0) {
        snprintf(text, sizeof text,
                 "GET /a HTTP/1.1\r\nHost: [::1]:%u\r\nConnection: close\r\n\r\n", sv_web_port(w));
        CHECK_STR_EQ(body_of(talk(fd, text)), "/a x=- h=- client=0 uid=1");
    }
    struct sv_web_options o = {.answer = answer, .port = sv_web_port(w)};
    struct sv_web *second = NULL;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_web_open(&o, &second, &err), SV_EIO);
    CHECK(strstr(err.msg, "cannot listen on port") != NULL);
    sv_web_close(second);
    sv_web_close(w);
}

TEST(a_socket_that_only_this_user_can_open)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", test_scratch("s"));
    umask(0);
    struct sv_web *w = open_web(a.sun_path);
    CHECK(stat(a.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600);
    CHECK_UINT_EQ(umask(0), 0); /* as it was */
    static const struct {
        const char *host;
        unsigned status;
    } rows[] = {{"localhost", 200},   {"localhost:8080", 200}, {"127.0.0.1:1", 200},
                {"localhost:x", 403}, {"localhost:80x", 403},  {"localhostx", 403},
                {"example.org", 403}, {"[::1]:99", 200},       {"localhost:", 200}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char text[200];
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CONTEXT("%s", rows[i].host);
        REQUIRE(connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
        snprintf(text, sizeof text, "GET /a HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 rows[i].host);
        CHECK_UINT_EQ(status_of(talk(fd, text)), rows[i].status);
    }
    struct sv_web_options o = {.answer = answer, .socket = a.sun_path};
    struct sv_web *second = NULL;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_web_open(&o, &second, &err), SV_EIO); /* the name is taken */
    sv_web_close(second);
    CHECK_INT_EQ(access(a.sun_path, F_OK), 0);
    char longest[200];
    memset(longest, 'n', sizeof longest);
    longest[sizeof a.sun_path] = '\0';
    o.socket = longest;
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_web_open(&o, &second, &err), SV_EUSAGE);
    CHECK_STR_EQ(err.msg, "--socket: a name of at most 107 bytes");
    sv_web_close(second);
    sv_web_close(w);
    CHECK_INT_EQ(access(a.sun_path, F_OK), -1);
}

/* ---- addresses ---- */

TEST(addresses)
{
    static const struct {
        const char *text;
        uint32_t address;
        uint16_t port;
        bool is_good;
    } rows[] = {
        {"127.0.0.1:80", 0x7f000001, 80, true},
        {"localhost:0", 0x7f000001, 0, true},
        {"0.0.0.0:65535", 0, 65535, true},
        {"0.0.0.0:65536", 0, 0, false},
        {"127.0.0.1", 0, 0, false},
        {"127.0.0.1:", 0, 0, false},
        {"127.0.0.1:x", 0, 0, false},
        {"127.0.0.1:80x", 0, 0, false},
        {"127.0.0.1:-1", 0, 0, false},
        {"127.0.0.1: 1", 0, 0, false},
        {"host:80", 0, 0, false},
        {":80", 0, 0, false},
        {"::1:80", 0, 0, false},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sockaddr_in a;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].text);
        int code = sv_address_read(rows[i].text, &a, &err);
        CHECK_INT_EQ(code, rows[i].is_good ? 0 : SV_EUSAGE);
        if (code == 0) {
            CHECK_UINT_EQ(ntohl(a.sin_addr.s_addr), rows[i].address);
            CHECK_UINT_EQ(ntohs(a.sin_port), rows[i].port);
        }
    }
    char longest[80];
    memset(longest, '1', sizeof longest);
    memcpy(longest + 64, ":80", 4);
    struct sockaddr_in a;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_address_read(longest, &a, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "must be HOST:PORT") != NULL);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_address_read(longest + 1, &a, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "is not an IPv4 address") != NULL);
}

TEST(two_listeners_of_one_server)
{
    struct sv_listeners l, second;
    struct sv_err err = {0};
    char address[32];
    REQUIRE(sv_listeners_open(&l, "127.0.0.1:0", 0, &err) == 0);
    CHECK(l.main >= 0 && l.metrics == -1 && l.port != 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", l.port);
    CHECK_INT_EQ(sv_listeners_open(&second, address, 0, &err), SV_EIO);
    CHECK(second.main == -1 && strstr(err.msg, "is another server running?") != NULL);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_listeners_open(&second, "127.0.0.1:0", l.port, &err), SV_EIO);
    CHECK(strstr(err.msg, "cannot listen on metrics_port") != NULL);
    sv_listeners_close(&second);
    uint16_t free_port = l.port;
    sv_listeners_close(&l);
    CHECK(l.main == -1 && l.metrics == -1);
    err = (struct sv_err){0};
    REQUIRE(sv_listeners_open(&l, "127.0.0.1:0", free_port, &err) == 0);
    CHECK(l.main >= 0 && l.metrics >= 0 && l.port != free_port);
    sv_listeners_close(&l);
    CHECK_INT_EQ(sv_listeners_open(&l, "nowhere", 0, &err), SV_EUSAGE);
}

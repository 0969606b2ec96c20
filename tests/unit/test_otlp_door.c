/* Requests over HTTP to the receiver of OTLP: which are taken, how the others are answered, and the
 * trace that the spool becomes. */
#include "core/base/buf.h"
#include "core/files/claim.h"
#include "core/files/output.h"
#include "files/open.h"
#include "listen/otlp.h"
#include "listen/sender.h"
#include "net/http_post.h"
#include "net/web.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define JSON     "application/json"
#define PROTOBUF "application/x-protobuf"
#define SPAN(id, name, start, end, more)                                                       \
    "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"" id "\",\"name\":\"" name \
    "\",\"startTimeUnixNano\":\"" start "\",\"endTimeUnixNano\":\"" end "\"" more "}"
#define REQUEST(spans) "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[" spans "]}]}]}"
#define ONE            REQUEST(SPAN("b7ad6b7169203331", "one", "1000", "3000", ""))

enum { LIMIT_MS = 1000000 }; /* never reached */

struct rig {
    int fd;
    struct sv_spool spool;
    struct sv_otlp_door *door;
    struct sv_http_target to;
    struct sv_http_reply reply;
};

static void rig_open(struct rig *r, const char *token, uint64_t limit)
{
    struct sv_otlp_options o = {.address = "127.0.0.1:0", .no_grpc = true, .token = token};
    struct sv_err err = {0};
    *r = (struct rig){.fd = memfd_create("spool", MFD_CLOEXEC)};
    if (!(sv_web_load(&(struct sv_err){0}) == 0))
        SKIP("built without libmicrohttpd");
    REQUIRE(r->fd >= 0);
    REQUIRE(sv_spool_begin(&r->spool, r->fd, limit, &(struct sv_output_choice){0}, &err) == 0);
    REQUIRE(sv_otlp_open(&o, &r->door, &err) == 0);
    REQUIRE(sv_otlp_start(r->door, &r->spool, &err) == 0);
    CHECK_UINT_EQ(sv_otlp_grpc_port(r->door), 0);
    snprintf(r->to.host, sizeof r->to.host, "127.0.0.1");
    snprintf(r->to.port, sizeof r->to.port, "%u", sv_otlp_port(r->door));
    snprintf(r->to.path, sizeof r->to.path, "/v1/traces");
}

/* The status of the answer, whose body is in r->reply until the next one. */
static unsigned post(struct rig *r, const char *type, const char *headers, const void *bytes,
                     size_t len)
{
    struct sv_err err = {0};
    sv_buf_fini(&r->reply.body);
    CHECK_INT_EQ(sv_http_post(&r->to, type, headers, bytes, len, LIMIT_MS, &r->reply, &err), 0);
    return r->reply.status;
}

static unsigned post_text(struct rig *r, const char *type, const char *headers, const char *text)
{
    return post(r, type, headers, text, strlen(text));
}

static const char *body(struct rig *r)
{
    return sv_buf_cstr(&r->reply.body);
}

static struct sv_otlp_counts rig_close(struct rig *r)
{
    struct sv_otlp_counts c = sv_otlp_close(r->door);
    sv_buf_fini(&r->reply.body);
    return c;
}

static void pack(struct sv_buf *to, const void *bytes, size_t len, enum sv_compression form)
{
    struct sv_err err = {0};
    struct sv_output *o;
    sv_buf_init(to, SIZE_MAX);
    REQUIRE(sv_output_open_buf(to, form, &o, &err) == SV_OK);
    sv_output_write(o, bytes, len);
    REQUIRE(sv_output_close(o, &err) == SV_OK);
}

/* ---- which are taken ---- */

TEST(types_and_paths)
{
    static const struct {
        const char *path, *type, *headers;
        unsigned status;
        const char *message;
    } rows[] = {
        {"/v1/traces", JSON, NULL, 200, "{}"},
        {"/v1/traces", "Application/JSON; charset=utf-8", NULL, 200, "{}"},
        {"/v1/traces", "application/json\tx", NULL, 200, "{}"},
        {"/v1/traces", JSON, "Origin: http://127.0.0.1\r\n", 403,
         "requests of web pages are refused"},
        {"/v1/metrics", JSON, NULL, 404, "only traces are taken: POST /v1/traces"},
        {"/v1/traces/", JSON, NULL, 404, "only traces are taken: POST /v1/traces"},
        {"/v1/traces", "application/jsonx", NULL, 415, "Content-Type must be"},
        {"/v1/traces", "text/plain", NULL, 415, "Content-Type must be"},
        {"/v1/traces", JSON, "Content-Encoding: identity\r\n", 200, "{}"},
        {"/v1/traces", JSON, "Content-Encoding: Identity\r\n", 200, "{}"},
        {"/v1/traces", JSON, "Content-Encoding: br\r\n", 415,
         "Content-Encoding must be gzip, zstd or identity"},
        {"/v1/traces", JSON, "Content-Encoding: gzipped\r\n", 415, "Content-Encoding must be"},
        {"/v1/traces", JSON, "Content-Encoding: gzip\r\n", 400, "the body cannot be decompressed"},
        {"/v1/traces", JSON, "Content-Encoding: ZSTD\r\n", 400, "the body cannot be decompressed"},
    };
    struct rig r;
    rig_open(&r, NULL, UINT64_MAX);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        snprintf(r.to.path, sizeof r.to.path, "%s", rows[i].path);
        CHECK_UINT_EQ(post_text(&r, rows[i].type, rows[i].headers, ONE), rows[i].status);
        CHECK(strstr(body(&r), rows[i].message) != NULL);
    }
    struct sv_otlp_counts c = rig_close(&r);
    CHECK_UINT_EQ(c.requests, 5);
    CHECK_UINT_EQ(c.spans, 5);
    CHECK_UINT_EQ(c.rejected, 0);
    CHECK_UINT_EQ(c.refused, 2); /* whose bodies were read */
    CHECK(!c.lacks_space);
    close(r.fd);
}

TEST(tokens)
{
    static const struct {
        const char *headers;
        unsigned status;
    } rows[] = {
        {NULL, 401},
        {"Authorization: Bearer \r\n", 401},
        {"Authorization: secret\r\n", 401},
        {"Authorization: Basic secret\r\n", 401},
        {"Authorization: Bearer secre\r\n", 401},
        {"Authorization: Bearer secret2\r\n", 401},
        {"Authorization: Bearer Secret\r\n", 401},
        {"Authorization: Bearer secret\r\n", 200},
        {"authorization: bearer secret\r\n", 200},
    };
    struct rig r;
    rig_open(&r, "secret", UINT64_MAX);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_UINT_EQ(post_text(&r, JSON, rows[i].headers, ONE), rows[i].status);
        CHECK(rows[i].status == 200 || strstr(body(&r), "\"code\":16,") != NULL);
    }
    CHECK_UINT_EQ(rig_close(&r).spans, 2);
    close(r.fd);
}

/* What a client that is not sv_http_post() says, and all that comes back. */
static const char *converse(const struct rig *r, const char *text)
{
    static char answer[8192];
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)strtoul(r->to.port, NULL, 10)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t at = 0;
    REQUIRE(connect(fd, (const struct sockaddr *)&a, sizeof a) == 0);
    REQUIRE(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
    for (ssize_t n; (n = recv(fd, answer + at, sizeof answer - 1 - at, 0)) > 0;)
        at += (size_t)n;
    answer[at] = '\0';
    close(fd);
    return answer;
}

TEST(other_methods_and_headers_of_answers)
{
    struct rig r;
    rig_open(&r, NULL, UINT64_MAX);
    const char *got =
        converse(&r, "GET /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    CHECK(strncmp(got, "HTTP/1.1 405 ", 13) == 0);
    CHECK(strstr(got, "only POST is supported here") != NULL);
    CHECK(strstr(got, "\r\nContent-Type: " PROTOBUF "\r\n") != NULL);
    CHECK(strstr(got, "\r\nX-Content-Type-Options: nosniff\r\n") != NULL);
    CHECK(strstr(got, "\r\nCache-Control: no-store\r\n") != NULL);
    CHECK(strstr(got, "Retry-After") == NULL);
    got = converse(&r, "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: " JSON
                       "\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    CHECK(strncmp(got, "HTTP/1.1 200 ", 13) == 0);
    CHECK(strstr(got, "\r\nContent-Type: " JSON "\r\n") != NULL);
    CHECK_UINT_EQ(rig_close(&r).requests, 1);
    close(r.fd);
}

/* ---- bodies ---- */

TEST(packed_bodies)
{
    static const struct {
        enum sv_compression form;
        const char *header;
    } rows[] = {{SV_GZIP, "Content-Encoding: gzip\r\n"},
                {SV_GZIP, "Content-Encoding: GZIP\r\n"},
#ifdef SV_HAVE_ZSTD
                {SV_ZSTD, "Content-Encoding: zstd\r\n"}
#endif
    };
    struct rig r;
    rig_open(&r, NULL, UINT64_MAX);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        CONTEXT("row %zu", i);
        pack(&b, ONE, strlen(ONE), rows[i].form);
        CHECK_UINT_EQ(post(&r, JSON, rows[i].header, b.data, b.len), 200);
        CHECK_UINT_EQ(post(&r, JSON, rows[i].header, b.data, b.len - 1), 400); /* cut */
        sv_buf_add(&b, "x", 1);
        CHECK_UINT_EQ(post(&r, JSON, rows[i].header, b.data, b.len), 400);
        CHECK(strstr(body(&r), "the body cannot be decompressed") != NULL);
        CHECK_UINT_EQ(post(&r, JSON, rows[i].header, "", 0), 400);
        sv_buf_fini(&b);
    }
    CHECK_UINT_EQ(rig_close(&r).spans, TEST_COUNT(rows));
    close(r.fd);
}

TEST(a_packed_body_has_its_limit)
{
    enum { MOST = (64 << 20) + 1 };
    char *zeros = calloc(MOST, 1);
    struct sv_buf b;
    struct rig r;
    REQUIRE(zeros != NULL);
    memset(zeros, ' ', MOST);
    rig_open(&r, NULL, UINT64_MAX);
    pack(&b, zeros, MOST, SV_GZIP);
    CHECK_UINT_EQ(post(&r, JSON, "Content-Encoding: gzip\r\n", b.data, b.len), 413);
    CHECK(strstr(body(&r), "at most 64 MiB") != NULL && strstr(body(&r), "\"code\":8,") != NULL);
    sv_buf_fini(&b);
    pack(&b, zeros, MOST - 1, SV_GZIP); /* not too large, but no object */
    CHECK_UINT_EQ(post(&r, JSON, "Content-Encoding: gzip\r\n", b.data, b.len), 400);
    sv_buf_fini(&b);
    free(zeros);
    CHECK_UINT_EQ(rig_close(&r).refused, 2);
    close(r.fd);
}

TEST(bodies_that_are_no_request)
{
    struct rig r;
    rig_open(&r, NULL, UINT64_MAX);
    CHECK_UINT_EQ(post_text(&r, JSON, NULL, ""), 400);
    CHECK(strstr(body(&r), "byte 0: a JSON object is expected") != NULL);
    CHECK_UINT_EQ(post_text(&r, JSON, NULL, "{} x"), 400);
    CHECK(strstr(body(&r), "byte 2: ") != NULL && strstr(body(&r), "\"code\":3,") != NULL);
    CHECK_UINT_EQ(post_text(&r, JSON, NULL, " {} \n"), 200);
    CHECK_UINT_EQ(post_text(&r, PROTOBUF, NULL, "\x0a\x7f"), 400);
    CHECK(r.reply.body.len > 4 && memcmp(r.reply.body.data, "\x08\x03\x12", 3) == 0);
    CHECK(strstr(body(&r) + 4, "the body is not an ExportTraceServiceRequest") != NULL);
    CHECK_UINT_EQ(post_text(&r, PROTOBUF, NULL, ""), 200);
    CHECK_UINT_EQ(r.reply.body.len, 0);
    struct sv_otlp_counts c = rig_close(&r);
    CHECK_UINT_EQ(c.requests, 2);
    CHECK_UINT_EQ(c.refused, 3);
    struct sv_spool_view v;
    REQUIRE(sv_spool_look(r.fd, &v, NULL) == 0);
    CHECK_UINT_EQ(v.n, 0); /* no span, no sender */
    sv_spool_view_fini(&v);
    close(r.fd);
}

TEST(spans_that_are_rejected_are_counted)
{
    struct rig r;
    rig_open(&r, NULL, UINT64_MAX);
    CHECK_UINT_EQ(post_text(&r, JSON, NULL,
                            REQUEST(SPAN("b7ad6b7169203331", "a", "1000", "3000",
                                         "") "," SPAN("b7ad", "b", "1000", "3000", ""))),
                  200);
    CHECK_STR_EQ(body(&r), "{\"partialSuccess\":{\"rejectedSpans\":\"1\",\"errorMessage\":"
                           "\"trace_id or span_id is not valid\"}}");
    struct sv_otlp_counts c = rig_close(&r);
    CHECK(c.requests == 1 && c.spans == 1 && c.rejected == 1 && c.refused == 0);
    close(r.fd);
}

TEST(a_spool_that_is_full)
{
    struct rig r;
    rig_open(&r, NULL, SV_SPOOL_HEADER + 400);
    CHECK_UINT_EQ(post_text(&r, JSON, NULL, ONE), 200);
    for (int i = 0; i < 8; i++)
        post_text(&r, JSON, NULL, ONE);
    CHECK_UINT_EQ(r.reply.status, 503);
    CHECK(strstr(body(&r), "\"code\":14,") && strstr(body(&r), "no space is left for spans"));
    CHECK_UINT_EQ(r.reply.retry_after_s, 1);
    struct sv_otlp_counts c = rig_close(&r);
    CHECK(c.lacks_space && c.refused > 0 && c.spans == c.requests && c.spans + c.refused == 9);
    close(r.fd);
}

/* ---- addresses ---- */

TEST(addresses_for_others_need_a_token)
{
    static const char *const rows[] = {"0.0.0.0:0", "10.0.0.1:0", "128.0.0.1:0"};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_otlp_options o = {.address = rows[i], .no_grpc = true};
        struct sv_otlp_door *d = NULL;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i]);
        CHECK_INT_EQ(sv_otlp_open(&o, &d, &err), SV_EUSAGE);
        CHECK(strstr(err.msg, "needs --token") != NULL || !(sv_web_load(&(struct sv_err){0}) == 0));
        sv_otlp_close(d);
    }
    struct sv_otlp_options o = {.address = "127.0.0.1:0", .grpc = "0.0.0.0:0"};
    struct sv_otlp_door *d = NULL;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_otlp_open(&o, &d, &err), SV_EUSAGE);
    sv_otlp_close(d);
    if ((sv_web_load(&(struct sv_err){0}) == 0)) {
        o = (struct sv_otlp_options){.address = "localhost:0", .no_grpc = true};
        CHECK_INT_EQ(sv_otlp_open(&o, &d, &err), 0);
        sv_otlp_close(d);
        o = (struct sv_otlp_options){.address = "0.0.0.0:0", .token = "t"};
        CHECK_INT_EQ(sv_otlp_open(&o, &d, &err), 0);
        CHECK(sv_otlp_port(d) != 0 && sv_otlp_without_grpc(d) == NULL);
        sv_otlp_close(d);
    }
    CHECK_UINT_EQ(sv_otlp_close(NULL).requests, 0);
}

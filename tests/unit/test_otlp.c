/* OTLP's JSON to protobuf and back, what a receiver keeps of a request, and URLs of collectors. */
#include "core/base/json.h"
#include "core/base/wire.h"
#include "core/files/input.h"
#include "formats/formats.h"
#include "formats/otlp/check.h"
#include "formats/otlp/json.h"
#include "net/http_post.h"
#include "tests/harness/canon.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

/* Through protobuf and back; NULL: refused, and *why says why. In a buffer that lives until the
 * next call. */
static const char *there_and_back(const char *json, struct sv_otlp_json *how)
{
    static char result[4096];
    static uint8_t padded[8192];
    struct sv_buf message, text;
    struct sv_json j;
    size_t len = strlen(json);
    memset(padded, 0, sizeof padded);
    memcpy(padded, json, len);
    *how = (struct sv_otlp_json){0};
    sv_buf_init(&message, 1 << 20);
    sv_buf_init(&text, 1 << 20);
    const uint8_t *end = sv_otlp_from_json(&sv_otlp_request, padded, padded + len, &message, how);
    sv_json_init(&j, &text);
    if (end && sv_otlp_to_json(&sv_otlp_request, message.data, message.len, &j))
        snprintf(result, sizeof result, "%s", sv_buf_cstr(&text));
    sv_buf_fini(&message);
    sv_buf_fini(&text);
    return end ? result : NULL;
}

#define SPAN(members)      "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{" members "}]}]}]}"
#define ATTRIBUTE(members) SPAN("\"attributes\":[{\"key\":\"k\",\"value\":{" members "}}]")

TEST(json_comes_back)
{
    static const struct {
        const char *in, *out; /* NULL: as it was */
    } rows[] = {
        {"{}", NULL},
        {SPAN("\"traceId\":\"0af7651916cd43dd8448eb211c80319c\""), NULL},
        {SPAN("\"traceId\":\"0AF7651916CD43DD8448EB211C80319C\""),
         SPAN("\"traceId\":\"0af7651916cd43dd8448eb211c80319c\"")},
        {SPAN("\"startTimeUnixNano\":\"18446744073709551615\""), NULL},
        {SPAN("\"startTimeUnixNano\":1544712660000000001"),
         SPAN("\"startTimeUnixNano\":\"1544712660000000001\"")},
        {SPAN("\"startTimeUnixNano\":1.5e3"), SPAN("\"startTimeUnixNano\":\"1500\"")},
        {SPAN("\"kind\":\"SPAN_KIND_SERVER\""), SPAN("\"kind\":2")},
        {SPAN("\"status\":{\"code\":\"STATUS_CODE_ERROR\"}"), SPAN("\"status\":{\"code\":2}")},
        {SPAN("\"name\":null , \"flags\" : 257"), SPAN("\"flags\":257")},
        {SPAN("\"name\":\"a\\u00e4\\n\\\"\""), SPAN("\"name\":\"a\xc3\xa4\\n\\\"\"")},
        {ATTRIBUTE("\"intValue\":\"-9223372036854775808\""), NULL},
        {ATTRIBUTE("\"intValue\":-7"), ATTRIBUTE("\"intValue\":\"-7\"")},
        {ATTRIBUTE("\"doubleValue\":0.1"), NULL},
        {ATTRIBUTE("\"doubleValue\":\"NaN\""), NULL},
        {ATTRIBUTE("\"doubleValue\":\"-Infinity\""), NULL},
        {ATTRIBUTE("\"boolValue\":false"), NULL},
        {ATTRIBUTE("\"bytesValue\":\"AQID/w==\""), NULL},
        {ATTRIBUTE("\"bytesValue\":\"AQID_w\""), ATTRIBUTE("\"bytesValue\":\"AQID/w==\"")},
        {ATTRIBUTE("\"arrayValue\":{\"values\":[{\"stringValue\":\"\"},{}]}"), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sv_otlp_json how;
        const char *got = there_and_back(rows[i].in, &how);
        CONTEXT("%s", rows[i].in);
        CHECK_STR_EQ(got ? got : how.why, rows[i].out ? rows[i].out : rows[i].in);
    }
}

TEST(json_that_is_refused)
{
    static const char *const wrong[] = {
        "",
        "[",
        "{\"resourceSpans\":{}}",
        "{\"resourceSpans\":[}",
        "{\"resourceSpans\":[]",
        "{\"resourceSpans\" []}",
        SPAN("\"traceId\":\"0g\""),
        SPAN("\"traceId\":\"abc\""),
        SPAN("\"kind\":\"SPAN_KIND_\""),
        SPAN("\"startTimeUnixNano\":-1"),
        SPAN("\"startTimeUnixNano\":\"18446744073709551616\""),
        SPAN("\"startTimeUnixNano\":\"1x\""),
        SPAN("\"startTimeUnixNano\":0.5"),
        SPAN("\"flags\":4294967296"),
        SPAN("\"name\":7"),
        ATTRIBUTE("\"intValue\":\"9223372036854775808\""),
        ATTRIBUTE("\"boolValue\":1"),
        ATTRIBUTE("\"bytesValue\":\"A*\""),
        ATTRIBUTE("\"doubleValue\":\"Nan\""),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sv_otlp_json how;
        CONTEXT("%s", wrong[i]);
        CHECK(there_and_back(wrong[i], &how) == NULL);
        CHECK(how.why != NULL);
    }
}

TEST(json_counts_unknown_keys)
{
    struct sv_otlp_json how;
    CHECK_STR_EQ(there_and_back("{\"a\":[{\"b\":\"]\"}],\"resourceSpans\":[],\"c\":1}", &how),
                 "{}");
    CHECK_UINT_EQ(how.n_unknown, 2);
    CHECK(how.unknown_len == 1 && *how.unknown == 'a');
}

/* ---- what is kept ---- */

struct made {
    struct sv_buf b;
    size_t rs, ss;
};

static void begin(struct made *m)
{
    sv_buf_init(&m->b, 1 << 20);
    m->rs = sv_put_begin(&m->b, OTLP_RESOURCE_SPANS);
    m->ss = sv_put_begin(&m->b, OTLP_RS_SCOPE_SPANS);
}

static void add(struct made *m, size_t id_bytes, uint64_t start, uint64_t end, uint64_t event)
{
    size_t span = sv_put_begin(&m->b, OTLP_SS_SPANS);
    sv_put_bytes(&m->b, OTLP_SPAN_TRACE_ID, "0123456789abcdef", 16);
    sv_put_bytes(&m->b, OTLP_SPAN_ID, "01234567", id_bytes);
    sv_put_fixed64(&m->b, OTLP_SPAN_START, start);
    sv_put_fixed64(&m->b, OTLP_SPAN_END, end);
    size_t at = sv_put_begin(&m->b, OTLP_SPAN_EVENTS);
    sv_put_fixed64(&m->b, OTLP_EVENT_TIME, event);
    sv_put_end(&m->b, at);
    sv_put_end(&m->b, span);
}

static void end(struct made *m)
{
    sv_put_end(&m->b, m->ss);
    sv_put_end(&m->b, m->rs);
}

TEST(check_keeps_a_request_as_it_is)
{
    struct made m;
    struct sv_otlp_checked c;
    struct sv_buf kept;
    begin(&m);
    add(&m, 8, 5, 9, 7);
    add(&m, 8, 5, INT64_MAX, INT64_MAX);
    add(&m, 8, 5, 0, 0); /* has not ended */
    end(&m);
    sv_put_u64(&m.b, 99, 1); /* a field of another version */
    sv_buf_init(&kept, 1 << 20);
    REQUIRE(sv_otlp_check(m.b.data, m.b.len, &kept, &c));
    CHECK_UINT_EQ(c.spans, 3);
    CHECK_UINT_EQ(c.rejected, 0);
    CHECK(kept.len == m.b.len && memcmp(kept.data, m.b.data, kept.len) == 0);
    /* Cut anywhere it is no request, except where a whole one ends. */
    for (size_t n = 1; n + 3 < m.b.len; n++) {
        sv_buf_clear(&kept);
        CHECK(!sv_otlp_check(m.b.data, n, &kept, &c));
    }
    sv_buf_fini(&kept);
    sv_buf_fini(&m.b);
}

TEST(check_rejects_spans_one_by_one)
{
    struct made m, want;
    struct sv_otlp_checked c;
    struct sv_buf kept;
    begin(&m);
    add(&m, 7, 5, 9, 7);
    add(&m, 8, 6, 9, 7);
    add(&m, 8, 0, 9, 7);
    add(&m, 8, 9, 5, 7);
    add(&m, 8, (uint64_t)INT64_MAX + 1, UINT64_MAX, 7);
    add(&m, 8, 5, 9, (uint64_t)INT64_MAX + 1);
    end(&m);
    begin(&want);
    add(&want, 8, 6, 9, 7);
    end(&want);
    sv_buf_init(&kept, 1 << 20);
    REQUIRE(sv_otlp_check(m.b.data, m.b.len, &kept, &c));
    CHECK_UINT_EQ(c.spans, 1);
    CHECK_UINT_EQ(c.rejected, 5);
    CHECK_STR_EQ(c.why, "trace_id or span_id is not valid");
    CHECK(kept.len == want.b.len && memcmp(kept.data, want.b.data, kept.len) == 0);
    sv_buf_fini(&kept);
    sv_buf_fini(&m.b);
    sv_buf_fini(&want.b);
}

/* ---- URLs ---- */

TEST(urls_of_collectors)
{
    static const struct {
        const char *url, *host, *port, *path; /* host NULL: refused */
    } rows[] = {
        {"http://127.0.0.1:4318", "127.0.0.1", "4318", "/v1/traces"},
        {"http://host", "host", "4318", "/v1/traces"},
        {"http://host/", "host", "4318", "/v1/traces"},
        {"HTTP://host:1/a/b?c=d", "host", "1", "/a/b?c=d"},
        {"http://[::1]:65535/x", "::1", "65535", "/x"},
        {"http://[::1]", "::1", "4318", "/v1/traces"},
        {"http://[h]:7", "h", "7", "/v1/traces"},
        {"http://", NULL, NULL, NULL},
        {"http://[", NULL, NULL, NULL},
        {"http://[]", NULL, NULL, NULL},
        {"http://[::1]x", NULL, NULL, NULL},
        {"http://[::1]:", NULL, NULL, NULL},
        {"http://h:123456", NULL, NULL, NULL},
        {"http://h:1?q", NULL, NULL, NULL},
        {"http://h\x7f", NULL, NULL, NULL},
        {"http://h ", NULL, NULL, NULL},
        {"http://:1", NULL, NULL, NULL},
        {"http://h:", NULL, NULL, NULL},
        {"http://h:0", NULL, NULL, NULL},
        {"http://h:65536", NULL, NULL, NULL},
        {"http://h:1x", NULL, NULL, NULL},
        {"http://u:p@h:1", NULL, NULL, NULL},
        {"http://[::1", NULL, NULL, NULL},
        {"http://h:1/a\r\nb", NULL, NULL, NULL},
        {"http://h:1/a#b", NULL, NULL, NULL},
        {"https://h:1", NULL, NULL, NULL},
        {"h:1", NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sv_http_target t = {0};
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].url);
        int code = sv_http_target_read(&t, rows[i].url, "4318", "/v1/traces", &err);
        CHECK_INT_EQ(code, rows[i].host ? 0 : SV_EUSAGE);
        if (rows[i].host && code == 0) {
            CHECK_STR_EQ(t.host, rows[i].host);
            CHECK_STR_EQ(t.port, rows[i].port);
            CHECK_STR_EQ(t.path, rows[i].path);
        }
    }
}

/* The same for gRPC, where there is no path. */
TEST(otlp_urls_of_grpc)
{
    static const struct {
        const char *url, *host, *port; /* host NULL: refused */
    } rows[] = {
        {"grpc://h", "h", "4317"},       {"GRPC://h/", "h", "4317"},
        {"grpc://[::1]:1", "::1", "1"},  {"grpc://h:1/v1/traces", NULL, NULL},
        {"grpc://h:1?a", NULL, NULL},    {"grpc://", NULL, NULL},
        {"grpcs://h:1", NULL, NULL},     {"http://h:1", NULL, NULL},
        {"grpc://h:1/\r\n", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sv_http_target t = {0};
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].url);
        int code = sv_grpc_target_read(&t, rows[i].url, "4317", &err);
        CHECK_INT_EQ(code, rows[i].host ? 0 : SV_EUSAGE);
        if (rows[i].host && code == 0) {
            CHECK_STR_EQ(t.host, rows[i].host);
            CHECK_STR_EQ(t.port, rows[i].port);
        }
    }
}

/* A number has a place, too: of a field of a scope, and of an attribute's value. */
TEST(unknown_fields_have_their_place)
{
#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1
    static const struct {
        const uint8_t *bytes;
        size_t len;
        int64_t pos;
    } rows[] = {
        {BYTES("\012\004\022\002xM"), 4},
        {BYTES("\012;\0229\0227\012\0200123456789abcdef\022\0100123456791111111"
               "1A21111111J\007\012\001k\022\002xM"),
         59},
    };
#undef BYTES
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_source *source;
        struct sv_report report;
        struct sv_buf text;
        struct sv_dict *dict = sv_dict_new();
        sv_buf_init(&text, 1 << 20);
        sv_report_init(&report);
        REQUIRE(sv_input_open_memory(rows[i].bytes, rows[i].len, "otlp", &in, &err) == 0);
        REQUIRE(sv_format_open(sv_format_named("otlp"), in, NULL, dict, &report, &source, &err) ==
                0);
        canon_source(&text, source, 0);
        REQUIRE(report.n == 1);
        CHECK_STR_EQ(report.rows[0].what, "unknown field of OTLP");
        CHECK_INT_EQ(report.rows[0].first_pos, rows[i].pos);
        sv_input_close(in);
        sv_report_fini(&report);
        sv_dict_free(dict);
        sv_buf_fini(&text);
    }
}

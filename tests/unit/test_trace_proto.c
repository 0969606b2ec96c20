/* Triton's TraceSetting as JSON and back, and whatever else a client may send. */
#include "server/trace_proto.h"

#include "core/base/json_scan.h"
#include "tests/harness/test.h"

#include <string.h>

static int read(const char *bytes, size_t n, struct sv_trace_asked *asked, struct sv_buf *json)
{
    struct sv_err err = {0};
    sv_buf_init(json, 1 << 16);
    return sv_trace_proto_read((const uint8_t *)bytes, n, asked, json, &err);
}

#define ENTRY(len, key_len, key, value) "\012" len "\012" key_len key value

TEST(trace_setting_of_grpc_as_json)
{
    static const char message[] = ENTRY("\033", "\013", "trace_level", "\022\014\012\012TIMESTAMPS")
        ENTRY("\021", "\012", "trace_rate", "\022\003\012\0015")
            ENTRY("\017", "\013", "trace_count", "\022\000")
                ENTRY("\014", "\001", "k", "\022\007\012\001a\012\002\"b") "\022\003mlp";
    struct sv_trace_asked asked;
    struct sv_buf json;
    CHECK_INT_EQ(read(message, sizeof message - 1, &asked, &json), 0);
    CHECK(asked.wants);
    CHECK_UINT_EQ(asked.model_len, 3);
    CHECK_MEM_EQ(asked.model, "mlp", 3);
    CHECK_STR_EQ(sv_buf_cstr(&json), "{\"trace_level\":\"TIMESTAMPS\",\"trace_rate\":\"5\","
                                     "\"trace_count\":null,\"k\":[\"a\",\"\\\"b\"]}");
    sv_buf_fini(&json);
    CHECK_INT_EQ(read("", 0, &asked, &json), 0);
    CHECK(!asked.wants && asked.model_len == 0);
    sv_buf_fini(&json);
}

/* Cut anywhere, and with each byte changed: JSON or a refusal. */
TEST(trace_setting_of_grpc_that_is_damaged)
{
    static const char whole[] = ENTRY("\021", "\012", "trace_rate", "\022\003\012\0015")
        ENTRY("\014", "\001", "k", "\022\007\012\001a\012\002\"b") "\022\003mlp";
    struct sv_trace_asked asked;
    struct sv_buf json;
    for (size_t n = 0; n < sizeof whole; n++)
        for (int with = 0; with < 256; with += 5) {
            char bytes[sizeof whole];
            memcpy(bytes, whole, sizeof whole);
            bytes[(n + 3) % sizeof whole] = (char)with;
            if (read(bytes, n, &asked, &json) == 0)
                CHECK(sv_json_valid(json.data, json.len));
            sv_buf_fini(&json);
        }
    CHECK_INT_EQ(read("\012\002\022\000", 4, &asked, &json), SV_EUSAGE); /* no key */
    sv_buf_fini(&json);
}

TEST(trace_setting_of_grpc_as_answer)
{
    static const char text[] = "{\"trace_level\":[\"OFF\"],\"f\":\"a\\\\b\"}";
    static const char want[] = ENTRY("\024", "\013", "trace_level", "\022\005\012\003OFF")
        ENTRY("\012", "\001", "f", "\022\005\012\003a\\b");
    struct sv_buf json, out;
    sv_buf_init(&json, 1 << 10);
    sv_buf_init(&out, 1 << 10);
    sv_buf_str(&json, text);
    sv_trace_proto_write(&json, &out);
    /* Lengths may take more bytes than they need: read back what it says. */
    struct sv_trace_asked asked;
    struct sv_buf again, wanted;
    CHECK_INT_EQ(read((const char *)out.data, out.len, &asked, &again), 0);
    CHECK_INT_EQ(read(want, sizeof want - 1, &asked, &wanted), 0);
    CHECK_STR_EQ(sv_buf_cstr(&again), sv_buf_cstr(&wanted));
    sv_buf_fini(&again);
    sv_buf_fini(&wanted);
    sv_buf_fini(&json);
    sv_buf_fini(&out);
}

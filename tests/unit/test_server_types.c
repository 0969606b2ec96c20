/* Typed tensors of the inference server without StarPU: values as JSON, networks of tokens,
 * statistics; and messages of gRPC as they are unpacked. */
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "server/infer_values.h"
#include "server/model_stats.h"
#include "server/network.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

static int read_values(enum sv_datatype type, const char *text, size_t n, struct sv_tensor_value *v,
                       struct sv_err *err)
{
    size_t len = strlen(text);
    char *padded = sv_alloc(len + SV_JSON_PAD);
    memcpy(padded, text, len);
    *v = (struct sv_tensor_value){0};
    *err = (struct sv_err){0};
    int code = sv_values_read(type, padded, len, n, v, err);
    free(padded);
    return code;
}

/* Every type keeps its values from JSON to bytes and back. */
TEST(server_values_survive_json)
{
    static const struct {
        enum sv_datatype type;
        const char *text, *back;
        size_t n, len;
    } rows[] = {
        {SV_TYPE_BOOL, "[true, false, 1, 0]", "[true,false,true,false]", 4, 4},
        {SV_TYPE_INT8, "[[-128],[127]]", "[-128,127]", 2, 2},
        {SV_TYPE_UINT8, "[255, 0]", "[255,0]", 2, 2},
        {SV_TYPE_INT16, "[-32768, 32767]", "[-32768,32767]", 2, 4},
        {SV_TYPE_UINT16, "[65535]", "[65535]", 1, 2},
        {SV_TYPE_INT32, "[-2147483648, 2147483647]", "[-2147483648,2147483647]", 2, 8},
        {SV_TYPE_UINT32, "[4294967295]", "[4294967295]", 1, 4},
        {SV_TYPE_INT64, "[-9223372036854775808, 9223372036854775807]",
         "[-9223372036854775808,9223372036854775807]", 2, 16},
        {SV_TYPE_UINT64, "[18446744073709551615]", "[18446744073709551615]", 1, 8},
        {SV_TYPE_INT64, "[12.0, 1.2e1, -0]", "[12,12,0]", 3, 24},
        {SV_TYPE_FP32, "[0.1, -3]", "[0.100000001,-3]", 2, 8},
        {SV_TYPE_FP64, "[0.1]", "[0.1]", 1, 8},
        {SV_TYPE_BYTES, "[\"a\\\"\", \"\", [\"\\u00e9\"]]", "[\"a\\\"\",\"\",\"é\"]", 3, 16},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_tensor_value v;
        struct sv_err err;
        struct sv_buf b;
        struct sv_json j;
        CONTEXT("%s %s", sv_datatype_name(rows[i].type), rows[i].text);
        REQUIRE(read_values(rows[i].type, rows[i].text, rows[i].n, &v, &err) == 0);
        CHECK_UINT_EQ(v.len, rows[i].len);
        sv_buf_init(&b, 1 << 16);
        sv_json_init(&j, &b);
        sv_json_begin(&j, '[');
        sv_values_write(&j, rows[i].type, v.bytes, v.len);
        sv_json_end(&j);
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].back);
        sv_buf_fini(&b);
        free(v.bytes);
    }
}

TEST(server_values_are_refused)
{
    static const struct {
        enum sv_datatype type;
        const char *text;
        size_t n;
    } rows[] = {
        {SV_TYPE_INT8, "[128]", 1},       {SV_TYPE_INT8, "[-129]", 1},
        {SV_TYPE_UINT8, "[-1]", 1},       {SV_TYPE_UINT8, "[256]", 1},
        {SV_TYPE_INT64, "[1.5]", 1},      {SV_TYPE_INT64, "[9223372036854775808]", 1},
        {SV_TYPE_INT64, "[true]", 1},     {SV_TYPE_UINT64, "[18446744073709551616]", 1},
        {SV_TYPE_BOOL, "[2]", 1},         {SV_TYPE_BOOL, "[\"true\"]", 1},
        {SV_TYPE_BYTES, "[1]", 1},        {SV_TYPE_FP32, "[null]", 1},
        {SV_TYPE_FP32, "[{\"a\":1}]", 1}, {SV_TYPE_INT64, "[1,2]", 1},
        {SV_TYPE_INT64, "[1]", 2},        {SV_TYPE_INT64, "[1]", 1000000000000},
        {SV_TYPE_INT64, "1", 1},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_tensor_value v;
        struct sv_err err;
        CONTEXT("%s %s", sv_datatype_name(rows[i].type), rows[i].text);
        CHECK(read_values(rows[i].type, rows[i].text, rows[i].n, &v, &err) < 0);
        CHECK(err.msg[0] != 0);
        free(v.bytes);
    }
}

TEST(server_embedding_is_the_mean_of_what_is_not_masked)
{
    static const float words[] = {1, 10, 2, 20, 4, 40};
    const struct sv_embedding e = {.weight = words, .vocabulary = 3, .width = 2};
    const int64_t ids[] = {0, 2, 1}, mask[] = {1, 1, 0}, none[] = {0, 0, 0};
    float out[2];
    sv_network_embed(&e, ids, mask, 3, out);
    CHECK_DOUBLE_EQ((double)out[0], 2.5);
    CHECK_DOUBLE_EQ((double)out[1], 25);
    sv_network_embed(&e, ids, none, 3, out);
    CHECK_DOUBLE_EQ((double)out[0], 0);
}

TEST(server_stats_count_requests_and_batches)
{
    struct sv_model_stats s = {0};
    struct sv_buf b;
    struct sv_json j;
    sv_model_stats_init(&s, 4);
    sv_model_stats_add(&s, &(struct sv_batch_stats){.rows = 3,
                                                    .requests = 2,
                                                    .queue_ns = 50,
                                                    .whole_ns = 500,
                                                    .input_ns = 1,
                                                    .infer_ns = 20,
                                                    .output_ns = 3});
    sv_model_stats_add(
        &s, &(struct sv_batch_stats){.rows = 1, .requests = 1, .is_failed = true, .whole_ns = 7});
    sv_buf_init(&b, 1 << 16);
    sv_json_init(&j, &b);
    sv_model_stats_json(&s, "m", "1", &j);
    const char *text = sv_buf_cstr(&b);
    CHECK(strstr(text, "\"inference_count\":3,\"execution_count\":1") != NULL);
    CHECK(strstr(text, "\"success\":{\"count\":2,\"ns\":500}") != NULL);
    CHECK(strstr(text, "\"fail\":{\"count\":1,\"ns\":7}") != NULL);
    CHECK(strstr(text, "\"queue\":{\"count\":2,\"ns\":50}") != NULL);
    CHECK(strstr(text, "\"compute_infer\":{\"count\":2,\"ns\":40}") != NULL);
    CHECK(strstr(text,
                 "\"batch_stats\":[{\"batch_size\":3,\"compute_input\":{\"count\":1,\"ns\":1}") !=
          NULL);
    sv_buf_fini(&b);
    sv_model_stats_fini(&s);
}

#ifdef SV_HAVE_GRPC
#include "net/grpc_message.h"

#include <zlib.h>

/* A buffer of these bytes in two slices, as it would come. */
static void open_message(const uint8_t *bytes, size_t len, bool is_packed, size_t max,
                         struct sv_grpc_message *m, enum sv_grpc_status *status)
{
    grpc_slice slices[2];
    grpc_byte_buffer b = {.type = GRPC_BB_RAW};
    size_t half = len / 2;
    memset(slices, 0, sizeof slices);
    for (int i = 0; i < 2; i++) {
        /* Only ever compared with NULL here. */
        slices[i].refcount = (struct grpc_slice_refcount *)(uintptr_t)slices;
        slices[i].data.refcounted.bytes = (uint8_t *)(uintptr_t)bytes + (i ? half : 0);
        slices[i].data.refcounted.length = i ? len - half : half;
    }
    b.data.raw.compression = is_packed ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_NONE;
    b.data.raw.slice_buffer.slices = slices;
    b.data.raw.slice_buffer.count = 2;
    b.data.raw.slice_buffer.length = len;
    *status = sv_grpc_message_open(m, &b, max);
}

TEST(grpc_messages_are_joined_and_unpacked_within_the_limit)
{
    enum { SIZE = 100000 };
    uint8_t *plain = sv_alloc(SIZE), *packed = sv_alloc(SIZE);
    uLongf n = SIZE;
    struct sv_grpc_message m;
    enum sv_grpc_status status;
    for (size_t i = 0; i < SIZE; i++)
        plain[i] = (uint8_t)(i / 1000);
    REQUIRE(compress(packed, &n, plain, SIZE) == Z_OK);
    for (int is_packed = 0; is_packed < 2; is_packed++) {
        const uint8_t *bytes = is_packed ? packed : plain;
        size_t len = is_packed ? n : SIZE;
        CONTEXT("packed %d", is_packed);
        open_message(bytes, len, is_packed, SIZE, &m, &status);
        CHECK_INT_EQ(status, SV_GRPC_OK);
        CHECK_UINT_EQ(m.len, SIZE);
        CHECK_MEM_EQ(m.bytes, plain, SIZE);
        sv_grpc_message_close(&m);
        open_message(bytes, len, is_packed, SIZE - 1, &m, &status);
        CHECK_INT_EQ(status, SV_GRPC_RESOURCE_EXHAUSTED);
        sv_grpc_message_close(&m);
    }
    open_message(packed, n - 1, true, SIZE, &m, &status);
    CHECK_INT_EQ(status, SV_GRPC_INVALID_ARGUMENT);
    sv_grpc_message_close(&m);
    open_message(plain, SIZE, true, SIZE, &m, &status);
    CHECK_INT_EQ(status, SV_GRPC_INVALID_ARGUMENT);
    sv_grpc_message_close(&m);
    free(plain);
    free(packed);
}
#endif

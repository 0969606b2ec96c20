/* Arbitrary bytes as inference requests: what is accepted has the numbers that its shape says. The
 * first byte says where the binary part begins. */
#include "core/base/json_scan.h"
#include "server/infer_message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct sv_infer_model model = {
    .name = "m",
    .version = "1",
    .platform = "p",
    .inputs = {{.name = "input", .type = SV_TYPE_FP32, .n_dims = 1, .dims = {2}}},
    .outputs = {{.name = "output", .type = SV_TYPE_FP32, .n_dims = 1, .dims = {2}}},
    .n_inputs = 1,
    .n_outputs = 1,
    .rows_max = 4};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_infer_request r;
    struct sv_err err = {0};
    if (size == 0)
        return 0;
    size_t len = size - 1, tail = data[0] < len ? data[0] : 0;
    uint8_t *body = malloc(len + SV_JSON_PAD);
    assert(body);
    memcpy(body, data + 1, len);
    memset(body + len, 0, SV_JSON_PAD);
    if (sv_infer_parse(&model, body, len, len - tail, &r, &err) == 0) {
        assert(r.in[0].bytes && r.rows >= 1 && r.rows <= 4 && strlen(r.id) < sizeof r.id);
        assert(r.in[0].len == r.rows * 2 * sizeof(float));
        struct sv_infer_answer a = {.id = r.id, .rows = r.rows, .out = r.in, .request_asks = &r};
        struct sv_buf out;
        size_t json_len;
        sv_buf_init(&out, 1 << 20);
        sv_infer_write(&model, &a, &out, &json_len);
        assert(sv_buf_reserve(&out, SV_JSON_PAD));
        assert(sv_json_valid(out.data, json_len) || json_len != out.len);
        sv_buf_fini(&out);
        sv_infer_request_free(&r);
    } else {
        assert(err.msg[0] && !r.in[0].bytes);
    }
    free(body);
    return 0;
}

/* Arbitrary bytes as gRPC requests for inference: what is accepted has the values that its shapes
 * say, and what is written of them can be read again. */
#include "core/base/wire.h"
#include "server/infer_proto.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TENSOR(n, t, d)                                 \
    {                                                   \
        .name = n, .type = t, .n_dims = 1, .dims = {d}, \
    }
#define TENSORS                                                                                 \
    {                                                                                           \
        TENSOR("a", SV_TYPE_INT64, SV_DIM_DYNAMIC), TENSOR("b", SV_TYPE_BYTES, SV_DIM_DYNAMIC), \
            TENSOR("c", SV_TYPE_FP32, 2), TENSOR("d", SV_TYPE_INT8, 2)                          \
    }

/* The first byte says how many of the inputs the model has. */
static struct sv_infer_model model_of(uint8_t n)
{
    struct sv_infer_model m = {.name = "m",
                               .version = "1",
                               .platform = "p",
                               .inputs = TENSORS,
                               .outputs = TENSORS,
                               .n_inputs = 1 + n % 4u,
                               .n_outputs = 1 + n % 4u,
                               .rows_max = 4};
    return m;
}

static void check_values(const struct sv_infer_model *m, const struct sv_infer_request *r)
{
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        const struct sv_tensor_value *v = &r->in[i];
        size_t n = sv_tensor_values(v->dims, m->inputs[i].n_dims) * r->rows;
        assert(v->bytes && n >= 1);
        if (m->inputs[i].type == SV_TYPE_BYTES)
            assert(sv_bytes_span(v->bytes, v->len, n) == v->len);
        else
            assert(v->len == n * sv_datatype_size(m->inputs[i].type));
    }
}

/* The tensors of a response are those of a request, but for the numbers of the fields of raw
 * contents. */
static void check_answer(const struct sv_infer_model *m, const struct sv_infer_request *r,
                         bool is_raw)
{
    struct sv_infer_answer a = {.id = r->id, .rows = r->rows, .out = r->in, .request_asks = r};
    struct sv_infer_request again;
    struct sv_err err = {0};
    struct sv_buf out, back;
    struct sv_pb_field f;
    bool came_raw;
    sv_buf_init(&out, 1 << 24);
    sv_buf_init(&back, 1 << 24);
    sv_proto_answer(m, &a, is_raw, &out);
    struct sv_pb w = sv_pb_at(out.data, out.len);
    while (sv_pb_next(&w, &f))
        if (f.type == SV_PB_BYTES)
            sv_put_bytes(&back, f.id == 6 ? 7 : f.id, f.bytes, (size_t)f.u);
    assert(!w.bad && !out.failed);
    for (uint32_t i = 0; i < m->n_outputs; i++)
        if (!sv_infer_is_asked(r, i))
            goto done; /* not all inputs of a request are there */
    assert(sv_proto_parse(m, back.data, back.len, &again, &came_raw, &err) == 0);
    assert(came_raw == is_raw && again.rows == r->rows && strcmp(again.id, r->id) == 0);
    for (uint32_t i = 0; i < m->n_inputs; i++)
        assert(again.in[i].len == r->in[i].len &&
               memcmp(again.in[i].bytes, r->in[i].bytes, r->in[i].len) == 0);
    sv_infer_request_free(&again);
done:
    sv_buf_fini(&out);
    sv_buf_fini(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_infer_request r;
    struct sv_proto_target target;
    struct sv_err err = {0};
    bool is_raw;
    if (size == 0)
        return 0;
    struct sv_infer_model m = model_of(data[0]);
    uint8_t *bytes = malloc(size); /* without a byte more: the end is checked */
    assert(bytes);
    memcpy(bytes, data + 1, size - 1);
    if (sv_proto_target(bytes, size - 1, &target, &err) == 0)
        assert(target.name_len + target.version_len < size);
    sv_err_clear(&err);
    if (sv_proto_parse(&m, bytes, size - 1, &r, &is_raw, &err) == 0) {
        check_values(&m, &r);
        check_answer(&m, &r, true);
        check_answer(&m, &r, false);
        sv_infer_request_free(&r);
    } else {
        assert(err.msg[0]);
        for (uint32_t i = 0; i < SV_IO_MAX; i++)
            assert(!r.in[i].bytes);
    }
    free(bytes);
    return 0;
}

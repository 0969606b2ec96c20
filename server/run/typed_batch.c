/* Joins, computes and divides batches of typed tensors: see typed_batch.h. */
#include "server/run/typed_batch.h"

#include "core/base/mem.h"
#include "server/run/engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- who may join ---- */

static bool same_dims(const int64_t *a, const int64_t *b, uint32_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

/* The sizes that a batch with both would have. */
static void widest(const struct sv_task *t, const struct sv_served *more, uint32_t input,
                   int64_t dims[SV_DIMS_MAX])
{
    uint32_t n = t->model->describes.inputs[input].n_dims;
    memset(dims, 0, SV_DIMS_MAX * sizeof *dims);
    for (const struct sv_served *r = t->requests; r; r = r->next)
        for (uint32_t i = 0; i < n; i++)
            dims[i] = r->in[input].dims[i] > dims[i] ? r->in[input].dims[i] : dims[i];
    for (uint32_t i = 0; more && i < n; i++)
        dims[i] = more->in[input].dims[i] > dims[i] ? more->in[input].dims[i] : dims[i];
}

bool sv_typed_fits(const struct sv_task *t, const struct sv_served *r)
{
    const struct sv_model *m = t->model;
    size_t limit = (size_t)m->engine->config->max_message_bytes;
    for (uint32_t i = 0; t->requests && i < m->describes.n_inputs; i++) {
        const struct sv_tensor_spec *s = &m->describes.inputs[i];
        int64_t dims[SV_DIMS_MAX];
        if (same_dims(t->requests->in[i].dims, r->in[i].dims, s->n_dims) && !m->pads)
            continue;
        if (!m->pads)
            return false;
        widest(t, r, i, dims);
        if (s->type == SV_TYPE_BYTES && !same_dims(dims, r->in[i].dims, s->n_dims))
            return false;
        /* Padding must not make more of what was sent than one may send. */
        if (!same_dims(dims, r->in[i].dims, s->n_dims) &&
            sv_tensor_values(dims, s->n_dims) * (t->rows + r->rows) * sv_datatype_size(s->type) >
                limit)
            return false;
    }
    return true;
}

/* ---- copying blocks ---- */

/* The first `part` of each dimension, from a tensor with dimensions `from_dims` to one with
 * `to_dims`. */
static void copy_block(uint8_t *to, const int64_t *to_dims, const uint8_t *from,
                       const int64_t *from_dims, const int64_t *part, uint32_t n, size_t size)
{
    if (n == 0) {
        memcpy(to, from, size);
        return;
    }
    if (n == 1) {
        memcpy(to, from, (size_t)part[0] * size);
        return;
    }
    size_t to_step = sv_tensor_values(to_dims + 1, n - 1) * size;
    size_t from_step = sv_tensor_values(from_dims + 1, n - 1) * size;
    for (int64_t i = 0; i < part[0]; i++)
        copy_block(to + (size_t)i * to_step, to_dims + 1, from + (size_t)i * from_step,
                   from_dims + 1, part + 1, n - 1, size);
}

/* ---- joining ---- */

/* Elements are joined as they are: their shapes are equal. */
static void join_bytes(struct sv_task *t, uint32_t input, struct sv_batch_tensor *b)
{
    const struct sv_tensor_spec *s = &t->model->describes.inputs[input];
    size_t missing = ((size_t)b->dims[0] - t->rows) * sv_tensor_values(b->dims + 1, s->n_dims) * 4;
    for (const struct sv_served *r = t->requests; r; r = r->next)
        b->len += r->in[input].len;
    b->len += missing;
    b->bytes = sv_alloc(b->len + 1);
    uint8_t *to = b->bytes;
    for (const struct sv_served *r = t->requests; r; r = r->next) {
        memcpy(to, r->in[input].bytes, r->in[input].len);
        to += r->in[input].len;
    }
}

static void join_input(struct sv_task *t, uint32_t input, uint32_t rows)
{
    const struct sv_tensor_spec *s = &t->model->describes.inputs[input];
    struct sv_batch_tensor *b = &t->in[input];
    size_t size = sv_datatype_size(s->type);
    widest(t, NULL, input, b->dims + 1);
    b->dims[0] = rows;
    if (s->type == SV_TYPE_BYTES) {
        join_bytes(t, input, b);
        return;
    }
    size_t row = sv_tensor_values(b->dims + 1, s->n_dims) * size;
    b->len = row * rows;
    b->bytes = sv_alloc(b->len + 1); /* zeroed */
    uint8_t *to = b->bytes;
    for (const struct sv_served *r = t->requests; r; r = r->next) {
        const struct sv_tensor_value *v = &r->in[input];
        int64_t from[SV_DIMS_MAX + 1] = {r->rows};
        if (s->n_dims)
            memcpy(from + 1, v->dims, s->n_dims * sizeof *from);
        copy_block(to, b->dims, v->bytes, from, from, s->n_dims + 1, size);
        to += row * r->rows;
    }
}

void sv_typed_join(struct sv_task *t)
{
    uint32_t fixed = t->model->onnx ? sv_onnx_fixed_rows(t->model->onnx) : 0;
    for (uint32_t i = 0; i < t->model->describes.n_inputs; i++)
        join_input(t, i, fixed ? fixed : t->rows);
}

void sv_typed_free(struct sv_task *t)
{
    for (uint32_t i = 0; i < SV_IO_MAX; i++) {
        free(t->in[i].bytes);
        free(t->out[i].bytes);
        t->in[i].bytes = t->out[i].bytes = NULL;
    }
}

/* ---- computing ---- */

static void compute_identity(struct sv_task *t)
{
    for (uint32_t i = 0; i < t->model->describes.n_inputs; i++) {
        t->out[i] = t->in[i];
        t->in[i].bytes = NULL;
    }
}

static void compute_tokens(struct sv_task *t, float *scratch, struct sv_layer_times *times)
{
    const struct sv_network *net = t->model->net;
    const int64_t *ids = (const int64_t *)(const void *)t->in[0].bytes;
    const int64_t *mask = (const int64_t *)(const void *)t->in[1].bytes;
    size_t n = (size_t)t->in[0].dims[1];
    float *vectors = sv_alloc_aligned(t->rows * net->in_size * sizeof *vectors, 64);
    struct sv_batch_tensor *out = &t->out[0];
    for (uint32_t r = 0; r < t->rows; r++)
        sv_network_embed(&net->embedding, ids + r * n, mask + r * n, n, vectors + r * net->in_size);
    out->dims[0] = t->rows;
    out->dims[1] = (int64_t)net->out_size;
    out->len = t->rows * net->out_size * sizeof(float);
    out->bytes = sv_alloc_aligned(out->len, 64);
    if (times)
        times->ends_ns[times->n++] = stave_now_ns();
    sv_forward(net, vectors, (float *)(void *)out->bytes, t->rows, scratch, times);
    free(vectors);
}

/* Values that a model cannot compute (an index past its end) must not fail the others of the batch:
 * each request for itself. */
static bool compute_alone(struct sv_task *t)
{
    bool is_any = false;
    for (struct sv_served *r = t->requests, *next; r; r = next) {
        struct sv_task one = {.model = t->model, .requests = r, .n = 1, .rows = r->rows};
        next = r->next;
        r->next = NULL;
        sv_typed_join(&one);
        r->is_failed = !sv_onnx_run(t->model->onnx, one.in, one.out, one.why, sizeof one.why) ||
                       !sv_typed_divide(&one, r, 0);
        sv_typed_free(&one);
        r->next = next;
        is_any = is_any || !r->is_failed;
    }
    t->is_divided = is_any;
    return is_any;
}

bool sv_typed_compute(struct sv_task *t, float *scratch, struct sv_layer_times *times)
{
    const struct sv_model *m = t->model;
    if (m->onnx)
        return sv_onnx_run(m->onnx, t->in, t->out, t->why, sizeof t->why) ||
               (t->n > 1 && compute_alone(t));
    if (m->net->kind == SV_NETWORK_IDENTITY)
        compute_identity(t);
    else
        compute_tokens(t, scratch, times);
    return true;
}

/* ---- dividing ---- */

static bool take(struct sv_tensor_value *v, size_t len)
{
    v->len = len;
    v->bytes = malloc(len + 1);
    return v->bytes != NULL;
}

static bool divide_bytes(const struct sv_tensor_spec *s, const struct sv_batch_tensor *b,
                         struct sv_tensor_value *v, uint32_t row, uint32_t rows)
{
    size_t per_row = sv_tensor_values(b->dims + 1, s->n_dims);
    size_t begin = sv_bytes_span(b->bytes, b->len, row * per_row);
    size_t end = sv_bytes_span(b->bytes, b->len, (row + rows) * per_row);
    if (begin == SIZE_MAX || end == SIZE_MAX || !take(v, end - begin))
        return false;
    memcpy(v->bytes, b->bytes + begin, v->len);
    return true;
}

/* The sizes of the request's own output. */
static void own_dims(const struct sv_task *t, const struct sv_served *r, uint32_t output,
                     int64_t *dims)
{
    const struct sv_infer_model *m = &t->model->describes;
    const struct sv_tensor_spec *s = &m->outputs[output], *first = &m->inputs[0];
    for (uint32_t i = 0; i < s->n_dims; i++) {
        bool follows = s->dims[i] == SV_DIM_DYNAMIC && i < first->n_dims &&
                       first->dims[i] == SV_DIM_DYNAMIC &&
                       t->out[output].dims[i + 1] == t->in[0].dims[i + 1];
        dims[i] = follows ? r->in[0].dims[i] : t->out[output].dims[i + 1];
    }
}

static bool divide_output(const struct sv_task *t, struct sv_served *r, uint32_t output,
                          uint32_t row)
{
    const struct sv_tensor_spec *s = &t->model->describes.outputs[output];
    const struct sv_batch_tensor *b = &t->out[output];
    struct sv_tensor_value *v = &r->out[output];
    size_t size = sv_datatype_size(s->type);
    int64_t part[SV_DIMS_MAX + 1] = {r->rows};
    own_dims(t, r, output, part + 1);
    if (s->n_dims)
        memcpy(v->dims, part + 1, s->n_dims * sizeof *part);
    if (s->type == SV_TYPE_BYTES)
        return divide_bytes(s, b, v, row, r->rows);
    size_t row_bytes = sv_tensor_values(b->dims + 1, s->n_dims) * size;
    if (row_bytes * (row + r->rows) > b->len ||
        !take(v, sv_tensor_values(part, s->n_dims + 1) * size))
        return false;
    copy_block(v->bytes, part, b->bytes + row * row_bytes, b->dims, part, s->n_dims + 1, size);
    return true;
}

bool sv_typed_divide(const struct sv_task *t, struct sv_served *r, uint32_t row)
{
    for (uint32_t i = 0; i < t->model->describes.n_outputs; i++)
        if (!divide_output(t, r, i, row))
            return false;
    return true;
}

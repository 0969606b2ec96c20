/* Reads and writes the messages of gRPC: see infer_proto.h.
 *
 * The bytes are hostile: lengths are compared with shapes and shapes with the model before memory
 * is taken. */
#include "server/infer_proto.h"

#include "core/base/wire.h"
#include "server/infer_values.h"

#include <assert.h>
#include <stdlib.h>

struct field_bytes {
    const uint8_t *bytes;
    size_t len;
};

struct input_message {
    struct field_bytes name, type, contents;
    bool has_contents;
    int64_t shape[SV_DIMS_MAX + 2];
    uint32_t n_shape;
};

struct parsing {
    const struct sv_infer_model *model;
    struct sv_infer_request *out;
    struct sv_err *err;
    struct input_message inputs[SV_IO_MAX];
    struct field_bytes raw[SV_IO_MAX];
    uint32_t n_inputs, n_raw;
};

static int refuse(struct sv_err *err, const char *what)
{
    return sv_error(err, SV_EUSAGE, "%s", what);
}

static int check_end(const struct sv_pb *w, struct sv_err *err)
{
    return w->bad ? refuse(err, "the message is damaged") : 0;
}

static bool is_bytes(const struct sv_pb_field *f, uint32_t id)
{
    return f->id == id && f->type == SV_PB_BYTES;
}

static struct field_bytes bytes_of(const struct sv_pb_field *f)
{
    return (struct field_bytes){f->bytes, (size_t)f->u};
}

int sv_proto_target(const uint8_t *bytes, size_t len, struct sv_proto_target *out,
                    struct sv_err *err)
{
    struct sv_pb w = sv_pb_at(bytes, len);
    *out = (struct sv_proto_target){.name = "", .version = ""};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (is_bytes(&f, 1)) {
            out->name = (const char *)f.bytes;
            out->name_len = (size_t)f.u;
        } else if (is_bytes(&f, 2)) {
            out->version = (const char *)f.bytes;
            out->version_len = (size_t)f.u;
        } else if (f.id == 2 && f.type == SV_PB_VARINT) {
            out->is_ready_only = f.u != 0;
        }
    }
    return check_end(&w, err);
}

/* ---- inputs ---- */

static void add_dim(struct input_message *m, uint64_t v)
{
    if (m->n_shape < SV_DIMS_MAX + 2) /* one more than any model has: refused later */
        m->shape[m->n_shape++] = (int64_t)v;
}

static int read_input_message(struct parsing *p, struct sv_pb w)
{
    uint64_t v;
    if (p->n_inputs == SV_IO_MAX)
        return refuse(p->err, "the request has more inputs than the model");
    struct input_message *m = &p->inputs[p->n_inputs++];
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (is_bytes(&f, 1)) {
            m->name = bytes_of(&f);
        } else if (is_bytes(&f, 2)) {
            m->type = bytes_of(&f);
        } else if (f.id == 3 && f.type == SV_PB_VARINT) {
            add_dim(m, f.u);
        } else if (is_bytes(&f, 3)) {
            struct sv_pb packed = sv_pb_sub(&f);
            while (packed.p < packed.end && sv_pb_varint(&packed, &v))
                add_dim(m, v);
            if (packed.p < packed.end)
                return refuse(p->err, "the shape of an input is damaged");
        } else if (is_bytes(&f, 5)) {
            if (m->has_contents)
                return refuse(p->err, "an input has its contents twice");
            m->contents = bytes_of(&f);
            m->has_contents = true;
        } else {
            p->out->unknown += f.id != 4; /* parameters: none of them means anything here */
        }
    }
    return check_end(&w, p->err);
}

/* The field of InferTensorContents that holds a type; 0: it has none. */
static uint32_t contents_field(enum sv_datatype t)
{
    switch (t) {
    case SV_TYPE_BOOL: return 1;
    case SV_TYPE_INT8:
    case SV_TYPE_INT16:
    case SV_TYPE_INT32: return 2;
    case SV_TYPE_INT64: return 3;
    case SV_TYPE_UINT8:
    case SV_TYPE_UINT16:
    case SV_TYPE_UINT32: return 4;
    case SV_TYPE_UINT64: return 5;
    case SV_TYPE_FP32: return 6;
    case SV_TYPE_FP64: return 7;
    case SV_TYPE_BYTES: return 8;
    default: return 0;
    }
}

struct filling {
    enum sv_datatype type;
    uint8_t *to;
    size_t n, found, len, cap;
};

static bool put_varint(struct filling *t, uint64_t v)
{
    size_t size = sv_datatype_size(t->type);
    if (t->found == t->n)
        return false;
    uint8_t *to = t->to + t->found++ * size;
    if (t->type == SV_TYPE_BOOL) {
        *to = v != 0;
        return true;
    }
    bool is_negative = t->type >= SV_TYPE_INT8 && t->type <= SV_TYPE_INT64 && (int64_t)v < 0;
    return sv_value_put_whole(t->type, is_negative, is_negative ? 0 - v : v, to);
}

/* A field of the contents: one value, or many of them packed. */
static bool put_field(struct filling *t, const struct sv_pb_field *f)
{
    size_t size = sv_datatype_size(t->type);
    bool is_float = t->type == SV_TYPE_FP32 || t->type == SV_TYPE_FP64;
    uint32_t fixed = t->type == SV_TYPE_FP32 ? SV_PB_FIXED32 : SV_PB_FIXED64;
    uint64_t v;
    if (is_float && (f->type == fixed || f->type == SV_PB_BYTES)) {
        size_t bytes = f->type == fixed ? size : (size_t)f->u;
        if (bytes % size || bytes / size > t->n - t->found)
            return false;
        memcpy(t->to + t->found * size, f->type == fixed ? (const void *)&f->u : f->bytes, bytes);
        t->found += bytes / size;
        return true;
    }
    if (is_float || (f->type != SV_PB_BYTES && f->type != SV_PB_VARINT))
        return false;
    if (f->type == SV_PB_VARINT)
        return put_varint(t, f->u);
    struct sv_pb packed = sv_pb_sub(f);
    while (packed.p < packed.end)
        if (!sv_pb_varint(&packed, &v) || !put_varint(t, v))
            return false;
    return true;
}

static bool put_element(struct filling *t, const struct sv_pb_field *f)
{
    uint32_t n = (uint32_t)f->u;
    if (f->type != SV_PB_BYTES || t->found++ == t->n || t->cap - t->len < sizeof n + n)
        return false;
    memcpy(t->to + t->len, &n, sizeof n);
    if (n)
        memcpy(t->to + t->len + sizeof n, f->bytes, n);
    t->len += sizeof n + n;
    return true;
}

static int refuse_contents(struct parsing *p, const struct sv_tensor_spec *s)
{
    return sv_error(p->err, SV_EUSAGE,
                    "the contents of input '%s' do not match its datatype and shape", s->name);
}

static int take_contents(struct parsing *p, uint32_t input, const struct field_bytes *contents)
{
    const struct sv_tensor_spec *s = &p->model->inputs[input];
    struct sv_tensor_value *v = &p->out->in[input];
    struct sv_pb w = sv_pb_at(contents->bytes, contents->len);
    struct filling t = {.type = s->type, .n = sv_tensor_values(v->dims, s->n_dims) * p->out->rows};
    uint32_t id = contents_field(s->type);
    if (!id)
        return sv_error(p->err, SV_EUSAGE,
                        "%s has no typed contents: send input '%s' as raw_input_contents",
                        sv_datatype_name(s->type), s->name);
    /* Each value is at least a byte of the message: a shape that it cannot fill costs nothing. */
    if (t.n > contents->len)
        return refuse_contents(p, s);
    t.cap = s->type == SV_TYPE_BYTES ? contents->len + 4 * t.n : t.n * sv_datatype_size(s->type);
    assert(t.cap > 0); /* of a shape that was checked each dimension is at least 1 */
    t.to = v->bytes = malloc(t.cap);
    if (!t.to)
        return sv_error(p->err, SV_ENOMEM, "out of memory");
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.id > 8)
            p->out->unknown++;
        else if (f.id != id ||
                 !(s->type == SV_TYPE_BYTES ? put_element(&t, &f) : put_field(&t, &f)))
            return refuse_contents(p, s);
    }
    if (w.bad || t.found != t.n)
        return refuse_contents(p, s);
    v->len = s->type == SV_TYPE_BYTES ? t.len : t.cap;
    return 0;
}

static int take_input(struct parsing *p, const struct input_message *m,
                      const struct field_bytes *raw)
{
    const struct sv_infer_model *model = p->model;
    uint32_t input;
    int code = sv_infer_find_input(model, (const char *)m->name.bytes, m->name.len, &input, p->err);
    if (code == 0)
        code = sv_infer_check_type(&model->inputs[input], (const char *)m->type.bytes, m->type.len,
                                   p->err);
    if (code == 0 && p->out->in[input].bytes)
        code =
            sv_error(p->err, SV_EUSAGE, "the input '%s' is given twice", model->inputs[input].name);
    if (code == 0)
        code = sv_infer_check_shape(model, input, m->shape, m->n_shape, p->out, p->err);
    if (code < 0)
        return code;
    if (raw && m->has_contents)
        return refuse(p->err, "an input has both contents and raw_input_contents");
    return raw ? sv_infer_take_raw(model, input, raw->bytes, raw->len, p->out, p->err)
               : take_contents(p, input, &m->contents);
}

/* ---- the request ---- */

static int read_output_message(struct parsing *p, struct sv_pb w)
{
    struct field_bytes name = {(const uint8_t *)"", 0};
    uint32_t output;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (is_bytes(&f, 1))
            name = bytes_of(&f);
        else
            p->out->unknown += f.id != 2;
    }
    int code = check_end(&w, p->err);
    if (code == 0)
        code = sv_infer_find_output(p->model, (const char *)name.bytes, name.len, &output, p->err);
    if (code == 0)
        p->out->asks[output] = true;
    return code;
}

static int read_field(struct parsing *p, const struct sv_pb_field *f)
{
    if (f->type != SV_PB_BYTES || f->id > 7) {
        p->out->unknown++;
        return 0;
    }
    switch (f->id) {
    case 3:
        if (f->u >= sizeof p->out->id)
            return refuse(p->err, "id must be a text of less than 128 bytes");
        memcpy(p->out->id, f->bytes, (size_t)f->u);
        p->out->id[f->u] = 0;
        return 0;
    case 5: return read_input_message(p, sv_pb_sub(f));
    case 6: return read_output_message(p, sv_pb_sub(f));
    case 7:
        if (p->n_raw == SV_IO_MAX)
            return refuse(p->err, "there are more raw_input_contents than inputs");
        p->raw[p->n_raw++] = bytes_of(f);
        return 0;
    default: return 0;
    }
}

int sv_proto_parse(const struct sv_infer_model *model, const uint8_t *bytes, size_t len,
                   struct sv_infer_request *out, bool *is_raw, struct sv_err *err)
{
    struct parsing p = {.model = model, .out = out, .err = err};
    struct sv_pb w = sv_pb_at(bytes, len);
    struct sv_pb_field f;
    int code = 0;
    *out = (struct sv_infer_request){0};
    while (code == 0 && sv_pb_next(&w, &f))
        code = read_field(&p, &f);
    if (code == 0)
        code = check_end(&w, err);
    *is_raw = p.n_raw > 0;
    if (code == 0 && p.n_raw && p.n_raw != p.n_inputs)
        code = refuse(err, "there must be as many raw_input_contents as inputs");
    for (uint32_t i = 0; code == 0 && i < p.n_inputs; i++)
        code = take_input(&p, &p.inputs[i], p.n_raw ? &p.raw[i] : NULL);
    if (code == 0)
        code = sv_infer_check_whole(model, out, err);
    if (code < 0)
        sv_infer_request_free(out);
    return code;
}

/* ---- answers ---- */

static void put_text(struct sv_buf *b, uint32_t id, const char *s)
{
    if (s[0])
        sv_put_bytes(b, id, s, strlen(s));
}

static void put_parameter(struct sv_buf *b, const char *key, int64_t v)
{
    size_t entry = sv_put_begin(b, 4);
    put_text(b, 1, key);
    size_t value = sv_put_begin(b, 2);
    sv_put_i64(b, 2, v);
    sv_put_end(b, value);
    sv_put_end(b, entry);
}

static void put_elements(struct sv_buf *b, const struct sv_tensor_value *v)
{
    for (size_t at = 0; v->len - at >= 4;) {
        uint32_t n;
        memcpy(&n, v->bytes + at, sizeof n);
        at += sizeof n;
        if (v->len - at < n)
            return;
        sv_put_bytes(b, 8, v->bytes + at, n);
        at += n;
    }
}

static void put_whole(struct sv_buf *b, enum sv_datatype type, const uint8_t *at)
{
    size_t size = sv_datatype_size(type);
    unsigned shift = (unsigned)(64 - size * 8);
    uint64_t v = 0;
    memcpy(&v, at, size);
    if (type >= SV_TYPE_INT8 && type <= SV_TYPE_INT64)
        v = (uint64_t)((int64_t)(v << shift) >> shift);
    sv_put_varint(b, v);
}

static void put_contents(struct sv_buf *b, enum sv_datatype type, const struct sv_tensor_value *v)
{
    size_t size = sv_datatype_size(type), contents = sv_put_begin(b, 5);
    if (type == SV_TYPE_BYTES) {
        put_elements(b, v);
    } else if (type == SV_TYPE_FP32 || type == SV_TYPE_FP64) {
        sv_put_bytes(b, contents_field(type), v->bytes, v->len);
    } else {
        size_t packed = sv_put_begin(b, contents_field(type));
        for (size_t at = 0; at + size <= v->len; at += size)
            put_whole(b, type, v->bytes + at);
        sv_put_end(b, packed);
    }
    sv_put_end(b, contents);
}

static void put_shape(struct sv_buf *b, int64_t rows, const int64_t *dims, uint32_t n)
{
    size_t shape = sv_put_begin(b, 3);
    sv_put_varint(b, (uint64_t)rows);
    for (uint32_t i = 0; i < n; i++)
        sv_put_varint(b, (uint64_t)dims[i]);
    sv_put_end(b, shape);
}

static bool all_typed(const struct sv_infer_model *m)
{
    for (uint32_t i = 0; i < m->n_outputs; i++)
        if (!contents_field(m->outputs[i].type))
            return false;
    return true;
}

void sv_proto_answer(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                     bool is_raw, struct sv_buf *out)
{
    is_raw = is_raw || !all_typed(model);
    put_text(out, 1, model->name);
    put_text(out, 2, model->version);
    put_text(out, 3, a->id);
    put_parameter(out, "request_id", (int64_t)a->request);
    put_parameter(out, "batch_id", (int64_t)a->batch);
    put_parameter(out, "batch_size", a->batch_rows);
    put_parameter(out, "worker_id", a->worker);
    for (uint32_t i = 0; i < model->n_outputs; i++) {
        const struct sv_tensor_spec *s = &model->outputs[i];
        if (!sv_infer_is_asked(a->request_asks, i))
            continue;
        size_t mark = sv_put_begin(out, 5);
        put_text(out, 1, s->name);
        put_text(out, 2, sv_datatype_name(s->type));
        put_shape(out, a->rows, a->out[i].dims, s->n_dims);
        if (!is_raw)
            put_contents(out, s->type, &a->out[i]);
        sv_put_end(out, mark);
    }
    for (uint32_t i = 0; is_raw && i < model->n_outputs; i++)
        if (sv_infer_is_asked(a->request_asks, i))
            sv_put_bytes(out, 6, a->out[i].bytes, a->out[i].len);
}

void sv_proto_stream(const struct sv_buf *answer, const char *error, const char *id,
                     struct sv_buf *out)
{
    if (!error) {
        sv_put_bytes(out, 2, answer->data, answer->len);
        return;
    }
    put_text(out, 1, error);
    size_t response = sv_put_begin(out, 2); /* which of the requests it was */
    put_text(out, 3, id);
    sv_put_end(out, response);
}

void sv_proto_flag(bool is_so, struct sv_buf *out)
{
    if (is_so)
        sv_put_u64(out, 1, 1);
}

void sv_proto_server(const char *name, const char *version, const char *const *extensions, size_t n,
                     struct sv_buf *out)
{
    put_text(out, 1, name);
    put_text(out, 2, version);
    for (size_t i = 0; i < n; i++)
        put_text(out, 3, extensions[i]);
}

void sv_proto_describe(const struct sv_infer_model *model, struct sv_buf *out)
{
    put_text(out, 1, model->name);
    put_text(out, 2, model->version);
    put_text(out, 3, model->platform);
    for (uint32_t side = 0; side < 2; side++) {
        const struct sv_tensor_spec *specs = side ? model->outputs : model->inputs;
        for (uint32_t i = 0; i < (side ? model->n_outputs : model->n_inputs); i++) {
            size_t mark = sv_put_begin(out, 4 + side);
            put_text(out, 1, specs[i].name);
            put_text(out, 2, sv_datatype_name(specs[i].type));
            put_shape(out, SV_DIM_DYNAMIC, specs[i].dims, specs[i].n_dims);
            sv_put_end(out, mark);
        }
    }
}

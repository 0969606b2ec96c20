/* Checks of tensors that JSON, binary and gRPC requests have in common: see infer_tensors.h. */
#include "server/infer_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t size;
} types[SV_TYPES] = {
    [SV_TYPE_BOOL] = {"BOOL", 1},     [SV_TYPE_UINT8] = {"UINT8", 1},
    [SV_TYPE_UINT16] = {"UINT16", 2}, [SV_TYPE_UINT32] = {"UINT32", 4},
    [SV_TYPE_UINT64] = {"UINT64", 8}, [SV_TYPE_INT8] = {"INT8", 1},
    [SV_TYPE_INT16] = {"INT16", 2},   [SV_TYPE_INT32] = {"INT32", 4},
    [SV_TYPE_INT64] = {"INT64", 8},   [SV_TYPE_FP16] = {"FP16", 2},
    [SV_TYPE_FP32] = {"FP32", 4},     [SV_TYPE_FP64] = {"FP64", 8},
    [SV_TYPE_BYTES] = {"BYTES", 0},   [SV_TYPE_BF16] = {"BF16", 2},
};

const char *sv_datatype_name(enum sv_datatype t)
{
    return types[t].name;
}

size_t sv_datatype_size(enum sv_datatype t)
{
    return types[t].size;
}

static bool is_text(const char *s, size_t len, const char *text)
{
    return strlen(text) == len && memcmp(s, text, len) == 0;
}

bool sv_datatype_of(const char *name, size_t len, enum sv_datatype *out)
{
    if (len > 5 && memcmp(name, "TYPE_", 5) == 0) {
        name += 5;
        len -= 5;
    }
    for (int t = 0; t < SV_TYPES; t++)
        if (is_text(name, len, types[t].name) ||
            (t == SV_TYPE_BYTES && is_text(name, len, "STRING"))) {
            *out = (enum sv_datatype)t;
            return true;
        }
    return false;
}

void sv_infer_request_free(struct sv_infer_request *r)
{
    for (uint32_t i = 0; i < SV_IO_MAX; i++) {
        free(r->in[i].bytes);
        r->in[i].bytes = NULL;
    }
}

size_t sv_tensor_values(const int64_t *dims, uint32_t n)
{
    size_t values = 1;
    for (uint32_t i = 0; i < n; i++)
        values *= (size_t)dims[i];
    return values;
}

/* ---- names ---- */

static int find(const struct sv_tensor_spec *specs, uint32_t n, const char *side, const char *name,
                size_t len, uint32_t *out, struct sv_err *err)
{
    char list[400] = "";
    for (uint32_t i = 0; i < n; i++)
        if (is_text(name, len, specs[i].name)) {
            *out = i;
            return 0;
        }
    for (uint32_t i = 0, at = 0; i < n && at < sizeof list - 80; i++)
        at +=
            (uint32_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "", specs[i].name);
    return sv_error(err, SV_EUSAGE, "no such %s: the %s%s of the model %s %s", side, side,
                    n > 1 ? "s" : "", n > 1 ? "are" : "is", list);
}

int sv_infer_find_input(const struct sv_infer_model *m, const char *name, size_t len, uint32_t *out,
                        struct sv_err *err)
{
    return find(m->inputs, m->n_inputs, "input", name, len, out, err);
}

int sv_infer_find_output(const struct sv_infer_model *m, const char *name, size_t len,
                         uint32_t *out, struct sv_err *err)
{
    return find(m->outputs, m->n_outputs, "output", name, len, out, err);
}

int sv_infer_check_type(const struct sv_tensor_spec *s, const char *name, size_t len,
                        struct sv_err *err)
{
    if (is_text(name, len, types[s->type].name))
        return 0;
    return sv_error(err, SV_EUSAGE, "the datatype of input '%s' must be %s", s->name,
                    types[s->type].name);
}

bool sv_infer_is_asked(const struct sv_infer_request *r, uint32_t output)
{
    for (uint32_t i = 0; i < SV_IO_MAX; i++)
        if (r->asks[i])
            return r->asks[output];
    return true;
}

/* ---- shapes ---- */

static int refuse_shape(const struct sv_tensor_spec *s, struct sv_err *err)
{
    char text[200] = "";
    for (uint32_t i = 0, at = 0; i < s->n_dims; i++)
        at += (uint32_t)snprintf(text + at, sizeof text - at, ", %lld", (long long)s->dims[i]);
    return sv_error(err, SV_EUSAGE, "the shape of input '%s' must be [rows%s]", s->name, text);
}

int sv_infer_check_shape(const struct sv_infer_model *m, uint32_t input, const int64_t *shape,
                         uint32_t n, struct sv_infer_request *r, struct sv_err *err)
{
    const struct sv_tensor_spec *s = &m->inputs[input];
    struct sv_tensor_value *v = &r->in[input];
    size_t values = 1;
    bool fits = n == s->n_dims + 1 && shape[0] >= 1 && shape[0] <= UINT32_MAX;
    for (uint32_t i = 0; fits && i < s->n_dims; i++) {
        int64_t d = shape[i + 1];
        fits = d >= 1 && (s->dims[i] == d || s->dims[i] == SV_DIM_DYNAMIC);
        if (fits && ((uint64_t)d > SV_VALUES_MAX || values * (size_t)d > SV_VALUES_MAX))
            return sv_error(err, SV_EUSAGE, "a row of input '%s' has more than %d values", s->name,
                            SV_VALUES_MAX);
        values *= fits ? (size_t)d : 1;
        v->dims[i] = d;
    }
    if (!fits)
        return refuse_shape(s, err);
    if (shape[0] > m->rows_max)
        return sv_error(err, SV_EUSAGE,
                        "%lld rows are too many: a batch of this model has at most %u",
                        (long long)shape[0], m->rows_max);
    if (r->rows && r->rows != (uint32_t)shape[0])
        return sv_error(err, SV_EUSAGE,
                        "the inputs have %u and %lld rows: they must have the same number", r->rows,
                        (long long)shape[0]);
    r->rows = (uint32_t)shape[0];
    return 0;
}

/* ---- values ---- */

size_t sv_bytes_span(const uint8_t *bytes, size_t len, size_t n_elements)
{
    size_t at = 0;
    for (size_t i = 0; i < n_elements; i++) {
        uint32_t n;
        if (len - at < sizeof n)
            return SIZE_MAX;
        memcpy(&n, bytes + at, sizeof n);
        at += sizeof n;
        if (len - at < n)
            return SIZE_MAX;
        at += n;
    }
    return at;
}

int sv_infer_take_raw(const struct sv_infer_model *m, uint32_t input, const uint8_t *bytes,
                      size_t len, struct sv_infer_request *r, struct sv_err *err)
{
    const struct sv_tensor_spec *s = &m->inputs[input];
    struct sv_tensor_value *v = &r->in[input];
    size_t values = sv_tensor_values(v->dims, s->n_dims) * r->rows;
    size_t wanted = s->type == SV_TYPE_BYTES ? sv_bytes_span(bytes, len, values)
                                             : values * sv_datatype_size(s->type);
    if (wanted != len)
        return sv_error(err, SV_EUSAGE,
                        "the size of the binary data of input '%s' does not match its shape",
                        s->name);
    v->bytes = malloc(len ? len : 1);
    if (!v->bytes)
        return sv_error(err, SV_ENOMEM, "out of memory");
    memcpy(v->bytes, bytes, len);
    v->len = len;
    return 0;
}

int sv_infer_check_whole(const struct sv_infer_model *m, const struct sv_infer_request *r,
                         struct sv_err *err)
{
    if (!r->rows)
        return sv_error(err, SV_EUSAGE, "the request has no inputs");
    for (uint32_t i = 0; i < m->n_inputs; i++)
        if (!r->in[i].bytes)
            return sv_error(err, SV_EUSAGE, "the input '%s' is missing", m->inputs[i].name);
    return 0;
}

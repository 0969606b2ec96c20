/* Reads inference requests and writes answers.
 *
 * Called by the HTTP front for every request. The body is hostile: it is checked to be JSON as a
 * whole first, then its members are looked at once; sizes are compared with the model's before
 * memory is taken. */
#include "server/infer_message.h"
#include "server/infer_values.h"

#include "core/base/json_scan.h"
#include "core/stream/json_members.h"

struct parsing {
    const struct sv_infer_model *model;
    const uint8_t *binary; /* what no input has taken yet */
    size_t binary_size;
    struct sv_infer_request *out;
    struct sv_err *err;
};

static int refuse(struct parsing *p, const char *what)
{
    return sv_error(p->err, SV_EUSAGE, "%s", what);
}

/* A member of `parameters`: a whole number or a truth value. */
static bool find_parameter(const struct sv_member *parameters, const char *key, int64_t *number,
                           bool *truth)
{
    struct sv_members members = sv_members_of(parameters->value.bytes, parameters->value.len);
    for (struct sv_member m; sv_member_next(&members, &m);) {
        if (!sv_member_is(&m, key))
            continue;
        if (truth)
            *truth = m.type == 't';
        return !number || sv_member_i64(&m, number);
    }
    return false;
}

static int read_shape(struct parsing *p, uint32_t input, const struct sv_member *m)
{
    struct sv_members dims = sv_members_of(m->value.bytes, m->value.len);
    struct sv_member dim;
    int64_t shape[SV_DIMS_MAX + 2];
    uint32_t n = 0;
    while (m->type == '[' && n < SV_DIMS_MAX + 2 && sv_member_next(&dims, &dim)) {
        shape[n] = 0;
        sv_member_i64(&dim, &shape[n++]); /* what is no number is a 0, which is refused */
    }
    return sv_infer_check_shape(p->model, input, shape, n, p->out, p->err);
}

struct input_parts {
    struct sv_member name, type, shape, data, parameters;
    bool has_name, has_shape, has_data, has_parameters, has_type;
};

static int find_parts(struct parsing *p, const struct sv_member *input, struct input_parts *parts)
{
    struct sv_members members = sv_members_of(input->value.bytes, input->value.len);
    if (input->type != '{')
        return refuse(p, "inputs must be objects");
    const struct {
        const char *key;
        struct sv_member *to;
        bool *has;
        char type; /* 0: any */
    } known[] = {{"name", &parts->name, &parts->has_name, '"'},
                 {"datatype", &parts->type, &parts->has_type, '"'},
                 {"shape", &parts->shape, &parts->has_shape, 0},
                 {"data", &parts->data, &parts->has_data, 0},
                 {"parameters", &parts->parameters, &parts->has_parameters, '{'}};
    for (struct sv_member m; sv_member_next(&members, &m);)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (sv_member_is(&m, known[i].key) && (!known[i].type || m.type == known[i].type)) {
                *known[i].to = m;
                *known[i].has = true;
            }
    return 0;
}

/* Name, type and shape of an input; which of the model's it is. */
static int read_head(struct parsing *p, const struct input_parts *parts, uint32_t *input)
{
    const struct sv_text *name = &parts->name.value, *type = &parts->type.value;
    int code = 0;
    if (parts->has_name)
        code = sv_infer_find_input(p->model, name->bytes, name->len, input, p->err);
    if (code == 0 && parts->has_name && parts->has_type)
        code = sv_infer_check_type(&p->model->inputs[*input], type->bytes, type->len, p->err);
    if (code == 0 && (!parts->has_name || !parts->has_type || !parts->has_shape))
        code = refuse(p, "an input needs name, datatype and shape");
    if (code == 0 && p->out->in[*input].bytes)
        code = sv_error(p->err, SV_EUSAGE, "the input '%s' is given twice",
                        p->model->inputs[*input].name);
    return code == 0 ? read_shape(p, *input, &parts->shape) : code;
}

static int take_binary(struct parsing *p, uint32_t input, int64_t size)
{
    if (size < 0 || (uint64_t)size > p->binary_size)
        return refuse(p, "binary_data_size does not match the bytes after the JSON");
    int code = sv_infer_take_raw(p->model, input, p->binary, (size_t)size, p->out, p->err);
    p->binary += size;
    p->binary_size -= (size_t)size;
    return code;
}

static int read_input(struct parsing *p, const struct sv_member *member)
{
    struct input_parts parts = {0};
    uint32_t input = 0;
    int64_t size = 0;
    int code = find_parts(p, member, &parts);
    if (code == 0)
        code = read_head(p, &parts, &input);
    if (code < 0)
        return code;
    const struct sv_tensor_spec *spec = &p->model->inputs[input];
    struct sv_tensor_value *v = &p->out->in[input];
    bool is_binary = parts.has_parameters &&
                     find_parameter(&parts.parameters, "binary_data_size", &size, NULL);
    if (is_binary == parts.has_data)
        return refuse(p, "an input needs either data or the parameter binary_data_size");
    if (is_binary)
        return take_binary(p, input, size);
    if (!sv_values_have_json(spec->type))
        return sv_error(p->err, SV_EUSAGE,
                        "%s has no form in JSON: send input '%s' with binary_data_size",
                        sv_datatype_name(spec->type), spec->name);
    return sv_values_read(spec->type, parts.data.value.bytes, parts.data.value.len,
                          sv_tensor_values(v->dims, spec->n_dims) * p->out->rows, v, p->err);
}

static int read_inputs(struct parsing *p, const struct sv_member *inputs)
{
    struct sv_members members = sv_members_of(inputs->value.bytes, inputs->value.len);
    struct sv_member m;
    int code = inputs->type == '[' ? 0 : refuse(p, "inputs must be an array");
    while (code == 0 && sv_member_next(&members, &m))
        code = read_input(p, &m);
    return code;
}

static int read_output(struct parsing *p, const struct sv_member *output)
{
    struct sv_members members = sv_members_of(output->value.bytes, output->value.len);
    struct sv_member m;
    uint32_t which = 0;
    bool is_binary = false, has_name = false;
    int code = output->type == '{' ? 0 : refuse(p, "outputs must be objects");
    while (code == 0 && sv_member_next(&members, &m)) {
        if (sv_member_is(&m, "name")) {
            has_name = true;
            code = sv_infer_find_output(p->model, m.value.bytes, m.value.len, &which, p->err);
        } else if (sv_member_is(&m, "parameters") && m.type == '{') {
            find_parameter(&m, "binary_data", NULL, &is_binary);
        }
    }
    if (code == 0 && !has_name)
        code = refuse(p, "an output needs a name");
    p->out->asks[which] = code == 0;
    p->out->wants_binary[which] = is_binary;
    return code;
}

static int read_outputs(struct parsing *p, const struct sv_member *outputs)
{
    struct sv_members list = sv_members_of(outputs->value.bytes, outputs->value.len);
    struct sv_member output;
    int code = outputs->type == '[' ? 0 : refuse(p, "outputs must be an array");
    while (code == 0 && sv_member_next(&list, &output))
        code = read_output(p, &output);
    return code;
}

static int read_id(struct parsing *p, const struct sv_member *m)
{
    unsigned oddities = 0;
    if (m->type != '"' || m->value.len >= sizeof p->out->id)
        return refuse(p, "id must be a text of less than 128 bytes");
    size_t n =
        sv_json_unescape((const uint8_t *)m->value.bytes, m->value.len, p->out->id, &oddities);
    p->out->id[n] = 0;
    return 0;
}

static bool is_binary(const struct sv_infer_request *r, uint32_t output)
{
    return r->wants_all_binary || r->wants_binary[output];
}

/* An output that cannot be written as JSON is refused before it is computed. */
static int check_forms(struct parsing *p)
{
    for (uint32_t i = 0; i < p->model->n_outputs; i++) {
        enum sv_datatype type = p->model->outputs[i].type;
        if (!sv_values_have_json(type) && sv_infer_is_asked(p->out, i) && !is_binary(p->out, i))
            return sv_error(p->err, SV_EUSAGE,
                            "%s has no form in JSON: ask for output '%s' with binary_data",
                            sv_datatype_name(type), p->model->outputs[i].name);
    }
    return 0;
}

static int read_members(struct parsing *p, const uint8_t *json, size_t len)
{
    struct sv_members members = sv_members_of((const char *)json, len);
    struct sv_member m;
    int code = members.is_object ? 0 : refuse(p, "the request must be a JSON object");
    while (code == 0 && sv_member_next(&members, &m)) {
        if (sv_member_is(&m, "id"))
            code = read_id(p, &m);
        else if (sv_member_is(&m, "inputs"))
            code = read_inputs(p, &m);
        else if (sv_member_is(&m, "outputs"))
            code = read_outputs(p, &m);
        else if (sv_member_is(&m, "parameters") && m.type == '{')
            find_parameter(&m, "binary_data_output", NULL, &p->out->wants_all_binary);
    }
    if (code == 0)
        code = sv_infer_check_whole(p->model, p->out, p->err);
    if (code == 0 && p->binary_size)
        code = refuse(p, "there are more bytes after the JSON than binary_data_size says");
    return code == 0 ? check_forms(p) : code;
}

int sv_infer_parse(const struct sv_infer_model *model, const uint8_t *body, size_t len,
                   size_t json_len, struct sv_infer_request *out, struct sv_err *err)
{
    *out = (struct sv_infer_request){0};
    struct parsing p = {.model = model, .out = out, .err = err};
    if (json_len > len)
        return refuse(&p, "Inference-Header-Content-Length is larger than the body");
    if (!sv_json_valid(body, json_len))
        return refuse(&p, "the request is not valid JSON");
    p.binary = body + json_len;
    p.binary_size = len - json_len;
    int code = read_members(&p, body, json_len);
    if (code < 0)
        sv_infer_request_free(out);
    return code;
}

/* ---- answers ---- */

static void write_output(struct sv_json *j, const struct sv_tensor_spec *spec,
                         const struct sv_tensor_value *v, uint32_t rows, bool in_binary)
{
    sv_json_begin(j, '{');
    sv_json_put(j, "name", cstr, spec->name);
    sv_json_put(j, "datatype", cstr, sv_datatype_name(spec->type));
    sv_json_put(j, "shape", begin, '[');
    sv_json_u64(j, rows);
    for (uint32_t i = 0; i < spec->n_dims; i++)
        sv_json_i64(j, v->dims[i]);
    sv_json_end(j);
    if (in_binary) {
        sv_json_put(j, "parameters", begin, '{');
        sv_json_put(j, "binary_data_size", u64, v->len);
        sv_json_end(j);
    } else {
        sv_json_put(j, "data", begin, '[');
        sv_values_write(j, spec->type, v->bytes, v->len);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_infer_write(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                    struct sv_buf *out, size_t *json_len)
{
    struct sv_json j;
    const struct sv_infer_request *asked = a->request_asks;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "model_name", cstr, model->name);
    sv_json_put(&j, "model_version", cstr, model->version);
    if (a->id[0])
        sv_json_put(&j, "id", cstr, a->id);
    sv_json_put(&j, "parameters", begin, '{');
    sv_json_put(&j, "request_id", u64, a->request);
    sv_json_put(&j, "batch_id", u64, a->batch);
    sv_json_put(&j, "batch_size", u64, a->batch_rows);
    sv_json_put(&j, "worker_id", i64, a->worker);
    sv_json_end(&j);
    sv_json_put(&j, "outputs", begin, '[');
    for (uint32_t i = 0; i < model->n_outputs; i++)
        if (sv_infer_is_asked(asked, i))
            write_output(&j, &model->outputs[i], &a->out[i], a->rows, is_binary(asked, i));
    sv_json_end(&j);
    sv_json_end(&j);
    *json_len = out->len;
    for (uint32_t i = 0; i < model->n_outputs; i++)
        if (sv_infer_is_asked(asked, i) && is_binary(asked, i))
            sv_buf_add(out, a->out[i].bytes, a->out[i].len);
}

void sv_infer_error(const char *message, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "error", cstr, message);
    sv_json_end(&j);
}

static void describe_tensors(struct sv_json *j, const struct sv_tensor_spec *specs, uint32_t n)
{
    sv_json_begin(j, '[');
    for (uint32_t i = 0; i < n; i++) {
        sv_json_begin(j, '{');
        sv_json_put(j, "name", cstr, specs[i].name);
        sv_json_put(j, "datatype", cstr, sv_datatype_name(specs[i].type));
        sv_json_put(j, "shape", begin, '[');
        sv_json_i64(j, SV_DIM_DYNAMIC);
        for (uint32_t k = 0; k < specs[i].n_dims; k++)
            sv_json_i64(j, specs[i].dims[k]);
        sv_json_end(j);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_infer_describe(const struct sv_infer_model *model, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "name", cstr, model->name);
    sv_json_put(&j, "versions", begin, '[');
    sv_json_cstr(&j, model->version);
    sv_json_end(&j);
    sv_json_put(&j, "platform", cstr, model->platform);
    sv_json_lit(&j, "inputs");
    describe_tensors(&j, model->inputs, model->n_inputs);
    sv_json_lit(&j, "outputs");
    describe_tensors(&j, model->outputs, model->n_outputs);
    sv_json_end(&j);
}

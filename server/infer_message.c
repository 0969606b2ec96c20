/* Reads inference requests and writes answers.
 *
 * Called by the HTTP front for every request. The body is hostile: it is checked to be JSON as a whole first, then its members are looked
 * at once; sizes are compared with the model's before memory is taken. */
#include "server/infer_message.h"

#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/stream/json_members.h"

#include <stdio.h>
#include <stdlib.h>

struct parsing {
    const struct sv_infer_model *model;
    const uint8_t *binary;
    size_t binary_size;
    struct sv_infer_request *out;
    struct sv_err *err;
    bool has_input;
};

static int refuse(struct parsing *p, const char *what)
{
    return sv_err_set(p->err, SV_EUSAGE, SV_NO_POS, "%s", what);
}

static bool text_is(const struct sv_member *m, const char *text)
{
    return m->type == '"' && m->value.len == strlen(text) &&
           memcmp(m->value.bytes, text, m->value.len) == 0;
}

/* A member of `parameters`: a whole number or a truth value. */
static bool find_parameter(const struct sv_member *parameters, const char *key, int64_t *number,
                           bool *truth)
{
    struct sv_members members = sv_members_of(parameters->value.bytes, parameters->value.len);
    struct sv_member m;
    while (sv_member_next(&members, &m)) {
        if (!sv_member_is(&m, key))
            continue;
        if (truth)
            *truth = m.type == 't';
        return !number || sv_member_i64(&m, number);
    }
    return false;
}

static int read_shape(struct parsing *p, const struct sv_member *m, uint32_t *rows)
{
    const struct sv_infer_model *model = p->model;
    struct sv_members dims = sv_members_of(m->value.bytes, m->value.len);
    struct sv_member dim;
    uint32_t n = 0;
    bool fits = m->type == '[';
    while (fits && sv_member_next(&dims, &dim)) {
        int64_t v = 0;
        fits = n <= model->n_dims && sv_member_i64(&dim, &v) && v >= 1 && v <= UINT32_MAX &&
               (n == 0 || model->dims[n - 1] == v);
        if (n++ == 0)
            *rows = (uint32_t)v;
    }
    if (fits && n == model->n_dims + 1 && *rows > model->rows_max)
        return sv_err_set(p->err, SV_EUSAGE, SV_NO_POS,
                          "%u rows are too many: a batch of this model has at most %u", *rows,
                          model->rows_max);
    if (fits && n == model->n_dims + 1)
        return 0;
    char text[64] = "";
    for (uint32_t i = 0, at = 0; i < model->n_dims; i++)
        at += (uint32_t)snprintf(text + at, sizeof text - at, ", %u", model->dims[i]);
    return sv_err_set(p->err, SV_EUSAGE, SV_NO_POS, "the shape of input '%s' must be [rows%s]",
                      model->input, text);
}

/* Numbers between brackets and commas, however nested; the text is known to be JSON. */
static int read_numbers(struct parsing *p, const struct sv_member *m, size_t expected)
{
    const uint8_t *at = (const uint8_t *)m->value.bytes, *end = at + m->value.len;
    float *to = p->out->data;
    size_t n = 0;
    if (m->type != '[')
        return refuse(p, "data must be an array of numbers");
    while (at < end) {
        if (*at == '[' || *at == ']' || *at == ',' || sv_json_is_blank(*at)) {
            at++;
            continue;
        }
        struct sv_json_number number;
        const uint8_t *next = sv_json_number(at, end, &number);
        if (!next || n == expected)
            return next ? refuse(p, "data has more numbers than its shape says")
                        : refuse(p, "data must be an array of numbers");
        to[n++] = (float)sv_json_number_double(&number, at, (size_t)(next - at));
        at = next;
    }
    return n == expected ? 0 : refuse(p, "data has fewer numbers than its shape says");
}

struct input_parts {
    struct sv_member shape, data, parameters;
    bool has_name, has_shape, has_data, has_parameters, has_type;
};

static int find_parts(struct parsing *p, const struct sv_member *input, struct input_parts *parts)
{
    struct sv_members members = sv_members_of(input->value.bytes, input->value.len);
    struct sv_member m;
    if (input->type != '{')
        return refuse(p, "inputs must be objects");
    while (sv_member_next(&members, &m)) {
        if (sv_member_is(&m, "name")) {
            if (!text_is(&m, p->model->input))
                return sv_err_set(p->err, SV_EUSAGE, SV_NO_POS,
                                  "no such input: the input of the model is '%s'", p->model->input);
            parts->has_name = true;
        } else if (sv_member_is(&m, "datatype")) {
            if (!text_is(&m, "FP32"))
                return refuse(p, "the datatype must be FP32");
            parts->has_type = true;
        } else if (sv_member_is(&m, "shape")) {
            parts->shape = m;
            parts->has_shape = true;
        } else if (sv_member_is(&m, "data")) {
            parts->data = m;
            parts->has_data = true;
        } else if (sv_member_is(&m, "parameters") && m.type == '{') {
            parts->parameters = m;
            parts->has_parameters = true;
        }
    }
    if (!parts->has_name || !parts->has_type || !parts->has_shape)
        return refuse(p, "an input needs name, datatype and shape");
    return 0;
}

static int read_input(struct parsing *p, const struct sv_member *input)
{
    struct input_parts parts = {0};
    int64_t size = 0;
    int code = find_parts(p, input, &parts);
    if (code == 0)
        code = read_shape(p, &parts.shape, &p->out->rows);
    if (code < 0)
        return code;
    if (p->has_input)
        return refuse(p, "one input only");
    p->has_input = true;
    size_t n = p->out->rows * p->model->in_size;
    bool is_binary = parts.has_parameters &&
                     find_parameter(&parts.parameters, "binary_data_size", &size, NULL);
    if (is_binary == parts.has_data)
        return refuse(p, "an input needs either data or the parameter binary_data_size");
    if (is_binary && ((uint64_t)size != n * sizeof(float) || (uint64_t)size != p->binary_size))
        return refuse(p, "binary_data_size does not match the shape or the bytes after the JSON");
    p->out->data = malloc(n * sizeof(float));
    if (!p->out->data)
        return sv_err_set(p->err, SV_ENOMEM, SV_NO_POS, "out of memory");
    if (!is_binary)
        return read_numbers(p, &parts.data, n);
    memcpy(p->out->data, p->binary, n * sizeof(float));
    return 0;
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

static int read_outputs(struct parsing *p, const struct sv_member *outputs)
{
    struct sv_members list = sv_members_of(outputs->value.bytes, outputs->value.len);
    struct sv_member output, m;
    if (outputs->type != '[')
        return refuse(p, "outputs must be an array");
    while (sv_member_next(&list, &output)) {
        struct sv_members members = sv_members_of(output.value.bytes, output.value.len);
        if (output.type != '{')
            return refuse(p, "outputs must be objects");
        while (sv_member_next(&members, &m)) {
            if (sv_member_is(&m, "name") && !text_is(&m, p->model->output))
                return sv_err_set(p->err, SV_EUSAGE, SV_NO_POS,
                                  "no such output: the output of the model is '%s'",
                                  p->model->output);
            if (sv_member_is(&m, "parameters") && m.type == '{')
                find_parameter(&m, "binary_data", NULL, &p->out->wants_binary);
        }
    }
    return 0;
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
            find_parameter(&m, "binary_data_output", NULL, &p->out->wants_binary);
    }
    return code == 0 && !p->has_input ? refuse(p, "the request has no inputs") : code;
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
    if (code < 0) {
        free(out->data);
        out->data = NULL;
    }
    return code;
}

/* ---- answers ---- */

static void text(struct sv_json *j, const char *s)
{
    sv_json_text(j, s, strlen(s));
}

/* Nine digits bring every float back exactly. */
static void write_numbers(struct sv_json *j, const float *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char number[32];
        int len = snprintf(number, sizeof number, "%.9g", (double)data[i]);
        if (data[i] - data[i] == 0)
            sv_json_raw(j, number, (size_t)len);
        else
            sv_json_double(j, (double)data[i]);
    }
}

static void write_output(struct sv_json *j, const struct sv_infer_model *model,
                         const struct sv_infer_answer *a)
{
    size_t n = (size_t)a->rows * model->out_size;
    sv_json_begin(j, '{');
    sv_json_lit(j, "name");
    text(j, model->output);
    sv_json_lit(j, "datatype");
    text(j, "FP32");
    sv_json_lit(j, "shape");
    sv_json_begin(j, '[');
    sv_json_u64(j, a->rows);
    sv_json_u64(j, model->out_size);
    sv_json_end(j);
    if (a->is_binary) {
        sv_json_lit(j, "parameters");
        sv_json_begin(j, '{');
        sv_json_lit(j, "binary_data_size");
        sv_json_u64(j, n * sizeof(float));
        sv_json_end(j);
    } else {
        sv_json_lit(j, "data");
        sv_json_begin(j, '[');
        write_numbers(j, a->data, n);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_infer_write(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                    struct sv_buf *out, size_t *json_len)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "model_name");
    text(&j, model->name);
    sv_json_lit(&j, "model_version");
    text(&j, model->version);
    if (a->id[0]) {
        sv_json_lit(&j, "id");
        text(&j, a->id);
    }
    sv_json_lit(&j, "parameters");
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "request_id");
    sv_json_u64(&j, a->request);
    sv_json_lit(&j, "batch_id");
    sv_json_u64(&j, a->batch);
    sv_json_lit(&j, "batch_size");
    sv_json_u64(&j, a->batch_rows);
    sv_json_lit(&j, "worker_id");
    sv_json_i64(&j, a->worker);
    sv_json_end(&j);
    sv_json_lit(&j, "outputs");
    sv_json_begin(&j, '[');
    write_output(&j, model, a);
    sv_json_end(&j);
    sv_json_end(&j);
    *json_len = out->len;
    if (a->is_binary)
        sv_buf_add(out, a->data, (size_t)a->rows * model->out_size * sizeof(float));
}

void sv_infer_error(const char *message, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "error");
    text(&j, message);
    sv_json_end(&j);
}

static void describe_tensor(struct sv_json *j, const char *name, const uint32_t *dims, uint32_t n)
{
    sv_json_begin(j, '[');
    sv_json_begin(j, '{');
    sv_json_lit(j, "name");
    text(j, name);
    sv_json_lit(j, "datatype");
    text(j, "FP32");
    sv_json_lit(j, "shape");
    sv_json_begin(j, '[');
    sv_json_i64(j, -1);
    for (uint32_t i = 0; i < n; i++)
        sv_json_u64(j, dims[i]);
    sv_json_end(j);
    sv_json_end(j);
    sv_json_end(j);
}

void sv_infer_describe(const struct sv_infer_model *model, struct sv_buf *out)
{
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "name");
    text(&j, model->name);
    sv_json_lit(&j, "versions");
    sv_json_begin(&j, '[');
    text(&j, model->version);
    sv_json_end(&j);
    sv_json_lit(&j, "platform");
    text(&j, "stave_safetensors");
    sv_json_lit(&j, "inputs");
    describe_tensor(&j, model->input, model->dims, model->n_dims);
    sv_json_lit(&j, "outputs");
    describe_tensor(&j, model->output, &model->out_size, 1);
    sv_json_end(&j);
}

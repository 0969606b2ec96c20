/* Loads a model's file and joins it with its configuration: names, types and shapes of its tensors,
 * rows of a batch.
 *
 * Called for each configuration when the server starts, and for --check. */
#include "server/run/engine.h"

#include <string.h>

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int sv_engine_load(const struct sv_config *c, const struct sv_config *server,
                   struct sv_network **net, struct sv_onnx **onnx, struct sv_err *err)
{
    if (sv_config_is_pytorch(c->model_path))
        return sv_error(err, SV_EFORMAT,
                        "%s: PyTorch's files cannot be served: export it as ONNX and give the "
                        "file: model = torch.jit.load('%.100s').eval(); torch.onnx.export(model, "
                        "torch.zeros(1, 32), 'model.onnx', input_names=['input'], "
                        "dynamic_axes={'input': {0: 'rows'}})",
                        c->model_path, base_of(c->model_path));
    bool is_onnx = sv_onnx_is_model(c->model_path);
    int code = is_onnx ? 0 : sv_network_open(c->model_path, net, err);
    if (code < 0 || (!is_onnx && (*net)->kind == SV_NETWORK_FLOATS))
        return code;
    if (server->use_cpu)
        return is_onnx ? sv_onnx_open(c->model_path, server->onnxruntime, onnx, net, err) : 0;
    return sv_error(
        err, SV_EUSAGE,
        "%s: %s are computed by CPU workers, not by OpenCL workers: remove use_cpu: false",
        c->model_path, is_onnx ? "ONNX models" : "models with typed inputs");
}

/* ---- what the configuration says about tensors ---- */

static int read_type(const struct sv_config *c, const struct sv_yaml_node *k,
                     const struct sv_tensor_spec *s, struct sv_err *err)
{
    enum sv_datatype type;
    if (k->kind == SV_YAML_SCALAR && sv_datatype_of(k->text, strlen(k->text), &type) &&
        type == s->type)
        return 0;
    return sv_yaml_fail(c->yaml, k, err, "data_type of '%s' must be TYPE_%s", s->name,
                        s->type == SV_TYPE_BYTES ? "STRING" : sv_datatype_name(s->type));
}

/* A dimension that the model leaves open may be fixed here. */
static int read_dims(const struct sv_config *c, const struct sv_yaml_node *k,
                     struct sv_tensor_spec *s, struct sv_err *err)
{
    uint32_t i = 0;
    for (const struct sv_yaml_node *d = k->first; d; d = d->next, i++) {
        int64_t v;
        bool fits = sv_yaml_int(d, &v) && i <= s->n_dims;
        if (fits && i > 0 && s->dims[i - 1] == SV_DIM_DYNAMIC && v >= 1 && v <= SV_VALUES_MAX)
            s->dims[i - 1] = v;
        if (!fits || (i > 0 && v != s->dims[i - 1]))
            return sv_yaml_fail(c->yaml, d, err, "dims do not fit the model in %s", c->model_path);
    }
    if (i != s->n_dims + 1)
        return sv_yaml_fail(c->yaml, k, err, "dims must be [rows and %u more], as the model's",
                            s->n_dims);
    return 0;
}

/* A name may only be changed where nobody else knows the model's own. */
static int read_name(const struct sv_model *m, const struct sv_yaml_node *k,
                     struct sv_tensor_spec *s, struct sv_err *err)
{
    const struct sv_config *c = m->config;
    if (strlen(k->text) >= sizeof s->name)
        return sv_yaml_fail(c->yaml, k, err, "name: at most %zu bytes", sizeof s->name - 1);
    if (m->net->kind != SV_NETWORK_FLOATS && strcmp(k->text, s->name) != 0)
        return sv_yaml_fail(c->yaml, k, err, "name: the model's tensor here is '%s'", s->name);
    memcpy(s->name, k->text, strlen(k->text) + 1);
    return 0;
}

static int check_tensor(const struct sv_model *m, const struct sv_yaml_node *item,
                        struct sv_tensor_spec *s, struct sv_err *err)
{
    static const char *const keys[] = {"name", "data_type", "dims"};
    const struct sv_config *c = m->config;
    int code = 0;
    for (const struct sv_yaml_node *k = item->first; code == 0 && k; k = k->next) {
        if (strcmp(k->key, "name") == 0 && k->kind == SV_YAML_SCALAR)
            code = read_name(m, k, s, err);
        else if (strcmp(k->key, "data_type") == 0)
            code = read_type(c, k, s, err);
        else if (strcmp(k->key, "dims") == 0)
            code = read_dims(c, k, s, err);
        else
            code = sv_yaml_unknown(c->yaml, k, keys, 3, err);
    }
    return code;
}

static int check_tensors(const struct sv_model *m, const struct sv_yaml_node *list,
                         struct sv_tensor_spec *specs, uint32_t n, struct sv_err *err)
{
    const struct sv_config *c = m->config;
    int code = 0;
    if (!list)
        return 0;
    if (list->kind != SV_YAML_LIST || list->n != n)
        return sv_yaml_fail(c->yaml, list, err,
                            "must be a list of %u {name, data_type, dims}, as the model has", n);
    for (const struct sv_yaml_node *item = list->first; code == 0 && item; item = item->next) {
        if (item->kind != SV_YAML_MAP)
            return sv_yaml_fail(c->yaml, item, err, "must be {name, data_type, dims}");
        code = check_tensor(m, item, specs++, err);
    }
    return code;
}

/* ---- rows ---- */

/* A model with a fixed number of rows is always given that many: what no request filled is computed
 * and forgotten. */
static int set_rows(struct sv_model *m, struct sv_err *err)
{
    uint32_t fixed = m->onnx ? sv_onnx_fixed_rows(m->onnx) : 0;
    m->rows_max = (uint32_t)sv_config_batch_limit(m->config);
    if (fixed && fixed < m->rows_max)
        m->rows_max = fixed;
    if (m->net->in_size * m->rows_max > UINT32_MAX || m->net->out_size * m->rows_max > UINT32_MAX)
        return sv_error(err, SV_ELIMIT,
                        "%s: a batch of %u rows is too large: set a smaller max_batch_size",
                        m->config->model_path, m->rows_max);
    return 0;
}

int sv_model_load(struct sv_model *m, struct sv_err *err)
{
    const struct sv_config *c = m->config;
    struct sv_infer_model *d = &m->describes;
    int code = sv_engine_load(c, m->engine->config, &m->net, &m->onnx, err);
    if (code == 0)
        code = set_rows(m, err);
    if (code < 0)
        return code;
    m->has_floats = m->net->kind == SV_NETWORK_FLOATS;
    m->pads = strcmp(c->padding, "zeros") == 0;
    *d = (struct sv_infer_model){.name = c->name,
                                 .version = c->version,
                                 .platform = m->onnx ? "onnxruntime_onnx" : "stave_safetensors",
                                 .n_inputs = m->net->n_inputs,
                                 .n_outputs = m->net->n_outputs,
                                 .rows_max = m->rows_max};
    memcpy(d->inputs, m->net->inputs, sizeof d->inputs);
    memcpy(d->outputs, m->net->outputs, sizeof d->outputs);
    code = check_tensors(m, c->inputs, d->inputs, d->n_inputs, err);
    return code == 0 ? check_tensors(m, c->outputs, d->outputs, d->n_outputs, err) : code;
}

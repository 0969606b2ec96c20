/* Makes a network of a file's metadata and tensors.
 *
 * Called when a model is loaded. Each layer's shape is derived from the one before it and checked
 * against its tensors, so that the workers need no check; sizes are bounded (SIZE_LIMIT floats per
 * row). */
#include "server/network.h"

#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LIMIT (1u << 22)

struct building {
    struct sv_network *net;
    const char *path;
    struct sv_err *err;
};

static int refuse(struct building *b, const char *what, const char *name)
{
    return sv_error(b->err, SV_EFORMAT, "%s: %s '%s'", b->path, what, name);
}

static const float *tensor_of(struct building *b, const char *layer, const char *part,
                              const struct sv_tensor **out)
{
    char name[64];
    if (snprintf(name, sizeof name, "%s.%s", layer, part) >= (int)sizeof name)
        return NULL;
    *out = sv_tensors_find(b->net->file, name);
    return *out ? (*out)->data : NULL;
}

static int finish_weights(struct building *b, struct sv_layer *l, const char *name,
                          const struct sv_tensor *weight)
{
    const struct sv_tensor *bias;
    l->weight = weight->data;
    l->out.c = weight->dims[0];
    l->bias = tensor_of(b, name, "bias", &bias);
    if (!l->bias || bias->n_dims != 1 || bias->dims[0] != l->out.c)
        return refuse(b, "missing, or does not match its weight: the bias of layer", name);
    return 0;
}

static int add_dense(struct building *b, struct sv_layer *l, const char *name)
{
    const struct sv_tensor *weight;
    if (!tensor_of(b, name, "weight", &weight))
        return refuse(b, "missing weight of layer", name);
    if (weight->n_dims != 2 || weight->dims[1] != sv_volume_size(l->in))
        return refuse(b, "the weight does not match the input of layer", name);
    l->out = (struct sv_volume){0, 1, 1};
    return finish_weights(b, l, name, weight);
}

static int add_conv(struct building *b, struct sv_layer *l, const char *name)
{
    const struct sv_tensor *weight;
    if (!tensor_of(b, name, "weight", &weight))
        return refuse(b, "missing weight of layer", name);
    if (weight->n_dims != 4 || weight->dims[1] != l->in.c || weight->dims[2] != weight->dims[3] ||
        weight->dims[2] % 2 == 0 || weight->dims[2] > 31)
        return refuse(b, "the weight does not match the input of layer", name);
    l->kernel = weight->dims[2];
    l->out = l->in;
    size_t columns = (size_t)l->in.c * l->kernel * l->kernel * l->in.h * l->in.w;
    if (columns > b->net->columns)
        b->net->columns = columns;
    return finish_weights(b, l, name, weight);
}

static int add_pool(struct building *b, struct sv_layer *l, const char *argument)
{
    if (l->kind == SV_LAYER_AVGPOOL) {
        l->out = (struct sv_volume){l->in.c, 1, 1};
        return 0;
    }
    long window = strtol(argument, NULL, 10);
    if (window < 2 || window > 16 || l->in.h < window || l->in.w < window)
        return refuse(b, "the window does not fit: maxpool", argument);
    l->kernel = (uint32_t)window;
    l->out = (struct sv_volume){l->in.c, l->in.h / l->kernel, l->in.w / l->kernel};
    return 0;
}

const char *const sv_layer_kind_names[] = {"dense", "conv", "maxpool", "avgpool"};

static int add_layer(struct building *b, char *text)
{
    const char *const *kinds = sv_layer_kind_names;
    struct sv_network *net = b->net;
    char *words[4] = {0}, *rest = NULL;
    unsigned n = 0;
    for (char *w = strtok_r(text, " ", &rest); w && n < 4; w = strtok_r(NULL, " ", &rest))
        words[n++] = w;
    if (n == 0 || n == 4 || net->n == SV_LAYERS_MAX)
        return refuse(b, "malformed layer", text);
    struct sv_layer *l = &net->layers[net->n];
    unsigned kind = 0;
    while (kind < 4 && strcmp(words[0], kinds[kind]) != 0)
        kind++;
    if (kind == 4)
        return refuse(b, "no such kind of layer (dense, conv, maxpool, avgpool):", words[0]);
    l->kind = (enum sv_layer_kind)kind;
    l->in = net->out;
    bool takes_name = kind != SV_LAYER_AVGPOOL;
    if (takes_name && n < 2)
        return refuse(b, "a name or a size is missing after", words[0]);
    snprintf(l->name, sizeof l->name, "%s", takes_name ? words[1] : "");
    const char *act = kind <= SV_LAYER_CONV && n == 3 ? words[2] : NULL;
    if (act && strcmp(act, "relu") != 0 && strcmp(act, "softmax") != 0)
        return refuse(b, "no such activation (relu, softmax):", act);
    l->act = !act ? SV_ACT_NONE : act[0] == 'r' ? SV_ACT_RELU : SV_ACT_SOFTMAX;
    int code = kind == SV_LAYER_DENSE  ? add_dense(b, l, words[1])
               : kind == SV_LAYER_CONV ? add_conv(b, l, words[1])
                                       : add_pool(b, l, words[1]);
    if (code < 0)
        return code;
    net->out = l->out;
    size_t size = sv_volume_size(l->out);
    if (size == 0 || size > SIZE_LIMIT || net->columns > 4 * (size_t)SIZE_LIMIT)
        return refuse(b, "too large: layer", words[0]);
    if (size > net->widest)
        net->widest = size;
    net->n++;
    return 0;
}

static int read_input(struct building *b)
{
    struct sv_network *net = b->net;
    const char *text = net->file->input;
    uint32_t dims[3] = {0}, n = 0;
    for (char *end; n < 3; text = end + 1) {
        unsigned long v = strtoul(text, &end, 10);
        if (end == text || v < 1 || v > SIZE_LIMIT)
            break;
        dims[n++] = (uint32_t)v;
        if (*end == 0) {
            text = end;
            break;
        }
        if (*end != 'x')
            break;
    }
    if (*text || (n != 1 && n != 3))
        return refuse(b, "stave.input must be N or CxHxW, not", net->file->input);
    memcpy(net->in_dims, dims, sizeof dims);
    net->n_in_dims = n;
    net->in = n == 1 ? (struct sv_volume){dims[0], 1, 1}
                     : (struct sv_volume){dims[0], dims[1], dims[2]};
    net->in_size = sv_volume_size(net->in);
    return net->in_size > SIZE_LIMIT ? refuse(b, "too large: stave.input", net->file->input) : 0;
}

/* ---- inputs that are not one vector of floats ---- */

static int read_dims(struct building *b, char *text, struct sv_tensor_spec *s)
{
    char *rest = NULL;
    for (char *d = strtok_r(text, "x", &rest); d; d = strtok_r(NULL, "x", &rest)) {
        char *end;
        long v = strtol(d, &end, 10);
        if (*end || (v != SV_DIM_DYNAMIC && (v < 1 || v > SV_VALUES_MAX)) ||
            s->n_dims == SV_DIMS_MAX)
            return refuse(b, "malformed dimensions of input", s->name);
        s->dims[s->n_dims++] = v;
    }
    return 0;
}

/* NAME:TYPE:DIMS */
static int read_tensor(struct building *b, char *text)
{
    struct sv_network *net = b->net;
    char *rest = NULL, *name = strtok_r(text, ": ", &rest), *type = strtok_r(NULL, ":", &rest);
    if (!name || !type || !rest || net->n_inputs == SV_IO_MAX)
        return refuse(b, "stave.input must be NAME:TYPE:DIMS, at most 8 of them, not",
                      net->file->input);
    struct sv_tensor_spec *s = &net->inputs[net->n_inputs];
    if (strlen(name) >= sizeof s->name)
        return refuse(b, "too long: the name of input", name);
    memcpy(s->name, name, strlen(name) + 1);
    if (!sv_datatype_of(type, strlen(type), &s->type))
        return refuse(b, "no such datatype:", type);
    for (uint32_t i = 0; i < net->n_inputs; i++)
        if (strcmp(net->inputs[i].name, s->name) == 0)
            return refuse(b, "two inputs are called", s->name);
    net->n_inputs++;
    return read_dims(b, rest, s);
}

static int build_identity(struct building *b)
{
    struct sv_network *net = b->net;
    char inputs[sizeof net->file->input];
    char *rest = NULL;
    int code = 0;
    net->kind = SV_NETWORK_IDENTITY;
    memcpy(inputs, net->file->input, sizeof inputs);
    for (char *t = strtok_r(inputs, ",", &rest); code == 0 && t; t = strtok_r(NULL, ",", &rest))
        code = read_tensor(b, t);
    memcpy(net->outputs, net->inputs, sizeof net->outputs);
    net->n_outputs = net->n_inputs;
    return code == 0 && net->n_inputs == 0 ? refuse(b, "no input in", net->file->input) : code;
}

static struct sv_tensor_spec spec_of(const char *name, enum sv_datatype type, int64_t dim)
{
    struct sv_tensor_spec s = {.type = type, .n_dims = 1, .dims = {dim}};
    snprintf(s.name, sizeof s.name, "%s", name);
    return s;
}

static int add_embedding(struct building *b, const char *text)
{
    struct sv_network *net = b->net;
    const struct sv_tensor *weight;
    char word[8], name[56];
    if (sscanf(text, " %7s %55s", word, name) != 2 || strcmp(word, "embed") != 0)
        return refuse(b, "the first layer of a model of tokens must be embed NAME, not", text);
    if (!tensor_of(b, name, "weight", &weight) || weight->n_dims != 2 ||
        weight->dims[1] > SIZE_LIMIT)
        return refuse(b, "missing, or not [vocabulary, width]: the weight of layer", name);
    net->embedding = (struct sv_embedding){
        .weight = weight->data, .vocabulary = weight->dims[0], .width = weight->dims[1]};
    snprintf(net->embedding.name, sizeof net->embedding.name, "%s", name);
    net->in = (struct sv_volume){weight->dims[1], 1, 1};
    net->out = net->in;
    net->in_size = weight->dims[1];
    return 0;
}

static void describe_floats(struct sv_network *net)
{
    net->n_inputs = 1;
    net->inputs[0] = spec_of("input", SV_TYPE_FP32, 0);
    net->inputs[0].n_dims = net->n_in_dims;
    for (uint32_t i = 0; i < net->n_in_dims; i++)
        net->inputs[0].dims[i] = net->in_dims[i];
}

static void describe_tokens(struct sv_network *net)
{
    net->kind = SV_NETWORK_TOKENS;
    net->n_inputs = 2;
    net->inputs[0] = spec_of("input_ids", SV_TYPE_INT64, SV_DIM_DYNAMIC);
    net->inputs[1] = spec_of("attention_mask", SV_TYPE_INT64, SV_DIM_DYNAMIC);
}

int sv_network_check(const struct sv_network *net, const struct sv_infer_request *r,
                     struct sv_err *err)
{
    if (net->kind != SV_NETWORK_TOKENS)
        return 0;
    if (r->in[0].dims[0] != r->in[1].dims[0])
        return sv_error(err, SV_EUSAGE, "'%s' and '%s' must have the same shape",
                        net->inputs[0].name, net->inputs[1].name);
    for (size_t at = 0; at < r->in[0].len; at += sizeof(int64_t)) {
        int64_t id;
        memcpy(&id, r->in[0].bytes + at, sizeof id);
        if (id < 0 || id >= net->embedding.vocabulary)
            return sv_error(err, SV_EUSAGE, "%s: %lld is not in the vocabulary: 0 to %u",
                            net->inputs[0].name, (long long)id, net->embedding.vocabulary - 1);
    }
    return 0;
}

void sv_network_embed(const struct sv_embedding *e, const int64_t *ids, const int64_t *mask,
                      size_t n, float *out)
{
    size_t used = 0;
    memset(out, 0, e->width * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        const float *row = e->weight + (size_t)ids[i] * e->width;
        if (!mask[i])
            continue;
        used++;
        for (uint32_t k = 0; k < e->width; k++)
            out[k] += row[k];
    }
    for (uint32_t k = 0; used && k < e->width; k++)
        out[k] /= (float)used;
}

static int build(struct building *b)
{
    struct sv_network *net = b->net;
    char layers[sizeof net->file->layers];
    int code = sv_tensors_open(b->path, &net->file, b->err);
    if (code < 0)
        return code;
    if (!net->file->input[0] || !net->file->layers[0])
        return sv_error(b->err, SV_EFORMAT,
                        "%s: stave.input or stave.layers is missing in its metadata; they describe "
                        "how the tensors are connected (docs/server.md)",
                        b->path);
    if (strcmp(net->file->layers, "identity") == 0)
        return build_identity(b);
    bool is_tokens = strcmp(net->file->input, "tokens") == 0;
    if (!is_tokens)
        code = read_input(b);
    net->out = net->in;
    memcpy(layers, net->file->layers, sizeof layers);
    char *rest = NULL;
    for (char *l = strtok_r(layers, ",", &rest); code == 0 && l; l = strtok_r(NULL, ",", &rest))
        code = is_tokens && !net->embedding.width ? add_embedding(b, l) : add_layer(b, l);
    if (code == 0 && net->n == 0)
        code = refuse(b, "no layer in", net->file->layers);
    if (code < 0)
        return code;
    net->out_size = sv_volume_size(net->out);
    if (is_tokens)
        describe_tokens(net);
    else
        describe_floats(net);
    net->n_outputs = 1;
    net->outputs[0] = spec_of("output", SV_TYPE_FP32, (int64_t)net->out_size);
    return 0;
}

int sv_network_open(const char *path, struct sv_network **out, struct sv_err *err)
{
    struct building b = {.net = sv_alloc(sizeof *b.net), .path = path, .err = err};
    int code = build(&b);
    if (code < 0) {
        sv_network_close(b.net);
        return code;
    }
    *out = b.net;
    return 0;
}

void sv_network_close(struct sv_network *net)
{
    if (!net)
        return;
    sv_tensors_close(net->file);
    free(net);
}

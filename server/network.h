/* A network: layers in a row, weights from a safetensors file, described by its metadata.
 *
 *     stave.input   "32" (a vector) or "1x16x16" (channels, height, width)
 *     stave.layers  "conv c1 relu, maxpool 2, conv c2 relu, avgpool, dense fc softmax"
 *
 * An input of tokens has two INT64 tensors, input_ids and attention_mask [rows, any]; `embed NAME`
 * as the first layer takes NAME.weight [vocabulary, width] and makes the mean of the rows of the
 * ids whose mask is not 0. `identity` as the only layer gives back what it gets; its inputs are
 * "NAME:TYPE:DIMS, …", such as "a:INT8:2x-1, b:BYTES:1".
 *
 * dense NAME takes NAME.weight [out,in] and NAME.bias [out]; conv NAME takes NAME.weight
 * [out,in,k,k] (k odd, stride 1, padded to the same size) and NAME.bias. Shapes are checked when
 * the file is opened: what is here can be computed. How it is computed is up to the workers. */
#pragma once

#include "server/infer_tensors.h"
#include "server/tensors.h"

#define SV_LAYERS_MAX     32
#define SV_LAYER_NAME_MAX 56

enum sv_layer_kind { SV_LAYER_DENSE, SV_LAYER_CONV, SV_LAYER_MAXPOOL, SV_LAYER_AVGPOOL };
enum sv_activation { SV_ACT_NONE, SV_ACT_RELU, SV_ACT_SOFTMAX };

struct sv_volume {
    uint32_t c, h, w; /* a vector of n: n, 1, 1 */
};

struct sv_layer {
    enum sv_layer_kind kind;
    enum sv_activation act;
    struct sv_volume in, out;
    uint32_t kernel; /* of conv: its width; of maxpool: the window */
    const float *weight, *bias;
    char name[SV_LAYER_NAME_MAX]; /* of its tensors; of a pool its window or empty */
};
extern const char *const sv_layer_kind_names[]; /* "dense" … */

enum sv_network_kind {
    SV_NETWORK_FLOATS, /* one FP32 input of a fixed size, one output: on every kind of worker */
    SV_NETWORK_TOKENS,
    SV_NETWORK_IDENTITY,
    SV_NETWORK_OUTSIDE /* computed by somebody else: only the tensors are here */
};

struct sv_embedding {
    const float *weight;
    uint32_t vocabulary, width;
    char name[SV_LAYER_NAME_MAX];
};

struct sv_network {
    enum sv_network_kind kind;
    struct sv_tensor_spec inputs[SV_IO_MAX], outputs[SV_IO_MAX];
    uint32_t n_inputs, n_outputs;
    struct sv_embedding embedding; /* of tokens; the layers take its vector */
    struct sv_tensors *file;
    struct sv_layer layers[SV_LAYERS_MAX];
    uint32_t n;
    struct sv_volume in, out;
    uint32_t in_dims[3], n_in_dims; /* the input's shape as the file says it */
    size_t in_size, out_size;       /* floats of one row */
    size_t widest;                  /* floats of the widest layer's output, one row */
    size_t columns;                 /* floats that the largest convolution unfolds to, one row */
};

int sv_network_open(const char *path, struct sv_network **out, struct sv_err *err);
void sv_network_close(struct sv_network *net);
/* The values of a request that no shape can rule out: ids past the vocabulary. */
int sv_network_check(const struct sv_network *net, const struct sv_infer_request *r,
                     struct sv_err *err);
/* The vector of one row of `n` tokens. */
void sv_network_embed(const struct sv_embedding *e, const int64_t *ids, const int64_t *mask,
                      size_t n, float *out);

static inline size_t sv_volume_size(struct sv_volume v)
{
    return (size_t)v.c * v.h * v.w;
}

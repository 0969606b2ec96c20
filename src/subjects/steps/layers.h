/* Time per layer of a model, by kind of operation.
 *
 * The layer of a slice is its argument `layer` (also layer_id, layer_idx), else a number in its
 * name (layers.3, DecoderLayer_7, "layer 12"), else its parent's, else one in its track's name.
 * Where no slice has one, threads with small numbers are the layers, as inference engines write
 * them. The kind follows from words in the category, else in the name, else it is the parent's.
 * Self times are added up, so nested slices do not count twice. */
#pragma once

#include "store/trace.h"

enum sv_model_layer_kind {
    SV_LAYER_ATTENTION,
    SV_LAYER_GEMM,
    SV_LAYER_QUANT,
    SV_LAYER_MOE,
    SV_LAYER_ROUTING,
    SV_LAYER_NORM,
    SV_LAYER_ACT,
    SV_LAYER_COMM,
    SV_LAYER_SAMPLING,
    SV_LAYER_SCHEDULING,
    SV_LAYER_DATA, /* loading it, or waiting for it */
    SV_LAYER_OTHER,
    SV_N_LAYER
};
extern const char *const sv_layer_names[SV_N_LAYER];

struct sv_model_layer {
    int64_t number;
    int64_t ns[SV_N_LAYER];
    uint64_t count; /* slices */
};

struct sv_layers {
    struct sv_model_layer *layers; /* by number */
    size_t n, cap;
    bool by_thread;
    int64_t outside_ns; /* self time of what belongs to no layer */
};

#define SV_LAYERS_MAX 100000u

/* Slices that begin in [from_ns, to_ns). n is 0 when there are no layers. */
void sv_layers_find(struct sv_layers *l, const struct sv_trace *t, int64_t from_ns, int64_t to_ns);
void sv_layers_fini(struct sv_layers *l);

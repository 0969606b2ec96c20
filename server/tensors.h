/* A safetensors file in memory: named arrays of floats and the metadata beside them.
 *
 * The format: 8 bytes length of the header (little endian), the header as JSON, the data. The file
 * is hostile: sizes, offsets and shapes are checked against each other and against the file before
 * anything is believed. Only F32 is taken. */
#pragma once

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define SV_TENSOR_DIMS    4
#define SV_TENSORS_MAX    256
#define SV_TENSORS_HEADER (1u << 20)
#define SV_TENSORS_FILE   (1u << 30)

struct sv_tensor {
    char name[64];
    uint32_t dims[SV_TENSOR_DIMS];
    uint32_t n_dims;
    size_t n; /* elements */
    const float *data;
};

struct sv_tensors {
    uint8_t *bytes;
    float *data;
    struct sv_tensor items[SV_TENSORS_MAX];
    uint32_t n;
    char input[512];  /* metadata "stave.input": "32", "1x16x16" */
    char layers[512]; /* metadata "stave.layers": "dense fc1 relu, dense fc2 softmax" */
};

int sv_tensors_open(const char *path, struct sv_tensors **out, struct sv_err *err);
void sv_tensors_close(struct sv_tensors *t);
const struct sv_tensor *sv_tensors_find(const struct sv_tensors *t, const char *name);

/* Batches of models that take and give any tensors: joined from requests, computed on CPU workers,
 * divided again.
 *
 * Requests share a batch when their shapes are equal. With `padding: zeros` dynamic dimensions may
 * differ: shorter ones are filled up with zeros at their end, and an output's dynamic dimension
 * that has the padded size of the first input's at the same place is cut back to the request's
 * own. */
#pragma once

#include "server/infer_tensors.h"

struct sv_task;
struct sv_served;
struct sv_layer_times;

struct sv_batch_tensor {
    int64_t dims[SV_DIMS_MAX + 1]; /* rows first */
    uint8_t *bytes;
    size_t len;
};

/* Whether the request may join those that the batch has. */
bool sv_typed_fits(const struct sv_task *t, const struct sv_served *r);
void sv_typed_join(struct sv_task *t);
/* On a worker; false: t->why. */
bool sv_typed_compute(struct sv_task *t, float *scratch, struct sv_layer_times *times);
/* The request's part of the outputs, which begins with this row. false: no memory, or the outputs
 * are not what the model says. */
bool sv_typed_divide(const struct sv_task *t, struct sv_served *r, uint32_t row);
void sv_typed_free(struct sv_task *t);

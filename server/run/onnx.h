/* Models that ONNX Runtime computes: a file that ends in .onnx, inputs and outputs of any type but
 * strings, rows first, dimensions known or dynamic.
 *
 * The library is looked for when such a model is opened, never linked: a server without it serves
 * everything else. One session is shared by all CPU workers. */
#pragma once

#include "server/network.h"
#include "server/run/typed_batch.h"

struct sv_onnx; /* its functions below may be called from any thread */

bool sv_onnx_is_model(const char *path);

/* library: its path, or NULL (the variable STAVE_ONNXRUNTIME goes first, the loader's search path
 * last). *shape: a network without layers that holds the tensors; the caller closes it. */
int sv_onnx_open(const char *path, const char *library, struct sv_onnx **out,
                 struct sv_network **shape, struct sv_err *err);
void sv_onnx_close(struct sv_onnx *o);

const char *sv_onnx_version(const struct sv_onnx *o); /* the library's, such as 1.16.3 */
/* Rows that the model requires; 0: any number. The inputs must have that many. */
uint32_t sv_onnx_fixed_rows(const struct sv_onnx *o);

/* Computes the model's inputs in place; the outputs' bytes are allocated. false: why says what ONNX
 * Runtime said, or what of the outputs is not as the model says. */
bool sv_onnx_run(const struct sv_onnx *o, struct sv_batch_tensor *in, struct sv_batch_tensor *out,
                 char *why, size_t why_size);

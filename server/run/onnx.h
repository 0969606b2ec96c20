/* Models that ONNX Runtime computes: a file that ends in .onnx, one FP32 input [rows, …], one FP32 output [rows, …].
 *
 * The library is looked for when such a model is opened, never linked: a server without it serves everything else. One session is shared
 * by all CPU workers. */
#ifndef SV_SERVER_ONNX_H
#define SV_SERVER_ONNX_H

#include "server/network.h"

struct sv_onnx; /* its functions below may be called from any thread */

bool sv_onnx_is_model(const char *path);

/* library: its path, or NULL (the variable STAVE_ONNXRUNTIME goes first, the loader's search path last). *shape: a network without layers
 * that holds the sizes; the caller closes it. */
int sv_onnx_open(const char *path, const char *library, struct sv_onnx **out,
                 struct sv_network **shape, struct sv_err *err);
void sv_onnx_close(struct sv_onnx *o);

const char *sv_onnx_version(const struct sv_onnx *o); /* the library's, such as 1.16.3 */
const char *sv_onnx_input(const struct sv_onnx *o);   /* names of the tensors */
const char *sv_onnx_output(const struct sv_onnx *o);
/* Rows that the model requires; 0: any number. in and out must always be large enough for them. */
uint32_t sv_onnx_fixed_rows(const struct sv_onnx *o);

/* Computes in place: no copies. false: why says what ONNX Runtime said. */
bool sv_onnx_run(const struct sv_onnx *o, const float *in, float *out, uint32_t rows, char *why,
                 size_t why_size);

#endif

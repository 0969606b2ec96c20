/* Names of kernels as people read them: demangled, without parameters, template arguments folded.
 *
 *     "_ZN2at6native29vectorized_elementwise_kernelILi4E…"  at::native::vectorized_elementwise_kernel<…>
 *     "void gemm<float, 128>(float*, int)"                  gemm<…>
 *
 * Two kernels may have the same short name: it is for showing, the exact one says which it is. */
#pragma once

#include "core/base/buf.h"
#include "core/stream/dict.h"

/* Appends the short name of `exact`. */
void sv_kernel_short_name(struct sv_buf *to, struct sv_text exact);

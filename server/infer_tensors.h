/* Typed tensors of the Open Inference Protocol: what a model takes and gives, and the values of one
 * request.
 *
 * The first dimension of every tensor is the rows; it is kept apart. Values are bytes as the
 * protocol's binary form has them: little-endian, row by row; an element of BYTES is its length (4
 * bytes) and its bytes. Pure functions over bytes. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_IO_MAX      8         /* inputs or outputs of a model */
#define SV_DIMS_MAX    7         /* after the rows */
#define SV_VALUES_MAX  (1 << 22) /* of a row, as for our own networks */
#define SV_DIM_DYNAMIC (-1)

enum sv_datatype { /* in the order of Triton's numbers, which begin with 1 */
                   SV_TYPE_BOOL,
                   SV_TYPE_UINT8,
                   SV_TYPE_UINT16,
                   SV_TYPE_UINT32,
                   SV_TYPE_UINT64,
                   SV_TYPE_INT8,
                   SV_TYPE_INT16,
                   SV_TYPE_INT32,
                   SV_TYPE_INT64,
                   SV_TYPE_FP16,
                   SV_TYPE_FP32,
                   SV_TYPE_FP64,
                   SV_TYPE_BYTES,
                   SV_TYPE_BF16,
                   SV_TYPES
};

const char *sv_datatype_name(enum sv_datatype t); /* as in the protocol: "FP32" */
size_t sv_datatype_size(enum sv_datatype t);      /* 0: BYTES */
/* Also with TYPE_ before it, and TYPE_STRING, as configurations of Triton have it. */
bool sv_datatype_of(const char *name, size_t len, enum sv_datatype *out);

struct sv_tensor_spec {
    char name[64];
    enum sv_datatype type;
    uint32_t n_dims;
    int64_t dims[SV_DIMS_MAX]; /* SV_DIM_DYNAMIC: any size */
};

struct sv_infer_model {
    const char *name, *version, *platform;
    struct sv_tensor_spec inputs[SV_IO_MAX], outputs[SV_IO_MAX];
    uint32_t n_inputs, n_outputs;
    uint32_t rows_max;
};

struct sv_tensor_value {
    int64_t dims[SV_DIMS_MAX]; /* n_dims of its spec */
    uint8_t *bytes;            /* free() it */
    size_t len;
};

struct sv_infer_request {
    char id[128];
    uint32_t rows;
    struct sv_tensor_value in[SV_IO_MAX];          /* of the model's inputs, in its order */
    bool asks[SV_IO_MAX], wants_binary[SV_IO_MAX]; /* of its outputs; none asked for: all */
    bool wants_all_binary;
    uint32_t unknown; /* fields of a gRPC message that were ignored */
};

struct sv_infer_answer {
    const char *id; /* "" for none */
    uint32_t rows;
    const struct sv_tensor_value *out;           /* of the model's outputs */
    const struct sv_infer_request *request_asks; /* which outputs, and in which form */
    uint64_t request, batch;                     /* the server's numbers, as in its trace */
    uint32_t batch_rows;
    int32_t worker;
};

void sv_infer_request_free(struct sv_infer_request *r);

/* Elements of a row; the dimensions are known. */
size_t sv_tensor_values(const int64_t *dims, uint32_t n);
/* SV_EUSAGE names what is wrong. */
int sv_infer_find_input(const struct sv_infer_model *m, const char *name, size_t len, uint32_t *out,
                        struct sv_err *err);
int sv_infer_find_output(const struct sv_infer_model *m, const char *name, size_t len,
                         uint32_t *out, struct sv_err *err);
int sv_infer_check_type(const struct sv_tensor_spec *s, const char *name, size_t len,
                        struct sv_err *err);
/* The whole shape, rows first, against the model's; sets the request's rows and the value's
 * dims. */
int sv_infer_check_shape(const struct sv_infer_model *m, uint32_t input, const int64_t *shape,
                         uint32_t n, struct sv_infer_request *r, struct sv_err *err);
/* Bytes in the binary form, copied when they are as many as the shape says. */
int sv_infer_take_raw(const struct sv_infer_model *m, uint32_t input, const uint8_t *bytes,
                      size_t len, struct sv_infer_request *r, struct sv_err *err);
/* Every input is there. */
int sv_infer_check_whole(const struct sv_infer_model *m, const struct sv_infer_request *r,
                         struct sv_err *err);
bool sv_infer_is_asked(const struct sv_infer_request *r, uint32_t output);

/* The length of so many elements of BYTES, or SIZE_MAX when they do not fit. */
size_t sv_bytes_span(const uint8_t *bytes, size_t len, size_t n_elements);

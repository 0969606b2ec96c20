/* Requests and answers of the Open Inference Protocol (KServe v2) as JSON, with its binary tensor extension.
 *
 * A request has one input tensor of FP32, [rows, …the model's shape]; its numbers are in the JSON (flat or nested) or, with
 * binary_data_size, little-endian bytes after it. Pure functions over bytes, without HTTP. */
#ifndef SV_SERVER_INFER_MESSAGE_H
#define SV_SERVER_INFER_MESSAGE_H

#include "core/base/buf.h"
#include "core/base/err.h"

struct sv_infer_model {
    const char *name, *version;
    const char *input, *output; /* names of the tensors */
    uint32_t dims[3], n_dims;   /* the input's shape without rows */
    uint32_t out_size;          /* the output is [rows, out_size] */
    size_t in_size;             /* floats of a row */
    uint32_t rows_max;
};

struct sv_infer_request {
    char id[128];
    uint32_t rows;
    float *data; /* rows × in_size, free() it */
    bool wants_binary;
};

/* body has SV_JSON_PAD readable bytes after it. json_len: the JSON's part of it (len when there is no binary part). SV_EUSAGE names
 * what is wrong with the request. */
int sv_infer_parse(const struct sv_infer_model *model, const uint8_t *body, size_t len,
                   size_t json_len, struct sv_infer_request *out, struct sv_err *err);

struct sv_infer_answer {
    const char *id; /* "" for none */
    uint32_t rows;
    const float *data;
    bool is_binary;
    uint64_t request, batch; /* the server's numbers, as in its trace */
    uint32_t batch_rows;
    int32_t worker;
};

/* Appends the answer; *json_len is the JSON's part of it. */
void sv_infer_write(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                    struct sv_buf *out, size_t *json_len);
void sv_infer_error(const char *message, struct sv_buf *out);
void sv_infer_describe(const struct sv_infer_model *model, struct sv_buf *out);

#endif

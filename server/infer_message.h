/* Requests and answers of the Open Inference Protocol (KServe v2) as JSON, with its binary tensor
 * extension.
 *
 * A tensor's values are in the JSON (flat or nested) or, with binary_data_size, little-endian bytes
 * after it. Pure functions over bytes, without HTTP. */
#pragma once

#include "core/base/buf.h"
#include "server/infer_tensors.h"

/* body has SV_JSON_PAD readable bytes after it. json_len: the JSON's part of it (len when there is
 * no binary part). SV_EUSAGE names what is wrong with the request. */
int sv_infer_parse(const struct sv_infer_model *model, const uint8_t *body, size_t len,
                   size_t json_len, struct sv_infer_request *out, struct sv_err *err);

/* Appends the answer; *json_len is the JSON's part of it: less than all when tensors follow in the
 * binary form. */
void sv_infer_write(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                    struct sv_buf *out, size_t *json_len);
void sv_infer_error(const char *message, struct sv_buf *out);
void sv_infer_describe(const struct sv_infer_model *model, struct sv_buf *out);

/* The values of tensors as JSON: numbers, truth values and texts between brackets and commas. */
#pragma once

#include "core/base/json.h"
#include "server/infer_tensors.h"

/* `n` values of this type, however they are nested, from a text that is known to be JSON. The bytes
 * are allocated; SV_EUSAGE names what is wrong. */
int sv_values_read(enum sv_datatype type, const char *json, size_t len, size_t n,
                   struct sv_tensor_value *out, struct sv_err *err);
/* The other way, without the brackets. */
void sv_values_write(struct sv_json *j, enum sv_datatype type, const uint8_t *bytes, size_t len);
/* FP16 and BF16 only have a binary form. */
bool sv_values_have_json(enum sv_datatype type);

/* A whole number as a value of this type, at `to`; false: it is out of range. */
bool sv_value_put_whole(enum sv_datatype type, bool is_negative, uint64_t magnitude, uint8_t *to);

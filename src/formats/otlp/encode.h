/* Arguments of events as attributes of OTLP, and ids from their texts: for who writes spans. */
#pragma once

#include "core/base/buf.h"
#include "core/stream/dict.h"

/* Appends the field `id` (a KeyValue) with this value. Containers bring their members along; of a
 * stack the frames become a list. */
void sv_otlp_put_arg(struct sv_buf *out, uint32_t id, const char *key, size_t key_len,
                     const struct sv_arg *a, const struct sv_dict *dict);
void sv_otlp_put_int(struct sv_buf *out, uint32_t id, const char *key, int64_t v);
void sv_otlp_put_double(struct sv_buf *out, uint32_t id, const char *key, double v);
void sv_otlp_put_text(struct sv_buf *out, uint32_t id, const char *key, const char *text,
                      size_t len);

/* An id from its hexadecimal text; false: it is none, or all zero. */
bool sv_otlp_id(const struct sv_arg *text, uint8_t *to, size_t n);

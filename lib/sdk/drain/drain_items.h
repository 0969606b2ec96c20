/* Arguments as rings carry them, into batches. */
#pragma once

#include "core/stream/batch.h"
#include "core/stream/dict.h"

void sv_item_number(struct sv_arg *a, unsigned type, uint64_t v); /* type: enum stave_i_type */
void sv_item_text(struct sv_arg *a, const uint8_t *bytes, size_t len, bool is_null);
/* The bytes of struct stave_args below one key (or, without a key, as arguments of the event
 * itself). */
void sv_items_put(struct sv_dict *dict, struct sv_batch *b, sv_str key, const uint8_t *bytes,
                  size_t n);

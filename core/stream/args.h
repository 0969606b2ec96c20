/* Copies of argument lists that outlive the batch they came in.
 *
 * A copy is one block: the slots, then the bytes of their texts, padded to 8. It exists in two
 * forms: live (texts are pointers into the block) and packed (texts are offsets from its start),
 * which may be moved or written to a file. */
#pragma once

#include "core/stream/event.h"

#include <stdbool.h>

/* Bytes of a copy, a multiple of 8. `has_text` (may be NULL) says whether unpacking has work to
 * do. */
size_t sv_args_bytes(const struct sv_arg *args, size_t n, bool *has_text);

/* `to` is aligned to 8 and has space for sv_args_bytes(). */
struct sv_arg *sv_args_copy(void *to, const struct sv_arg *args, size_t n);
void sv_args_pack(void *to, const struct sv_arg *args, size_t n);
void sv_args_unpack(void *at, size_t n); /* in place, once */

/* The arguments of a slice from those of its begin and its end: begin's in their order, with the
 * value of end where both have the key, then the rest of end's. Two THREAD_TIME become one with a
 * THREAD_DUR. `to` has space for one slot more than both lists together; texts are shared, not
 * copied. Returns the number of slots. */
size_t sv_args_join(struct sv_arg *to, const struct sv_arg *begin, size_t n_begin,
                    const struct sv_arg *end, size_t n_end);

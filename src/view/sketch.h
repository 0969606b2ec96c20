/* The sketch: what can be seen of a trace while it is being loaded: how many events its tracks
 * have, over time.
 *
 * A sink that counts what passes through it. The range of time doubles as it is needed, so a count
 * costs a shift and an addition. */
#pragma once

#include "core/base/json.h"
#include "core/stream/stream.h"

struct sv_sketch;

struct sv_sketch *sv_sketch_new(void);
void sv_sketch_free(struct sv_sketch *k);
/* For one thread; closing it closes `next`. */
struct sv_sink *sv_sketch_sink(struct sv_sketch *k, struct sv_dict *dict, struct sv_sink *next);
/* On any thread: the value of "sketch". */
void sv_sketch_put(struct sv_sketch *k, struct sv_json *j);

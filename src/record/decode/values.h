/* Values of counters that were sampled together, on their way into batches. For the samplers of
 * /proc and of GPUs. */
#ifndef SV_RECORD_DECODE_VALUES_H
#define SV_RECORD_DECODE_VALUES_H

#include "core/stream/batch.h"

struct sv_value;

struct sv_values {
    struct sv_value *all;
    size_t n, cap, at;
    int64_t now_ns;
};

void sv_values_begin(struct sv_values *v, int64_t now_ns); /* forgets the last sample */
void sv_values_put(struct sv_values *v, sv_track track, double value);
/* What a source's next() does: fills b, returns how many. */
int sv_values_next(struct sv_values *v, struct sv_batch *b);
void sv_values_fini(struct sv_values *v);

#endif

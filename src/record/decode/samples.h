/* Stack samples as instants on a row `samples` below each thread: named by the innermost function, with the whole stack. */
#ifndef SV_RECORD_DECODE_SAMPLES_H
#define SV_RECORD_DECODE_SAMPLES_H

#include "core/stream/batch.h"
#include "record/bpf/records.h"
#include "record/decode/tree.h"
#include "record/symbols/symbols.h"

struct sv_samples {
    struct sv_symbols *symbols; /* NULL: addresses */
    sv_str cat, row, cpu;
    uint64_t n;
};

void sv_samples_init(struct sv_samples *s, struct sv_dict *dict);
void sv_samples_fini(struct sv_samples *s);
/* False: the record makes no sense. */
bool sv_samples_put(struct sv_samples *s, struct sv_tree *t, struct sv_batch *b,
                    const struct sv_wire_sample *r, uint32_t size);

#endif

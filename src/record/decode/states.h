/* States of threads (running, runnable, waiting …) as slices on a row `state` below each thread: what SQL's thread_state shows. */
#ifndef SV_RECORD_DECODE_STATES_H
#define SV_RECORD_DECODE_STATES_H

#include "core/stream/batch.h"
#include "record/bpf/records.h"
#include "record/decode/tree.h"

struct sv_states {
    sv_str cat, row, cpu, io_wait, waker_tid, waker, interrupt;
    sv_str names[SV_STATES];
    uint64_t n; /* changes told */
};

void sv_states_init(struct sv_states *s, struct sv_dict *dict);
/* At most two events: the end of the old state, the begin of the new one. `size` of the record tells whether it says who woke the thread. */
void sv_states_change(struct sv_states *s, struct sv_tree *t, struct sv_batch *b,
                      const struct sv_wire_head *h, uint32_t size);

#endif

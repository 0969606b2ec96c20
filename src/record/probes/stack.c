/* Probe `stack`: what stacks of other probes refer to. Its code objects of Python make no events:
 * record/stacks/ keeps them. */
#include "record/bpf/stack.h"
#include "record/decode/state.h"
#include "record/spool/scout.h"

static bool decode_code(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *record, uint32_t size)
{
    (void)state;
    (void)b;
    return sv_stacks_code(d->stacks, (const void *)record, size);
}

const struct sv_probe sv_probe_stack = {
    .name = "stack",
    .cat = SV_CAT_CPU_SAMPLE,
    .with = {&sv_probe_sample, &sv_probe_offcpu},
    .records = {{SV_WIRE_CODE, sizeof(struct sv_wire_code), "names of Python functions",
                 decode_code}},
    .less = "a lower --sample or --no-offcpu",
    .can_wait = sv_scout_always,
    .docs = {"names of Python functions", "none", "names for the frames of stacks"},
};

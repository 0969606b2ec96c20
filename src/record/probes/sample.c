/* Probe `sample`: stacks of the running threads, as instants on a row `samples` below each thread,
 * named by the innermost function.
 *
 * The event has names, outermost first; record/stacks/ makes them of what the kernel program
 * took. */
#include "record/bpf/sample.h"
#include "record/probes/sched.h"

#include <string.h>

/* One that is taken in the middle of a switch says nothing. */
#define SWITCH_NS 100000

static bool decode_sample(struct sv_decode *d, void *state, struct sv_batch *b,
                          const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_sample *r = (const void *)record;
    const char *frames[SV_STACKS_FRAMES] = {"[no stack]"}, *name = frames[0];
    (void)state;
    int n = sv_stacks_frames(d->stacks, record, &r->stack, size - sizeof *r, frames, &name);
    if (n < 0)
        return false;
    n = n ? n : 1;
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, record->tgid, record->tid);
    /* With INFERRED its states come from looks, which know how long it ran. */
    if (!(record->flags & SV_STATE_INFERRED) && (int64_t)record->ts_ns - SWITCH_NS > x->state_ns)
        sv_states_ran(d, b, x, 0, record->ts_ns);
    sv_track row = sv_decode_row(d, record, SV_PROBE_sample, SV_ROW_SAMPLES);
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns, row,
                                      sv_dict_cstr(d->source.dict, name), d->words.cat_sample);
    sv_batch_int(b, d->words.cpu, record->what);
    size_t open = sv_batch_open(b, 0, SV_ARG_STACK);
    while (n-- > 0) {
        struct sv_arg *a = sv_batch_arg(b);
        a->type = SV_ARG_TEXT;
        a->text = frames[n];
        a->size = (uint32_t)strlen(frames[n]) & 0xffffff;
    }
    sv_batch_close(b, open);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_sample = {
    .name = "sample",
    .cat = SV_CAT_CPU_SAMPLE,
    .records = {{SV_WIRE_SAMPLE, sizeof(struct sv_wire_sample), "stack samples", decode_sample}},
    .option = {.name = "sample",
               .arg = "HZ",
               .help = "sample the stacks of running threads HZ times per second on each CPU (99 "
                       "is usual; default for a command and -p: 19, without frames of the "
                       "kernel; 0: never); draw them with 'stave plot flame --samples'"},
    .less = "a lower --sample",
    .docs = {"stack samples", "`samples` below the thread",
             "the innermost function (the name), the whole stack, the CPU"},
};

/* Probe `signal`: signals that are delivered, as instants on a row `signals` below the thread. */
#include "record/bpf/signal.h"
#include "record/decode/state.h"

static bool decode_signal(struct sv_decode *d, void *state, struct sv_batch *b,
                          const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_signal *s = (const void *)record;
    sv_track row = sv_decode_row(d, record, SV_PROBE_signal, "signals");
    sv_str word = sv_dict_cstr(d->source.dict, "signal");
    (void)state;
    (void)size;
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns, row, word, word);
    sv_batch_int(b, sv_dict_cstr(d->source.dict, "number"), s->number);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_signal = {
    .name = "signal",
    .cat = "signal",
    .records = {{SV_WIRE_SIGNAL, sizeof(struct sv_wire_signal), "signals", decode_signal}},
    .option = {.name = "signals",
               .help = "signals that are delivered to the threads",
               .topic = "Kernel events"},
    .sums = {{SV_SUM_EVENTS, "signals", false}},
    .docs = {"signals", "`signals` below the thread", "the number of the signal"},
    .tracepoint = "signal_deliver",
};

/* Probe `sample`: stacks of the running threads, as instants on a row `samples` below each thread, named by the innermost function.
 *
 * The kernel gives addresses, innermost first: its own, then the process's. The event has names, outermost first. The kernel follows frame
 * pointers; in code that was compiled without them it finds other numbers, so a process's stack ends at the first address that is no code. */
#include "record/bpf/sample.h"
#include "record/decode/state.h"

#include <string.h>

enum { STACK_MAX = 256 };

/* A return address is after the call: the byte before it certainly belongs to the caller. */
static const char *name_of(const struct sv_decode *d, const struct sv_wire_sample *r, unsigned i)
{
    bool is_kernel = i < r->n_kernel;
    bool is_innermost = i == 0 || i == r->n_kernel;
    uint64_t at = ((const uint64_t *)(const void *)(r + 1))[i] - (is_innermost ? 0 : 1);
    if (!d->options.asks_procfs) /* recorded elsewhere: this machine's names are not its names */
        return is_kernel ? "[kernel]" : "[unknown]";
    return is_kernel ? sv_symbols_kernel(d->symbols, at)
                     : sv_symbols_user(d->symbols, r->head.tgid, at, (int64_t)r->head.ts_ns);
}

/* Names of all frames; how many there are. */
static unsigned name_all(const struct sv_decode *d, const struct sv_wire_sample *r,
                         const char **names)
{
    unsigned n = (unsigned)r->n_kernel + r->n_user;
    for (unsigned i = 0; i < n && i < STACK_MAX; i++) {
        names[i] = name_of(d, r, i);
        if (i > r->n_kernel && strcmp(names[i], "[unknown]") == 0)
            return i;
    }
    return n < STACK_MAX ? n : STACK_MAX;
}

static bool decode_sample(struct sv_decode *d, void *state, struct sv_batch *b,
                          const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_sample *r = (const void *)record;
    unsigned n = (unsigned)r->n_kernel + r->n_user;
    (void)state;
    if (size < sizeof *r + n * sizeof(uint64_t))
        return false;
    sv_track row = sv_decode_row(d, record, SV_PROBE_sample, SV_ROW_SAMPLES);
    const char *names[STACK_MAX] = {"[no stack]"};
    n = name_all(d, r, names);
    n = n ? n : 1;
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns, row,
                                      sv_dict_cstr(d->source.dict, names[0]), d->words.cat_sample);
    sv_batch_int(b, d->words.cpu, record->what);
    size_t open = sv_batch_open(b, 0, SV_ARG_STACK);
    while (n-- > 0) {
        struct sv_arg *a = sv_batch_arg(b);
        a->type = SV_ARG_TEXT;
        a->text = names[n];
        /* name_all() names as many as it says. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
        a->size = (uint32_t)strlen(names[n]) & 0xffffff;
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
                       "is usual): kernel and user frames with function names; draw them with "
                       "'stave plot flame --samples'"},
    .docs = {"stack samples", "`samples` below the thread",
             "the innermost function as its name, the whole stack, CPU"},
};

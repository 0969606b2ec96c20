/* Stacks to events. Called by the decoder for each sample.
 *
 * The kernel gives addresses, innermost first: its own, then the process's. The event has names, outermost first. The kernel follows frame
 * pointers; in code that was compiled without them it finds other numbers, so a process's stack ends at the first address that is no code. */
#include "record/decode/samples.h"

#include <string.h>

enum { STACK_MAX = 256 };

void sv_samples_init(struct sv_samples *s, struct sv_dict *dict)
{
    *s = (struct sv_samples){.cat = sv_dict_cstr(dict, "cpu_sample"),
                             .row = sv_dict_cstr(dict, "samples"),
                             .cpu = sv_dict_cstr(dict, "cpu")};
    s->symbols = sv_symbols_new(NULL);
}

void sv_samples_fini(struct sv_samples *s)
{
    sv_symbols_free(s->symbols);
}

/* Return addresses stand behind the call: the byte before belongs to the caller for sure. */
static const char *name_of(struct sv_samples *s, const struct sv_wire_sample *r, unsigned i)
{
    bool is_kernel = i < r->n_kernel;
    bool is_innermost = i == 0 || i == r->n_kernel;
    uint64_t at = ((const uint64_t *)(const void *)(r + 1))[i] - (is_innermost ? 0 : 1);
    return is_kernel ? sv_symbols_kernel(s->symbols, at)
                     : sv_symbols_user(s->symbols, r->head.tgid, at, (int64_t)r->head.ts_ns);
}

/* Names of all frames; how many there are. */
static unsigned name_all(struct sv_samples *s, const struct sv_wire_sample *r, const char **names)
{
    unsigned n = (unsigned)r->n_kernel + r->n_user;
    for (unsigned i = 0; i < n && i < STACK_MAX; i++) {
        names[i] = name_of(s, r, i);
        if (i > r->n_kernel && strcmp(names[i], "[unknown]") == 0)
            return i;
    }
    return n < STACK_MAX ? n : STACK_MAX;
}

bool sv_samples_put(struct sv_samples *s, struct sv_tree *t, struct sv_batch *b,
                    const struct sv_wire_sample *r, uint32_t size)
{
    unsigned n = (unsigned)r->n_kernel + r->n_user;
    if (size < sizeof *r + n * sizeof(uint64_t))
        return false;
    struct sv_traced_thread *x = sv_tree_thread(t, r->head.tgid, r->head.tid);
    if (x->samples == 0)
        x->samples = sv_dict_child(t->dict, x->track, SV_TRACK_CUSTOM, s->row);
    const char *names[STACK_MAX] = {"[no stack]"};
    n = name_all(s, r, names);
    n = n ? n : 1;
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.kind = SV_INSTANT,
                           .ts_ns = (int64_t)r->head.ts_ns,
                           .track = x->samples,
                           .name = sv_dict_cstr(t->dict, names[0]),
                           .cat = s->cat};
    sv_batch_int(b, s->cpu, r->head.what);
    size_t open = sv_batch_open(b, 0, SV_ARG_STACK);
    while (
        n-- >
        0) /* name_all() names as many as it says. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
        sv_batch_str(b, 0, names[n], strlen(names[n]));
    sv_batch_close(b, open);
    sv_batch_finish(b, e);
    s->n++;
    return true;
}

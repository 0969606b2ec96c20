/* A selection of slices by name, category, track and duration: globs are compared once per string
 * and track, not per slice. */
#pragma once

#include "store/filter.h"
#include "store/trace.h"

/* Slices that say what threads did meanwhile: their states, and their waits with stacks. They cover
 * the same time as the slices of the thread, so sums, call trees and comparisons leave them out. */
struct sv_meanwhile {
    sv_str state, wait; /* categories; 0: the trace has none */
};

struct sv_meanwhile sv_meanwhile_of(const struct sv_dict *d);

static inline bool sv_is_meanwhile(const struct sv_meanwhile *m, sv_str cat)
{
    return cat && (cat == m->state || cat == m->wait);
}

struct sv_select {
    const struct sv_trace *trace;
    bool is_named;    /* by name, category or track: then states and waits count, too */
    uint8_t *strings; /* bit 0: matches as name, bit 1: as category */
    bool *tracks;
    uint32_t n_strings;
    int64_t min_dur_ns, max_dur_ns;
};

/* Terms: "name=GLOB", "cat=GLOB", "track=GLOB" (name or path), "dur>=TIME", "dur<=TIME" (ns, us,
 * ms, s). Terms of the same kind are alternatives, kinds must all hold. SV_EUSAGE names a bad
 * one. */
int sv_select_init(struct sv_select *s, const struct sv_trace *t, const char *const *terms,
                   size_t n, struct sv_err *err);
void sv_select_fini(struct sv_select *s);

static inline bool sv_select_has(const struct sv_select *s, uint64_t row)
{
    const struct sv_slices *c = &s->trace->slices;
    int64_t dur = c->dur_ns[row] == SV_UNFINISHED ? sv_trace_end_ns(s->trace, row) - c->ts_ns[row]
                                                  : c->dur_ns[row];
    return (s->strings[c->name[row]] & 1) && (s->strings[c->cat[row]] & 2) &&
           s->tracks[c->track[row]] && dur >= s->min_dur_ns && dur <= s->max_dur_ns;
}

/* A selection of slices by name, category, track and duration: globs are compared once per string
 * and track, not per slice. */
#ifndef SV_STATS_SELECT_H
#define SV_STATS_SELECT_H

#include "store/filter.h"
#include "store/trace.h"

struct sv_select {
    const struct sv_trace *trace;
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

#endif

/* What is open on a track just before a time: the innermost slice, and since when nothing changed
 * there.
 *
 *     struct sv_open_slices o;
 *     sv_open_slices_init(&o, trace);
 *     struct sv_open_view v = sv_open_slice(&o, track, ts_ns);
 *     sv_open_slices_fini(&o);
 *
 * The changes of a track are listed once, when it is asked for; a question is a binary search in
 * them. Several threads may ask at once. Instants and slices that take no time do not count. */
#ifndef SV_WHY_OPEN_SLICES_H
#define SV_WHY_OPEN_SLICES_H

#include "store/trace.h"

struct sv_open_view {
    uint32_t row;     /* SV_NO_ROW: nothing is open */
    int64_t since_ns; /* INT64_MIN: nothing was open before */
    bool begins;      /* since_ns is where `row` begins */
    uint32_t last;    /* the last slice that began, open or not; SV_NO_ROW: none did */
};

struct sv_open_slices {
    const struct sv_trace *trace;
    struct sv_open_changes **tracks; /* by track; NULL: not listed yet */
};

void sv_open_slices_init(struct sv_open_slices *o, const struct sv_trace *t);
void sv_open_slices_fini(struct sv_open_slices *o);
struct sv_open_view sv_open_slice(struct sv_open_slices *o, sv_track track, int64_t ts_ns);

#endif

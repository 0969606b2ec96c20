/* Self time: what a slice's own children leave of it. */
#pragma once

#include "store/trace.h"

/* One value per row (free() it): the duration minus the time in which at least one child was open.
 * An unfinished slice lasts until the end of the trace. Slices on lanes (what `split` moved aside
 * because it overlapped) count as children of the slice that encloses them on the track they came
 * from. */
int64_t *sv_self_times(const struct sv_trace *t);
/* The same for one row; only what begins while it lasts is looked at. */
int64_t sv_self_time(const struct sv_trace *t, uint32_t slice);

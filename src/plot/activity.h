/* Where in a trace something happens: for pictures, which otherwise are white where a program only
 * waited to begin. */
#pragma once

#include "store/trace.h"

struct sv_activity {
    int64_t from_ns, to_ns;
    uint64_t n_outside; /* slices and values of counters before and after it */
};

/* The part of the trace that holds nearly all of its events. False: that is most of the trace, so
 * that nothing should be left out. */
bool sv_activity_find(const struct sv_trace *t, struct sv_activity *a);

/* The time line: processes, threads, other tracks and counters over time. */
#ifndef SV_PLOT_TIMELINE_H
#define SV_PLOT_TIMELINE_H

#include "plot/frame.h"
#include "plot/layout.h"

struct sv_timeline {
    struct sv_frame frame;
    int64_t from_ns, to_ns; /* equal: the whole trace */
    size_t rows_max;        /* further rows are counted, not drawn */
    bool
        only_busiest; /* those rows_max rows with most slices in the window rather than the first ones */
};

/* Rows without anything in the window are left out. Returns how many rows were drawn. */
size_t sv_timeline_draw(struct sv_picture *p, const struct sv_trace *t,
                        const struct sv_timeline *o);

#endif

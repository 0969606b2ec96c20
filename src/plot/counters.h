/* Counters over time: those of one unit share a panel. */
#pragma once

#include "plot/frame.h"
#include "plot/layout.h"

struct sv_counter_plot {
    struct sv_plot_frame frame;
    int64_t from_ns, to_ns;
    const sv_track *tracks; /* with counter values */
    size_t n;
};

void sv_counters_draw(struct sv_picture *p, const struct sv_trace *t,
                      const struct sv_counter_plot *o);

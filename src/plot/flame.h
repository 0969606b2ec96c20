/* The flame graph: a box per call path, as wide as its total time, under the box of its caller. */
#pragma once

#include "plot/frame.h"
#include "stats/calltree.h"

struct sv_flame {
    struct sv_plot_frame frame;
    const struct sv_trace *trace; /* the last one: gives categories their colours */
    size_t tracks_max;            /* of the first level; 0: all */
};

/* With a tree of two traces: the difference, widths by the second. */
void sv_flame_draw(struct sv_picture *p, const struct sv_calltree *c, const struct sv_flame *o);

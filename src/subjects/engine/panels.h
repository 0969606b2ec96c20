/* Pictures of continuous batching: latencies, steps, queue and cache over time, distributions, by
 * step size and by load. */
#pragma once

#include "plot/frame.h"
#include "subjects/engine/llm_figures.h"

struct sv_llm_figure {
    struct sv_plot_frame frame;
    int64_t from_ns, to_ns; /* what begins in this window is drawn */
};

/* All panels on a sheet; sets the picture's height. */
void sv_llm_sheet_draw(struct sv_picture *p, const struct sv_llm *l, const struct sv_llm_figures *f,
                       const struct sv_llm_figure *o);

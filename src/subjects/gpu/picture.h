/* The figure of GPUs: for each device what it did and what it waited for over time, its memory, and
 * its streams. */
#ifndef SV_SUBJECTS_GPU_PICTURE_H
#define SV_SUBJECTS_GPU_PICTURE_H

#include "plot/frame.h"
#include "subjects/gpu/figures.h"

struct sv_gpu_figure {
    struct sv_plot_frame frame;
    int64_t from_ns, to_ns;
    size_t streams_max; /* of a device, the busiest; 0: 8 */
};

/* Returns how many bands were drawn. */
size_t sv_gpu_figure_draw(struct sv_picture *p, const struct sv_gpu_report *r,
                          const struct sv_gpu_figure *f);

#endif

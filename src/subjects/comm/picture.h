/* The figure of communication: a row for each rank over time, with the share of it that the rank
 * waited for others in collectives and that they took to transfer, and marks where it was the last
 * to arrive. */
#ifndef SV_SUBJECTS_COMM_PICTURE_H
#define SV_SUBJECTS_COMM_PICTURE_H

#include "plot/frame.h"
#include "subjects/comm/figures.h"

struct sv_comm_figure {
    struct sv_plot_frame frame;
    int64_t from_ns, to_ns;
    size_t ranks_max; /* those that lost most; 0: all */
};

/* Returns how many ranks were drawn. */
size_t sv_comm_figure_draw(struct sv_picture *p, const struct sv_comm_report *r,
                           const struct sv_comm_figure *f);

#endif

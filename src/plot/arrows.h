/* Flows as arrows between the slices of a time line. */
#pragma once

#include "plot/layout.h"
#include "plot/picture.h"

struct sv_arrows {
    const struct sv_layout *layout;
    const double *row_y; /* by row of the layout: the top of its first line; negative: not drawn */
    double left;         /* of the plot area */
    double line_height;
    size_t max;
};

/* Arrows whose ends are both drawn and in the window; those that look alike are one. Returns how
 * many there are: none are drawn when that is more than max. */
size_t sv_arrows_draw(struct sv_picture *p, const struct sv_arrows *o);

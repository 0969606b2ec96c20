/* The line of a counter: steps from value to value, and marks where it has none that a scale could
 * place (NaN, infinities). */
#pragma once

#include "plot/layout.h"
#include "plot/picture.h"

struct sv_counter_line {
    const struct sv_point *points; /* of a row of the layout */
    size_t n;
    double left, right, top, bottom; /* the area: pixel 0 of the points is at `left` */
    double base, from, scale;        /* a value is at base - (value - from) * scale */
    uint32_t color;
    double stroke;
    struct sv_ref title;
};

void sv_counter_line_draw(struct sv_picture *p, const struct sv_counter_line *c);

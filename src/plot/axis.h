/* Axes: round ticks with units, for times, durations and plain numbers. */
#pragma once

#include "plot/picture.h"

enum sv_axis_unit {
    SV_AXIS_TIME,  /* ns: 1.5 ms */
    SV_AXIS_WALL,  /* ns since 1970: 12:34:56.789 */
    SV_AXIS_COUNT, /* 1.5 k */
    SV_AXIS_WHOLE, /* the same, whole numbers only */
    SV_AXIS_BYTES  /* 1.5 MiB */
};

struct sv_axis {
    double from, to; /* values at its ends */
    double at0, at1; /* pixels at its ends */
    enum sv_axis_unit unit;
    const char *suffix; /* after the number, NULL: none */
};

/* Sets unit and suffix for values of a counter with this unit ("": none). */
void sv_axis_of_unit(struct sv_axis *a, const char *unit);
/* Appends the value as people write it; `step` (0: none) gives the number of digits. */
void sv_axis_format(struct sv_buf *to, const struct sv_axis *a, double value, double step);
/* 1.25 ms: the shortest unit, up to six digits. */
void sv_format_duration(struct sv_buf *to, double ns);

double sv_axis_place(const struct sv_axis *a, double value);
/* The distance of about `n` round ticks: 1, 2 or 5 times a power of ten (bytes: of two). */
double sv_axis_step(const struct sv_axis *a, double n);

/* Ticks as vertical lines from top to bottom with labels above (or below) them, and as horizontal
 * ones with labels on the left. */
void sv_axis_draw_x(struct sv_picture *p, const struct sv_axis *a, double top, double bottom,
                    bool labels_below, unsigned flags);
void sv_axis_draw_y(struct sv_picture *p, const struct sv_axis *a, double left, double right);
/* A little more than the largest value, so that the highest tick is round. */
double sv_axis_round_up(const struct sv_axis *a, double largest);

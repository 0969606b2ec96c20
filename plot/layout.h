/* Layout: a window of a trace as rows and rectangles, without any drawing.
 *
 * Every picture of a time line is made from this: painters (SVG, and others to come) only colour rectangles. What is
 * narrower than a pixel is merged with its neighbours on the same line, so the number of rectangles depends on the width of the picture,
 * not on the size of the trace. */
#ifndef SV_PLOT_LAYOUT_H
#define SV_PLOT_LAYOUT_H

#include "model/trace.h"

struct sv_rect {
    double x0, x1;     /* pixels from the left edge of the window */
    uint32_t depth;    /* line within the row, 0 at the top */
    uint32_t n_merged; /* 1: one slice */
    uint64_t slice;    /* row in the store: the slice, or the longest of the merged ones */
};

struct sv_point {
    double x, value;
};

struct sv_row {
    sv_track track;
    sv_track process; /* 0: none; rows of a process are neighbours */
    uint32_t lines;   /* how many lines of slices; 0 for a counter */
    size_t first_rect, n_rects;
    size_t first_point, n_points; /* counters */
    double min, max;              /* of the counter's values in the window */
};

struct sv_layout {
    const struct sv_trace *trace;
    int64_t from_ns, to_ns;
    double width;
    struct sv_row *rows;
    size_t n_rows, cap_rows;
    struct sv_rect *rects;
    size_t n_rects, cap_rects;
    struct sv_point *points;
    size_t n_points, cap_points;
};

/* The window [from_ns, to_ns) on `width` pixels; from == to means the whole trace. Free with sv_layout_fini(). */
void sv_layout_init(struct sv_layout *l, const struct sv_trace *trace, int64_t from_ns,
                    int64_t to_ns, double width);
void sv_layout_fini(struct sv_layout *l);

#endif

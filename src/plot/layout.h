/* Layout: a window of a trace as rows and rectangles, without any drawing.
 *
 *     struct sv_layout_index *x = sv_layout_index_new(trace);           // once per trace
 *     struct sv_layout l;
 *     sv_layout_init(&l, x, &(struct sv_layout_window){from, to, 1400, 0, 0});
 *     for (size_t i = 0; i < l.n_rows; i++) … l.rects[l.rows[i].first_rect] …
 *
 * Every picture of a time line is made from this: painters only colour rectangles. Slices of a line
 * that begin within one pixel share a rectangle, which knows how many they are, how much of it they
 * cover and which is longest: so the number of rectangles and the time it takes depend on the width
 * of the picture, not on the size of the trace (strips.h).
 *
 * Rows and lines are those of store/track_rows.h. */
#pragma once

#include "plot/strips.h"
#include "store/track_rows.h"

#define SV_LINES_MAX 64u /* what would be on further lines is drawn on the last one */

struct sv_rect {
    double x0, x1;     /* pixels from the left edge of the window */
    uint32_t line;     /* within the row, 0 at the top */
    uint32_t n_merged; /* 1: one slice; else so many begin within these pixels */
    uint32_t slice;    /* row in the store: the slice, or the longest of the merged ones */
    uint8_t cover;     /* of merged ones: how much of the rectangle they cover, 255: all of it */
};

/* A counter within a pixel: its finite values, or those that are not, which have a point of their
 * own there (NaN, else an infinity, in all three). */
struct sv_point {
    double x, value; /* value: the last one */
    double min, max;
};

struct sv_row {
    size_t first_rect, n_rects;
    size_t first_point, n_points; /* counters */
    double min, max;              /* of the counter's finite values in the window; 0: none */
};

struct sv_layout_index {
    const struct sv_trace *trace;
    struct sv_track_rows *rows; /* the same for all windows */
    struct sv_strips *strips;
};

struct sv_layout_index *sv_layout_index_new(const struct sv_trace *t);
void sv_layout_index_free(struct sv_layout_index *x);

struct sv_layout_window {
    int64_t from_ns, to_ns;   /* [from, to) */
    double width;             /* pixels */
    size_t first_row, n_rows; /* rows to fill, the others stay empty; n_rows 0: all */
    const uint32_t *rows;     /* n_rows numbers, each once, instead of first_row; NULL: none */
};

struct sv_layout {
    const struct sv_layout_index *index;
    const struct sv_trace *trace;
    int64_t from_ns, to_ns;
    double width;
    struct sv_row *rows; /* as many as the index has */
    size_t n_rows;
    struct sv_rect *rects; /* by row, line, and beginning */
    size_t n_rects, cap_rects;
    struct sv_point *points;
    size_t n_points, cap_points;
};

/* from == to means the whole trace. Free with sv_layout_fini(). */
void sv_layout_init(struct sv_layout *l, const struct sv_layout_index *x,
                    const struct sv_layout_window *w);
void sv_layout_fini(struct sv_layout *l);

double sv_layout_x(const struct sv_layout *l, int64_t ns); /* within [0, width] */
/* The lines that are drawn of a row, and the one of a slice. */
uint32_t sv_layout_lines(const struct sv_row_info *row);
uint32_t sv_layout_line(const struct sv_layout_index *x, const struct sv_row_member *m,
                        uint32_t slice);

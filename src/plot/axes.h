/* Axes: a panel of a picture with a title, two or three axes, and what is drawn between them: dots,
 * lines, bars, boxes, heat.
 *
 *     struct sv_axes a = {.p = picture, .x = 0, .y = 0, .w = 900, .h = 520};
 *     sv_axes_open(&a, "Latency", "1,234 batches");
 *     sv_axes_legend(&a, items, n);                               // before the scales
 *     sv_axes_scales(&a, (struct sv_axis){…}, "batch", (struct sv_axis){…}, "latency");
 *     sv_axes_dots(&a, xs, ys, n, color);
 *
 * Several panels share a picture. However many values there are, the marks are bounded by the
 * pixels of the panel. */
#pragma once

#include "plot/axis.h"
#include "plot/frame.h"

struct sv_axes {
    struct sv_picture *p;
    double x, y, w, h;               /* of the panel */
    double left, right, top, bottom; /* of the area between the axes */
    struct sv_axis ax, ay, ar;       /* with their places; ar: the second vertical one */
};

/* The title, and a line of facts below it (NULL: none). Leaves space for labels. */
void sv_axes_open(struct sv_axes *a, const char *title, const char *facts);
void sv_axes_legend(struct sv_axes *a, const struct sv_legend *items, size_t n);
/* Draws grid, ticks and titles; `from`, `to`, `unit` and `suffix` of the axes count. */
void sv_axes_scales(struct sv_axes *a, struct sv_axis x, const char *x_text, struct sv_axis y,
                    const char *y_text);
/* The second vertical axis, on the right: call before sv_axes_scales(). */
void sv_axes_right(struct sv_axes *a, struct sv_axis r, const char *title, uint32_t color);
/* Instead of anything else: why there is nothing. */
void sv_axes_nothing(struct sv_axes *a, const char *why);

#define SV_DOTS_MAX 400u /* more of them are drawn as cells */

/* Dots; where many fall on one place they are one, darker. */
void sv_axes_dots(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color);
/* The same as for many, where the caller wants several kinds to look alike. */
void sv_axes_cells(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color);
void sv_axes_dot(struct sv_axes *a, double x, double y, double radius, uint32_t color);
enum sv_line_kind { SV_LINE_STRAIGHT, SV_LINE_STEPS };
/* xs rise; NaN among ys interrupts the line. */
void sv_axes_line(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color,
                  enum sv_line_kind kind);
void sv_axes_line_right(struct sv_axes *a, const double *xs, const double *ys, size_t n,
                        uint32_t color, enum sv_line_kind kind);
/* A box between values; title is shown on hover (len 0: none). */
void sv_axes_box(struct sv_axes *a, double x0, double y0, double x1, double y1, uint32_t color,
                 struct sv_ref title);

struct sv_name {
    char text[24];
};

/* Names instead of numbers along an axis: as many places of equal width as there are names. */
void sv_axes_names_x(struct sv_axes *a, const struct sv_name *names, size_t n);
void sv_axes_names_y(struct sv_axes *a, const struct sv_name *names, size_t n);

struct sv_heat {
    const double *values; /* by row, then column; NaN: none */
    size_t n_columns, n_rows;
    const struct sv_name *columns, *rows;
    double from, to;     /* of the colours; equal: by the values */
    bool is_diverging;   /* around 0 */
    struct sv_axis unit; /* how values are written: unit and suffix */
};
void sv_axes_heat(struct sv_axes *a, const struct sv_heat *h, const char *x_text,
                  const char *y_text);

/* A violin around `x` (in values of the x axis), half as wide as `half`. */
void sv_axes_violin(struct sv_axes *a, double x, double half, const double *values, size_t n,
                    uint32_t color);
struct sv_box_plot {
    double low, q1, median, q3, high, mean;
};
void sv_axes_box_plot(struct sv_axes *a, double x, double half, const struct sv_box_plot *b,
                      uint32_t color);

/* 0 … 1 as a colour that grows lighter evenly and that colour-blind readers can order. */
uint32_t sv_color_sequential(double x);

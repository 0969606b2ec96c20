/* What surrounds every plot: title, a line of facts, legend; and the options that all plots
 * have. */
#pragma once

#include "plot/axis.h"
#include "plot/picture.h"

#define SV_MARGIN 14.0

struct sv_plot_frame {
    const char *title;
    double width, height; /* of the picture; height 0: what the plot thinks right */
    /* time axes: the wall time of the trace's beginning, ns since 1970; 0: show time since the
     * start */
    int64_t wall_ns;
};

struct sv_legend {
    struct sv_ref text;
    uint32_t color;
};

/* The title; returns the y below it. `facts` (may be empty) is printed below it. */
double sv_plot_frame_head(struct sv_picture *p, const struct sv_plot_frame *f, struct sv_ref facts);
/* Something that must not be overlooked, in the colour of warnings. Returns the y below it. */
double sv_plot_frame_warn(struct sv_picture *p, double y, struct sv_ref text);
double sv_plot_frame_note(struct sv_picture *p, double y,
                          struct sv_ref text); /* what is no fault */
/* Squares and words in as many lines as it takes; returns the y below them. */
double sv_plot_frame_legend(struct sv_picture *p, double x, double y, double max_width,
                            const struct sv_legend *items, size_t n);

/* The axis of the times [from, to) (ns since the start of the trace) on the pixels [x0, x1]. */
struct sv_axis sv_plot_frame_time_axis(const struct sv_plot_frame *f, double from, double to,
                                       double x0, double x1);
/* Lets viewers zoom between top and bottom; tick labels are at label_y. */
void sv_plot_frame_zoom(struct sv_picture *p, const struct sv_axis *a, double top, double bottom,
                        double label_y);

/* 1234567 → 1,234,567. Appends. */
void sv_format_count(struct sv_buf *to, uint64_t n);

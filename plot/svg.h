/* The SVG painter: one picture that needs nothing but a browser. */
#ifndef SV_PLOT_SVG_H
#define SV_PLOT_SVG_H

#include "base/buf.h"
#include "plot/layout.h"

struct sv_svg_options {
    const char *title;
    double width;    /* pixels of the whole picture */
    size_t rows_max; /* further rows are counted, not drawn */
};

/* Appends the time line in the window of the layout (made for sv_svg_plot_width(options) pixels). */
double sv_svg_plot_width(const struct sv_svg_options *options);
void sv_svg_timeline(struct sv_buf *out, const struct sv_layout *l,
                     const struct sv_svg_options *options);

#endif

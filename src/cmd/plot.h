/* What the files of `stave plot` share. */
#pragma once

#include "plot/kinds.h"

/* All of a picture, drawn: to be freed in any case. */
int sv_plot_picture(struct sv_plot *p, sv_plot_fn *draw, const struct sv_interval *window,
                    struct sv_picture *picture, double *scale, struct sv_err *err);
/* A picture of any kind but batch as SVG, appended to `to`. Of `p` the caller fills o, trace, path,
 * name and names. */
int sv_plot_svg(const char *kind, struct sv_plot *p, struct sv_buf *to, struct sv_err *err);
/* Puts the window around the slice that --around names. */
int sv_plot_zoom(struct sv_plot *p, struct sv_err *err);

/* What the files of `stave plot` share. */
#pragma once

#include "plot/kinds.h"

/* All of a picture, drawn: to be freed in any case. */
int sv_plot_picture(struct sv_plot *p, sv_plot_fn *draw, const struct sv_interval *window,
                    struct sv_picture *picture, double *scale, struct sv_err *err);
/* What draws pictures of a kind, any but batch, with so many names. */
int sv_plot_kind(const char *kind, size_t n_names, sv_plot_fn **draw, struct sv_err *err);
/* Puts the window around the slice that --around names. */
int sv_plot_zoom(struct sv_plot *p, struct sv_err *err);

/* A picture in the making: what the user asked for, the trace, where the marks go. Each kind of
 * picture is a function over it: plot/kinds.h lists them. */
#pragma once

#include "files/load.h"
#include "plot/cairo_paint.h"
#include "plot/frame.h"

struct sv_plot_options {
    const char *output, *from, *to, *input_format, *title, *diff, *marker, *sla;
    const char *around, *margin, *rows, *group, *order;
    struct sv_interval window;
    struct sv_range range;
    struct sv_words panels;
    uint64_t width, height, max_rows, arrows, top, buckets, memory_limit;
    const char *scale;
    bool strict, wall, log, linear, merge_tracks, samples, offcpu, no_arrows, list, no_index;
};

struct sv_plot {
    const struct sv_plot_options *o;
    const struct sv_trace *trace;
    const char *path, *name; /* name: the file's, without folders */
    struct sv_plot_frame frame;
    const char *format;       /* of the input, NULL: by its content */
    int64_t from_ns, to_ns;   /* the window */
    bool is_zoomed;           /* it was asked for */
    const char *const *names; /* operands after the trace */
    size_t n_names;
    struct sv_picture *picture;
};

typedef int sv_plot_fn(struct sv_plot *p, struct sv_err *err);

/* The form that the suffix of the output says; and the picture written in it. */
int sv_plot_form(const char *output, enum sv_picture_form *form, struct sv_err *err);
int sv_plot_write(const char *output, enum sv_picture_form form, double scale,
                  const struct sv_picture *p, struct sv_err *err);
/* The checked size of the picture. */
int sv_plot_size(struct sv_plot *p, double *scale, struct sv_err *err);
/* SV_EUSAGE that names what there is: the candidates nearest to `name`, or the first ones. */
int sv_plot_no_such_slice(const struct sv_plot *p, const char *name, struct sv_err *err);
int sv_plot_no_such(const char *what, const char *name, const char *const *candidates, size_t n,
                    struct sv_err *err);

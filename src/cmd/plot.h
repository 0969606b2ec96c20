/* What the files of `stave plot` share: its options and one function per picture. */
#ifndef SV_CMD_PLOT_H
#define SV_CMD_PLOT_H

#include "files/load.h"
#include "plot/cairo_paint.h"
#include "plot/frame.h"

struct sv_plot_options {
    const char *output, *from, *to, *input_format, *title, *diff, *marker, *sla;
    const char *around, *margin, *rows, *group;
    struct sv_interval window;
    struct sv_words panels;
    uint64_t width, height, max_rows, arrows, top, buckets, memory_limit;
    const char *scale;
    bool strict, wall, log, linear, merge_tracks, samples, offcpu, no_arrows, list, no_index;
};

/* A picture in the making: the trace, what the user asked, where the marks go. */
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

#define SV_PLOT_WINDOW "time from to around margin "

/* clang-format off */
/* The kinds of pictures, one line each: KIND(NAME, least and most operands after the trace, what they are, options that not all have) is drawn by
 * sv_plot_NAME(). */
#define SV_PLOT_KINDS(KIND) \
    KIND(timeline, 0, 0, NULL, SV_PLOT_WINDOW "wall top rows group max-rows arrows no-arrows") \
    KIND(flame, 0, 0, NULL, SV_PLOT_WINDOW "top diff merge-tracks samples offcpu") \
    KIND(hist, 1, 100, "the name (or glob) of the slices", SV_PLOT_WINDOW "buckets log linear") \
    KIND(counter, 0, 100, NULL, SV_PLOT_WINDOW "wall top") \
    KIND(steps, 0, 0, NULL, SV_PLOT_WINDOW "top marker") \
    KIND(layers, 0, 0, NULL, SV_PLOT_WINDOW "top") \
    KIND(gpu, 0, 0, NULL, SV_PLOT_WINDOW "wall top marker") \
    KIND(comm, 0, 0, NULL, SV_PLOT_WINDOW "wall top") \
    KIND(llm, 0, 0, NULL, SV_PLOT_WINDOW)
/* clang-format on */

#define SV_PLOT_DECLARE(name, ...) sv_plot_fn sv_plot_##name;
SV_PLOT_KINDS(SV_PLOT_DECLARE)
#undef SV_PLOT_DECLARE

/* batch is not like the others: its input may be a CSV, its output a folder. */
int sv_plot_batch(struct sv_plot *p, double scale, struct sv_err *err);
int sv_plot_list_panels(void);

/* The form that the suffix of the output says; and the picture written in it. */
int sv_plot_form(const char *output, enum sv_picture_form *form, struct sv_err *err);
int sv_plot_write(const char *output, enum sv_picture_form form, double scale,
                  const struct sv_picture *p, struct sv_err *err);
/* The checked size of the picture; and all of it, drawn. The picture is to be freed in any case. */
int sv_plot_size(struct sv_plot *p, double *scale, struct sv_err *err);
int sv_plot_picture(struct sv_plot *p, sv_plot_fn *draw, const struct sv_interval *window,
                    struct sv_picture *picture, double *scale, struct sv_err *err);
/* A picture of any kind but batch as SVG, appended to `to`. Of `p` the caller fills o, trace, path, name and names. */
int sv_plot_svg(const char *kind, struct sv_plot *p, struct sv_buf *to, struct sv_err *err);
/* Puts the window around the slice that --around names. */
int sv_plot_zoom(struct sv_plot *p, struct sv_err *err);

/* SV_EUSAGE that names what there is: the candidates nearest to `name`, or the first ones. */
int sv_plot_no_such_slice(const struct sv_plot *p, const char *name, struct sv_err *err);
int sv_plot_no_such(const char *what, const char *name, const char *const *candidates, size_t n,
                    struct sv_err *err);

#endif

/* What the files of `stave plot` share: its options and one function per picture. */
#ifndef SV_CMD_PLOT_H
#define SV_CMD_PLOT_H

#include "cmd/load.h"
#include "plot/frame.h"

struct sv_plot_options {
    const char *output, *from, *title, *diff, *marker, *track;
    struct sv_interval window;
    uint64_t width, height, rows, top, buckets, memory_limit;
    const char *scale;
    bool strict, wall, log, linear, merge_tracks, samples, self;
};

/* A picture in the making: the trace, what the user asked, where the marks go. */
struct sv_plot {
    const struct sv_plot_options *o;
    const struct sv_trace *trace;
    const char *path, *name; /* name: the file's, without folders */
    struct sv_frame frame;
    int64_t from_ns, to_ns;   /* the window */
    const char *const *names; /* operands after the trace */
    size_t n_names;
    struct sv_picture *picture;
};

typedef int sv_plot_fn(struct sv_plot *p, struct sv_err *err);

sv_plot_fn sv_plot_timeline, sv_plot_flame, sv_plot_hist, sv_plot_counter, sv_plot_steps,
    sv_plot_layers;

/* SV_EUSAGE that names what there is: the candidates nearest to `name`, or the first ones. */
int sv_plot_no_such(const char *what, const char *name, const char *const *candidates, size_t n,
                    struct sv_err *err);

#endif

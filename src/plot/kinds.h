/* The kinds of pictures of `stave plot`: a list of names. Who draws them is above this folder. */
#pragma once

#include "plot/making.h"

#define SV_PLOT_WINDOW "time from to around margin "

/* clang-format off */
/* The kinds of pictures, one line each: KIND(NAME, least and most operands after the trace, what
 * they are, options that not all have) is drawn by sv_plot_NAME(). */
#define SV_PLOT_KINDS(KIND) \
    KIND(timeline, 0, 0, NULL, SV_PLOT_WINDOW "wall top rows order group max-rows arrows no-arrows") \
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

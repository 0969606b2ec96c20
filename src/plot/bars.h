/* Stacked bars: one bar per step, layer or whatever, divided by kind. */
#pragma once

#include "plot/frame.h"

#define SV_BAR_KINDS_MAX 16u

struct sv_bar_kind {
    const char *name;
    uint32_t color;
};

struct sv_bar {
    char label[24];
    int64_t ns[SV_BAR_KINDS_MAX]; /* by kind */
    int64_t mark_ns;              /* a short line at this height; negative: none */
    bool is_marked;               /* its label is bold */
    bool starts_group;
};

struct sv_bars {
    struct sv_plot_frame frame;
    const struct sv_bar_kind *kinds;
    size_t n_kinds;
    const struct sv_bar *bars;
    size_t n;
    const char *x_title, *facts;
    const char *mark_name; /* in the legend; NULL: no marks */
};

/* Bars that would be narrower than two pixels are drawn as the mean of several. */
void sv_bars_draw(struct sv_picture *p, const struct sv_bars *b);

/* Keeps the `top` bars with most time (0: all), in their order; says how many are left. */
size_t sv_bars_keep_top(struct sv_bar *bars, size_t n, size_t n_kinds, uint64_t top);

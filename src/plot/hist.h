/* The histogram of durations, with the median and the slow ends marked. */
#pragma once

#include "plot/frame.h"

enum sv_hist_scale { SV_HIST_AUTO, SV_HIST_LOG, SV_HIST_LINEAR };

#define SV_BUCKETS_MAX 1000u

struct sv_hist {
    struct sv_plot_frame frame;
    int64_t *values; /* ns, at least one; brought out of order */
    size_t n;
    size_t buckets; /* 0: by the number of values */
    enum sv_hist_scale scale;
};

void sv_hist_draw(struct sv_picture *p, const struct sv_hist *h);

/* A window of a trace in bins of equal width, one per pixel: counters as means over time, slices as
 * the time they cover.
 *
 * What a figure of a long run shows comes from here: the cost depends on the events once, the
 * picture on the bins alone. */
#pragma once

#include "store/trace.h"

struct sv_bins {
    int64_t from_ns, to_ns; /* [from, to) */
    size_t n;
};

/* Time covered, added up in constant time per slice however long it is. */
struct sv_cover {
    double *part, *step; /* shares of bins; changes of the full ones from here on */
    size_t n;
};

void sv_cover_init(struct sv_cover *c, size_t n);
void sv_cover_fini(struct sv_cover *c);
/* [from, to) counts `weight` times. */
void sv_cover_add(struct sv_cover *c, const struct sv_bins *b, int64_t from_ns, int64_t to_ns,
                  double weight);
/* part[i] becomes the weight times the share of bin i that was covered; nothing can be added
 * afterwards. */
void sv_cover_finish(struct sv_cover *c);

/* Where the value of a counter counts. */
enum sv_value_time {
    SV_VALUE_FROM, /* from its timestamp on: levels */
    SV_VALUE_UNTIL /* until its timestamp: means over the interval that ends there */
};

/* The mean of the counter in every bin, NaN where it is not known. */
void sv_bins_counter(const struct sv_bins *b, const struct sv_trace *t, sv_track track,
                     enum sv_value_time when, double *mean);
/* to += from, where `from` is known. */
void sv_bins_add(double *to, const double *from, size_t n);

size_t sv_bin_of(const struct sv_bins *b, int64_t ns); /* within [0, n) */

/* Bins: sums over time, pixel by pixel. Called by code that makes bands of a figure. Knows no
 * drawing. */
#include "plot/bins.h"

#include "core/base/mem.h"

#include <math.h>
#include <stdlib.h>

/* In bins from the left edge, within [0, n]. */
static double place(const struct sv_bins *b, int64_t ns)
{
    if (ns <= b->from_ns)
        return 0;
    if (ns >= b->to_ns)
        return (double)b->n;
    return (double)((uint64_t)ns - (uint64_t)b->from_ns) /
           (double)((uint64_t)b->to_ns - (uint64_t)b->from_ns) * (double)b->n;
}

size_t sv_bin_of(const struct sv_bins *b, int64_t ns)
{
    size_t i = (size_t)place(b, ns);
    return i < b->n ? i : b->n - 1;
}

void sv_cover_init(struct sv_cover *c, size_t n)
{
    *c = (struct sv_cover){.n = n};
    c->part = sv_alloc((n + 1) * sizeof *c->part);
    c->step = sv_alloc((n + 1) * sizeof *c->step);
}

void sv_cover_fini(struct sv_cover *c)
{
    free(c->part);
    free(c->step);
    *c = (struct sv_cover){0};
}

void sv_cover_add(struct sv_cover *c, const struct sv_bins *b, int64_t from_ns, int64_t to_ns,
                  double weight)
{
    double x0 = place(b, from_ns), x1 = place(b, to_ns);
    size_t first = (size_t)x0, last = (size_t)x1; /* `part` includes bin n, which is never read */
    if (!(x1 > x0))
        return;
    if (first == last) {
        c->part[first] += (x1 - x0) * weight;
        return;
    }
    c->part[first] += ((double)first + 1 - x0) * weight;
    c->part[last] += (x1 - (double)last) * weight;
    c->step[first + 1] += weight;
    c->step[last] -= weight;
}

void sv_cover_finish(struct sv_cover *c)
{
    double full = 0;
    for (size_t i = 0; i < c->n; i++) {
        full += c->step[i];
        c->part[i] += full;
    }
}

/* The interval of the first value is not in the trace: taken as long as the second one. */
static int64_t interval_begin(const struct sv_trace *t, sv_track track, uint64_t i)
{
    const struct sv_trace_track *k = &t->tracks[track];
    const int64_t *ts = t->counters.ts_ns;
    if (i > k->counter_first)
        return ts[i - 1];
    uint64_t at = (uint64_t)ts[i] - (uint64_t)t->first_ns;
    uint64_t length = i + 1 < k->counter_end ? (uint64_t)ts[i + 1] - (uint64_t)ts[i] : at;
    return length < at ? (int64_t)((uint64_t)ts[i] - length) : t->first_ns;
}

void sv_bins_counter(const struct sv_bins *b, const struct sv_trace *t, sv_track track,
                     enum sv_value_time when, double *mean)
{
    const struct sv_trace_track *k = &t->tracks[track];
    double scale = (double)t->dict->tracks[track].multiplier;
    struct sv_cover sum, weight;
    sv_cover_init(&sum, b->n);
    sv_cover_init(&weight, b->n);
    uint64_t i = sv_trace_counter_from(t, track, b->from_ns);
    if (when == SV_VALUE_FROM && i > k->counter_first)
        i--;
    for (; i < k->counter_end; i++) {
        int64_t at = t->counters.ts_ns[i], from = at, to = t->last_ns;
        double v = t->counters.value[i];
        if (when == SV_VALUE_UNTIL) {
            from = interval_begin(t, track, i);
            to = at;
        } else if (i + 1 < k->counter_end) {
            to = t->counters.ts_ns[i + 1];
        }
        if (from >= b->to_ns)
            break;
        if (!isfinite(v))
            continue;
        sv_cover_add(&sum, b, from, to, scale == 0 ? v : v * scale);
        sv_cover_add(&weight, b, from, to, 1);
    }
    sv_cover_finish(&sum);
    sv_cover_finish(&weight);
    for (size_t bin = 0; bin < b->n; bin++)
        mean[bin] = weight.part[bin] > 1e-9 ? sum.part[bin] / weight.part[bin] : NAN;
    sv_cover_fini(&sum);
    sv_cover_fini(&weight);
}

void sv_bins_add(double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(from[i]))
            to[i] = isnan(to[i]) ? from[i] : to[i] + from[i];
}

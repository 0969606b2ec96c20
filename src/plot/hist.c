/* The histogram as a picture. Called by the command plot.
 *
 * Bars are counts. On a logarithmic axis a bucket is a constant factor wide, on a linear one a
 * round number of nanoseconds. */
#include "plot/hist.h"

#include "core/base/percentile.h"
#include "plot/colors.h"

#include <math.h>

#define LEFT   78.0
#define BOTTOM 46.0

struct scale {
    double from, to; /* ns; the edges of the first and of the last bucket */
    double x0, x1;
    size_t n; /* buckets */
    bool is_log;
};

static double place(const struct scale *s, double ns)
{
    double share = s->is_log ? log(ns / s->from) / log(s->to / s->from)
                             : (ns - s->from) / (s->to - s->from);
    return s->x0 + fmin(fmax(share, 0), 1) * (s->x1 - s->x0);
}

static double edge(const struct scale *s, size_t i)
{
    double share = (double)i / (double)s->n;
    return s->is_log ? s->from * pow(s->to / s->from, share) : s->from + (s->to - s->from) * share;
}

static size_t bucket_of(const struct scale *s, int64_t value)
{
    double ns = fmax((double)value, s->is_log ? 1 : 0);
    double share = s->is_log ? log(ns / s->from) / log(s->to / s->from)
                             : (ns - s->from) / (s->to - s->from);
    double i = floor(share * (double)s->n);
    return !(i > 0) ? 0 : i >= (double)s->n ? s->n - 1 : (size_t)i;
}

static size_t default_buckets(size_t n)
{
    double want = 4 * cbrt((double)n) +
                  8; /* finer than for a normal distribution: a few are far away */
    return n < 8 ? 8 : want > 80 ? 80 : (size_t)want;
}

static struct scale choose_scale(const struct sv_hist *h, double x0, double x1)
{
    int64_t min = h->values[0], max = h->values[0];
    for (size_t i = 0; i < h->n; i++) {
        min = h->values[i] < min ? h->values[i] : min;
        max = h->values[i] > max ? h->values[i] : max;
    }
    struct scale s = {.x0 = x0, .x1 = x1, .n = h->buckets ? h->buckets : default_buckets(h->n)};
    double low = fmax((double)min, 1), high = fmax((double)max, 1);
    s.is_log = h->scale == SV_HIST_LOG || (h->scale == SV_HIST_AUTO && high > 10 * low);
    if (s.is_log && high > low) {
        s.from = low;
        s.to = high * 1.000001;
        return s;
    }
    s.is_log = false;
    /* Round buckets where the number was not given. A double that is large has no neighbour one
     * further. */
    struct sv_axis a = {
        .from = (double)min, .to = (double)max + fmax(1, (double)max * 1e-9), .unit = SV_AXIS_TIME};
    double width = h->buckets ? (a.to - a.from) / (double)s.n : sv_axis_step(&a, (double)s.n);
    s.from = h->buckets ? a.from : floor(a.from / width) * width;
    s.n = h->buckets ? s.n : (size_t)fmin(fmax(ceil((a.to - s.from) / width), 1), SV_BUCKETS_MAX);
    s.to = s.from + width * (double)s.n;
    return s;
}

static void draw_axis(struct sv_picture *p, const struct scale *s, double top, double bottom)
{
    static const double steps[] = {1, 2, 5};
    if (!s->is_log) {
        struct sv_axis a = {
            .from = s->from, .to = s->to, .at0 = s->x0, .at1 = s->x1, .unit = SV_AXIS_TIME};
        sv_axis_draw_x(p, &a, top, bottom, true, 0);
        return;
    }
    double decades = log10(s->to / s->from);
    int first = (int)floor(log10(s->from)), last = (int)floor(log10(s->to));
    for (int decade = first; decade <= last; decade++)
        for (size_t i = 0; i < (decades > 4 ? 1 : 3); i++) {
            double ns = pow(10, decade) * steps[i];
            if (ns < s->from * 0.999 || ns > s->to)
                continue;
            size_t at = p->text.len;
            sv_format_duration(&p->text, ns);
            sv_picture_line(p, place(s, ns), top, place(s, ns), bottom, SV_COLOR_GRID);
            sv_picture_label(p, place(s, ns), bottom + 14, 10, SV_ANCHOR_MIDDLE, 0, SV_COLOR_DIM, 0,
                             sv_picture_since(p, at));
        }
}

static void draw_bars(struct sv_picture *p, const struct scale *s, const uint64_t *counts,
                      uint64_t n, const struct sv_axis *y)
{
    for (size_t i = 0; i < s->n; i++) {
        double x0 = place(s, edge(s, i)), x1 = place(s, edge(s, i + 1));
        if (counts[i] == 0)
            continue;
        size_t at = p->text.len;
        sv_format_duration(&p->text, edge(s, i));
        sv_buf_str(&p->text, " to ");
        sv_format_duration(&p->text, edge(s, i + 1));
        sv_buf_byte(&p->text, '\n');
        sv_format_count(&p->text, counts[i]);
        sv_buf_printf(&p->text, " slice%s (%.3g %%)", counts[i] == 1 ? "" : "s",
                      100.0 * (double)counts[i] / (double)n);
        double height = fmax(fabs(y->at0 - sv_axis_place(y, (double)counts[i])), 1);
        sv_picture_add(p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                    .flags = SV_MARK_EDGE,
                                                    .x = x0,
                                                    .y = y->at0 - height,
                                                    .w = fmax(x1 - x0, 0.7),
                                                    .h = height,
                                                    .color = sv_palette[0],
                                                    .title = sv_picture_since(p, at)});
    }
}

/* Dashed lines with their labels one below the other, so that near ones do not collide. */
static void draw_marks(struct sv_picture *p, const struct scale *s, const struct sv_hist *h,
                       double top, double bottom)
{
    static const struct {
        double at;
        const char *name;
        uint32_t color;
    } marks[] = {{0.5, "p50", 0x0072b2}, {0.9, "p90", 0xb07800}, {0.99, "p99", 0xd55e00}};
    for (size_t i = 0; i < 3; i++) {
        double ns = sv_percentile(h->values, h->n, marks[i].at);
        double x = place(s, fmax(ns, s->is_log ? 1 : 0)), y = top + 12 + 15 * (double)i;
        size_t at = p->text.len;
        sv_buf_printf(&p->text, "%s ", marks[i].name);
        sv_format_duration(&p->text, ns);
        struct sv_ref text = sv_picture_since(p, at);
        bool is_right = x > s->x1 - 110;
        sv_picture_line(p, x, top, x, bottom, marks[i].color);
        p->marks[p->n - 1].flags |= SV_MARK_DASHED;
        double w = sv_text_width((char *)p->text.data + at, text.len, 11) * 1.1 + 6;
        sv_picture_box(p, is_right ? x - w - 2 : x + 2, y - 10, w, 13, 0xffffff);
        sv_picture_label(p, is_right ? x - 5 : x + 5, y, 11,
                         is_right ? SV_ANCHOR_END : SV_ANCHOR_START, SV_MARK_BOLD, marks[i].color,
                         0, text);
    }
}

static struct sv_ref facts(struct sv_picture *p, const struct sv_hist *h, const struct scale *s)
{
    int64_t min = h->values[0], max = min;
    double sum = 0;
    for (size_t i = 0; i < h->n; i++) {
        min = h->values[i] < min ? h->values[i] : min;
        max = h->values[i] > max ? h->values[i] : max;
        sum += (double)h->values[i];
    }
    size_t at = p->text.len;
    sv_format_count(&p->text, h->n);
    sv_buf_str(&p->text, h->n == 1 ? " slice \xc2\xb7 total " : " slices \xc2\xb7 total ");
    sv_format_duration(&p->text, sum);
    sv_buf_str(&p->text, " \xc2\xb7 mean ");
    sv_format_duration(&p->text, sum / (double)h->n);
    sv_buf_str(&p->text, " \xc2\xb7 from ");
    sv_format_duration(&p->text, (double)min);
    sv_buf_str(&p->text, " to ");
    sv_format_duration(&p->text, (double)max);
    sv_buf_printf(&p->text, " \xc2\xb7 %zu %s buckets", s->n, s->is_log ? "logarithmic" : "equal");
    return sv_picture_since(p, at);
}

void sv_hist_draw(struct sv_picture *p, const struct sv_hist *h)
{
    uint64_t counts[SV_BUCKETS_MAX + 200] = {0}, most = 0;
    p->height = h->frame.height > 0 ? h->frame.height : 460;
    struct scale s = choose_scale(h, LEFT, p->width - SV_MARGIN - 20);
    for (size_t i = 0; i < h->n; i++)
        counts[bucket_of(&s, h->values[i])]++;
    for (size_t i = 0; i < s.n; i++)
        most = counts[i] > most ? counts[i] : most;
    double top = sv_plot_frame_head(p, &h->frame, facts(p, h, &s)) + 4, bottom = p->height - BOTTOM;
    struct sv_axis y = {.unit = SV_AXIS_WHOLE, .at0 = bottom, .at1 = top};
    y.to = fmax(sv_axis_round_up(&y, (double)most), 1);
    sv_axis_draw_y(p, &y, s.x0, s.x1);
    draw_axis(p, &s, top, bottom);
    draw_bars(p, &s, counts, h->n, &y);
    draw_marks(p, &s, h, top, bottom);
    sv_picture_label(p, (s.x0 + s.x1) / 2, p->height - 12, 11, SV_ANCHOR_MIDDLE, 0, SV_COLOR_DIM, 0,
                     sv_picture_printf(p, "duration"));
}

/* Panels of batches: the table of them, the sheet, and those over the batch's number.
 *
 * Called by the command plot. The names and what they show are those of the plot script that such
 * servers ship; where that misleads, the panel is right instead and says so: throughput is a rate,
 * phases do not overlap. */
#include "subjects/serving/panels_impl.h"

#include "core/base/mem.h"
#include "core/base/sort.h"
#include "plot/colors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 50u

const uint32_t sv_batch_phase_colors[SV_N_BATCH_PHASES] = {0x56b4e9, 0xe69f00, 0xf0e442, 0xcc79a7,
                                                           0x009e73, 0x0072b2, 0x999999};
const uint32_t sv_batch_device_colors[SV_N_BATCH_DEVICES] = {0xd55e00, 0x0072b2, 0x777777};
const char *const sv_batch_device_names[SV_N_BATCH_DEVICES] = {"CPU", "GPU", "other"};

static const struct sv_panel panels[] = {
    {"latency", "Latency and batch size over batches", SV_PANEL_SIZES_OVER_TIME, SV_DEVICE_ANY},
    {"workers-all", "Latency by batch: all workers", SV_PANEL_SCATTER, SV_DEVICE_ANY},
    {"workers-cpu", "Latency by batch: CPU workers", SV_PANEL_SCATTER, SV_BATCH_CPU},
    {"workers-gpu", "Latency by batch: GPU workers", SV_PANEL_SCATTER, SV_BATCH_GPU},
    {"cumulative-latency", "Cumulative latency", SV_PANEL_CUMULATIVE, SV_DEVICE_ANY},
    {"throughput", "Throughput", SV_PANEL_THROUGHPUT, SV_DEVICE_ANY},
    {"sla", "SLA coverage: share of requests answered in time", SV_PANEL_SLA, SV_DEVICE_ANY},
    {"rolling-latency", "Rolling mean of the latency, 50 batches", SV_PANEL_ROLLING, SV_DEVICE_ANY},
    {"percentiles-cpu", "Rolling percentiles, 50 batches: CPU", SV_PANEL_PERCENTILES, SV_BATCH_CPU},
    {"percentiles-gpu", "Rolling percentiles, 50 batches: GPU", SV_PANEL_PERCENTILES, SV_BATCH_GPU},
    {"composition", "Latency composition by batch", SV_PANEL_COMPOSITION, SV_DEVICE_ANY},
    {"phases-by-size", "Mean phases by batch size: all workers", SV_PANEL_PHASES_BY_SIZE,
     SV_DEVICE_ANY},
    {"phases-by-size-gpu", "Mean phases by batch size: GPU", SV_PANEL_PHASES_BY_SIZE, SV_BATCH_GPU},
    {"phases-by-size-cpu", "Mean phases by batch size: CPU", SV_PANEL_PHASES_BY_SIZE, SV_BATCH_CPU},
    {"phases-by-worker", "Mean phases by worker", SV_PANEL_PHASES_BY_WORKER, SV_DEVICE_ANY},
    {"correlation", "Correlation of phases: all workers", SV_PANEL_CORRELATION, SV_DEVICE_ANY},
    {"correlation-gpu", "Correlation of phases: GPU", SV_PANEL_CORRELATION, SV_BATCH_GPU},
    {"correlation-cpu", "Correlation of phases: CPU", SV_PANEL_CORRELATION, SV_BATCH_CPU},
    {"waterfall", "Total time by phase: CPU and GPU", SV_PANEL_WATERFALL, SV_DEVICE_ANY},
    {"pareto", "Mean phases, the longest first", SV_PANEL_PARETO, SV_DEVICE_ANY},
    {"size-fit", "Latency by batch size: all workers", SV_PANEL_FIT, SV_DEVICE_ANY},
    {"size-fit-gpu", "Latency by batch size: GPU", SV_PANEL_FIT, SV_BATCH_GPU},
    {"size-fit-cpu", "Latency by batch size: CPU", SV_PANEL_FIT, SV_BATCH_CPU},
    {"batch-sizes", "Batch sizes", SV_PANEL_SIZES, SV_DEVICE_ANY},
    {"violin", "Latency distribution", SV_PANEL_VIOLIN, SV_DEVICE_ANY},
    {"cdf-type", "Latency CDF by kind of worker", SV_PANEL_CDF_TYPE, SV_DEVICE_ANY},
    {"cdf-worker", "Latency CDF by worker", SV_PANEL_CDF_WORKER, SV_DEVICE_ANY},
    {"cdf-size", "Latency CDF by batch size", SV_PANEL_CDF_SIZE, SV_DEVICE_ANY},
    {"worker-phases", "Total time by worker and phase", SV_PANEL_WORKER_PHASES, SV_DEVICE_ANY},
    {"worker-boxes", "Latency by worker", SV_PANEL_WORKER_BOXES, SV_DEVICE_ANY},
    {"worker-tasks", "Requests by worker", SV_PANEL_WORKER_TASKS, SV_DEVICE_ANY},
    {"worker-time", "Mean latency by worker over batches", SV_PANEL_WORKER_TIME, SV_DEVICE_ANY},
    {"arrivals", "Arrivals", SV_PANEL_ARRIVALS, SV_DEVICE_ANY},
    {"arrival-rate", "Arrival rate", SV_PANEL_ARRIVAL_RATE, SV_DEVICE_ANY},
    {"queue", "Queue size and rejected requests", SV_PANEL_QUEUE, SV_DEVICE_ANY},
    {"radar", "Mean phases of the busiest workers", SV_PANEL_RADAR, SV_DEVICE_ANY},
    {"arrival-window", "Arrival window: first to last request of a batch", SV_PANEL_ARRIVAL_WINDOW,
     SV_DEVICE_ANY},
};
#define N_PANELS (sizeof panels / sizeof *panels)
_Static_assert(N_PANELS == 37, "the first 36 panels have a fixed order");

const struct sv_panel *sv_batch_panels(size_t *n)
{
    *n = N_PANELS;
    return panels;
}

/* ---- axes ---- */

struct sv_axis sv_panel_time_axis(double largest_ns)
{
    struct sv_axis a = {.unit = SV_AXIS_TIME};
    a.to = sv_axis_round_up(&a, fmax(largest_ns, 1));
    return a;
}

struct sv_axis sv_panel_count_axis(double largest)
{
    struct sv_axis a = {.unit = SV_AXIS_COUNT};
    a.to = sv_axis_round_up(&a, largest);
    return a;
}

double sv_panel_largest(const double *values, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static inline bool is_less(const double *a, const double *b, const void *ctx)
{
    (void)ctx;
    return *a < *b;
}
SV_SORT_DEFINE(sort_values, double, is_less)

void sv_panel_sort(double *values, size_t n)
{
    double *spare = sv_alloc(SV_SORT_SPARE(n) * sizeof *spare);
    sort_values(values, n, spare, NULL);
    free(spare);
}

double sv_panel_quantile(const double *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t i = (size_t)at;
    /* As many as n were filled in.
     * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    return i + 1 < n ? sorted[i] + (sorted[i + 1] - sorted[i]) * (at - (double)i) : sorted[i];
}

static struct sv_axis batch_axis(const struct sv_panel_draw *d)
{
    const struct sv_batch_rows *b = d->b; /* all of them, so that panels can be compared */
    return (struct sv_axis){
        .unit = SV_AXIS_WHOLE, .from = (double)b->rows[0].id, .to = (double)b->rows[b->n - 1].id};
}

#define OUTLIERS_MIN_N 100u /* of fewer batches each counts */

struct sv_latency_range sv_panel_latencies(const struct sv_panel_draw *d)
{
    const struct sv_batch_rows *b = d->b; /* all of them, so that panels can be compared */
    struct sv_latency_range l = {0};
    double *sorted = sv_alloc((b->n + 1) * sizeof *sorted);
    for (size_t i = 0; i < b->n; i++)
        sorted[i] = (double)b->rows[i].total_ns;
    sv_panel_sort(sorted, b->n);
    l.end_ns = l.most_ns = sorted[b->n - 1];
    double usual = sv_panel_quantile(sorted, b->n, 0.99) * 1.5;
    if (b->n >= OUTLIERS_MIN_N && l.most_ns > 2 * usual)
        l.end_ns = usual;
    free(sorted);
    return l;
}

void sv_panel_outliers(struct sv_panel_draw *d, const struct sv_axis *axis, const char *where)
{
    size_t n = 0;
    double most = 0;
    for (size_t i = 0; i < d->n; i++) {
        double ns = (double)d->rows[i]->total_ns;
        n += ns > axis->to;
        most = fmax(most, ns);
    }
    if (n == 0)
        return;
    size_t at = d->a.p->text.len;
    sv_buf_printf(&d->a.p->text, "%zu %s, up to ", n, where);
    sv_format_duration(&d->a.p->text, most);
    sv_picture_label(d->a.p, d->a.right - 4, d->a.top - 4, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                     sv_picture_since(d->a.p, at));
}

static void latency_scales(struct sv_panel_draw *d, struct sv_axis x, const char *x_text,
                           const char *y_text)
{
    sv_axes_scales(&d->a, x, x_text, sv_panel_time_axis(sv_panel_latencies(d).end_ns), y_text);
    sv_panel_outliers(d, &d->a.ay, "above");
}

/* Of values that are made of latencies: they need not reach as far. */
static void rolling_scales(struct sv_panel_draw *d, const double *values, size_t n,
                           const char *y_text)
{
    double end = sv_panel_latencies(d).end_ns, most = sv_panel_largest(values, n);
    sv_axes_scales(&d->a, batch_axis(d), "batch", sv_panel_time_axis(fmin(most, end)), y_text);
    if (most <= d->a.ay.to)
        return;
    size_t at = d->a.p->text.len;
    sv_buf_str(&d->a.p->text, "up to ");
    sv_format_duration(&d->a.p->text, most);
    sv_picture_label(d->a.p, d->a.right - 4, d->a.top - 4, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                     sv_picture_since(d->a.p, at));
}

void sv_panel_phase_legend(struct sv_panel_draw *d)
{
    struct sv_legend items[SV_N_BATCH_PHASES];
    for (size_t i = 0; i < SV_N_BATCH_PHASES; i++)
        items[i] = (struct sv_legend){sv_picture_printf(d->a.p, "%s", sv_batch_phase_names[i]),
                                      sv_batch_phase_colors[i]};
    sv_axes_legend(&d->a, items, SV_N_BATCH_PHASES);
}

static void device_legend(struct sv_panel_draw *d)
{
    struct sv_legend items[SV_N_BATCH_DEVICES];
    size_t n = 0;
    for (unsigned k = 0; k < SV_N_BATCH_DEVICES; k++) {
        bool occurs = false;
        for (size_t i = 0; i < d->b->n_workers; i++)
            occurs |= d->b->workers[i].device == k;
        if (occurs)
            items[n++] =
                (struct sv_legend){sv_picture_printf(d->a.p, "%s", sv_batch_device_names[k]),
                                   sv_batch_device_colors[k]};
    }
    sv_axes_legend(&d->a, items, n);
}

/* Bands where the server was congested. */
static void shade_congestion(struct sv_panel_draw *d)
{
    const struct sv_batch_rows *b = d->b;
    for (size_t i = 0; i < b->n; i++) {
        size_t end = i;
        while (end < b->n && b->rows[end].is_congested)
            end++;
        if (end > i) {
            double last = end < b->n ? (double)b->rows[end].id : (double)b->rows[end - 1].id + 1;
            sv_axes_box(&d->a, (double)b->rows[i].id, d->a.ay.from, last, d->a.ay.to, 0xfbe3d9,
                        sv_picture_printf(d->a.p, "congested"));
            i = end;
        }
    }
}

/* ---- panels over the batch's number ---- */

/* The first n of xs and ys; as cells where the panel has many batches. */
static void put_dots(struct sv_panel_draw *d, size_t n, uint32_t color)
{
    if (d->n > SV_DOTS_MAX)
        sv_axes_cells(&d->a, d->xs, d->ys, n, color);
    else
        sv_axes_dots(&d->a, d->xs, d->ys, n, color);
}

static void draw_scatter(struct sv_panel_draw *d)
{
    device_legend(d);
    latency_scales(d, batch_axis(d), "batch", "latency");
    shade_congestion(d);
    for (unsigned k = 0; k < SV_N_BATCH_DEVICES; k++) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++) {
            if (d->b->workers[d->rows[i]->worker].device != k)
                continue;
            d->xs[n] = (double)d->rows[i]->id;
            d->ys[n++] = (double)d->rows[i]->total_ns;
        }
        put_dots(d, n, sv_batch_device_colors[k]);
    }
}

#define SHADES 8

/* Colour by size; of few batches also the size of the dot. */
static void draw_sizes_over_time(struct sv_panel_draw *d)
{
    struct sv_legend items[3];
    uint32_t most = 1;
    for (size_t i = 0; i < d->n; i++)
        most = d->rows[i]->size > most ? d->rows[i]->size : most;
    for (int i = 0; i < 3; i++)
        items[i] = (struct sv_legend){sv_picture_printf(d->a.p, i == 0 ? "size 1" : "%.0f",
                                                        i == 1 ? ceil(most / 2.0) : (double)most),
                                      sv_color_sequential(0.9 - 0.45 * i)};
    sv_axes_legend(&d->a, items, 3);
    latency_scales(d, batch_axis(d), "batch", "latency; darker: larger batch");
    shade_congestion(d);
    for (int shade = 0; shade < SHADES; shade++) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++) {
            double share = (double)d->rows[i]->size / most;
            if ((int)fmin(share * SHADES, SHADES - 1) != shade)
                continue;
            d->xs[n] = (double)d->rows[i]->id;
            d->ys[n++] = (double)d->rows[i]->total_ns;
        }
        uint32_t color = sv_color_sequential(0.9 - 0.9 * shade / (SHADES - 1));
        if (d->n > SV_DOTS_MAX)
            sv_axes_cells(&d->a, d->xs, d->ys, n, color);
        for (size_t i = 0; i < n && d->n <= SV_DOTS_MAX; i++)
            sv_axes_dot(&d->a, d->xs[i], d->ys[i], 2 + 4.0 * shade / (SHADES - 1), color);
    }
}

static void draw_cumulative(struct sv_panel_draw *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        sum += (double)d->rows[i]->total_ns;
        d->xs[i] = (double)d->rows[i]->id;
        d->ys[i] = sum;
    }
    sv_axes_scales(&d->a, batch_axis(d), "batch", sv_panel_time_axis(sum), "sum of latencies");
    sv_axes_line(&d->a, d->xs, d->ys, d->n, 0x009e73, SV_LINE_STRAIGHT);
}

/* How many of a batch's requests were answered in time; where they are not known, they took as long
 * as the batch. */
static size_t within_limit(const struct sv_batch_rows *b, const struct sv_batch_row *r, double ns)
{
    size_t n = 0;
    if (r->n_known == 0)
        return (double)r->total_ns <= ns ? r->n_requests : 0;
    for (size_t i = 0; i < r->n_known; i++)
        n += (double)b->requests[r->first_request + i].latency_ns <= ns;
    return n;
}

static void draw_sla(struct sv_panel_draw *d)
{
    static const uint32_t colors[SV_BATCH_LIMITS_MAX] = {0xd55e00, 0xe69f00, 0x009e73, 0x0072b2,
                                                         0xcc79a7, 0x56b4e9, 0x777777, 0x000000};
    struct sv_legend items[SV_BATCH_LIMITS_MAX];
    const struct sv_batch_rows *b = d->b;
    for (size_t k = 0; k < b->n_sla; k++)
        items[k] = (struct sv_legend){sv_picture_printf(d->a.p, "within %.15g ms", b->sla_ms[k]),
                                      colors[k]};
    sv_axes_legend(&d->a, items, b->n_sla);
    sv_axes_scales(&d->a, batch_axis(d), "batch",
                   (struct sv_axis){.unit = SV_AXIS_COUNT, .to = 105, .suffix = "%"},
                   "of the answered requests so far");
    for (size_t k = 0; k < b->n_sla; k++) {
        size_t within = 0, all = 0;
        for (size_t i = 0; i < d->n; i++) {
            const struct sv_batch_row *r = d->rows[i];
            within += within_limit(b, r, b->sla_ms[k] * 1e6);
            all += r->n_known ? r->n_known : r->n_requests;
            d->xs[i] = (double)r->id;
            d->ys[i] = 100.0 * (double)within / (double)all;
        }
        sv_axes_line(&d->a, d->xs, d->ys, d->n, colors[k], SV_LINE_STRAIGHT);
    }
}

static void draw_rolling(struct sv_panel_draw *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        sum += (double)d->rows[i]->total_ns;
        if (i >= WINDOW)
            sum -= (double)d->rows[i - WINDOW]->total_ns;
        d->xs[i] = (double)d->rows[i]->id;
        d->ys[i] = sum / (double)(i < WINDOW ? i + 1 : WINDOW);
    }
    rolling_scales(d, d->ys, d->n, "mean latency");
    sv_axes_line(&d->a, d->xs, d->ys, d->n, 0xcc79a7, SV_LINE_STRAIGHT);
}

/* Puts a value into a sorted window, in place of one that leaves it (NULL: none does). */
static void slide(double *window, size_t *n, const double *leaves, double comes)
{
    size_t at = *n;
    if (leaves) {
        for (at = 0; at + 1 < *n && window[at] < *leaves;)
            at++;
        memmove(window + at, window + at + 1, (--*n - at) * sizeof *window);
        at = *n;
    }
    for (; at > 0 && window[at - 1] > comes; at--)
        window[at] = window[at - 1];
    window[at] = comes;
    ++*n;
}

static void draw_percentiles(struct sv_panel_draw *d)
{
    static const struct {
        const char *name;
        double p;
        uint32_t color;
    } lines[] = {{"p50", 0.5, 0x0072b2}, {"p95", 0.95, 0xe69f00}, {"p99", 0.99, 0xd55e00}};
    struct sv_legend items[3];
    double window[WINDOW], *values = sv_alloc((3 * d->n + 1) * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        double leaves = i < WINDOW ? 0 : (double)d->rows[i - WINDOW]->total_ns;
        slide(window, &n, i < WINDOW ? NULL : &leaves, (double)d->rows[i]->total_ns);
        d->xs[i] = (double)d->rows[i]->id;
        for (size_t k = 0; k < 3; k++)
            values[k * d->n + i] = sv_panel_quantile(window, n, lines[k].p);
    }
    for (size_t k = 0; k < 3; k++)
        items[k] =
            (struct sv_legend){sv_picture_printf(d->a.p, "%s", lines[k].name), lines[k].color};
    sv_axes_legend(&d->a, items, 3);
    rolling_scales(d, values, 3 * d->n, "latency");
    for (size_t k = 3; k-- > 0;)
        sv_axes_line(&d->a, d->xs, values + k * d->n, d->n, lines[k].color, SV_LINE_STRAIGHT);
    free(values);
}

#define CLEAR_FIT 0.2 /* a correlation below explains less than a twentieth of the variance */

static void draw_fit(struct sv_panel_draw *d)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, n = (double)d->n, most = 1;
    char facts[96];
    for (size_t i = 0; i < d->b->n; i++)
        most = fmax(most, d->b->rows[i].size);
    for (size_t i = 0; i < d->n; i++) {
        double x = d->xs[i] = d->rows[i]->size, y = d->ys[i] = (double)d->rows[i]->total_ns;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
        syy += y * y;
    }
    struct sv_axis size = {.unit = SV_AXIS_WHOLE, .to = most + 1};
    latency_scales(d, size, "batch size", "latency");
    sv_axes_dots(&d->a, d->xs, d->ys, d->n, sv_batch_device_colors[SV_BATCH_GPU]);
    double vx = sxx - sx * sx / n, vy = syy - sy * sy / n, cov = sxy - sx * sy / n;
    if (!(vx > 1e-9) || d->n < 2)
        return;
    double slope = cov / vx, base = (sy - slope * sx) / n;
    double ends[2] = {0, most + 1}, values[2] = {base, base + slope * (most + 1)};
    sv_axes_line(&d->a, ends, values, 2, 0xd55e00, SV_LINE_STRAIGHT);
    double r = vy > 0 ? cov / sqrt(vx * vy) : 0;
    if (fabs(r) < CLEAR_FIT)
        snprintf(facts, sizeof facts, "hardly depends on the size, r = %.2f", r);
    else
        snprintf(facts, sizeof facts, "%.3g ms %s %.3g ms per sample, r = %.2f", base / 1e6,
                 slope < 0 ? "\xe2\x88\x92" : "+", fabs(slope) / 1e6, r);
    sv_picture_label(d->a.p, d->a.right - 4, d->a.top + 12, 10, SV_ANCHOR_END, SV_MARK_BOLD,
                     0xb03000, 0, sv_picture_printf(d->a.p, "%s", facts));
}

/* ---- arrival windows ---- */

/* From a batch's first arrival to its last; -1: not known. */
static double window_of(const struct sv_batch_rows *b, const struct sv_batch_row *r)
{
    int64_t last = SV_BATCH_UNKNOWN;
    for (size_t i = 0; i < r->n_known; i++) {
        int64_t at = b->requests[r->first_request + i].arrival_ns;
        last = at > last ? at : last;
    }
    return last == SV_BATCH_UNKNOWN || r->arrival_ns == SV_BATCH_UNKNOWN
               ? -1
               : (double)last - (double)r->arrival_ns;
}

/* How long a batch collected arrivals, beside how long its first request waited in the queue: a
 * wait far longer than the window is not spent on filling the batch. */
static void draw_arrival_window(struct sv_panel_draw *d)
{
    const uint32_t wait_color = sv_batch_phase_colors[SV_PHASE_QUEUE], color = 0xd55e00;
    double *windows = sv_alloc((d->n + 1) * sizeof *windows), most = 0;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        windows[i] = window_of(d->b, d->rows[i]);
        if (windows[i] < 0)
            continue;
        n++;
        most = fmax(most, fmax(windows[i], (double)d->rows[i]->phase_ns[SV_PHASE_QUEUE]));
    }
    if (n == 0) {
        sv_axes_nothing(&d->a, SV_NO_ARRIVALS);
        free(windows);
        return;
    }
    const struct sv_legend items[] = {{sv_picture_printf(d->a.p, "arrival window"), color},
                                      {sv_picture_printf(d->a.p, "wait of the first"), wait_color}};
    sv_axes_legend(&d->a, items, 2);
    sv_axes_scales(&d->a, batch_axis(d), "batch", sv_panel_time_axis(most),
                   "since the first arrival");
    shade_congestion(d);
    for (int is_window = 0; is_window < 2; is_window++) {
        n = 0;
        for (size_t i = 0; i < d->n; i++) {
            if (windows[i] < 0)
                continue;
            d->xs[n] = (double)d->rows[i]->id;
            d->ys[n++] = is_window ? windows[i] : (double)d->rows[i]->phase_ns[SV_PHASE_QUEUE];
        }
        put_dots(d, n, is_window ? color : wait_color);
    }
    free(windows);
}

/* ---- all ---- */

static sv_panel_fn *const drawers[] = {
    [SV_PANEL_SIZES_OVER_TIME] = draw_sizes_over_time,
    [SV_PANEL_SCATTER] = draw_scatter,
    [SV_PANEL_CUMULATIVE] = draw_cumulative,
    [SV_PANEL_THROUGHPUT] = sv_panel_throughput,
    [SV_PANEL_SLA] = draw_sla,
    [SV_PANEL_ROLLING] = draw_rolling,
    [SV_PANEL_PERCENTILES] = draw_percentiles,
    [SV_PANEL_COMPOSITION] = sv_panel_composition,
    [SV_PANEL_PHASES_BY_SIZE] = sv_panel_phases_by_size,
    [SV_PANEL_PHASES_BY_WORKER] = sv_panel_phases_by_worker,
    [SV_PANEL_CORRELATION] = sv_panel_correlation,
    [SV_PANEL_WATERFALL] = sv_panel_waterfall,
    [SV_PANEL_PARETO] = sv_panel_pareto,
    [SV_PANEL_FIT] = draw_fit,
    [SV_PANEL_SIZES] = sv_panel_sizes,
    [SV_PANEL_VIOLIN] = sv_panel_violin,
    [SV_PANEL_CDF_TYPE] = sv_panel_cdf_type,
    [SV_PANEL_CDF_WORKER] = sv_panel_cdf_worker,
    [SV_PANEL_CDF_SIZE] = sv_panel_cdf_size,
    [SV_PANEL_WORKER_PHASES] = sv_panel_worker_phases,
    [SV_PANEL_WORKER_BOXES] = sv_panel_worker_boxes,
    [SV_PANEL_WORKER_TASKS] = sv_panel_worker_tasks,
    [SV_PANEL_WORKER_TIME] = sv_panel_worker_time,
    [SV_PANEL_ARRIVALS] = sv_panel_arrivals,
    [SV_PANEL_ARRIVAL_RATE] = sv_panel_arrival_rate,
    [SV_PANEL_QUEUE] = sv_panel_queue,
    [SV_PANEL_RADAR] = sv_panel_radar,
    [SV_PANEL_ARRIVAL_WINDOW] = draw_arrival_window,
};

void sv_batch_panel_draw(struct sv_picture *p, const struct sv_panel *panel,
                         const struct sv_batch_rows *b, double x, double y, double w, double h)
{
    struct sv_panel_draw d = {
        .a = {.p = p, .x = x, .y = y, .w = w, .h = h}, .panel = panel, .b = b};
    char facts[64];
    d.rows = sv_alloc((b->n + 1) * sizeof(struct sv_batch_row *));
    d.xs = sv_alloc((b->n + 1) * sizeof *d.xs);
    d.ys = sv_alloc((b->n + 1) * sizeof *d.ys);
    for (size_t i = 0; i < b->n; i++)
        if (panel->device == SV_DEVICE_ANY || b->workers[b->rows[i].worker].device == panel->device)
            d.rows[d.n++] = &b->rows[i];
    snprintf(facts, sizeof facts, "%zu batch%s", d.n, d.n == 1 ? "" : "es");
    sv_axes_open(&d.a, panel->title, facts);
    if (d.n)
        drawers[panel->kind](&d);
    else
        sv_axes_nothing(&d.a, "no data: no batch ran on such a worker");
    free(d.rows);
    free(d.xs);
    free(d.ys);
}

/* ---- the sheet ---- */

#define SHEET_COLUMNS 3u

static bool has_device(const struct sv_batch_rows *b, uint8_t device, bool of_others)
{
    for (size_t i = 0; i < b->n; i++)
        if ((b->workers[b->rows[i].worker].device == device) != of_others)
            return true;
    return false;
}

static bool has_kind_for_all(enum sv_panel_kind kind)
{
    for (size_t i = 0; i < N_PANELS; i++)
        if (panels[i].kind == kind && panels[i].device == SV_DEVICE_ANY)
            return true;
    return false;
}

/* Is there anything on it that no other panel shows? One for a device is empty if no batch ran on
 * such a worker, and the same as that of all workers if every batch did. */
static bool is_worth_its_place(const struct sv_panel *panel, const struct sv_batch_rows *b)
{
    if (panel->device == SV_DEVICE_ANY)
        return true;
    return has_device(b, panel->device, false) &&
           (has_device(b, panel->device, true) || !has_kind_for_all(panel->kind));
}

void sv_batch_sheet_draw(struct sv_picture *p, const struct sv_batch_rows *b, const char *title)
{
    double w = p->width / SHEET_COLUMNS, h = floor(w * 0.66), top = 44;
    size_t n = 0;
    p->title = sv_picture_text(p, title, strlen(title));
    sv_picture_label(p, SV_MARGIN, 28, 17, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK,
                     p->width - 2 * SV_MARGIN, p->title);
    for (size_t i = 0; i < N_PANELS; i++) {
        if (!is_worth_its_place(&panels[i], b))
            continue;
        size_t row = n / SHEET_COLUMNS, column = n % SHEET_COLUMNS;
        sv_batch_panel_draw(p, &panels[i], b, w * (double)column, top + h * (double)row, w, h);
        n++;
    }
    size_t rows = (n + SHEET_COLUMNS - 1) / SHEET_COLUMNS;
    p->height = top + h * (double)rows + SV_MARGIN;
}

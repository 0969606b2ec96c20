/* Panels of batches: distributions, and what happens over time. Drawn through the table of
 * panels. */
#include "subjects/serving/panels_impl.h"

#include "core/base/mem.h"
#include "plot/colors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const uint32_t series_colors[] = {0x0072b2, 0xd55e00, 0x009e73,
                                         0xcc79a7, 0xe69f00, 0x56b4e9};
#define SERIES_MAX (sizeof series_colors / sizeof *series_colors)

/* ---- distributions ---- */

/* Latencies of one kind, in rising order, in d->ys. */
static size_t sorted_of_device(struct sv_panel_draw *d, unsigned device)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (device == SV_DEVICE_ANY || d->b->workers[d->rows[i]->worker].device == device)
            d->ys[n++] = (double)d->rows[i]->total_ns;
    if (n)
        sv_panel_sort(d->ys, n);
    return n;
}

static size_t sorted_of_group(struct sv_panel_draw *d, const struct sv_panel_group *g, bool by_size)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (sv_panel_is_in(g, d->rows[i], by_size))
            d->ys[n++] = (double)d->rows[i]->total_ns;
    if (n)
        sv_panel_sort(d->ys, n);
    return n;
}

/* The n sorted latencies in d->ys as a curve. */
static void draw_cdf(struct sv_panel_draw *d, size_t n, uint32_t color)
{
    for (size_t i = 0; i < n; i++)
        d->xs[i] = 100.0 * (double)(i + 1) / (double)n;
    sv_axes_line(&d->a, d->ys, d->xs, n, color, SV_LINE_STEPS);
}

static void cdf_scales(struct sv_panel_draw *d)
{
    sv_axes_scales(&d->a, sv_panel_time_axis(sv_panel_latencies(d).end_ns), "latency",
                   (struct sv_axis){.unit = SV_AXIS_COUNT, .to = 100, .suffix = "%"},
                   "of the batches within");
    sv_panel_outliers(d, &d->a.ax, "beyond");
}

void sv_panel_cdf_type(struct sv_panel_draw *d)
{
    struct sv_legend items[SV_N_BATCH_DEVICES];
    size_t n = 0;
    for (unsigned k = 0; k < SV_N_BATCH_DEVICES; k++)
        if (sorted_of_device(d, k))
            items[n++] =
                (struct sv_legend){sv_picture_printf(d->a.p, "%s", sv_batch_device_names[k]),
                                   sv_batch_device_colors[k]};
    sv_axes_legend(&d->a, items, n);
    cdf_scales(d);
    for (unsigned k = 0; k < SV_N_BATCH_DEVICES; k++)
        draw_cdf(d, sorted_of_device(d, k), sv_batch_device_colors[k]);
}

static int most_first(const void *a, const void *b)
{
    const struct sv_panel_group *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void draw_group_cdfs(struct sv_panel_draw *d, bool by_size, size_t most)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_legend items[SERIES_MAX + 1];
    size_t n_all = by_size ? sv_panel_by_size(d, groups) : sv_panel_by_worker(d, groups), n = n_all;
    qsort(groups, n, sizeof *groups, most_first);
    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct sv_legend){
            sv_picture_printf(d->a.p, by_size ? "size %s" : "worker %s", groups[i].name.text),
            series_colors[i]};
    size_t n_items = n;
    if (n_all > n)
        items[n_items++] =
            (struct sv_legend){sv_picture_printf(d->a.p, "%zu more", n_all - n), 0xffffff};
    sv_axes_legend(&d->a, items, n_items);
    cdf_scales(d);
    for (size_t i = 0; i < n; i++)
        draw_cdf(d, sorted_of_group(d, &groups[i], by_size), series_colors[i]);
}

void sv_panel_cdf_worker(struct sv_panel_draw *d)
{
    draw_group_cdfs(d, false, SERIES_MAX);
}

void sv_panel_cdf_size(struct sv_panel_draw *d)
{
    draw_group_cdfs(d, true, 4);
}

/* Places 0 … n along x that are named afterwards. */
static void named_scales(struct sv_panel_draw *d, size_t n, struct sv_axis y, const char *x_text,
                         const char *y_text)
{
    sv_axes_scales(&d->a, (struct sv_axis){.unit = SV_AXIS_WHOLE, .from = 0.1, .to = 0.4}, x_text,
                   y, y_text);
    d->a.ax.from = 0;
    d->a.ax.to = (double)n;
}

void sv_panel_violin(struct sv_panel_draw *d)
{
    struct sv_name names[SV_N_BATCH_DEVICES];
    uint8_t kinds[SV_N_BATCH_DEVICES];
    size_t n = 0;
    for (unsigned k = 0; k < SV_N_BATCH_DEVICES; k++)
        if (sorted_of_device(d, k)) {
            snprintf(names[n].text, sizeof names[n].text, "%s", sv_batch_device_names[k]);
            kinds[n++] = (uint8_t)k;
        }
    named_scales(d, n, sv_panel_time_axis(sv_panel_latencies(d).end_ns), "kind of worker",
                 "latency");
    sv_panel_outliers(d, &d->a.ay, "above");
    for (size_t i = 0; i < n; i++) {
        size_t count = sorted_of_device(d, kinds[i]);
        double x = (double)i + 0.5;
        size_t shown = count;
        while (shown > 1 && d->ys[shown - 1] > d->a.ay.to)
            shown--;
        sv_axes_violin(&d->a, x, 0.35, d->ys, shown, sv_batch_device_colors[kinds[i]]);
        struct sv_box_plot box = {.q1 = sv_panel_quantile(d->ys, count, 0.25),
                                  .median = sv_panel_quantile(d->ys, count, 0.5),
                                  .q3 = sv_panel_quantile(d->ys, count, 0.75),
                                  .low = d->ys[0],
                                  .high = d->ys[count - 1]};
        for (size_t k = 0; k < count; k++)
            box.mean += d->ys[k] / (double)count;
        sv_axes_box_plot(&d->a, x, 0.04, &box, sv_batch_device_colors[kinds[i]]);
    }
    sv_axes_names_x(&d->a, names, n);
}

static struct sv_box_plot box_of(const double *sorted, size_t n)
{
    struct sv_box_plot b = {.q1 = sv_panel_quantile(sorted, n, 0.25),
                            .median = sv_panel_quantile(sorted, n, 0.5),
                            .q3 = sv_panel_quantile(sorted, n, 0.75)};
    double reach = 1.5 * (b.q3 - b.q1);
    b.low = b.q1;
    b.high = b.q3;
    for (size_t i = 0; i < n; i++) {
        b.mean += sorted[i] / (double)n;
        if (sorted[i] >= b.q1 - reach)
            b.low = fmin(b.low, sorted[i]);
        if (sorted[i] <= b.q3 + reach)
            b.high = fmax(b.high, sorted[i]);
    }
    return b;
}

void sv_panel_worker_boxes(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_box_plot boxes[SV_NAMES_MAX];
    struct sv_name names[SV_NAMES_MAX];
    double most = 0;
    size_t n = sv_panel_by_worker(d, groups);
    for (size_t i = 0; i < n; i++) {
        names[i] = groups[i].name;
        boxes[i] = box_of(d->ys, sorted_of_group(d, &groups[i], false));
        most = fmax(most, fmax(boxes[i].high, boxes[i].mean));
    }
    named_scales(d, n, sv_panel_time_axis(most), "worker",
                 "quartiles, 1.5 times their distance; dot: mean");
    for (size_t i = 0; i < n; i++)
        sv_axes_box_plot(&d->a, (double)i + 0.5, 0.3, &boxes[i],
                         sv_batch_device_colors[groups[i].device]);
    sv_axes_names_x(&d->a, names, n);
}

void sv_panel_worker_tasks(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_name names[SV_NAMES_MAX];
    double most = 0;
    size_t n = sv_panel_by_worker(d, groups);
    for (size_t i = 0; i < n; i++) {
        names[i] = groups[i].name;
        most = fmax(most, (double)groups[i].requests);
    }
    named_scales(d, n, sv_panel_count_axis(most * 1.08), "worker", "requests");
    for (size_t i = 0; i < n; i++) {
        double value = (double)groups[i].requests, x = (double)i;
        size_t at = d->a.p->text.len;
        sv_format_count(&d->a.p->text, groups[i].requests);
        struct sv_ref text = sv_picture_since(d->a.p, at);
        sv_axes_box(&d->a, x + 0.15, 0, x + 0.85, value, sv_batch_device_colors[groups[i].device],
                    text);
        sv_picture_label(d->a.p, sv_axis_place(&d->a.ax, x + 0.5),
                         sv_axis_place(&d->a.ay, value) - 4, 9, SV_ANCHOR_MIDDLE, 0, SV_COLOR_INK,
                         0, text);
    }
    sv_axes_names_x(&d->a, names, n);
}

/* Bars side by side: all, CPU, GPU. */
void sv_panel_sizes(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_name names[SV_NAMES_MAX];
    size_t n = sv_panel_by_size(d, groups), counts[SV_NAMES_MAX][3] = {{0}}, most = 0;
    static const uint32_t colors[3] = {0x999999, 0xd55e00, 0x0072b2};
    static const char *const kinds[3] = {"all", "CPU", "GPU"};
    struct sv_legend items[3];
    for (size_t i = 0; i < n; i++) {
        names[i] = groups[i].name;
        for (size_t k = 0; k < d->n; k++)
            if (sv_panel_is_in(&groups[i], d->rows[k], true)) {
                uint8_t device = d->b->workers[d->rows[k]->worker].device;
                counts[i][0]++;
                counts[i][1] += device == SV_BATCH_CPU;
                counts[i][2] += device == SV_BATCH_GPU;
            }
        most = counts[i][0] > most ? counts[i][0] : most;
    }
    for (size_t k = 0; k < 3; k++)
        items[k] = (struct sv_legend){sv_picture_printf(d->a.p, "%s", kinds[k]), colors[k]};
    sv_axes_legend(&d->a, items, 3);
    named_scales(d, n, sv_panel_count_axis((double)most), "batch size (the most frequent)",
                 "batches");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 3; k++) {
            double x = (double)i + 0.14 + 0.24 * (double)k;
            sv_axes_box(&d->a, x, 0, x + 0.24, (double)counts[i][k], colors[k],
                        sv_picture_printf(d->a.p, "size %s, %s\n%zu batches", names[i].text,
                                          kinds[k], counts[i][k]));
        }
    sv_axes_names_x(&d->a, names, n);
}

/* ---- over time ---- */

/* Times of arrivals (or of answers, one per request of the batch) since the first arrival, in
 * rising order. */
static double *times(const struct sv_panel_draw *d, bool of_answers, size_t *n)
{
    double *out = NULL;
    size_t cap = 0;
    int64_t first = SV_BATCH_UNKNOWN;
    *n = 0;
    for (size_t i = 0; i < d->n; i++) {
        int64_t at = d->rows[i]->arrival_ns;
        if (at != SV_BATCH_UNKNOWN && (first == SV_BATCH_UNKNOWN || at < first))
            first = at;
    }
    for (size_t i = 0; i < d->n && first != SV_BATCH_UNKNOWN; i++) {
        const struct sv_batch_row *r = d->rows[i];
        for (size_t k = 0; k < r->n_known; k++) {
            int64_t at = of_answers ? r->end_ns : d->b->requests[r->first_request + k].arrival_ns;
            if (at == SV_BATCH_UNKNOWN)
                continue;
            out = sv_grow(out, &cap, *n + 1, sizeof *out);
            out[(*n)++] = (double)at - (double)first;
        }
    }
    if (*n)
        sv_panel_sort(out, *n);
    return out;
}

static struct sv_axis since_start(double last)
{
    return (struct sv_axis){.unit = SV_AXIS_TIME, .to = fmax(last, 1)};
}

static void note(struct sv_panel_draw *d, const char *text)
{
    sv_picture_label(d->a.p, d->a.right - 4, d->a.top + 12, 10, SV_ANCHOR_END, SV_MARK_BOLD,
                     SV_COLOR_INK, 0, sv_picture_printf(d->a.p, "%s", text));
}

void sv_panel_arrivals(struct sv_panel_draw *d)
{
    size_t n;
    char text[64];
    double *at = times(d, false, &n);
    if (n == 0) {
        sv_axes_nothing(&d->a, SV_NO_ARRIVALS);
        return;
    }
    double *counts = sv_alloc((n + 1) * sizeof *counts), last = at[n - 1];
    for (size_t i = 0; i < n; i++)
        counts[i] = (double)(i + 1);
    sv_axes_scales(&d->a, since_start(last), "since the first arrival",
                   sv_panel_count_axis((double)n), "requests so far");
    sv_axes_line(&d->a, at, counts, n, 0x0072b2, SV_LINE_STEPS);
    if (last > 0 && n > 1) { /* n arrivals have n - 1 distances */
        snprintf(text, sizeof text, "mean %.0f requests/s", (double)(n - 1) / last * 1e9);
        note(d, text);
    }
    free(counts);
    free(at);
}

/* Bins of a round width, fewer than 200 of them; the last one counts by its part that was seen, if
 * that is half of it. */
static void draw_rate(struct sv_panel_draw *d, bool of_answers, uint32_t color, const char *y_text)
{
    size_t n;
    char text[96], width_text[64];
    double *at = times(d, of_answers, &n), counts[200] = {0}, most = 0;
    if (n == 0) {
        sv_axes_nothing(&d->a, SV_NO_ARRIVALS);
        return;
    }
    double last = fmax(at[n - 1], 1);
    struct sv_axis all = {.to = last, .unit = SV_AXIS_TIME};
    double width = fmax(sv_axis_step(&all, 180), sv_axis_step(&all, 60));
    if (width < 1e9 && last > 20e9)
        width = 1e9;
    size_t bins = (size_t)fmin(floor(last / width) + 1, 200);
    for (size_t i = 0; i < n; i++)
        counts[(size_t)fmin(at[i] / width, (double)bins - 1)]++;
    for (size_t i = 0; i < bins; i++) {
        double part = fmin(width, last - (double)i * width);
        counts[i] *= 1e9 / (part >= width / 2 ? part : width); /* little time proves nothing */
        most = fmax(most, counts[i]);
    }
    struct sv_buf *b = &d->a.p->text;
    size_t from = b->len;
    sv_buf_str(b, "since the first arrival; a bar is ");
    sv_format_duration(b, width);
    snprintf(width_text, sizeof width_text, "%.*s", (int)(b->len - from), (char *)b->data + from);
    sv_axes_scales(&d->a, since_start(last), width_text, sv_panel_count_axis(most), y_text);
    for (size_t i = 0; i < bins; i++)
        sv_axes_box(&d->a, (double)i * width, 0, fmin((double)(i + 1) * width, last), counts[i],
                    color, sv_picture_printf(d->a.p, "%.6g requests/s", counts[i]));
    from = b->len;
    sv_buf_str(b, "mean ");
    sv_format_count(b, (uint64_t)llround((double)n / last * 1e9));
    sv_buf_str(b, ", peak ");
    sv_format_count(b, (uint64_t)llround(most));
    snprintf(text, sizeof text, "%.*s requests/s", (int)(b->len - from), (char *)b->data + from);
    note(d, text);
    free(at);
}

void sv_panel_arrival_rate(struct sv_panel_draw *d)
{
    draw_rate(d, false, 0x56b4e9, "requests arriving per second");
}

void sv_panel_throughput(struct sv_panel_draw *d)
{
    draw_rate(d, true, 0x009e73, "requests answered per second");
}

void sv_panel_queue(struct sv_panel_draw *d)
{
    const struct sv_batch_rows *b = d->b;
    size_t n = b->n_metrics;
    double queued = 0, rejected = 0;
    if (n == 0) {
        sv_axes_nothing(&d->a, "no data: no metrics.csv beside the file and no counters in it");
        return;
    }
    double *x = sv_alloc(3 * (n + 1) * sizeof *x), *q = x + n, *r = q + n;
    for (size_t i = 0; i < n; i++) {
        x[i] = (double)b->metrics[i].ts_ns - (double)b->metrics[0].ts_ns;
        queued = fmax(queued, q[i] = b->metrics[i].queued);
        rejected = fmax(rejected, r[i] = b->metrics[i].rejected);
    }
    sv_axes_right(&d->a, sv_panel_count_axis(rejected), "rejected so far", 0xb03000);
    sv_axes_scales(&d->a, since_start(x[n - 1]), "since the first value",
                   sv_panel_count_axis(queued), "requests in the queue");
    sv_axes_line(&d->a, x, q, n, 0x0072b2, SV_LINE_STEPS);
    sv_axes_line_right(&d->a, x, r, n, 0xb03000, SV_LINE_STEPS);
    free(x);
}

/* Panels of batches by phase, worker and size. Drawn through the table of panels. */
#include "subjects/serving/panels_impl.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "plot/colors.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups ---- */

static int most_first(const void *a, const void *b)
{
    const struct sv_panel_group *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int key_first(const void *a, const void *b)
{
    const struct sv_panel_group *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void name_group(const struct sv_panel_draw *d, struct sv_panel_group *g, bool by_size)
{
    if (by_size) {
        snprintf(g->name.text, sizeof g->name.text, "%" PRIu64, g->key);
        return;
    }
    const struct sv_batch_worker *w = &d->b->workers[g->key];
    g->device = w->device;
    if (w->number < 0)
        snprintf(g->name.text, sizeof g->name.text, "%s", w->type);
    else
        snprintf(g->name.text, sizeof g->name.text, "%d %.8s", (int)w->number, w->type);
}

/* The SV_NAMES_MAX most frequent, then in the order of their keys. */
static size_t make_groups(const struct sv_panel_draw *d, struct sv_panel_group *out, bool by_size)
{
    struct sv_panel_group *all = NULL;
    struct sv_map of_key = {0};
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct sv_batch_row *r = d->rows[i];
        bool is_new;
        uint64_t key = by_size ? r->size : r->worker;
        uint64_t *slot = sv_map_add(&of_key, key, &is_new);
        if (is_new) {
            all = sv_grow(all, &cap, n + 1, sizeof *all);
            all[n] = (struct sv_panel_group){.key = key};
            *slot = n++;
        }
        assert(all && *slot < n);
        struct sv_panel_group *g = &all[*slot];
        g->n++;
        g->requests += r->n_requests;
        g->total_ns += (double)r->total_ns;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            g->phase_ns[k] += (double)r->phase_ns[k];
    }
    sv_map_fini(&of_key);
    if (n)
        qsort(all, n, sizeof *all, most_first);
    n = n < SV_NAMES_MAX ? n : SV_NAMES_MAX;
    if (n) {
        memcpy(out, all, n * sizeof *out);
        qsort(out, n, sizeof *out, key_first);
    }
    for (size_t i = 0; i < n; i++)
        name_group(d, &out[i], by_size);
    free(all);
    return n;
}

size_t sv_panel_by_size(const struct sv_panel_draw *d, struct sv_panel_group *groups)
{
    return make_groups(d, groups, true);
}

size_t sv_panel_by_worker(const struct sv_panel_draw *d, struct sv_panel_group *groups)
{
    return make_groups(d, groups, false);
}

bool sv_panel_is_in(const struct sv_panel_group *g, const struct sv_batch_row *r, bool by_size)
{
    return g->key == (by_size ? r->size : r->worker);
}

static const struct sv_name *phase_names(void)
{
    static const struct sv_name names[SV_N_BATCH_PHASES] = {
        {.text = "queue"}, {.text = "batch"},    {.text = "submit"}, {.text = "scheduling"},
        {.text = "run"},   {.text = "callback"}, {.text = "rest"}};
    return names;
}

/* ---- heat ---- */

static void draw_phase_heat(struct sv_panel_draw *d, bool by_size)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_name names[SV_NAMES_MAX];
    double values[SV_N_BATCH_PHASES * SV_NAMES_MAX];
    size_t n = make_groups(d, groups, by_size);
    for (size_t i = 0; i < n; i++) {
        names[i] = groups[i].name;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            values[k * n + i] = groups[i].phase_ns[k] / (double)groups[i].n;
    }
    struct sv_heat h = {.values = values,
                        .n_columns = n,
                        .n_rows = SV_N_BATCH_PHASES,
                        .columns = names,
                        .rows = phase_names(),
                        .unit = {.unit = SV_AXIS_TIME}};
    sv_axes_heat(&d->a, &h, by_size ? "batch size" : "worker", "phase, mean");
}

void sv_panel_phases_by_size(struct sv_panel_draw *d)
{
    draw_phase_heat(d, true);
}

void sv_panel_phases_by_worker(struct sv_panel_draw *d)
{
    draw_phase_heat(d, false);
}

/* Pearson's r; NaN where one of them never changes. */
static double correlation(const struct sv_panel_draw *d, size_t a, size_t b)
{
    double n = (double)d->n, ma = 0, mb = 0, va = 0, vb = 0, cov = 0;
    for (size_t i = 0; i < d->n; i++) {
        ma += (double)d->rows[i]->phase_ns[a] / n;
        mb += (double)d->rows[i]->phase_ns[b] / n;
    }
    for (size_t i = 0; i < d->n; i++) {
        double x = (double)d->rows[i]->phase_ns[a] - ma, y = (double)d->rows[i]->phase_ns[b] - mb;
        va += x * x;
        vb += y * y;
        cov += x * y;
    }
    return va > 0 && vb > 0 ? cov / sqrt(va) / sqrt(vb) : NAN;
}

void sv_panel_correlation(struct sv_panel_draw *d)
{
    double values[SV_N_BATCH_PHASES * SV_N_BATCH_PHASES];
    if (d->n < 2) {
        sv_axes_nothing(&d->a, "no data: a correlation needs two batches");
        return;
    }
    for (size_t i = 0; i < SV_N_BATCH_PHASES; i++)
        for (size_t k = 0; k <= i; k++)
            values[i * SV_N_BATCH_PHASES + k] = values[k * SV_N_BATCH_PHASES + i] =
                correlation(d, i, k);
    struct sv_heat h = {.values = values,
                        .n_columns = SV_N_BATCH_PHASES,
                        .n_rows = SV_N_BATCH_PHASES,
                        .columns = phase_names(),
                        .rows = phase_names(),
                        .from = -1,
                        .to = 1,
                        .is_diverging = true,
                        .unit = {.unit = SV_AXIS_COUNT}};
    sv_axes_heat(&d->a, &h, "phase", "Pearson's r; a dash: constant value");
}

#define BUCKETS_MAX 60u

void sv_panel_worker_time(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_name names[SV_NAMES_MAX], buckets[BUCKETS_MAX];
    size_t most = SV_NAMES_MAX * BUCKETS_MAX;
    double *values = sv_alloc(2 * most * sizeof *values), *counts = values + most;
    size_t n = sv_panel_by_worker(d, groups);
    uint64_t first = d->b->rows[0].id, span = d->b->rows[d->b->n - 1].id - first, size = 100;
    while (span / size >= BUCKETS_MAX)
        size *= size % 3 ? 2 : 5;
    size_t columns = (size_t)(span / size) + 1;
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < n; k++)
            if (sv_panel_is_in(&groups[k], d->rows[i], false)) {
                size_t at = k * columns + (size_t)((d->rows[i]->id - first) / size);
                values[at] += (double)d->rows[i]->total_ns;
                counts[at]++;
            }
    for (size_t i = 0; i < n * columns; i++)
        values[i] = counts[i] > 0 ? values[i] / counts[i] : NAN;
    for (size_t i = 0; i < n; i++)
        names[i] = groups[i].name;
    for (size_t i = 0; i < columns; i++)
        snprintf(buckets[i].text, sizeof buckets[i].text, "%" PRIu64, first + i * size);
    struct sv_heat h = {.values = values,
                        .n_columns = columns,
                        .n_rows = n,
                        .columns = buckets,
                        .rows = names,
                        .unit = {.unit = SV_AXIS_TIME}};
    char x_text[48];
    snprintf(x_text, sizeof x_text, "batch, in groups of %" PRIu64, size);
    sv_axes_heat(&d->a, &h, x_text, "worker");
    free(values);
}

/* ---- stacks ---- */

/* Bars that lie, one below the other, divided by phase. */
static void draw_lying(struct sv_panel_draw *d, const struct sv_panel_group *groups, size_t n,
                       const char *y_text)
{
    struct sv_name names[SV_NAMES_MAX];
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        names[i] = groups[i].name;
        most = fmax(most, groups[i].total_ns);
    }
    sv_panel_phase_legend(d);
    d->a.left += 14;
    sv_axes_scales(&d->a, sv_panel_time_axis(most), "sum over batches",
                   (struct sv_axis){.unit = SV_AXIS_WHOLE, .from = 0.1, .to = 0.4}, y_text);
    d->a.ay = (struct sv_axis){
        .from = (double)n, .to = 0, .at0 = d->a.bottom, .at1 = d->a.top}; /* the first on top */
    for (size_t i = 0; i < n; i++) {
        double at = 0;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++) {
            double ns = groups[i].phase_ns[k];
            if (ns <= 0)
                continue;
            size_t text = d->a.p->text.len;
            sv_buf_printf(&d->a.p->text, "%s, %s\n", groups[i].name.text, sv_batch_phase_names[k]);
            sv_format_duration(&d->a.p->text, ns);
            sv_axes_box(&d->a, at, (double)i + 0.15, at + ns, (double)i + 0.85,
                        sv_batch_phase_colors[k], sv_picture_since(d->a.p, text));
            at += ns;
        }
    }
    sv_axes_names_y(&d->a, names, n);
}

void sv_panel_worker_phases(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_NAMES_MAX];
    size_t n = sv_panel_by_worker(d, groups);
    draw_lying(d, groups, n, "worker");
}

void sv_panel_waterfall(struct sv_panel_draw *d)
{
    struct sv_panel_group groups[SV_N_BATCH_DEVICES], kept[SV_N_BATCH_DEVICES];
    size_t n = 0;
    memset(groups, 0, sizeof groups);
    for (size_t i = 0; i < d->n; i++) {
        struct sv_panel_group *g = &groups[d->b->workers[d->rows[i]->worker].device];
        g->n++;
        g->total_ns += (double)d->rows[i]->total_ns;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            g->phase_ns[k] += (double)d->rows[i]->phase_ns[k];
    }
    for (size_t i = 0; i < SV_N_BATCH_DEVICES; i++) {
        snprintf(groups[i].name.text, sizeof groups[i].name.text, "%s", sv_batch_device_names[i]);
        if (groups[i].n)
            kept[n++] = groups[i];
    }
    draw_lying(d, kept, n, "kind of worker");
}

/* A bar per batch, or per so many batches that bars are seen. */
void sv_panel_composition(struct sv_panel_draw *d)
{
    double width = d->a.right - d->a.left, most = 0;
    size_t together = (size_t)fmax(ceil((double)d->n * 3 / width), 1);
    size_t bars = (d->n + together - 1) / together;
    double *values = sv_alloc((bars + 1) * SV_N_BATCH_PHASES * sizeof *values);
    char x_text[80] = "batch";
    for (size_t i = 0; i < d->n; i++) {
        size_t bar = i / together, left = d->n - bar * together;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            values[bar * SV_N_BATCH_PHASES + k] += (double)d->rows[i]->phase_ns[k] /
                                                   (double)(left < together ? left : together);
    }
    for (size_t i = 0; i < bars; i++) {
        double sum = 0;
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            sum += values[i * SV_N_BATCH_PHASES + k];
        most = fmax(most, sum);
    }
    if (together > 1)
        snprintf(x_text, sizeof x_text, "batches in order; a bar is the mean of %zu", together);
    sv_panel_phase_legend(d);
    sv_axes_scales(&d->a, (struct sv_axis){.unit = SV_AXIS_WHOLE, .to = (double)d->n}, x_text,
                   sv_panel_time_axis(fmin(most, sv_panel_latencies(d).end_ns)),
                   "latency by phase, without overlap");
    if (together == 1)
        sv_panel_outliers(d, &d->a.ay, "above");
    for (size_t i = 0; i < bars; i++) {
        double at = 0, x = (double)(i * together);
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++) {
            double ns = values[i * SV_N_BATCH_PHASES + k];
            if (ns > 0)
                sv_axes_box(&d->a, x, at, x + (double)together, at + ns, sv_batch_phase_colors[k],
                            (struct sv_ref){0});
            at += ns;
        }
    }
    free(values);
}

struct phase_mean {
    size_t phase;
    double ns;
};

static int longest_first(const void *a, const void *b)
{
    const struct phase_mean *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->phase < y->phase ? -1 : 1;
}

void sv_panel_pareto(struct sv_panel_draw *d)
{
    struct phase_mean means[SV_N_BATCH_PHASES];
    struct sv_name names[SV_N_BATCH_PHASES];
    double total = 0, so_far = 0, xs[SV_N_BATCH_PHASES], shares[SV_N_BATCH_PHASES];
    for (size_t k = 0; k < SV_N_BATCH_PHASES; k++) {
        means[k] = (struct phase_mean){k, 0};
        for (size_t i = 0; i < d->n; i++)
            means[k].ns += (double)d->rows[i]->phase_ns[k] / (double)d->n;
        total += means[k].ns;
    }
    qsort(means, SV_N_BATCH_PHASES, sizeof *means, longest_first);
    sv_axes_right(&d->a, (struct sv_axis){.unit = SV_AXIS_COUNT, .to = 100, .suffix = "%"},
                  "cumulative share", 0xb03000);
    sv_axes_scales(&d->a, (struct sv_axis){.unit = SV_AXIS_WHOLE, .from = 0.1, .to = 0.4}, "phase",
                   sv_panel_time_axis(means[0].ns), "mean");
    d->a.ax.from = 0;
    d->a.ax.to = SV_N_BATCH_PHASES;
    for (size_t i = 0; i < SV_N_BATCH_PHASES; i++) {
        size_t at = d->a.p->text.len;
        sv_format_duration(&d->a.p->text, means[i].ns);
        sv_axes_box(&d->a, (double)i + 0.15, 0, (double)i + 0.85, means[i].ns,
                    sv_batch_phase_colors[means[i].phase], sv_picture_since(d->a.p, at));
        snprintf(names[i].text, sizeof names[i].text, "%s", sv_batch_phase_names[means[i].phase]);
        so_far += means[i].ns;
        xs[i] = (double)i + 0.5;
        shares[i] = total > 0 ? 100 * so_far / total : 0;
    }
    sv_axes_line_right(&d->a, xs, shares, SV_N_BATCH_PHASES, 0xb03000, SV_LINE_STRAIGHT);
    sv_axes_names_x(&d->a, names, SV_N_BATCH_PHASES);
}

/* ---- radar ---- */

#define RADAR_MAX 4u

static void radar_point(const struct sv_axes *a, size_t k, double share, double *x, double *y)
{
    double cx = (a->left + a->right) / 2, cy = (a->top + a->bottom) / 2 + 6;
    double radius = fmin(a->right - a->left, a->bottom - a->top) / 2 - 8;
    double angle = -1.5707963 + 6.2831853 * (double)k / SV_N_BATCH_PHASES;
    *x = cx + cos(angle) * radius * share;
    *y = cy + sin(angle) * radius * share;
}

static void draw_web(struct sv_panel_draw *d)
{
    double x, y, cx, cy;
    for (int ring = 1; ring <= 4; ring++) {
        sv_picture_path(d->a.p, SV_COLOR_GRID, 1, 0);
        for (size_t k = 0; k <= SV_N_BATCH_PHASES; k++) {
            radar_point(&d->a, k, ring / 4.0, &x, &y);
            sv_picture_point(d->a.p, x, y);
        }
    }
    for (size_t k = 0; k < SV_N_BATCH_PHASES; k++) {
        radar_point(&d->a, k, 0, &cx, &cy);
        radar_point(&d->a, k, 1, &x, &y);
        sv_picture_line(d->a.p, cx, cy, x, y, SV_COLOR_GRID);
        radar_point(&d->a, k, 1.08, &x, &y);
        sv_picture_label(d->a.p, x, y + 4, 10,
                         x > cx + 5   ? SV_ANCHOR_START
                         : x < cx - 5 ? SV_ANCHOR_END
                                      : SV_ANCHOR_MIDDLE,
                         0, SV_COLOR_DIM, 0,
                         sv_picture_printf(d->a.p, "%s", sv_batch_phase_names[k]));
    }
}

void sv_panel_radar(struct sv_panel_draw *d)
{
    static const uint32_t colors[RADAR_MAX] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7};
    struct sv_panel_group groups[SV_NAMES_MAX];
    struct sv_legend items[RADAR_MAX];
    double most = 0, x, y;
    size_t n = sv_panel_by_worker(d, groups);
    qsort(groups, n, sizeof *groups, most_first);
    n = n < RADAR_MAX ? n : RADAR_MAX;
    for (size_t i = 0; i < n; i++) {
        items[i] =
            (struct sv_legend){sv_picture_printf(d->a.p, "%s", groups[i].name.text), colors[i]};
        for (size_t k = 0; k < SV_N_BATCH_PHASES; k++)
            most = fmax(most, groups[i].phase_ns[k] / (double)groups[i].n);
    }
    sv_axes_legend(&d->a, items, n);
    draw_web(d);
    for (size_t i = 0; i < n && most > 0; i++) {
        sv_picture_path(d->a.p, colors[i], 2, 0);
        for (size_t k = 0; k <= SV_N_BATCH_PHASES; k++) {
            double ns = groups[i].phase_ns[k % SV_N_BATCH_PHASES] / (double)groups[i].n;
            radar_point(&d->a, k, ns / most, &x, &y);
            sv_picture_point(d->a.p, x, y);
        }
    }
    size_t at = d->a.p->text.len;
    sv_buf_str(&d->a.p->text, "the outer ring is ");
    sv_format_duration(&d->a.p->text, most);
    sv_picture_label(d->a.p, d->a.x + 12, d->a.bottom + 32, 10, SV_ANCHOR_START, 0, SV_COLOR_DIM, 0,
                     sv_picture_since(d->a.p, at));
}

/* Bands as marks of a picture. Called by the time line; all numbers come from the bands.
 *
 * The legend of a band is beside it. Neighbouring bins that look alike become one mark. */
#include "plot/bands.h"

#include "plot/colors.h"
#include "plot/frame.h"

#include <math.h>
#include <string.h>

#define SERIES_HEIGHT 62.0
#define LEGEND_LINE   12.0
#define LANE_HEIGHT   15.0
#define LANE_GAP      2.0
#define SHADES        6.0

struct area {
    struct sv_picture *p;
    const struct sv_band *b;
    const struct sv_bins *bins;
    double x0, x1, top, bottom;
};

static double x_of(const struct area *a, size_t bin)
{
    return a->x0 + (a->x1 - a->x0) * (double)bin / (double)a->bins->n;
}

double sv_band_height(const struct sv_band *b)
{
    if (b->kind == SV_BAND_LANES)
        return fmax((double)b->n_lanes * (LANE_HEIGHT + LANE_GAP), b->note[0] ? 28 : 16);
    double legend = 18 + LEGEND_LINE * (double)(b->n + (b->note[0] != 0));
    return fmax(SERIES_HEIGHT, legend);
}

/* ---- series ---- */

/* The end of the run of bins from `i` on that have the same value and are known alike. */
static size_t same_until(const double *v, size_t i, size_t n)
{
    size_t end = i + 1;
    while (end < n && (v[end] == v[i] || (isnan(v[end]) && isnan(v[i]))))
        end++;
    return end;
}

static struct sv_ref series_title(struct area *a, const struct sv_band_part *part,
                                  const struct sv_axis *axis)
{
    struct sv_buf *t = &a->p->text;
    double min = INFINITY, max = -INFINITY, sum = 0;
    size_t at = t->len, n = 0;
    for (size_t i = 0; i < a->bins->n; i++) {
        if (isnan(part->value[i]))
            continue;
        min = fmin(min, part->value[i]);
        max = fmax(max, part->value[i]);
        sum += part->value[i];
        n++;
    }
    sv_buf_printf(t, "%s %s\n", a->b->title, part->name);
    if (n == 0)
        return sv_picture_since(a->p, at);
    sv_axis_format(t, axis, min, 0);
    sv_buf_str(t, " to ");
    sv_axis_format(t, axis, max, 0);
    sv_buf_str(t, ", mean ");
    sv_axis_format(t, axis, sum / (double)n, 0);
    return sv_picture_since(a->p, at);
}

static void draw_line(struct area *a, const struct sv_band_part *part, const struct sv_axis *axis)
{
    struct sv_ref title = series_title(a, part, axis);
    bool is_open = false;
    for (size_t i = 0, end; i < a->bins->n; i = end) {
        end = same_until(part->value, i, a->bins->n);
        if (isnan(part->value[i])) {
            is_open = false;
            continue;
        }
        if (!is_open)
            sv_picture_path(a->p, part->color, 1.5, SV_MARK_ZOOM)->title = title;
        is_open = true;
        double y = sv_axis_place(axis, fmin(fmax(part->value[i], axis->from), axis->to));
        sv_picture_point(a->p, x_of(a, i), y);
        sv_picture_point(a->p, x_of(a, end), y);
    }
}

static double stacked(const struct sv_band *b, size_t n_parts, size_t bin)
{
    double sum = 0;
    for (size_t k = 0; k < n_parts; k++)
        sum += isnan(b->parts[k].value[bin]) ? 0 : b->parts[k].value[bin];
    return sum;
}

static bool is_same_stack(const struct sv_band *b, size_t part, size_t i, size_t j)
{
    return stacked(b, part, i) == stacked(b, part, j) &&
           stacked(b, part + 1, i) == stacked(b, part + 1, j);
}

static void draw_boundary(struct area *a, size_t n_parts, size_t from, size_t to, bool is_back)
{
    for (size_t k = 0; k < to - from; k++) {
        size_t i = is_back ? to - 1 - k : from + k;
        double y = sv_axis_place(&a->b->left, fmin(stacked(a->b, n_parts, i), a->b->left.to));
        sv_picture_point(a->p, x_of(a, is_back ? i + 1 : i), y);
        sv_picture_point(a->p, x_of(a, is_back ? i : i + 1), y);
    }
}

/* Filled outlines of what lies between the parts below and this one, one for each run of known
 * bins. */
static void draw_layer(struct area *a, size_t part)
{
    const double *known = a->b->parts[part].value;
    size_t n = a->bins->n;
    struct sv_ref title = series_title(a, &a->b->parts[part], &a->b->left);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && isnan(known[end]) == isnan(known[i]);)
            end++;
        if (isnan(known[i]))
            continue;
        bool is_flat = true;
        for (size_t k = i + 1; k < end && is_flat; k++)
            is_flat = is_same_stack(a->b, part, i, k);
        sv_picture_path(a->p, a->b->parts[part].color, 0, SV_MARK_ZOOM | SV_MARK_FILLED)->title =
            title;
        if (is_flat) { /* a box */
            double low = sv_axis_place(&a->b->left, fmin(stacked(a->b, part, i), a->b->left.to));
            double high =
                sv_axis_place(&a->b->left, fmin(stacked(a->b, part + 1, i), a->b->left.to));
            sv_picture_point(a->p, x_of(a, i), low);
            sv_picture_point(a->p, x_of(a, end), low);
            sv_picture_point(a->p, x_of(a, end), high);
            sv_picture_point(a->p, x_of(a, i), high);
            continue;
        }
        draw_boundary(a, part + 1, i, end, false);
        draw_boundary(a, part, i, end, true);
    }
}

/* Ticks at the ends and in the middle. */
static void draw_axis(struct area *a, struct sv_axis *axis, bool is_right)
{
    axis->at0 = a->bottom;
    axis->at1 = a->top;
    for (int i = 0; i < 3; i++) {
        double value = axis->to * i / 2, y = sv_axis_place(axis, value);
        size_t at = a->p->text.len;
        if (i == 0)
            sv_buf_byte(&a->p->text, '0');
        else
            sv_axis_format(&a->p->text, axis, value, 0);
        if (!is_right)
            sv_picture_line(a->p, a->x0, y, a->x1, y, SV_COLOR_GRID);
        sv_picture_label(a->p, is_right ? a->x1 + 5 : a->x0 - 5,
                         y + (i == 2 ? 7
                              : i    ? 3
                                     : 0),
                         9, is_right ? SV_ANCHOR_START : SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                         sv_picture_since(a->p, at));
    }
}

static void draw_series(struct area *a)
{
    const struct sv_band *given = a->b;
    struct sv_band own = *given; /* with the places of its axes */
    a->b = &own;
    draw_axis(a, &own.left, false);
    if (own.right.to > 0)
        draw_axis(a, &own.right, true);
    for (size_t i = 0; i < own.n; i++) {
        bool is_right = own.parts[i].is_right && own.right.to > 0;
        if (own.kind == SV_BAND_STACK)
            draw_layer(a, i);
        else
            draw_line(a, &own.parts[i], is_right ? &own.right : &own.left);
    }
    a->b = given;
}

/* ---- lanes ---- */

/* 0: nothing; else 1 … SHADES: how dark. Whatever happens is seen. */
static unsigned shade_of(const struct sv_band_part *p, size_t bin)
{
    if (!p->count[bin] && p->value[bin] < 1e-6)
        return 0;
    return (unsigned)fmin(1 + floor(p->value[bin] * SHADES), SHADES);
}

static struct sv_ref lane_title(struct area *a, const struct sv_band_part *p, size_t i, size_t end)
{
    struct sv_buf *t = &a->p->text;
    struct sv_axis bytes = {.unit = SV_AXIS_BYTES};
    double sum = 0, busy = 0;
    uint64_t n = 0;
    size_t at = t->len;
    for (size_t k = i; k < end; k++) {
        n += p->count[k];
        sum += p->bytes[k];
        busy += p->value[k];
    }
    sv_buf_printf(t, "%s\n%s", p->name, a->b->title);
    if (n) { /* those of a device are not counted, and a long one begins elsewhere */
        sv_buf_byte(t, '\n');
        sv_format_count(t, n);
        sv_buf_str(t, n == 1 ? " begins here" : " begin here");
    }
    if (sum > 0) {
        bytes.to = sum;
        sv_buf_str(t, n ? ", " : "\n");
        sv_axis_format(t, &bytes, sum, 0);
    }
    sv_buf_printf(t, "\nbusy %.3g %% of the time", 100 * busy / (double)(end - i));
    return sv_picture_since(a->p, at);
}

static void draw_part(struct area *a, const struct sv_band_part *p, double y, double h)
{
    for (size_t i = 0, end; i < a->bins->n; i = end) {
        unsigned shade = shade_of(p, i);
        for (end = i + 1; end < a->bins->n && shade_of(p, end) == shade;)
            end++;
        if (!shade)
            continue;
        struct sv_picture_mark m = {
            .shape = SV_SHAPE_BOX,
            .flags = SV_MARK_ZOOM,
            .x = x_of(a, i),
            .y = y,
            .w = x_of(a, end) - x_of(a, i),
            .h = h,
            .color = sv_color_mix(0xffffff, p->color, 0.4 + 0.6 * shade / SHADES)};
        m.title = lane_title(a, p, i, end);
        sv_picture_add(a->p, &m);
    }
}

static void draw_lanes(struct area *a)
{
    for (size_t lane = 0; lane < a->b->n_lanes; lane++) {
        double y = a->top + (double)lane * (LANE_HEIGHT + LANE_GAP);
        size_t n = 0, k = 0;
        sv_picture_box(a->p, a->x0, y, a->x1 - a->x0, LANE_HEIGHT, 0xf6f6f8);
        sv_picture_label(a->p, a->x0 - 5, y + 10.5, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                         sv_picture_text(a->p, a->b->lanes[lane], strlen(a->b->lanes[lane])));
        for (size_t i = 0; i < a->b->n; i++)
            n += a->b->parts[i].lane == lane;
        for (size_t i = 0; i < a->b->n; i++)
            if (a->b->parts[i].lane == lane) {
                double h = LANE_HEIGHT / (double)n;
                draw_part(a, &a->b->parts[i], y + h * (double)k++, h);
            }
    }
}

/* ---- the band ---- */

static void draw_names(struct area *a, double x)
{
    struct sv_picture *p = a->p;
    const struct sv_band *b = a->b;
    double max_width = a->x0 - x - 62, y = a->top + 10;
    struct sv_ref title = sv_picture_text(p, b->title, strlen(b->title));
    sv_picture_label(p, x, y, 10.5, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK, max_width, title);
    p->marks[p->n - 1].title = title;
    if (b->note[0]) {
        y += 12;
        sv_picture_label(p, x, y, 9, SV_ANCHOR_START, 0, SV_COLOR_DIM, max_width,
                         sv_picture_text(p, b->note, strlen(b->note)));
    }
    for (size_t i = 0; i < b->n && b->kind != SV_BAND_LANES; i++) {
        y += LEGEND_LINE;
        sv_picture_box(p, x, y - 7, 8, 8, b->parts[i].color);
        sv_picture_label(p, x + 12, y, 9, SV_ANCHOR_START, 0, SV_COLOR_INK, max_width - 12,
                         sv_picture_text(p, b->parts[i].name, strlen(b->parts[i].name)));
    }
}

void sv_band_draw(struct sv_picture *p, const struct sv_band *b, const struct sv_bins *bins,
                  double label_x, double x0, double x1, double y)
{
    struct area a = {.p = p,
                     .b = b,
                     .bins = bins,
                     .x0 = x0,
                     .x1 = x1,
                     .top = y,
                     .bottom = y + sv_band_height(b)};
    draw_names(&a, label_x);
    if (b->kind == SV_BAND_LANES)
        draw_lanes(&a);
    else
        draw_series(&a);
}

/* Panels with axes. Used by the pictures of batches; knows neither batches nor files. */
#include "plot/axes.h"

#include "core/base/mem.h"
#include "plot/colors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAD_LEFT   66.0
#define PAD_RIGHT  16.0
#define PAD_BOTTOM 40.0

uint32_t sv_color_sequential(double x)
{
    /* Five colours whose lightness rises evenly, from dark blue to yellow. */
    static const uint32_t stops[] = {0x2a1a5e, 0x3b528b, 0x21918c, 0x5ec962, 0xfde725};
    double at = fmin(fmax(isnan(x) ? 0 : x, 0), 1) * 4;
    size_t i = (size_t)fmin(floor(at), 3);
    return sv_color_mix(stops[i], stops[i + 1], at - (double)i);
}

static struct sv_ref copy(struct sv_axes *a, const char *text)
{
    return sv_picture_text(a->p, text, strlen(text));
}

void sv_axes_open(struct sv_axes *a, const char *title, const char *facts)
{
    double max_width = a->w - 24;
    sv_picture_label(a->p, a->x + 12, a->y + 20, 13, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK,
                     max_width, copy(a, title));
    if (facts && *facts)
        sv_picture_label(a->p, a->x + 12, a->y + 35, 10, SV_ANCHOR_START, 0, SV_COLOR_DIM,
                         max_width, copy(a, facts));
    a->left = a->x + PAD_LEFT;
    a->right = a->x + a->w - PAD_RIGHT;
    a->top = a->y + (facts && *facts ? 48 : 34);
    a->bottom = a->y + a->h - PAD_BOTTOM;
}

void sv_axes_legend(struct sv_axes *a, const struct sv_legend *items, size_t n)
{
    a->top = sv_plot_frame_legend(a->p, a->x + 12, a->top - 4, a->w - 24, items, n) + 6;
}

void sv_axes_nothing(struct sv_axes *a, const char *why)
{
    sv_picture_box(a->p, a->x + 12, a->top, a->w - 24, a->bottom - a->top, 0xf6f6f8);
    sv_picture_label(a->p, a->x + a->w / 2, (a->top + a->bottom) / 2, 11, SV_ANCHOR_MIDDLE, 0,
                     SV_COLOR_DIM, a->w - 40, copy(a, why));
}

static void x_title(struct sv_axes *a, const char *title)
{
    sv_picture_label(a->p, (a->left + a->right) / 2, a->bottom + 32, 10.5, SV_ANCHOR_MIDDLE, 0,
                     SV_COLOR_DIM, a->right - a->left, copy(a, title));
}

/* Level, above the axis: no painter turns texts. */
static void y_title(struct sv_axes *a, const char *title)
{
    sv_picture_label(a->p, a->x + 12, a->top - 6, 10, SV_ANCHOR_START, 0, SV_COLOR_DIM,
                     (a->right - a->left) / 2 + 50, copy(a, title));
}

static void place_axes(struct sv_axes *a, struct sv_axis x, struct sv_axis y)
{
    a->ax = x;
    a->ax.at0 = a->left;
    a->ax.at1 = a->right;
    if (!(a->ax.to > a->ax.from))
        a->ax.to = a->ax.from + 1;
    a->ay = y;
    a->ay.at0 = a->bottom;
    a->ay.at1 = a->top;
    if (!(a->ay.to > a->ay.from))
        a->ay.to = a->ay.from + 1;
}

void sv_axes_right(struct sv_axes *a, struct sv_axis r, const char *title, uint32_t color)
{
    a->right -= 50;
    a->top += 10;
    a->ar = r;
    a->ar.at0 = a->bottom;
    a->ar.at1 = a->top;
    if (!(a->ar.to > a->ar.from))
        a->ar.to = a->ar.from + 1;
    double step = sv_axis_step(&a->ar, 4);
    int n = (int)floor((a->ar.to * (1 + 1e-9) - a->ar.from) / step);
    for (int i = 0; i <= n; i++) {
        double v = a->ar.from + step * i;
        size_t at = a->p->text.len;
        sv_axis_format(&a->p->text, &a->ar, v, step);
        sv_picture_label(a->p, a->right + 6, sv_axis_place(&a->ar, v) + 3.5, 10, SV_ANCHOR_START, 0,
                         color, 0, sv_picture_since(a->p, at));
    }
    sv_picture_label(a->p, a->x + a->w - 12, a->top - 6, 10, SV_ANCHOR_END, 0, color, 160,
                     copy(a, title));
}

void sv_axes_scales(struct sv_axes *a, struct sv_axis x, const char *x_text, struct sv_axis y,
                    const char *y_text)
{
    if (a->ar.to <= a->ar.from)
        a->top += 10;
    place_axes(a, x, y);
    sv_axis_draw_x(a->p, &a->ax, a->top, a->bottom, true, 0);
    sv_axis_draw_y(a->p, &a->ay, a->left, a->right);
    sv_picture_line(a->p, a->left, a->bottom, a->right, a->bottom, SV_COLOR_DIM);
    x_title(a, x_text);
    y_title(a, y_text);
}

/* ---- dots and lines ---- */

static double x_at(const struct sv_axes *a, double v)
{
    return fmin(fmax(sv_axis_place(&a->ax, v), a->left), a->right);
}

static double y_on(const struct sv_axes *a, const struct sv_axis *y, double v)
{
    return fmin(fmax(sv_axis_place(y, v), a->top), a->bottom);
}

static double y_at(const struct sv_axes *a, double v)
{
    return y_on(a, &a->ay, v);
}

void sv_axes_dot(struct sv_axes *a, double x, double y, double radius, uint32_t color)
{
    if (isnan(x) || isnan(y))
        return;
    sv_picture_add(
        a->p,
        &(struct sv_picture_mark){
            .shape = SV_SHAPE_DOT, .x = x_at(a, x), .y = y_at(a, y), .w = radius, .color = color});
}

#define CELL 4.0 /* pixels: dots nearer than that are one */

void sv_axes_dots(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color)
{
    if (n > SV_DOTS_MAX)
        sv_axes_cells(a, xs, ys, n, color);
    for (size_t i = 0; i < n && n <= SV_DOTS_MAX; i++)
        sv_axes_dot(a, xs[i], ys[i], n <= 60 ? 3.5 : 2.5, color);
}

void sv_axes_cells(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color)
{
    size_t wide = (size_t)((a->right - a->left) / CELL) + 1,
           high = (size_t)((a->bottom - a->top) / CELL) + 1;
    uint32_t *counts = sv_alloc(wide * high * sizeof *counts);
    uint32_t most = 1;
    for (size_t i = 0; i < n; i++) {
        if (isnan(xs[i]) || isnan(ys[i]))
            continue;
        size_t column = (size_t)((x_at(a, xs[i]) - a->left) / CELL),
               row = (size_t)((y_at(a, ys[i]) - a->top) / CELL);
        uint32_t *count = &counts[row * wide + column];
        most = ++*count > most ? *count : most;
    }
    for (size_t i = 0; i < wide * high; i++)
        if (counts[i]) {
            size_t row = i / wide;
            double share = 0.45 + 0.55 * log(1 + counts[i]) / log(1 + (double)most);
            sv_picture_add(
                a->p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                .x = a->left + CELL * (double)(i % wide),
                                                .y = a->top + CELL * (double)row - 1,
                                                .w = CELL - 0.5,
                                                .h = CELL - 0.5,
                                                .color = sv_color_mix(0xffffff, color, share)});
        }
    free(counts);
}

/* Points that fall on one pixel column: first, smallest, largest, last. */
struct column {
    double x, first, low, high, last;
    bool is_open;
};

static void put_column(struct sv_axes *a, struct column *c)
{
    if (!c->is_open)
        return;
    sv_picture_point(a->p, c->x, c->first);
    if (c->low != c->first || c->high != c->last) {
        sv_picture_point(a->p, c->x, c->low);
        sv_picture_point(a->p, c->x, c->high);
    }
    sv_picture_point(a->p, c->x, c->last);
    c->is_open = false;
}

static void draw_line(struct sv_axes *a, const struct sv_axis *y_axis, const double *xs,
                      const double *ys, size_t n, uint32_t color, enum sv_line_kind kind)
{
    struct column c = {0};
    bool has_path = false;
    if (n == 1 && !isnan(xs[0]) && !isnan(ys[0])) /* a line of one point is seen as a dot */
        sv_picture_add(a->p, &(struct sv_picture_mark){.shape = SV_SHAPE_DOT,
                                                       .x = x_at(a, xs[0]),
                                                       .y = y_on(a, y_axis, ys[0]),
                                                       .w = 2.5,
                                                       .color = color});
    for (size_t i = 0; i < n; i++) {
        if (isnan(xs[i]) || isnan(ys[i])) {
            put_column(a, &c);
            has_path = false;
            continue;
        }
        double x = x_at(a, xs[i]), y = y_on(a, y_axis, ys[i]);
        if (!has_path)
            sv_picture_path(a->p, color, 1.6, 0);
        if (has_path && c.is_open && floor(x) == floor(c.x)) {
            c.low = fmin(c.low, y);
            c.high = fmax(c.high, y);
            c.last = y;
            continue;
        }
        double before = c.last;
        bool steps = has_path && kind == SV_LINE_STEPS;
        put_column(a, &c);
        if (steps)
            sv_picture_point(a->p, x, before);
        c = (struct column){x, y, y, y, y, true};
        has_path = true;
    }
    put_column(a, &c);
}

void sv_axes_line(struct sv_axes *a, const double *xs, const double *ys, size_t n, uint32_t color,
                  enum sv_line_kind kind)
{
    draw_line(a, &a->ay, xs, ys, n, color, kind);
}

void sv_axes_line_right(struct sv_axes *a, const double *xs, const double *ys, size_t n,
                        uint32_t color, enum sv_line_kind kind)
{
    draw_line(a, &a->ar, xs, ys, n, color, kind);
}

void sv_axes_box(struct sv_axes *a, double x0, double y0, double x1, double y1, uint32_t color,
                 struct sv_ref title)
{
    double left = x_at(a, x0), right = x_at(a, x1), low = y_at(a, y0), high = y_at(a, y1);
    if (low < high) {
        double t = low;
        low = high;
        high = t;
    }
    sv_picture_add(a->p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                   .flags = right - left > 6 ? SV_MARK_EDGE : 0,
                                                   .x = left,
                                                   .y = high,
                                                   .w = fmax(right - left, 0.7),
                                                   .h = low - high,
                                                   .color = color,
                                                   .title = title});
}

/* ---- names along axes ---- */

void sv_axes_names_x(struct sv_axes *a, const struct sv_name *names, size_t n)
{
    double pitch = (a->right - a->left) / (double)n, widest = 0;
    for (size_t i = 0; i < n; i++)
        widest = fmax(widest, sv_text_width(names[i].text, strlen(names[i].text), 10));
    size_t every = pitch >= 22 ? 1 : (size_t)ceil(22 / pitch);
    for (size_t i = 0; i < n; i += every)
        sv_picture_label(a->p, a->left + pitch * ((double)i + 0.5), a->bottom + 14, 10,
                         SV_ANCHOR_MIDDLE, 0, SV_COLOR_DIM,
                         fmin(widest + 2, pitch * (double)every - 2), copy(a, names[i].text));
}

void sv_axes_names_y(struct sv_axes *a, const struct sv_name *names, size_t n)
{
    double pitch = (a->bottom - a->top) / (double)n;
    size_t every = pitch >= 11 ? 1 : (size_t)ceil(11 / pitch);
    for (size_t i = 0; i < n; i += every)
        sv_picture_label(a->p, a->left - 6, a->top + pitch * ((double)i + 0.5) + 3.5, 10,
                         SV_ANCHOR_END, 0, SV_COLOR_DIM, a->left - a->x - 14,
                         copy(a, names[i].text));
}

/* ---- heat ---- */

static void heat_range(const struct sv_heat *h, double *from, double *to)
{
    *from = h->from;
    *to = h->to;
    if (h->from != h->to)
        return;
    *from = 0;
    *to = 0;
    for (size_t i = 0; i < h->n_columns * h->n_rows; i++)
        if (!isnan(h->values[i]))
            *to = fmax(*to, h->values[i]);
    if (*to <= 0)
        *to = 1;
}

static uint32_t heat_color(const struct sv_heat *h, double v, double from, double to)
{
    if (isnan(v))
        return 0xf0f0f2;
    return h->is_diverging ? sv_color_diverging(v) : sv_color_sequential((v - from) / (to - from));
}

static void draw_color_bar(struct sv_axes *a, const struct sv_heat *h, double from, double to)
{
    double x = a->right + 12, step = (a->bottom - a->top) / 40;
    for (int i = 0; i < 40; i++)
        sv_picture_box(a->p, x, a->bottom - step * (i + 1), 10, step + 0.5,
                       heat_color(h, from + (to - from) * (i + 0.5) / 40, from, to));
    struct sv_axis unit = h->unit;
    unit.from = from;
    unit.to = to;
    for (int i = 0; i <= 2; i++) {
        size_t at = a->p->text.len;
        double v = from + (to - from) * i / 2;
        sv_axis_format(&a->p->text, &unit, v, (to - from) / 20);
        sv_picture_label(a->p, x + 14, a->bottom - (a->bottom - a->top) * i / 2 + (i == 2 ? 8 : 3),
                         9, SV_ANCHOR_START, 0, SV_COLOR_DIM, 0, sv_picture_since(a->p, at));
    }
}

static void draw_cell(struct sv_axes *a, const struct sv_heat *h, size_t row, size_t column,
                      double from, double to)
{
    double w = (a->right - a->left) / (double)h->n_columns,
           height = (a->bottom - a->top) / (double)h->n_rows;
    double v = h->values[row * h->n_columns + column];
    struct sv_axis unit = h->unit;
    struct sv_picture_mark m = {.shape = SV_SHAPE_BOX,
                                .flags = w > 6 ? SV_MARK_EDGE : 0,
                                .x = a->left + w * (double)column,
                                .y = a->top + height * (double)row,
                                .w = w,
                                .h = height,
                                .color = heat_color(h, v, from, to)};
    size_t at = a->p->text.len;
    if (v > 0) { /* three digits are enough */
        double digits = pow(10, floor(log10(v)) - 2);
        v = round(v / digits) * digits;
    }
    unit.to = unit.from = isnan(v) ? 0 : v; /* each value in its own unit */
    if (isnan(v))
        sv_buf_str(&a->p->text, "\xe2\x80\x93");
    else if (h->is_diverging)
        sv_buf_printf(&a->p->text, "%.2f", fabs(v) < 0.005 ? 0 : v); /* no "-0.00" */
    else
        sv_axis_format(&a->p->text, &unit, v, 0);
    struct sv_ref text = sv_picture_since(a->p, at);
    at = a->p->text.len;
    sv_buf_printf(&a->p->text, "%s, %s\n%.*s", h->rows[row].text, h->columns[column].text,
                  (int)text.len, (char *)a->p->text.data + text.at);
    m.title = sv_picture_since(a->p, at);
    sv_picture_add(a->p, &m);
    if (w > 34 && height > 12)
        sv_picture_label(a->p, m.x + w / 2, m.y + height / 2 + 3, 9, SV_ANCHOR_MIDDLE, 0,
                         sv_color_ink_on(m.color), w - 4, text);
}

void sv_axes_heat(struct sv_axes *a, const struct sv_heat *h, const char *x_text,
                  const char *y_text)
{
    double from, to;
    a->left += 14;
    a->right -= 62;
    a->top += 10;
    heat_range(h, &from, &to);
    for (size_t row = 0; row < h->n_rows; row++)
        for (size_t column = 0; column < h->n_columns; column++)
            draw_cell(a, h, row, column, from, to);
    sv_axes_names_x(a, h->columns, h->n_columns);
    sv_axes_names_y(a, h->rows, h->n_rows);
    draw_color_bar(a, h, from, to);
    x_title(a, x_text);
    y_title(a, y_text);
}

/* ---- distributions ---- */

#define SLICES 80

/* The density, smoothed a little; 1 where it is highest. */
static void density(const double *values, size_t n, double low, double high, double out[SLICES])
{
    double raw[SLICES] = {0}, most = 0;
    for (size_t i = 0; i < n; i++) {
        double at = (values[i] - low) / (high - low) * (SLICES - 1);
        if (at >= 0 && at <= SLICES - 1)
            raw[(size_t)at]++;
    }
    for (int i = 0; i < SLICES; i++) {
        out[i] = 0;
        for (int k = -6; k <= 6; k++)
            if (i + k >= 0 && i + k < SLICES)
                out[i] += raw[i + k] * exp(-k * k / 8.0);
        most = fmax(most, out[i]);
    }
    for (int i = 0; i < SLICES && most > 0; i++)
        out[i] /= most;
}

void sv_axes_violin(struct sv_axes *a, double x, double half, const double *values, size_t n,
                    uint32_t color)
{
    double d[SLICES], low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, values[i]);
        high = fmax(high, values[i]);
    }
    if (n == 0)
        return;
    if (high <= low)
        high = low + fmax(fabs(low) * 0.01, 1);
    density(values, n, low, high, d);
    sv_picture_path(a->p, sv_color_mix(0xffffff, color, 0.6), 0, SV_MARK_FILLED);
    for (int k = 0; k < 2 * SLICES; k++) {
        int i = k < SLICES ? k : 2 * SLICES - 1 - k;
        double v = low + (high - low) * i / (SLICES - 1);
        sv_picture_point(a->p, x_at(a, x + (k < SLICES ? half : -half) * d[i]), y_at(a, v));
    }
}

static void level_line(struct sv_axes *a, double x0, double x1, double v, uint32_t color,
                       double stroke)
{
    sv_picture_line(a->p, x_at(a, x0), y_at(a, v), x_at(a, x1), y_at(a, v), color);
    a->p->marks[a->p->n - 1].stroke = stroke;
}

void sv_axes_box_plot(struct sv_axes *a, double x, double half, const struct sv_box_plot *b,
                      uint32_t color)
{
    sv_picture_line(a->p, x_at(a, x), y_at(a, b->low), x_at(a, x), y_at(a, b->high), SV_COLOR_DIM);
    size_t at = a->p->text.len;
    sv_buf_str(&a->p->text, "median ");
    sv_format_duration(&a->p->text, b->median);
    sv_buf_str(&a->p->text, ", mean ");
    sv_format_duration(&a->p->text, b->mean);
    sv_axes_box(a, x - half, b->q1, x + half, b->q3, sv_color_mix(0xffffff, color, 0.6),
                sv_picture_since(a->p, at));
    level_line(a, x - half, x + half, b->median, color, 2);
    level_line(a, x - half / 2, x + half / 2, b->low, SV_COLOR_DIM, 1);
    level_line(a, x - half / 2, x + half / 2, b->high, SV_COLOR_DIM, 1);
    sv_axes_dot(a, x, b->mean, 3, SV_COLOR_INK);
}

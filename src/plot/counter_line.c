/* The line of a counter as marks. Called by the pictures of counters and of the timeline.
 *
 * A value that is not finite ends the line and begins a new one after it. NaN is a box over the
 * whole height for as long as it lasts, an infinity one at the edge that it lies beyond; each at
 * least two pixels wide, so that a single one among millions of values is seen. */
#include "plot/counter_line.h"

#include "plot/colors.h"

#include <math.h>

#define MARK_LEAST 2.0
#define EDGE       4.0

static const char *name_of(double v)
{
    return isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The mark of the points from `i` on that have this value; returns the first one after them. */
static size_t draw_mark(struct sv_picture *p, const struct sv_counter_line *c, size_t i)
{
    double v = c->points[i].value, x = c->left + c->points[i].x;
    size_t end = i + 1;
    while (end < c->n && is_same(c->points[end].value, v))
        end++;
    double stop = end < c->n ? c->left + c->points[end].x : c->right;
    double height = isnan(v) ? c->bottom - c->top : EDGE;
    sv_picture_add(
        p, &(struct sv_picture_mark){
               .shape = SV_SHAPE_BOX,
               .flags = SV_MARK_ZOOM,
               .color = isnan(v) ? sv_color_mix(0xffffff, SV_COLOR_WARN, 0.55) : SV_COLOR_WARN,
               .x = x,
               .y = !isnan(v) && v < 0 ? c->bottom - height : c->top,
               .w = fmax(stop - x, MARK_LEAST),
               .h = height,
               .title = sv_picture_printf(p, "%s", name_of(v)),
           });
    return end;
}

/* The line through the finite values from `i` on; returns the first point after them. */
static size_t draw_run(struct sv_picture *p, const struct sv_counter_line *c, size_t i)
{
    double last = 0, x = 0;
    sv_picture_path(p, c->color, c->stroke, SV_MARK_ZOOM)->title = c->title;
    for (bool is_first = true; i < c->n && isfinite(c->points[i].value); i++, is_first = false) {
        const struct sv_point *at = &c->points[i];
        x = c->left + at->x;
        if (!is_first)
            sv_picture_point(p, x, last);
        if (at->max > at->min) {
            sv_picture_point(p, x, c->base - (at->max - c->from) * c->scale);
            sv_picture_point(p, x, c->base - (at->min - c->from) * c->scale);
        }
        last = c->base - (at->value - c->from) * c->scale;
        sv_picture_point(p, x, last);
    }
    sv_picture_point(p, i < c->n ? c->left + c->points[i].x : c->right, last);
    return i;
}

void sv_counter_line_draw(struct sv_picture *p, const struct sv_counter_line *c)
{
    for (size_t i = 0; i < c->n;)
        i = isfinite(c->points[i].value) ? i + 1 : draw_mark(p, c, i);
    for (size_t i = 0; i < c->n;)
        i = isfinite(c->points[i].value) ? draw_run(p, c, i) : i + 1;
}

/* Stacked bars as a picture. Called by the command plot for steps and layers. */
#include "plot/bars.h"

#include "core/base/mem.h"
#include "plot/colors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEFT        78.0
#define BOTTOM      46.0
#define LEAST_WIDTH 3.0

struct drawing {
    struct sv_picture *p;
    const struct sv_bars *b;
    size_t together; /* bars that are drawn as one */
    struct sv_axis y;
    double x0, pitch;
};

static double total_of(const struct sv_bars *b, size_t first, size_t n)
{
    double sum = 0;
    for (size_t i = first; i < first + n; i++)
        for (size_t k = 0; k < b->n_kinds; k++)
            sum += (double)b->bars[i].ns[k];
    return sum / (double)n;
}

static size_t count_of(const struct drawing *d, size_t i)
{
    size_t left = d->b->n - i;
    return left < d->together ? left : d->together;
}

static struct sv_ref title_of(struct drawing *d, size_t i, size_t n, size_t kind, double ns)
{
    struct sv_buf *t = &d->p->text;
    const struct sv_bars *b = d->b;
    double total = total_of(b, i, n);
    size_t at = t->len;
    sv_buf_printf(t, "%s %s", b->x_title, b->bars[i].label);
    if (n > 1)
        sv_buf_printf(t, " to %s (mean of %zu)", b->bars[i + n - 1].label, n);
    sv_buf_printf(t, "\n%s ", b->kinds[kind].name);
    sv_format_duration(t, ns);
    if (total > 0)
        sv_buf_printf(t, " (%.3g %%)", 100 * ns / total);
    sv_buf_str(t, "\nall ");
    sv_format_duration(t, total);
    return sv_picture_since(d->p, at);
}

static void draw_bar(struct drawing *d, size_t i, size_t slot)
{
    const struct sv_bars *b = d->b;
    size_t n = count_of(d, i);
    double gap = d->pitch > 8 ? d->pitch * 0.2 : d->pitch > 4 ? 1 : 0;
    double x = d->x0 + d->pitch * (double)slot + gap / 2, y = d->y.at0, mark = 0;
    for (size_t k = 0; k < b->n_kinds; k++) {
        double ns = 0;
        for (size_t j = i; j < i + n; j++)
            ns += (double)b->bars[j].ns[k] / (double)n;
        double height = d->y.at0 - sv_axis_place(&d->y, ns);
        if (height <= 0.05)
            continue;
        y -= height;
        sv_picture_add(d->p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                       .flags = d->pitch > 6 ? SV_MARK_EDGE : 0,
                                                       .x = x,
                                                       .y = y,
                                                       .w = d->pitch - gap,
                                                       .h = height,
                                                       .color = b->kinds[k].color,
                                                       .title = title_of(d, i, n, k, ns)});
    }
    for (size_t j = i; j < i + n; j++)
        mark += b->bars[j].mark_ns < 0 ? 0 : (double)b->bars[j].mark_ns / (double)n;
    if (b->mark_name && mark > 0) {
        double at = sv_axis_place(&d->y, mark);
        sv_picture_line(d->p, x, at, x + d->pitch - gap, at, 0x000000);
        d->p->marks[d->p->n - 1].stroke = 2;
    }
}

/* As many labels as fit; marked ones and the first of a group first. */
static void draw_labels(struct drawing *d)
{
    const struct sv_bars *b = d->b;
    double widest = 0, last = -1e9;
    for (size_t i = 0; i < b->n; i++)
        widest = fmax(widest, sv_text_width(b->bars[i].label, strlen(b->bars[i].label), 10));
    size_t every = (size_t)fmax(ceil((widest + 8) / d->pitch), 1);
    for (size_t i = 0, slot = 0; i < b->n; i += d->together, slot++) {
        double x = d->x0 + d->pitch * ((double)slot + 0.5);
        if (slot % every != 0 || x - last < widest)
            continue;
        last = x;
        sv_picture_label(d->p, x, d->y.at0 + 14, 10, SV_ANCHOR_MIDDLE,
                         b->bars[i].is_marked ? SV_MARK_BOLD : 0,
                         b->bars[i].is_marked ? SV_COLOR_WARN : SV_COLOR_DIM, 0,
                         sv_picture_printf(d->p, "%s", b->bars[i].label));
    }
}

static double draw_legend(struct drawing *d, double y)
{
    struct sv_legend items[SV_BAR_KINDS_MAX + 1];
    const struct sv_bars *b = d->b;
    size_t n = 0;
    for (size_t k = 0; k < b->n_kinds; k++) {
        bool occurs = false;
        for (size_t i = 0; i < b->n; i++)
            occurs |= b->bars[i].ns[k] > 0;
        if (occurs)
            items[n++] = (struct sv_legend){sv_picture_printf(d->p, "%s", b->kinds[k].name),
                                            b->kinds[k].color};
    }
    if (b->mark_name)
        items[n++] = (struct sv_legend){sv_picture_printf(d->p, "%s (line)", b->mark_name), 0};
    return sv_plot_frame_legend(d->p, SV_MARGIN, y, d->p->width - 2 * SV_MARGIN, items, n);
}

void sv_bars_draw(struct sv_picture *p, const struct sv_bars *b)
{
    struct drawing d = {.p = p, .b = b, .x0 = LEFT};
    double max_width = p->width - SV_MARGIN - LEFT, largest = 0;
    p->height = b->frame.height > 0 ? b->frame.height : 460;
    d.together = (size_t)fmax(ceil((double)b->n * LEAST_WIDTH / max_width), 1);
    size_t slots = (b->n + d.together - 1) / d.together;
    d.pitch = fmin(max_width / (double)slots, 150);
    double y = sv_plot_frame_head(p, &b->frame, sv_picture_printf(p, "%s", b->facts));
    double top = draw_legend(&d, y) + 6;
    for (size_t i = 0; i < b->n; i += d.together)
        largest = fmax(largest, fmax(total_of(b, i, count_of(&d, i)),
                                     b->mark_name ? (double)b->bars[i].mark_ns : 0));
    d.y = (struct sv_axis){.unit = SV_AXIS_TIME, .at0 = p->height - BOTTOM, .at1 = top};
    d.y.to = sv_axis_round_up(&d.y, largest);
    sv_axis_draw_y(p, &d.y, LEFT, p->width - SV_MARGIN);
    for (size_t i = 0, slot = 0; i < b->n; i += d.together, slot++) {
        if (b->bars[i].starts_group && slot)
            sv_picture_line(p, d.x0 + d.pitch * (double)slot, top, d.x0 + d.pitch * (double)slot,
                            d.y.at0 + 6, SV_COLOR_DIM);
        draw_bar(&d, i, slot);
    }
    struct sv_ref title = d.together > 1 ? sv_picture_printf(p, "%s (a bar is the mean of %zu)",
                                                             b->x_title, d.together)
                                         : sv_picture_printf(p, "%s", b->x_title);
    sv_picture_line(p, LEFT, d.y.at0, p->width - SV_MARGIN, d.y.at0, SV_COLOR_DIM);
    draw_labels(&d);
    sv_picture_label(p, LEFT + d.pitch * (double)slots / 2, p->height - 12, 11, SV_ANCHOR_MIDDLE, 0,
                     SV_COLOR_DIM, 0, title);
}

/* ---- the longest ---- */

struct bar_rank {
    size_t at;
    int64_t ns;
};

static int by_time(const void *a, const void *b)
{
    const struct bar_rank *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

size_t sv_bars_keep_top(struct sv_bar *bars, size_t n, size_t n_kinds, uint64_t top)
{
    if (top == 0 || top >= n)
        return n;
    struct bar_rank *ranks = sv_alloc((n + 1) * sizeof *ranks);
    bool *is_kept = sv_alloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        ranks[i].at = i;
        for (size_t k = 0; k < n_kinds; k++)
            ranks[i].ns += bars[i].ns[k];
    }
    qsort(ranks, n, sizeof *ranks, by_time);
    for (size_t i = 0; i < top; i++)
        is_kept[ranks[i].at] = true;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (is_kept[i])
            bars[kept++] = bars[i];
    free(ranks);
    free(is_kept);
    return kept;
}

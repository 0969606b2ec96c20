/* Counters as a picture. Called by the command plot.
 *
 * Values come from the layout: within a pixel the smallest, the largest and the last. A panel has
 * counters of one unit and one family: those of one owner (a CPU, a disk, a process), or the same
 * one of several processes. At most LINES_MAX of them, and none so small that it would be lost at
 * the bottom. */
#include "plot/counters.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "plot/colors.h"
#include "plot/counter_line.h"

#include <math.h>
#include <stdlib.h>

#define LEFT         88.0
#define PANEL_HEIGHT 170.0
#define PANEL_GAP    26.0
#define LINES_MAX    5u

struct series {
    sv_track track;
    size_t row; /* of the layout */
    double min, max;
    uint64_t family;
};

struct drawing {
    struct sv_picture *p;
    const struct sv_layout *l;
    const struct sv_counter_plot *o;
    struct series *series;
    size_t n;
    double right;
};

static void find_rows(struct drawing *d)
{
    const struct sv_layout_index *x = d->l->index;
    for (size_t i = 0; i < d->o->n; i++)
        for (size_t row = 0; row < x->rows->n; row++)
            if (x->rows->items[row].lines == 0 && x->rows->items[row].track == d->o->tracks[i] &&
                d->l->rows[row].n_points) {
                d->series[d->n++] = (struct series){.track = d->o->tracks[i],
                                                    .row = row,
                                                    .min = d->l->rows[row].min,
                                                    .max = d->l->rows[row].max};
                break;
            }
}

static sv_str unit_of(const struct drawing *d, size_t i)
{
    return d->l->trace->dict->tracks[d->series[i].track].unit;
}

/* The counter that several processes have is one family, all others are their owner's. */
static void find_families(struct drawing *d)
{
    const struct sv_track_info *tracks = d->l->trace->dict->tracks;
    struct sv_map owners = {0}; /* name → the first process that has it, or `several` */
    const uint64_t several = UINT32_MAX;
    for (size_t i = 0; i < d->n; i++) {
        sv_track parent = tracks[d->series[i].track].parent;
        if (!parent || tracks[parent].kind != SV_TRACK_PROCESS)
            continue;
        uint64_t *owner = sv_map_add(&owners, tracks[d->series[i].track].name, NULL);
        *owner = !*owner || *owner == parent ? parent : several;
    }
    for (size_t i = 0; i < d->n; i++) {
        sv_track parent = tracks[d->series[i].track].parent;
        sv_str name = tracks[d->series[i].track].name;
        const uint64_t *owner =
            parent && tracks[parent].kind == SV_TRACK_PROCESS ? sv_map_find(&owners, name) : NULL;
        d->series[i].family = owner && *owner == several ? UINT64_C(1) << 32 | name : parent;
    }
    sv_map_fini(&owners);
}

static double magnitude(const struct series *s)
{
    return fmax(fabs(s->min), fabs(s->max));
}

/* How many series from `first` on share a panel: of one unit and family, and none lost at the
 * bottom of it. */
static size_t panel_size(const struct drawing *d, size_t first)
{
    double low = magnitude(&d->series[first]), high = low;
    size_t n = 1;
    for (; first + n < d->n && n < LINES_MAX; n++) {
        double m = magnitude(&d->series[first + n]);
        low = fmin(low, m);
        high = fmax(high, m);
        if (unit_of(d, first + n) != unit_of(d, first) ||
            d->series[first + n].family != d->series[first].family || high > 20 * fmax(low, 1e-300))
            break;
    }
    return n;
}

/* Counters of one unit side by side, the rest as it was. */
static int by_unit(const void *a, const void *b, void *ctx)
{
    const struct drawing *d = ctx;
    const struct series *x = a, *y = b;
    sv_str u = d->l->trace->dict->tracks[x->track].unit,
           v = d->l->trace->dict->tracks[y->track].unit;
    if (u != v)
        return u < v ? -1 : 1;
    if (x->family != y->family)
        return x->family < y->family ? -1 : 1;
    double p = magnitude(x), q = magnitude(y);
    if (p != q)
        return p > q ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static struct sv_ref name_of(struct drawing *d, const struct series *s)
{
    const struct sv_dict *dict = d->l->trace->dict;
    struct sv_buf *b = &d->p->text;
    size_t at = b->len;
    sv_track process = sv_dict_process_of(dict, s->track);
    sv_track parent = dict->tracks[s->track].parent;
    if (parent && !process && !dict->tracks[parent].parent &&
        dict->tracks[parent].kind == SV_TRACK_CUSTOM) { /* "nice" alone says nothing */
        struct sv_text group = sv_dict_text(dict, dict->tracks[parent].name);
        sv_buf_add(b, group.bytes, group.len);
        sv_buf_str(b, " ");
    }
    sv_row_name(d->l->index->rows, s->row, b);
    for (size_t i = 0; i < d->n; i++)
        if (&d->series[i] != s && process &&
            dict->tracks[d->series[i].track].name == dict->tracks[s->track].name) {
            sv_buf_str(b, " \xc2\xb7 "); /* the same name elsewhere: add the owner */
            sv_group_name(dict, process, b);
            break;
        }
    return sv_picture_since(d->p, at);
}

static void draw_series(struct drawing *d, const struct series *s, const struct sv_axis *y,
                        uint32_t color)
{
    const struct sv_row *row = &d->l->rows[s->row];
    const struct sv_point *points = d->l->points + row->first_point;
    struct sv_ref name = name_of(d, s);
    sv_buf_printf(&d->p->text, "\n%.6g to %.6g", s->min, s->max);
    struct sv_ref title = sv_picture_since(d->p, name.at);
    sv_counter_line_draw(d->p, &(struct sv_counter_line){
                                   .points = points,
                                   .n = row->n_points,
                                   .left = LEFT,
                                   .right = d->right,
                                   .top = y->at1,
                                   .bottom = y->at0,
                                   .base = y->at0,
                                   .from = y->from,
                                   .scale = (y->at0 - y->at1) / (y->to - y->from),
                                   .color = color,
                                   .stroke = 1.4,
                                   .title = title,
                               });
}

static double draw_panel(struct drawing *d, size_t first, size_t n, double top, double height)
{
    struct sv_legend items[SV_N_COLORS];
    static const unsigned order[SV_N_COLORS] = {5, 6, 2, 1,
                                                4, 0, 3}; /* dark ones first: thin lines */
    double min = 0, max = 0;
    for (size_t i = 0; i < n; i++) {
        min = fmin(min, d->series[first + i].min);
        max = fmax(max, d->series[first + i].max);
        items[i] = (struct sv_legend){name_of(d, &d->series[first + i]), sv_palette[order[i]]};
    }
    double y0 = sv_plot_frame_legend(d->p, LEFT, top, d->right - LEFT, items, n) + 2;
    struct sv_axis y = {.from = min, .to = max, .at0 = y0 + height, .at1 = y0};
    sv_axis_of_unit(&y, sv_dict_text(d->l->trace->dict, unit_of(d, first)).bytes);
    double step = sv_axis_step(&y, 4);
    y.from = floor(min / step) * step;
    y.to = fmax(ceil(max / step) * step, y.from + step);
    sv_axis_draw_y(d->p, &y, LEFT, d->right);
    for (size_t i = 0; i < n; i++)
        draw_series(d, &d->series[first + i], &y, sv_palette[order[i]]);
    return y.at0;
}

static struct sv_ref facts(struct drawing *d)
{
    size_t at = d->p->text.len;
    sv_buf_printf(&d->p->text, "%zu counter%s \xc2\xb7 ", d->n, d->n == 1 ? "" : "s");
    sv_format_duration(&d->p->text, (double)d->l->to_ns - (double)d->l->from_ns);
    return sv_picture_since(d->p, at);
}

void sv_counters_draw(struct sv_picture *p, const struct sv_trace *t,
                      const struct sv_counter_plot *o)
{
    struct sv_layout l;
    struct sv_layout_index *index = sv_layout_index_new(t);
    struct drawing d = {.p = p, .l = &l, .o = o, .right = p->width - SV_MARGIN - 10};
    sv_layout_init(&l, index,
                   &(struct sv_layout_window){
                       .from_ns = o->from_ns, .to_ns = o->to_ns, .width = d.right - LEFT});
    d.series = sv_alloc((o->n + 1) * sizeof *d.series);
    find_rows(&d);
    find_families(&d);
    if (d.n)
        qsort_r(d.series, d.n, sizeof *d.series, by_unit, &d);
    size_t panels = 0;
    for (size_t i = 0; i < d.n; i += panel_size(&d, i))
        panels++;
    double y = sv_plot_frame_head(p, &o->frame, facts(&d)) + 4, top = y, height = PANEL_HEIGHT;
    if (o->frame.height > 0 && panels)
        height = fmax((o->frame.height - y - 40) / (double)panels - PANEL_GAP - 20, 40);
    struct sv_axis a = sv_plot_frame_time_axis(&o->frame, (double)l.from_ns - (double)t->first_ns,
                                               (double)l.to_ns - (double)t->first_ns, LEFT,
                                               d.right);
    size_t panels_at = p->n;
    for (size_t i = 0; i < d.n;) {
        size_t n = panel_size(&d, i);
        y = draw_panel(&d, i, n, y, height) + PANEL_GAP;
        i += n;
    }
    double bottom = y - PANEL_GAP;
    size_t ticks_at = p->n;
    sv_axis_draw_x(p, &a, top + 18, bottom, true, SV_MARK_TICK);
    sv_picture_move(p, ticks_at, panels_at);
    sv_plot_frame_zoom(p, &a, top + 18, bottom, bottom + 14);
    p->height = bottom + 24 + SV_MARGIN;
    free(d.series);
    sv_layout_fini(&l);
    sv_layout_index_free(index);
}

/* Arrows: from the end of a slice to the beginning of the one that its flow leads to. Called by the
 * time line after its rows. */
#include "plot/arrows.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <math.h>
#include <stdlib.h>

#define COLOR  0x555555u
#define POINTS 10
#define HEAD   5.0

struct end {
    const struct sv_row_member *member;
    uint32_t row; /* of the layout */
};

struct arrow {
    double x0, y0, x1, y1;
};

struct drawing {
    const struct sv_arrows *o;
    struct end *of_track; /* by track; member NULL: not drawn */
    struct sv_map seen;
    struct arrow *arrows;
    size_t n, n_all, cap;
};

static void find_ends(struct drawing *d)
{
    const struct sv_layout_index *x = d->o->layout->index;
    for (size_t row = 0; row < x->rows->n; row++)
        for (size_t m = 0; d->o->row_y[row] >= 0 && x->rows->items[row].lines &&
                           m < x->rows->items[row].n_members;
             m++) {
            const struct sv_row_member *member =
                &x->rows->members[x->rows->items[row].first_member + m];
            d->of_track[member->track] = (struct end){member, (uint32_t)row};
        }
}

static double y_of(const struct drawing *d, const struct end *e, uint32_t slice)
{
    uint32_t line = sv_layout_line(d->o->layout->index, e->member, slice);
    return d->o->row_y[e->row] + (line + 0.5) * d->o->line_height;
}

static void add_flow(struct drawing *d, uint32_t from, uint32_t to)
{
    const struct sv_layout *l = d->o->layout;
    const struct sv_trace *t = l->trace;
    const struct end *e = &d->of_track[t->slices.track[from]],
                     *f = &d->of_track[t->slices.track[to]];
    int64_t end = sv_trace_end_ns(t, from), begin = t->slices.ts_ns[to];
    end = end < begin ? end : begin;
    if (!e->member || !f->member || end < l->from_ns || begin >= l->to_ns)
        return;
    struct arrow a = {sv_layout_x(l, end), y_of(d, e, from), sv_layout_x(l, begin), y_of(d, f, to)};
    if (a.y0 == a.y1 && a.x1 - a.x0 < 2)
        return; /* from one slice to its neighbour: nothing to see */
    uint64_t key = sv_mix64((uint64_t)a.x0 << 32 | (uint64_t)a.y0) ^
                   ((uint64_t)a.x1 << 32 | (uint64_t)a.y1);
    bool is_new;
    sv_map_add(&d->seen, key, &is_new);
    if (!is_new)
        return;
    d->n_all++;
    if (d->n == d->o->max)
        return;
    SV_APPEND(d->arrows, d->n, d->cap) = a;
}

static void draw_arrow(struct sv_picture *p, const struct drawing *d, const struct arrow *a)
{
    double x0 = d->o->left + a->x0, x1 = d->o->left + a->x1, tip = x1 - HEAD * 0.6;
    double bend = fmax(fmin((x1 - x0) / 2, 60), 10);
    sv_picture_path(p, COLOR, 0.8, SV_MARK_ZOOM);
    for (int i = 0; i <= POINTS; i++) {
        double s = (double)i / POINTS, r = 1 - s;
        double b0 = r * r * r, b1 = 3 * r * r * s, b2 = 3 * r * s * s, b3 = s * s * s;
        sv_picture_point(p, b0 * x0 + b1 * (x0 + bend) + b2 * (tip - bend) + b3 * tip,
                         (b0 + b1) * a->y0 + (b2 + b3) * a->y1);
    }
    sv_picture_path(p, COLOR, 0, SV_MARK_ZOOM | SV_MARK_FILLED);
    sv_picture_point(p, x1, a->y1);
    sv_picture_point(p, x1 - HEAD, a->y1 - HEAD * 0.55);
    sv_picture_point(p, x1 - HEAD, a->y1 + HEAD * 0.55);
}

size_t sv_arrows_draw(struct sv_picture *p, const struct sv_arrows *o)
{
    const struct sv_trace *t = o->layout->trace;
    struct drawing d = {.o = o};
    d.of_track = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d.of_track);
    find_ends(&d);
    for (uint64_t i = 0; i < t->flows.n && d.n_all <= 100000; i++)
        add_flow(&d, t->flows.from[i], t->flows.to[i]);
    for (size_t i = 0; i < d.n && d.n_all <= o->max; i++)
        draw_arrow(p, &d, &d.arrows[i]);
    sv_map_fini(&d.seen);
    free(d.of_track);
    free(d.arrows);
    return d.n_all;
}

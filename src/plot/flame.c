/* The flame graph as a picture, callers on top. Called by the command plot.
 *
 * Calls come in the order of the tree, level by level; those narrower than half a pixel are drawn
 * together with the siblings after them, which are narrower still. */
#include "plot/flame.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "plot/colors.h"

#include <math.h>
#include <stdlib.h>

#define LINE_HEIGHT 17.0
#define LEAST_WIDTH 0.5
#define LEVELS_MAX  200u

struct box {
    uint32_t call;
    double x;
};

struct drawing {
    struct sv_picture *p;
    const struct sv_calltree *c;
    const struct sv_flame *o;
    struct sv_colors colors;
    size_t last;  /* the trace that gives the widths */
    double scale; /* pixels per ns */
    double top;
    struct box *level, *next; /* calls of this level and the one below */
    size_t n, n_next, cap, cap_next;
    bool is_cut; /* deeper than can be drawn */
};

/* log2 of the change per step, from -1 (half, or gone) to 1 (double, or new). */
static double change(const struct sv_calltree *c, const struct sv_call_node *x)
{
    double a = (double)x->total_ns[0] / (double)c->steps[0];
    double b = (double)x->total_ns[1] / (double)c->steps[1];
    if (a <= 0 || b <= 0)
        return a <= 0 && b <= 0 ? 0 : a <= 0 ? 1 : -1;
    return fmax(-1, fmin(1, log2(b / a)));
}

static uint32_t color_of(const struct drawing *d, const struct sv_call_node *x)
{
    if (d->c->n_traces == 2)
        return sv_color_diverging(change(d->c, x));
    if (d->c->of_samples && x->depth > 1) /* a frame of a sampled stack: the kernel's are grey */
        return x->len > 4 && memcmp(x->name + x->len - 4, "_[k]", 4) == 0
                   ? 0xb8bcc4
                   : sv_color_mix(sv_palette[sv_hash_bytes(x->name, x->len, 0) % SV_N_COLORS],
                                  0xffffff, 0.35);
    if (x->row[0] == SV_NO_ROW)
        return 0xd8d8dc;
    return sv_color_of(&d->colors, x->row[0]);
}

static void add_share(struct sv_buf *b, int64_t ns, int64_t of)
{
    sv_format_duration(b, (double)ns);
    if (of > 0)
        sv_buf_printf(b, " (%.3g %%)", 100.0 * (double)ns / (double)of);
}

static struct sv_ref title_of(struct drawing *d, const struct sv_call_node *x)
{
    const struct sv_calltree *c = d->c;
    struct sv_buf *b = &d->p->text;
    size_t at = b->len;
    sv_text_clean(b, x->name, x->len);
    if (x->len == 0)
        sv_buf_str(b, "(no name)");
    if (c->n_traces == 1) {
        sv_buf_str(b, "\ntotal ");
        add_share(b, x->total_ns[0], c->calls[0].total_ns[0]);
        sv_buf_str(b, "\nself ");
        add_share(b, x->self_ns[0], c->calls[0].total_ns[0]);
        sv_buf_str(b, "\ncalls ");
        sv_format_count(b, x->count[0]);
        return sv_picture_since(d->p, at);
    }
    double per_step[2];
    for (size_t k = 0; k < 2; k++) {
        per_step[k] = (double)x->total_ns[k] / (double)c->steps[k];
        sv_buf_printf(b, "\n%s: ", k ? "after" : "before");
        sv_format_duration(b, per_step[k]);
        sv_buf_str(b, c->steps[0] > 1 || c->steps[1] > 1 ? " per step, self " : ", self ");
        sv_format_duration(b, (double)x->self_ns[k] / (double)c->steps[k]);
        sv_buf_str(b, ", calls ");
        sv_format_count(b, x->count[k]);
    }
    if (per_step[0] > 0)
        sv_buf_printf(b, "\n%+.1f %%", 100 * (per_step[1] / per_step[0] - 1));
    else
        sv_buf_str(b, "\nnew");
    return sv_picture_since(d->p, at);
}

static void draw_call(struct drawing *d, uint32_t call, double x, double w)
{
    const struct sv_call_node *c = &d->c->calls[call];
    struct sv_picture_mark m = {.shape = SV_SHAPE_BOX,
                                .flags = SV_MARK_ZOOM | SV_MARK_EDGE,
                                .x = x,
                                .y = d->top + c->depth * LINE_HEIGHT,
                                .w = w,
                                .h = LINE_HEIGHT - 1,
                                .color = color_of(d, c)};
    m.title = title_of(d, c);
    if (w > 12)
        m.label = (struct sv_ref){m.title.at, strcspn((char *)d->p->text.data + m.title.at, "\n")};
    sv_picture_add(d->p, &m);
}

/* Siblings that are too narrow to see, as one. */
static void draw_rest(struct drawing *d, uint32_t depth, size_t n, int64_t ns, double x)
{
    struct sv_buf *b = &d->p->text;
    size_t at = b->len;
    if ((double)ns * d->scale < LEAST_WIDTH)
        return;
    sv_buf_printf(b, "%zu more\ntotal ", n);
    add_share(b, ns, d->c->calls[0].total_ns[d->last]);
    sv_picture_add(d->p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                   .flags = SV_MARK_ZOOM,
                                                   .x = x,
                                                   .y = d->top + depth * LINE_HEIGHT,
                                                   .w = (double)ns * d->scale,
                                                   .h = LINE_HEIGHT - 1,
                                                   .color = 0xc8c8cc,
                                                   .title = sv_picture_since(d->p, at)});
}

/* Stacks of imports and recursion are deep and rare: they would make the picture several times as
 * high. The calls below are one box ("3 more"). */
static bool is_in_tower(const struct drawing *d, const struct sv_call_node *parent, double w)
{
    enum { LEVELS = 60, WIDTH = 60 }; /* the width is in pixels */
    return d->c->of_samples && parent->depth > LEVELS && w < WIDTH;
}

static void draw_children(struct drawing *d, const struct box *box)
{
    const struct sv_call_node *parent = &d->c->calls[box->call];
    double x = box->x;
    for (uint32_t i = 0; i < parent->n_children; i++) {
        uint32_t child = d->c->order[parent->first_child + i];
        double w = (double)d->c->calls[child].total_ns[d->last] * d->scale;
        bool is_left_out = box->call == 0 && d->o->tracks_max && i >= d->o->tracks_max;
        if (w < LEAST_WIDTH || is_left_out || is_in_tower(d, parent, w)) {
            int64_t rest = 0;
            for (uint32_t j = i; j < parent->n_children; j++)
                rest += d->c->calls[d->c->order[parent->first_child + j]].total_ns[d->last];
            draw_rest(d, parent->depth + 1, parent->n_children - i, rest, x);
            return;
        }
        draw_call(d, child, x, w);
        SV_APPEND(d->next, d->n_next, d->cap_next) = (struct box){child, x};
        x += w;
    }
}

/* Level by level: returns how many were drawn. */
static uint32_t draw_levels(struct drawing *d, uint32_t levels_max)
{
    uint32_t levels = 1;
    d->level = sv_grow(d->level, &d->cap, 1, sizeof *d->level);
    d->level[d->n++] = (struct box){0, SV_MARGIN};
    draw_call(d, 0, SV_MARGIN, (double)d->c->calls[0].total_ns[d->last] * d->scale);
    while (d->n && levels < levels_max) {
        d->n_next = 0;
        for (size_t i = 0; i < d->n; i++)
            draw_children(d, &d->level[i]);
        struct box *level = d->level;
        size_t cap = d->cap;
        d->level = d->next, d->n = d->n_next, d->cap = d->cap_next;
        d->next = level, d->cap_next = cap;
        levels += d->n > 0;
    }
    for (size_t i = 0; i < d->n; i++)
        d->is_cut |= d->c->calls[d->level[i].call].n_children > 0;
    free(d->level);
    free(d->next);
    return levels;
}

/* ---- head ---- */

static struct sv_ref facts(struct drawing *d)
{
    const struct sv_calltree *c = d->c;
    struct sv_buf *b = &d->p->text;
    size_t at = b->len, gone = 0;
    int64_t gone_ns = 0;
    if (c->n_traces == 1) {
        sv_format_duration(b, (double)c->calls[0].total_ns[0]);
        sv_buf_str(b, " of all tracks together in ");
        sv_format_count(b, c->n - 1);
        sv_buf_str(b, " call paths");
    } else {
        for (size_t i = 1; i < c->n; i++)
            if (c->calls[i].total_ns[0] > 0 && c->calls[i].total_ns[1] == 0) {
                gone += c->calls[c->calls[i].parent].total_ns[1] > 0;
                gone_ns += c->calls[i].self_ns[0];
            }
        sv_format_duration(b, (double)c->calls[0].total_ns[0] / (double)c->steps[0]);
        sv_buf_str(b, " before, ");
        sv_format_duration(b, (double)c->calls[0].total_ns[1] / (double)c->steps[1]);
        sv_buf_printf(b, " after%s",
                      c->steps[0] > 1 || c->steps[1] > 1 ? " (per step, all tracks together)" : "");
        if (gone) {
            sv_buf_printf(b, "; gone: %zu call path%s with ", gone, gone == 1 ? "" : "s");
            sv_format_duration(b, (double)gone_ns / (double)c->steps[0]);
        }
    }
    if (c->is_cut)
        sv_buf_str(b, "; too many call paths: the rarest are counted for their callers");
    return sv_picture_since(d->p, at);
}

static double draw_scale(struct drawing *d, double y)
{
    double x = SV_MARGIN + 60;
    sv_picture_label(d->p, x - 6, y + 9, 10, SV_ANCHOR_END, 0, SV_COLOR_INK, 0,
                     sv_picture_printf(d->p, "half"));
    for (int i = -10; i <= 10; i++, x += 12)
        sv_picture_box(d->p, x, y, 12, 10, sv_color_diverging(i / 10.0));
    sv_picture_label(d->p, x + 6, y + 9, 10, SV_ANCHOR_START, 0, SV_COLOR_INK, 0,
                     sv_picture_printf(d->p, "double or new (total time; widths are those after)"));
    return y + 18;
}

static double draw_categories(struct drawing *d, double y)
{
    struct sv_legend items[SV_N_COLORS];
    const struct sv_colors *c = &d->colors;
    if (d->c->of_samples) /* coloured by name */
        return y;
    for (size_t i = 0; c->by_category && i < c->n_keys; i++) {
        struct sv_text text = sv_dict_text(d->o->trace->dict, c->keys[i]);
        items[i].text = sv_picture_text(d->p, text.bytes, text.len);
        items[i].color = sv_palette[i];
    }
    return sv_plot_frame_legend(d->p, SV_MARGIN, y, d->p->width - 2 * SV_MARGIN, items,
                                c->by_category ? c->n_keys : 0);
}

void sv_flame_draw(struct sv_picture *p, const struct sv_calltree *c, const struct sv_flame *o)
{
    struct drawing d = {.p = p, .c = c, .o = o, .last = c->n_traces - 1};
    double max_width = p->width - 2 * SV_MARGIN;
    uint32_t levels_max = LEVELS_MAX;
    sv_colors_init(&d.colors, o->trace, NULL);
    d.scale = max_width / fmax((double)c->calls[0].total_ns[d.last], 1);
    double y = sv_plot_frame_head(p, &o->frame, facts(&d));
    d.top = c->n_traces == 2 ? draw_scale(&d, y) : draw_categories(&d, y);
    if (o->frame.height > d.top + 2 * LINE_HEIGHT)
        levels_max = (uint32_t)((o->frame.height - d.top - SV_MARGIN) / LINE_HEIGHT);
    double bottom = d.top + draw_levels(&d, levels_max) * LINE_HEIGHT;
    if (d.is_cut)
        bottom = sv_plot_frame_warn(p, bottom, sv_picture_printf(p, "deeper calls are not drawn"));
    p->zoom = (struct sv_zoom_area){.x0 = SV_MARGIN,
                                    .x1 = SV_MARGIN + max_width,
                                    .top = d.top,
                                    .bottom = bottom,
                                    .is_on = true};
    p->height = bottom + SV_MARGIN;
    sv_colors_fini(&d.colors);
}

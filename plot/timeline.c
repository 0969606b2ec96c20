/* The time line as a picture: labels on the left, time axis on top, one band per row. Called by the command plot.
 *
 * All places come from the layout; here they get colours, labels and titles. Pixels side by side that are full of slices of one colour
 * become one box, so that a dense picture stays small. */
#include "plot/timeline.h"

#include "base/mem.h"
#include "plot/colors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define LABEL_WIDTH    200.0
#define LINE_HEIGHT    16.0
#define COUNTER_HEIGHT 34.0
#define ROW_GAP        5.0
#define HEAD_HEIGHT    18.0

struct drawing {
    struct sv_picture *p;
    const struct sv_layout *l;
    const struct sv_timeline *o;
    struct sv_colors colors;
    bool *is_drawn; /* by row of the layout */
    size_t n_drawn, n_left_out;
    double left; /* of the plot area */
};

/* ---- slices ---- */

static struct sv_ref title_of(struct drawing *d, const struct sv_rect *r, uint64_t n_slices)
{
    const struct sv_trace *t = d->l->trace;
    const struct sv_slices *c = &t->slices;
    struct sv_buf *b = &d->p->text;
    size_t at = b->len;
    struct sv_text name = sv_dict_text(t->dict, c->name[r->slice]);
    struct sv_text cat = sv_dict_text(t->dict, c->cat[r->slice]);
    sv_text_clean(b, name.bytes, name.len);
    if (name.len == 0)
        sv_buf_str(b, "(no name)");
    sv_buf_byte(b, '\n');
    if (c->kind[r->slice] == SV_INSTANT)
        sv_buf_str(b, "instant");
    else if (c->dur_ns[r->slice] == SV_UNFINISHED)
        sv_buf_str(b, "never ended");
    else
        sv_format_duration(b, (double)c->dur_ns[r->slice]);
    sv_buf_str(b, " at ");
    sv_format_duration(b, (double)c->ts_ns[r->slice] - (double)t->first_ns);
    if (cat.len) {
        sv_buf_str(b, "\ncategory ");
        sv_text_clean(b, cat.bytes, cat.len);
    }
    if (r->is_dense) {
        sv_buf_str(b, "\none of ");
        sv_format_count(b, n_slices);
        sv_buf_str(b, " slices here, narrower than a pixel");
    } else if (r->n_merged > 1) {
        sv_buf_printf(b, "\nthe longest of %u slices within a pixel", r->n_merged);
    }
    return sv_picture_since(d->p, at);
}

/* Dense pixels that touch and have the colour of the first: how many rectangles, how many slices. */
static size_t dense_run(struct drawing *d, const struct sv_rect *r, size_t n, uint64_t *n_slices,
                        double *x1)
{
    size_t last = 0;
    *n_slices = r[0].n_merged;
    *x1 = r[0].x1;
    for (size_t i = 1; r[0].is_dense && i < n && i - last <= SV_LINES_MAX; i++) {
        if (r[i].line != r[0].line)
            continue;
        if (!r[i].is_dense || r[i].x0 - *x1 > 1.01 ||
            sv_color_number(&d->colors, r[i].slice) != sv_color_number(&d->colors, r[0].slice))
            break;
        *n_slices += r[i].n_merged;
        *x1 = r[i].x1;
        last = i;
    }
    return last;
}

static void draw_rects(struct drawing *d, const struct sv_row *row, double top)
{
    const struct sv_rect *rects = d->l->rects + row->first_rect;
    const struct sv_slices *c = &d->l->trace->slices;
    size_t joined[SV_LINES_MAX] = {0}; /* rectangles before this one are part of a box already */
    for (size_t i = 0; i < row->n_rects; i++) {
        const struct sv_rect *r = &rects[i];
        uint64_t n_slices;
        double x1;
        if (i < joined[r->line])
            continue;
        joined[r->line] = i + dense_run(d, r, row->n_rects - i, &n_slices, &x1) + 1;
        double w = fmax(x1 - r->x0, 0.7);
        struct sv_mark m = {.shape = SV_SHAPE_BOX,
                            .flags = SV_MARK_ZOOM | SV_MARK_EDGE,
                            .x = d->left + r->x0,
                            .y = top + r->line * LINE_HEIGHT,
                            .w = w,
                            .h = LINE_HEIGHT - 1,
                            .color = sv_color_of(&d->colors, r->slice)};
        m.title = title_of(d, r, n_slices);
        if (r->n_merged == 1 && w > 12)
            m.label = (struct sv_ref){m.title.at,
                                      sv_dict_text(d->l->trace->dict, c->name[r->slice]).len
                                          ? strcspn((char *)d->p->text.data + m.title.at, "\n")
                                          : 0};
        sv_picture_add(d->p, &m);
    }
}

/* ---- counters ---- */

static void draw_counter(struct drawing *d, const struct sv_row *row, double top)
{
    const struct sv_point *points = d->l->points + row->first_point;
    double range = row->max - row->min, floor_y = top + COUNTER_HEIGHT - 2;
    if (row->n_points == 0)
        return;
    double y = 0, scale = range > 0 ? (COUNTER_HEIGHT - 6) / range : 0;
    struct sv_ref title = sv_picture_printf(d->p, "%.6g to %.6g", row->min, row->max);
    sv_picture_path(d->p, sv_palette[5], 1, SV_MARK_ZOOM)->title = title;
    for (size_t i = 0; i < row->n_points; i++) {
        double x = d->left + points[i].x;
        double middle = range > 0 ? 0 : (COUNTER_HEIGHT - 6) / 2;
        if (i)
            sv_picture_point(d->p, x, y);
        if (points[i].max > points[i].min) {
            sv_picture_point(d->p, x, floor_y - (points[i].max - row->min) * scale);
            sv_picture_point(d->p, x, floor_y - (points[i].min - row->min) * scale);
        }
        y = floor_y - (points[i].value - row->min) * scale - middle;
        sv_picture_point(d->p, x, y);
    }
    sv_picture_point(d->p, d->left + d->l->width, y);
}

/* ---- rows ---- */

static double row_height(const struct sv_row_info *info)
{
    return (info->lines ? info->lines * LINE_HEIGHT : COUNTER_HEIGHT) + ROW_GAP;
}

static bool is_empty(const struct sv_row *row)
{
    return row->n_rects == 0 && row->n_points == 0;
}

struct ranked {
    size_t row;
    double weight;
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* How many pixels are covered: what the eye sees of a row. */
static double weight_of(const struct sv_layout *l, const struct sv_row *row)
{
    double sum = (double)row->n_points;
    for (size_t i = 0; i < row->n_rects; i++)
        sum += fmax(l->rects[row->first_rect + i].x1 - l->rects[row->first_rect + i].x0, 0.7);
    return sum;
}

static void choose_rows(struct drawing *d)
{
    const struct sv_layout *l = d->l;
    struct ranked *rows = sv_alloc((l->n_rows + 1) * sizeof *rows);
    size_t n = 0;
    for (size_t i = 0; i < l->n_rows; i++)
        if (!is_empty(&l->rows[i]))
            rows[n++] = (struct ranked){i, d->o->only_busiest ? weight_of(l, &l->rows[i]) : 0};
    if (n)
        qsort(rows, n, sizeof *rows, by_weight);
    double height = 0;
    for (size_t i = 0; i < n; i++) {
        height += row_height(&l->index->rows[rows[i].row]);
        bool fits = d->o->frame.height <= 0 || d->n_drawn == 0 ||
                    height <= d->o->frame.height - 100;
        if (d->n_drawn < d->o->rows_max && fits) {
            d->is_drawn[rows[i].row] = true;
            d->n_drawn++;
        } else {
            d->n_left_out++;
        }
    }
    free(rows);
}

static void draw_process(struct drawing *d, sv_track process, double y)
{
    struct sv_picture *p = d->p;
    size_t at = p->text.len;
    sv_process_name(d->l->trace->dict, process, &p->text);
    sv_picture_box(p, 0, y, p->width, HEAD_HEIGHT - 3, 0xececee);
    sv_picture_label(p, SV_MARGIN, y + 11, 10, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK,
                     p->width - 2 * SV_MARGIN, sv_picture_since(p, at));
}

static void draw_label(struct drawing *d, size_t i, double y)
{
    struct sv_picture *p = d->p;
    const struct sv_row *row = &d->l->rows[i];
    size_t at = p->text.len;
    sv_row_name(d->l->index, i, &p->text);
    sv_picture_label(p, d->left - 8, y + 11, 10, SV_ANCHOR_END, 0, SV_COLOR_INK, LABEL_WIDTH - 12,
                     sv_picture_since(p, at));
    p->marks[p->n - 1].title = sv_picture_since(p, at);
    if (row->n_points) {
        struct sv_axis value = {.from = row->min, .to = row->max, .unit = SV_AXIS_COUNT};
        at = p->text.len;
        sv_axis_format(&p->text, &value, row->min, 0);
        sv_buf_str(&p->text, " \xe2\x80\xa6 ");
        sv_axis_format(&p->text, &value, row->max, 0);
        sv_picture_label(p, d->left - 8, y + 24, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM,
                         LABEL_WIDTH - 12, sv_picture_since(p, at));
    }
}

static double draw_rows(struct drawing *d, double y)
{
    const struct sv_layout_index *x = d->l->index;
    sv_track process = UINT32_MAX;
    for (size_t i = 0; i < d->l->n_rows; i++) {
        if (!d->is_drawn[i])
            continue;
        if (x->rows[i].process != process) {
            process = x->rows[i].process;
            draw_process(d, process, y);
            y += HEAD_HEIGHT;
        }
        draw_label(d, i, y);
        if (x->rows[i].lines)
            draw_rects(d, &d->l->rows[i], y);
        else
            draw_counter(d, &d->l->rows[i], y);
        y += row_height(&x->rows[i]);
    }
    return y;
}

static double rows_bottom(const struct drawing *d, double y)
{
    const struct sv_layout_index *x = d->l->index;
    sv_track process = UINT32_MAX;
    for (size_t i = 0; i < d->l->n_rows; i++) {
        if (!d->is_drawn[i])
            continue;
        y += row_height(&x->rows[i]) + (x->rows[i].process != process ? HEAD_HEIGHT : 0);
        process = x->rows[i].process;
    }
    return y;
}

/* ---- head ---- */

static struct sv_ref facts(struct drawing *d)
{
    const struct sv_trace *t = d->l->trace;
    struct sv_buf *b = &d->p->text;
    size_t at = b->len;
    sv_format_duration(b, (double)d->l->to_ns - (double)d->l->from_ns);
    if (d->l->from_ns > t->first_ns || d->l->to_ns < t->last_ns) {
        sv_buf_str(b, " of ");
        sv_format_duration(b, (double)t->last_ns - (double)t->first_ns);
    }
    sv_buf_str(b, " \xc2\xb7 ");
    sv_format_count(b, t->slices.n);
    sv_buf_str(b, " slices in the trace");
    if (d->n_left_out)
        sv_buf_printf(b, " \xc2\xb7 %zu more row%s (--rows)", d->n_left_out,
                      d->n_left_out == 1 ? "" : "s");
    return sv_picture_since(d->p, at);
}

static double draw_legend(struct drawing *d, double y)
{
    const struct sv_colors *c = &d->colors;
    struct sv_legend items[SV_N_COLORS + 1];
    size_t n = 0;
    if (!c->by_category)
        return y;
    for (; n < c->n_categories; n++) {
        struct sv_text text = sv_dict_text(d->l->trace->dict, c->categories[n]);
        items[n].text = sv_picture_text(d->p, text.bytes, text.len);
        items[n].color = sv_palette[n];
    }
    if (c->has_others) {
        items[n].text = sv_picture_printf(d->p, "other categories");
        items[n++].color = SV_COLOR_GREY;
    }
    return sv_frame_legend(d->p, SV_MARGIN, y, d->p->width - 2 * SV_MARGIN, items, n);
}

static double draw_losses(struct drawing *d, double y)
{
    const struct sv_losses *x = &d->l->trace->losses;
    uint64_t n = 0;
    for (uint64_t i = 0; i < x->n; i++)
        n += x->count[i];
    if (x->n == 0)
        return y;
    size_t at = d->p->text.len;
    if (n)
        sv_format_count(&d->p->text, n);
    else
        sv_buf_str(&d->p->text, "an unknown number of");
    sv_buf_printf(&d->p->text, " events were lost, at %" PRIu64 " places", x->n);
    return sv_frame_warn(d->p, y, sv_picture_since(d->p, at));
}

size_t sv_timeline_draw(struct sv_picture *p, const struct sv_trace *t, const struct sv_timeline *o)
{
    struct sv_layout l;
    struct sv_layout_index *index = sv_layout_index_new(t);
    struct drawing d = {.p = p, .l = &l, .o = o, .left = SV_MARGIN + LABEL_WIDTH};
    double right = p->width - SV_MARGIN;
    sv_colors_init(&d.colors, t);
    sv_layout_init(&l, index,
                   &(struct sv_layout_window){.from_ns = o->from_ns,
                                              .to_ns = o->to_ns,
                                              .width = fmax(right - d.left, 50)});
    d.is_drawn = sv_alloc(l.n_rows + 1);
    choose_rows(&d);
    double y = sv_frame_head(p, &o->frame, facts(&d));
    y = draw_losses(&d, y);
    y = draw_legend(&d, y) + 16;
    double bottom = rows_bottom(&d, y) + 2;
    struct sv_axis a = sv_frame_time_axis(&o->frame, (double)l.from_ns - (double)t->first_ns,
                                          (double)l.to_ns - (double)t->first_ns, d.left,
                                          d.left + l.width);
    sv_axis_draw_x(p, &a, y, bottom, false, SV_MARK_TICK);
    sv_frame_zoom(p, &a, y, bottom, y - 4);
    draw_rows(&d, y + 2);
    p->height = bottom + SV_MARGIN;
    free(d.is_drawn);
    sv_colors_fini(&d.colors);
    sv_layout_fini(&l);
    sv_layout_index_free(index);
    return d.n_drawn;
}

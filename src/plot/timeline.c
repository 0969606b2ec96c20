/* The time line as a picture: labels on the left, time axis on top, the machine's bands, then one
 * band per track. Called by the command plot.
 *
 * All places come from the layout and the bands; here they get colours, labels and titles. Pixels
 * that many slices share are shaded by how much of them is covered; those side by side that look
 * alike become one box, so that a dense picture stays small. */
#include "plot/timeline.h"

#include "core/base/mem.h"
#include "plot/activity.h"
#include "plot/arrows.h"
#include "plot/colors.h"
#include "plot/counter_line.h"
#include "plot/crowds.h"
#include "plot/row_order.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_WIDTH    200.0
#define LINE_HEIGHT    16.0
#define COUNTER_HEIGHT 34.0
#define ROW_GAP        5.0
#define HEAD_HEIGHT    18.0
#define BAND_GAP       8.0
#define RIGHT_AXIS     52.0
#define ROWS_DEFAULT   200u
#define LABELS_ENOUGH  500u
#define APP_DEFAULT    24u /* rows of tracks below the machine's bands */

struct drawing {
    struct sv_picture *p;
    const struct sv_layout *l;
    const struct sv_plot_timeline *o;
    struct sv_colors colors;
    bool *is_wanted, *is_drawn; /* by row of the layout; a crowd is drawn for its first row */
    struct sv_crowds crowds;
    struct sv_row_order all;             /* all rows, from top to bottom */
    size_t *order;                       /* those that are drawn */
    size_t n_drawn, n_left_out, n_quiet; /* n_quiet: processes that do next to nothing */
    double *row_y;                       /* of those that are drawn; else negative */
    double left;                         /* of the plot area */
    unsigned rows; /* enum sv_timeline_rows, enum sv_bands_what: what is shown */
    struct sv_bands bands;
    bool *is_machine; /* by string: a category of the machine's, which bands show */
    bool *is_app; /* by track: it has slices of other categories, or values of the application */
    size_t n_arrows;
    struct sv_activity activity;
    bool is_cropped;
};

/* ---- which tracks are the application's ---- */

static void find_machine_categories(struct drawing *d, const struct sv_dict *dict)
{
    static const char *const names[] = {SV_CAT_SYSCALL,
                                        SV_CAT_BLOCK,
                                        SV_CAT_PAGE_CACHE,
                                        SV_CAT_PAGE_CREATED,
                                        SV_CAT_FAULT,
                                        SV_CAT_PROCESS,
                                        SV_CAT_SCHED,
                                        SV_CAT_THREAD_STATE,
                                        "vfs",
                                        "clock",
                                        SV_CAT_CPU_SAMPLE,
                                        SV_CAT_OFFCPU_SAMPLE,
                                        SV_CAT_CPU_RIVAL,
                                        SV_CAT_SCHEDSTAT};
    d->is_machine = sv_alloc((size_t)dict->n_strings + 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        d->is_machine[sv_dict_find_str(dict, names[i], strlen(names[i]))] = true;
    d->is_machine[0] = false;
}

/* Counters of the recorder's: below a group of the machine, or of a process by these names. */
static bool is_app_counter(const struct sv_dict *d, sv_track track)
{
    static const char *const groups[] = {"CPU", "Disks", "Memory", "Network", "Lost"};
    const char *name = sv_dict_text(d, d->tracks[track].name).bytes;
    sv_track top = track;
    for (unsigned up = 0; up < 64 && d->tracks[top].parent; up++) {
        top = d->tracks[top].parent;
        if (d->tracks[top].kind == SV_TRACK_GPU ||
            strncmp(sv_dict_text(d, d->tracks[top].name).bytes, "GPU ", 4) == 0)
            return false;
    }
    if (d->tracks[d->tracks[track].parent].kind == SV_TRACK_PROCESS)
        return strcmp(name, "cpu") != 0 && strncmp(name, "memory", 6) != 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strcmp(sv_dict_text(d, d->tracks[top].name).bytes, groups[i]) == 0)
            return false;
    return true;
}

static void find_app(struct drawing *d, const struct sv_trace *t)
{
    d->is_app = sv_alloc((size_t)t->n_tracks + 1);
    for (sv_track k = 1; k < t->n_tracks; k++) {
        uint32_t row = t->tracks[k].first;
        while (row < t->tracks[k].end && d->is_machine[t->slices.cat[row]])
            row++;
        d->is_app[k] = row < t->tracks[k].end;
    }
}

static bool is_shown(const struct drawing *d, size_t i)
{
    const struct sv_row_info *info = &d->l->index->rows->items[i];
    if (d->rows & SV_ROWS_TRACKS)
        return true;
    if (!(d->rows & SV_ROWS_APP))
        return false;
    if (info->lines == 0)
        return is_app_counter(d->l->trace->dict, info->track);
    for (size_t m = 0; m < info->n_members; m++)
        if (d->is_app[d->l->index->rows->members[info->first_member + m].track])
            return true;
    return false;
}

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
    if (n_slices > 1) {
        sv_buf_str(b, "\nthe longest of ");
        sv_format_count(b, n_slices);
        sv_buf_str(b, " slices that begin here");
    }
    return sv_picture_since(d->p, at);
}

#define TINT_PIXELS \
    8.0 /* where no slice is large enough to be seen, one colour is enough for so many pixels */

/* Pixels side by side that look alike, as one rectangle. */
struct run {
    struct sv_rect rect; /* slice: the longest of all */
    size_t n;            /* rectangles of the layout */
    uint64_t n_slices;
    unsigned calm, shade;
};

static unsigned calm_of(const struct drawing *d, const struct sv_rect *r)
{
    double pixel_ns = ((double)d->l->to_ns - (double)d->l->from_ns) / d->l->width;
    return sv_color_calm(r->n_merged, (uint64_t)d->l->trace->slices.dur_ns[r->slice], pixel_ns);
}

static bool continues(const struct drawing *d, const struct run *run, const struct sv_rect *r)
{
    if (r->line != run->rect.line || r->n_merged == 1 || r->x0 - run->rect.x1 > 0.01 ||
        calm_of(d, r) != run->calm || sv_color_shade(r->cover) != run->shade)
        return false;
    return sv_color_number(&d->colors, r->slice) == sv_color_number(&d->colors, run->rect.slice) ||
           (run->calm > 0 && r->x1 - run->rect.x0 <= TINT_PIXELS);
}

static struct run find_run(const struct drawing *d, const struct sv_rect *rects, size_t n)
{
    const uint64_t *dur = (const uint64_t *)d->l->trace->slices.dur_ns;
    struct run run = {.rect = rects[0], .n = 1, .n_slices = rects[0].n_merged};
    if (rects[0].n_merged == 1)
        return run;
    run.calm = calm_of(d, &rects[0]);
    run.shade = sv_color_shade(rects[0].cover);
    for (; run.n < n && continues(d, &run, &rects[run.n]); run.n++) {
        const struct sv_rect *r = &rects[run.n];
        run.rect.x1 = r->x1;
        run.n_slices += r->n_merged;
        if (dur[r->slice] > dur[run.rect.slice])
            run.rect.slice = r->slice;
    }
    return run;
}

static void draw_run(struct drawing *d, const struct run *run, double top)
{
    const struct sv_rect *r = &run->rect;
    double w = fmax(r->x1 - r->x0, 0.7);
    bool is_one = run->n_slices == 1;
    struct sv_picture_mark m = {.shape = SV_SHAPE_BOX,
                                .flags = SV_MARK_ZOOM | (is_one ? SV_MARK_EDGE : 0),
                                .x = d->left + r->x0,
                                .y = top + r->line * LINE_HEIGHT,
                                .w = w,
                                .h = LINE_HEIGHT - 1,
                                .color = sv_color_toned(sv_color_of(&d->colors, r->slice),
                                                        run->calm,
                                                        is_one ? SV_SHADES - 1 : run->shade)};
    m.title = title_of(d, r, run->n_slices);
    if (is_one && w > 12)
        m.label = (struct sv_ref){
            m.title.at, sv_dict_text(d->l->trace->dict, d->l->trace->slices.name[r->slice]).len
                            ? strcspn((char *)d->p->text.data + m.title.at, "\n")
                            : 0};
    sv_picture_add(d->p, &m);
}

static void draw_rects(struct drawing *d, const struct sv_row *row, double top)
{
    const struct sv_rect *rects = d->l->rects + row->first_rect;
    for (size_t i = 0; i < row->n_rects;) {
        struct run run = find_run(d, rects + i, row->n_rects - i);
        draw_run(d, &run, top);
        i += run.n;
    }
}

/* ---- counters ---- */

static void draw_counter(struct drawing *d, const struct sv_row *row, double top)
{
    const struct sv_point *points = d->l->points + row->first_point;
    double range = row->max - row->min, floor_y = top + COUNTER_HEIGHT - 2;
    if (row->n_points == 0)
        return;
    double middle = range > 0 ? 0 : (COUNTER_HEIGHT - 6) / 2;
    sv_counter_line_draw(d->p,
                         &(struct sv_counter_line){
                             .points = points,
                             .n = row->n_points,
                             .left = d->left,
                             .right = d->left + d->l->width,
                             .top = top + 2,
                             .bottom = floor_y,
                             .base = floor_y - middle,
                             .from = row->min,
                             .scale = range > 0 ? (COUNTER_HEIGHT - 6) / range : 0,
                             .color = sv_palette[5],
                             .stroke = 1,
                             .title = sv_picture_printf(d->p, "%.6g to %.6g", row->min, row->max),
                         });
}

/* ---- bands ---- */

static bool begins_io(const struct drawing *d, size_t i)
{
    const struct sv_band *b = d->bands.bands;
    return b[i].kind == SV_BAND_LANES && (i == 0 || b[i - 1].kind != SV_BAND_LANES);
}

static double bands_height(const struct drawing *d)
{
    double height = 0;
    for (size_t i = 0; i < d->bands.n; i++)
        height += sv_band_height(&d->bands.bands[i]) + BAND_GAP +
                  (begins_io(d, i) ? HEAD_HEIGHT : 0);
    return height;
}

/* The heading of the lanes is their legend, too. */
static void draw_io_heading(struct drawing *d, double y)
{
    const struct sv_band_part *of_kind[SV_BAND_PARTS_MAX] = {0};
    struct sv_legend items[SV_BAND_PARTS_MAX];
    size_t n = 0;
    double width = 0;
    for (size_t i = 0; i < d->bands.n; i++)
        for (size_t k = 0; d->bands.bands[i].kind == SV_BAND_LANES && k < d->bands.bands[i].n; k++)
            of_kind[d->bands.bands[i].parts[k].order] = &d->bands.bands[i].parts[k];
    for (size_t i = 0; i < SV_BAND_PARTS_MAX; i++) {
        if (!of_kind[i])
            continue;
        items[n++] =
            (struct sv_legend){sv_picture_printf(d->p, "%s", of_kind[i]->name), of_kind[i]->color};
        width += sv_text_width(of_kind[i]->name, strlen(of_kind[i]->name), 10) + 32;
    }
    sv_picture_box(d->p, 0, y, d->p->width, HEAD_HEIGHT - 3, 0xececee);
    sv_picture_label(d->p, SV_MARGIN, y + 11, 10, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK,
                     LABEL_WIDTH, sv_picture_printf(d->p, "files and devices"));
    sv_plot_frame_legend(d->p, d->left, y + 2.5, d->p->width, items, n);
    if (d->left + width + 180 > d->p->width)
        return;
    sv_picture_label(d->p, d->p->width - SV_MARGIN, y + 11, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                     sv_picture_printf(d->p, "darker: larger share of the time"));
}

static double draw_bands(struct drawing *d, double y)
{
    for (size_t i = 0; i < d->bands.n; i++) {
        if (begins_io(d, i)) {
            draw_io_heading(d, y);
            y += HEAD_HEIGHT;
        }
        sv_band_draw(d->p, &d->bands.bands[i], &d->bands.bins, SV_MARGIN, d->left,
                     d->left + d->l->width, y);
        y += sv_band_height(&d->bands.bands[i]) + BAND_GAP;
    }
    return y;
}

/* ---- rows ---- */

/* The crowd that a row belongs to; NULL: it is drawn by itself. */
static const struct sv_crowd *crowd_of(const struct drawing *d, size_t row)
{
    uint32_t number = d->crowds.of_row[row];
    return number ? &d->crowds.items[number - 1] : NULL;
}

static double row_height(const struct drawing *d, size_t row)
{
    const struct sv_row_info *info = &d->l->index->rows->items[row];
    bool is_lines = info->lines && !crowd_of(d, row);
    return (is_lines ? sv_layout_lines(info) * LINE_HEIGHT : COUNTER_HEIGHT) + ROW_GAP;
}

static bool is_empty(const struct sv_row *row)
{
    return row->n_rects == 0 && row->n_points == 0;
}

struct ranked {
    size_t row, place;
    double weight;
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* How many pixels are covered: what the eye sees of a row. */
static double weight_of(const struct sv_layout *l, const struct sv_row *row)
{
    double sum = (double)row->n_points;
    for (size_t i = 0; i < row->n_rects; i++)
        sum += fmax(l->rects[row->first_rect + i].x1 - l->rects[row->first_rect + i].x0, 0.7);
    return sum;
}

static size_t rows_max(const struct drawing *d)
{
    return d->o->rows_max ? d->o->rows_max : d->bands.n ? APP_DEFAULT : ROWS_DEFAULT;
}

/* A crowd is one row, where its first one is. */
static size_t rank_rows(struct drawing *d, struct ranked *rows)
{
    const struct sv_layout *l = d->l;
    size_t n = 0;
    sv_track quiet = 0;
    for (size_t i = 0; i < l->n_rows; i++) {
        sv_track group = l->index->rows->items[i].group;
        d->is_wanted[i] = !is_empty(&l->rows[i]) && is_shown(d, i);
        if (d->all.gather[i] != SV_GATHER_OTHER || !d->is_wanted[i])
            continue;
        d->is_wanted[i] = false;
        d->n_quiet += group != quiet;
        quiet = group;
    }
    sv_crowds_find(&d->crowds, l, d->is_wanted);
    for (size_t place = 0; place < l->n_rows; place++) {
        size_t i = d->all.rows[place];
        const struct sv_crowd *c = crowd_of(d, i);
        if (d->is_wanted[i] && (!c || c->first_row == i))
            rows[n++] =
                (struct ranked){i, place, d->o->only_busiest ? weight_of(l, &l->rows[i]) : 0};
    }
    if (n)
        qsort(rows, n, sizeof *rows, by_weight);
    return n;
}

static void choose_rows(struct drawing *d)
{
    const struct sv_layout *l = d->l;
    struct ranked *rows = sv_alloc((l->n_rows + 1) * sizeof *rows);
    size_t n = rank_rows(d, rows);
    double height = bands_height(d);
    for (size_t i = 0; i < n; i++) {
        height += row_height(d, rows[i].row);
        bool fits = d->o->frame.height <= 0 || d->n_drawn == 0 ||
                    height <= d->o->frame.height - 100;
        if (d->n_drawn < rows_max(d) && fits) {
            d->is_drawn[rows[i].row] = true;
            d->n_drawn++;
        } else {
            d->n_left_out++;
        }
    }
    free(rows);
}

/* In each group the crowds come last: what is seen one by one says more. */
static void order_rows(struct drawing *d)
{
    const struct sv_row_info *info = d->l->index->rows->items;
    const uint32_t *rows = d->all.rows;
    size_t n = 0;
    for (size_t from = 0, to; from < d->l->n_rows; from = to) {
        for (to = from; to < d->l->n_rows && info[rows[to]].group == info[rows[from]].group; to++)
            if (d->is_drawn[rows[to]] && !crowd_of(d, rows[to]))
                d->order[n++] = rows[to];
        for (size_t i = from; i < to; i++)
            if (d->is_drawn[rows[i]] && crowd_of(d, rows[i]))
                d->order[n++] = rows[i];
    }
}

/* Rows from top to bottom, and the processes that are not drawn because they do next to nothing. */
static void find_order(struct drawing *d)
{
    const struct sv_layout_index *x = d->l->index;
    uint32_t first[SV_FIRST_ROWS];
    size_t n = d->o->first_rows ? d->o->first_rows(d->o->order, x->rows, first) : 0;
    sv_row_order_make(&d->all, x->rows, x->strips, first, n);
}

static void draw_group(struct drawing *d, sv_track group, double y)
{
    struct sv_picture *p = d->p;
    size_t at = p->text.len;
    sv_group_name(d->l->trace->dict, group, &p->text);
    sv_picture_box(p, 0, y, p->width, HEAD_HEIGHT - 3, 0xececee);
    sv_picture_label(p, SV_MARGIN, y + 11, 10, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK,
                     p->width - 2 * SV_MARGIN, sv_picture_since(p, at));
}

/* Four digits are enough to read. */
static double rounded(double v)
{
    if (v == 0 || !isfinite(v))
        return v;
    double step = pow(10, floor(log10(fabs(v))) - 3);
    return fabs(v) >= 1000 || step == 0 ? v : round(v / step) * step;
}

static void draw_label(struct drawing *d, size_t i, double y)
{
    struct sv_picture *p = d->p;
    const struct sv_row *row = &d->l->rows[i];
    size_t at = p->text.len;
    sv_row_name(d->l->index->rows, i, &p->text);
    sv_picture_label(p, d->left - 8, y + 11, 10, SV_ANCHOR_END, 0,
                     d->l->index->rows->items[i].depth ? SV_COLOR_DIM : SV_COLOR_INK,
                     LABEL_WIDTH - 12, sv_picture_since(p, at));
    p->marks[p->n - 1].title = sv_picture_since(p, at);
    if (row->n_points) {
        const struct sv_dict *dict = d->l->trace->dict;
        struct sv_axis value = {.from = row->min, .to = row->max};
        sv_axis_of_unit(
            &value, sv_dict_text(dict, dict->tracks[d->l->index->rows->items[i].track].unit).bytes);
        at = p->text.len;
        if (row->min < row->max) {
            struct sv_axis bare = value; /* in the same unit, whose name follows */
            bare.suffix = value.suffix ? "" : NULL;
            sv_axis_format(&p->text, &bare, rounded(row->min), 0);
            bool has_blank = p->text.data[p->text.len - 1] == ' ';
            sv_buf_str(&p->text, has_blank ? "\xe2\x80\xa6 " : " \xe2\x80\xa6 ");
        }
        sv_axis_format(&p->text, &value, rounded(row->max), 0);
        sv_picture_label(p, d->left - 8, y + 24, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM,
                         LABEL_WIDTH - 12, sv_picture_since(p, at));
    }
}

/* ---- crowds ---- */

static void label_crowd(struct drawing *d, const struct sv_crowd *c, double y)
{
    struct sv_picture *p = d->p;
    size_t at = p->text.len;
    sv_text_clean(&p->text, (const char *)c->name.data, c->name.len);
    if (c->n_rows > 1)
        sv_buf_printf(&p->text, " (%zu rows)", c->n_rows);
    sv_picture_label(p, d->left - 8, y + 11, 10, SV_ANCHOR_END, 0, SV_COLOR_INK, LABEL_WIDTH - 12,
                     sv_picture_since(p, at));
    sv_picture_label(p, d->left - 8, y + 24, 9, SV_ANCHOR_END, 0, SV_COLOR_DIM, LABEL_WIDTH - 12,
                     sv_picture_printf(p, "up to %.3g at once", c->most));
}

/* Pixels side by side that are equally high are one box. */
static void draw_crowd(struct drawing *d, const struct sv_crowd *c, double top)
{
    size_t width = (size_t)d->l->width;
    double scale = c->most > 0 ? (COUNTER_HEIGHT - 4) / c->most : 0;
    double floor_y = top + COUNTER_HEIGHT - 1;
    label_crowd(d, c, top);
    for (size_t x = 0, end; x < width; x = end) {
        double h = round((double)c->at_once[x] * scale * 2) / 2;
        for (end = x + 1; end < width && round((double)c->at_once[end] * scale * 2) / 2 == h;)
            end++;
        if (!(c->at_once[x] > 0))
            continue;
        h = fmax(h, 0.5);
        struct sv_picture_mark m = {.shape = SV_SHAPE_BOX,
                                    .flags = SV_MARK_ZOOM,
                                    .x = d->left + (double)x,
                                    .y = floor_y - h,
                                    .w = (double)(end - x),
                                    .h = h,
                                    .color = sv_color_of(&d->colors, c->one)};
        m.title = sv_picture_printf(d->p, "%.3g at once", (double)c->at_once[x]);
        sv_picture_add(d->p, &m);
    }
}

static void draw_row(struct drawing *d, size_t i, double y)
{
    const struct sv_crowd *crowd = crowd_of(d, i);
    if (crowd) {
        draw_crowd(d, crowd, y);
        return;
    }
    d->row_y[i] = y; /* arrows find it */
    draw_label(d, i, y);
    if (d->l->index->rows->items[i].lines)
        draw_rects(d, &d->l->rows[i], y);
    else
        draw_counter(d, &d->l->rows[i], y);
}

static double draw_rows(struct drawing *d, double y)
{
    const struct sv_layout_index *x = d->l->index;
    sv_track group = UINT32_MAX;
    for (size_t i = 0; i < d->l->n_rows; i++)
        d->row_y[i] = -1;
    for (size_t i = 0; i < d->n_drawn; i++) {
        size_t row = d->order[i];
        if (x->rows->items[row].group != group) {
            group = x->rows->items[row].group;
            draw_group(d, group, y);
            y += HEAD_HEIGHT;
        }
        draw_row(d, row, y);
        y += row_height(d, row);
    }
    return y;
}

static double rows_bottom(const struct drawing *d, double y)
{
    const struct sv_layout_index *x = d->l->index;
    sv_track group = UINT32_MAX;
    y += bands_height(d);
    for (size_t i = 0; i < d->n_drawn; i++) {
        size_t row = d->order[i];
        y += row_height(d, row) + (x->rows->items[row].group != group ? HEAD_HEIGHT : 0);
        group = x->rows->items[row].group;
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
    if (d->is_cropped) {
        sv_buf_str(b, ", without ");
        sv_format_count(b, d->activity.n_outside);
        sv_buf_printf(b, " event%s outside (--from 0 shows all)",
                      d->activity.n_outside == 1 ? "" : "s");
    }
    sv_buf_str(b, " \xc2\xb7 ");
    sv_format_count(b, t->slices.n);
    sv_buf_str(b, " slices in the trace");
    if (d->n_quiet)
        sv_buf_printf(b, " \xc2\xb7 without %zu process%s that do%s next to nothing", d->n_quiet,
                      d->n_quiet == 1 ? "" : "es", d->n_quiet == 1 ? "es" : "");
    if (d->n_left_out)
        sv_buf_printf(b, " \xc2\xb7 %zu more row%s (--max-rows)", d->n_left_out,
                      d->n_left_out == 1 ? "" : "s");
    return sv_picture_since(d->p, at);
}

static double draw_legend(struct drawing *d, double y)
{
    const struct sv_colors *c = &d->colors;
    struct sv_legend items[SV_N_COLORS + 1];
    size_t n = 0;
    bool has_unread = d->l->trace->slices.n >
                      LABELS_ENOUGH; /* names of slices that are too narrow for them */
    if ((!c->by_category && !has_unread) || c->n_keys < 2 || d->n_drawn == 0)
        return y;
    for (; n < c->n_keys; n++) {
        struct sv_text text = sv_dict_text(d->l->trace->dict, c->keys[n]);
        items[n].text = sv_picture_text(d->p, text.bytes, text.len);
        items[n].color = sv_palette[n];
    }
    if (c->has_others) {
        items[n].text =
            sv_picture_printf(d->p, "other %s", c->by_category ? "categories" : "names");
        items[n++].color = SV_COLOR_GREY;
    }
    return sv_plot_frame_legend(d->p, SV_MARGIN, y, d->p->width - 2 * SV_MARGIN, items, n);
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
    return sv_plot_frame_warn(d->p, y, sv_picture_since(d->p, at));
}

/* What is shown: what was asked for, or what the trace is good for. */
static void choose_what(struct drawing *d, const struct sv_trace *t)
{
    d->rows = d->o->rows;
    if (d->rows == SV_ROWS_AUTO) {
        d->rows = sv_bands_there(t, d->o->io);
        d->rows |= d->rows ? SV_ROWS_APP : SV_ROWS_TRACKS;
    }
    find_machine_categories(d, t->dict);
    find_app(d, t);
}

static void find_bands(struct drawing *d, const struct sv_layout *l)
{
    struct sv_bands_wanted w = {
        .what = d->rows & SV_BANDS_ALL,
        .bins = {.from_ns = l->from_ns, .to_ns = l->to_ns, .n = (size_t)l->width},
        .io = d->o->io,
        .grouping = d->o->grouping,
        .processes_max = d->o->processes_max};
    sv_bands_find(&d->bands, l->trace, &w);
}

static void draw_all(struct drawing *d)
{
    const struct sv_layout *l = d->l;
    const struct sv_plot_timeline *o = d->o;
    double first = (double)l->trace->first_ns;
    double y = sv_plot_frame_head(d->p, &o->frame, facts(d));
    y = draw_losses(d, y);
    y = draw_legend(d, y) + 16;
    double bottom = rows_bottom(d, y) + 2;
    struct sv_axis a = sv_plot_frame_time_axis(&o->frame, (double)l->from_ns - first,
                                               (double)l->to_ns - first, d->left,
                                               d->left + l->width);
    sv_axis_draw_x(d->p, &a, y, bottom, false, SV_MARK_TICK);
    sv_plot_frame_zoom(d->p, &a, y, bottom, y - 4);
    draw_rows(d, draw_bands(d, y + 2));
    struct sv_arrows arrows = {.layout = l,
                               .row_y = d->row_y,
                               .left = d->left,
                               .line_height = LINE_HEIGHT,
                               .max = o->arrows_max};
    d->n_arrows = sv_arrows_draw(d->p, &arrows);
    if (d->n_arrows > o->arrows_max && o->arrows_max)
        bottom = sv_plot_frame_note(
            d->p, bottom,
            sv_picture_printf(d->p, "%zu arrows are not drawn (--arrows)", d->n_arrows));
    d->p->height = bottom + SV_MARGIN;
}

size_t sv_timeline_draw(struct sv_picture *p, const struct sv_trace *t,
                        const struct sv_plot_timeline *o)
{
    struct sv_layout l;
    struct sv_layout_index *index = sv_layout_index_new(t);
    struct drawing d = {.p = p, .l = &l, .o = o, .left = SV_MARGIN + LABEL_WIDTH};
    double right = p->width - SV_MARGIN;
    choose_what(&d, t);
    if (d.rows & SV_BANDS_GPU & sv_bands_there(t, o->io))
        right -= RIGHT_AXIS;
    sv_colors_init(&d.colors, t, d.rows & SV_ROWS_TRACKS ? NULL : d.is_machine);
    d.activity = (struct sv_activity){.from_ns = o->from_ns, .to_ns = o->to_ns};
    d.is_cropped = o->from_ns == o->to_ns && sv_activity_find(t, &d.activity);
    sv_layout_init(&l, index,
                   &(struct sv_layout_window){.from_ns = d.activity.from_ns,
                                              .to_ns = d.activity.to_ns,
                                              .width = floor(fmax(right - d.left, 50))});
    d.is_wanted = sv_alloc(l.n_rows + 1);
    d.is_drawn = sv_alloc(l.n_rows + 1);
    d.order = sv_alloc((l.n_rows + 1) * sizeof *d.order);
    d.row_y = sv_alloc((l.n_rows + 1) * sizeof *d.row_y);
    find_bands(&d, &l);
    find_order(&d);
    choose_rows(&d);
    order_rows(&d);
    draw_all(&d);
    size_t n = d.n_drawn + d.bands.n;
    sv_bands_fini(&d.bands);
    sv_crowds_fini(&d.crowds);
    sv_row_order_fini(&d.all);
    free(d.is_wanted);
    free(d.is_drawn);
    free(d.order);
    free(d.row_y);
    free(d.is_machine);
    free(d.is_app);
    sv_colors_fini(&d.colors);
    sv_layout_fini(&l);
    sv_layout_index_free(index);
    return n;
}

/* Layout of a window: where each slice goes, pixel by pixel.
 *
 * Called by painters with the trace's index. The strips know what is in each pixel of each line;
 * here that becomes rectangles: one for a slice that is alone in its pixel or reaches beyond it,
 * one for a pixel that several share. Must not know colours, fonts or file formats. */
#include "plot/layout.h"

#include "core/base/mem.h"

#include <math.h>
#include <stdlib.h>

double sv_layout_x(const struct sv_layout *l, int64_t ns)
{
    if (ns <= l->from_ns)
        return 0;
    if (ns >= l->to_ns)
        return l->width;
    return (double)((uint64_t)ns - (uint64_t)l->from_ns) /
           (double)((uint64_t)l->to_ns - (uint64_t)l->from_ns) * l->width;
}

uint32_t sv_layout_lines(const struct sv_row_info *row)
{
    return row->lines < SV_LINES_MAX ? row->lines : SV_LINES_MAX;
}

uint32_t sv_layout_line(const struct sv_layout_index *x, const struct sv_row_member *m,
                        uint32_t slice)
{
    const uint16_t *lines = x->rows->track_lines[m->track];
    uint32_t own = lines ? lines[slice - x->trace->tracks[m->track].first]
                         : x->trace->slices.depth[slice];
    own = own < SV_LINES_MAX ? own : SV_LINES_MAX - 1;
    return own + m->line < SV_LINES_MAX ? own + m->line : SV_LINES_MAX - 1;
}

/* ---- slices ---- */

/* The pixels of a layout for strips; a fraction of a pixel is spread over all. */
static struct sv_pixels pixels_of(const struct sv_layout *l)
{
    uint32_t width = l->width >= 1 ? (uint32_t)l->width : 1;
    return (struct sv_pixels){
        .from_ns = l->from_ns, .to_ns = l->to_ns, .width = width, .right = (int32_t)width};
}

static struct sv_rect *add_rect(struct sv_layout *l, uint32_t line)
{
    l->rects = sv_grow(l->rects, &l->cap_rects, l->n_rects + 1, sizeof *l->rects);
    struct sv_rect *r = &l->rects[l->n_rects++];
    *r = (struct sv_rect){.line = line};
    return r;
}

/* One slice, as wide as it is. */
static void place_slice(struct sv_layout *l, uint32_t line, uint32_t slice)
{
    const struct sv_slices *c = &l->trace->slices;
    struct sv_rect *r = add_rect(l, line);
    r->x0 = sv_layout_x(l, c->ts_ns[slice]);
    r->x1 = c->dur_ns[slice] == SV_UNFINISHED ? l->width
                                              : sv_layout_x(l, c->ts_ns[slice] + c->dur_ns[slice]);
    r->n_merged = 1;
    r->slice = slice;
    r->cover = 255;
}

static void place_pixels(struct sv_layout *l, uint32_t line, int32_t first, int32_t end,
                         const struct sv_strip_item *item)
{
    double pixel = l->width / pixels_of(l).width;
    struct sv_rect *r = add_rect(l, line);
    r->x0 = first * pixel;
    r->x1 = end * pixel;
    r->n_merged = item->n;
    r->slice = item->longest;
    r->cover = item->cover;
}

/* The last of several may reach beyond their pixel: a narrow one widens their rectangle, a wide one
 * has its own. */
static void place_item(struct sv_layout *l, uint32_t line, const struct sv_strip_item *item)
{
    if (item->n <= 1) {
        place_slice(l, line, item->last);
        return;
    }
    place_pixels(l, line, item->pixel, item->pixel + 1, item);
    if (item->tail == 0)
        return;
    size_t merged = l->n_rects - 1;
    place_slice(l, line, item->last);
    const struct sv_rect *last = &l->rects[merged + 1];
    if (last->x1 - last->x0 >= 1)
        return;
    l->rects[merged].x1 = fmax(l->rects[merged].x1, last->x1);
    l->n_rects--;
}

/* Lines past the last one: what they hold in each pixel together. */
static void add_to_pixels(const struct sv_trace *t, const struct sv_strip_line *line,
                          struct sv_strip_item *pixels)
{
    for (size_t i = 0; i < line->n; i++) {
        const struct sv_strip_item *item = &line->items[i];
        for (uint32_t k = 0; k <= item->tail; k++) {
            struct sv_strip_item *to = &pixels[item->pixel + (int32_t)k];
            uint32_t slice = k ? item->last : item->longest;
            if (to->n == 0 ||
                (uint64_t)t->slices.dur_ns[slice] > (uint64_t)t->slices.dur_ns[to->longest])
                to->longest = slice;
            to->cover = k ? 255 : item->cover > to->cover ? item->cover : to->cover;
            to->n += k || item->n == 0 ? 1 : item->n;
        }
    }
}

/* Pixels side by side that have the same slices become one rectangle. */
static void place_rest(struct sv_layout *l, const struct sv_strip_item *pixels, int32_t n)
{
    for (int32_t at = 0, end; at < n; at = end) {
        const struct sv_strip_item *p = &pixels[at];
        for (end = at + 1; end < n && pixels[end].n == p->n && pixels[end].longest == p->longest;)
            end++;
        if (p->n)
            place_pixels(l, SV_LINES_MAX - 1, at, end, p);
    }
}

static void place_row(struct sv_layout *l, size_t row)
{
    enum { AT_ONCE = 256, GROUPS_MAX = 16 }; /* each group looks at all slices of the row */
    struct sv_pixels px = pixels_of(l);
    struct sv_strip_items out = {0};
    uint32_t lines = l->index->rows->items[row].lines;
    uint32_t own = lines <= SV_LINES_MAX ? lines : SV_LINES_MAX - 1;
    sv_strips_row(l->index->strips, row, &px, 0, own, &out);
    for (uint32_t line = 0; line < out.n_lines; line++)
        for (size_t i = 0; i < out.lines[line].n; i++)
            place_item(l, line, &out.lines[line].items[i]);
    if (own < lines) {
        struct sv_strip_item *pixels = sv_alloc(px.width * sizeof *pixels);
        uint32_t at_once = lines / GROUPS_MAX > AT_ONCE ? lines / GROUPS_MAX : AT_ONCE;
        for (uint32_t from = own; from < lines; from += at_once) {
            sv_strips_row(l->index->strips, row, &px, from, at_once, &out);
            for (uint32_t line = 0; line < out.n_lines; line++)
                add_to_pixels(l->trace, &out.lines[line], pixels);
        }
        place_rest(l, pixels, px.right);
        free(pixels);
    }
    sv_strip_items_fini(&out);
}

/* ---- counters ---- */

static void join_value(struct sv_point *p, double v)
{
    if (!isfinite(v) && (isnan(p->value) || isnan(v)))
        v = NAN; /* what is worse is shown */
    p->value = v;
    p->min = isfinite(v) ? fmin(p->min, v) : v;
    p->max = isfinite(v) ? fmax(p->max, v) : v;
}

/* At most two points in a pixel, finite values and others; the last value's comes last. */
static void add_value(struct sv_layout *l, size_t first, double x, double v)
{
    struct sv_point *points = l->points;
    size_t n = l->n_points;
    for (size_t i = n; i > first && i + 2 > n && floor(x) == floor(points[i - 1].x); i--) {
        struct sv_point same = points[i - 1];
        if (isfinite(same.value) != isfinite(v))
            continue;
        join_value(&same, v);
        points[i - 1] = points[n - 1];
        points[n - 1] = same;
        return;
    }
    SV_APPEND(l->points, l->n_points, l->cap_points) =
        (struct sv_point){.x = x, .value = v, .min = v, .max = v};
}

/* Begins with the value that the counter had before the window. */
static void place_counter(struct sv_layout *l, struct sv_row *row, sv_track track)
{
    const struct sv_counters *c = &l->trace->counters;
    const struct sv_trace_track *k = &l->trace->tracks[track];
    uint64_t i = sv_trace_counter_from(l->trace, track, l->from_ns);
    double scale = (double)l->trace->dict->tracks[track].multiplier;
    i = i > k->counter_first ? i - 1 : i;
    for (; i < k->counter_end && c->ts_ns[i] < l->to_ns; i++)
        add_value(l, row->first_point, sv_layout_x(l, c->ts_ns[i]),
                  scale == 0 ? c->value[i] : c->value[i] * scale);
    row->n_points = l->n_points - row->first_point;
    bool is_first = true;
    for (size_t j = 0; j < row->n_points; j++) {
        const struct sv_point *p = &l->points[row->first_point + j];
        if (!isfinite(p->value))
            continue;
        row->min = is_first || p->min < row->min ? p->min : row->min;
        row->max = is_first || p->max > row->max ? p->max : row->max;
        is_first = false;
    }
}

/* ---- rows ---- */

static void fill_row(struct sv_layout *l, size_t i)
{
    const struct sv_row_info *info = &l->index->rows->items[i];
    struct sv_row *row = &l->rows[i];
    row->first_rect = l->n_rects;
    row->first_point = l->n_points;
    if (info->lines == 0)
        place_counter(l, row, info->track);
    else
        place_row(l, i);
    row->n_rects = l->n_rects - row->first_rect;
}

void sv_layout_init(struct sv_layout *l, const struct sv_layout_index *x,
                    const struct sv_layout_window *w)
{
    *l = (struct sv_layout){.index = x,
                            .trace = x->trace,
                            .from_ns = w->from_ns,
                            .to_ns = w->to_ns,
                            .width = w->width,
                            .rows = sv_alloc((x->rows->n + 1) * sizeof *l->rows),
                            .n_rows = x->rows->n};
    if (l->from_ns == l->to_ns) {
        l->from_ns = x->trace->first_ns;
        l->to_ns = x->trace->last_ns;
        if (l->to_ns < INT64_MAX)
            l->to_ns++; /* what begins with the last nanosecond is in the window */
    }
    if (l->to_ns <= l->from_ns)
        l->to_ns = l->from_ns < INT64_MAX ? l->from_ns + 1 : l->from_ns;
    size_t first = w->first_row < x->rows->n ? w->first_row : x->rows->n;
    size_t n = w->n_rows && w->n_rows < x->rows->n - first ? w->n_rows : x->rows->n - first;
    for (size_t i = 0; i < (w->rows ? w->n_rows : n); i++)
        fill_row(l, w->rows ? w->rows[i] : first + i);
}

void sv_layout_fini(struct sv_layout *l)
{
    free(l->rows);
    free(l->rects);
    free(l->points);
    *l = (struct sv_layout){0};
}

struct sv_layout_index *sv_layout_index_new(const struct sv_trace *t)
{
    struct sv_layout_index *x = sv_alloc(sizeof *x);
    x->trace = t;
    x->rows = sv_track_rows_new(t);
    x->strips = sv_strips_new(x->rows);
    return x;
}

void sv_layout_index_free(struct sv_layout_index *x)
{
    if (!x)
        return;
    sv_strips_free(x->strips);
    sv_track_rows_free(x->rows);
    free(x);
}

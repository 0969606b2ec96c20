/* Layout of a window: where each slice goes, pixel by pixel.
 *
 * Called by painters with the trace's index. Within a row the slices come in the order of time. Those that begin
 * within one pixel are placed one by one if they are few; if they are many, every line they occupy gets one
 * rectangle for the pixel, found by the index, and those that reach beyond the pixel follow one by one. Must not know colours, fonts or
 * file formats. */
#include "plot/layout_impl.h"

#include "core/base/mem.h"
#include "core/base/search.h"

#include <math.h>
#include <stdlib.h>

#define FEW 96u /* slices that begin within a pixel and are looked at one by one */

double sv_layout_x(const struct sv_layout *l, int64_t ns)
{
    if (ns <= l->from_ns)
        return 0;
    if (ns >= l->to_ns)
        return l->width;
    return (double)((uint64_t)ns - (uint64_t)l->from_ns) /
           (double)((uint64_t)l->to_ns - (uint64_t)l->from_ns) * l->width;
}

int64_t sv_layout_ns(const struct sv_layout *l, double x)
{
    double span = (double)((uint64_t)l->to_ns - (uint64_t)l->from_ns);
    double at = ceil(x / l->width * span);
    if (at <= 0)
        return l->from_ns;
    if (at >= span)
        return l->to_ns;
    return (int64_t)((uint64_t)l->from_ns + (uint64_t)at);
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

/* What a track needs while its slices come by: the newest rectangle of each line. */
struct placing {
    struct sv_layout *l;
    const struct sv_row_member *member;
    size_t newest[SV_LINES_MAX]; /* 0: none yet, else index + 1 */
};

static struct sv_rect *add_rect(struct sv_layout *l)
{
    l->rects = sv_grow(l->rects, &l->cap_rects, l->n_rects + 1, sizeof *l->rects);
    return &l->rects[l->n_rects++];
}

static void place(struct placing *p, uint32_t slice)
{
    struct sv_layout *l = p->l;
    const struct sv_slices *c = &l->trace->slices;
    uint32_t line = sv_layout_line(l->index, p->member, slice);
    double x0 = sv_layout_x(l, c->ts_ns[slice]);
    double x1 = c->dur_ns[slice] == SV_UNFINISHED
                    ? l->width
                    : sv_layout_x(l, c->ts_ns[slice] + c->dur_ns[slice]);
    struct sv_rect *last = p->newest[line] ? &l->rects[p->newest[line] - 1] : NULL;
    bool is_narrow = last && x1 - x0 < 1 && last->x1 - last->x0 < 1 && x1 - last->x0 < 1;
    /* On the last line slices may overlap without end. */
    bool is_crowded = last && line == SV_LINES_MAX - 1 && x0 - last->x0 < 1;
    if ((is_narrow || is_crowded) && !last->is_dense) {
        last->x1 = x1 > last->x1 ? x1 : last->x1;
        last->n_merged++;
        if ((uint64_t)c->dur_ns[slice] > (uint64_t)c->dur_ns[last->slice])
            last->slice = slice;
        return;
    }
    *add_rect(l) =
        (struct sv_rect){.x0 = x0, .x1 = x1, .line = line, .n_merged = 1, .slice = slice};
    p->newest[line] = l->n_rects;
}

/* What is known of the slices that begin within a pixel: the lines they lie on, and the longest one seen of each. */
struct pixel {
    uint64_t lines;
    uint64_t dur_ns[SV_LINES_MAX];
    uint32_t slice[SV_LINES_MAX];
};

static void see(struct pixel *px, uint32_t line, uint32_t slice, uint64_t dur_ns)
{
    bool is_first = !(px->lines >> line & 1);
    if (is_first || dur_ns > px->dur_ns[line]) {
        px->slice[line] = slice;
        px->dur_ns[line] = dur_ns;
        px->lines |= 1ull << line;
    }
}

static void see_slice(const struct placing *p, struct pixel *px, uint32_t slice)
{
    see(px, sv_layout_line(p->l->index, p->member, slice), slice,
        (uint64_t)p->l->trace->slices.dur_ns[slice]);
}

/* Lines of the member's own, moved to those of the row; what is past the last line counts as the last. */
static uint64_t moved_lines(uint64_t lines, uint32_t by)
{
    if (by == 0)
        return lines;
    if (by >= SV_LINES_MAX)
        return 1ull << (SV_LINES_MAX - 1);
    uint64_t past = lines >> (SV_LINES_MAX - by);
    return lines << by | (past ? 1ull << (SV_LINES_MAX - 1) : 0);
}

static void see_longest(const struct placing *p, struct pixel *px, const struct sv_layout_block *b)
{
    uint32_t line = b->line + p->member->line;
    see(px, line < SV_LINES_MAX ? line : SV_LINES_MAX - 1, b->longest, b->dur_ns);
}

static void see_block(const struct placing *p, struct pixel *px, uint32_t row)
{
    const struct sv_layout_block *b = &p->l->index->blocks->small[row >> 6];
    uint64_t lines = moved_lines(b->lines, p->member->line);
    see_longest(p, px, b);
    for (uint32_t i = row; (lines & ~px->lines) && i < row + 64; i++)
        if (!(px->lines >> sv_layout_line(p->l->index, p->member, i) & 1))
            see_slice(p, px, i);
}

static void see_large(const struct placing *p, struct pixel *px, uint32_t row)
{
    const struct sv_layout_blocks *b = p->l->index->blocks;
    uint64_t lines = moved_lines(b->large[row >> 12].lines, p->member->line);
    see_longest(p, px, &b->large[row >> 12]);
    for (uint32_t i = row; (lines & ~px->lines) && i < row + 4096; i += 64)
        if (moved_lines(b->small[i >> 6].lines, p->member->line) & ~px->lines)
            see_block(p, px, i);
}

/* Those of [row, end) that reach beyond edge_ns. Where slices nest they enclose the last one that begins before it, or are it;
 * the outermost are placed first, and no more than there are lines. */
static void place_beyond(struct placing *p, uint32_t row, uint32_t end, int64_t edge_ns)
{
    const struct sv_trace *t = p->l->trace;
    uint32_t open[SV_LINES_MAX];
    size_t n = 0;
    if (t->tracks[p->member->track].has_overlap) {
        struct sv_window beyond = {
            .trace = t, .from_ns = edge_ns, .next = row, .begins = end, .end = end};
        for (uint32_t slice; sv_window_next(&beyond, &slice);)
            place(p, slice);
        return;
    }
    for (uint32_t at = end - 1; at != SV_NO_ROW && at >= row; at = t->slices.parent[at])
        if (t->slices.dur_ns[at] == SV_UNFINISHED || sv_trace_end_ns(t, at) > edge_ns)
            open[n++ % SV_LINES_MAX] = at;
    for (size_t i = 0; i < n && i < SV_LINES_MAX; i++)
        place(p, open[(n - 1 - i) % SV_LINES_MAX]);
}

/* The slices [row, end) all begin within the pixel that ends at edge_ns. */
static void place_dense(struct placing *p, uint32_t row, uint32_t end, int64_t edge_ns)
{
    struct sv_layout *l = p->l;
    struct pixel px;
    px.lines = 0;
    double x0 = sv_layout_x(l, l->trace->slices.ts_ns[row]), x1 = sv_layout_x(l, edge_ns);
    for (uint32_t i = row; i < end;) {
        if (i % 4096 == 0 && end - i >= 4096) {
            see_large(p, &px, i);
            i += 4096;
        } else if (i % 64 == 0 && end - i >= 64) {
            see_block(p, &px, i);
            i += 64;
        } else {
            see_slice(p, &px, i++);
        }
    }
    for (uint32_t line = 0; line < SV_LINES_MAX; line++) {
        if (!(px.lines >> line & 1))
            continue;
        *add_rect(l) = (struct sv_rect){.x0 = x0,
                                        .x1 = x1,
                                        .line = line,
                                        .n_merged = end - row,
                                        .slice = px.slice[line],
                                        .is_dense = true};
        p->newest[line] = l->n_rects;
    }
    place_beyond(p, row, end, edge_ns);
}

static void place_track(struct sv_layout *l, const struct sv_row_member *m)
{
    const int64_t *ts_ns = l->trace->slices.ts_ns;
    struct placing p = {.l = l, .member = m};
    struct sv_window w = sv_trace_window(l->trace, m->track, l->from_ns, l->to_ns);
    uint32_t begins = w.begins, end = w.end;
    w.end = begins;
    for (uint32_t slice; sv_window_next(&w, &slice);)
        place(&p, slice);
    for (uint32_t row = begins; row < end;) {
        double pixel = floor(sv_layout_x(l, ts_ns[row]));
        int64_t edge_ns = sv_layout_ns(l, pixel + 1);
        if (edge_ns <= ts_ns[row]) /* rounding: a pixel is at least a nanosecond */
            edge_ns = ts_ns[row] + 1;
        uint32_t next = sv_search_near(ts_ns, row, end, edge_ns);
        if (next - row > FEW) {
            place_dense(&p, row, next, edge_ns);
        } else {
            for (uint32_t i = row; i < next; i++)
                place(&p, i);
        }
        row = next;
    }
}

/* ---- counters ---- */

static void add_value(struct sv_layout *l, size_t first, double x, double v)
{
    struct sv_point *last = l->n_points > first ? &l->points[l->n_points - 1] : NULL;
    if (last && floor(x) == floor(last->x)) {
        last->value = v;
        last->min = fmin(last->min, v);
        last->max = fmax(last->max, v);
        return;
    }
    l->points = sv_grow(l->points, &l->cap_points, l->n_points + 1, sizeof *l->points);
    l->points[l->n_points++] = (struct sv_point){.x = x, .value = v, .min = v, .max = v};
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
        if (isfinite(c->value[i]))
            add_value(l, row->first_point, sv_layout_x(l, c->ts_ns[i]),
                      scale == 0 ? c->value[i] : c->value[i] * scale);
    row->n_points = l->n_points - row->first_point;
    for (size_t j = 0; j < row->n_points; j++) {
        const struct sv_point *p = &l->points[row->first_point + j];
        row->min = j == 0 || p->min < row->min ? p->min : row->min;
        row->max = j == 0 || p->max > row->max ? p->max : row->max;
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
    for (size_t m = 0; info->lines && m < info->n_members; m++)
        place_track(l, &l->index->rows->members[info->first_member + m]);
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
    for (size_t i = first; i < first + n; i++)
        fill_row(l, i);
}

void sv_layout_fini(struct sv_layout *l)
{
    free(l->rows);
    free(l->rects);
    free(l->points);
    *l = (struct sv_layout){0};
}

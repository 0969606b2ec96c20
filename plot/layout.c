/* Layout: decides which rows there are, in which order, and where each slice goes.
 *
 * Called by painters once the store is finished. Rows are grouped by process; within a process threads come first, by tid, then the other
 * tracks by their order and name. Must not know colours, fonts or file formats. */
#include "plot/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64 /* deeper slices are drawn on the last line */

static double x_of(const struct sv_layout *l, int64_t ns)
{
    double span = (double)(l->to_ns - l->from_ns);
    double x = (double)(ns - l->from_ns) / span * l->width;
    return x < 0 ? 0 : x > l->width ? l->width : x;
}

static struct sv_rect *add_rect(struct sv_layout *l)
{
    l->rects = sv_grow(l->rects, &l->cap_rects, l->n_rects + 1, sizeof *l->rects);
    return &l->rects[l->n_rects++];
}

/* What a row needs while its slices come by: the newest rectangle of each line. */
struct row_state {
    struct sv_layout *layout;
    struct sv_row *row;
    size_t newest[LINES_MAX]; /* 0: none yet, else index + 1 */
};

static int64_t end_of(const struct sv_layout *l, uint64_t row)
{
    int64_t dur = l->trace->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? l->to_ns : l->trace->slices.ts_ns[row] + dur;
}

static void place(struct row_state *s, uint32_t slice)
{
    struct sv_layout *l = s->layout;
    const struct sv_slices *c = &l->trace->slices;
    uint32_t depth = c->depth[slice] < LINES_MAX ? c->depth[slice] : LINES_MAX - 1;
    double x0 = x_of(l, c->ts_ns[slice]), x1 = x_of(l, end_of(l, slice));
    struct sv_rect *last = s->newest[depth] ? &l->rects[s->newest[depth] - 1] : NULL;
    if (last && x1 - x0 < 1 && last->x1 - last->x0 < 1 && x1 - last->x0 < 1) {
        last->x1 = x1 > last->x1 ? x1 : last->x1;
        last->n_merged++;
        if (c->dur_ns[slice] > c->dur_ns[last->slice])
            last->slice = slice;
        return;
    }
    *add_rect(l) =
        (struct sv_rect){.x0 = x0, .x1 = x1, .depth = depth, .n_merged = 1, .slice = slice};
    s->newest[depth] = l->n_rects;
    if (depth + 1 > s->row->lines)
        s->row->lines = depth + 1;
}

static void place_counter(struct sv_layout *l, struct sv_row *row)
{
    const struct sv_counters *c = &l->trace->counters;
    row->first_point = l->n_points;
    for (uint64_t i = l->trace->tracks[row->track].counter_first;
         i < l->trace->tracks[row->track].counter_end; i++) {
        double x = x_of(l, c->ts_ns[i]), v = c->value[i];
        if (c->ts_ns[i] >= l->to_ns || isnan(v))
            continue;
        bool same_pixel = l->n_points > row->first_point && x - l->points[l->n_points - 1].x < 0.5;
        if (!same_pixel) {
            l->points = sv_grow(l->points, &l->cap_points, l->n_points + 1, sizeof *l->points);
            l->n_points++;
        }
        l->points[l->n_points - 1] = (struct sv_point){.x = x, .value = v};
    }
    row->n_points = l->n_points - row->first_point;
    for (size_t i = 0; i < row->n_points; i++) {
        double v = l->points[row->first_point + i].value;
        row->min = i == 0 || v < row->min ? v : row->min;
        row->max = i == 0 || v > row->max ? v : row->max;
    }
}

static void add_rows(struct sv_layout *l)
{
    const struct sv_trace *t = l->trace;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        bool has_slices = t->tracks[track].first < t->tracks[track].end;
        bool has_values = t->tracks[track].counter_first < t->tracks[track].counter_end;
        if (!has_slices && !has_values)
            continue;
        l->rows = sv_grow(l->rows, &l->cap_rows, l->n_rows + 1, sizeof *l->rows);
        l->rows[l->n_rows++] =
            (struct sv_row){.track = track, .process = sv_dict_process_of(t->dict, track)};
    }
}

/* Processes by pid; within one, threads by tid, then what has an order by it, then by name. */
static int compare_tracks(const struct sv_dict *d, sv_track a, sv_track b)
{
    const struct sv_track_info *x = &d->tracks[a], *y = &d->tracks[b];
    if ((x->kind == SV_TRACK_THREAD) != (y->kind == SV_TRACK_THREAD))
        return x->kind == SV_TRACK_THREAD ? -1 : 1;
    if (x->has_order && y->has_order && x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    int by_name = strcmp(sv_dict_text(d, x->name).bytes, sv_dict_text(d, y->name).bytes);
    return by_name ? by_name : a < b ? -1 : 1;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct sv_dict *d = ctx;
    const struct sv_row *x = a, *y = b;
    if (x->process != y->process) {
        int64_t p = d->tracks[x->process].pid, q = d->tracks[y->process].pid;
        if (p != q)
            return p < q ? -1 : 1;
        return x->process < y->process ? -1 : 1;
    }
    return compare_tracks(d, x->track, y->track);
}

static void fill_row(struct sv_layout *l, struct sv_row *row)
{
    const struct sv_trace *t = l->trace;
    row->first_rect = l->n_rects;
    if (t->tracks[row->track].first < t->tracks[row->track].end) {
        struct row_state state = {.layout = l, .row = row};
        struct sv_window w = sv_trace_window(t, row->track, l->from_ns, l->to_ns);
        for (uint32_t slice; sv_window_next(&w, &slice);)
            place(&state, slice);
    } else {
        place_counter(l, row);
    }
    row->n_rects = l->n_rects - row->first_rect;
}

void sv_layout_init(struct sv_layout *l, const struct sv_trace *trace, int64_t from_ns,
                    int64_t to_ns, double width)
{
    *l = (struct sv_layout){.trace = trace, .from_ns = from_ns, .to_ns = to_ns, .width = width};
    if (from_ns == to_ns) {
        l->from_ns = trace->first_ns;
        l->to_ns = trace->last_ns;
    }
    if (l->to_ns <= l->from_ns)
        l->to_ns = l->from_ns + 1;
    add_rows(l);
    if (l->n_rows)
        qsort_r(l->rows, l->n_rows, sizeof *l->rows, compare_rows, trace->dict);
    for (size_t i = 0; i < l->n_rows; i++)
        fill_row(l, &l->rows[i]);
}

void sv_layout_fini(struct sv_layout *l)
{
    free(l->rows);
    free(l->rects);
    free(l->points);
    *l = (struct sv_layout){0};
}

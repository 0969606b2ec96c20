/* Ranks over time as rows. Called by the command plot; all numbers come from the communication
 * report and are put into bins of some pixels.
 *
 * Within a row the height is the share of the bin's time: waiting for others from below, then
 * transfer, then collectives of which it is not known. Bins that look alike become one mark. */
#include "subjects/comm/picture.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "plot/bins.h"
#include "plot/colors.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEFT        (SV_MARGIN + 110.0)
#define LAST_LABEL  22.0 /* half a label of the time axis */
#define ROW_MAX     22.0
#define ROW_MIN     2.0
#define ROWS_HEIGHT 900.0
#define LABEL_MIN   11.0
#define MARKS_MAX   200000u
#define SHADES      16.0

enum part { WAIT, TRANSFER, UNKNOWN, N_PARTS };
static const struct {
    const char *name;
    uint32_t color;
} parts[N_PARTS] = {[WAIT] = {"waiting for others", 0xe69f00},
                    [TRANSFER] = {"transfer", 0x0072b2},
                    [UNKNOWN] = {"collective, cannot tell", 0xb8bcc8}};
#define COLOR_LAST 0xd00000u

struct rows {
    struct sv_picture *p;
    const struct sv_comm_report *r;
    struct sv_bins bins;
    uint32_t *ranks; /* that are drawn */
    size_t n;
    size_t *place;           /* by rank: its row, SIZE_MAX: none */
    struct sv_cover *covers; /* N_PARTS of each row */
    bool *is_last;           /* by row and bin */
    double x0, x1, top, height;
};

/* ---- figures ---- */

static void add_call(struct rows *w, const struct sv_comm_collective *c,
                     const struct sv_comm_call *call)
{
    const struct sv_trace *t = w->r->trace;
    size_t row = w->place[call->rank];
    if (row == SIZE_MAX)
        return;
    int64_t from = t->slices.ts_ns[call->row], to = sv_trace_end_ns(t, call->row);
    struct sv_cover *covers = &w->covers[row * N_PARTS];
    if (call->wait_ns < 0) {
        sv_cover_add(&covers[UNKNOWN], &w->bins, from, to, 1);
        return;
    }
    int64_t arrived = sv_sat_add(from, call->wait_ns);
    arrived = arrived < to ? arrived : to;
    sv_cover_add(&covers[WAIT], &w->bins, from, arrived, 1);
    sv_cover_add(&covers[TRANSFER], &w->bins, arrived, to, 1);
    if (c->last == call->rank && !c->is_passed_on && from >= w->bins.from_ns &&
        from < w->bins.to_ns)
        w->is_last[row * w->bins.n + sv_bin_of(&w->bins, from)] = true;
}

static void measure(struct rows *w)
{
    for (size_t i = 0; i < w->n * N_PARTS; i++)
        sv_cover_init(&w->covers[i], w->bins.n);
    for (size_t i = 0; i < w->r->n; i++) {
        const struct sv_comm_collective *c = &w->r->collectives[i];
        for (size_t k = c->first; k < c->first + c->n; k++)
            add_call(w, c, &w->r->calls[k]);
    }
    for (size_t i = 0; i < w->n * N_PARTS; i++)
        sv_cover_finish(&w->covers[i]);
}

/* ---- which ranks ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void choose(struct rows *w, size_t max)
{
    size_t n = w->r->n_ranks;
    w->ranks = sv_alloc((n + 1) * sizeof *w->ranks);
    w->place = sv_alloc((n + 1) * sizeof *w->place);
    for (uint32_t i = 0; i < n; i++) {
        w->ranks[i] = i;
        w->place[i] = SIZE_MAX;
    }
    qsort_r(w->ranks, n, sizeof *w->ranks, sv_comm_by_loss, w->r->ranks);
    w->n = max && max < n ? max : n;
    qsort(w->ranks, w->n, sizeof *w->ranks, by_number);
    for (size_t i = 0; i < w->n; i++)
        w->place[w->ranks[i]] = i;
}

/* ---- marks ---- */

static double x_of(const struct rows *w, size_t bin)
{
    return w->x0 + (w->x1 - w->x0) * (double)bin / (double)w->bins.n;
}

static int shade(const struct rows *w, size_t row, int part, size_t bin)
{
    double share = w->covers[row * N_PARTS + (size_t)part].part[bin];
    return (int)lround(fmin(fmax(share, 0), 1) * SHADES);
}

static bool is_same(const struct rows *w, size_t row, size_t a, size_t b)
{
    for (int k = 0; k < N_PARTS; k++)
        if (shade(w, row, k, a) != shade(w, row, k, b))
            return false;
    return true;
}

static void draw_bins(struct rows *w, size_t row, double y, double height)
{
    for (size_t i = 0, end; i < w->bins.n; i = end) {
        double bottom = y + height;
        for (end = i + 1; end < w->bins.n && is_same(w, row, i, end); end++) {}
        for (int k = 0; k < N_PARTS; k++) {
            double h = height * shade(w, row, k, i) / SHADES;
            h = fmin(h, bottom - y);
            if (h <= 0)
                continue;
            bottom -= h;
            sv_picture_add(w->p, &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                           .flags = SV_MARK_ZOOM,
                                                           .color = parts[k].color,
                                                           .x = x_of(w, i),
                                                           .y = bottom,
                                                           .w = x_of(w, end) - x_of(w, i),
                                                           .h = h});
        }
    }
    double tick = fmax(1.5, height * 0.16);
    for (size_t i = 0; i < w->bins.n; i++)
        if (w->is_last[row * w->bins.n + i])
            sv_picture_add(w->p,
                           &(struct sv_picture_mark){.shape = SV_SHAPE_BOX,
                                                     .flags = SV_MARK_ZOOM,
                                                     .color = COLOR_LAST,
                                                     .x = x_of(w, i),
                                                     .y = y,
                                                     .w = fmax(x_of(w, i + 1) - x_of(w, i), 1.5),
                                                     .h = tick});
}

/* Its label would be over that of a slow rank. */
static bool is_beside_slow(const struct rows *w, size_t row, size_t every)
{
    bool is_beside = false;
    for (size_t i = row > every ? row - every : 0; every > 1 && i < w->n && i <= row + every; i++)
        is_beside |= w->r->ranks[w->ranks[i]].is_slow;
    return is_beside;
}

static void draw_label(struct rows *w, size_t row, double y, double height)
{
    const struct sv_comm_rank *is = &w->r->ranks[w->ranks[row]];
    char name[96];
    size_t every = height >= LABEL_MIN ? 1 : (size_t)ceil(LABEL_MIN / height);
    if (!is->is_slow && (row % every || is_beside_slow(w, row, every)))
        return;
    sv_comm_rank_name(w->r, w->ranks[row], name, sizeof name);
    sv_picture_label(w->p, LEFT - 8, y + height / 2 + 4, 11, SV_ANCHOR_END,
                     is->is_slow ? SV_MARK_BOLD : 0, is->is_slow ? COLOR_LAST : SV_COLOR_INK,
                     LEFT - SV_MARGIN - 8,
                     sv_picture_printf(w->p, is->is_slow ? "%s, slow" : "%s", name));
}

static void draw_rows(struct rows *w)
{
    double gap = w->height > 6 ? 2 : 0;
    for (size_t i = 0; i < w->n; i++) {
        double y = w->top + w->height * (double)i;
        draw_label(w, i, y, w->height - gap);
        draw_bins(w, i, y, w->height - gap);
    }
}

static double draw_head(struct rows *w, const struct sv_comm_figure *f)
{
    struct sv_legend legend[N_PARTS + 1];
    const struct sv_comm_report *r = w->r;
    char slow[64] = "";
    size_t n_slow = 0;
    for (size_t i = 0; i < r->n_ranks; i++)
        n_slow += r->ranks[i].is_slow;
    if (n_slow)
        snprintf(slow, sizeof slow, ", %zu slow", n_slow);
    double y = sv_plot_frame_head(
        w->p, &f->frame,
        sv_picture_printf(w->p, "%zu collectives of %zu ranks, %" PRIu64 " compared%s", r->n,
                          r->n_ranks, r->by_doubt[SV_COMM_TOLD], slow));
    for (int k = 0; k < N_PARTS; k++)
        legend[k] = (struct sv_legend){sv_picture_text(w->p, parts[k].name, strlen(parts[k].name)),
                                       parts[k].color};
    legend[N_PARTS] = (struct sv_legend){sv_picture_printf(w->p, "it arrived last"), COLOR_LAST};
    return sv_plot_frame_legend(w->p, SV_MARGIN, y, w->p->width - 2 * SV_MARGIN, legend,
                                N_PARTS + 1);
}

size_t sv_comm_figure_draw(struct sv_picture *p, const struct sv_comm_report *r,
                           const struct sv_comm_figure *f)
{
    struct rows w = {.p = p, .r = r, .x0 = LEFT, .x1 = p->width - SV_MARGIN - LAST_LABEL};
    choose(&w, f->ranks_max);
    double width = fmax(w.x1 - w.x0, 50), most = (double)MARKS_MAX / (double)(w.n ? w.n : 1);
    w.bins = (struct sv_bins){f->from_ns, f->to_ns, (size_t)fmax(fmin(width, most), 50)};
    w.height = fmin(fmax(floor(ROWS_HEIGHT / (double)(w.n ? w.n : 1)), ROW_MIN), ROW_MAX);
    w.covers = sv_alloc((w.n * N_PARTS + 1) * sizeof *w.covers);
    w.is_last = sv_alloc(w.n * w.bins.n + 1);
    measure(&w);
    w.top = draw_head(&w, f) + 20;
    int64_t start = r->trace->first_ns;
    struct sv_axis axis = sv_plot_frame_time_axis(&f->frame, (double)sv_sat_sub(f->from_ns, start),
                                                  (double)sv_sat_sub(f->to_ns, start), w.x0, w.x1);
    double bottom = w.top + w.height * (double)w.n;
    sv_axis_draw_x(p, &axis, w.top, bottom, false, SV_MARK_TICK);
    draw_rows(&w);
    sv_plot_frame_zoom(p, &axis, w.top, bottom, w.top - 4);
    p->height = bottom + SV_MARGIN;
    for (size_t i = 0; i < w.n * N_PARTS; i++)
        sv_cover_fini(&w.covers[i]);
    free(w.covers);
    free(w.is_last);
    free(w.ranks);
    free(w.place);
    return w.n;
}

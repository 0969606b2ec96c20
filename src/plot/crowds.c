/* Rows that are drawn as one: neighbours whose names differ in a number at the end, and single rows
 * of very many lines. Called by the time line. */
#include "plot/crowds.h"

#include "core/base/mem.h"
#include "plot/lanes.h"

#include <math.h>
#include <stdlib.h>

enum { LINES_MIN = 16 };

/* Very many that overlap: of the lines, those that calls within each other need do not count. */
static bool is_crowded(const struct sv_layout *l, size_t row)
{
    return sv_row_overlap(l->index->rows, row) >= LINES_MIN;
}

/* Only the outermost slices count: what is inside them is part of the same. */
uint32_t sv_row_at_once(const struct sv_layout *l, size_t row, float *at_once)
{
    size_t width = (size_t)l->width;
    uint32_t one = SV_NO_ROW;
    for (size_t i = 0; i < l->rows[row].n_rects; i++) {
        const struct sv_rect *r = &l->rects[l->rows[row].first_rect + i];
        if (l->trace->slices.depth[r->slice] != 0)
            continue;
        one = r->slice;
        for (size_t x = (size_t)r->x0; x < width && (double)x < r->x1; x++) {
            double part = fmin(r->x1, (double)x + 1) - fmax(r->x0, (double)x);
            at_once[x] += (float)(part * r->cover / 255);
        }
    }
    return one;
}

static void add_crowd(struct sv_crowds *all, const struct sv_layout *l, const bool *is_shown,
                      struct sv_crowd c, const struct sv_buf *stem)
{
    c.at_once = sv_alloc(((size_t)l->width + 1) * sizeof *c.at_once);
    sv_buf_init(&c.name, SIZE_MAX);
    sv_buf_add(&c.name, stem->data, stem->len);
    for (size_t row = c.first_row; row < c.end_row; row++) {
        if (!is_shown[row])
            continue;
        uint32_t one = sv_row_at_once(l, row, c.at_once);
        c.one = one == SV_NO_ROW ? c.one : one;
        all->of_row[row] = (uint32_t)all->n + 1;
    }
    for (size_t x = 0; x < (size_t)l->width; x++)
        c.most = fmax(c.most, (double)c.at_once[x]);
    SV_APPEND(all->items, all->n, all->cap) = c;
}

void sv_crowds_find(struct sv_crowds *c, const struct sv_layout *l, const bool *wanted)
{
    struct sv_buf stem;
    bool *is_shown = sv_alloc(l->n_rows + 1);
    *c = (struct sv_crowds){.of_row = sv_alloc((l->n_rows + 1) * sizeof *c->of_row)};
    sv_buf_init(&stem, SIZE_MAX);
    for (size_t row = 0; row < l->n_rows; row++)
        is_shown[row] = wanted[row] && l->rows[row].n_rects > 0;
    for (size_t row = 0, end; row < l->n_rows; row = end) {
        end = row + 1;
        if (!is_shown[row])
            continue;
        size_t n;
        end = sv_lanes_end(l->index->rows, is_shown, row, &stem, &n);
        if (n > 1 || is_crowded(l, row))
            add_crowd(c, l, is_shown,
                      (struct sv_crowd){.first_row = row, .end_row = end, .n_rows = n}, &stem);
    }
    sv_buf_fini(&stem);
    free(is_shown);
}

void sv_crowds_fini(struct sv_crowds *c)
{
    for (size_t i = 0; i < c->n; i++) {
        sv_buf_fini(&c->items[i].name);
        free(c->items[i].at_once);
    }
    free(c->items);
    free(c->of_row);
    *c = (struct sv_crowds){0};
}

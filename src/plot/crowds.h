/* Crowds: rows of a time line that are too many to be looked at one by one, as the lanes of a
 * server's requests ("requests 1" … "requests 32"). They are drawn as one row: how many of their
 * slices run at once. */
#pragma once

#include "plot/layout.h"

struct sv_crowd {
    size_t first_row, end_row;
    size_t n_rows;      /* that have something in the window */
    struct sv_buf name; /* what the rows' names have in common */
    float *at_once;     /* by pixel of the layout: a mean */
    double most;        /* of at_once */
    uint32_t one;       /* a slice of it, for the colour */
};

struct sv_crowds {
    struct sv_crowd *items;
    size_t n, cap;
    uint32_t *of_row; /* by row of the layout: number of its crowd plus 1; 0: in none */
};

/* Of the rows that `wanted` says yes to. */
void sv_crowds_find(struct sv_crowds *c, const struct sv_layout *l, const bool *wanted);
/* By pixel of the layout, added to what is there: how many of the row's outermost slices there are
 * at once. Returns one of them, SV_NO_ROW: there is none. */
uint32_t sv_row_at_once(const struct sv_layout *l, size_t row, float *at_once);
void sv_crowds_fini(struct sv_crowds *c);

/* The order in which people see the rows of a trace: what the findings are about first, counters of
 * the machine and processes that do next to nothing last. The same in `view`, `show` and
 * `plot timeline`. */
#pragma once

#include "plot/strips.h"

/* What a group of rows is gathered with, where there are at least SV_GATHER_LEAST such groups. */
enum sv_gather {
    SV_GATHER_NOT,
    SV_GATHER_MACHINE, /* counters of the machine */
    SV_GATHER_OTHER,   /* processes that do next to nothing */
    SV_N_GATHERS
};
#define SV_GATHER_LEAST 3u

struct sv_row_order {
    uint32_t *rows;  /* all rows as they are seen */
    uint8_t *gather; /* by row: enum sv_gather of its group */
    size_t n_groups[SV_N_GATHERS];
};

/* `first`: numbers of rows that come first; their groups are not gathered. */
void sv_row_order_make(struct sv_row_order *o, const struct sv_track_rows *r,
                       const struct sv_strips *s, const uint32_t *first, size_t n);
void sv_row_order_fini(struct sv_row_order *o);
/* "The machine (4 groups)", "27 others". */
void sv_gather_name(const struct sv_row_order *o, enum sv_gather gather, struct sv_buf *to);

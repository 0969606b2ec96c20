/* Inside the layout: what its two files share. */
#ifndef SV_PLOT_LAYOUT_IMPL_H
#define SV_PLOT_LAYOUT_IMPL_H

#include "plot/layout.h"

/* Of every 64 rows of the store that belong to one track (at multiples of 64), and of every 4,096: the lines they lie on as bits,
 * and the longest of them. */
struct sv_layout_block {
    uint64_t lines;
    uint64_t dur_ns; /* of the longest; unfinished ones are longer than any */
    uint32_t longest;
    uint32_t line; /* of the longest */
};

struct sv_layout_blocks {
    struct sv_layout_block *small, *large;
};

#endif

/* Rows for slices that overlap: as many lanes as there are at a time, each one's slices in time order. */
#ifndef SV_RECORD_DECODE_OVERLAP_H
#define SV_RECORD_DECODE_OVERLAP_H

#include "core/stream/dict.h"

enum { SV_ROWS_MAX = 64 }; /* further ones share the last: it may then show a slice too short */

struct sv_rows {
    sv_track tracks[SV_ROWS_MAX];
    int64_t end_ns[SV_ROWS_MAX];
    uint32_t n;
};

/* The first lane is the row itself; others are its children, named after it. */
void sv_rows_init(struct sv_rows *l, sv_track row);
/* A lane for [*start_ns, *end_ns), which is made shorter where no lane is free. */
sv_track sv_rows_take(struct sv_rows *l, struct sv_dict *dict, int64_t *start_ns, int64_t *end_ns);

#endif

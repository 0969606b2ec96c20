/* The cells of `slice` from the store's columns, with the values that SQL shows: most rows of most traces, for which SQL would take most of the time. */
#ifndef SV_CLICKHOUSE_SLICE_CELLS_H
#define SV_CLICKHOUSE_SLICE_CELLS_H

#include "analysis/sql/sql.h"
#include "clickhouse/schema.h"

struct sv_slice_cells {
    struct sv_sql *q;
    const struct sv_trace *trace;
    uint8_t fields[SV_TYPED_COLUMNS_MAX];
    size_t n;
};

/* False: one of the columns is not known here, SQL must be asked. */
bool sv_slice_cells_init(struct sv_slice_cells *s, struct sv_sql *q, const struct sv_trace *t,
                         const struct sv_ch_column *columns, size_t n);
/* Rows are in the order of track and time. */
void sv_slice_cells(const struct sv_slice_cells *s, uint32_t row, struct sv_cell *cells);

#endif

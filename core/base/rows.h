/* Tables as a stream of rows: what a query gives and a printer takes. */
#pragma once

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum sv_cell_type { SV_CELL_NULL, SV_CELL_INT, SV_CELL_REAL, SV_CELL_TEXT, SV_CELL_BLOB };

struct sv_cell {
    enum sv_cell_type type;
    int64_t i;
    double d;
    const char *text; /* TEXT and BLOB; valid until the call returns */
    size_t len;
};

/* Takes tables. head() comes once per table, then row() for each row, then end(). Each may
 * return a negative SV_E…, which ends the run. */
struct sv_rows_sink {
    int (*head)(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err);
    int (*row)(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n, struct sv_err *err);
    int (*end)(struct sv_rows_sink *r, struct sv_err *err);
};

/* For sinks that know their columns, or do nothing at the end. */
static inline int sv_rows_any_head(struct sv_rows_sink *r, const char *const *names, size_t n,
                                   struct sv_err *err)
{
    (void)r, (void)names, (void)n, (void)err;
    return 0;
}

static inline int sv_rows_no_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)r, (void)err;
    return 0;
}

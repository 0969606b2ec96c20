/* --order of `show` and `plot timeline`: whether the rows that findings are about come first. */
#pragma once

#include "core/base/err.h"
#include "explain/explain.h"
#include "store/track_rows.h"

#define SV_ORDER_HELP                                                                           \
    "findings: rows that the findings of explain are about first (the default up to 2 million " \
    "slices), or trace: by rank, device and process only"

int sv_check_order(const char *order, struct sv_err *err);
/* The rows that come first; 0: none. NULL: by the number of slices. */
size_t sv_first_rows(const char *order, const struct sv_track_rows *r,
                     uint32_t to[SV_EXPLAIN_ROWS]);

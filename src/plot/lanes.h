/* Lanes: rows of a process that stand beside each other and whose names differ in a number at the
 * end, as those of a server's requests ("requests 1" … "requests 64"). `plot timeline` and the
 * viewer draw them as one row. */
#pragma once

#include "core/base/buf.h"
#include "store/track_rows.h"

#define SV_LANES_LEAST 8u /* fewer are looked at one by one */

/* The row after the last one of the lanes that begin with `row`, and how many they are; row + 1 and
 * 1: there are none. `stem` gets what their names have in common. `is_shown`, by row: others do not
 * count. */
size_t sv_lanes_end(const struct sv_track_rows *r, const bool *is_shown, size_t row,
                    struct sv_buf *stem, size_t *n);

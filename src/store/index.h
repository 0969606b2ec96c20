/* Orders of the store's rows that it does not have itself: by time over all tracks, and by name.
 *
 *     struct sv_index *x = sv_index_new(trace);
 *     uint32_t id = sv_index_id(x, row);                 // the row's number in time order
 *     const struct sv_names *names = sv_index_names(x);  // rows grouped by name
 *
 * Everything is made at first use and kept. An id is the rank of a slice by (time, row): small
 * numbers that grow with time, which is how Perfetto numbers slices. A few ids are found by
 * searching the tracks; only who asks for many pays for the table (8 bytes per slice). */
#pragma once

#include "store/trace.h"

/* Rows grouped by name: group g is rows[start[g]] … rows[start[g + 1] - 1], in row order. Groups
 * are sorted by the bytes of their names; a group without name comes first. */
struct sv_names {
    uint32_t n_groups;
    sv_str *name;       /* of each group */
    uint32_t *start;    /* n_groups + 1 */
    uint32_t *rows;     /* all rows of the trace */
    uint32_t *group_of; /* by sv_str; SV_NO_ROW: no slice has this name */
    uint32_t n_strings; /* strings past this were not there yet: no slice has them as name */
};

struct sv_index;

struct sv_index *sv_index_new(const struct sv_trace *t);
void sv_index_free(struct sv_index *x);

uint32_t sv_index_id(struct sv_index *x, uint32_t row);
uint32_t sv_index_row(struct sv_index *x, uint64_t id); /* SV_NO_ROW when there is no such slice */

/* All rows in the order of time, equal times in row order. */
const uint32_t *sv_index_order(struct sv_index *x);

const struct sv_names *sv_index_names(struct sv_index *x);
bool sv_index_has_names(const struct sv_index *x); /* they were made already */
uint32_t sv_names_group(const struct sv_names *names,
                        sv_str name); /* SV_NO_ROW: no slice has this name */

/* The slices directly below `row`, in row order: *n of them, valid as long as the index. The first
 * call makes the table (8 bytes per slice). */
const uint32_t *sv_index_children(struct sv_index *x, uint32_t row, size_t *n);

/* Sorts a list of rows (rising row numbers) by time. */
void sv_index_sort_rows(const struct sv_index *x, uint32_t *rows, size_t n);

/* The same for counter values: all rows in the order of time. */
const uint32_t *sv_index_counter_order(struct sv_index *x);

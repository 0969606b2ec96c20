/* Groups of slices, counted in one pass over the store's columns: what fold.c puts in the place of
 * `slice` in statements that only aggregate. Internal to sql/.
 *
 * The table has a row for each group of slices that agree in the key columns which the statement
 * reads. Other columns of a slice can only be compared with constants (ts, dur) or read as figures
 * of the group (stave_…). */
#pragma once

#include "sql/impl.h"

#define SV_SQL_GROUPS "stave_slice_groups"

#define SV_SQL_THREAD_SLICE_GROUPS                                                             \
    "SELECT s.category, s.name, s.track_id, s.depth, s.ts, s.dur, " SV_SQL_THREAD_SLICE_OWNERS \
    ", s.stave_n, s.stave_dur_sum, s.stave_dur_min, s.stave_dur_max, s.stave_dur_values, "     \
    "s.stave_ts_min, s.stave_ts_max FROM " SV_SQL_GROUPS " s " SV_SQL_THREAD_SLICE_JOIN

extern const struct sv_sql_table sv_sql_groups;

int sv_sql_add_group_functions(struct sv_sql *q);

/* Frees what the figures of the last statement refer to. */
void sv_sql_forget_groups(struct sv_sql *q);

/* What bounds exact arithmetic: whether all durations together fit into 63 bits, and into the 53 of
 * a double. */
enum sv_sql_sums { SV_SUMS_OVERFLOW, SV_SUMS_FIT, SV_SUMS_ARE_EXACT };
enum sv_sql_sums sv_sql_sums(struct sv_sql *q);

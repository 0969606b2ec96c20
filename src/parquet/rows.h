/* Rows that come one by one, such as the answer to a query, as a Parquet file: collected to groups
 * of columns.
 *
 *     struct sv_parquet_rows *r = sv_parquet_rows_new(p, columns, n);
 *     sv_parquet_rows_add(r, cells);          // n cells of the columns' types, or NULL
 *     sv_parquet_rows_end(r);                 // the last group; frees r, not p */
#pragma once

#include "core/base/rows.h"
#include "parquet/parquet.h"

struct sv_parquet_rows;

struct sv_parquet_rows *sv_parquet_rows_new(struct sv_parquet *p,
                                            const struct sv_parquet_column *columns, size_t n);
void sv_parquet_rows_add(struct sv_parquet_rows *r, const struct sv_cell *cells);
void sv_parquet_rows_end(struct sv_parquet_rows *r); /* failures are those of p */

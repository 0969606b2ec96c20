/* A writer of Parquet files: flat tables of integers, doubles and texts, every column nullable.
 *
 *     struct sv_parquet *p;
 *     code = sv_parquet_open("slice.parquet", columns, n, &p, err);
 *     while (rows) {
 *         sv_parquet_group(p, n_rows);              // at most SV_PARQUET_GROUP rows
 *         sv_parquet_ints(p, ids, NULL);            // then each column once, in order
 *         sv_parquet_texts(p, names, &symbols);
 *     }
 *     code = sv_parquet_close(p, err);
 *
 * Integers are DELTA_BINARY_PACKED, texts RLE_DICTIONARY (PLAIN where a dictionary would be large),
 * doubles PLAIN; pages are compressed with zstd where it was built in. Row groups have minimum,
 * maximum and number of NULLs of each column. Texts are UTF-8 by the format's rules: what is not
 * becomes \xNN (core/base/utf8.h). The file grows under a temporary name and gets its own when it
 * is whole. Failures are sticky: the first is returned by close(). Rows that come one by one are
 * collected by rows.h. */
#pragma once

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum sv_parquet_type { SV_PARQUET_INT, SV_PARQUET_REAL, SV_PARQUET_TEXT };

#define SV_PARQUET_GROUP       (1u << 17) /* rows of a group at most */
#define SV_PARQUET_COLUMNS_MAX 64

struct sv_parquet_column {
    const char *name;
    enum sv_parquet_type type;
};

/* Texts as numbers of the caller: 0 is NULL. */
struct sv_parquet_symbols {
    const char *(*text)(const void *ctx, uint32_t symbol, size_t *len);
    const void *ctx;
};

struct sv_parquet;

/* The columns and their names must stay until close. */
int sv_parquet_open(const char *path, const struct sv_parquet_column *columns, size_t n,
                    struct sv_parquet **out, struct sv_err *err);

void sv_parquet_group(struct sv_parquet *p, size_t n_rows);
/* The next column of the group. present: 1 or 0 for each row, NULL: all are there; what is not has
 * any value. */
void sv_parquet_ints(struct sv_parquet *p, const int64_t *values, const uint8_t *present);
void sv_parquet_reals(struct sv_parquet *p, const double *values, const uint8_t *present);
void sv_parquet_texts(struct sv_parquet *p, const uint32_t *symbols,
                      const struct sv_parquet_symbols *how);
void sv_parquet_nulls(struct sv_parquet *p);
/* keep: the column just given will come again in this group; again: it does, as the next column. */
void sv_parquet_keep(struct sv_parquet *p);
void sv_parquet_again(struct sv_parquet *p);

int sv_parquet_failure(const struct sv_parquet *p, struct sv_err *err); /* so far */
int sv_parquet_close(struct sv_parquet *p, struct sv_err *err);         /* frees it */
void sv_parquet_discard(struct sv_parquet *p); /* leaves no file, frees it */

/* The large tables without SQL: for exports, which read them from the store's columns with the
 * numbers that SQL shows. Only where SQLite is built in. */
#pragma once

#include "sql/sql.h"
#include "store/index.h"

/* The order and the ids of slices that the connection uses. */
struct sv_index *sv_sql_index(struct sv_sql *q);

/* Whether anything of this list of arguments would be in `args`: else SQL shows no arg_set_id. */
bool sv_sql_has_args(struct sv_sql *q, uint32_t handle);

/* Whether a slice has one of these categories, listed as in SQL: 'a', 'b'. */
bool sv_sql_has_category(struct sv_sql *q, const char *list);

/* A row of `slice` as SQL shows it: the columns of sv_typed_table("slice"), in their order. `id` is
 * the row's, as the index has it. */
enum { SV_SQL_SLICE_CELLS = 15 };
void sv_sql_slice_cells(struct sv_sql *q, uint32_t row, uint32_t id,
                        struct sv_cell cells[SV_SQL_SLICE_CELLS]);

/* SELECT * FROM slice: the same names, rows and order. */
int sv_sql_slice_rows(struct sv_sql *q, struct sv_rows_sink *rows, struct sv_err *err);

/* A row of `args`; all of it is valid until the call returns. */
struct sv_arg_row {
    int64_t id, set;
    const char *flat_key, *key, *type;
    const struct sv_arg *arg; /* never SV_ARG_NULL */
    const char *display;
    size_t display_len;
};

/* All rows of `args`, in its order. What `take` returns below 0 ends it and is returned. */
int sv_sql_each_arg(struct sv_sql *q, int (*take)(void *ctx, const struct sv_arg_row *row),
                    void *ctx);

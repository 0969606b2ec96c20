/* An answer of ClickHouse (TabSeparatedWithNamesAndTypes) as rows: whole numbers and reals by the
 * types of the columns, everything else as text.
 *
 *     sv_ch_answer_init(&a, &printer->rows);
 *     code = sv_ch_ask(c, NULL, SV_CH_READ, sql, strlen(sql), &a.take, err);
 *     code = code < 0 ? code : sv_ch_answer_end(&a, err);
 *     sv_ch_answer_fini(&a);
 *
 * The bytes are anybody's: a row has a greatest length, a table a greatest number of columns, and
 * what does not fit the columns is SV_EIO. */
#pragma once

#include "clickhouse/client.h"
#include "core/base/rows.h"

enum { SV_CH_COLUMNS_MAX = 4096, SV_CH_ROW_BYTES_MAX = 64 << 20 };

struct sv_ch_answer {
    struct sv_ch_take take; /* first: the callback finds the rest */
    struct sv_rows_sink *rows;
    struct sv_buf line;  /* a row that has not come whole */
    struct sv_buf names; /* terminated ones */
    uint8_t *kinds;      /* enum sv_cell_type, by column */
    struct sv_cell *cells;
    size_t n_columns;
    uint64_t n_lines;
};

void sv_ch_answer_init(struct sv_ch_answer *a, struct sv_rows_sink *rows);
/* All has come. A statement without a result gives no table. */
int sv_ch_answer_end(struct sv_ch_answer *a, struct sv_err *err);
void sv_ch_answer_fini(struct sv_ch_answer *a);

/* Runs the statements one after the other; they may change nothing. Comments and quotes are those
 * of ClickHouse. */
int sv_ch_run(struct sv_ch *c, const char *sql, struct sv_rows_sink *rows, struct sv_err *err);
/* The length of the first statement with its semicolon, and whether anything is in it. */
size_t sv_ch_statement(const char *sql, bool *is_empty);

/* The rows of a statement of ours, each with n_columns cells; texts are terminated. host NULL: the
 * URL's. Whatever is wrong is SV_EIO. */
typedef int sv_ch_row(void *ctx, const struct sv_cell *cells, struct sv_err *err);
int sv_ch_each(struct sv_ch *c, const char *host, const char *sql, size_t n_columns, sv_ch_row *row,
               void *ctx, struct sv_err *err);

/* The answer of one statement of ours whose first row is one number: *out; SV_EIO without one. */
int sv_ch_number(struct sv_ch *c, const char *host, const char *sql, int64_t *out,
                 struct sv_err *err);

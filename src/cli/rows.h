/* Tables for people and scripts: the same rows as aligned columns, CSV, JSON, JSON lines or
 * Markdown, on standard output.
 *
 *     struct sv_printer *p;
 *     code = sv_printer_open("csv", &p, err);           // NULL: aligned on a terminal, else CSV
 *     code = sv_sql_run(q, sql, &p->rows, err);         // or head(), row()…, end() by hand
 *     code = sv_printer_close(p, err); */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"
#include "core/base/rows.h"
#include "core/files/output.h"
#include "core/stream/dict.h"

#include <stdio.h>

enum sv_rows_form { SV_ROWS_TABLE, SV_ROWS_CSV, SV_ROWS_JSON, SV_ROWS_JSONL, SV_ROWS_MARKDOWN };
#define SV_ROWS_FORMS "table csv json jsonl markdown"
/* What the command line chose. --json is for programs that read an answer: an object with the
 * members version, rows and n, of at most SV_JSON_MOST bytes unless --all; what was left out is in
 * `truncated`. The forms json and jsonl are all rows, however many. */
struct sv_rows_choice {
    const char *form;
    bool json, all;
};
enum { SV_JSON_MOST = 32 << 10, SV_JSON_FORM = 1 };
#define SV_ROWS_ALL "--all has every row"

/* The options (the first one under this name) that fill a sv_rows_choice. */
#define SV_ROWS_OPTION(type, name, field)                                                      \
    {0,                                                                                        \
     name,                                                                                     \
     "FORM",                                                                                   \
     SV_OPT_TEXT,                                                                              \
     offsetof(type, field.form),                                                               \
     "table (default on a terminal), csv (default elsewhere), json, jsonl or "                 \
     "markdown",                                                                               \
     SV_ROWS_FORMS,                                                                            \
     NULL},                                                                                    \
        {0,                                                                                    \
         "json",                                                                               \
         NULL,                                                                                 \
         SV_OPT_FLAG,                                                                          \
         offsetof(type, field.json),                                                           \
         "an object of JSON with the rows, at most 32 KiB of it (docs/json.md)",               \
         NULL,                                                                                 \
         NULL},                                                                                \
    {                                                                                          \
        0, "all", NULL, SV_OPT_FLAG, offsetof(type, field.all), "with --json: all rows", NULL, \
            NULL                                                                               \
    }

struct sv_printer {
    struct sv_rows_sink rows; /* first: the callbacks find the rest */
    enum sv_rows_form form;
    FILE *out;              /* standard output unless changed after opening */
    struct sv_output *file; /* instead of it, when set after opening */
    struct sv_buf text;
    char **names;
    size_t n_columns;
    uint64_t n_rows, n_results;
    /* Aligned forms hold back rows until the widths are known. */
    char **held;
    size_t n_held, cap_held;
    size_t *widths;
    bool *is_number; /* all values so far were numbers or quantities: aligned to the right */
    bool is_flowing; /* widths are settled */
    bool is_object;  /* --json */
    size_t most;     /* bytes of it; 0: no limit */
    size_t written;  /* of it, with what waits in `text` */
    uint64_t n_left_out;
    unsigned columns; /* a line of a table is not wider; 0: no limit */
    bool is_cut;      /* a cell was */
    bool is_upright;  /* a line for each cell: there are more columns than fit */
};

int sv_printer_choose(const struct sv_rows_choice *choice, struct sv_printer **out,
                      struct sv_err *err);
int sv_printer_open(const char *form, struct sv_printer **out, struct sv_err *err);
int sv_printer_close(struct sv_printer *p, struct sv_err *err);

/* Cells by hand. */
struct sv_cell sv_cell_text(const char *s);
struct sv_cell sv_cell_int(int64_t i);
struct sv_cell sv_cell_real(double d);
struct sv_cell sv_cell_null(void);
struct sv_cell sv_cell_bytes(struct sv_text t);          /* NULL of an empty one */
struct sv_cell sv_cell_share(double part, double whole); /* NULL of nothing */

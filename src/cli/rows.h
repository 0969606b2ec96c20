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

#include <stdio.h>

enum sv_rows_form { SV_ROWS_TABLE, SV_ROWS_CSV, SV_ROWS_JSON, SV_ROWS_JSONL, SV_ROWS_MARKDOWN };
#define SV_ROWS_FORMS "table csv json jsonl markdown"
/* The option (under this name) that chooses one of them. */
#define SV_ROWS_OPTION(type, name, field)                                             \
    {                                                                                 \
        0, name, "FORM", SV_OPT_TEXT, offsetof(type, field),                          \
            "table (default on a terminal), csv (default elsewhere), json, jsonl or " \
            "markdown",                                                               \
            SV_ROWS_FORMS, NULL                                                       \
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
};

int sv_printer_open(const char *form, struct sv_printer **out, struct sv_err *err);
int sv_printer_close(struct sv_printer *p, struct sv_err *err);

/* Cells by hand. */
struct sv_cell sv_cell_text(const char *s);
struct sv_cell sv_cell_int(int64_t i);
struct sv_cell sv_cell_real(double d);
struct sv_cell sv_cell_null(void);
struct sv_cell sv_cell_share(double part, double whole); /* NULL of nothing */

/* Reports of subjects: what they share. Each subject has a folder, subjects/NAME/, and a line in
 * subjects/list.h.
 *
 * A report is a list of sections, a section a table of typed columns: the same one is printed
 * aligned for people, as JSON and as CSV. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"
#include "files/range.h"
#include "sql/sql.h"
#include "store/trace.h"
#include "subjects/list.h"

struct sv_report_options {
    const char *from, *by, *top;
    bool strict, json, all, csv, no_index;
    uint64_t memory_limit;
    struct sv_range range;
    /* batch: */
    const char *sla, *request, *baseline, *max_latency_regression, *max_throughput_drop,
        *max_rejected;
    const char *slo;   /* llm */
    bool why;          /* batch: what requests waited for; llm: the slowest tokens */
    const char *steps; /* gpu, wait: the marker of steps */
    const char *step;  /* wait: only this one */
    bool assume;       /* comm, io, wait: of several traces */
    /* Made of these: */
    const char *path;
    size_t limit;        /* rows of a section; SIZE_MAX: all */
    struct sv_buf *into; /* instead of standard output; NULL: none */
};

struct sv_report_subject {
    const char *name, *summary;
    const char *sections; /* words for --by */
    const char *options;  /* those that it has and others have not, blanks between them */
    bool takes_many;      /* traces, as merge puts them together */
    int (*check)(struct sv_err *err); /* what does not go together; NULL: everything does */
    int (*run)(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err);
};

#define SV_REPORT_DECLARE(name, report, tables) \
    SV_IF_##report(extern const struct sv_report_subject sv_##name##_report;)
SV_SUBJECTS(SV_REPORT_DECLARE)
#undef SV_REPORT_DECLARE

/* Checks of options that several subjects have: those that need --baseline, and pairs that exclude
 * each other. */
int sv_report_check(const char *const *of_baseline, size_t n_of_baseline,
                    const char *const (*apart)[2], size_t n_apart, struct sv_err *err);

/* ---- sections ---- */

enum sv_unit {
    SV_UNIT_TEXT,
    SV_UNIT_COUNT,
    SV_UNIT_NS,
    SV_UNIT_BYTES,
    SV_UNIT_SHARE, /* 0 … 1 */
    SV_UNIT_RATE,  /* bytes per second */
    SV_UNIT_REAL
};

struct sv_report_column {
    const char *key;     /* for programs */
    const char *heading; /* for people; NULL: not for them */
    enum sv_unit unit;
};

enum { SV_REPORT_FORM = 1, SV_CELLS_MAX = 40 }; /* the first: member `version` of JSON answers */

struct sv_section {
    const char *name; /* in --by and JSON */
    const char *title;
    const struct sv_report_column *columns;
    size_t n_columns, n_rows;
    bool is_one; /* one row, shown as lines and as one object; never cut by --top */
    /* Fills n_columns cells of row i; SV_CELL_NULL: not known. Texts live until the next call. */
    void (*fill)(const struct sv_section *s, size_t row, struct sv_cell *cells);
    const void *data;
};

/* Prints the sections that `o` asks for. Of CSV the first one unless --by names another. */
int sv_sections_print(const struct sv_section *sections, size_t n,
                      const struct sv_report_options *o, struct sv_err *err);

/* One object of cells, for those that print by themselves. */
struct sv_json;
void sv_cells_json(struct sv_json *j, const char *const *names, const struct sv_cell *cells,
                   size_t n);
int sv_report_write(const struct sv_report_options *o, struct sv_buf *b, struct sv_err *err);

/* The report on a subject as JSON, appended to `to`; each table has at most `limit` rows.
 * SV_EUSAGE: no such subject. */
int sv_report_json(const char *subject, const struct sv_trace *t, size_t limit, struct sv_buf *to,
                   struct sv_err *err);

/* Says on standard error what the trace has lost. */
void sv_report_losses(const struct sv_trace *t);

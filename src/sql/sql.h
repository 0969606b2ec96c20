/* SQL over a trace: a SQLite connection whose tables are the store's columns.
 *
 *     struct sv_sql *q;
 *     int code = sv_sql_open(trace, &(struct sv_sql_options){.arg_prefix = "debug."}, &q, err);
 *     struct sv_sql_cursor …
 *     code = sv_sql_run(q, "SELECT …; SELECT …", &sink, err);
 *     sv_sql_close(q);
 *
 * Table and column names are Perfetto's; docs/sql.md has them all. Nothing is copied into SQLite:
 * every table is a virtual one, and conditions on id, ts, track_id and name become lookups. The
 * connection cannot open, attach or write files; tables and views that a statement creates live in
 * memory until it is closed. Without SQLite in the build sv_sql_open() says so. */
#pragma once

#include "core/base/report.h"
#include "core/base/rows.h"
#include "store/trace.h"

struct sv_sql;

struct sv_sql_options {
    const char *arg_prefix;         /* prefix of argument keys: "debug." (default) or "args." */
    const struct sv_report *report; /* findings for the table `stats`, may be NULL */
    size_t memory_limit_bytes;      /* for SQLite and the indexes; 0: none */
    const char *trace_type;         /* format of the file for `metadata`, may be NULL */
    uint64_t trace_bytes;           /* its size, 0: unknown */
};

/* The trace, the dictionary and the report must outlive it. */
int sv_sql_open(const struct sv_trace *t, const struct sv_sql_options *options, struct sv_sql **out,
                struct sv_err *err);
void sv_sql_close(struct sv_sql *q);

/* Runs all statements of `sql`. Errors name the statement's line and what SQLite says; SV_EUSAGE
 * for bad SQL. */
int sv_sql_run(struct sv_sql *q, const char *sql, struct sv_rows_sink *rows, struct sv_err *err);

/* Values for the parameters of a statement: `names` (without their ':', '@' or '$') for named ones,
 * NULL for ?, ?1 and so on in order. A statement with parameters needs a value for each. */
struct sv_sql_values {
    const struct sv_cell *cells;
    const char *const *names;
    size_t n;
};
int sv_sql_run_with(struct sv_sql *q, const char *sql, const struct sv_sql_values *values,
                    struct sv_rows_sink *rows, struct sv_err *err);

/* Statements that run longer than this fail with SV_EAGAIN; 0: no limit. */
void sv_sql_limit(struct sv_sql *q, int64_t milliseconds);

/* Ends the running statement soon; it fails with SV_EAGAIN. May be called from a signal handler. */
void sv_sql_interrupt(struct sv_sql *q);

/* Whether the text ends where a statement ends: for a shell that reads line by line. */
bool sv_sql_is_complete(const char *sql);

/* Writes all tables as an ordinary SQLite database. The file must not exist. */
int sv_sql_export(struct sv_sql *q, const char *path, struct sv_err *err);

/* The tables and views that are exported, in order; NULL-terminated. */
const char *const *sv_sql_tables(void);

bool sv_sql_is_built_in(void); /* false: compiled without SQLite */

/* A random trace with an SQL connection, and what statements answer as text; for the tests of
 * SQL. */
#ifndef SV_TESTS_UNIT_SQL_WORLD_H
#define SV_TESTS_UNIT_SQL_WORLD_H

#include "core/base/buf.h"
#include "sql/sql.h"
#include "tests/harness/gen_events.h"

/* Collects results as text: cells separated by '|', rows by newline, results by an empty line. */
struct text_rows {
    struct sv_rows_sink rows;
    struct sv_buf text;
    uint64_t n, fail_at;
};

void text_rows_init(struct text_rows *t);

/* What the SQL answers, or its error. */
char *sql_text(struct sv_sql *q, const char *sql);

struct sql_world {
    struct gen g;
    struct sv_report report;
    struct sv_trace *t;
    struct sv_sql *q;
};

void sql_world_make(struct sql_world *w, const struct gen_options *options);
void sql_world_fini(struct sql_world *w);

#endif

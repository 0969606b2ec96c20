/* The interactive shell of `stave query -i`, and how it and the command run statements. */
#pragma once

#include "cli/rows.h"
#include "files/load.h"
#include "sql/sql.h"

/* Runs statements with Ctrl-C bound to their interruption (SV_EAGAIN). */
int sv_query_run(struct sv_sql *q, const char *sql, struct sv_printer *p, bool is_timed,
                 struct sv_err *err);

/* Reads statements until the end of input or .quit. Errors of statements are printed and do not end
 * it. */
int sv_query_shell(struct sv_sql *q, struct sv_printer *p, bool is_timed, struct sv_err *err);

/* What sv_sql_open() needs to know about a loaded trace; SQLite gets what the limit (0: none)
 * leaves. */
struct sv_sql_options sv_query_options(const struct sv_loaded *l, uint64_t memory_limit);

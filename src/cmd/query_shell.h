/* The interactive shell of `stave query -i`, and how it and the command run statements. */
#ifndef SV_CMD_QUERY_SHELL_H
#define SV_CMD_QUERY_SHELL_H

#include "analysis/sql.h"
#include "cmd/rows.h"

/* Runs statements with Ctrl-C bound to their interruption (SV_EAGAIN). */
int sv_query_run(struct sv_sql *q, const char *sql, struct sv_printer *p, bool is_timed,
                 struct sv_err *err);

/* Reads statements until the end of input or .quit. Errors of statements are printed and do not end it. */
int sv_query_shell(struct sv_sql *q, struct sv_printer *p, bool is_timed, struct sv_err *err);

#endif

/* The two questions of 'stave whatif': jobs of ranks (cmd/whatif.c), units without something. */
#ifndef SV_CMD_WHATIF_H
#define SV_CMD_WHATIF_H

#include "cli/command.h"
#include "store/trace.h"

/* Are these file:GLOB, thread:GLOB, lock:GLOB, cause:CLASS? */
int sv_whatif_check(const struct sv_words *without, struct sv_err *err);
/* Prints what the units take without each of them; the exit code, or negative. unit: the marker of
 * units; NULL: the usual ones. */
int sv_whatif_units(const struct sv_trace *t, const char *path, const struct sv_words *without,
                    const char *unit, bool as_json, struct sv_err *err);

#endif

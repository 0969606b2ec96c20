/* What `stave record` prints last (cmd/record_end.c). */
#ifndef SV_CMD_RECORD_END_H
#define SV_CMD_RECORD_END_H

#include "record/session/recorder.h"

/* What `stave explain` says of a file that a trigger has saved, on standard output. In a process of
 * its own. */
void sv_record_explain_saved(const char *path, const char *cause);
/* `path`: the complete trace. */
void sv_record_end(const struct sv_recorder *r, const char *path);

#endif

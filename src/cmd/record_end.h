/* What `stave record` prints last (cmd/record_end.c). */
#ifndef SV_CMD_RECORD_END_H
#define SV_CMD_RECORD_END_H

#include "record/session/recorder.h"

/* `path`: the complete trace. */
void sv_record_end(const struct sv_recorder *r, const char *path);

#endif

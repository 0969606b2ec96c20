/* The first findings of a trace, for the end of `stave record` (cmd/explain.c). */
#ifndef SV_CMD_BRIEFLY_H
#define SV_CMD_BRIEFLY_H

#include "core/base/err.h"

#include <stddef.h>
#include <stdio.h>

/* Prints at most `most` sentences. */
int sv_explain_briefly(FILE *to, const char *path, size_t most, size_t memory_limit,
                       struct sv_err *err);

#endif

/* Recordings that run: each has a small file in the user's runtime folder, by which `stave status` and `stave stop` find it. */
#ifndef SV_CMD_RUNNING_H
#define SV_CMD_RUNNING_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sv_running {
    pid_t pid;
    int64_t since_s; /* wall clock */
    char name[64];   /* of the recorded command, or what -p said */
    char out[1024];  /* where the trace will be */
};

/* Says that this process records; the returned path (malloc) is to be removed at the end, NULL when nowhere is room for it. */
char *sv_running_tell(const char *name, const char *out);
/* All that run now, oldest first; files of dead ones are removed. Returns how many. */
size_t sv_running_all(struct sv_running **all);

#endif

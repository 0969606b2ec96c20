/* Recordings that run: each has a small file in the user's runtime folder, by which `stave status` and `stave stop` find it. */
#ifndef SV_CMD_RUNNING_H
#define SV_CMD_RUNNING_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sv_running {
    pid_t pid;
    int64_t since_s; /* wall clock */
    char name[64];   /* of the recorded command, or what -p said */
    char out[1024];  /* where the trace will be */
    bool is_ring;    /* with --last: saves on SIGUSR1 */
};

/* Says that this process records; the returned path (malloc) is to be removed at the end, NULL when nowhere is room for it. */
char *sv_running_tell(const char *name, const char *out, bool is_ring);
/* All that run now, oldest first; files of dead ones are removed. Returns how many. */
size_t sv_running_all(struct sv_running **all);
/* Is it called so: by its number, its command or its output? */
bool sv_running_is(const struct sv_running *r, const char *word);

#endif

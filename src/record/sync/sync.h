/* `stave record --sync`: ranks of one job relate their clocks to that of rank 0 by pings, while
 * they record.
 *
 * Rank 0 listens and publishes address and token in a file beside the output that only this user
 * can read; the others find it there. They exchange pings at the start, every half minute and at
 * the end; what they measured becomes metadata of their trace (clocks/relation.h). A rank whose
 * clock is rank 0's own has nothing to measure. Nothing of it stops a recording: where it fails, a
 * line says so.
 *
 *     sv_sync_name() from the command line → sv_sync_start() when the command runs → sv_sync_poll()
 *     now and then → sv_sync_stop() */
#ifndef SV_RECORD_SYNC_SYNC_H
#define SV_RECORD_SYNC_SYNC_H

#include "clocks/relation.h"
#include "core/files/launcher.h"

#include <limits.h>

struct sv_sync_plan {
    struct sv_launcher launcher;
    char path[PATH_MAX]; /* of the file in which rank 0 publishes */
    const char *address; /* where rank 0 listens; NULL: on the loopback device */
};

/* `out` is the pattern of -o as it was given, NULL: none; `out_dir` the folder of --out-dir.
 * SV_EUSAGE where no launcher started several ranks. */
int sv_sync_plan(struct sv_sync_plan *plan, const char *out, const char *out_dir,
                 const char *address, struct sv_err *err);

struct sv_sync_worker;

/* Never NULL. What keeps rank 0 from listening is in `err`, and the worker then does nothing. */
struct sv_sync_worker *sv_sync_start(const struct sv_sync_plan *plan, struct sv_err *err);
/* True once, when the first round is there: `json` has the relation so far. */
bool sv_sync_poll(struct sv_sync_worker *w, struct sv_buf *json);
/* The last round (rank 0: that of the others, for a few seconds at most), then the whole relation.
 * False: there is none; `why` says why, "" where none is needed. Frees the worker. */
bool sv_sync_stop(struct sv_sync_worker *w, struct sv_buf *json, char *why, size_t size);

#endif

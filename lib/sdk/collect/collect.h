/* A collector: one stream of events from every traced process that has STAVE_SESSION=DIR in its
 * environment.
 *
 *     sv_collect_open → per round: sv_collect_round(), sv_pump_round(), sink->flush(),
 *     sv_collect_commit() → sv_collect_close
 *
 * The processes have no writer thread and no output. Their rings are files in DIR, which the
 * collector reads (clients.h). Only a commit frees ring space, so that nothing is lost when the
 * collector is killed: `stave recover DIR` joins its unfinished output and the rings. For commands;
 * the library does not contain it. */
#pragma once

#include "core/stream/stream.h"

struct sv_collect;

/* Makes the directory `dir` (accessible to this user only; NULL: one where recovery looks) and the
 * session in it. `out` and `part` are the final and the temporary name of the output, for recovery;
 * "" where there is none. */
int sv_collect_open(const char *dir, const char *out, const char *part, struct sv_dict *dict,
                    struct sv_report *report, struct sv_collect **to, struct sv_err *err);
const char *sv_collect_dir(const struct sv_collect *c); /* for STAVE_SESSION */
/* next() gives 0 at the end of a round */
struct sv_source *sv_collect_source(struct sv_collect *c);

/* A new round: everything committed by the processes until now. Returns its bytes. With `look` it
 * also checks which processes have ended; without, this is noticed within 100 ms. */
uint64_t sv_collect_round(struct sv_collect *c, bool look);
bool sv_collect_is_pressed(const struct sv_collect *c); /* a ring fills: commit now */
/* All of the rounds so far is in the output, whose length is `bytes`. */
void sv_collect_commit(struct sv_collect *c, uint64_t bytes);

size_t sv_collect_n_running(const struct sv_collect *c); /* processes, as of the last commit */
bool sv_collect_has(const struct sv_collect *c, uint32_t pid); /* its rings are being read */
uint64_t sv_collect_n_ever(const struct sv_collect *c);

/* Marks the session as no longer read, for processes that still run. Removes the directory unless
 * `keep` (the output is incomplete). */
void sv_collect_close(struct sv_collect *c, bool keep);

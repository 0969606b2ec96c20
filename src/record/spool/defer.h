/* Deferring: while the workload makes very many calls, their records are only moved from the
 * kernel's rings to a spool. They are decoded, named and written when the workload is calm and a
 * CPU is idle, when something must be looked up at once, when the spool is as large as it may be,
 * and at the end.
 *
 * Off with --spool 0, and where events are wanted live or the trace's size steers the recording:
 * --last, --rotate, --max-size, --redact. Who opens the growing file (stave view --follow) also
 * gets it live. What is recorded is the same either way. */
#ifndef SV_RECORD_SPOOL_DEFER_H
#define SV_RECORD_SPOOL_DEFER_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct sv_recorder;
struct sv_record_options;

/* The argument of --spool. */
int sv_defer_check(const struct sv_record_options *o, struct sv_err *err);
/* After the output: makes nothing yet. */
void sv_defer_open(struct sv_recorder *r);
void sv_defer_close(struct sv_recorder *r); /* removes the spool unless the output is kept */

/* Instead of a round of the decoder. False: nothing waits any more, and the round is to be decoded.
 * A failure is in *code. */
bool sv_defer_round(struct sv_recorder *r, int64_t now, int *code, struct sv_err *err);
/* A round of the decoder had so many bytes. */
void sv_defer_saw(struct sv_recorder *r, int64_t now, uint64_t bytes);
/* Decodes all that waits, and moves what comes meanwhile. */
int sv_defer_catch_up(struct sv_recorder *r, struct sv_err *err);
/* The recording ends: nothing is deferred from here on. Decodes for some milliseconds; 1: there is
 * more, *done is the part that is done, in per mille. */
int sv_defer_finish_step(struct sv_recorder *r, unsigned *done, struct sv_err *err);

bool sv_defer_is_replaying(const struct sv_recorder *r); /* no commits in the middle of an entry */
/* The growing file is about to be noted as whole up to here. */
void sv_defer_note(struct sv_recorder *r, uint64_t part_bytes);
uint64_t sv_defer_waiting(const struct sv_recorder *r); /* records, about */

#endif

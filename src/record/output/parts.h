/* Long recordings of bounded size: --rotate (parts, each a trace of its own) and --last (a ring of
 * segments, saved by a trigger or at the end).
 *
 * The recorder writes to one sink, which changes its file. The newest one always grows as
 * OUT.part. */
#ifndef SV_RECORD_OUTPUT_PARTS_H
#define SV_RECORD_OUTPUT_PARTS_H

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_recorder;
struct sv_record_options;
struct sv_clocks;

int sv_parts_check(const struct sv_record_options *o, struct sv_err *err);
/* Puts itself before r->output.sink, which is the first file's. Nothing without --rotate and
 * --last. */
int sv_parts_open(struct sv_recorder *r, struct sv_err *err);
/* After each round: begins the next file when it is time. */
int sv_parts_round(struct sv_recorder *r, int64_t now, struct sv_err *err);
/* The last file is closed: gives the result its name and ends the claim. Ring: joins what it
 * holds. */
int sv_parts_finish(struct sv_recorder *r, struct sv_err *err);
/* Saves the ring up to now as `path`, in the background; then sv_triggers_saved(). `cause` may be
 * NULL. Not while another one is being saved. */
struct sv_saved_cause;
int sv_parts_save(struct sv_recorder *r, int64_t now, const char *path,
                  const struct sv_saved_cause *cause, struct sv_err *err);
bool sv_parts_is_saving(const struct sv_recorder *r);
void sv_parts_wait(struct sv_recorder *r); /* until it is saved */
void sv_parts_free(struct sv_recorder *r); /* removes segments unless the output is kept */

uint64_t sv_parts_bytes(const struct sv_recorder *r); /* in the files before the newest one */
/* --rotate: files of this recording so far, and how many of them were removed; else 0. */
void sv_parts_counts(const struct sv_recorder *r, uint64_t *n, uint64_t *n_removed);
/* All snapshots of the recording: the dictionary holds only those of the newest file. To be freed
 * by sv_clocks_fini(). */
void sv_parts_clocks(const struct sv_recorder *r, struct sv_clocks *all);

#endif

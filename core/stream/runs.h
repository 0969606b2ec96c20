/* Runs: sorted sequences of events in an unlinked temporary file, and the merge that reads them
 * back as one.
 *
 *     for each run: sv_runs_add(…) …; sv_runs_end(…);  then sv_runs_open(…); while ((n =
 *                                                      sv_runs_next(…)) > 0) …
 *
 * The disk half of the sorter. Events are written compactly (a begin or end is about ten bytes),
 * because moving bytes to the file and back costs more than packing them. */
#pragma once

#include "core/base/err.h"
#include "core/stream/event.h"

struct sv_runs;

/* The file, where many share one: a merge has thousands of inputs and not so many descriptors. They
 * write one after the other, each whole runs; reading goes side by side. It outlives them. */
struct sv_runs_file;
struct sv_runs_file *sv_runs_file_new(void);
void sv_runs_file_free(struct sv_runs_file *f);

struct sv_runs *sv_runs_new(void);
/* Before the first event. */
void sv_runs_share(struct sv_runs *r, struct sv_runs_file *file);
void sv_runs_free(struct sv_runs *r);
size_t sv_runs_count(const struct sv_runs *r);

/* The file is made in $TMPDIR, else /var/tmp, else /tmp, by the first event. */
int sv_runs_add(struct sv_runs *r, const struct sv_event *e, struct sv_err *err);
int sv_runs_end(struct sv_runs *r, struct sv_err *err);

/* Nothing more is added. Reading takes about memory_bytes, and 64 KiB per run at least. */
int sv_runs_open(struct sv_runs *r, size_t memory_bytes, struct sv_err *err);

/* The next events of all runs, in order, ties by run: how many, 0 at the end, negative on an error.
 * What they point to is valid until the next call. */
int sv_runs_next(struct sv_runs *r, struct sv_event *events, size_t max, struct sv_err *err);

/* Which rank of a job, and which machine, a track belongs to: in the file of one rank, and in one
 * that was merged of many.
 *
 * A file that was recorded under a launcher says so in its metadata (core/stream/launched.h,
 * machine.h). A merge keeps what its inputs disagree on under a label per input ("rank
 * 3/hostname"), and each process has the label of its input (sv_track_info.origin). A label may be
 * made of several: of a file that was merged again. */
#pragma once

#include "core/base/buf.h"
#include "store/trace.h"

struct sv_origin {
    int64_t rank, local_rank, world_size; /* -1: unknown */
    /* Texts of the dictionary; NULL: unknown */
    const char *launcher, *job, *host, *boot;
};

/* Of the process that the track belongs to; of the track at the top where there is no process.
 * Track 0: what holds for the whole trace. */
struct sv_origin sv_origin_of(const struct sv_dict *dict, sv_track track);

int64_t sv_rank_of_track(const struct sv_trace *t, sv_track track);     /* -1: unknown */
const char *sv_host_of_track(const struct sv_trace *t, sv_track track); /* NULL: unknown */
const char *sv_boot_of_track(const struct sv_trace *t, sv_track track);

/* For people, both append: "rank 3 · ", nothing where the rank is not known; the same before the
 * path of a track (sv_track_path()). */
void sv_rank_prefix(const struct sv_dict *dict, sv_track track, struct sv_buf *to);
void sv_track_title(const struct sv_dict *dict, sv_track track, struct sv_buf *to);

/* Metadata of a trace about its launcher: rank, world_size, local_rank, launcher, job. For the
 * recorders. */
#pragma once

#include "core/files/launcher.h"
#include "core/stream/dict.h"

#define SV_META_RANK       "rank"
#define SV_META_LOCAL_RANK "local_rank"
#define SV_META_WORLD_SIZE "world_size"
#define SV_META_LAUNCHER   "launcher"
#define SV_META_JOB        "job"

void sv_dict_describe_launcher(struct sv_dict *dict); /* nothing where there is none */
/* That of one process among others: the metadata have its label before them, "rank 3/rank", which
 * is returned for sv_track_info.origin. */
sv_str sv_dict_describe_rank(struct sv_dict *dict, const struct sv_launcher *launcher);

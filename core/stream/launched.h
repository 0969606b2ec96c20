/* Metadata of a trace about its launcher: rank, world_size, local_rank, launcher, job. For the recorders. */
#ifndef SV_CORE_STREAM_LAUNCHED_H
#define SV_CORE_STREAM_LAUNCHED_H

#include "core/stream/dict.h"

#define SV_META_RANK       "rank"
#define SV_META_LOCAL_RANK "local_rank"
#define SV_META_WORLD_SIZE "world_size"
#define SV_META_LAUNCHER   "launcher"
#define SV_META_JOB        "job"

void sv_dict_describe_launcher(struct sv_dict *dict); /* nothing where there is none */

#endif

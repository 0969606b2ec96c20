/* Writers in files of their own, for the formats that point to them. */
#pragma once

#include "core/stream/writer.h"

extern const struct sv_writer sv_text_writer;         /* text/text_write.c */
extern const struct sv_writer sv_perfetto_gpu_writer; /* perfetto/gpu_write.c */
extern const struct sv_writer sv_kineto_writer;       /* chrome/kineto_write.c */
extern const struct sv_writer sv_ferrum_writer;       /* chrome/ferrum_write.c */
/* serving/batching_write.c: a server's JSON and the summary of its batches */
extern const struct sv_writer sv_batching_writer, sv_batching_summary_writer;

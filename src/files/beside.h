/* Reading and storing at the same time: a source in front of a source. */
#pragma once

#include "store/trace.h"
#include "threads/workers.h"

/* The source for a pump into the trace's sink, without stages between them: another thread runs
 * `source`, which belongs to it from now on. Where there is one thread, or a limit of memory (it
 * counts the dictionary, to which the source adds), `source` itself. */
struct sv_source *sv_beside(struct sv_source *source, struct sv_trace *trace,
                            struct sv_workers *workers, size_t memory_limit_bytes);

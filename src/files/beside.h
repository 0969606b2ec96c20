/* Reading and storing at the same time: see sv_pump_beside(). */
#ifndef SV_FILES_BESIDE_H
#define SV_FILES_BESIDE_H

#include "store/trace.h"
#include "threads/workers.h"

/* Can the source's events wait for the store while it reads on? Not where there is one thread, or a limit of memory: that counts the dictionary,
 * to which the source adds. */
bool sv_can_pump_beside(const struct sv_source *source, const struct sv_workers *workers,
                        size_t memory_limit_bytes);

/* As sv_pump_into() with the sink of a trace, but one thread runs the source while another one writes to the store. */
int sv_pump_beside(struct sv_source *source, struct sv_trace *trace, struct sv_workers *workers,
                   const struct sv_pump_options *options, struct sv_err *err);

#endif

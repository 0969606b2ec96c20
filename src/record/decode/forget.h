/* Frees what is kept of processes and threads that ended: their entries in the table, their tracks
 * in the dictionary, and what the sink keeps by their numbers. */
#ifndef SV_RECORD_DECODE_FORGET_H
#define SV_RECORD_DECODE_FORGET_H

#include "core/stream/stream.h"
#include "record/decode/tree.h"

/* Those that ended before this time: late records need them for a while. `keeps` (may be NULL) says
 * whose tracks are still in use by number. No batch of events may be under way. A sink that needs
 * all rows at the end keeps them; the table is cut all the same. */
void sv_forget_dead(struct sv_tree *t, int64_t before_ns, bool (*keeps)(void *ctx, uint32_t pid),
                    void *ctx, struct sv_sink *sink);

#endif

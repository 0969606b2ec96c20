/* What the decoder knows of processes, as bytes: the first entry of a spool, from which the records
 * after it can be decoded by another process. */
#ifndef SV_RECORD_SPOOL_PROCESSES_H
#define SV_RECORD_SPOOL_PROCESSES_H

#include "core/base/buf.h"
#include "record/decode/inodes.h"
#include "record/decode/tree.h"

void sv_processes_put(struct sv_buf *to, const struct sv_tree *t, const struct sv_inodes *x);
void sv_processes_put_one(struct sv_buf *to, const struct sv_tree *t, uint32_t pid);
/* Into a new table, or added to it. False: damaged; what came before the damage is there. */
bool sv_processes_get(const uint8_t *bytes, size_t n, struct sv_tree *t, struct sv_inodes *x);

#endif

/* What a killed recorder left in its spool: records that were not decoded yet, as a source of
 * events for `stave recover`. */
#ifndef SV_RECORD_SPOOL_LEFT_H
#define SV_RECORD_SPOOL_LEFT_H

#include "core/files/claim.h"
#include "core/stream/stream.h"

/* Bytes of records beside this growing file, of which `part_bytes` are whole; 0: none. `path` is
 * set to the name of the spool, "": there is no file. */
uint64_t sv_spool_left_bytes(const struct sv_claim *c, uint64_t part_bytes, char *path,
                             size_t size);
/* What the source gives (enum sv_shape). */
extern const unsigned sv_spool_left_gives;
int sv_spool_left_source(const char *path, uint64_t part_bytes, struct sv_dict *dict,
                         struct sv_report *report, struct sv_source **out, struct sv_err *err);
/* Removes the file. */
void sv_spool_left_remove(const char *path);

#endif

/* The end of a recording that is still being written: what came last can be read without all that came before. */
#ifndef SV_FILES_TAIL_H
#define SV_FILES_TAIL_H

#include "files/open.h"

/* Opens the last `bytes` of a Perfetto file, from the next resync point on (core/perfetto/stave.h). A smaller file, one without resync points
 * there and one of another format are opened as a whole. */
int sv_open_tail(const char *path, uint64_t bytes, struct sv_dict *dict, struct sv_opened *o,
                 struct sv_err *err);

#endif

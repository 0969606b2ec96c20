/* The end of a recording that is still being written: what came last can be read without all that
 * came before. */
#pragma once

#include "files/open.h"

/* Opens the last `bytes` of a Perfetto file, from the next resync point on (core/perfetto/stave.h).
 * A smaller file, one without resync points there and one of another format are opened as a
 * whole. */
int sv_open_tail(const char *path, uint64_t bytes, struct sv_dict *dict, struct sv_opened *o,
                 struct sv_err *err);

/* The position of the first resync point from `at` on; false: there is none. */
bool sv_find_resync(int fd, uint64_t at, uint64_t *found);
bool sv_has_resync(int fd, uint64_t at); /* one is exactly there */

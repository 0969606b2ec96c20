/* Paths once per descriptor (`stave record --paths once`): a stage that leaves them out, and the
 * readers' way to fill them in again.
 *
 * A system call with `fd` and `path` says which file the descriptor of this process is; later ones
 * with only `fd` mean the same file, until another one names a file or the descriptor is closed. An
 * empty `path` says that the file is not known. Both sides keep the same table, in the order of the
 * file, so that what is left out is exactly what will be filled in. */
#pragma once

#include "core/stream/stream.h"

/* Under this key the metadata of a trace says that it was written so, with this value. */
#define SV_PATHS_KEY  "paths"
#define SV_PATHS_ONCE "once"

struct sv_once_paths;

struct sv_once_paths *sv_once_paths_new(struct sv_dict *dict);
void sv_once_paths_free(struct sv_once_paths *p);

void sv_once_paths_leave_out(struct sv_once_paths *p, struct sv_batch *b);
void sv_once_paths_fill_in(struct sv_once_paths *p, struct sv_batch *b);
void sv_once_paths_new_file(struct sv_once_paths *p); /* which must name everything again */

/* For readers, with each piece of metadata: true if it says that paths are left out. *p is then
 * made, if it was not yet, and the dictionary says otherwise, because a writer of these events
 * writes all paths. */
bool sv_once_paths_asked(struct sv_once_paths **p, struct sv_dict *dict, const char *key,
                         const char *value, size_t len);

/* The stage of a recording. Its close() leaves `next` open, which must stay until then. */
struct sv_sink *sv_once_paths_sink(struct sv_dict *dict, struct sv_sink *next);
void sv_once_paths_sink_new_file(struct sv_sink *s);

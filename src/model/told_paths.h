/* Paths that a recording tells once per descriptor (`stave record --paths once`), filled in where they were left out.
 *
 * A system call with `fd` and `path` tells which file the descriptor of this process is; later ones with `fd` alone mean the same file, until
 * another one tells anew or the descriptor is closed. An empty `path` says that the file is not known. The order is that of the file. */
#ifndef SV_MODEL_TOLD_PATHS_H
#define SV_MODEL_TOLD_PATHS_H

#include "core/stream/stream.h"

/* Under this key the metadata of a trace says that it was written so, with this value. */
#define SV_PATHS_KEY  "paths"
#define SV_PATHS_ONCE "once"

/* Takes the source. Traces that do not say so pass as they are; what was filled in is no longer said to be left out. */
struct sv_source *sv_told_paths_source(struct sv_source *inner);

#endif

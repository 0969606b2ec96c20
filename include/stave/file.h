/*
 * Stave: trace files with explicit times, for simulators, importers and programs that write several
 * traces at once.
 *
 * A file is independent of the session of stave.h: it has no rings and no thread, and it is always
 * on. Every event carries its time in nanoseconds from any origin. Events may come in any order and
 * slices may overlap (they get sibling rows). The file is sorted when it is closed, in bounded
 * memory. These functions are in libstave.a and in the Python package, but not in libstave.so,
 * which stays small.
 *
 * A file may be used from several threads; calls for the same file wait for each other.
 */
#ifndef STAVE_FILE_H
#define STAVE_FILE_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_file;

/* Opens a file. The suffix selects the format: .pftrace, .perfetto-trace, .perfetto, .pb, .proto
 * or .json; a further .gz or .zst compresses the whole file. The file appears under its name
 * when it is complete, and replaces an earlier one only then. `compress` ("gzip", "zstd")
 * compresses the packets of a Perfetto file; NULL means no compression. Returns NULL and a
 * message on failure. */
STAVE_API struct stave_file *stave_file_open(const char *path, const char *compress, char *message,
                                             size_t message_size);
/* Completes the file and frees it. Returns 0, or a negative number and a message; no file is
 * left then. */
STAVE_API int stave_file_close(struct stave_file *f, char *message, size_t message_size);

/* Tracks are numbers that are valid for this file. The first call makes the track, later ones
 * return the same number. Parent 0 is the top level. */
STAVE_API uint32_t stave_file_process(struct stave_file *f, int64_t pid, const char *name);
STAVE_API uint32_t stave_file_thread(struct stave_file *f, int64_t pid, int64_t tid,
                                     const char *name);
STAVE_API uint32_t stave_file_track(struct stave_file *f, uint32_t parent, const char *name);
STAVE_API uint32_t stave_file_counter(struct stave_file *f, uint32_t parent, const char *name,
                                      const char *unit);

/* Adds an event of kind COMPLETE, INSTANT (at start_ns) or COUNTER (start_ns and value) on a
 * track of this file. start_ns may be negative. Returns 0, or a negative number: the kind or
 * track is not valid, the slice ends past INT64_MAX, or a write has failed (then all later calls
 * fail as well). */
STAVE_API int stave_file_emit(struct stave_file *f, const struct stave_event *event);

#ifdef __cplusplus
}
#endif

#endif

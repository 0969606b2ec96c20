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
 * compresses the packets of a Perfetto file; NULL means no compression. */
STAVE_API struct stave_file *stave_file_open(const char *path, const char *compress,
                                             struct stave_error *error);
/* Opens a file with the JSON that TraceSmith writes (docs/gpu.md), whatever its suffix; .json.gz
 * and .json.zst are compressed. It holds the work of devices and counters only, and is made in
 * memory. C++: perfetto_exporter.hpp. */
enum stave_tracesmith {
    STAVE_TRACESMITH_TRACKS = 1, /* the argument `track_name` */
    STAVE_TRACESMITH_FLOWS = 2   /* correlation numbers and arrows */
};
STAVE_API struct stave_file *stave_file_open_tracesmith(const char *path, unsigned parts,
                                                        struct stave_error *error);
/* Says that no event that begins before before_ns will come: those that do are refused from now
 * on, and those that came are written to the growing file (PATH.PID.N.part), which can be read up
 * to there. STAVE_EOUTPUT: a write has failed; STAVE_EUSAGE: the file is made in memory. */
STAVE_API int stave_file_flush(struct stave_file *f, int64_t before_ns);
/* Completes the file and frees it. On failure no file is left. */
STAVE_API int stave_file_close(struct stave_file *f, struct stave_error *error);
/* Frees the file, and leaves none. */
STAVE_API void stave_file_discard(struct stave_file *f);

/* Tracks are numbers that are valid for this file. The first call makes the track, later ones
 * return the same number. Parent 0 is the top level. */
STAVE_API uint32_t stave_file_process(struct stave_file *f, int64_t pid, const char *name);
STAVE_API uint32_t stave_file_thread(struct stave_file *f, int64_t pid, int64_t tid,
                                     const char *name);
STAVE_API uint32_t stave_file_track(struct stave_file *f, uint32_t parent, const char *name);
/* A row that viewers and the analysis recognise as a device or as one of its streams. */
STAVE_API uint32_t stave_file_track_as(struct stave_file *f, enum stave_row row, uint32_t parent,
                                       const char *name);
STAVE_API uint32_t stave_file_counter(struct stave_file *f, uint32_t parent, const char *name,
                                      const char *unit);

/* Adds an entry to the metadata of the file. */
STAVE_API int stave_file_metadata(struct stave_file *f, const char *key, const char *value);

/* Adds an event of kind COMPLETE, INSTANT (at start_ns) or COUNTER (start_ns and value) on a
 * track of this file. start_ns may be negative. STAVE_EUSAGE: the kind or track is not valid, the
 * slice ends past INT64_MAX, or it begins before the time of a flush. STAVE_EOUTPUT and
 * STAVE_EMEMORY: a write has failed; all later calls fail as well. */
STAVE_API int stave_file_emit(struct stave_file *f, const struct stave_event *event);

#ifdef __cplusplus
}
#endif

#endif

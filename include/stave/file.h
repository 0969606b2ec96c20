/*
 * Files with explicit times: for simulators, importers and programs that write several traces at once.
 *
 * Apart from the session of stave.h: no rings, no thread, nothing is switched on. Every call names its time in nanoseconds from
 * any origin; events may come in any order and slices may overlap (they get sibling rows); all are sorted when the file is closed,
 * in bounded memory. Part of libstave.a and of the Python package; libstave.so leaves it out to stay small.
 *
 * A file may be used from several threads; calls for one file wait for each other.
 */
#ifndef STAVE_FILE_H
#define STAVE_FILE_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_file;

/* The suffix decides: .pftrace, .perfetto-trace, .perfetto, .pb, .proto or .json; .gz or .zst behind it compresses the whole file. The file
 * appears under its name when it is complete;
 * what was there before is replaced then. `compress` ("gzip", "zstd") packs a Perfetto file; NULL: not. NULL and a message on failure. */
STAVE_API struct stave_file *stave_file_open(const char *path, const char *compress, char *message,
                                             size_t message_size);
/* 0, or negative and a message: nothing of the file is left then. Frees it either way. */
STAVE_API int stave_file_close(struct stave_file *f, char *message, size_t message_size);

/* Tracks are numbers of this file, made at the first call. 0 as a parent: top level. */
STAVE_API uint32_t stave_file_process(struct stave_file *f, int64_t pid, const char *name);
STAVE_API uint32_t stave_file_thread(struct stave_file *f, int64_t pid, int64_t tid,
                                     const char *name);
STAVE_API uint32_t stave_file_track(struct stave_file *f, uint32_t parent, const char *name);
STAVE_API uint32_t stave_file_counter(struct stave_file *f, uint32_t parent, const char *name,
                                      const char *unit);

/* COMPLETE, INSTANT (start_ns) and COUNTER (start_ns, value) are understood; track is one of this file. Any start_ns will do, also
 * one before zero. 0, or negative: a bad kind or track, a slice whose end is past INT64_MAX, or a write that failed (and all after it). */
STAVE_API int stave_file_emit(struct stave_file *f, const struct stave_event *event);

#ifdef __cplusplus
}
#endif

#endif

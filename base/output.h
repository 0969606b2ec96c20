/* Output: bytes to a file, standard output or memory, through a large buffer, optionally compressed.
 *
 * A file grows under a temporary name beside its final one and is renamed by sv_output_close(), so that a reader never
 * meets half a file that looks whole; sv_output_discard() removes it. What is no regular file (a pipe, a device) is always
 * written in place. Errors are sticky: write freely, the first failure is told by close (or sv_output_flush). A closed
 * pipe is an error like any other as long as the program ignores SIGPIPE. There is no fsync: a file survives the
 * program's death, not necessarily the machine's. */
#ifndef SV_BASE_OUTPUT_H
#define SV_BASE_OUTPUT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_compression { SV_PLAIN, SV_GZIP, SV_ZSTD };

enum sv_output_mode {
    SV_OUTPUT_RENAME, /* temporary, renamed at close */
    SV_OUTPUT_DIRECT /* written in place: pipes, devices, growing files that are valid after every flush */
};

struct sv_buf;
struct sv_output;

/* path "-" is standard output. zstd where it was not built in: SV_EUSAGE with a clear message. */
int sv_output_open(const char *path, enum sv_output_mode mode, enum sv_compression compression,
                   struct sv_output **out, struct sv_err *err);
int sv_output_open_memory(struct sv_output **out); /* for tests: see sv_output_memory() */
const uint8_t *sv_output_memory(const struct sv_output *o, size_t *len);
/* Appends to the caller's buffer, which stays after close: for those who give the output away to a sink. */
int sv_output_open_buf(struct sv_buf *to, enum sv_compression compression, struct sv_output **out,
                       struct sv_err *err);

void sv_output_write(struct sv_output *o, const void *bytes, size_t n);
int sv_output_flush(struct sv_output *o, struct sv_err *err);
/* The first failure so far, without flushing: cheap enough for every batch. */
int sv_output_failure(const struct sv_output *o, struct sv_err *err);
/* The name of the file that is being written, for a sink that must read it again; NULL where that cannot be: a pipe, memory, a
 * compressed file. */
const char *sv_output_file(const struct sv_output *o);
uint64_t sv_output_bytes(const struct sv_output *o); /* written so far, before compression */

int sv_output_close(struct sv_output *o,
                    struct sv_err *err);     /* flush, rename to the final name, free */
void sv_output_discard(struct sv_output *o); /* remove what was written, free */

/* For sinks. pass_on: writes what a buffer holds and empties it. end: discards after a failure, closes otherwise. */
void sv_output_pass_on(struct sv_output *o, struct sv_buf *b);
int sv_output_end(struct sv_output *o, bool failed, struct sv_err *err);

#endif

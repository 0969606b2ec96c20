/* Output: bytes to a file, standard output or memory, through a large buffer, optionally
 * compressed.
 *
 * A file grows under a temporary name beside its final one and is renamed by sv_output_close(), so
 * that a reader never meets half a file that looks whole; sv_output_discard() removes it. What is
 * not a regular file (a pipe, a device) is always written in place. Files of recordings grow under
 * a claimed name and stay (claim.h). Errors are sticky: write freely, the first failure is reported
 * by close (or sv_output_flush), with the name of the file. A closed pipe and the limit of a file's
 * size are errors like any other as long as the program ignores SIGPIPE and SIGXFSZ; a closed
 * standard output is SV_EPIPE. There is no fsync: a file survives the end of the program, not
 * necessarily that of the machine. */
#pragma once

#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_compression { SV_PLAIN, SV_GZIP, SV_ZSTD };

/* "none", "gzip" or "zstd"; false: none of these. */
bool sv_compression_named(const char *name, enum sv_compression *out);

enum sv_output_mode {
    SV_OUTPUT_RENAME, /* temporary, renamed at close */
    SV_OUTPUT_DIRECT, /* written in place: pipes, devices */
    /* a growing file: new, no link, never removed here. After a failure it is whole up to the last
     * successful flush */
    SV_OUTPUT_GROW
};

struct sv_buf;
struct sv_output;

/* path "-" is standard output. zstd where it was not built in: SV_EUSAGE with a clear message. */
int sv_output_open(const char *path, enum sv_output_mode mode, enum sv_compression compression,
                   struct sv_output **out, struct sv_err *err);
/* Continues a growing file of this user at `offset`; what was after that is cut off when it is
 * closed. Kept like SV_OUTPUT_GROW. */
int sv_output_open_at(const char *path, uint64_t offset, struct sv_output **out,
                      struct sv_err *err);
/* A file that grows keeps so many bytes after its end reserved, so that it can still be ended in
 * order when the disk is full, or its size limit or a quota is reached: writing fails before that.
 * Without effect where the file system cannot do it. Fails where there is no space even now. */
int sv_output_reserve(struct sv_output *o, size_t bytes, struct sv_err *err);
int sv_output_open_memory(struct sv_output **out); /* for tests: see sv_output_memory() */
const uint8_t *sv_output_memory(const struct sv_output *o, size_t *len);
/* Appends to the caller's buffer, which stays after close: for those who give the output away to a
 * sink. */
int sv_output_open_buf(struct sv_buf *to, enum sv_compression compression, struct sv_output **out,
                       struct sv_err *err);

void sv_output_write(struct sv_output *o, const void *bytes, size_t n);
int sv_output_flush(struct sv_output *o, struct sv_err *err);
/* The first failure so far, without flushing: cheap enough for every batch. */
int sv_output_failure(const struct sv_output *o, struct sv_err *err);
/* The name of the file that is being written, for a sink that must read it again; NULL where that
 * cannot be: a pipe, memory, a compressed file. */
const char *sv_output_file(const struct sv_output *o);
uint64_t sv_output_bytes(const struct sv_output *o); /* written so far, before compression */
/* A growing file: its length, buffered bytes not included. Counted here: its name may lead
 * elsewhere by now, or nowhere. */
uint64_t sv_output_position(const struct sv_output *o);

int sv_output_close(struct sv_output *o,
                    struct sv_err *err);     /* flush, rename to the final name, free */
void sv_output_discard(struct sv_output *o); /* remove what was written, free */

/* For sinks. pass_on: writes what a buffer holds and empties it. end: discards after a failure,
 * closes otherwise. */
void sv_output_pass_on(struct sv_output *o, struct sv_buf *b);
int sv_output_end(struct sv_output *o, bool failed, struct sv_err *err);

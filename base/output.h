/* Output: bytes to a file, standard output or memory, through a large buffer, optionally compressed.
 *
 * A file grows under a temporary name beside its final one and is renamed by sv_output_close(), so that a reader never
 * meets half a file that looks whole; sv_output_discard() removes it. Errors are sticky: write freely, the first
 * failure is told by close (or sv_output_flush). */
#ifndef SV_BASE_OUTPUT_H
#define SV_BASE_OUTPUT_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum sv_compression { SV_PLAIN, SV_GZIP, SV_ZSTD };

enum sv_output_mode {
    SV_OUTPUT_RENAME, /* temporary, renamed at close */
    SV_OUTPUT_DIRECT /* written in place: pipes, devices, growing files that are valid after every flush */
};

struct sv_output;

/* path "-" is standard output. zstd where it was not built in: SV_EUSAGE with a clear message. */
int sv_output_open(const char *path, enum sv_output_mode mode, enum sv_compression compression,
                   struct sv_output **out, struct sv_err *err);
int sv_output_open_memory(struct sv_output **out); /* for tests: see sv_output_memory() */
const uint8_t *sv_output_memory(const struct sv_output *o, size_t *len);

void sv_output_write(struct sv_output *o, const void *bytes, size_t n);
int sv_output_flush(struct sv_output *o, struct sv_err *err);
uint64_t sv_output_bytes(const struct sv_output *o); /* written so far, before compression */

int sv_output_close(struct sv_output *o,
                    struct sv_err *err);     /* flush, sync to the final name, free */
void sv_output_discard(struct sv_output *o); /* remove what was written, free */

#endif

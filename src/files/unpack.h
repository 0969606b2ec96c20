/* Unpacking a compressed input on several threads, where it has several gzip members or zstd
 * frames. */
#pragma once

#include "core/files/input.h"

struct sv_workers;

/* Before the first fill. An input of which nothing can be unpacked beside, and a pipe, stays as it
 * is. The threads are used until sv_input_unpack_end(). part_bytes: stored bytes that a thread
 * takes at a time; 0: a good number. For tests. */
void sv_unpack_beside(struct sv_input *in, struct sv_workers *workers, size_t part_bytes);

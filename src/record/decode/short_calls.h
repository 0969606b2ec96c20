/* Short system calls, summed: how often a process made a call on a file within a second, with how
 * many bytes, for how long. Instead of an event each (`--sum-calls`, `--always`).
 *
 *     sv_short_calls_add() per call (probes/syscalls.c) → sv_short_calls_source(), pulled now and
 *     then by the recorder: all sums that are complete, and at the end the others
 *
 * Counts and bytes are exact. When very many files are used within a second, those that come last
 * are summed under no path. */
#ifndef SV_RECORD_DECODE_SHORT_CALLS_H
#define SV_RECORD_DECODE_SHORT_CALLS_H

#include "core/stream/stream.h"

struct sv_decode;
struct sv_short_calls;

struct sv_short_call {
    sv_track process;
    sv_str name;      /* of the call */
    const char *path; /* NULL: it has no file */
    size_t path_len;
    int64_t start_ns, end_ns;
    uint64_t bytes;
    bool failed;
};

struct sv_short_calls *sv_short_calls_new(struct sv_decode *decode);
void sv_short_calls_free(struct sv_short_calls *s);
void sv_short_calls_add(struct sv_short_calls *s, const struct sv_short_call *c);
/* How many calls were added so far; of NULL: none. */
uint64_t sv_short_calls_summed(const struct sv_short_calls *s);
/* Gives the sums of all seconds that ended before `until_ns`. */
struct sv_source *sv_short_calls_source(struct sv_short_calls *s, int64_t until_ns);

#endif

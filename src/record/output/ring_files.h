/* The files of a ring (`stave record --last`): segments OUT.ring-NNNN, and OUT.ring-NNNN.open with
 * what was open when each began.
 *
 * The recorder names them; recovery joins those that a killed recorder left:
 *
 *     if (claim.segment) fd = sv_ring_left_join(…) → read it in place of the growing file →
 *     sv_ring_left_remove() */
#ifndef SV_RECORD_OUTPUT_RING_FILES_H
#define SV_RECORD_OUTPUT_RING_FILES_H

#include "core/files/claim.h"
#include "core/stream/writer.h"

enum { SV_RING_PATH_MAX = SV_CLAIM_PATH_MAX + 32 };

/* What is joined has numbers of its own (struct sv_write_options): a segment, the one file with
 * what was open, and the end of a file that was cut. There are never so many segments at once. */
enum {
    SV_RING_SEGMENTS_MAX = SV_JOINED_MAX - 2,
    SV_RING_JOINED_OPEN = SV_RING_SEGMENTS_MAX,
    SV_RING_JOINED_END
};
static inline uint32_t sv_ring_joined(uint32_t number)
{
    return number % SV_RING_SEGMENTS_MAX;
}

void sv_ring_segment_name(const char *out, uint32_t number, bool is_open,
                          char path[static SV_RING_PATH_MAX]);
/* The number after those that are there. */
uint32_t sv_ring_next_number(const char *out);

/* Segments of the claim and `part_bytes` of its growing file as one trace: a descriptor of a file
 * without a name that is `bytes` long, or negative. Only files of this user are read. */
int sv_ring_left_join(const struct sv_claim *c, uint64_t part_bytes, uint64_t *bytes,
                      struct sv_err *err);
void sv_ring_left_remove(const struct sv_claim *c); /* the segments */

#endif

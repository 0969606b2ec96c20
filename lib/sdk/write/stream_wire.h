/* The wire between a traced program (sdk/write/stream.c) and `stave listen` (listen/sender.c),
 * version 2.
 *
 *   program    STAVE 2 TOKEN\n          the greeting; the token may be empty
 *   listener   OK\n                     or NO REASON\n, and the connection ends
 *   program    frames: a head of SV_FRAME_HEAD bytes, then its bytes, which are whole Perfetto
 *              packets
 *   listener   after each frame 8 bytes: how many bytes of frames, heads included, it has taken so
 *              far
 *
 * A frame is taken when it is in the listener's spool, or counted there as lost. The program keeps
 * in its rings what is not taken yet, so that whichever of the two is killed, every recorded event
 * is in a file or in a count. A program sends one frame and waits for the answer.
 *
 * The head: three numbers of 8 bytes. `bytes` follow it; `events` is the number of events in all
 * frames so far with this one (slices, instants, counters, and what earlier losses count); `flags`
 * has SV_FRAME_LAST in the frame with which the program ends. A connection that ends without it was
 * cut. All numbers are little endian. */
#pragma once

#include "core/files/token.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define SV_GREETING "STAVE 2 "
enum {
    SV_REPLY_MAX = 256, /* with its newline */
    SV_FRAME_HEAD = 24,
    SV_TAKEN_BYTES = 8
};
#define SV_FRAME_BYTES_MAX ((uint64_t)1 << 30)
#define SV_FRAME_LAST      1u

struct sv_frame {
    uint64_t bytes, events, flags;
};

static inline void sv_number_put(uint8_t to[8], uint64_t v)
{
    v = htole64(v);
    memcpy(to, &v, sizeof v);
}

static inline uint64_t sv_number_get(const uint8_t from[8])
{
    uint64_t v;
    memcpy(&v, from, sizeof v);
    return le64toh(v);
}

static inline void sv_frame_put(uint8_t to[SV_FRAME_HEAD], const struct sv_frame *f)
{
    sv_number_put(to, f->bytes);
    sv_number_put(to + 8, f->events);
    sv_number_put(to + 16, f->flags);
}

static inline struct sv_frame sv_frame_get(const uint8_t from[SV_FRAME_HEAD])
{
    return (struct sv_frame){.bytes = sv_number_get(from),
                             .events = sv_number_get(from + 8),
                             .flags = sv_number_get(from + 16)};
}

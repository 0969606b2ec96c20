/* Perfetto packets before their turn: frames, and blocks of packets that were decoded as far as
 * that needs no state. Part of state.h. */
#pragma once

#include "core/base/wire.h"
#include "core/files/input.h"
#include "core/stream/event.h"

#define SV_PF_PACKET_MAX ((size_t)64 << 20) /* a longer one is a damaged length */

/* ---- frames ---- */

#define SV_PF_HEADER_MAX 11

enum sv_pf_frame_state { SV_PF_FRAME_WHOLE, SV_PF_FRAME_SHORT, SV_PF_FRAME_BAD };

struct sv_pf_frame {
    size_t header, len; /* SHORT: as far as they are known */
};

static inline enum sv_pf_frame_state sv_pf_frame_at(const uint8_t *p, size_t have,
                                                    struct sv_pf_frame *f)
{
    if (__builtin_expect(have >= 2 && p[0] == 0x0a && p[1] < 0x80, 1)) {
        f->header = 2;
        f->len = p[1];
        return f->len <= have - 2 ? SV_PF_FRAME_WHOLE : SV_PF_FRAME_SHORT;
    }
    *f = (struct sv_pf_frame){.header = 2};
    if (have == 0)
        return SV_PF_FRAME_SHORT;
    if (p[0] != 0x0a)
        return SV_PF_FRAME_BAD;
    struct sv_pb w = sv_pb_at(p + 1, have - 1);
    uint64_t len;
    if (!sv_pb_varint(&w, &len)) {
        f->header = SV_PF_HEADER_MAX;
        return have < SV_PF_HEADER_MAX ? SV_PF_FRAME_SHORT : SV_PF_FRAME_BAD;
    }
    if (len > SV_PF_PACKET_MAX)
        return SV_PF_FRAME_BAD;
    f->header = (size_t)(w.p - p);
    f->len = (size_t)len;
    return f->len <= have - f->header ? SV_PF_FRAME_WHOLE : SV_PF_FRAME_SHORT;
}

/* ---- blocks ---- */

enum sv_pf_quick_kind {
    SV_PF_QUICK_EVENT,   /* an everyday TrackEvent: all that is in the packet is here */
    SV_PF_QUICK_PACKET,  /* any other: its bytes */
    SV_PF_QUICK_DAMAGED, /* a field is malformed */
};

enum { SV_PF_QUICK_SEQUENCE = 1, SV_PF_QUICK_TRACK = 2, SV_PF_QUICK_CATEGORY = 4 };

/* Beside those of event.h in the arguments of a quick record, whose keys are interned numbers. */
enum { SV_PF_QUICK_TEXT_IID = 128, SV_PF_QUICK_COUNTER, SV_PF_QUICK_DOUBLE_COUNTER };

/* A packet, decoded as far as that is possible without the state of its sequence. */
struct sv_pf_quick {
    union {
        uint64_t timestamp;
        const uint8_t *bytes; /* of packets */
    };
    union {
        uint64_t track_uuid;
        size_t len;
    };
    uint32_t at; /* its frame: bytes from the beginning of the block */
    uint32_t seq_id, name_iid, category_iid;
    uint16_t n_args;
    uint8_t kind; /* enum sv_pf_quick_kind */
    uint8_t type, has, flags;
};

struct sv_pf_unpacked; /* of formats/perfetto/read_block.c */

struct sv_pf_block {
    struct sv_input_block in; /* whole packets */
    size_t n_frames;
    struct sv_pf_quick *records;
    size_t n_records, cap_records;
    struct sv_arg *args; /* of all records, in their order */
    size_t n_args, cap_args;
    struct sv_pf_unpacked *unpacked; /* packets that were compressed; NULL: none yet */
    size_t next, next_arg;           /* what is read next */
};

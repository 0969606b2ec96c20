/* Rebasing: events of one dictionary translated to another, so that inputs which were read
 * separately can be in one trace.
 *
 * Strings and tracks are translated on first use and remembered by number. Identities that only
 * mean something within their input are made unique:
 *   - pids: processes and threads go to the pid space that the input was given; inputs that share
 *   one meet there
 *   - tracks: those whose uuid follows from their path follow their parent; any other uuid is mixed
 *   with the input's salt
 *   - flow and correlation numbers: moved apart by group, also those in Kineto's argument
 *   "correlation". Numbers that ranks agree on stay: those of
 *     MPI's events with SV_FLOW_SHARED on top. */
#pragma once

#include "core/base/map.h"
#include "core/stream/batch.h"
#include "core/stream/dict.h"
#include "store/relate.h"

/* The highest byte of a flow number that is the same on all ranks, in events of the categories of
 * communication (comm_words.h). */
#define SV_FLOW_SHARED UINT64_C(0xd5)
bool sv_flow_is_shared(const struct sv_dict *d, sv_str cat, uint64_t id);

struct sv_rebase_track {
    sv_track to;
    int32_t revision; /* of the track when it was described last */
    bool is_owner;    /* it was made here, so this input describes it */
};

struct sv_rebase {
    const struct sv_dict *from;
    struct sv_dict *to;
    uint32_t space;      /* added to the space of each track */
    uint64_t salt;       /* 0: uuids stay as they are */
    uint32_t flow_group; /* 0: flow and correlation numbers stay as they are */
    sv_str label;        /* in `to`: described on processes that have no description; 0: none */
    /* in `to`: what processes and tracks without a parent have as their origin; 0: none. See
     * ranks.h. */
    sv_str origin;
    bool has_rank; /* the metadata of that origin name a rank */
    struct sv_shift shift;
    sv_str correlation; /* that string in `from`, as of n_searched strings */
    uint32_t n_searched;
    sv_str *strings; /* by number in `from`; 0: not met yet */
    size_t n_strings, cap_strings;
    struct sv_rebase_track *tracks;
    size_t n_tracks, cap_tracks;
    /* process and thread uuids that have been given away, with the track they went to */
    struct sv_map identities;
};

/* The caller sets the public fields (from … shift) and zeroes the rest; fini frees the shift
 * too. */
void sv_rebase_fini(struct sv_rebase *r);

/* Only the times: what a merge compares before it takes the event. False: it begins or ends at no
 * time. */
bool sv_rebase_time(struct sv_rebase *r, struct sv_event *e);

/* Appends the event to the batch, which must have space, with its arguments copied. Its times are
 * taken as converted already. */
void sv_rebase_event(struct sv_rebase *r, const struct sv_event *e, struct sv_batch *b);

/* Slices of named tracks: which begin an end closes, and the lane of the track that both are on.
 *
 *     sv_tracks_init → per plan: sv_tracks_plan(), then sv_tracks_take() for each such record in
 *     the order of its ring → sv_tracks_fini
 *
 * Several threads, and several tasks of one thread, may have slices open on one track. An end names
 * its begin (STAVE_I_SLICE) or closes the newest slice that its own thread has open on the track,
 * else the newest of any thread. Slices that cross, or of which it is not sure that they will not,
 * are put on different lanes (core/stream/lanes.h). */
#pragma once

#include "core/base/map.h"
#include "core/stream/lanes.h"
#include "sdk/drain/drain.h"

struct sv_drain_names;

/* One that lay inside of a slice that has ended before it: it continues on another lane. */
struct sv_track_moved {
    struct sv_track_moved *next;
    sv_track from, to;
    sv_str name, cat;
};

/* A begin or an end of the plan. */
struct sv_track_edge {
    uint64_t pos, id; /* of the record; of the slice, 0: the end does not say */
    int64_t ns;
    uint64_t context; /* whose, within its thread: STAVE_I_OWNER */
    sv_track track;   /* in: the user's; out: the lane, 0: there is nothing to write */
    uint32_t number;  /* the SDK's, of the track */
    uint32_t ring, partner;
    bool is_begin, is_orphan;
    struct sv_lane_loose *open;   /* begin: stays open; end: begun in an earlier plan */
    struct sv_lane_row *row;      /* of an end that is written */
    struct sv_track_moved *moved; /* end */
    uint32_t n_moved;
};
enum { SV_MOVED_MAX = 100 };

struct sv_tracks {
    struct sv_lanes *lanes;
    uint64_t source;              /* which of the dictionary's */
    struct sv_map open;           /* id → struct sv_lane_loose * */
    struct sv_map begun;          /* id → index of its begin in the plan */
    struct sv_map ring_by_number; /* → index */
    struct sv_track_edge *edges;
    uint32_t *order;
    size_t n_edges, cap_edges, cap_order;
    struct sv_arena scratch; /* what is moved, for one plan */
    int64_t until_ns;
    uint64_t n_crowded; /* begins for which there was no place */
    bool is_forced;     /* what has waited for a round waits no longer */
};

void sv_tracks_init(struct sv_tracks *t, struct sv_dict *dict);
void sv_tracks_fini(struct sv_tracks *t);
size_t sv_tracks_bytes(const struct sv_tracks *t); /* that it holds, without the lanes */
void sv_tracks_add_ring(struct sv_tracks *t, uint32_t number, size_t index);

/* What recovery must know of the slices that are open in a ring; and recovery's side: the plan
 * continues after the mark. The names must have been read by then. */
void sv_tracks_mark(const struct sv_tracks *t, uint32_t ring_number, struct sv_mark *mark);
void sv_tracks_resume(struct sv_tracks *t, const struct sv_drain_names *names,
                      const struct sv_drain_ring *r, const struct sv_mark *mark);

struct sv_tracks_input {
    struct sv_drain_ring *rings;
    size_t n_rings;
    const struct sv_drain_names *names;
    struct sv_ticks *ticks;
    int64_t from_ns; /* what is older is left out */
};

/* Looks through the records from `stop` to `end` of each ring and moves `stop` to where the reader
 * may go. False: nowhere. */
bool sv_tracks_plan(struct sv_tracks *t, const struct sv_tracks_input *in);

/* The plan of the record at `pos`, which is the next of its ring (r->edge); NULL: it is not what
 * was there when it was planned. */
struct sv_track_edge *sv_tracks_find(const struct sv_tracks *t, const struct sv_drain_ring *r,
                                     uint64_t pos);

/* The rest of the ring will not be read, after all: what was planned of it has not happened. */
void sv_tracks_drop(struct sv_tracks *t, struct sv_drain_ring *r);

/* The lane of a slice that was measured elsewhere, 0: there is none. `now_ns`: when it was
 * recorded. */
sv_track sv_tracks_whole(struct sv_tracks *t, const struct sv_drain_ring *r, sv_track track,
                         int64_t begin_ns, int64_t end_ns, int64_t now_ns);

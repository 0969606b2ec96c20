/* Lane assignment: which row of the picture a slice goes to so that everything on one row nests.
 *
 * Per track a set of lanes, the first being the track itself; per lane a stack of what is open. A
 * slice goes to the lowest lane where it fits inside all that is open. Finding that lane, the next
 * end to come and the newest open slice each cost the logarithm of the number of lanes or tracks,
 * so 100,000 slices may be open at once.
 *
 * A row follows one of the policies below, which say in which order slices come and what is known
 * of them: the stages split and lanes go in the order of begins, the recorder in the order of ends,
 * and the rings of threads are read in any order (loose rows). */
#pragma once

#include "core/base/pool.h"
#include "core/stream/dict.h"

/* The end of what has none: edges, unfinished slices, a lane on which nothing is open. A slice that
 * ends at the very last time is due then, too, and is_last: what never ends does not fit into
 * it. */
#define SV_LANE_NEVER INT64_MAX

/* One open slice. `due_ns` is the earliest end among it and what lies below: its own for slices,
 * that of the slice around it for edges, whose end is not known yet. */
struct sv_lane_open {
    struct sv_lane_open *below;
    int64_t begin_ns, due_ns;
    int64_t thread_end_ns;
    uint32_t edge; /* its number in sv_lane_row.edges */
    bool is_edge, has_thread_end, is_last;
};

/* How the slices of a row come. */
struct sv_lane_policy {
    enum {
        SV_LANES_BY_BEGIN, /* their ends are known: sv_lane_for() */
        SV_LANES_BY_END,   /* they are over: sv_lane_take() */
        SV_LANES_LOOSE     /* in any order; of some only the begin is known: sv_lane_place() */
    } order;
    uint32_t most;    /* lanes */
    bool is_numbered; /* lanes are called NAME 2, NAME 3, …; else like the track */
};
extern const struct sv_lane_policy sv_lanes_by_begin, sv_lanes_by_end, sv_lanes_any;

struct sv_lane_past;

struct sv_lane {
    sv_track track;
    uint32_t n_last; /* open slices that are is_last */
    struct sv_lane_open *top;
    int64_t last_ns;           /* by end: that of the newest slice */
    struct sv_lane_past *past; /* loose rows: what has ended, NULL: nothing yet */
};

/* A tree over the lanes of a track: leaf i is node cap + i, the root is node 1. */
struct sv_lane_node {
    int64_t first_due_ns, last_due_ns; /* least and greatest due_ns of the tops below */
    int64_t newest_ns; /* greatest begin_ns of the tops below, INT64_MIN when nothing is open */
    bool fits_endless; /* what has no end fits on one of the lanes below */
};

/* All lanes of one track. */
struct sv_lane_row {
    const struct sv_lane_policy *policy;
    sv_track track;
    int32_t revision; /* of the track when its lanes were named */
    uint32_t n, cap;  /* lanes; cap is a power of two */
    struct sv_lane *lanes;
    struct sv_lane_node *tree;
    size_t heap_at;      /* position in the heap + 1, 0: not in it */
    int64_t begun_ns;    /* the newest begin on any lane … */
    uint32_t begun_lane; /* … and where it went */
    bool has_begun;
    struct sv_lane_loose *newest; /* loose: what is open, the newest first */
    /* of the first lane, oldest first: 1 when it had to be closed before its end came */
    uint8_t *edges;
    size_t n_edges, cap_edges;
    uint32_t n_last;                  /* open slices that are is_last */
    struct sv_held *held, *held_last; /* flow points that wait for the next begin */
    /* Most tracks have one lane: no allocation for them. */
    struct sv_lane one_lane;
    struct sv_lane_node one_node[2];
};

struct sv_lanes {
    struct sv_dict *dict;
    struct sv_pool pool;
    struct sv_lane_row **by_track; /* also under the numbers of the lanes made here */
    size_t n_tracks, cap_tracks;
    struct sv_lane_row **heap; /* rows by the next end that comes on them, the earliest on top */
    size_t n_heap, cap_heap;
    /* Loose rows that continue from a file: what is on its first lanes up to this time is not known
     * here. */
    int64_t known_from_ns;
    uint32_t n_unknown;
    uint64_t n_left_out; /* lanes of all rows that were made below n_unknown */
    uint32_t n_most;     /* lanes of the loose row that has most */
    uint64_t n_sources;
    size_t past_bytes;
};

void sv_lanes_init(struct sv_lanes *l, struct sv_dict *dict);
void sv_lanes_fini(struct sv_lanes *l);

struct sv_lane_row *sv_lanes_find(const struct sv_lanes *l, sv_track track); /* NULL: nothing yet */
/* Made on first sight. The rows of a track and of its lanes are one. */
struct sv_lane_row *sv_lanes_row(struct sv_lanes *l, sv_track track,
                                 const struct sv_lane_policy *policy);
void sv_lanes_forget(struct sv_lanes *l, sv_track track); /* its number will be another track's */

static inline int64_t sv_lane_due(const struct sv_lane_row *r)
{
    return r->tree[1].first_due_ns;
}

/* The lane with the earliest end, the lowest one where a slice with this end (or none) fits, made
 * when there is none, and the one whose top began last. */
uint32_t sv_lane_first_due(const struct sv_lane_row *r);
uint32_t sv_lane_for(struct sv_lanes *l, struct sv_lane_row *r, int64_t end_ns, bool is_endless);
uint32_t sv_lane_newest(const struct sv_lane_row *r);

/* The block is the pool's: pop gives it to the caller, who puts it back. */
struct sv_lane_open *sv_lane_push(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane,
                                  int64_t begin_ns, int64_t due_ns, bool is_last);
struct sv_lane_open *sv_lane_pop(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane);

/* ---- rows by end: for what is recorded when it is over ---- */

/* The lowest lane on which nothing lies in [*begin_ns, *end_ns), which is cut where all lanes that
 * there may be are taken: the last of them may then show a slice too short. Slices of a lane do not
 * touch but at their ends. */
sv_track sv_lane_take(struct sv_lanes *l, struct sv_lane_row *r, int64_t *begin_ns,
                      int64_t *end_ns);

/* ---- loose rows: for the rings of threads ----
 *
 * Slices are placed so that the edges of a lane nest when they are sorted by time, whatever comes
 * later: one of which only the begin is known lies inside another open one only if both are of one
 * owner and in order, and nothing of another owner touches it. What has ended is remembered for a
 * while, so that a slice which comes late still finds its place between others. */

struct sv_lane_slice {
    int64_t begin_ns, end_ns; /* SV_LANE_NEVER: not known yet */
    uint64_t owner;           /* whose slices end in the order in which they nest */
    bool nests; /* its end comes before that of whatever its owner has open and nests, too */
    /* written at once, so that the order of ends does not count; may lie inside whole ones of any
     * owner */
    bool is_whole;
    bool
        /* the first lane has slices that this allocator does not know, and it would cross them */
        not_first;
};

/* An open one. */
struct sv_lane_loose {
    struct sv_lane_open open; /* first; due_ns: its end, once that is known */
    struct sv_lane_loose *older, *newer;
    struct sv_lane_row *row;
    uint64_t owner;
    uint32_t lane;
    bool nests;
    /* The caller's: */
    uint64_t id, context;
    uint32_t number;
    bool is_claimed;
    sv_str name, cat;
};

static inline sv_track sv_lane_track(const struct sv_lane_loose *o)
{
    return o->row->lanes[o->lane].track;
}

/* The lanes of a dictionary's loose rows, shared by all of its sources; they live as long as the
 * dictionary. */
struct sv_lanes *sv_lanes_loose(struct sv_dict *dict);
void sv_lanes_free(struct sv_lanes *l);

/* The lane for a slice, which is remembered there; SV_LANE_NONE: there are too many. One without an
 * end is open until sv_lane_end(): it is returned, else NULL. */
#define SV_LANE_NONE UINT32_MAX
struct sv_lane_loose *sv_lane_place(struct sv_lanes *l, struct sv_lane_row *r,
                                    const struct sv_lane_slice *s, uint32_t *lane);
/* The same on a lane that is known: of a slice that was placed before a source went on from its
 * file. NULL: there are too many. */
struct sv_lane_loose *sv_lane_place_at(struct sv_lanes *l, struct sv_lane_row *r,
                                       const struct sv_lane_slice *s, uint32_t lane);
/* What is on the row's lanes is not known any more: nothing is put on them that begins until
 * then. */
void sv_lanes_block(struct sv_lanes *l, struct sv_lane_row *r, int64_t until_ns);
/* What lies in `o`, began before end_ns and has no end yet: the uppermost, NULL: nothing. It must
 * leave the lane first. *n: how many. */
struct sv_lane_loose *sv_lane_in_the_way(const struct sv_lane_loose *o, int64_t end_ns, size_t *n);
/* The time at which `o` can end without cutting what has ended in it: end_ns, or a little later. */
int64_t sv_lane_earliest_end(const struct sv_lane_loose *o, int64_t end_ns);
/* Ends it; the block is given back once nothing open lies on it. */
void sv_lane_end(struct sv_lanes *l, struct sv_lane_loose *o, int64_t end_ns);

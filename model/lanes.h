/* Lane assignment, shared by the stages split and lanes: which row of the picture a slice goes to so that everything on one
 * row nests.
 *
 * Per track a set of lanes, the first being the track itself; per lane a stack of what is open. A slice goes to the lowest
 * lane where it fits inside all that is open. Finding that lane, the next end to come and the newest open slice each cost
 * the logarithm of the number of lanes or tracks, so 100,000 slices open at once are no trouble. */
#ifndef SV_MODEL_LANES_H
#define SV_MODEL_LANES_H

#include "base/pool.h"
#include "model/dict.h"

/* The end of what has none: edges, unfinished slices, a lane on which nothing is open. A slice that ends at the very last time is due
 * then, too, and is_last: what never ends does not fit into it. */
#define SV_LANE_NEVER INT64_MAX

/* One open slice. `due_ns` is the earliest end among it and what lies below: its own for slices, that of the slice around
 * it for edges, whose end is not known yet. */
struct sv_lane_open {
    struct sv_lane_open *below;
    int64_t begin_ns, due_ns;
    int64_t thread_end_ns;
    uint32_t edge; /* its number in sv_lane_row.edges */
    bool is_edge, has_thread_end, is_last;
};

struct sv_lane {
    sv_track track;
    uint32_t n_last; /* open slices that are is_last */
    struct sv_lane_open *top;
};

/* A tree over the lanes of a track: leaf i is node cap + i, the root is node 1. */
struct sv_lane_node {
    int64_t first_due_ns, last_due_ns; /* least and greatest due_ns of the tops below */
    int64_t newest_ns; /* greatest begin_ns of the tops below, INT64_MIN when nothing is open */
    bool fits_endless; /* what has no end fits on one of the lanes below */
};

/* All lanes of one track. */
struct sv_lane_row {
    sv_track track;
    int32_t revision; /* of the track when its lanes were named */
    uint32_t n, cap;  /* lanes; cap is a power of two */
    struct sv_lane *lanes;
    struct sv_lane_node *tree;
    size_t heap_at;      /* position in the heap + 1, 0: not in it */
    int64_t begun_ns;    /* the newest begin on any lane … */
    uint32_t begun_lane; /* … and where it went */
    bool has_begun;
    uint8_t *
        edges; /* of the first lane, oldest first: 1 when it had to be closed before its end came */
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
    struct sv_arena rows;
    struct sv_lane_row **by_track; /* also under the numbers of the lanes made here */
    size_t n_tracks, cap_tracks;
    struct sv_lane_row **heap; /* rows by the next end that comes on them, the earliest on top */
    size_t n_heap, cap_heap;
};

void sv_lanes_init(struct sv_lanes *l, struct sv_dict *dict);
void sv_lanes_fini(struct sv_lanes *l);

struct sv_lane_row *sv_lanes_find(const struct sv_lanes *l, sv_track track); /* NULL: nothing yet */
struct sv_lane_row *sv_lanes_row(struct sv_lanes *l, sv_track track); /* made on first sight */

static inline int64_t sv_lane_due(const struct sv_lane_row *r)
{
    return r->tree[1].first_due_ns;
}

/* The lane with the earliest end, the lowest one where a slice with this end (or none) fits, made when there is none, and the one
 * whose top began last. */
uint32_t sv_lane_first_due(const struct sv_lane_row *r);
uint32_t sv_lane_for(struct sv_lanes *l, struct sv_lane_row *r, int64_t end_ns, bool is_endless);
uint32_t sv_lane_newest(const struct sv_lane_row *r);

/* The block is the pool's: pop gives it to the caller, who puts it back. */
struct sv_lane_open *sv_lane_push(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane,
                                  int64_t begin_ns, int64_t due_ns, bool is_last);
struct sv_lane_open *sv_lane_pop(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane);

#endif

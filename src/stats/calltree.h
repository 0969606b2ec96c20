/* The tree of call paths: slices of the same name under the same path are one call, with their
 * times added up. For flame graphs.
 *
 * The first level are the tracks, numbers in their names ignored (the threads of a pool are one),
 * unless they are to be merged. Numbers in step markers are ignored, too. total = self + the totals
 * of the children, always. */
#pragma once

#include "core/base/mem.h"
#include "store/trace.h"

struct sv_call_node {
    const char *name; /* terminated */
    uint32_t len;
    uint32_t parent, depth; /* the root is call 0, its own parent */
    uint32_t first_child,
        n_children;  /* in sv_calltree.order, the largest total first (of the last trace) */
    uint32_t row[2]; /* the first such slice of each trace; SV_NO_ROW: none, or a track */
    int64_t self_ns[2], total_ns[2];
    uint64_t count[2];
};

struct sv_calltree {
    struct sv_call_node *calls; /* parents before their children */
    size_t n, cap;
    uint32_t *order;
    size_t n_traces;
    bool of_samples;
    uint64_t steps[2]; /* of each trace; 1 unless all have steps */
    bool is_cut; /* there were more than SV_CALLS_MAX paths: the rest counts for those above them */
    struct sv_arena names;
};

#define SV_CALLS_MAX 2000000u

struct sv_calltree_options {
    bool merge_tracks;
    /* of instants with a stack instead of slices; each counts for one period of the sampler */
    bool of_samples;
    /* of waits with a stack ('stave record --offcpu'): each counts for as long as it lasts, below a
     * frame that says what for */
    bool of_waits;
    int64_t from_ns,
        to_ns; /* only what lies within; equal: everything. For the first trace; ignored for two */
};

/* What a sample counts for: a period of the metadata's sample_hz, 1 ms when there is none. */
int64_t sv_sample_ns(const struct sv_dict *d);

/* n: 1, or 2 to compare. */
void sv_calltree_make(struct sv_calltree *c, const struct sv_trace *const *traces, size_t n,
                      const struct sv_calltree_options *o);
void sv_calltree_fini(struct sv_calltree *c);

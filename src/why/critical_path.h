/* The critical path: what had to happen, one thing after the other, for a slice to end when it did.
 *
 *     sv_critical_path(&path, trace, from, from_ns, to);
 *     for (size_t i = 0; i < path.n; i++) … path.segments[i].kind, path.segments[i].class …
 *     sv_path_fini(&path);
 *
 * Of a thread with recorded states or calls it is what the ledger (why/ledger.h) says of that time:
 * its pieces, in order. Where those end at a device, and on all other tracks, slices say the rest,
 * backwards: the beginning of a slice is preceded by whatever made it begin, the slice that a flow
 * comes from (of work on a device: the call that launched it), or what ended last on the same
 * track, whichever is later. A call that waits for a device (…Synchronize, clFinish) is explained
 * by the work that ended last within it, on any device of the machine: traces do not record which
 * one the call waited for. */
#ifndef SV_WHY_CRITICAL_PATH_H
#define SV_WHY_CRITICAL_PATH_H

#include "why/ledger.h"

enum sv_segment_kind {
    /* the slice itself was running, none of its children; or the thread, without a slice */
    SV_SEGMENT_RUN,
    /* between the end of the origin of a flow and the slice it leads to; or the state of the thread
     * says so */
    SV_SEGMENT_WAIT,
    SV_SEGMENT_IDLE /* nothing was open on the track, and no state is known */
};

struct sv_segment {
    enum sv_segment_kind kind;
    int64_t ts_ns, dur_ns;
    uint32_t row; /* RUN: the slice or the call; WAIT: the one that waits; SV_NO_ROW: none */
    sv_track track;
    bool by_flow,
        /* the step to this segment came along a flow, or from the thread that this one woke */
        by_waker;
    enum sv_wait_reason reason; /* WAIT: what for; NO_REASON: along a flow */
    uint8_t class; /* what the thread of the slice had or waited for; SV_N_WHY_CLASSES: no ledger */
};

struct sv_path {
    struct sv_segment *segments; /* in order of time; they add up to the span between both ends */
    size_t n, cap;
    /* the first slice was reached (false: the path began elsewhere, at from_ns) */
    bool is_complete;
};

/* The nearest max segments to the end, 0: all. A row of a thread's calls or states is explained by
 * what the thread did. */
void sv_critical_path_of(struct sv_path *p, const struct sv_trace *t, sv_track track,
                         int64_t from_ns, int64_t to_ns, size_t max);
/* to: the slice to explain. from: where the path should begin, or SV_NO_ROW: at from_ns. */
void sv_critical_path(struct sv_path *p, const struct sv_trace *t, uint32_t from, int64_t from_ns,
                      uint32_t to);
void sv_path_fini(struct sv_path *p);

/* ---- the parts, for each other and the report on waits ---- */

struct sv_path_finder;
struct sv_path_finder *sv_path_finder_new(const struct sv_trace *t);
void sv_path_finder_free(struct sv_path_finder *f);
/* What slices say: back from to_ns to from_ns, or to the first thread that is recorded (until, may
 * be NULL). Returns how far it came, and there *track. */
int64_t sv_path_find(struct sv_path_finder *f, struct sv_path *p, sv_track *track, int64_t from_ns,
                     int64_t to_ns, const struct sv_thread_states *until);
/* What the ledger says of a part of a unit, whose pieces are no sums; the nearest max segments. */
void sv_path_of_unit(struct sv_path *p, const struct sv_ledger *l, struct sv_path_finder *f,
                     size_t unit, int64_t from_ns, int64_t to_ns, size_t max);

#endif

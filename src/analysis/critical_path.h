/* The critical path: what had to happen, one thing after the other, for a slice to end when it did.
 *
 * Walked backwards from the end of the last slice. The beginning of a slice is preceded by whatever made it begin: the slice that
 * a flow comes from (of work on a device: the call that launched it), or what ended last on the same track, whichever is later. A call
 * that waits for a device (…Synchronize, clFinish) is explained by the work that ended last within it, on any device of the machine: traces do not
 * record which one the call waited for. */
#ifndef SV_ANALYSIS_CRITICAL_PATH_H
#define SV_ANALYSIS_CRITICAL_PATH_H

#include "model/trace.h"

enum sv_segment_kind {
    SV_SEGMENT_RUN,  /* the slice itself was running, none of its children */
    SV_SEGMENT_WAIT, /* between the end of the origin of a flow and the slice it leads to */
    SV_SEGMENT_IDLE  /* nothing was open on the track */
};

struct sv_segment {
    enum sv_segment_kind kind;
    int64_t ts_ns, dur_ns;
    uint32_t row; /* RUN: the slice; WAIT: the one that waits; SV_NO_ROW for IDLE */
    sv_track track;
    bool by_flow; /* the step to this segment came along a flow */
};

struct sv_path {
    struct sv_segment *segments; /* in order of time; they add up to the span between both ends */
    size_t n, cap;
    /* the first slice was reached (false: the path began elsewhere, at from_ns) */
    bool is_complete;
};

/* to: the slice to explain. from: where the path should begin, or SV_NO_ROW: at from_ns. */
void sv_critical_path(struct sv_path *p, const struct sv_trace *t, uint32_t from, int64_t from_ns,
                      uint32_t to);
void sv_path_fini(struct sv_path *p);

#endif

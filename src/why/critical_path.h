/* The critical path: what had to happen, one thing after the other, for a slice to end when it did.
 *
 *     struct sv_path_finder *f = sv_path_finder_new(trace, states);
 *     sv_path_find(f, &path, track, from_ns, to_ns, 0);
 *
 * Walked backwards from the end of the last slice. The beginning of a slice is preceded by whatever
 * made it begin: the slice that a flow comes from (of work on a device: the call that launched it),
 * or what ended last on the same track, whichever is later. A call that waits for a device
 * (…Synchronize, clFinish) is explained by the work that ended last within it, on any device of the
 * machine: traces do not record which one the call waited for.
 *
 * Where states of threads are recorded they decide between running and waiting: a thread that runs
 * without a slice is not idle, and one that sleeps is left for the thread that woke it. Waits that
 * no thread ended (disk, timer, run queue) are segments of their own with the reason. */
#ifndef SV_WHY_CRITICAL_PATH_H
#define SV_WHY_CRITICAL_PATH_H

#include "why/thread_states.h"

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
};

struct sv_path {
    struct sv_segment *segments; /* in order of time; they add up to the span between both ends */
    size_t n, cap;
    /* the first slice was reached (false: the path began elsewhere, at from_ns) */
    bool is_complete;
};

struct sv_path_finder *sv_path_finder_new(const struct sv_trace *t,
                                          const struct sv_thread_states *states);
void sv_path_finder_free(struct sv_path_finder *f);
/* What led to the time to_ns on a track, back to from_ns; the nearest max segments, 0: all. */
void sv_path_find(struct sv_path_finder *f, struct sv_path *p, sv_track track, int64_t from_ns,
                  int64_t to_ns, size_t max);

/* The same for one question. A row of a thread's calls or states is explained by what the thread
 * did. */
void sv_critical_path_of(struct sv_path *p, const struct sv_trace *t, sv_track track,
                         int64_t from_ns, int64_t to_ns, size_t max);
/* to: the slice to explain. from: where the path should begin, or SV_NO_ROW: at from_ns. */
void sv_critical_path(struct sv_path *p, const struct sv_trace *t, uint32_t from, int64_t from_ns,
                      uint32_t to);
void sv_path_fini(struct sv_path *p);

#endif

/* The filter: a time window and predicates over a stream in time order, edges or slices, for `stave
 * cut`.
 *
 * Nothing is loaded: memory holds what is open, and the last value of each counter until the window
 * begins. The result is complete by itself:
 *   - what is open when the window begins, begins with it; its argument `cut.begin_ns` has the true
 *   time
 *   - what is open when the window ends, ends with it, with the argument `cut.end`
 *   - counters begin with the value that they had
 *   - a begin that is dropped takes its end with it; flow numbers stay as they are
 *   - loss is never filtered by name or category. */
#pragma once

#include "core/base/buf.h"
#include "core/stream/stream.h"

struct sv_globs {
    const char *const *items;
    size_t n; /* 0: everything matches */
};

/* An event passes when every predicate that is given accepts it. All pointers must outlive the
 * stage. */
struct sv_filter {
    int64_t from_ns, to_ns; /* [from, to) */
    struct sv_globs tracks; /* the track's name, or its path: "process/thread/…" */
    struct sv_globs cats;   /* one of the event's categories */
    struct sv_globs names;  /* the event's name; for counters the track's */
    const int64_t *pids;    /* the process that the track belongs to */
    size_t n_pids;
};

#define SV_FILTER_ALL                            \
    {                                            \
        .from_ns = INT64_MIN, .to_ns = INT64_MAX \
    }

struct sv_sink *sv_filter_new(struct sv_dict *dict, const struct sv_filter *filter,
                              struct sv_sink *next);

/* The names from the root to the track, joined by '/'; a process or thread without a name is "pid
 * 12", "tid 13". */
void sv_track_path(const struct sv_dict *dict, sv_track track, struct sv_buf *to);

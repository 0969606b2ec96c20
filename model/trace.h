/* The trace (the store): all events of a run in memory, by column, sorted by track and time.
 *
 * It is a sink that takes every shape: edges are paired per track as they come (a track whose time goes backwards is put in order at
 * the end and paired then), overlapping slices stay as they are, flow points are bound to their slices at the end. After sv_trace_finish() it is
 * read-only and everything in it is addressed by row number.
 *
 * Cost per slice without arguments: see SV_TRACE_SLICE_BYTES, asserted by a test. */
#ifndef SV_MODEL_TRACE_H
#define SV_MODEL_TRACE_H

#include "model/stream.h"

#define SV_NO_ROW            UINT32_MAX
#define SV_TRACE_SLICE_BYTES 48 /* at most, once finished */

/* Slices and instants (dur_ns 0, is_instant), one row each, sorted by (track, ts, longest first, order of arrival). */
struct sv_slices {
    uint64_t n;
    int64_t *ts_ns, *dur_ns; /* dur SV_UNFINISHED: never ended */
    sv_str *name, *cat;
    sv_track *track;
    uint32_t *parent; /* row of the enclosing slice on the same track, SV_NO_ROW at the top */
    uint16_t *depth;
    uint8_t *kind;  /* SV_SLICE or SV_INSTANT */
    uint64_t *args; /* handle for sv_trace_args(), 0: none */
};

struct sv_counters {
    uint64_t n;
    int64_t *ts_ns;
    double *value;        /* int64 values past 2^53 are rounded; exact_value keeps them */
    int64_t *exact_value; /* NULL unless some counter had an integer that a double cannot hold */
    sv_track *track;
};

struct sv_flows {
    uint64_t n;
    uint64_t *id;
    uint32_t *from, *to; /* slice rows */
};

struct sv_losses {
    uint64_t n;
    int64_t *ts_ns, *dur_ns;
    uint64_t *count;
    sv_str *cause;
    sv_track *track;
};

struct sv_trace {
    struct sv_dict *dict; /* borrowed */
    struct sv_slices slices;
    struct sv_counters counters;
    struct sv_flows flows;
    struct sv_losses losses;
    /* Rows of a track are contiguous: slices [slice_first[t], slice_first[t + 1]), n_tracks + 1 entries. */
    uint64_t *slice_first, *counter_first;
    int64_t first_ns, last_ns; /* the span of everything, ends of slices included */
    uint64_t unmatched_ends, unfinished, flow_points_unbound;
    struct sv_trace_impl *impl;
};

/* memory_limit_bytes 0: none. Past it write() fails with SV_ENOMEM and says what to do. */
struct sv_trace *sv_trace_new(struct sv_dict *dict, struct sv_report *report,
                              size_t memory_limit_bytes);
struct sv_sink *sv_trace_sink(
    struct sv_trace *t); /* its close() finishes the trace; the trace itself stays */
int sv_trace_finish(struct sv_trace *t, struct sv_err *err);
void sv_trace_free(struct sv_trace *t);
size_t sv_trace_bytes(const struct sv_trace *t);

/* The arguments of a row in the form of event.h, decoded into the caller's scratch batch (reset it when done). */
const struct sv_arg *sv_trace_args(const struct sv_trace *t, uint64_t handle,
                                   struct sv_batch *scratch, size_t *n);

/* Window index: visits, in row order, the slices of `track` that touch [from_ns, to_ns). Does not scan the track's past. */
typedef int sv_trace_visit(void *ctx, uint64_t row);
int sv_trace_window(const struct sv_trace *t, sv_track track, int64_t from_ns, int64_t to_ns,
                    sv_trace_visit *visit, void *ctx);

/* The trace as a source (slices, then counters, losses and flows as arguments), sorted by time. */
struct sv_source *sv_trace_source(struct sv_trace *t);

#endif

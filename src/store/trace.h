/* The trace (the store): all events of a run in memory, by column, sorted by track and time.
 *
 *     struct sv_trace *t = sv_trace_new(dict, report, limit);
 *     sv_pump(source, sv_trace_sink(t), NULL, err);         // closing the sink finishes the trace
 *     for (uint64_t row = t->tracks[k].first; row < t->tracks[k].end; row++)
 *         … t->slices.ts_ns[row], t->slices.name[row] …
 *
 * It is a sink that takes every shape. Edges are paired per track as they come (a track whose edges
 * go back in time is put in stable time order at the end and paired then), overlapping slices stay
 * as they are, flow points are bound to their slices at the end. After sv_trace_finish() it is
 * read-only, and everything in it is addressed by row number.
 *
 * Cost: SV_TRACE_SLICE_BYTES per slice plus its arguments; SV_TRACE_PEAK_BYTES while all tracks are
 * brought together, and for a moment 24 more per row of the largest track that is out of order (48
 * if it consists of edges). A test holds it to that. */
#pragma once

#include "core/stream/stream.h"

#define SV_NO_ROW            UINT32_MAX
#define SV_TRACE_SLICE_BYTES 41
#define SV_TRACE_PEAK_BYTES  48

/* Slices and instants, one row each. The rows of a track are contiguous and in the order of time.
 * Ties: on a track made of edges the order in which they came; on others the longest first, then
 * the order in which they came.
 *
 * The parent is the slice that encloses: on a track made of edges the one that was open; on others
 * the latest one that begins no later and ends no earlier. A slice that only overlaps another in
 * part is not its child: if nothing encloses it, its depth is 0. Nothing lies within an instant or
 * a slice without duration (edges excepted). */
struct sv_slices {
    uint64_t n;
    int64_t *ts_ns;
    int64_t *dur_ns;  /* SV_UNFINISHED: never ended; 0 for instants */
    sv_str *name;     /* 0: none */
    sv_str *cat;      /* 0: none */
    sv_track *track;  /* the same for all rows of t->tracks[k] */
    uint32_t *parent; /* row, SV_NO_ROW at the top */
    uint32_t *args;   /* handle for sv_trace_args(), 0: none; equal handles mean equal arguments */
    uint16_t *depth;  /* 0 at the top; stops at UINT16_MAX */
    uint8_t *kind;    /* SV_SLICE or SV_INSTANT */
    uint8_t *flags;   /* SV_SCOPE_* of an instant */
};

/* Counter values, sorted like slices. */
struct sv_counters {
    uint64_t n;
    int64_t *ts_ns;
    double *value;  /* integers past 2^53 are rounded here, sv_trace_counter() has them exactly */
    int64_t *exact; /* the integer; NULL unless there is one that a double cannot hold */
    sv_track *track;
    uint8_t *type; /* SV_ARG_INT, SV_ARG_UINT or SV_ARG_DOUBLE: what the source gave */
};

/* Arrows between slices, sorted by (from, to, id). For each flow number, in order of time, each
 * carrier is connected with the one before it; the arrow points from the slice that begins first to
 * the one that begins later (equal: to the newer carrier). SV_ARG_FLOW_BEGIN starts anew.
 * SV_ARG_FLOW_END is connected, but never the origin of the next arrow; it also closes a flow that
 * was not begun by FLOW_BEGIN. These are the rules of Perfetto's table, except that it ignores a
 * second beginning. */
struct sv_flows {
    uint64_t n;
    uint64_t *id;
    uint32_t *from, *to; /* slice rows */
    uint32_t *by_to;     /* numbers of flows, sorted by (to, from, id) */
};

/* Flow points that are not an argument of their slice: bound in its middle, or not bound at all.
 * Sorted by time. */
struct sv_flow_points {
    uint64_t n;
    int64_t *ts_ns;
    uint64_t *id;
    sv_track *track;
    uint32_t *row;  /* SV_NO_ROW: there is no slice to bind to */
    uint8_t *type;  /* SV_ARG_FLOW_BEGIN, SV_ARG_FLOW, SV_ARG_FLOW_END */
    uint8_t *flags; /* SV_BIND_NEXT */
};

/* Sorted by time. */
struct sv_losses {
    uint64_t n;
    int64_t *ts_ns, *dur_ns;
    uint64_t *count; /* 0: unknown */
    sv_str *cause;
    sv_track *track;
};

/* What the trace holds of one track. */
struct sv_trace_track {
    uint32_t first, end;                 /* rows of slices */
    uint32_t counter_first, counter_end; /* rows of counters */
    uint16_t depth_max;
    bool has_edges;   /* it was made of edges (and instants), nothing else */
    bool has_overlap; /* some slices overlap without nesting */
};

struct sv_trace {
    struct sv_dict *dict; /* borrowed */
    struct sv_slices slices;
    struct sv_counters counters;
    struct sv_flows flows;
    struct sv_flow_points points;
    struct sv_losses losses;
    /* by sv_track; those that the dictionary learnt later are not here */
    struct sv_trace_track *tracks;
    uint32_t n_tracks;
    int64_t first_ns,
        last_ns; /* the span of slices, counters and losses, ends included; 0, 0 when empty */
    uint64_t unmatched_ends, unfinished, unbound_flow_points;
    struct sv_trace_impl *impl;
};

/* memory_limit_bytes (0: none) bounds all that the trace and the dictionary hold, sorting included.
 * Past it write() fails with SV_ENOMEM and says what to do. */
struct sv_trace *sv_trace_new(struct sv_dict *dict, struct sv_report *report,
                              size_t memory_limit_bytes);
void sv_trace_free(struct sv_trace *t);
/* Threads that may help to finish it (threads/workers.h), borrowed until then; NULL: none. The
 * trace is the same, whatever their number. */
struct sv_workers;
void sv_trace_use(struct sv_trace *t, struct sv_workers *workers);
/* How many tracks the next events may be on, while another thread adds some to the dictionary; 0:
 * as many as it has. */
void sv_trace_tracks(struct sv_trace *t, uint32_t n);

/* The sink that events go in by, part of the trace. Its close() finishes the trace, also after a
 * failure: what came before it counts. The trace itself stays. */
struct sv_sink *sv_trace_sink(struct sv_trace *t);
int sv_trace_finish(struct sv_trace *t, struct sv_err *err); /* what close() calls; once */

size_t sv_trace_bytes(const struct sv_trace *t);      /* memory held, the dictionary not included */
size_t sv_trace_args_bytes(const struct sv_trace *t); /* that of arguments among it */

static inline bool sv_trace_has_track(const struct sv_trace *t, sv_track track)
{
    return track < t->n_tracks;
}

/* Where a slice ends; an unfinished one ends with the trace. */
static inline int64_t sv_trace_end_ns(const struct sv_trace *t, uint64_t row)
{
    int64_t dur = t->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? t->last_ns : t->slices.ts_ns[row] + dur;
}

/* ---- arguments ---- */

/* The arguments behind a handle in the form of event.h, in the memory of the caller's scratch batch
 * (reset it when done); texts point into the trace. NULL and *n = 0 when there are none. CPU times
 * at the ends of a slice (SV_ARG_THREAD_TIME) arrive as THREAD_TIME and THREAD_DUR. */
const struct sv_arg *sv_trace_args(const struct sv_trace *t, uint32_t handle,
                                   struct sv_batch *scratch, size_t *n);

/* One argument without decoding the list: the first one of the top level with this key, or of this
 * type (for those without key: SV_ARG_CORRELATION, SV_ARG_FLOW…). Of a container only its own slot
 * is returned. */
bool sv_trace_arg(const struct sv_trace *t, uint32_t handle, sv_str key, struct sv_arg *out);
bool sv_trace_arg_of_type(const struct sv_trace *t, uint32_t handle, unsigned type,
                          struct sv_arg *out);

/* Whether a list holds what is searched for, without decoding it. What was found out about texts
 * and shapes is kept, so that each is looked at once in a search. */
struct sv_args_search {
    bool (*is_text_hit)(const void *ctx, const char *text, size_t len);
    const void *ctx;
    const uint8_t *key_hits; /* by string */
    bool is_number;          /* whole numbers that equal `number` are hits */
    int64_t number;
    uint8_t *texts, *shapes; /* NULL at the beginning; free() them */
};
enum sv_args_hit { SV_ARGS_NO_HIT = 1, SV_ARGS_HIT, SV_ARGS_UNSURE /* decode it to know */ };
enum sv_args_hit sv_trace_args_search(const struct sv_trace *t, uint32_t handle,
                                      struct sv_args_search *s);

/* The value of a counter as it came: type SV_ARG_INT, SV_ARG_UINT or SV_ARG_DOUBLE. */
struct sv_arg sv_trace_counter(const struct sv_trace *t, uint64_t row);

/* ---- finding rows ---- */

/* The slices and instants of `track` that touch [from_ns, to_ns), in row order. Does not scan the
 * track's past:
 *
 *     struct sv_window w = sv_trace_window(t, track, from, to);
 *     for (uint32_t row; sv_window_next(&w, &row);) … */
struct sv_window {
    const struct sv_trace *trace;
    int64_t from_ns;
    uint32_t next, begins,
        end; /* rows before `begins` began before the window: only some of them touch it */
};
struct sv_window sv_trace_window(const struct sv_trace *t, sv_track track, int64_t from_ns,
                                 int64_t to_ns);
bool sv_window_next(struct sv_window *w, uint32_t *row);

/* The innermost slice of `track` that is open at ts_ns: the last row that begins at or before it
 * and ends after it, a slice without duration that begins exactly there included. SV_NO_ROW when
 * there is none. */
uint32_t sv_trace_slice_at(const struct sv_trace *t, sv_track track, int64_t ts_ns);

/* The first row of `track` that begins at or after ts_ns (the track's end when none does). */
uint32_t sv_trace_row_from(const struct sv_trace *t, sv_track track, int64_t ts_ns);
/* The first row of [row, end), rows of one track, that may be a slice of dur_ns (1 or more): passes
 * over whole blocks of rows that end too early for one. */
uint64_t sv_trace_may_last(const struct sv_trace *t, uint64_t row, uint64_t end, int64_t dur_ns);
#define SV_TRACE_BLOCK_ROWS 64u
uint32_t sv_trace_counter_from(const struct sv_trace *t, sv_track track, int64_t ts_ns);

/* Arrows of a slice: flows [*first, *first + n) leave it; t->flows.by_to[*first … + n) arrive. Both
 * return n. */
uint64_t sv_trace_flows_out(const struct sv_trace *t, uint32_t row, uint64_t *first);
uint64_t sv_trace_flows_in(const struct sv_trace *t, uint32_t row, uint64_t *first);

/* ---- leaving again ---- */

/* The trace as a source, sorted by time: edges for tracks that were made of them, slices for the
 * others, counters, losses, and the flow points that are left. Storing what it gives makes the same
 * trace again. The trace must outlive it. */
struct sv_source *sv_trace_source(const struct sv_trace *t, struct sv_report *report);

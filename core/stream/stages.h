/* The stages: small sinks with a next. Each takes ownership of `next` and closes it. */
#pragma once

#include "core/stream/stream.h"

/* Sorts by time. Ties: begin, end, instant, counter, loss keep the order in which they came; then
 * slices, longest first; then flow points. Bounded memory: past `memory_bytes` sorted runs go to an
 * unlinked temporary file and are merged at the end. Text and arguments are copied. */
struct sv_sink *sv_sort_new(struct sv_dict *dict, size_t memory_bytes, struct sv_sink *next);

/* What is before `before_ns` leaves the sort stage now. Nothing may come later that is. */
int sv_sort_release(struct sv_sink *sort, int64_t before_ns, struct sv_err *err);

/* Edges → slices, per track by a stack; needs order per track. An end without a begin and a begin
 * without an end are reported (the latter leaves as an SV_UNFINISHED slice at the end of the
 * stream). Slices leave when they end, so the result is not ordered by start. */
struct sv_sink *sv_pair_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next);

/* Refuses (SV_ELIMIT) a begin and its end that are 2^63 ns apart or more; changes nothing. Needs
 * order per track. */
struct sv_sink *sv_spans_new(struct sv_dict *dict, struct sv_sink *next);

/* Slices → edges; needs time order, gives time order. A slice that overlaps the open ones of its
 * track without nesting goes to the lowest sibling lane where it fits (kind SV_TRACK_LANE, child of
 * the track, named like it). Instants stay on the track itself. Flow points follow the slice that
 * starts at their time, else the newest open one; one that binds to the next slice leaves with that
 * slice, at its time. Edges that arrive pass through; ends without begin are reported and
 * dropped. */
struct sv_sink *sv_split_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next);

/* Overlapping slices to lanes, but still as slices (for formats with whole slices that must nest).
 * Needs time order. */
struct sv_sink *sv_lanes_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next);

/* Work of devices to rows by device, context and stream, or by kind of work ("GPU Compute" …):
 * gpu_rows.c. Takes whole slices in any order; puts what `next` needs between itself and it. */
struct sv_sink *sv_gpu_rows_new(struct sv_dict *dict, struct sv_report *report, bool by_kind,
                                struct sv_sink *next);

/* Time window and predicates; see filter.h. */

/* Counts what passes; next may be NULL (a drain). */
struct sv_tally {
    uint64_t events, by_kind[16], args, flows;
    uint64_t lost;             /* the numbers of all losses */
    int64_t first_ns, last_ns; /* valid when events > 0 */
};
void sv_tally_count(struct sv_tally *tally, const struct sv_event *events, size_t n);
struct sv_sink *sv_tally_new(struct sv_tally *tally, struct sv_sink *next);

/* The critical path, backwards from the end of a slice. Called by the command critical-path.
 *
 * The state is a track and a time. The last slice that begins before that time tells what is open there: it, one of its ancestors, or
 * nothing. Each step moves the time back to the nearest boundary; at the beginning of a slice it may go to another
 * track along a flow. A flow that leads to the same time again cannot be followed for ever: steps without progress are
 * counted. */
#include "analysis/critical_path.h"

#include "base/mem.h"

#include <stdlib.h>

#define STUCK_MAX 1000u

static void add_segment(struct sv_path *p, struct sv_segment s)
{
    struct sv_segment *last = p->n ? &p->segments[p->n - 1] : NULL;
    if (s.dur_ns <= 0)
        return;
    /* Built backwards: what joins seamlessly extends the segment after it. */
    if (last && last->kind == s.kind && last->row == s.row && last->track == s.track &&
        s.ts_ns + s.dur_ns == last->ts_ns) {
        last->ts_ns = s.ts_ns;
        last->dur_ns += s.dur_ns;
        return;
    }
    p->segments = sv_grow(p->segments, &p->cap, p->n + 1, sizeof *p->segments);
    p->segments[p->n++] = s;
}

/* The last slice (no instant, no empty one) of the track that begins before ts_ns. */
static uint32_t last_before(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    uint32_t row = sv_trace_row_from(t, track, ts_ns), first = t->tracks[track].first;
    while (row > first) {
        row--;
        if (t->slices.kind[row] == SV_SLICE && t->slices.dur_ns[row] != 0)
            return row;
    }
    return SV_NO_ROW;
}

/* What is open on a track just before a time, and since when nothing changed there. */
struct view {
    uint32_t row; /* SV_NO_ROW: nothing */
    int64_t since_ns;
    bool begins; /* since_ns is where `row` begins */
};

static struct view look(const struct sv_trace *t, sv_track track, int64_t ts_ns)
{
    uint32_t row = last_before(t, track, ts_ns);
    struct view v = {SV_NO_ROW, INT64_MIN, false};
    while (row != SV_NO_ROW && sv_trace_end_ns(t, row) < ts_ns) {
        int64_t end = sv_trace_end_ns(t, row);
        v.since_ns = end > v.since_ns ? end : v.since_ns;
        row = t->slices.parent[row];
    }
    v.row = row;
    if (row != SV_NO_ROW && t->slices.ts_ns[row] >= v.since_ns) {
        v.since_ns = t->slices.ts_ns[row];
        v.begins = true;
    }
    return v;
}

/* The flow into `row` whose origin was last busy with it; its time is at most the slice's beginning. */
static uint32_t latest_origin(const struct sv_trace *t, uint32_t row, int64_t *at_ns)
{
    uint64_t first, n = sv_trace_flows_in(t, row, &first);
    uint32_t best = SV_NO_ROW;
    for (uint64_t i = first; i < first + n; i++) {
        uint32_t origin = t->flows.from[t->flows.by_to[i]];
        int64_t begin = t->slices.ts_ns[row], end = sv_trace_end_ns(t, origin);
        int64_t at = end < begin ? end : begin;
        if (t->slices.ts_ns[origin] <= begin && origin != row &&
            (best == SV_NO_ROW || at > *at_ns)) {
            best = origin;
            *at_ns = at;
        }
    }
    return best;
}

/* When the track was last busy before the slice began: inside another slice, that is the slice's own beginning. */
static int64_t busy_until(const struct sv_trace *t, uint32_t row)
{
    int64_t begin = t->slices.ts_ns[row];
    struct view v = look(t, t->slices.track[row], begin);
    return v.row != SV_NO_ROW ? begin : v.since_ns;
}

struct walk {
    sv_track track;
    int64_t ts_ns;
    unsigned stuck;
    bool by_flow;
};

/* At the beginning of a slice: along the flow, unless the track was busy with something else after the origin was done. */
static void leave_slice(struct sv_path *p, const struct sv_trace *t, uint32_t row, struct walk *w)
{
    int64_t at_ns = INT64_MIN, begin = t->slices.ts_ns[row];
    uint32_t origin = latest_origin(t, row, &at_ns);
    w->by_flow = false;
    w->ts_ns = begin;
    /* Enclosed by another slice of the track, a flow still wins: the flow says why it began. */
    int64_t busy = origin == SV_NO_ROW || t->slices.parent[row] != SV_NO_ROW ? INT64_MIN
                                                                             : busy_until(t, row);
    if (origin == SV_NO_ROW || busy > at_ns)
        return;
    add_segment(p, (struct sv_segment){SV_SEGMENT_WAIT, at_ns, begin - at_ns, row,
                                       t->slices.track[row], true});
    w->track = t->slices.track[origin];
    w->ts_ns = at_ns;
    w->by_flow = true;
}

/* One step back. False: there is nothing before. */
static bool step(struct sv_path *p, const struct sv_trace *t, int64_t from_ns, struct walk *w)
{
    struct view v = look(t, w->track, w->ts_ns);
    int64_t since = v.since_ns > from_ns ? v.since_ns : from_ns;
    bool is_run = v.row != SV_NO_ROW;
    add_segment(p, (struct sv_segment){is_run ? SV_SEGMENT_RUN : SV_SEGMENT_IDLE, since,
                                       w->ts_ns - since, v.row, w->track, w->by_flow});
    w->by_flow = false;
    if (v.since_ns < from_ns)
        return false;
    w->stuck = since < w->ts_ns ? 0 : w->stuck + 1;
    w->ts_ns = since;
    if (v.begins)
        leave_slice(p, t, v.row, w);
    return w->stuck < STUCK_MAX;
}

void sv_critical_path(struct sv_path *p, const struct sv_trace *t, uint32_t from, int64_t from_ns,
                      uint32_t to)
{
    *p = (struct sv_path){0};
    if (from != SV_NO_ROW)
        from_ns = t->slices.ts_ns[from];
    struct walk w = {.track = t->slices.track[to], .ts_ns = sv_trace_end_ns(t, to)};
    while (w.ts_ns > from_ns && step(p, t, from_ns, &w)) {}
    for (size_t i = 0; i < p->n / 2; i++) {
        struct sv_segment s = p->segments[i];
        p->segments[i] = p->segments[p->n - 1 - i];
        p->segments[p->n - 1 - i] = s;
    }
    p->is_complete = from == SV_NO_ROW;
    for (size_t i = 0; i < p->n && !p->is_complete; i++)
        p->is_complete = p->segments[i].row == from ||
                         (p->segments[i].row != SV_NO_ROW &&
                          t->slices.track[p->segments[i].row] == t->slices.track[from] &&
                          p->segments[i].ts_ns < sv_trace_end_ns(t, from));
}

void sv_path_fini(struct sv_path *p)
{
    free(p->segments);
    *p = (struct sv_path){0};
}

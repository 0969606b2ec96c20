/* Split and lanes: slices that overlap on one track go to lanes of it, as edges (split) or still as
 * slices (lanes).
 *
 * The pump inserts them before sinks that take no slices, or none that overlap. Input and output
 * are in time order. Every event first lets the ends before it leave. An end at the time of a begin
 * of the same track leaves before that begin; ends of other tracks at that time wait, since a flow
 * point may still bind to the slice that ends there.
 *
 * Edges that arrive stay on the track itself and nest with its slices as well as they can: where an
 * edge and a slice cross, the inner one is closed early and that is reported, because a sink that
 * takes edges could only close the wrong one. The result always nests. */
#include "core/stream/hold.h"
#include "core/stream/lanes.h"
#include "core/stream/oddity.h"
#include "core/stream/stages.h"

#include <stdlib.h>

#define HELD_MAX 65536 /* flow points waiting for a begin, over all tracks */

struct split {
    struct sv_sink sink;
    struct sv_dict *dict;
    struct sv_report *report;
    bool to_edges;
    struct sv_lanes lanes;
    int64_t now_ns;
    size_t n_held;
    struct sv_oddity cut, unmatched, negative, endless;
    struct sv_outbox out;
};

static void emit_end(struct split *s, sv_track track, const struct sv_lane_open *o, int64_t end_ns)
{
    if (!s->to_edges)
        return;
    struct sv_event end = {.ts_ns = end_ns, .track = track, .kind = SV_END};
    if (o->has_thread_end) {
        struct sv_arg *a = sv_outbox_args(&s->out, 1);
        *a = (struct sv_arg){.type = SV_ARG_THREAD_TIME, .i = o->thread_end_ns};
        end.args = a;
        end.n_args = 1;
    }
    sv_outbox_emit(&s->out, &end);
}

/* ---- ends ---- */

/* Closes the top of the lane, be it a slice or an edge that the slice below must not outlive. */
static void close_top(struct split *s, struct sv_lane_row *r, uint32_t lane)
{
    struct sv_lane_open *o = sv_lane_pop(&s->lanes, r, lane);
    if (o->is_edge) {
        r->edges[o->edge] = 1;
        sv_oddity_note(&s->cut, o->due_ns, r->track);
    }
    /* Without to_edges the edge is still open for the sink, which takes both forms; only the slice
     * is whole. */
    emit_end(s, r->lanes[lane].track, o, o->due_ns);
    sv_pool_put(&s->lanes.pool, o, sizeof *o);
}

/* Closes what ends next on the row. */
static void close_next(struct split *s, struct sv_lane_row *r)
{
    close_top(s, r, sv_lane_first_due(r));
}

static void close_before(struct split *s, int64_t ns)
{
    while (s->lanes.n_heap && sv_lane_due(s->lanes.heap[0]) < ns)
        close_next(s, s->lanes.heap[0]);
}

/* Space for a begin at `ns` on the row. */
static void close_row(struct split *s, struct sv_lane_row *r, int64_t ns)
{
    while (sv_lane_due(r) <= ns && sv_lane_due(r) < SV_LANE_NEVER)
        close_next(s, r);
    if (ns < SV_LANE_NEVER)
        return;
    for (uint32_t lane = 0; lane < r->n; lane++) /* the very last time */
        while (r->lanes[lane].top && r->lanes[lane].top->is_last)
            close_top(s, r, lane);
}

/* ---- flow points ---- */

static void hold_flow(struct split *s, struct sv_lane_row *r, const struct sv_event *e)
{
    struct sv_held *h = sv_hold(&s->lanes.pool, e);
    if (r->held)
        r->held_last->next = h;
    else
        r->held = h;
    r->held_last = h;
    s->n_held++;
}

/* The held flow points of the row leave, bound to the begin that has just been written: same time,
 * same lane. */
static void release_flows(struct split *s, struct sv_lane_row *r, sv_track track, bool is_bound)
{
    while (r->held) {
        struct sv_held *h = r->held;
        r->held = h->next;
        s->n_held--;
        struct sv_event *e = sv_outbox_emit(&s->out, &h->event);
        e->ts_ns = s->now_ns;
        e->track = track;
        if (is_bound)
            e->flags &= (uint8_t)~SV_BIND_NEXT;
        sv_outbox_spend(&s->out, h);
    }
}

static void flow_point(struct split *s, const struct sv_event *e)
{
    struct sv_lane_row *r = sv_lanes_row(&s->lanes, e->track, &sv_lanes_by_begin);
    bool starts_here = r->has_begun && r->begun_ns == e->ts_ns;
    if (e->flags & SV_BIND_NEXT && !starts_here && s->n_held < HELD_MAX) {
        hold_flow(s, r, e);
        return;
    }
    struct sv_event *out = sv_outbox_emit(&s->out, e);
    out->track = r->lanes[starts_here ? r->begun_lane : sv_lane_newest(r)].track;
    if (starts_here)
        out->flags &= (uint8_t)~SV_BIND_NEXT;
}

/* ---- slices ---- */

static int64_t end_of(struct split *s, const struct sv_event *e)
{
    if (e->dur_ns == SV_UNFINISHED)
        return SV_LANE_NEVER;
    if (e->dur_ns < 0) {
        sv_oddity_note(&s->negative, e->ts_ns, e->track);
        return e->ts_ns;
    }
    if (!sv_event_ends(e)) { /* no reader gives one */
        sv_oddity_note(&s->endless, e->ts_ns, e->track);
        return INT64_MAX;
    }
    return e->ts_ns + e->dur_ns;
}

static void begun(struct split *s, struct sv_lane_row *r, uint32_t lane)
{
    r->begun_ns = s->now_ns;
    r->begun_lane = lane;
    r->has_begun = true;
    release_flows(s, r, r->lanes[lane].track, true);
}

/* A slice that knows its CPU time at the begin and within it has it at the end too; the begin keeps
 * the first only. */
static void split_thread_time(struct split *s, const struct sv_event *e, struct sv_event *begin,
                              struct sv_lane_open *o)
{
    const struct sv_arg *from = NULL, *within = NULL;
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a)) {
        if (a->type == SV_ARG_THREAD_TIME)
            from = a;
        else if (a->type == SV_ARG_THREAD_DUR)
            within = a;
    }
    if (!from || !within || e->dur_ns == SV_UNFINISHED ||
        __builtin_add_overflow(from->i, within->i, &o->thread_end_ns))
        return;
    o->has_thread_end = true;
    struct sv_arg *args = sv_outbox_args(&s->out, e->n_args);
    size_t at = (size_t)(within - e->args), rest = e->n_args - at - 1;
    memcpy(args, e->args, at * sizeof *args);
    memcpy(args + at, within + 1, rest * sizeof *args);
    begin->args = args;
    begin->n_args = (uint16_t)(e->n_args - 1);
}

static void slice(struct split *s, const struct sv_event *e)
{
    struct sv_lane_row *r = sv_lanes_row(&s->lanes, e->track, &sv_lanes_by_begin);
    close_row(s, r, e->ts_ns);
    int64_t end_ns = end_of(s, e);
    bool is_endless = e->dur_ns == SV_UNFINISHED;
    uint32_t lane = sv_lane_for(&s->lanes, r, end_ns, is_endless);
    bool is_last = end_ns == SV_LANE_NEVER && !is_endless;
    struct sv_lane_open *o = sv_lane_push(&s->lanes, r, lane, e->ts_ns, end_ns, is_last);
    struct sv_event begin = *e;
    begin.track = r->lanes[lane].track;
    if (s->to_edges) {
        begin.kind = SV_BEGIN;
        begin.dur_ns = 0;
        if (e->n_args > 1)
            split_thread_time(s, e, &begin, o);
    } else if (e->dur_ns < 0 && e->dur_ns != SV_UNFINISHED) {
        begin.dur_ns = 0;
    }
    sv_outbox_emit(&s->out, &begin);
    begun(s, r, lane);
}

/* ---- edges that arrive ---- */

static void edge_begin(struct split *s, const struct sv_event *e)
{
    struct sv_lane_row *r = sv_lanes_row(&s->lanes, e->track, &sv_lanes_by_begin);
    close_row(s, r, e->ts_ns);
    const struct sv_lane_open *top = r->lanes[0].top;
    struct sv_lane_open *o =
        sv_lane_push(&s->lanes, r, 0, e->ts_ns, top ? top->due_ns : SV_LANE_NEVER, false);
    o->is_edge = true;
    o->edge = (uint32_t)r->n_edges;
    SV_APPEND(r->edges, r->n_edges, r->cap_edges) = 0;
    sv_outbox_emit(&s->out, e)->track = r->track;
    begun(s, r, 0);
}

static void edge_end(struct split *s, const struct sv_event *e)
{
    struct sv_lane_row *r = sv_lanes_row(&s->lanes, e->track, &sv_lanes_by_begin);
    if (r->n_edges == 0) {
        sv_oddity_note(&s->unmatched, e->ts_ns, r->track);
        return;
    }
    bool was_cut = r->edges[--r->n_edges];
    if (was_cut && s->to_edges)
        return; /* the sink has its end already */
    for (bool found = was_cut; !found;) {
        struct sv_lane_open *o = sv_lane_pop(&s->lanes, r, 0);
        found = o->is_edge;
        if (!found) { /* a slice inside: over, or cut here */
            if (o->due_ns > e->ts_ns)
                sv_oddity_note(&s->cut, e->ts_ns, r->track);
            emit_end(s, r->track, o, e->ts_ns);
        }
        sv_pool_put(&s->lanes.pool, o, sizeof *o);
    }
    sv_outbox_emit(&s->out, e)->track = r->track;
}

/* ---- the stage ---- */

static int out_of_order(const struct split *s, const struct sv_event *e, struct sv_err *err)
{
    return sv_error(err, SV_EFORMAT,
                    "events are not in time order: %" PRId64 " ns after %" PRId64 " ns", e->ts_ns,
                    s->now_ns);
}

static int split_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct split *s = (struct split *)sink;
    s->out.err = err;
    for (size_t i = 0; i < n && s->out.code == 0; i++) {
        const struct sv_event *e = &events[i];
        if (e->ts_ns < s->now_ns)
            return s->out.code = out_of_order(s, e, err);
        s->now_ns = e->ts_ns;
        close_before(s, e->ts_ns);
        switch (e->kind) {
        case SV_SLICE: slice(s, e); break;
        case SV_BEGIN: edge_begin(s, e); break;
        case SV_END: edge_end(s, e); break;
        case SV_FLOW: flow_point(s, e); break;
        default: sv_outbox_emit(&s->out, e); break;
        }
    }
    if (s->out.code == 0)
        s->out.code = sv_oddity_refuse(&s->endless, s->dict, "a slice ends at no time", err);
    return sv_outbox_flush(&s->out);
}

/* What ends at the very last time. */
static void close_last(struct split *s, struct sv_lane_row *r)
{
    for (uint32_t lane = 0; lane < r->n; lane++)
        while (r->lanes[lane].n_last)
            close_top(s, r, lane);
}

/* The last ends, then the flow points that waited in vain. */
static void finish(struct split *s)
{
    while (s->lanes.n_heap && s->out.code == 0) {
        s->now_ns = sv_lane_due(s->lanes.heap[0]);
        close_next(s, s->lanes.heap[0]);
    }
    for (size_t t = 0; t < s->lanes.n_tracks; t++) {
        struct sv_lane_row *r = s->lanes.by_track[t];
        if (r && r->track == t)
            release_flows(s, r, r->track, false);
    }
    for (size_t t = 0; t < s->lanes.n_tracks; t++) {
        struct sv_lane_row *r = s->lanes.by_track[t];
        if (r && r->track == t)
            close_last(s, r);
    }
    sv_outbox_flush(&s->out);
}

static int split_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct split *s = (struct split *)sink;
    s->out.err = err;
    if (failed && s->out.code == 0)
        s->out.code = SV_EIO; /* nothing more is written */
    finish(s);
    sv_oddity_report(
        &s->cut, s->report, s->dict, SV_DAMAGE,
        "a begin/end pair and a slice of one track cross; the inner one was closed early");
    sv_oddity_report(&s->unmatched, s->report, s->dict, SV_DAMAGE, "end without begin");
    sv_oddity_report(&s->negative, s->report, s->dict, SV_DAMAGE, "negative duration, taken as 0");
    int code = sv_outbox_close(&s->out, failed, err);
    sv_lanes_fini(&s->lanes);
    free(s);
    return code;
}

static struct sv_sink *stage_new(struct sv_dict *dict, struct sv_report *report,
                                 struct sv_sink *next, bool to_edges)
{
    struct split *s = sv_alloc(sizeof *s);
    s->sink.write = split_write;
    s->sink.close = split_close;
    s->sink.takes = (sv_sink_wants(next) | SV_HAS_SLICES) & ~SV_ORDER_BITS;
    s->dict = dict;
    s->report = report;
    s->to_edges = to_edges;
    s->now_ns = INT64_MIN;
    sv_lanes_init(&s->lanes, dict);
    sv_outbox_init(&s->out, &s->lanes.pool, next);
    return &s->sink;
}

struct sv_sink *sv_split_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next)
{
    return stage_new(dict, report, next, true);
}

struct sv_sink *sv_lanes_new(struct sv_dict *dict, struct sv_report *report, struct sv_sink *next)
{
    return stage_new(dict, report, next, false);
}

/* Moments of the life cycle to slices, flows and counters of the SDK.
 *
 * Called by the tracer's writing thread only, with times in the past; the SDK puts overlapping
 * slices on sibling rows. Names are few (numbers are arguments), so that the dictionary stays small
 * whatever the number of requests. */
#include "serving/server_tracks.h"

#include "core/base/sat.h"
#include "core/stream/trace_context.h"
#include "serving/engine_tracks.h"
#include "serving/tracer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A phase shorter than this part of the whole could not be seen and is not drawn; the life cycle
 * has it. */
enum { PHASE_PARTS = 256 };
enum { ROWS_MAX = 1024, FLOWS_MAX = 1024 };
#define CATEGORY "serving"

void sv_timeline_init(struct sv_timeline *t, const struct stave_serving *server,
                      stave_track_t group)
{
    memset(t, 0, sizeof *t);
    t->server = server;
    t->group = group;
    t->queued.track = stave_counter(group, "queue depth", "requests");
    t->inflight.track = stave_counter(group, "in flight", "batches");
    t->size.track = stave_counter(group, "batch size", "samples");
    t->rejected.track = stave_counter(group, "rejected", "requests");
    sv_engine_tracks_init(t);
    t->congestion = stave_track(group, "congestion");
    t->requests = stave_track(group, "requests");
    t->batches = stave_track(group, "batches");
    t->workers = stave_track(group, "workers");
    const stave_track_t order[] = {t->queued.track,   t->inflight.track, t->size.track,
                                   t->rejected.track, t->congestion,     t->requests,
                                   t->batches,        t->workers};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        stave_set_track_order(order[i], (int64_t)i);
    int64_t now_ns = stave_now_ns(); /* from 0 on: a viewer draws nothing before the first value */
    SV_COUNTER_AT(t->queued.track, now_ns, CATEGORY, (int64_t)0);
    SV_COUNTER_AT(t->inflight.track, now_ns, CATEGORY, (int64_t)0);
    SV_COUNTER_AT(t->rejected.track, now_ns, CATEGORY, (int64_t)0);
}

void sv_timeline_fini(struct sv_timeline *t)
{
    sv_engine_tracks_fini(t);
    sv_map_fini(&t->request_tracks);
    sv_map_fini(&t->batch_tracks);
    sv_map_fini(&t->worker_tracks);
}

/* ---- tracks ---- */

static stave_track_t row_track(struct sv_map *tracks, stave_track_t parent, const char *what,
                               uint32_t row)
{
    bool is_new;
    row %= ROWS_MAX; /* past it rows are shared */
    uint64_t *track = sv_map_add(tracks, row, &is_new);
    if (is_new) {
        char name[64];
        snprintf(name, sizeof name, "%s %" PRIu32, what, row + 1);
        *track = stave_track(parent, name);
        stave_set_track_order((stave_track_t)*track, row);
    }
    return (stave_track_t)*track;
}

stave_track_t sv_timeline_request_track(struct sv_timeline *t, uint32_t row)
{
    return row_track(&t->request_tracks, t->requests, "requests", row);
}

static stave_track_t worker_track(struct sv_timeline *t, const struct sv_life_worker *w,
                                  uint32_t lane)
{
    bool is_new;
    uint64_t *track =
        sv_map_add(&t->worker_tracks, (uint64_t)(uint32_t)w->number << 32 | lane, &is_new);
    if (is_new) {
        char name[SV_WORKER_LABEL_MAX];
        sv_life_worker_label(w, lane, name);
        *track = stave_track(t->workers, name);
        stave_set_track_order((stave_track_t)*track, (int64_t)w->number * 1000 + lane);
    }
    return (stave_track_t)*track;
}

/* ---- counters ---- */

static void emit_counter(struct sv_timeline *t, struct sv_server_counter *c)
{
    SV_COUNTER_AT(c->track, c->time_ns, CATEGORY, c->value);
    c->emitted_ns = c->time_ns;
    c->is_pending = false;
    t->n_events++;
}

void sv_timeline_count(struct sv_timeline *t, struct sv_server_counter *c, int64_t time_ns,
                       uint64_t value)
{
    /* The value before a pause is recorded where it was reached, not where the next one begins. */
    if (c->is_pending && sv_sat_sub(time_ns, c->time_ns) >= SV_COUNTER_STEP_NS)
        emit_counter(t, c);
    c->time_ns = time_ns;
    c->value = (int64_t)value;
    c->is_pending = true;
    if (sv_sat_sub(time_ns, c->emitted_ns) >= SV_COUNTER_STEP_NS)
        emit_counter(t, c);
}

void sv_timeline_settle(struct sv_timeline *t)
{
    struct sv_engine_timeline *e = &t->engine;
    struct sv_server_counter *all[] = {&t->queued,  &t->inflight, &t->size, &t->rejected,
                                       &e->running, &e->tokens,   &e->kv,   &e->waiting};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->is_pending)
            emit_counter(t, all[i]);
}

/* ---- slices ---- */

static bool is_warm(uint32_t flags)
{
    return flags & SV_LIFE_WARMUP;
}

/* A call place for each phase: their names are in the dictionary once. */
static void put_phase(stave_track_t track, enum sv_life_phase phase, int64_t start, int64_t dur)
{
    switch (phase) {
    case SV_PHASE_QUEUE: stave_complete(track, CATEGORY, "queue", start, dur); break;
    case SV_PHASE_BATCH: stave_complete(track, CATEGORY, "batch", start, dur); break;
    case SV_PHASE_SUBMIT: stave_complete(track, CATEGORY, "submit", start, dur); break;
    case SV_PHASE_SCHEDULING: stave_complete(track, CATEGORY, "scheduling", start, dur); break;
    case SV_PHASE_RUN: stave_complete(track, CATEGORY, "run", start, dur); break;
    case SV_PHASE_CALLBACK: stave_complete(track, CATEGORY, "callback", start, dur); break;
    default: stave_complete(track, CATEGORY, "respond", start, dur); break;
    }
}

static void put_phases(struct sv_timeline *t, stave_track_t track, const int64_t *edges)
{
    int64_t least = (edges[SV_N_PHASES] - edges[0]) / PHASE_PARTS;
    for (int i = 0; i < SV_N_PHASES; i++) {
        if (edges[i + 1] - edges[i] <= least)
            continue;
        put_phase(track, (enum sv_life_phase)i, edges[i], edges[i + 1] - edges[i]);
        t->n_events++;
    }
}

static const char *hex(const uint8_t *bytes, size_t n, char text[33])
{
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return text;
}

/* The ids and the arrow from the span that made the request. */
void sv_timeline_context(struct stave_args *a, const struct sv_life_context *c)
{
    char text[33];
    if (!c)
        return;
    stave_args_text(a, "trace_id", hex(c->trace_id, sizeof c->trace_id, text));
    stave_args_text(a, "span_id", hex(c->span_id, sizeof c->span_id, text));
    if (c->state[0])
        stave_args_text(a, "otel.trace_state", c->state);
    if (!sv_is_id(c->parent_id, sizeof c->parent_id))
        return;
    stave_args_text(a, "parent_span_id", hex(c->parent_id, sizeof c->parent_id, text));
    stave_args_flow(a, STAVE_FLOW_IN, sv_trace_flow(c->trace_id, c->parent_id));
}

static void put_called_request(struct sv_timeline *t, struct sv_life *l,
                               const struct sv_life_request *r, const struct sv_life_batch *b,
                               const int64_t *edges)
{
    struct stave_args *a = &t->args;
    stave_args_init(a);
    stave_args_uint(a, "request", r->id);
    if (b)
        stave_args_uint(a, "batch", b->id);
    else
        stave_args_text(a, "model", sv_life_model(l, r->model));
    if (!b || r->fate != SV_FATE_RESPONDED)
        stave_args_text(a, "outcome", sv_life_fate_names[r->fate]);
    sv_timeline_context(a, r->context);
    if (b)
        stave_args_flow(a, STAVE_FLOW_OUT, stave_serving_request_flow(t->server, r->id));
    SV_COMPLETE_NAMED(sv_timeline_request_track(t, r->row), edges[0], edges[SV_N_PHASES] - edges[0],
                      is_warm(r->flags) ? "warming_request" : "request", CATEGORY, 0, "", a);
}

/* The usual request has the cheapest slice; its model is that of its batch. */
static void put_request(struct sv_timeline *t, struct sv_life *l, const struct sv_life_request *r,
                        const struct sv_life_batch *b)
{
    int64_t edges[SV_N_PHASES + 1];
    stave_track_t track = sv_timeline_request_track(t, r->row);
    sv_life_request_edges(r, b, edges);
    int64_t dur = edges[SV_N_PHASES] - edges[0];
    uint64_t flow = stave_serving_request_flow(t->server, r->id);
    if (r->context)
        put_called_request(t, l, r, b, edges);
    else if (b && r->fate == SV_FATE_RESPONDED && !is_warm(r->flags))
        stave_complete(track, CATEGORY, "request", edges[0], dur, "request", r->id, "batch", b->id,
                       STAVE_FLOW_OUT, flow);
    else if (b)
        SV_COMPLETE_NAMED(track, edges[0], dur, is_warm(r->flags) ? "warming_request" : "request",
                          CATEGORY, 0, "request", r->id, "batch", b->id, "outcome",
                          sv_life_fate_names[r->fate], STAVE_FLOW_OUT, flow);
    else
        SV_COMPLETE_NAMED(track, edges[0], dur, is_warm(r->flags) ? "warming_request" : "request",
                          CATEGORY, 0, "request", r->id, "model", sv_life_model(l, r->model),
                          "outcome", sv_life_fate_names[r->fate]);
    t->n_events++;
    put_phases(t, track, edges);
}

static void put_batch(struct sv_timeline *t, struct sv_life *l, const struct sv_life_batch *b)
{
    int64_t edges[SV_N_PHASES + 1];
    stave_track_t track = row_track(&t->batch_tracks, t->batches, "batches", b->row);
    struct stave_args *a = &t->args;
    sv_life_batch_edges(b, edges);
    stave_args_init(a);
    stave_args_limit(a, FLOWS_MAX);
    stave_args_uint(a, "batch", b->id);
    stave_args_text(a, "model", sv_life_model(l, b->model));
    stave_args_uint(a, "requests", b->n);
    stave_args_uint(a, "samples", b->samples);
    if (b->worker >= 0)
        stave_args_int(a, "worker", b->worker);
    if (!b->is_failed)
        stave_args_flow(a, STAVE_FLOW_OUT, stave_serving_batch_flow(t->server, b->id));
    for (uint32_t i = 0; i < b->n && i < FLOWS_MAX; i++)
        stave_args_flow(a, STAVE_FLOW_IN, stave_serving_request_flow(t->server, b->members[i].id));
    int64_t start = edges[SV_PHASE_BATCH]; /* the batch begins when its collection does */
    edges[SV_PHASE_QUEUE] = start;
    SV_COMPLETE_NAMED(track, start, edges[SV_N_PHASES] - start,
                      is_warm(b->flags) ? "warming_batch" : "batch", CATEGORY, 0, "", a);
    t->n_events++;
    put_phases(t, track, edges);
}

static void put_worker_span(struct sv_timeline *t, struct sv_life *l, const struct sv_life_batch *b)
{
    if (b->worker < 0 || b->finished_ns < b->started_ns)
        return;
    char name[SV_SERVING_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s%s", is_warm(b->flags) ? "warming_" : "",
             sv_life_model(l, b->model));
    stave_track_t track = worker_track(t, sv_life_worker(l, b->worker), b->lane);
    SV_COMPLETE_NAMED(track, b->started_ns, b->finished_ns - b->started_ns, name, CATEGORY, 0,
                      "batch", b->id, "samples", b->samples, STAVE_FLOW_IN,
                      stave_serving_batch_flow(t->server, b->id));
    t->n_events++;
}

void sv_timeline_operators(struct sv_timeline *t, struct sv_life *l, uint64_t batch,
                           const struct stave_serving_operator *operators, uint32_t n)
{
    const struct sv_life_batch *b = sv_life_find_batch(l, batch);
    if (!b || b->worker < 0 || !b->is_finished) /* its slice is not there */
        return;
    stave_track_t track = worker_track(t, sv_life_worker(l, b->worker), b->lane);
    for (uint32_t i = 0; i < n; i++) {
        const struct stave_serving_operator *o = &operators[i];
        if (!o->name || o->start_ns < b->started_ns || o->end_ns > b->finished_ns ||
            o->end_ns < o->start_ns)
            continue;
        SV_COMPLETE_NAMED(track, o->start_ns, o->end_ns - o->start_ns, o->name, "cpu_op", 0,
                          "layer", o->layer ? o->layer : "", "batch", b->id);
        t->n_events++;
    }
}

static void put_congestion(struct sv_timeline *t, int64_t end_ns)
{
    if (t->congested_ns && end_ns > t->congested_ns)
        stave_complete(t->congestion, CATEGORY, "congestion", t->congested_ns,
                       end_ns - t->congested_ns);
    t->congested_ns = 0;
}

void sv_timeline_count_moment(struct sv_timeline *t, const struct sv_life *l,
                              enum sv_life_moment moment, int64_t time_ns,
                              const struct sv_life_batch *b)
{
    const struct sv_life_counts *n = sv_life_count(l);
    int64_t edges[SV_N_PHASES + 1];
    switch (moment) {
    case SV_MOMENT_ENQUEUED:
    case SV_MOMENT_DEQUEUED: sv_timeline_count(t, &t->queued, time_ns, n->queued); break;
    case SV_MOMENT_REJECTED: sv_timeline_count(t, &t->rejected, time_ns, n->rejected); break;
    case SV_MOMENT_SUBMITTED: sv_timeline_count(t, &t->inflight, time_ns, n->inflight); break;
    case SV_MOMENT_BATCH_OVER:
        sv_life_batch_edges(b, edges);
        sv_timeline_count(t, &t->size, edges[SV_PHASE_BATCH], b->samples);
        sv_timeline_count(t, &t->inflight, time_ns, n->inflight);
        break;
    default: break;
    }
}

void sv_timeline_record(struct sv_timeline *t, struct sv_life *l, enum sv_life_moment moment,
                        int64_t time_ns, const struct sv_life_request *r,
                        const struct sv_life_batch *b)
{
    switch (moment) {
    case SV_MOMENT_REJECTED:
        SV_INSTANT_AT(t->requests, time_ns, CATEGORY, "rejected", "request", r->id, "model",
                      sv_life_model(l, r->model));
        break;
    case SV_MOMENT_FINISHED: put_worker_span(t, l, b); break;
    case SV_MOMENT_BATCH_OVER: put_batch(t, l, b); break;
    case SV_MOMENT_REQUEST_OVER:
        if (r->phase != SV_ENGINE_NONE && !b)
            sv_engine_request_over(t, l, r);
        else
            put_request(t, l, r, b);
        break;
    case SV_MOMENT_JOINED: sv_engine_request_joined(t, r); break;
    case SV_MOMENT_CONGESTED: t->congested_ns = t->congested_ns ? t->congested_ns : time_ns; break;
    case SV_MOMENT_NOT_CONGESTED: put_congestion(t, time_ns ? time_ns : stave_now_ns()); break;
    case SV_MOMENT_ENQUEUED:
    case SV_MOMENT_DEQUEUED:
    case SV_MOMENT_SUBMITTED:
    case SV_MOMENT_BATCH_CLOSED: break;
    }
}

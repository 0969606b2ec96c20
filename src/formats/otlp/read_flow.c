/* Flows between the spans of OTLP: see reader.h.
 *
 * A span whose parent is another process's, and one with links, follows from spans that may come
 * before or after it in the file, or be another sender's. The number of the flow is made of the ids
 * of the span that it leaves (core/stream/trace_context.h). The end is an argument of the span that
 * follows. The beginning is one of the other span if it calls others (a client or producer), or if
 * a follower came before it in the file (mostly so: a call ends before its caller does); else a
 * flow point is put on its track, at the time at which the follower began or, if it was not running
 * then, at its begin. Spans that came are remembered for a while only, so that memory is
 * bounded. */
#include "core/base/mem.h"
#include "core/stream/trace_context.h"
#include "formats/otlp/reader.h"

#include <stdlib.h>

#define SEEN_MAX    ((size_t)SV_TABLE(1 << 20, 1 << 8))
#define WAITING_MAX ((size_t)1 << 24)

static void remember(struct otlp_flows *f, const struct otlp_seen *s)
{
    size_t place = f->n_seen % SEEN_MAX;
    bool is_new;
    if (f->n_seen < SEEN_MAX)
        f->seen = sv_grow(f->seen, &f->cap_seen, f->n_seen + 1, sizeof *f->seen);
    else
        sv_map_remove(&f->seen_at, f->seen[place].flow);
    *sv_map_add(&f->seen_at, s->flow, &is_new) = place; /* of two with the same ids the later one */
    f->seen[place] = *s;
    f->n_seen++;
}

static void put_flow(struct sv_batch *b, unsigned type, uint64_t flow)
{
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    a->u = flow;
}

/* This span follows from the one that the flow leaves. */
static void follow(struct otlp_flows *f, struct sv_batch *b, uint64_t flow, int64_t ts_ns)
{
    bool is_new;
    uint64_t *place = sv_map_find(&f->seen_at, flow);
    put_flow(b, SV_ARG_FLOW_END, flow);
    if (!place) {
        f->n_unmet++;
        if (f->waiting.n < WAITING_MAX)
            ++*sv_map_add(&f->waiting, flow, &is_new);
        return;
    }
    struct otlp_seen *s = &f->seen[*place];
    if (s->has_begun)
        return;
    s->has_begun = true;
    bool is_running = ts_ns >= s->ts_ns && ts_ns <= s->end_ns;
    SV_APPEND(f->points, f->n_points, f->cap_points) =
        (struct otlp_point){flow, is_running ? ts_ns : s->ts_ns, s->track};
}

static bool has_remote_parent(const struct otlp_span *s)
{
    if (!s->parent_id)
        return false;
    if (s->flags & OTLP_FLAG_KNOWS_REMOTE)
        return (s->flags & OTLP_FLAG_IS_REMOTE) != 0;
    return s->kind == OTLP_KIND_SERVER || s->kind == OTLP_KIND_CONSUMER;
}

static bool read_link(struct sv_pb w, uint64_t *flow)
{
    const uint8_t *trace_id = NULL, *id = NULL;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (f.type != SV_PB_BYTES)
            continue;
        if (f.id == OTLP_LINK_TRACE_ID && f.u == OTLP_TRACE_ID_BYTES)
            trace_id = f.bytes;
        else if (f.id == OTLP_LINK_SPAN_ID && f.u == OTLP_SPAN_ID_BYTES)
            id = f.bytes;
    }
    if (w.bad || !trace_id || !id)
        return false;
    *flow = sv_trace_flow(trace_id, id);
    return true;
}

/* Does the flow of this span begin here? */
static bool leads(struct otlp_flows *f, const struct otlp_span *s, uint64_t flow)
{
    uint64_t *waiting = sv_map_find(&f->waiting, flow);
    if (waiting) {
        f->n_unmet -= *waiting;
        sv_map_remove(&f->waiting, flow);
        return true;
    }
    return s->kind == OTLP_KIND_CLIENT || s->kind == OTLP_KIND_PRODUCER;
}

void otlp_flow_args(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                    const struct otlp_span *s, sv_track track, int64_t end_ns)
{
    struct otlp_flows *f = &r->flows;
    uint64_t flow;
    if (!s->trace_id || !s->id)
        return;
    struct otlp_seen own = {.flow = sv_trace_flow(s->trace_id, s->id),
                            .ts_ns = (int64_t)s->start,
                            .end_ns = end_ns,
                            .track = track};
    if (has_remote_parent(s))
        follow(f, b, sv_trace_flow(s->trace_id, s->parent_id), own.ts_ns);
    for (struct sv_pb_field field; sv_pb_next(&w, &field);) {
        if (field.id != OTLP_SPAN_LINKS || field.type != SV_PB_BYTES)
            continue;
        if (read_link(sv_pb_sub(&field), &flow))
            follow(f, b, flow, own.ts_ns);
        else
            otlp_damage(r, field.bytes, "link without valid ids", NULL);
    }
    own.has_begun = leads(f, s, own.flow);
    if (own.has_begun)
        put_flow(b, SV_ARG_FLOW_BEGIN, own.flow);
    remember(f, &own);
}

bool otlp_flow_point(struct otlp_reader *r, struct sv_batch *b)
{
    struct otlp_flows *f = &r->flows;
    if (f->at_point == f->n_points) {
        f->at_point = f->n_points = 0;
        return false;
    }
    const struct otlp_point *p = &f->points[f->at_point++];
    struct sv_event *e = sv_batch_put(b, SV_FLOW, p->ts_ns, p->track, 0, 0);
    put_flow(b, SV_ARG_FLOW_BEGIN, p->flow);
    sv_batch_finish(b, e);
    return true;
}

void otlp_flows_fini(struct otlp_flows *f)
{
    sv_map_fini(&f->seen_at);
    sv_map_fini(&f->waiting);
    free(f->seen);
    free(f->points);
}

/* The trace as a source: everything in it again, in the order of time.
 *
 * One cursor per track and table, each in order by itself, and a heap over them. A track of edges
 * leaves as edges, in exactly the order in which they were paired: before a row begins, the open
 * ones are ended until its parent is on top. Equal times: slices before counters before losses
 * before flow points, then by track. */
#include "core/base/heap.h"
#include "store/trace_impl.h"

#include <assert.h>
#include <stdlib.h>

enum cursor_kind { EDGES, SLICES, COUNTERS, LOSSES, POINTS };

struct cursor {
    int64_t ts_ns; /* of its next event */
    uint32_t next, end;
    uint32_t open; /* EDGES: the innermost open row */
    sv_track track;
    enum cursor_kind kind;
};

struct trace_source {
    struct sv_source base;
    const struct sv_trace *trace;
    struct cursor *heap; /* [0] is the earliest */
    size_t n, cap;
};

/* ---- cursors ---- */

/* The row that must end before the next one begins, or SV_NO_ROW. Unfinished slices are left
 * open. */
static uint32_t row_to_end(const struct sv_trace *t, struct cursor *c)
{
    const struct sv_slices *s = &t->slices;
    if (c->next < c->end)
        return c->open == s->parent[c->next] ? SV_NO_ROW : c->open;
    while (c->open != SV_NO_ROW && s->dur_ns[c->open] == SV_UNFINISHED)
        c->open = s->parent[c->open];
    return c->open;
}

/* Finds the time of the next event; false at the end. */
static bool advance(const struct sv_trace *t, struct cursor *c)
{
    const int64_t *const columns[] = {[EDGES] = t->slices.ts_ns,
                                      [SLICES] = t->slices.ts_ns,
                                      [COUNTERS] = t->counters.ts_ns,
                                      [LOSSES] = t->losses.ts_ns,
                                      [POINTS] = t->points.ts_ns};
    uint32_t ending = c->kind == EDGES ? row_to_end(t, c) : SV_NO_ROW;
    if (ending != SV_NO_ROW)
        c->ts_ns = sv_row_end(&t->slices, ending);
    else if (c->next < c->end)
        c->ts_ns = columns[c->kind][c->next];
    else
        return false;
    return true;
}

static bool comes_before(const struct cursor *a, const struct cursor *b)
{
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns;
    enum cursor_kind x = a->kind == EDGES ? SLICES : a->kind,
                     y = b->kind == EDGES ? SLICES : b->kind;
    return x != y ? x < y : a->track < b->track;
}

static void sift_down(struct trace_source *s, size_t i)
{
    SV_HEAP_SINK(s->heap, s->n, i, a, b, comes_before(a, b));
}

static void add_cursor(struct trace_source *s, enum cursor_kind kind, sv_track track,
                       uint64_t first, uint64_t end)
{
    struct cursor c = {.next = (uint32_t)first,
                       .end = (uint32_t)end,
                       .open = SV_NO_ROW,
                       .track = track,
                       .kind = kind};
    if (first == end || !advance(s->trace, &c))
        return;
    SV_APPEND(s->heap, s->n, s->cap) = c;
}

/* ---- events ---- */

static void set_args(const struct sv_trace *t, struct sv_batch *b, struct sv_event *e,
                     uint32_t list)
{
    size_t n;
    e->args = sv_trace_args(t, list, b, &n);
    e->n_args = (uint16_t)(n < SV_ARGS_MAX ? n : SV_ARGS_MAX);
}

static void set_one_arg(struct sv_batch *b, struct sv_event *e, struct sv_arg arg)
{
    struct sv_arg *a = sv_arena_get(&b->arena, sizeof *a, _Alignof(struct sv_arg));
    *a = arg;
    e->args = a;
    e->n_args = 1;
}

static void give_row(const struct sv_trace *t, struct sv_batch *b, struct sv_event *e, uint32_t row)
{
    const struct sv_slices *s = &t->slices;
    e->kind = s->kind[row];
    e->dur_ns = s->dur_ns[row];
    e->name = s->name[row];
    e->cat = s->cat[row];
    e->flags = s->flags[row];
    set_args(t, b, e, s->args[row]);
}

static void give_edge(const struct sv_trace *t, struct sv_batch *b, struct sv_event *e,
                      struct cursor *c)
{
    const struct sv_slices *s = &t->slices;
    uint32_t begin, end, ending = row_to_end(t, c);
    if (ending != SV_NO_ROW) {
        sv_lists_split(&t->impl->args, s->args[ending], &begin, &end);
        e->kind = SV_END;
        set_args(t, b, e, end);
        c->open = s->parent[ending];
        return;
    }
    uint32_t row = c->next++;
    give_row(t, b, e, row);
    if (e->kind == SV_INSTANT)
        return;
    sv_lists_split(&t->impl->args, s->args[row], &begin, &end);
    e->kind = SV_BEGIN;
    e->dur_ns = 0;
    if (end)
        set_args(t, b, e, begin);
    c->open = row;
}

static void give_loss(const struct sv_trace *t, struct sv_batch *b, struct sv_event *e,
                      uint32_t row)
{
    const struct sv_losses *l = &t->losses;
    e->kind = SV_LOSS;
    e->track = l->track[row];
    e->dur_ns = l->dur_ns[row];
    e->name = l->cause[row];
    set_one_arg(b, e, (struct sv_arg){.type = SV_ARG_INT, .u = l->count[row]});
}

static void give_point(const struct sv_trace *t, struct sv_batch *b, struct sv_event *e,
                       uint32_t row)
{
    const struct sv_flow_points *p = &t->points;
    e->kind = SV_FLOW;
    e->track = p->track[row];
    e->flags = p->flags[row];
    set_one_arg(b, e, (struct sv_arg){.type = p->type[row], .u = p->id[row]});
}

static void give(const struct sv_trace *t, struct sv_batch *b, struct cursor *c)
{
    struct sv_event *e = sv_batch_event(b);
    e->ts_ns = c->ts_ns;
    e->track = c->track;
    switch (c->kind) {
    case EDGES: give_edge(t, b, e, c); break;
    case SLICES: give_row(t, b, e, c->next++); break;
    case COUNTERS:
        e->kind = SV_COUNTER;
        set_one_arg(b, e, sv_trace_counter(t, c->next++));
        break;
    case LOSSES: give_loss(t, b, e, c->next++); break;
    case POINTS: give_point(t, b, e, c->next++); break;
    }
}

/* ---- the source ---- */

static int next_batch(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct trace_source *s = (struct trace_source *)source;
    (void)err;
    while (s->n && b->n < SV_BATCH) {
        struct cursor *c = &s->heap[0];
        give(s->trace, b, c);
        if (!advance(s->trace, c))
            *c = s->heap[--s->n];
        if (s->n)
            sift_down(s, 0);
    }
    return (int)b->n;
}

static void close_source(struct sv_source *source)
{
    struct trace_source *s = (struct trace_source *)source;
    free(s->heap);
    free(s);
}

struct sv_source *sv_trace_source(const struct sv_trace *t, struct sv_report *report)
{
    struct trace_source *s = sv_alloc(sizeof *s);
    assert(t->impl->finished);
    s->trace = t;
    s->base = (struct sv_source){
        .next = next_batch, .close = close_source, .dict = t->dict, .report = report};
    for (uint32_t k = 0; k < t->n_tracks; k++) {
        const struct sv_trace_track *track = &t->tracks[k];
        if (track->first < track->end)
            s->base.gives |= track->has_edges ? SV_HAS_EDGES : SV_HAS_NESTED;
        if (track->has_overlap)
            s->base.gives |= SV_HAS_SLICES;
        add_cursor(s, track->has_edges ? EDGES : SLICES, k, track->first, track->end);
        add_cursor(s, COUNTERS, k, track->counter_first, track->counter_end);
    }
    if (t->points.n)
        s->base.gives |= SV_HAS_FLOW_POINTS;
    add_cursor(s, LOSSES, 0, 0, t->losses.n);
    add_cursor(s, POINTS, 0, 0, t->points.n);
    for (size_t i = s->n / 2; i-- > 0;)
        sift_down(s, i);
    return &s->base;
}

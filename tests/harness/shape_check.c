/* Checks streams against their statements: see shape_check.h.
 *
 * Begins and ends are kept and paired twice, as they came and sorted by time: in order (globally or
 * per track) both must be the same. Of streams without order only the sorted ones are looked at.
 * Whole slices that are said to nest take part as a begin and an end in a row. */
#include "tests/harness/shape_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape_item {
    int64_t ts_ns, end_ns; /* end_ns of begins: INT64_MAX until it is known */
    sv_track track;
    bool is_end;
    size_t seq;   /* as they came */
    size_t begin; /* of ends: the item that it closes */
    size_t below; /* of begins: what was open before + 1 */
};

static void wrong(struct shape_check *c, const char *what, int64_t ts_ns, sv_track track)
{
    if (c->wrong[0] == '\0')
        snprintf(c->wrong, sizeof c->wrong, "%s: event %" PRIu64 " at %" PRId64 " on track %u",
                 what, c->n_events, ts_ns, track);
}

static size_t add_item(struct shape_check *c, int64_t ts_ns, sv_track track)
{
    c->items = sv_grow(c->items, &c->cap, c->n + 1, sizeof *c->items);
    c->items[c->n] =
        (struct shape_item){.ts_ns = ts_ns, .track = track, .end_ns = INT64_MAX, .seq = c->n};
    return c->n++;
}

static size_t *open_of(struct shape_check *c, sv_track track)
{
    if (track >= c->n_tracks) {
        c->open = sv_grow(c->open, &c->cap_tracks, (size_t)track + 1, sizeof *c->open);
        memset(c->open + c->n_tracks, 0, ((size_t)track + 1 - c->n_tracks) * sizeof *c->open);
        c->n_tracks = (size_t)track + 1;
    }
    return &c->open[track];
}

static void see_begin(struct shape_check *c, int64_t ts_ns, sv_track track)
{
    size_t *open = open_of(c, track);
    size_t at = add_item(c, ts_ns, track);
    c->items[at].below = *open;
    *open = at + 1;
}

static void see_end(struct shape_check *c, int64_t ts_ns, sv_track track)
{
    size_t *open = open_of(c, track);
    bool has_order = (c->gives & SV_ORDER_BITS) != SV_IN_NO_ORDER;
    if (*open == 0 && has_order)
        return;
    size_t at = add_item(c, ts_ns, track);
    c->items[at].is_end = true;
    if (!has_order)
        return;
    struct shape_item *begin = &c->items[*open - 1];
    if (ts_ns < begin->ts_ns)
        wrong(c, "an end before its begin", ts_ns, track);
    c->items[at].begin = *open - 1;
    begin->end_ns = ts_ns;
    *open = begin->below;
}

static void see_slice(struct shape_check *c, const struct sv_event *e)
{
    int64_t end_ns = 0;
    bool is_whole = e->dur_ns >= 0 && !__builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns);
    if ((c->gives & SV_HAS_SLICES) == SV_HAS_SLICES)
        return;
    size_t at = add_item(c, e->ts_ns, e->track);
    if (!is_whole)
        return;
    c->items[at].end_ns = end_ns;
    size_t end = add_item(c, end_ns, e->track);
    c->items[end].is_end = true;
    c->items[end].begin = at;
}

static void see(struct shape_check *c, const struct sv_event *e)
{
    if ((c->gives & SV_ORDER_BITS) == SV_IN_ORDER && c->has_last && e->ts_ns < c->last_ns)
        wrong(c, "time goes back", e->ts_ns, e->track);
    c->last_ns = e->ts_ns;
    c->has_last = true;
    switch (e->kind) {
    case SV_BEGIN: see_begin(c, e->ts_ns, e->track); break;
    case SV_END: see_end(c, e->ts_ns, e->track); break;
    case SV_SLICE: see_slice(c, e); break;
    default: break;
    }
    if ((e->kind == SV_BEGIN || e->kind == SV_END) && !(c->gives & SV_HAS_EDGES))
        wrong(c, "an edge", e->ts_ns, e->track);
    if (e->kind == SV_SLICE && !(c->gives & SV_HAS_NESTED))
        wrong(c, "a slice", e->ts_ns, e->track);
    if (e->kind == SV_FLOW && !(c->gives & SV_HAS_FLOW_POINTS))
        wrong(c, "a flow point", e->ts_ns, e->track);
    c->n_events++;
}

void shape_check_see(struct shape_check *c, const struct sv_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        see(c, &events[i]);
}

static int by_time(const void *a, const void *b)
{
    const struct shape_item *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->seq < y->seq ? -1 : 1;
}

/* Sorted by time, each end must close what it closes as they came, or what ends at the same
 * time. */
static void check_pairs(struct shape_check *c)
{
    const struct shape_item **stack = sv_alloc((c->n + 1) * sizeof *stack);
    int64_t *ends = sv_alloc((c->n + 1) * sizeof *ends); /* by seq, before the sort */
    for (size_t i = 0; i < c->n; i++)
        ends[i] = c->items[i].end_ns;
    qsort(c->items, c->n, sizeof *c->items, by_time);
    size_t depth = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct shape_item *it = &c->items[i];
        if (i > 0 && it->track != c->items[i - 1].track)
            depth = 0;
        if (!it->is_end) {
            stack[depth++] = it;
            continue;
        }
        if (depth == 0 || ends[stack[--depth]->seq] != it->ts_ns) {
            wrong(c, "not paired as after a sort", it->ts_ns, it->track);
            break;
        }
    }
    free(stack);
    free(ends);
}

/* Slices alone: edges of a stream without order are paired by the sort. */
static int by_extent(const void *a, const void *b)
{
    const struct shape_item *x = a, *y = b;
    if (x->track != y->track || x->ts_ns != y->ts_ns)
        return by_time(a, b);
    return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static void check_nesting(struct shape_check *c)
{
    int64_t *stack = sv_alloc((c->n + 1) * sizeof *stack);
    size_t depth = 0, n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!c->items[i].is_end)
            c->items[n++] = c->items[i];
    qsort(c->items, n, sizeof *c->items, by_extent);
    for (size_t i = 0; i < n; i++) {
        const struct shape_item *it = &c->items[i];
        if (i > 0 && it->track != c->items[i - 1].track)
            depth = 0;
        while (depth > 0 && stack[depth - 1] <= it->ts_ns)
            depth--;
        if (depth > 0 && stack[depth - 1] < it->end_ns)
            wrong(c, "slices that cross", it->ts_ns, it->track);
        stack[depth++] = it->end_ns;
    }
    free(stack);
}

const char *shape_check_end(struct shape_check *c)
{
    bool has_order = (c->gives & SV_ORDER_BITS) != SV_IN_NO_ORDER;
    if (c->n > 0 && has_order)
        check_pairs(c);
    else if (c->n > 0 && !(c->gives & SV_HAS_EDGES))
        check_nesting(c);
    free(c->items);
    free(c->open);
    c->items = NULL;
    c->open = NULL;
    c->n = c->n_tracks = c->cap = c->cap_tracks = 0;
    return c->wrong;
}

static int check_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct shape_check *c = (struct shape_check *)s;
    shape_check_see(c, events, n);
    return c->next ? c->next->write(c->next, events, n, err) : 0;
}

static int check_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct shape_check *c = (struct shape_check *)s;
    return c->next ? c->next->close(c->next, failed, err) : 0;
}

struct sv_sink *shape_check_sink(struct shape_check *c, unsigned gives, struct sv_sink *next)
{
    *c = (struct shape_check){.sink = {.write = check_write, .close = check_close, .takes = gives},
                              .next = next,
                              .gives = gives};
    return &c->sink;
}

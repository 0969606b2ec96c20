/* What is open on a track, as a list of changes. Used by the critical path.
 *
 * The list is made by going over the rows of the track once, with the chain of parents as the
 * stack: a row that begins is a change, and so is the end of each row of the chain before the next
 * one begins. A row leaves the chain once, so there are at most two changes for each row, however
 * deep they nest. Must not change the trace. */
#include "why/open_slices.h"

#include "core/base/mem.h"
#include "core/base/search.h"

#include <stdlib.h>

struct change {
    int64_t from_ns;
    uint32_t row, last;
};

struct sv_open_changes {
    struct change *items;
    size_t n, cap;
};

void sv_open_slices_init(struct sv_open_slices *o, const struct sv_trace *t)
{
    o->trace = t;
    o->tracks = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *o->tracks);
}

static void forget(struct sv_open_changes *c)
{
    if (c)
        free(c->items);
    free(c);
}

void sv_open_slices_fini(struct sv_open_slices *o)
{
    for (sv_track i = 0; i < o->trace->n_tracks; i++)
        forget(o->tracks[i]);
    free(o->tracks);
    *o = (struct sv_open_slices){0};
}

static bool takes_time(const struct sv_trace *t, uint32_t row)
{
    return t->slices.kind[row] == SV_SLICE && t->slices.dur_ns[row] != 0;
}

static void add(struct sv_open_changes *c, int64_t from_ns, uint32_t row, uint32_t last)
{
    c->items = sv_grow(c->items, &c->cap, c->n + 1, sizeof *c->items);
    c->items[c->n++] = (struct change){from_ns, row, last};
}

/* `row` has begun: it and what is around it end one after the other, until the next one begins. */
static void add_ends(struct sv_open_changes *c, const struct sv_trace *t, uint32_t row,
                     int64_t next_ns)
{
    uint32_t last = row;
    int64_t at_ns = t->slices.ts_ns[row];
    while (row != SV_NO_ROW && sv_trace_end_ns(t, row) < next_ns) {
        int64_t end = sv_trace_end_ns(t, row);
        at_ns = end > at_ns ? end : at_ns;
        row = t->slices.parent[row];
        add(c, at_ns, row, last);
    }
}

static struct sv_open_changes *make(const struct sv_trace *t, sv_track track)
{
    struct sv_open_changes *c = sv_alloc(sizeof *c);
    uint32_t before = SV_NO_ROW;
    add(c, INT64_MIN, SV_NO_ROW, SV_NO_ROW);
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
        if (!takes_time(t, row))
            continue;
        if (before != SV_NO_ROW)
            add_ends(c, t, before, t->slices.ts_ns[row]);
        add(c, t->slices.ts_ns[row], row, row);
        before = row;
    }
    if (before != SV_NO_ROW)
        add_ends(c, t, before, INT64_MAX);
    return c;
}

/* Of two threads that list the same track at once one gives its list up: they are equal. */
static const struct sv_open_changes *changes_of(struct sv_open_slices *o, sv_track track)
{
    struct sv_open_changes *known = __atomic_load_n(&o->tracks[track], __ATOMIC_ACQUIRE), *made;
    if (known)
        return known;
    made = make(o->trace, track);
    if (__atomic_compare_exchange_n(&o->tracks[track], &known, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    forget(made);
    return known;
}

struct sv_open_view sv_open_slice(struct sv_open_slices *o, sv_track track, int64_t ts_ns)
{
    const struct sv_trace *t = o->trace;
    const struct sv_open_changes *c = changes_of(o, track);
    /* the first change at or after ts_ns; the one at the beginning of time is before everything */
    size_t low;
    SV_SEARCH(low, middle, 1, c->n, c->items[middle].from_ns < ts_ns);
    const struct change *x = &c->items[low - 1];
    struct sv_open_view v = {.row = x->row, .since_ns = x->from_ns, .last = x->last};
    v.begins = v.row != SV_NO_ROW && t->slices.ts_ns[v.row] >= v.since_ns;
    if (v.begins)
        v.since_ns = t->slices.ts_ns[v.row];
    return v;
}

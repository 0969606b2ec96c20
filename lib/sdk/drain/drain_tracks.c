/* Slices of named tracks: see drain_tracks.h. Called by the ring source (drain.c) alone.
 *
 * A plan looks ahead through the records that a round will read, before the first of them is made
 * into an event: so it knows the ends of most slices when it places them, in the order of time, and
 * an end finds its begin in whatever ring that is. What has no end yet stays open in the lanes. An
 * end whose begin may be in a record that this round does not see waits for the next one, for a
 * round at most.
 *
 * Records may be another process's: every number is checked, and a record that has changed since it
 * was planned is left out. */
#include "sdk/drain/drain_tracks.h"

#include "sdk/drain/drain_names.h"

#include <stave/stave.h>
#include <stdlib.h>
#include <string.h>

#define NO_PARTNER UINT32_MAX
enum { EDGES_MAX = 1 << 14, EDGES_PER_RING_MIN = 64, OPEN_MAX = 1 << 18, PASSES_MAX = 16 };

void sv_tracks_init(struct sv_tracks *t, struct sv_dict *dict)
{
    *t = (struct sv_tracks){.lanes = sv_lanes_loose(dict), .until_ns = INT64_MIN};
    t->source = ++t->lanes->n_sources;
    sv_arena_init(&t->scratch, 4096);
}

/* What is open stays in the lanes: it has no end in the output. */
void sv_tracks_fini(struct sv_tracks *t)
{
    sv_map_fini(&t->open);
    sv_map_fini(&t->begun);
    sv_map_fini(&t->ring_by_number);
    sv_arena_fini(&t->scratch);
    free(t->edges);
    free(t->order);
}

void sv_tracks_add_ring(struct sv_tracks *t, uint32_t number, size_t index)
{
    bool is_new;
    *sv_map_add(&t->ring_by_number, number, &is_new) = index;
}

/* A thread that takes over a ring is another owner. */
static uint64_t owner_of(const struct sv_tracks *t, const struct sv_drain_ring *r, uint64_t context)
{
    uint64_t thread = sv_mix64(t->source << 32 | r->number) + r->owner;
    return sv_mix64(thread) ^ sv_mix64(context >> 1);
}

static bool nests(uint64_t context)
{
    return context & 1;
}

static struct sv_lane_loose *find_open(const struct sv_tracks *t, uint64_t id)
{
    uint64_t *slot = id ? sv_map_find(&t->open, id) : NULL;
    return slot ? (struct sv_lane_loose *)(uintptr_t)*slot : NULL;
}

static void keep_open(struct sv_tracks *t, struct sv_lane_loose *o)
{
    bool is_new;
    *sv_map_add(&t->open, o->id, &is_new) = (uintptr_t)o;
}

/* ---- marks ---- */

void sv_tracks_mark(const struct sv_tracks *t, uint32_t ring_number, struct sv_mark *mark)
{
    mark->until_ns = t->until_ns;
    mark->n_lanes = t->lanes->n_most;
    mark->n_slices = 0;
    for (size_t i = 0; t->open.n > 0 && i < t->open.cap; i++) {
        if (!t->open.used[i] || sv_slice_ring(t->open.slots[i].key) != ring_number)
            continue;
        const struct sv_lane_loose *o = (struct sv_lane_loose *)(uintptr_t)t->open.slots[i].value;
        if (mark->n_slices < SV_MARK_SLICES)
            mark->slices[mark->n_slices] = (struct sv_mark_slice){.id = o->id,
                                                                  .begin_ns = o->open.begin_ns,
                                                                  .owner = o->context,
                                                                  .track = o->number,
                                                                  .lane = o->lane};
        mark->n_slices++;
    }
}

static int outer_first(const void *a, const void *b)
{
    const struct sv_mark_slice *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void reopen(struct sv_tracks *t, const struct sv_drain_names *names,
                   const struct sv_drain_ring *r, const struct sv_mark_slice *s)
{
    struct sv_lane_slice slice = {.begin_ns = s->begin_ns,
                                  .end_ns = SV_LANE_NEVER,
                                  .owner = owner_of(t, r, s->owner),
                                  .nests = nests(s->owner)};
    struct sv_lane_row *row =
        sv_lanes_row(t->lanes, sv_drain_track(names, s->track), &sv_lanes_any);
    struct sv_lane_loose *o = sv_lane_place_at(t->lanes, row, &slice, s->lane);
    if (!o)
        return;
    o->id = s->id;
    o->context = s->owner;
    o->number = s->track;
    keep_open(t, o);
}

/* When the mark does not list all open slices, nothing may be put on the lanes that were in use. */
void sv_tracks_resume(struct sv_tracks *t, const struct sv_drain_names *names,
                      const struct sv_drain_ring *r, const struct sv_mark *mark)
{
    struct sv_lanes *l = t->lanes;
    struct sv_mark_slice slices[SV_MARK_SLICES];
    uint32_t n = mark->n_slices < SV_MARK_SLICES ? mark->n_slices : SV_MARK_SLICES;
    uint32_t n_lanes = mark->n_lanes;
    int64_t until_ns = mark->n_slices > SV_MARK_SLICES ? INT64_MAX : mark->until_ns;
    if (n_lanes > sv_lanes_any.most)
        return; /* damaged */
    if (n_lanes > l->n_unknown)
        l->n_unknown = n_lanes;
    if (until_ns > l->known_from_ns)
        l->known_from_ns = until_ns;
    memcpy(slices, mark->slices, n * sizeof *slices);
    qsort(slices, n, sizeof *slices, outer_first);
    for (uint32_t i = 0; i < n; i++)
        if (slices[i].id != 0 && slices[i].lane < n_lanes &&
            sv_slice_ring(slices[i].id) == r->number && !find_open(t, slices[i].id))
            reopen(t, names, r, &slices[i]);
}

/* ---- looking ahead ---- */

static void add_edge(struct sv_tracks *t, const struct sv_tracks_input *in, uint32_t ring,
                     const struct sv_drain_site *s, const uint64_t *rec, uint64_t pos, int64_t ns)
{
    t->edges = sv_grow(t->edges, &t->cap_edges, t->n_edges + 1, sizeof *t->edges);
    struct sv_track_edge *e = &t->edges[t->n_edges++];
    uint64_t number = rec[1 + s->track_at];
    *e = (struct sv_track_edge){.pos = pos,
                                .ns = ns < SV_LANE_NEVER ? ns : SV_LANE_NEVER - 1,
                                .context = s->owner_at ? rec[1 + s->owner_at] : 1,
                                .track = sv_drain_track(in->names, number),
                                .number = (uint32_t)number,
                                .ring = ring,
                                .partner = NO_PARTNER,
                                .is_begin = s->kind == STAVE_KIND_BEGIN};
    e->id = e->is_begin   ? sv_slice_id(in->rings[ring].number, pos)
            : s->slice_at ? rec[1 + s->slice_at]
                          : 0;
}

/* From `stop` on, by the reader's own rules: a record that cannot be right ends the ring, and what
 * comes behind it is not read, so that it must not have a place on a lane. */
static void look_ahead(struct sv_tracks *t, const struct sv_tracks_input *in, uint32_t ring,
                       size_t limit)
{
    struct sv_drain_ring *r = &in->rings[ring];
    uint64_t pos = r->stop, mask = r->size - 1;
    int64_t last = r->last_ns;
    r->edge = r->edges_end = (uint32_t)t->n_edges;
    while (pos < r->end) {
        const uint64_t *rec = (const uint64_t *)(const void *)(r->data + (pos & mask));
        uint64_t word = rec[0], bytes = sv_word_bytes(word);
        const struct sv_drain_site *s = sv_drain_site(in->names, sv_word_site(word));
        bool has_size = bytes >= SV_RECORD_HEAD && bytes <= r->end - pos &&
                        bytes <= SV_RECORD_BYTES_MAX;
        int64_t ns = has_size ? sv_ticks_ns(in->ticks, rec[1]) : 0;
        bool is_whole = has_size && sv_record_is_whole(s, rec, bytes);
        bool is_skipped = has_size &&
                          (word == SV_WORD(0, STAVE_KIND_END, 0, 2) || ns < in->from_ns);
        if (!is_whole && !is_skipped) {
            pos = r->end;
            break;
        }
        if (!is_skipped && sv_record_is_edge(s, rec)) {
            if (t->n_edges >= limit)
                break;
            last = ns > last ? ns : last;
            add_edge(t, in, ring, s, rec, pos, last);
        }
        pos += bytes;
    }
    r->edges_end = (uint32_t)t->n_edges;
    r->stop = pos;
}

/* ---- which begin ---- */

static bool is_planned(const struct sv_tracks_input *in, const struct sv_track_edge *e)
{
    return e->pos < in->rings[e->ring].stop;
}

/* The ring that the begin of an end is in; NULL: there is none with this number. */
static const struct sv_drain_ring *ring_of(const struct sv_tracks *t,
                                           const struct sv_tracks_input *in, uint64_t id)
{
    const uint64_t *at = sv_map_find(&t->ring_by_number, sv_slice_ring(id));
    return at && *at < in->n_rings ? &in->rings[*at] : NULL;
}

/* By its number. One that has ended is ignored: a second end means another slice. */
static void find_by_id(struct sv_tracks *t, const struct sv_tracks_input *in,
                       struct sv_track_edge *e, uint32_t index)
{
    const uint64_t *begun = sv_map_find(&t->begun, e->id);
    const struct sv_drain_ring *r = ring_of(t, in, e->id);
    uint64_t pos = sv_slice_pos(e->id);
    struct sv_lane_loose *open = find_open(t, e->id);
    bool is_early = r == &in->rings[e->ring] && pos > e->pos; /* nobody knows it before it begins */
    if (is_early) {
        e->is_orphan = true;
    } else if (open && !open->is_claimed) {
        e->open = open;
        open->is_claimed = true;
    } else if (begun && t->edges[*begun].partner == NO_PARTNER) {
        e->partner = (uint32_t)*begun;
        t->edges[*begun].partner = index;
    } else if (!r || pos < r->first || (pos < r->stop && t->n_crowded)) {
        e->is_orphan = true; /* not in this output */
    } else if (pos < r->stop) {
        e->id = 0;
    }
}

static bool is_found(const struct sv_track_edge *e)
{
    return e->open || e->partner != NO_PARTNER;
}

static int by_track_and_time(const void *a, const void *b, void *ctx)
{
    const struct sv_track_edge *edges = ctx, *x = &edges[*(const uint32_t *)a],
                               *y = &edges[*(const uint32_t *)b];
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

/* The newest slice that is open on the row at the time of `e`, begun in an earlier plan. */
static struct sv_lane_loose *newest_open(const struct sv_tracks *t, const struct sv_track_edge *e,
                                         uint32_t ring_number, bool of_any)
{
    const struct sv_lane_row *row = sv_lanes_find(t->lanes, e->track);
    struct sv_lane_loose *o = row ? row->newest : NULL;
    for (; o; o = o->older)
        if (o->open.begin_ns <= e->ns && !o->is_claimed && find_open(t, o->id) == o &&
            (of_any || sv_slice_ring(o->id) == ring_number))
            break;
    return o;
}

/* Of its own thread, else of any. `begun` are the begins of the plan before it, the newest last. */
static void find_newest(struct sv_tracks *t, struct sv_track_edge *e, uint32_t ring_number,
                        uint32_t *begun, size_t *n)
{
    size_t at = *n;
    while (at > 0 && t->edges[begun[at - 1]].ring != e->ring)
        at--;
    struct sv_lane_loose *o = at > 0 ? NULL : newest_open(t, e, ring_number, false);
    if (at == 0 && !o)
        at = *n;
    if (at == 0 && !o)
        o = newest_open(t, e, ring_number, true);
    if (o) {
        e->open = o;
        e->id = o->id;
        o->is_claimed = true;
    } else if (at > 0) {
        e->partner = begun[at - 1];
        t->edges[e->partner].partner = (uint32_t)(e - t->edges);
        memmove(begun + at - 1, begun + at, (*n - at) * sizeof *begun);
        --*n;
    }
}

/* Ends that do not say which slice they mean, in the order of time. */
static void find_by_time(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    size_t n = 0, n_open = 0;
    t->order = sv_grow(t->order, &t->cap_order, 2 * t->n_edges, sizeof *t->order);
    for (uint32_t i = 0; i < t->n_edges; i++) {
        const struct sv_track_edge *e = &t->edges[i];
        if (e->is_begin ? e->partner == NO_PARTNER : e->id == 0 && !is_found(e) && !e->is_orphan)
            t->order[n++] = i;
    }
    qsort_r(t->order, n, sizeof *t->order, by_track_and_time, t->edges);
    uint32_t *begun = t->order + t->n_edges;
    for (size_t i = 0; i < n; i++) {
        struct sv_track_edge *e = &t->edges[t->order[i]];
        if (i == 0 || e->track != t->edges[t->order[i - 1]].track)
            n_open = 0;
        if (e->is_begin)
            begun[n_open++] = t->order[i];
        else
            find_newest(t, e, in->rings[e->ring].number, begun, &n_open);
    }
}

/* ---- what must wait ---- */

/* May its begin come later in this round, or with the next one? It was recorded before the end was,
 * so that it shows by now. */
static bool may_come(const struct sv_tracks *t, const struct sv_tracks_input *in,
                     const struct sv_track_edge *e)
{
    const struct sv_drain_ring *own = &in->rings[e->ring];
    if (t->is_forced && own->waited == e->pos)
        return false;
    if (e->id) {
        const struct sv_drain_ring *r = ring_of(t, in, e->id);
        return r &&
               sv_slice_pos(e->id) < atomic_load_explicit(&r->ring->head, memory_order_acquire);
    }
    for (size_t i = 0; i < in->n_rings; i++) {
        const struct sv_drain_ring *r = &in->rings[i];
        if (r != own && r->stop < atomic_load_explicit(&r->ring->head, memory_order_acquire))
            return true;
    }
    return false;
}

/* Stops rings before ends whose begin is not in the plan; true: again, since this may have taken
 * begins out of it. */
static bool stop_rings(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < t->n_edges; i++) {
        struct sv_track_edge *e = &t->edges[i];
        if (e->is_begin || e->is_orphan || e->open || !is_planned(in, e))
            continue;
        if (e->partner != NO_PARTNER && is_planned(in, &t->edges[e->partner]))
            continue;
        if (e->partner == NO_PARTNER && !may_come(t, in, e)) {
            e->is_orphan = true;
            continue;
        }
        in->rings[e->ring].stop = e->pos;
        has_changed = true;
    }
    return has_changed;
}

/* A begin whose end is beyond where its ring stops is open for now. */
static void forget_what_waits(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    for (uint32_t i = 0; i < t->n_edges; i++) {
        struct sv_track_edge *e = &t->edges[i];
        if (e->open && !e->is_begin && !is_planned(in, e)) {
            e->open->is_claimed = false;
            e->open = NULL;
        }
        if (e->partner == NO_PARTNER || is_planned(in, &t->edges[e->partner]))
            continue;
        e->partner = NO_PARTNER;
        e->is_orphan = !e->is_begin;
    }
}

/* ---- lanes ---- */

static int by_time(const void *a, const void *b, void *ctx)
{
    const struct sv_track_edge *edges = ctx, *x = &edges[*(const uint32_t *)a],
                               *y = &edges[*(const uint32_t *)b];
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Most often the edges of one thread, which are in order already. */
static size_t in_time_order(struct sv_tracks *t, const struct sv_tracks_input *in, bool begins)
{
    size_t n = 0;
    bool is_sorted = true;
    t->order = sv_grow(t->order, &t->cap_order, t->n_edges, sizeof *t->order);
    for (uint32_t i = 0; i < t->n_edges; i++) {
        const struct sv_track_edge *e = &t->edges[i];
        if (!is_planned(in, e) || e->is_begin != begins || (!begins && !e->open))
            continue;
        is_sorted = is_sorted && (n == 0 || t->edges[t->order[n - 1]].ns <= e->ns);
        t->order[n++] = i;
    }
    if (!is_sorted)
        qsort_r(t->order, n, sizeof *t->order, by_time, t->edges);
    return n;
}

static void note_time(struct sv_tracks *t, int64_t ns)
{
    if (ns > t->until_ns)
        t->until_ns = ns;
}

/* What lies on a slice that ends continues on another lane: they were thought to nest, and do
 * not. */
static void move_away(struct sv_tracks *t, struct sv_track_edge *e,
                      struct sv_lane_loose *in_the_way)
{
    struct sv_track_moved *m =
        sv_arena_get(&t->scratch, sizeof *m, _Alignof(struct sv_track_moved));
    const struct sv_lane_loose was = *in_the_way;
    *m = (struct sv_track_moved){
        .next = e->moved, .from = sv_lane_track(in_the_way), .name = was.name, .cat = was.cat};
    e->moved = m;
    e->n_moved++;
    sv_lane_end(t->lanes, in_the_way, e->ns);
    struct sv_lane_slice rest = {
        .begin_ns = e->ns, .end_ns = SV_LANE_NEVER, .owner = was.owner, .nests = false};
    uint32_t lane;
    struct sv_lane_loose *o = sv_lane_place(t->lanes, was.row, &rest, &lane);
    if (!o) {
        t->n_crowded++;
        sv_map_remove(&t->open, was.id);
        return;
    }
    o->id = was.id;
    o->context = was.context;
    o->number = was.number;
    o->name = was.name;
    o->cat = was.cat;
    o->is_claimed = was.is_claimed;
    m->to = sv_lane_track(o);
    keep_open(t, o);
}

static void end_open(struct sv_tracks *t, struct sv_track_edge *e)
{
    struct sv_lane_loose *o = find_open(t, e->id), *above; /* it may have been moved */
    size_t n = 0;
    e->ns = o ? sv_lane_earliest_end(o, e->ns) : e->ns;
    if (!o || (sv_lane_in_the_way(o, e->ns, &n) && n > SV_MOVED_MAX)) {
        e->is_orphan = true;
        return;
    }
    note_time(t, e->ns);
    while ((above = sv_lane_in_the_way(o, e->ns, &n)))
        move_away(t, e, above);
    e->track = sv_lane_track(o);
    e->row = o->row;
    sv_map_remove(&t->open, o->id);
    sv_lane_end(t->lanes, o, e->ns);
}

static void place_begin(struct sv_tracks *t, const struct sv_tracks_input *in,
                        struct sv_track_edge *e)
{
    struct sv_track_edge *end = e->partner != NO_PARTNER ? &t->edges[e->partner] : NULL;
    const struct sv_drain_ring *r = &in->rings[e->ring];
    struct sv_lane_row *row = sv_lanes_row(t->lanes, e->track, &sv_lanes_any);
    struct sv_lane_slice slice = {.begin_ns = e->ns,
                                  .end_ns = end ? end->ns : SV_LANE_NEVER,
                                  .owner = owner_of(t, r, e->context),
                                  .nests = nests(e->context)};
    uint32_t lane;
    if (end && end->ns < e->ns) /* the clocks of two CPUs */
        slice.end_ns = end->ns = e->ns;
    e->track = 0;
    if (end)
        end->track = 0;
    if (end || t->open.n < OPEN_MAX)
        e->open = sv_lane_place(t->lanes, row, &slice, &lane);
    else
        lane = SV_LANE_NONE;
    if (lane == SV_LANE_NONE) {
        t->n_crowded++;
        return;
    }
    e->track = row->lanes[lane].track;
    note_time(t, end ? end->ns : e->ns);
    if (end) {
        end->track = e->track;
        end->row = row;
    } else {
        e->open->id = e->id;
        e->open->context = e->context;
        e->open->number = e->number;
        keep_open(t, e->open);
    }
}

static void place_all(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    size_t n = in_time_order(t, in, false);
    for (size_t i = 0; i < n; i++)
        end_open(t, &t->edges[t->order[i]]);
    n = in_time_order(t, in, true);
    for (size_t i = 0; i < n; i++)
        place_begin(t, in, &t->edges[t->order[i]]);
    for (uint32_t i = 0; i < t->n_edges; i++)
        if (t->edges[i].is_orphan)
            t->edges[i].track = 0;
}

/* ---- the plan ---- */

static bool has_moved(const struct sv_tracks_input *in)
{
    for (size_t i = 0; i < in->n_rings; i++)
        if (in->rings[i].pos < in->rings[i].stop)
            return true;
    return false;
}

static void find_begins(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    bool has_nameless = false, is_new;
    sv_map_clear(&t->begun);
    for (uint32_t i = 0; i < t->n_edges; i++)
        if (t->edges[i].is_begin)
            *sv_map_add(&t->begun, t->edges[i].id, &is_new) = i;
    for (uint32_t i = 0; i < t->n_edges; i++) {
        struct sv_track_edge *e = &t->edges[i];
        if (e->is_begin)
            continue;
        if (e->id)
            find_by_id(t, in, e, i);
        has_nameless |= e->id == 0;
    }
    if (has_nameless)
        find_by_time(t, in);
}

static bool try_plan(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    size_t share = EDGES_MAX / in->n_rings;
    if (share < EDGES_PER_RING_MIN)
        share = EDGES_PER_RING_MIN;
    t->n_edges = 0;
    sv_arena_reset(&t->scratch);
    for (uint32_t i = 0; i < in->n_rings; i++)
        look_ahead(t, in, i, t->n_edges + share);
    if (t->n_edges > 0) {
        find_begins(t, in);
        for (int i = 0; i < PASSES_MAX && stop_rings(t, in); i++)
            ;
        forget_what_waits(t, in);
        place_all(t, in);
    }
    return has_moved(in);
}

/* Where all wait, one that waits for the second time continues. */
bool sv_tracks_plan(struct sv_tracks *t, const struct sv_tracks_input *in)
{
    t->is_forced = false;
    if (in->n_rings == 0)
        return false;
    if (try_plan(t, in))
        return true;
    for (size_t i = 0; i < in->n_rings; i++)
        t->is_forced |= in->rings[i].pos < in->rings[i].end &&
                        in->rings[i].waited == in->rings[i].pos;
    if (t->is_forced && try_plan(t, in))
        return true;
    for (size_t i = 0; i < in->n_rings; i++)
        in->rings[i].waited = in->rings[i].pos < in->rings[i].end ? in->rings[i].pos : 0;
    return false;
}

struct sv_track_edge *sv_tracks_find(const struct sv_tracks *t, const struct sv_drain_ring *r,
                                     uint64_t pos)
{
    return r->edge < r->edges_end && t->edges[r->edge].pos == pos ? &t->edges[r->edge] : NULL;
}

/* The lanes know an end that will not come: its slice stays open in the output, or is not there at
 * all. So nothing is put on its lanes until that time is over, and what is open on its row has no
 * end either. */
static void lose_end(struct sv_tracks *t, const struct sv_track_edge *e)
{
    if (e->is_begin || !e->row)
        return;
    sv_lanes_block(t->lanes, e->row, e->ns);
    for (struct sv_lane_loose *o = e->row->newest; o; o = o->older)
        if (find_open(t, o->id) == o)
            sv_map_remove(&t->open, o->id);
}

/* Otherwise ends that come later would close slices whose begins nobody has seen. */
void sv_tracks_drop(struct sv_tracks *t, struct sv_drain_ring *r)
{
    for (; r->edge < r->edges_end; r->edge++) {
        struct sv_track_edge *e = &t->edges[r->edge];
        lose_end(t, e);
        struct sv_lane_loose *o = e->is_begin && e->track ? find_open(t, e->id) : NULL;
        if (e->is_begin && e->partner != NO_PARTNER)
            t->edges[e->partner].track = 0;
        if (!o)
            continue;
        sv_map_remove(&t->open, o->id);
        sv_lane_end(t->lanes, o, o->open.begin_ns);
    }
}

/* The thread's own begins and ends are not in the lanes. */
sv_track sv_tracks_whole(struct sv_tracks *t, const struct sv_drain_ring *r, sv_track track,
                         int64_t begin_ns, int64_t end_ns, int64_t now_ns)
{
    struct sv_lane_row *row = sv_lanes_row(t->lanes, track, &sv_lanes_any);
    struct sv_lane_slice slice = {.begin_ns = begin_ns,
                                  .end_ns = end_ns,
                                  .owner = owner_of(t, r, 1),
                                  .nests = end_ns <= now_ns,
                                  .is_whole = true,
                                  .not_first = track == r->track &&
                                               sv_own_crosses(&r->own, begin_ns, end_ns, now_ns)};
    uint32_t lane;
    sv_lane_place(t->lanes, row, &slice, &lane);
    if (lane == SV_LANE_NONE) {
        t->n_crowded++;
        return 0;
    }
    note_time(t, slice.end_ns);
    return row->lanes[lane].track;
}

size_t sv_tracks_bytes(const struct sv_tracks *t)
{
    size_t slots = t->open.cap + t->begun.cap + t->ring_by_number.cap;
    return t->cap_edges * sizeof *t->edges + t->cap_order * sizeof *t->order +
           slots * sizeof *t->open.slots + t->scratch.used_bytes;
}

/* Lanes of a track as a tree of open ends, tracks as a heap of next ends. See lanes.h for the idea; split.c is the only
 * caller and decides what begins and ends.
 *
 * Invariant: on every lane due_ns never grows from bottom to top, so the top alone says what fits and what ends next. */
#include "model/lanes.h"
#include "base/map.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_LANE UINT32_MAX

void sv_lanes_init(struct sv_lanes *l, struct sv_dict *dict)
{
    *l = (struct sv_lanes){.dict = dict};
    sv_pool_init(&l->pool);
    sv_arena_init(&l->rows, (size_t)1 << 14);
}

void sv_lanes_fini(struct sv_lanes *l)
{
    for (size_t t = 0; t < l->n_tracks; t++) {
        struct sv_lane_row *r = l->by_track[t];
        if (!r || r->track != t) /* its lanes lead here too */
            continue;
        if (r->lanes != &r->one_lane) {
            free(r->lanes);
            free(r->tree);
        }
        free(r->edges);
    }
    free(l->by_track);
    free(l->heap);
    sv_arena_fini(&l->rows);
    sv_pool_fini(&l->pool);
}

/* ---- the heap of rows ---- */

/* Ties by track, so that the result depends on the input alone. */
static bool row_before(const struct sv_lane_row *a, const struct sv_lane_row *b)
{
    int64_t x = sv_lane_due(a), y = sv_lane_due(b);
    return x != y ? x < y : a->track < b->track;
}

static void heap_set(struct sv_lanes *l, size_t i, struct sv_lane_row *r)
{
    l->heap[i] = r;
    r->heap_at = i + 1;
}

static size_t heap_rise(struct sv_lanes *l, size_t i)
{
    struct sv_lane_row *r = l->heap[i];
    for (; i > 0 && row_before(r, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap_set(l, i, l->heap[(i - 1) / 2]);
    heap_set(l, i, r);
    return i;
}

static void heap_sink(struct sv_lanes *l, size_t i)
{
    struct sv_lane_row *r = l->heap[i];
    for (size_t child; (child = 2 * i + 1) < l->n_heap; i = child) {
        if (child + 1 < l->n_heap && row_before(l->heap[child + 1], l->heap[child]))
            child++;
        if (!row_before(l->heap[child], r))
            break;
        heap_set(l, i, l->heap[child]);
    }
    heap_set(l, i, r);
}

/* Only rows on which something will end are in the heap. */
static void heap_update(struct sv_lanes *l, struct sv_lane_row *r)
{
    bool belongs = sv_lane_due(r) < SV_LANE_NEVER;
    if (!r->heap_at && belongs) {
        l->heap = sv_grow(l->heap, &l->cap_heap, l->n_heap + 1, sizeof(struct sv_lane_row *));
        heap_set(l, l->n_heap++, r);
        heap_rise(l, r->heap_at - 1);
    } else if (r->heap_at && belongs) {
        heap_sink(l, heap_rise(l, r->heap_at - 1));
    } else if (r->heap_at) {
        size_t at = r->heap_at - 1;
        struct sv_lane_row *last = l->heap[--l->n_heap];
        r->heap_at = 0;
        if (last != r) {
            heap_set(l, at, last);
            heap_sink(l, heap_rise(l, at));
        }
    }
}

/* ---- the tree of lanes ---- */

static void set_leaf(struct sv_lane_row *r, uint32_t lane)
{
    const struct sv_lane_open *top = lane < r->n ? r->lanes[lane].top : NULL;
    int64_t due_ns = top ? top->due_ns : SV_LANE_NEVER;
    /* Lanes that do not exist yet fit nothing, so that a search finds none instead of them. */
    r->tree[r->cap + lane] = (struct sv_lane_node){
        .first_due_ns = due_ns,
        .last_due_ns = lane < r->n ? due_ns : INT64_MIN,
        .newest_ns = !top                         ? INT64_MIN
                     : top->begin_ns == INT64_MIN ? INT64_MIN + 1
                                                  : top->begin_ns,
        .fits_endless = lane < r->n && due_ns == SV_LANE_NEVER && r->lanes[lane].n_last == 0};
}

static void join_node(struct sv_lane_row *r, size_t i)
{
    const struct sv_lane_node *a = &r->tree[2 * i], *b = a + 1;
    r->tree[i] = (struct sv_lane_node){
        .first_due_ns = a->first_due_ns < b->first_due_ns ? a->first_due_ns : b->first_due_ns,
        .last_due_ns = a->last_due_ns > b->last_due_ns ? a->last_due_ns : b->last_due_ns,
        .newest_ns = a->newest_ns > b->newest_ns ? a->newest_ns : b->newest_ns,
        .fits_endless = a->fits_endless || b->fits_endless};
}

static void lane_changed(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane)
{
    int64_t due_ns = sv_lane_due(r);
    set_leaf(r, lane);
    for (size_t i = ((size_t)r->cap + lane) / 2; i > 0; i /= 2)
        join_node(r, i);
    if (due_ns != sv_lane_due(r))
        heap_update(l, r);
}

uint32_t sv_lane_first_due(const struct sv_lane_row *r)
{
    size_t i = 1;
    while (i < r->cap)
        i = r->tree[2 * i].first_due_ns == r->tree[i].first_due_ns ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

uint32_t sv_lane_newest(const struct sv_lane_row *r)
{
    size_t i = 1;
    if (r->tree[1].newest_ns == INT64_MIN)
        return 0;
    while (i < r->cap)
        i = r->tree[2 * i].newest_ns == r->tree[i].newest_ns ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

/* Where something without an end fits. */
static uint32_t find_endless_room(const struct sv_lane_row *r)
{
    size_t i = 1;
    if (!r->tree[1].fits_endless)
        return NO_LANE;
    while (i < r->cap)
        i = r->tree[2 * i].fits_endless ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

static uint32_t find_room(const struct sv_lane_row *r, int64_t end_ns)
{
    size_t i = 1;
    if (r->tree[1].last_due_ns < end_ns)
        return NO_LANE;
    while (i < r->cap)
        i = r->tree[2 * i].last_due_ns >= end_ns ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

/* ---- rows and lanes ---- */

struct sv_lane_row *sv_lanes_find(const struct sv_lanes *l, sv_track track)
{
    return track < l->n_tracks ? l->by_track[track] : NULL;
}

static void remember(struct sv_lanes *l, sv_track track, struct sv_lane_row *r)
{
    if (track >= l->n_tracks) {
        size_t need = l->dict->n_tracks > track ? l->dict->n_tracks : (size_t)track + 1;
        l->by_track = sv_grow(l->by_track, &l->cap_tracks, need, sizeof(struct sv_lane_row *));
        while (l->n_tracks < need)
            l->by_track[l->n_tracks++] = NULL;
    }
    l->by_track[track] = r;
}

struct sv_lane_row *sv_lanes_row(struct sv_lanes *l, sv_track track)
{
    struct sv_lane_row *r = sv_lanes_find(l, track);
    if (r)
        return r;
    r = sv_arena_get(&l->rows, sizeof *r, _Alignof(struct sv_lane_row));
    *r = (struct sv_lane_row){.track = track, .n = 1, .cap = 1};
    r->one_lane.track = track;
    r->lanes = &r->one_lane;
    r->tree = r->one_node;
    set_leaf(r, 0);
    remember(l, track, r);
    return r;
}

static void grow_lanes(struct sv_lane_row *r)
{
    uint32_t cap = r->cap * 2;
    struct sv_lane *lanes =
        sv_realloc(r->lanes == &r->one_lane ? NULL : r->lanes, cap * sizeof *lanes);
    if (r->lanes == &r->one_lane)
        lanes[0] = r->one_lane;
    else
        free(r->tree);
    r->lanes = lanes;
    r->tree = sv_alloc(2 * (size_t)cap * sizeof *r->tree);
    r->cap = cap;
    for (uint32_t i = 0; i < cap; i++)
        set_leaf(r, i);
    for (size_t i = cap - 1; i > 0; i--)
        join_node(r, i);
}

static void describe_lane(struct sv_lanes *l, const struct sv_lane_row *r, uint32_t lane)
{
    struct sv_track_info *main = &l->dict->tracks[r->track];
    struct sv_track_info *info = &l->dict->tracks[r->lanes[lane].track];
    info->kind = SV_TRACK_LANE;
    info->parent = r->track;
    info->name = main->name;
    info->space = main->space;
    info->is_described = true;
    sv_dict_touch(l->dict, r->lanes[lane].track);
}

/* The track of a lane has a stable identity. A number whose track already carries events of its own is left out. */
static sv_track lane_track(struct sv_lanes *l, const struct sv_lane_row *r)
{
    sv_track t;
    for (uint32_t number = r->n;; number++) {
        char text[16];
        int len = snprintf(text, sizeof text, "%u", number);
        uint64_t uuid =
            sv_uuid_child(l->dict->tracks[r->track].uuid, SV_TRACK_LANE, text, (size_t)len);
        t = sv_dict_track(l->dict, uuid, NULL);
        if (sv_lanes_find(l, t))
            continue;
        l->dict->tracks[t].order = number;
        l->dict->tracks[t].has_order = true;
        return t;
    }
}

static uint32_t add_lane(struct sv_lanes *l, struct sv_lane_row *r)
{
    if (r->n == r->cap)
        grow_lanes(r);
    uint32_t lane = r->n;
    r->lanes[lane] = (struct sv_lane){.track = lane_track(l, r)};
    r->n++;
    describe_lane(l, r, lane);
    if (lane == 1) /* later ones leave it to follow_name() to bring all up to date */
        r->revision = l->dict->tracks[r->track].revision;
    remember(l, r->lanes[lane].track, r);
    lane_changed(l, r, lane);
    return lane;
}

/* A track may learn its name after its lanes were made. */
static void follow_name(struct sv_lanes *l, struct sv_lane_row *r)
{
    int32_t revision = l->dict->tracks[r->track].revision;
    if (r->revision == revision)
        return;
    r->revision = revision;
    for (uint32_t i = 1; i < r->n; i++)
        describe_lane(l, r, i);
}

uint32_t sv_lane_for(struct sv_lanes *l, struct sv_lane_row *r, int64_t end_ns, bool is_endless)
{
    uint32_t lane = is_endless ? find_endless_room(r) : find_room(r, end_ns);
    if (lane == NO_LANE)
        lane = add_lane(l, r);
    if (lane > 0)
        follow_name(l, r);
    return lane;
}

struct sv_lane_open *sv_lane_push(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane,
                                  int64_t begin_ns, int64_t due_ns, bool is_last)
{
    struct sv_lane_open *o = sv_pool_get(&l->pool, sizeof *o);
    *o = (struct sv_lane_open){
        .below = r->lanes[lane].top, .begin_ns = begin_ns, .due_ns = due_ns, .is_last = is_last};
    r->lanes[lane].n_last += is_last;
    assert(!o->below || o->below->due_ns >= due_ns);
    r->lanes[lane].top = o;
    lane_changed(l, r, lane);
    return o;
}

struct sv_lane_open *sv_lane_pop(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane)
{
    struct sv_lane_open *o = r->lanes[lane].top;
    assert(o);
    r->lanes[lane].top = o->below;
    r->lanes[lane].n_last -= o->is_last;
    lane_changed(l, r, lane);
    return o;
}

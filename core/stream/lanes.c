/* Lanes of a track as a tree of open ends, tracks as a heap of next ends. See lanes.h for the idea;
 * split.c and the ring source call it and decide what begins and ends.
 *
 * Invariant: on every lane of a row in the order of time due_ns never grows from bottom to top, so
 * the top says what fits and what ends next. On the lanes of a loose row an end of NEVER is one
 * that is not known. */
#include "core/stream/lanes.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define NO_LANE SV_LANE_NONE
/* How many lanes a file may have had is said by bytes that another process wrote, and every row has
 * to leave them out: so many in all. */
#define UNKNOWN_MAX SV_TABLE(1u << 17, 1u << 9)

const struct sv_lane_policy sv_lanes_by_begin = {SV_LANES_BY_BEGIN, UINT32_MAX, false};
const struct sv_lane_policy sv_lanes_by_end = {SV_LANES_BY_END, 64, true};
const struct sv_lane_policy sv_lanes_any = {SV_LANES_LOOSE, 1 << 16, false};

void sv_lanes_init(struct sv_lanes *l, struct sv_dict *dict)
{
    *l = (struct sv_lanes){.dict = dict};
    sv_pool_init(&l->pool);
}

static void free_row(struct sv_lane_row *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        free(r->lanes[i].past);
    if (r->lanes != &r->one_lane) {
        free(r->lanes);
        free(r->tree);
    }
    free(r->edges);
}

void sv_lanes_fini(struct sv_lanes *l)
{
    for (size_t t = 0; t < l->n_tracks; t++) {
        struct sv_lane_row *r = l->by_track[t];
        if (r && r->track == t) /* its lanes lead here too */
            free_row(r);
    }
    free(l->by_track);
    free(l->heap);
    sv_pool_fini(&l->pool);
}

/* ---- the heap of rows ---- */

/* Ties by track, so that the result depends only on the input. */
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

static int64_t quiet_since(const struct sv_lane *lane);

static void set_leaf(struct sv_lane_row *r, uint32_t lane)
{
    const struct sv_lane_open *top = lane < r->n ? r->lanes[lane].top : NULL;
    if (r->policy->order != SV_LANES_BY_BEGIN) { /* since when nothing is there */
        int64_t since_ns = lane >= r->n                          ? SV_LANE_NEVER
                           : r->policy->order == SV_LANES_BY_END ? r->lanes[lane].last_ns
                                                                 : quiet_since(&r->lanes[lane]);
        r->tree[r->cap + lane] = (struct sv_lane_node){.first_due_ns = since_ns};
        return;
    }
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
    if (due_ns != sv_lane_due(r) && r->policy->order == SV_LANES_BY_BEGIN)
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
static uint32_t find_endless(const struct sv_lane_row *r)
{
    size_t i = 1;
    if (!r->tree[1].fits_endless)
        return NO_LANE;
    while (i < r->cap)
        i = r->tree[2 * i].fits_endless ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

static uint32_t find_free(const struct sv_lane_row *r, int64_t end_ns)
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

static struct sv_lane_past *past_of(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane);

static struct sv_lane_row *make_row(struct sv_lanes *l, sv_track track,
                                    const struct sv_lane_policy *policy)
{
    struct sv_lane_row *r = sv_pool_get(&l->pool, sizeof *r);
    *r = (struct sv_lane_row){.policy = policy, .track = track, .n = 1, .cap = 1};
    r->one_lane = (struct sv_lane){.track = track, .last_ns = INT64_MIN};
    r->lanes = &r->one_lane;
    r->tree = r->one_node;
    remember(l, track, r);
    if (policy->order == SV_LANES_LOOSE) {
        if (l->n_unknown)
            past_of(l, r, 0);
        if (l->n_most == 0)
            l->n_most = 1;
    }
    set_leaf(r, 0);
    return r;
}

struct sv_lane_row *sv_lanes_row(struct sv_lanes *l, sv_track track,
                                 const struct sv_lane_policy *policy)
{
    struct sv_lane_row *r = sv_lanes_find(l, track);
    return r ? r : make_row(l, track, policy);
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
    if (!r->policy->is_numbered)
        info->name = main->name;
    info->space = main->space;
    info->is_described = true;
    sv_dict_touch(l->dict, r->lanes[lane].track);
}

static sv_track numbered_track(struct sv_lanes *l, const struct sv_lane_row *r)
{
    char name[64];
    struct sv_text row = sv_dict_text(l->dict, l->dict->tracks[r->track].name);
    snprintf(name, sizeof name, "%.40s %u", row.bytes, r->n + 1);
    return sv_dict_child(l->dict, r->track, SV_TRACK_LANE, sv_dict_cstr(l->dict, name));
}

/* The track of a lane has a stable identity. A number whose track already carries events of its own
 * is left out. */
static sv_track lane_track(struct sv_lanes *l, const struct sv_lane_row *r)
{
    sv_track t;
    if (r->policy->is_numbered)
        return numbered_track(l, r);
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
    r->lanes[lane] = (struct sv_lane){.track = lane_track(l, r), .last_ns = INT64_MIN};
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
    uint32_t lane = is_endless ? find_endless(r) : find_free(r, end_ns);
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

/* ---- rows by end ---- */

/* The lowest lane that is quiet since then. */
static uint32_t find_quiet(const struct sv_lane_row *r, int64_t ns)
{
    size_t i = 1;
    if (r->tree[1].first_due_ns > ns)
        return NO_LANE;
    while (i < r->cap)
        i = r->tree[2 * i].first_due_ns <= ns ? 2 * i : 2 * i + 1;
    return (uint32_t)(i - r->cap);
}

sv_track sv_lane_take(struct sv_lanes *l, struct sv_lane_row *r, int64_t *begin_ns, int64_t *end_ns)
{
    uint32_t lane = find_quiet(r, *begin_ns);
    if (lane == NO_LANE)
        lane = r->n < r->policy->most ? add_lane(l, r) : r->n - 1;
    struct sv_lane *at = &r->lanes[lane];
    if (*begin_ns < at->last_ns)
        *begin_ns = at->last_ns;
    if (*end_ns < *begin_ns)
        *end_ns = *begin_ns;
    at->last_ns = *end_ns;
    lane_changed(l, r, lane);
    return at->track;
}

/* ---- loose rows ---- */

enum { SPANS_MIN = 4, SPANS_MAX = 64, LANES_LOOKED_AT = 64 };

struct span {
    int64_t begin_ns, end_ns;
    uint64_t owner;
    bool is_whole;
};

struct sv_lane_past {
    uint32_t n, cap; /* of all that were; capacity of spans, a power of two */
    /* The newest span that began after all others had ended: who begins no earlier can meet only it
     * and those after it. */
    uint32_t outer;
    int64_t outer_ns;
    int64_t last_ns;      /* the latest end */
    int64_t forgotten_ns; /* the latest end of those that are no longer in spans */
    struct span spans[];
};

static int64_t quiet_since(const struct sv_lane *lane)
{
    if (lane->top)
        return SV_LANE_NEVER;
    return lane->past ? lane->past->last_ns : INT64_MIN;
}

struct sv_lanes *sv_lanes_loose(struct sv_dict *dict)
{
    if (!dict->loose) {
        dict->loose = sv_alloc(sizeof *dict->loose);
        sv_lanes_init(dict->loose, dict);
        dict->loose->known_from_ns = INT64_MIN;
    }
    return dict->loose;
}

void sv_lanes_free(struct sv_lanes *l)
{
    if (!l)
        return;
    sv_lanes_fini(l);
    free(l);
}

/* Its lanes are tracks of their own and are forgotten by themselves. */
void sv_lanes_forget(struct sv_lanes *l, sv_track track)
{
    struct sv_lane_row *r = sv_lanes_find(l, track);
    if (!r)
        return;
    l->by_track[track] = NULL;
    if (r->track != track)
        return;
    for (uint32_t i = 1; i < r->n; i++)
        l->by_track[r->lanes[i].track] = NULL;
    while (r->newest) {
        struct sv_lane_loose *o = r->newest;
        r->newest = o->older;
        sv_pool_put(&l->pool, o, sizeof *o);
    }
    free_row(r);
    sv_pool_put(&l->pool, r, sizeof *r);
}

static size_t past_bytes(uint32_t cap)
{
    return sizeof(struct sv_lane_past) + cap * sizeof(struct span);
}

/* Lanes that are not looked at one by one need no spans: only whether they are quiet counts. */
static struct sv_lane_past *past_of(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane)
{
    struct sv_lane *at = &r->lanes[lane];
    struct sv_lane_past *p = at->past;
    uint32_t had = p ? p->cap : 0;
    uint32_t most = lane < LANES_LOOKED_AT ? SPANS_MAX : 0;
    if (p && (p->n < had || had == most))
        return p;
    uint32_t cap = most == 0 ? 0 : had ? had * 2 : SPANS_MIN;
    p = sv_realloc(p, past_bytes(cap));
    if (!at->past) {
        bool is_unknown = lane < l->n_unknown;
        int64_t until_ns = is_unknown ? l->known_from_ns : INT64_MIN;
        *p = (struct sv_lane_past){
            .outer_ns = INT64_MIN, .last_ns = until_ns, .forgotten_ns = until_ns};
    }
    l->past_bytes += past_bytes(cap) - (at->past ? past_bytes(had) : 0);
    p->cap = cap;
    at->past = p;
    return p;
}

void sv_lanes_block(struct sv_lanes *l, struct sv_lane_row *r, int64_t until_ns)
{
    for (uint32_t lane = 0; lane < r->n; lane++) {
        struct sv_lane_past *p = past_of(l, r, lane);
        p->last_ns = until_ns > p->last_ns ? until_ns : p->last_ns;
        p->forgotten_ns = until_ns > p->forgotten_ns ? until_ns : p->forgotten_ns;
        lane_changed(l, r, lane);
    }
}

static bool is_same(const struct span *a, const struct span *b)
{
    return a->begin_ns == b->begin_ns && a->end_ns == b->end_ns && a->owner == b->owner &&
           a->is_whole == b->is_whole;
}

static void remember_span(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane, struct span s)
{
    struct sv_lane_past *p = r->lanes[lane].past;
    if (p && p->n > 0 && p->cap > 0 && is_same(&p->spans[(p->n - 1) & (p->cap - 1)], &s))
        return;
    p = past_of(l, r, lane);
    if (p->n == 0 || s.begin_ns > p->last_ns) {
        p->outer = p->n;
        p->outer_ns = s.begin_ns;
    }
    if (s.end_ns > p->last_ns)
        p->last_ns = s.end_ns;
    if (p->cap == 0) {
        p->forgotten_ns = p->last_ns;
    } else {
        struct span *at = &p->spans[p->n & (p->cap - 1)];
        if (p->n >= p->cap && at->end_ns > p->forgotten_ns)
            p->forgotten_ns = at->end_ns;
        *at = s;
    }
    p->n++;
    lane_changed(l, r, lane);
}

/* Apart, or of one family and one inside the other. Where times are equal the order of writing
 * decides: for one owner it is that of the calls, for two it is not known, and a slice that is
 * written whole has its end before those of edges that are still open. */
static bool fits_span(const struct span *s, const struct sv_lane_slice *w)
{
    bool are_whole = s->is_whole && w->is_whole, is_mixed = s->is_whole != w->is_whole;
    if (w->begin_ns > s->end_ns || w->end_ns < s->begin_ns)
        return true;
    if (s->owner != w->owner && !are_whole)
        return false;
    if (w->begin_ns == s->end_ns)
        return true;
    if (w->begin_ns >= s->begin_ns)
        return is_mixed ? w->end_ns < s->end_ns : w->end_ns <= s->end_ns;
    return w->end_ns >= s->end_ns && w->end_ns != SV_LANE_NEVER;
}

static bool fits_past(const struct sv_lane_past *p, const struct sv_lane_slice *w)
{
    if (!p || w->begin_ns > p->last_ns)
        return true;
    if (w->begin_ns <= p->forgotten_ns)
        return false;
    uint32_t from = p->n < p->cap ? 0 : p->n - p->cap;
    if (w->begin_ns >= p->outer_ns && p->outer > from)
        from = p->outer;
    for (uint32_t i = from; i < p->n; i++)
        if (!fits_span(&p->spans[i & (p->cap - 1)], w))
            return false;
    return true;
}

/* Innermost first. */
static bool fits_open(const struct sv_lane_open *top, const struct sv_lane_slice *w)
{
    for (const struct sv_lane_open *at = top; at; at = at->below) {
        const struct sv_lane_loose *o = (const struct sv_lane_loose *)at;
        if (at->due_ns != SV_LANE_NEVER) { /* it has ended below one that has not */
            struct span s = {at->begin_ns, at->due_ns, o->owner, false};
            if (!fits_span(&s, w))
                return false;
            continue;
        }
        if (w->end_ns < at->begin_ns)
            continue;
        bool is_sure = w->is_whole                  ? w->nests
                       : w->end_ns != SV_LANE_NEVER ? true
                                                    : w->nests && o->nests;
        return w->begin_ns >= at->begin_ns && o->owner == w->owner && is_sure;
    }
    return true;
}

static uint32_t add_loose(struct sv_lanes *l, struct sv_lane_row *r)
{
    if (r->n < l->n_unknown && l->n_left_out++ >= UNKNOWN_MAX)
        return NO_LANE;
    uint32_t lane = add_lane(l, r);
    if (lane < l->n_unknown)
        past_of(l, r, lane);
    if (r->n > l->n_most)
        l->n_most = r->n;
    return lane;
}

/* The lowest lane; beyond those that are looked at, the one that is quiet for longest. */
static uint32_t loose_lane(struct sv_lanes *l, struct sv_lane_row *r, const struct sv_lane_slice *w)
{
    for (uint32_t i = w->not_first; i < r->n && i < LANES_LOOKED_AT; i++) {
        const struct sv_lane *lane = &r->lanes[i];
        if (fits_open(lane->top, w) && fits_past(lane->past, w))
            return i;
    }
    uint32_t quiet = sv_lane_first_due(r);
    if (quiet >= LANES_LOOKED_AT && quiet < r->n && quiet_since(&r->lanes[quiet]) < w->begin_ns)
        return quiet;
    while (r->n < r->policy->most) {
        uint32_t lane = add_loose(l, r);
        if (lane == 0 && w->not_first)
            continue;
        if (lane == NO_LANE || lane >= l->n_unknown || w->begin_ns > l->known_from_ns)
            return lane;
    }
    return NO_LANE;
}

static struct sv_lane_loose *push_loose(struct sv_lanes *l, struct sv_lane_row *r, uint32_t lane,
                                        const struct sv_lane_slice *s)
{
    struct sv_lane_loose *o = sv_pool_get(&l->pool, sizeof *o);
    *o = (struct sv_lane_loose){
        .open = {.below = r->lanes[lane].top, .begin_ns = s->begin_ns, .due_ns = SV_LANE_NEVER},
        .older = r->newest,
        .row = r,
        .owner = s->owner,
        .lane = lane,
        .nests = s->nests};
    if (r->newest)
        r->newest->newer = o;
    r->newest = o;
    r->lanes[lane].top = &o->open;
    lane_changed(l, r, lane);
    return o;
}

struct sv_lane_loose *sv_lane_place(struct sv_lanes *l, struct sv_lane_row *r,
                                    const struct sv_lane_slice *s, uint32_t *lane)
{
    *lane = loose_lane(l, r, s);
    if (*lane == NO_LANE)
        return NULL;
    if (*lane > 0)
        follow_name(l, r);
    if (s->end_ns == SV_LANE_NEVER)
        return push_loose(l, r, *lane, s);
    remember_span(l, r, *lane, (struct span){s->begin_ns, s->end_ns, s->owner, s->is_whole});
    return NULL;
}

struct sv_lane_loose *sv_lane_place_at(struct sv_lanes *l, struct sv_lane_row *r,
                                       const struct sv_lane_slice *s, uint32_t lane)
{
    while (r->n <= lane)
        if (add_loose(l, r) == NO_LANE)
            return NULL;
    return push_loose(l, r, lane, s);
}

struct sv_lane_loose *sv_lane_in_the_way(const struct sv_lane_loose *o, int64_t end_ns, size_t *n)
{
    struct sv_lane_open *first = NULL;
    *n = 0;
    for (struct sv_lane_open *at = o->row->lanes[o->lane].top; at != &o->open; at = at->below) {
        if (at->begin_ns >= end_ns || at->due_ns != SV_LANE_NEVER)
            continue;
        first = first ? first : at;
        ++*n;
    }
    return (struct sv_lane_loose *)first;
}

int64_t sv_lane_earliest_end(const struct sv_lane_loose *o, int64_t end_ns)
{
    const struct sv_lane_past *p = o->row->lanes[o->lane].past;
    if (end_ns < o->open.begin_ns)
        end_ns = o->open.begin_ns;
    if (!p || p->last_ns <= end_ns || p->cap == 0)
        return end_ns;
    for (uint32_t i = p->n < p->cap ? 0 : p->n - p->cap; i < p->n; i++) {
        const struct span *s = &p->spans[i & (p->cap - 1)];
        if (s->begin_ns >= o->open.begin_ns && s->begin_ns < end_ns && s->end_ns > end_ns)
            end_ns = s->end_ns;
    }
    return end_ns;
}

static void unlink_loose(struct sv_lane_loose *o)
{
    if (o->newer)
        o->newer->older = o->older;
    else
        o->row->newest = o->older;
    if (o->older)
        o->older->newer = o->newer;
}

void sv_lane_end(struct sv_lanes *l, struct sv_lane_loose *o, int64_t end_ns)
{
    struct sv_lane_row *r = o->row;
    struct sv_lane *lane = &r->lanes[o->lane];
    uint32_t number = o->lane;
    o->open.due_ns = end_ns;
    unlink_loose(o);
    o->older = o->newer = NULL;
    while (lane->top && lane->top->due_ns != SV_LANE_NEVER) {
        struct sv_lane_loose *done = (struct sv_lane_loose *)lane->top;
        lane->top = done->open.below;
        remember_span(l, r, number,
                      (struct span){done->open.begin_ns, done->open.due_ns, done->owner, false});
        sv_pool_put(&l->pool, done, sizeof *done);
    }
    lane_changed(l, r, number);
}

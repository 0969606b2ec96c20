/* Lanes for overlapping slices: see siblings.h. Called by the ring source for each slice that was measured elsewhere.
 *
 * Two slices of one lane must be apart or one inside the other. With the same start, only the longer one may come first: readers
 * sort by time and keep the order of arrival, so a later, longer one would end up inside. */
#include "sdk/siblings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LANES_MAX = 64, RECENT = 64 };

struct span {
    int64_t start, end;
};

struct lane {
    sv_track track;
    uint32_t n; /* of all slices */
    /* The newest slice that began after all others had ended: who begins no earlier can meet only it and those after it. */
    uint32_t outer;
    int64_t outer_start, last_end;
    struct span recent[RECENT];
};

struct sv_sibling_track {
    struct lane *lanes;
    size_t n, cap;
};

static bool fits(const struct lane *lane, int64_t start, int64_t end)
{
    uint32_t from = lane->n < RECENT ? 0 : lane->n - RECENT;
    if (lane->n == 0 || start >= lane->last_end)
        return true;
    if (start >= lane->outer_start && lane->outer > from)
        from = lane->outer;
    for (uint32_t i = from; i < lane->n; i++) {
        const struct span *s = &lane->recent[i % RECENT];
        bool apart = end <= s->start || start >= s->end;
        bool inside = start >= s->start && end <= s->end;
        bool around = start < s->start && end >= s->end;
        if (!apart && !inside && !around)
            return false;
    }
    return true;
}

static sv_track lane_track(struct sv_dict *dict, sv_track track, size_t number)
{
    if (number == 0)
        return track;
    struct sv_track_info base = dict->tracks[track];
    uint64_t uuid = sv_mix64(base.uuid + number * 0x9e3779b97f4a7c15u);
    sv_track lane = sv_dict_track(dict, uuid, NULL);
    struct sv_track_info *info = &dict->tracks[lane];
    info->kind = SV_TRACK_LANE;
    info->parent = track;
    info->name = base.name;
    info->is_described = true;
    return lane;
}

static struct lane *find_lane(struct sv_sibling_track *t, struct sv_dict *dict, sv_track track,
                              int64_t start, int64_t end)
{
    for (size_t i = 0; i < t->n; i++)
        if (fits(&t->lanes[i], start, end))
            return &t->lanes[i];
    if (t->n == LANES_MAX) /* crowded: the last one takes it, crossing or not */
        return &t->lanes[t->n - 1];
    t->lanes = sv_grow(t->lanes, &t->cap, t->n + 1, sizeof *t->lanes);
    struct lane *lane = &t->lanes[t->n];
    memset(lane, 0, sizeof *lane);
    lane->track = lane_track(dict, track, t->n++);
    return lane;
}

sv_track sv_siblings_choose(struct sv_siblings *l, struct sv_dict *dict, sv_track track,
                            int64_t start, int64_t end)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&l->by_track, track, &is_new);
    if (is_new) {
        l->tracks = sv_grow(l->tracks, &l->cap, l->n + 1, sizeof *l->tracks);
        l->tracks[l->n] = (struct sv_sibling_track){0};
        *slot = ++l->n;
    }
    struct sv_sibling_track *t = &l->tracks[*slot - 1];
    size_t had = t->n;
    struct lane *lane = find_lane(t, dict, track, start, end);
    l->n_lanes += t->n - had;
    if (lane->n == 0 || start >= lane->last_end) {
        lane->outer = lane->n;
        lane->outer_start = start;
    }
    if (lane->n == 0 || end > lane->last_end)
        lane->last_end = end;
    lane->recent[lane->n++ % RECENT] = (struct span){start, end};
    return lane->track;
}

size_t sv_siblings_bytes(const struct sv_siblings *l)
{
    enum { RESERVED = 4096 }; /* the first page of each track's lanes */
    return l->n * (sizeof *l->tracks + 2 * sizeof *l->by_track.slots + RESERVED) +
           l->n_lanes * sizeof(struct lane);
}

void sv_siblings_fini(struct sv_siblings *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->tracks[i].lanes);
    free(l->tracks);
    sv_map_fini(&l->by_track);
}

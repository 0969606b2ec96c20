/* The sketch of a trace that is being loaded. See sketch.h. */
#include "view/sketch.h"

#include "core/base/mem.h"
#include "view/answers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PARTS      256u
#define TRACKS_MAX 512u /* that are counted: the first ones with events */
#define SHOWN_MAX  40u

struct lane {
    sv_track track;
    uint64_t n;
    uint32_t parts[PARTS];
    char name[96];
};

/* Part i of a lane is [(first + i) << shift, (first + i + 1) << shift) ns. */
struct sv_sketch {
    pthread_mutex_t lock;
    struct lane *lanes;
    size_t n_lanes, cap_lanes;
    uint32_t *lane_of; /* by track: number + 1 */
    size_t cap_tracks;
    int64_t first;
    unsigned shift;
    bool has_time;
};

struct passing {
    struct sv_sink sink;
    struct sv_sketch *k;
    struct sv_dict *dict;
    struct sv_sink *next;
};

struct sv_sketch *sv_sketch_new(void)
{
    struct sv_sketch *k = sv_alloc(sizeof *k);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

void sv_sketch_free(struct sv_sketch *k)
{
    if (!k)
        return;
    pthread_mutex_destroy(&k->lock);
    free(k->lanes);
    free(k->lane_of);
    free(k);
}

/* ---- counting ---- */

static void name_lane(struct lane *lane, const struct sv_dict *d)
{
    const struct sv_track_info *k = &d->tracks[lane->track];
    struct sv_text name = sv_dict_text(d, k->name);
    if (name.len)
        snprintf(lane->name, sizeof lane->name, "%.*s", (int)(name.len < 90 ? name.len : 90),
                 name.bytes);
    else if (k->kind == SV_TRACK_THREAD)
        snprintf(lane->name, sizeof lane->name, "thread %" PRId64, k->tid);
    else
        snprintf(lane->name, sizeof lane->name, "%s", sv_track_kind_name(k->kind));
}

/* NULL: there are too many of them. */
static struct lane *lane_of(struct sv_sketch *k, sv_track track)
{
    if (track >= k->cap_tracks) {
        size_t had = k->cap_tracks;
        k->lane_of = sv_grow(k->lane_of, &k->cap_tracks, (size_t)track + 1, sizeof *k->lane_of);
        memset(k->lane_of + had, 0, (k->cap_tracks - had) * sizeof *k->lane_of);
    }
    if (k->lane_of[track] == 0) {
        if (k->n_lanes == TRACKS_MAX)
            return NULL;
        SV_APPEND(k->lanes, k->n_lanes, k->cap_lanes) = (struct lane){.track = track};
        k->lane_of[track] = (uint32_t)k->n_lanes;
    }
    return &k->lanes[k->lane_of[track] - 1];
}

/* Parts become twice as long: two of them are one. */
static void double_parts(struct sv_sketch *k)
{
    int64_t first = k->first >> 1;
    for (size_t i = 0; i < k->n_lanes; i++) {
        uint32_t parts[PARTS] = {0};
        for (uint32_t p = 0; p < PARTS; p++)
            parts[((k->first + (int64_t)p) >> 1) - first] += k->lanes[i].parts[p];
        memcpy(k->lanes[i].parts, parts, sizeof parts);
    }
    k->first = first;
    k->shift++;
}

/* An earlier time than all others: the parts that are used move to the right, if there is space. */
static void move_parts(struct sv_sketch *k, uint32_t by)
{
    for (size_t i = 0; i < k->n_lanes; i++) {
        memmove(k->lanes[i].parts + by, k->lanes[i].parts,
                (PARTS - by) * sizeof *k->lanes[i].parts);
        memset(k->lanes[i].parts, 0, by * sizeof *k->lanes[i].parts);
    }
    k->first -= by;
}

static bool is_free(const struct sv_sketch *k, uint32_t last_parts)
{
    for (size_t i = 0; i < k->n_lanes; i++)
        for (uint32_t p = PARTS - last_parts; p < PARTS; p++)
            if (k->lanes[i].parts[p])
                return false;
    return true;
}

static uint32_t part_of(struct sv_sketch *k, int64_t ns)
{
    if (!k->has_time) {
        k->has_time = true;
        k->shift = 10;
        k->first = ns >> k->shift;
    }
    for (;;) {
        int64_t at = (ns >> k->shift) - k->first;
        if (at >= 0 && at < (int64_t)PARTS)
            return (uint32_t)at;
        if (at < 0 && at > -(int64_t)PARTS && is_free(k, (uint32_t)-at))
            move_parts(k, (uint32_t)-at);
        else
            double_parts(k);
    }
}

static int pass(struct sv_sink *sink, const struct sv_event *events, size_t n, struct sv_err *err)
{
    struct passing *p = (struct passing *)(void *)sink;
    pthread_mutex_lock(&p->k->lock);
    for (size_t i = 0; i < n; i++) {
        struct lane *lane = lane_of(p->k, events[i].track);
        if (!lane || events[i].kind == SV_END)
            continue;
        lane->parts[part_of(p->k, events[i].ts_ns)]++;
        if (lane->n++ == 0 || !lane->name[0])
            name_lane(lane, p->dict);
    }
    pthread_mutex_unlock(&p->k->lock);
    return p->next->write(p->next, events, n, err);
}

static int close_pass(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct passing *p = (struct passing *)(void *)sink;
    int code = p->next->close(p->next, failed, err);
    free(p);
    return code;
}

struct sv_sink *sv_sketch_sink(struct sv_sketch *k, struct sv_dict *dict, struct sv_sink *next)
{
    struct passing *p = sv_alloc(sizeof *p);
    p->sink = (struct sv_sink){.write = pass, .close = close_pass};
    sv_sink_takes_as(&p->sink, next, SV_ORDER_BITS);
    p->k = k;
    p->dict = dict;
    p->next = next;
    return &p->sink;
}

/* ---- showing ---- */

static int by_events(const void *a, const void *b)
{
    const struct lane *x = *(const struct lane *const *)a, *y = *(const struct lane *const *)b;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : x->track < y->track ? -1 : x->track > y->track;
}

static void put_lane(struct sv_json *j, const struct lane *lane, uint32_t used)
{
    uint32_t most = 1;
    for (uint32_t p = 0; p < PARTS; p++)
        most = lane->parts[p] > most ? lane->parts[p] : most;
    sv_json_begin(j, '{');
    sv_json_put(j, "name", cstr, lane->name);
    sv_json_put(j, "events", u64_text, lane->n);
    sv_json_put(j, "density", begin, '[');
    for (uint32_t p = 0; p < used; p++)
        sv_json_u64(j, lane->parts[p] ? 1 + (uint64_t)lane->parts[p] * 254 / most : 0);
    sv_json_end(j);
    sv_json_end(j);
}

void sv_sketch_put(struct sv_sketch *k, struct sv_json *j)
{
    const struct lane *busiest[TRACKS_MAX];
    uint32_t used = PARTS;
    pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->n_lanes; i++)
        busiest[i] = &k->lanes[i];
    qsort(busiest, k->n_lanes, sizeof *busiest, by_events);
    while (used > 1 && is_free(k, PARTS - used + 1))
        used--;
    sv_json_begin(j, '{');
    sv_json_put(j, "from", i64_text, (int64_t)((uint64_t)k->first << k->shift));
    sv_json_put(j, "to", i64_text, (int64_t)((uint64_t)(k->first + used) << k->shift));
    sv_json_put(j, "rows", begin, '[');
    for (size_t i = 0; i < k->n_lanes && i < SHOWN_MAX; i++)
        put_lane(j, busiest[i], used);
    sv_json_end(j);
    sv_json_end(j);
    pthread_mutex_unlock(&k->lock);
}

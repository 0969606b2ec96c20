/* Start/end ranges: they belong to the process, may overlap and may end in another thread than they
 * started in.
 *
 * A range is one event, recorded at its end. Its row is taken when it starts: each thread has rows
 * of its own below the track of the domain, the first one that is free is used, so that what is on
 * a row neither overlaps nor runs back in time. Open ranges hang in a table under a lock; those
 * that are still open when the program ends are recorded as `unfinished`. */
#include "inject/nvtx/nvtx.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 64, LANES_MAX = 1024 };

struct nvtx_lanes {
    struct nvtx_lanes *next;
    uint32_t tid;
    uint64_t used; /* bits */
    stave_track_t tracks[LANES];
};

struct started {
    int64_t start_ns;
    nvtxRangeId_t next_id;
    uint32_t generation, next_free; /* index + 1 */
    bool is_open;
    uint8_t lane;
    struct nvtx_lanes *lanes; /* NULL: the track of the domain itself */
    struct nvtx_event *event; /* NULL: not recorded */
    struct stave_args *args;
};

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static struct started *table; /* NVTX_OPEN_MAX, in memory that is paid for as it is used */
static uint32_t n_started, first_free, n_lanes;

/* ---- rows ---- */

static stave_track_t domain_track(struct nvtx_domain *d)
{
    if (!d->ranges) {
        char name[NVTX_TEXT_MAX + 16];
        snprintf(name, sizeof name, "NVTX ranges%s%s", d->is_default ? "" : " ", d->name);
        d->ranges = stave_track(STAVE_PROCESS, name);
    }
    return d->ranges;
}

static struct nvtx_lanes *lanes_of(struct nvtx_domain *d, uint32_t tid)
{
    struct nvtx_lanes *l = d->lanes;
    while (l && l->tid != tid)
        l = l->next;
    if (!l && n_lanes < LANES_MAX && (l = calloc(1, sizeof *l))) {
        n_lanes++;
        l->tid = tid;
        l->next = d->lanes;
        d->lanes = l;
    }
    return l;
}

static void take_lane(struct started *s, struct nvtx_domain *d, uint32_t tid)
{
    s->lanes = lanes_of(d, tid);
    if (!s->lanes || !~s->lanes->used) {
        s->lanes = NULL;
        return;
    }
    s->lane = (uint8_t)__builtin_ctzll(~s->lanes->used);
    s->lanes->used |= (uint64_t)1 << s->lane;
    if (s->lanes->tracks[s->lane])
        return;
    char name[48];
    snprintf(name, sizeof name, s->lane ? "thread %u (%u)" : "thread %u", tid, s->lane + 1u);
    s->lanes->tracks[s->lane] = stave_track(domain_track(d), name);
}

/* Rings of different threads are not merged: what another thread ends is on the track of the
 * domain, where the SDK finds rows for what overlaps. */
static stave_track_t track_of(const struct started *s, uint32_t tid)
{
    return s->lanes && s->lanes->tid == tid ? s->lanes->tracks[s->lane]
                                            : domain_track(s->event->domain);
}

/* ---- open ranges ---- */

static struct stave_args *copy_args(const struct stave_args *a)
{
    size_t size = offsetof(struct stave_args, bytes) + a->len;
    struct stave_args *copy = malloc(size);
    if (copy)
        memcpy(copy, a, size);
    return copy;
}

/* What an event points to must live until its end: a copy of color, text and payload. */
static bool keep_event(struct started *s, const struct nvtx_event *e, uint32_t tid)
{
    struct nvtx_event *k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = *e;
    for (uint32_t i = 0; i < k->n; i++)
        if (k->values[i] == (uintptr_t)e->color && (k->shape & NVTX_COLOR))
            k->values[i] = (uintptr_t)k->color;
    if (!k->name) {
        size_t len = strnlen(e->text, sizeof k->narrow - 1);
        memmove(k->narrow, e->text, len);
        k->narrow[len] = '\0';
        k->text = k->narrow;
    }
    if (k->shape & NVTX_EXTENDED) { /* always the newest value here */
        const struct stave_args *args = (const struct stave_args *)(uintptr_t)k->values[k->n - 1];
        s->args = copy_args(args);
        k->values[k->n - 1] = (uintptr_t)s->args;
    }
    nvtx_event_add(k, NVTX_STARTED_ON, tid);
    s->event = k;
    take_lane(s, k->domain, tid);
    return true;
}

static struct started *take_slot(uint32_t *index)
{
    if (!table && !(table = calloc(NVTX_OPEN_MAX, sizeof *table)))
        return NULL;
    if (first_free) {
        *index = first_free - 1;
        first_free = table[*index].next_free;
    } else if (n_started < NVTX_OPEN_MAX) {
        *index = n_started++;
    } else {
        return NULL;
    }
    return &table[*index];
}

nvtxRangeId_t nvtx_start(struct nvtx_event *e, nvtxRangeId_t next_id)
{
    uint32_t index, tid = nvtx_tid();
    pthread_mutex_lock(&starting);
    struct started *s = take_slot(&index);
    nvtxRangeId_t id = 0;
    if (s) {
        *s = (struct started){.generation = s->generation + 1, .next_id = next_id, .is_open = true};
        if (!e->domain->is_off && stave_enabled(NVTX_CATEGORY) && !keep_event(s, e, tid))
            nvtx_lost(NVTX_LOST_MEMORY);
        s->start_ns = stave_now_ns();
        id = (uint64_t)s->generation << 32 | (index + 1);
    } else {
        nvtx_lost(NVTX_LOST_OPEN);
    }
    pthread_mutex_unlock(&starting);
    return id;
}

static void record_range(struct started *s, int64_t end_ns, uint32_t shape,
                         const struct stave_args *more)
{
    struct nvtx_event *e = s->event;
    if (e) {
        if (more)
            nvtx_event_add(e, NVTX_EXTENDED_END, (uintptr_t)more);
        if (shape)
            nvtx_event_add(e, shape, 1);
        uint64_t first[] = {track_of(s, nvtx_tid()), (uint64_t)s->start_ns,
                            (uint64_t)(end_ns - s->start_ns)};
        nvtx_record(e, STAVE_KIND_COMPLETE, first, 3);
    }
    if (s->lanes)
        s->lanes->used &= ~((uint64_t)1 << s->lane);
    free(s->args);
    free(e);
    s->args = NULL;
    s->event = NULL;
}

nvtxRangeId_t nvtx_end(nvtxRangeId_t id, const struct stave_args *more)
{
    int64_t now = stave_now_ns();
    uint64_t index = (id & 0xffffffff) - 1;
    nvtxRangeId_t next_id = 0;
    pthread_mutex_lock(&starting);
    if (table && index < n_started && table[index].is_open && table[index].generation == id >> 32) {
        struct started *s = &table[index];
        next_id = s->next_id;
        record_range(s, now, 0, more);
        s->is_open = false;
        s->next_free = first_free;
        first_free = (uint32_t)index + 1;
    }
    pthread_mutex_unlock(&starting);
    return next_id;
}

/* ---- ends and forks ---- */

void nvtx_ranges_finish(void)
{
    int64_t now = stave_now_ns();
    if (pthread_mutex_trylock(&starting) != 0)
        return;
    for (uint32_t i = 0; i < n_started; i++)
        if (table[i].is_open)
            record_range(&table[i], now, NVTX_UNFINISHED, NULL);
    pthread_mutex_unlock(&starting);
}

/* The parent's ranges are recorded by the parent. */
void nvtx_ranges_forked(void)
{
    pthread_mutex_init(&starting, NULL);
    for (uint32_t i = 0; i < n_started; i++) {
        free(table[i].event);
        free(table[i].args);
        table[i].event = NULL;
        table[i].args = NULL;
    }
}

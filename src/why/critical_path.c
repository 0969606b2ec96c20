/* The critical path as slices, flows and devices say it, backwards. Called by why/ledger_path.c.
 *
 * The state is a track and a time, which never grows (why/open_slices.h finds what is open there).
 * Each step moves the time back to the nearest boundary; at the beginning of a slice it may go to
 * another track along a flow, or from work of a device to the call that launched it. A host call
 * that waits for devices leads to the work that ended last within it. What leads to the same time
 * again cannot be followed for ever: steps without progress are counted. */
#include "why/critical_path.h"

#include "core/base/mem.h"
#include "core/base/search.h"
#include "why/launch.h"
#include "why/open_slices.h"
#include "why/steps.h"

#include <stdlib.h>

#define STUCK_MAX 1000u

/* What connects host and devices beside flows. */
struct links {
    struct sv_launches launches;
    uint8_t *by_name; /* kinds of work (steps.h) */
    struct end {
        int64_t ts_ns;
        uint32_t space, row;
    } * ends; /* of device work, by machine and time */
    size_t n;
};

static int by_end(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void links_init(struct links *l, const struct sv_trace *t)
{
    size_t cap = 0;
    *l = (struct links){.by_name = sv_work_of_strings(t->dict)};
    sv_launches_init(&l->launches, t);
    for (uint32_t row = 0; row < t->slices.n; row++) {
        if (sv_device_slice(&l->launches, row) == SV_NOT_DEVICE || t->slices.kind[row] != SV_SLICE)
            continue;
        l->ends = sv_grow(l->ends, &cap, l->n + 1, sizeof *l->ends);
        l->ends[l->n++] =
            (struct end){sv_trace_end_ns(t, row), t->dict->tracks[t->slices.track[row]].space, row};
    }
    if (l->n)
        qsort(l->ends, l->n, sizeof *l->ends, by_end);
}

static void links_fini(struct links *l)
{
    sv_launches_fini(&l->launches);
    free(l->by_name);
    free(l->ends);
}

/* The device work of the same machine that ended last in (after_ns, until_ns]; SV_NO_ROW: none
 * did. */
static uint32_t last_work(const struct links *l, uint32_t space, int64_t after_ns, int64_t until_ns)
{
    const struct end key = {until_ns, space, SV_NO_ROW};
    size_t low;
    SV_SEARCH(low, middle, 0, l->n, by_end(&l->ends[middle], &key) <= 0);
    const struct end *found = low > 0 ? &l->ends[low - 1] : NULL;
    return found && found->space == space && found->ts_ns > after_ns ? found->row : SV_NO_ROW;
}

static void add_segment(struct sv_path *p, struct sv_segment s)
{
    struct sv_segment *last = p->n ? &p->segments[p->n - 1] : NULL;
    if (s.dur_ns <= 0)
        return;
    /* Built backwards: what joins seamlessly extends the segment after it. */
    if (last && last->kind == s.kind && last->row == s.row && last->track == s.track &&
        last->reason == s.reason && s.ts_ns + s.dur_ns == last->ts_ns) {
        last->ts_ns = s.ts_ns;
        last->dur_ns += s.dur_ns;
        return;
    }
    p->segments = sv_grow(p->segments, &p->cap, p->n + 1, sizeof *p->segments);
    p->segments[p->n++] = s;
}

/* The flow into `row` whose origin was last busy with it; its time is at most the slice's
 * beginning. Work of a device that no flow leads to has its launch. */
static uint32_t latest_origin(const struct links *l, uint32_t row, int64_t *at_ns)
{
    const struct sv_trace *t = l->launches.trace;
    uint64_t first, n = sv_trace_flows_in(t, row, &first);
    uint32_t best = SV_NO_ROW, launch = SV_NO_ROW;
    if (n == 0 && sv_device_slice(&l->launches, row) != SV_NOT_DEVICE)
        launch = sv_launch_of(&l->launches, row);
    for (uint64_t i = 0; i < n + (launch != SV_NO_ROW); i++) {
        uint32_t origin = i < n ? t->flows.from[t->flows.by_to[first + i]] : launch;
        int64_t begin = t->slices.ts_ns[row], end = sv_trace_end_ns(t, origin);
        int64_t at = end < begin ? end : begin;
        if (t->slices.ts_ns[origin] <= begin && origin != row &&
            (best == SV_NO_ROW || at > *at_ns)) {
            best = origin;
            *at_ns = at;
        }
    }
    return best;
}

/* Until when the track was busy with something else before the slice began. Within another slice it
 * is never idle: there it counts when the last slice before this one began, since one that began
 * earlier than the origin was done may be the wait for it. */
static int64_t busy_until(struct sv_open_slices *open, uint32_t row)
{
    const struct sv_trace *t = open->trace;
    int64_t begin = t->slices.ts_ns[row];
    struct sv_open_view v = sv_open_slice(open, t->slices.track[row], begin);
    if (v.row == SV_NO_ROW)
        return v.since_ns;
    return t->slices.parent[row] == SV_NO_ROW ? begin : t->slices.ts_ns[v.last];
}

struct walk {
    const struct links *links;
    struct sv_open_slices open;
    sv_track track;
    int64_t ts_ns;
    unsigned stuck;
    bool by_flow;
};

struct sv_path_finder {
    struct links links;
    struct walk walk;
};

static struct sv_segment segment(const struct walk *w, enum sv_segment_kind kind, int64_t since_ns,
                                 uint32_t row)
{
    return (struct sv_segment){.kind = kind,
                               .ts_ns = since_ns,
                               .dur_ns = w->ts_ns - since_ns,
                               .row = row,
                               .track = w->track,
                               .by_flow = w->by_flow,
                               .class = SV_N_WHY_CLASSES};
}

/* At the beginning of a slice: along the flow, unless the track was busy with something else after
 * the origin was done. */
static void leave_slice(struct sv_path *p, const struct sv_trace *t, uint32_t row, struct walk *w)
{
    int64_t at_ns = INT64_MIN, begin = t->slices.ts_ns[row];
    uint32_t origin = latest_origin(w->links, row, &at_ns);
    w->by_flow = false;
    w->ts_ns = begin;
    if (origin == SV_NO_ROW || busy_until(&w->open, row) > at_ns)
        return;
    w->by_flow = true;
    w->track = t->slices.track[row];
    add_segment(p, segment(w, SV_SEGMENT_WAIT, at_ns, row));
    w->track = t->slices.track[origin];
    w->ts_ns = at_ns;
}

/* In a call that waits for devices: to what it waited for. */
static bool leave_wait(struct sv_path *p, const struct sv_trace *t, const struct sv_open_view *v,
                       int64_t from_ns, struct walk *w)
{
    if (v->row == SV_NO_ROW || w->links->by_name[t->slices.name[v->row]] != SV_WORK_WAIT ||
        sv_device_slice(&w->links->launches, v->row) != SV_NOT_DEVICE)
        return false;
    uint32_t work = last_work(w->links, t->dict->tracks[w->track].space,
                              v->since_ns > from_ns ? v->since_ns : from_ns, w->ts_ns);
    if (work == SV_NO_ROW)
        return false;
    int64_t end = sv_trace_end_ns(t, work);
    add_segment(p, segment(w, SV_SEGMENT_RUN, end, v->row));
    w->track = t->slices.track[work];
    w->ts_ns = end;
    w->by_flow = true;
    return true;
}

/* One step back. False: there is nothing before. */
static bool step(struct sv_path *p, const struct sv_trace *t, int64_t from_ns, struct walk *w)
{
    struct sv_open_view v = sv_open_slice(&w->open, w->track, w->ts_ns);
    if (leave_wait(p, t, &v, from_ns, w))
        return ++w->stuck < STUCK_MAX;
    bool is_before_all = v.since_ns < from_ns;
    int64_t since = is_before_all ? from_ns : v.since_ns;
    add_segment(p, segment(w, v.row == SV_NO_ROW ? SV_SEGMENT_IDLE : SV_SEGMENT_RUN, since, v.row));
    w->by_flow = false;
    w->stuck = since < w->ts_ns ? 0 : w->stuck + 1;
    w->ts_ns = since;
    if (is_before_all)
        return false;
    if (v.begins && since == v.since_ns)
        leave_slice(p, t, v.row, w);
    return w->stuck < STUCK_MAX;
}

/* ---- the whole ---- */

struct sv_path_finder *sv_path_finder_new(const struct sv_trace *t)
{
    struct sv_path_finder *f = sv_alloc(sizeof *f);
    links_init(&f->links, t);
    f->walk = (struct walk){.links = &f->links};
    sv_open_slices_init(&f->walk.open, t);
    return f;
}

void sv_path_finder_free(struct sv_path_finder *f)
{
    if (!f)
        return;
    sv_open_slices_fini(&f->walk.open);
    links_fini(&f->links);
    free(f);
}

int64_t sv_path_find(struct sv_path_finder *f, struct sv_path *p, sv_track *track, int64_t from_ns,
                     int64_t to_ns, const struct sv_thread_states *until)
{
    struct walk *w = &f->walk;
    *p = (struct sv_path){0};
    *w = (struct walk){.links = &f->links, .open = w->open, .track = *track, .ts_ns = to_ns};
    while (w->ts_ns > from_ns && !(until && sv_thread_is_recorded(until, w->track)) &&
           step(p, f->links.launches.trace, from_ns, w)) {}
    for (size_t i = 0; i < p->n / 2; i++) {
        struct sv_segment s = p->segments[i];
        p->segments[i] = p->segments[p->n - 1 - i];
        p->segments[p->n - 1 - i] = s;
    }
    if (p->n && p->segments[0].ts_ns < from_ns) { /* a flow from before */
        p->segments[0].dur_ns -= from_ns - p->segments[0].ts_ns;
        p->segments[0].ts_ns = from_ns;
    }
    *track = w->track;
    return w->ts_ns > from_ns ? w->ts_ns : from_ns;
}

void sv_path_fini(struct sv_path *p)
{
    free(p->segments);
    *p = (struct sv_path){0};
}

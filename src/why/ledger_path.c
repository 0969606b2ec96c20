/* The critical path of a thread's time: the ledger's pieces as segments, and what devices did in
 * those that wait for one. Called by critical-path, the viewer and why/wait_chain.c. */
#include "why/critical_path.h"

#include "core/base/mem.h"
#include "core/base/search.h"

#include <stdlib.h>
#include <string.h>

/* A process has been started by one that was started by … */
enum { STARTERS_MAX = 64 };

static void append(struct sv_path *p, struct sv_segment s)
{
    struct sv_segment *last = p->n ? &p->segments[p->n - 1] : NULL;
    if (s.dur_ns <= 0)
        return;
    if (last && last->kind == s.kind && last->row == s.row && last->track == s.track &&
        last->reason == s.reason && last->class == s.class && last->by_flow == s.by_flow &&
        last->by_waker == s.by_waker) {
        last->dur_ns += s.dur_ns;
        return;
    }
    p->segments = sv_grow(p->segments, &p->cap, p->n + 1, sizeof *p->segments);
    p->segments[p->n++] = s;
}

static struct sv_segment of_piece(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    const struct sv_thread_states *states = &l->states;
    const struct sv_why_edge *edge = p->edge != SV_NO_EDGE ? &l->edges[p->edge] : NULL;
    uint32_t thread = p->thread != SV_NO_THREAD ? p->thread
                      : edge                    ? edge->thread
                                                : l->units[p->unit].thread;
    struct sv_segment s = {.kind = SV_SEGMENT_RUN,
                           .ts_ns = p->ts_ns,
                           .dur_ns = p->dur_ns,
                           .row = p->row,
                           .class = p->class,
                           .by_flow = edge && edge->by_flow,
                           .by_waker = edge && !edge->by_flow};
    struct sv_state_piece x = {.row = SV_NO_ROW, .call = SV_NO_ROW};
    if (thread != SV_NO_THREAD) {
        struct sv_state_cursor c = sv_state_window(states, thread, p->ts_ns, p->ts_ns + 1);
        s.track = states->threads[thread].track;
        (void)sv_state_next(&c, &x);
    }
    s.reason = p->doing == SV_DOING_DEVICE ? SV_WAIT_FOR_GPU : x.reason;
    if (s.reason)
        s.kind = SV_SEGMENT_WAIT;
    else if (p->doing == SV_DOING_WAITS && x.row == SV_NO_ROW && p->row == SV_NO_ROW)
        s.kind = SV_SEGMENT_IDLE;
    if (s.kind == SV_SEGMENT_WAIT && p->doing != SV_DOING_DEVICE && x.call != SV_NO_ROW)
        s.row = x.call;
    if (s.kind == SV_SEGMENT_WAIT && s.row == SV_NO_ROW)
        s.row = x.row;
    return s;
}

/* What devices did while the thread waited for one. */
static void append_device(struct sv_path *p, struct sv_path_finder *f, const struct sv_segment *s)
{
    struct sv_path inside;
    sv_track track = s->track;
    sv_path_find(f, &inside, &track, s->ts_ns, s->ts_ns + s->dur_ns, NULL);
    int64_t at = inside.n ? inside.segments[0].ts_ns : s->ts_ns + s->dur_ns;
    struct sv_segment rest = *s;
    rest.dur_ns = at - s->ts_ns;
    append(p, rest);
    for (size_t i = 0; i < inside.n; i++) {
        inside.segments[i].class = s->class;
        append(p, inside.segments[i]);
    }
    sv_path_fini(&inside);
}

static void keep_last(struct sv_path *p, size_t max)
{
    if (!max || p->n <= max)
        return;
    memmove(p->segments, &p->segments[p->n - max], max * sizeof *p->segments);
    p->n = max;
}

void sv_path_of_unit(struct sv_path *p, const struct sv_ledger *l, struct sv_path_finder *f,
                     size_t unit, int64_t from_ns, int64_t to_ns, size_t max)
{
    const struct sv_why_unit *u = &l->units[unit];
    size_t i;
    SV_SEARCH(i, k, u->first, u->end, l->pieces[k].ts_ns + l->pieces[k].dur_ns <= from_ns);
    for (; i < u->end && l->pieces[i].ts_ns < to_ns; i++) {
        struct sv_why_piece x = l->pieces[i];
        int64_t from = x.ts_ns > from_ns ? x.ts_ns : from_ns,
                to = x.ts_ns + x.dur_ns < to_ns ? x.ts_ns + x.dur_ns : to_ns;
        x.ts_ns = from;
        x.dur_ns = to - from;
        struct sv_segment s = of_piece(l, &x);
        if (x.doing == SV_DOING_DEVICE)
            append_device(p, f, &s);
        else
            append(p, s);
    }
    keep_last(p, max);
}

/* ---- one question ---- */

/* Before its first event: the thread that forked it. Who started a further thread of a process is
 * not recorded: mostly its main thread did. Without states its first event may be long after its
 * start. */
static uint32_t starter_of(const struct sv_thread_states *s, uint32_t thread)
{
    const struct sv_thread_rows *x = &s->threads[thread];
    uint32_t starter = x->starter;
    if (starter == SV_NO_THREAD && x->process && x->state)
        starter = sv_thread_main(s, x->process);
    bool is_before = starter != SV_NO_THREAD && s->threads[starter].from_ns < x->from_ns;
    return is_before ? starter : SV_NO_THREAD;
}

/* Windows from the last one back; their number. */
static size_t windows_of(const struct sv_thread_states *s, uint32_t thread, int64_t from_ns,
                         int64_t to_ns, struct sv_given_unit *windows)
{
    size_t n = 0;
    while (n < STARTERS_MAX && to_ns > from_ns) {
        int64_t first = s->threads[thread].from_ns;
        uint32_t starter = first > from_ns && first < to_ns ? starter_of(s, thread) : SV_NO_THREAD;
        int64_t begin = starter != SV_NO_THREAD ? first : from_ns;
        windows[n++] = sv_given_window(thread, 0, begin, to_ns);
        thread = starter;
        to_ns = begin;
    }
    return n;
}

static void append_thread(struct sv_path *p, const struct sv_trace *t, struct sv_path_finder *f,
                          const struct sv_thread_states *s, uint32_t thread, int64_t from_ns,
                          int64_t to_ns)
{
    struct sv_given_unit windows[STARTERS_MAX];
    struct sv_ledger l;
    struct sv_ledger_options o = {.step = -1,
                                  .given = windows,
                                  .n_given = windows_of(s, thread, from_ns, to_ns, windows),
                                  .given_kind = SV_UNIT_IS_WINDOW,
                                  .pieces_max = UINT32_MAX};
    sv_ledger_make(&l, t, &o);
    for (size_t i = l.n_units; i-- > 0;)
        sv_path_of_unit(p, &l, f, i, INT64_MIN, INT64_MAX, 0);
    sv_ledger_fini(&l);
}

static void find_path(struct sv_path *p, const struct sv_trace *t,
                      const struct sv_thread_states *states, sv_track track, int64_t from_ns,
                      int64_t to_ns, size_t max)
{
    struct sv_path_finder *f = sv_path_finder_new(t);
    struct sv_path end;
    *p = (struct sv_path){0};
    int64_t at = sv_path_find(f, &end, &track, from_ns, to_ns, states);
    if (at > from_ns && sv_thread_is_recorded(states, track))
        append_thread(p, t, f, states, sv_thread_of(states, track), from_ns, at);
    for (size_t i = 0; i < end.n; i++)
        append(p, end.segments[i]);
    keep_last(p, max);
    sv_path_fini(&end);
    sv_path_finder_free(f);
}

void sv_critical_path_of(struct sv_path *p, const struct sv_trace *t, sv_track track,
                         int64_t from_ns, int64_t to_ns, size_t max)
{
    struct sv_thread_states states;
    sv_thread_states_init(&states, t);
    find_path(p, t, &states, track, from_ns, to_ns, max);
    sv_thread_states_fini(&states);
}

/* A slice on a thread's row of calls or states is explained by what the thread did. */
static sv_track thread_track(const struct sv_thread_states *s, sv_track track)
{
    return sv_thread_is_recorded(s, track) ? s->threads[sv_thread_of(s, track)].track : track;
}

void sv_critical_path(struct sv_path *p, const struct sv_trace *t, uint32_t from, int64_t from_ns,
                      uint32_t to)
{
    struct sv_thread_states states;
    sv_thread_states_init(&states, t);
    if (from != SV_NO_ROW)
        from_ns = t->slices.ts_ns[from];
    find_path(p, t, &states, t->slices.track[to], from_ns, sv_trace_end_ns(t, to), 0);
    sv_track home = from != SV_NO_ROW ? thread_track(&states, t->slices.track[from]) : 0;
    p->is_complete = from == SV_NO_ROW;
    for (size_t i = 0; i < p->n && !p->is_complete; i++)
        p->is_complete =
            p->segments[i].row == from ||
            (p->segments[i].track == home && p->segments[i].ts_ns < sv_trace_end_ns(t, from));
    sv_thread_states_fini(&states);
}

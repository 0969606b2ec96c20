/* The division of steps: every nanosecond of a step goes to one kind of work.
 *
 * Called after detection, once per trace. A step is covered in layers, each taking what those
 * before it left:
 *
 *   1  the step's own thread: the innermost open slice but the marker. Waiting for a device
 *      (…Synchronize) covers nothing.
 *   2  other threads of the process, as far as they compute, communicate or copy: backward on the
 *      autograd thread
 *   3  devices: compute first, then communication, then copies
 *   4  other threads that load data or write checkpoints
 *
 * What is left is idle. Steps of many threads may lie above each other, so nothing is looked at
 * once for each step: what the threads and devices of a process do (2 to 4) becomes one line of
 * time, and so does each thread that has steps; a step is the difference of two sums. The own
 * thread adds nothing to the layers below it, since there it does nothing or waits. */
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "why/spans.h"
#include "why/step_kinds.h"
#include "why/thread_states.h"
#include "why/work_line.h"

#include <stdlib.h>
#include <string.h>

#define KIND(work) (1u << (work))
enum {
    COMPUTE = KIND(SV_WORK_FORWARD) | KIND(SV_WORK_BACKWARD) | KIND(SV_WORK_OPTIMIZER),
    SUPPLY = KIND(SV_WORK_DATA) | KIND(SV_WORK_CHECKPOINT)
};

static uint8_t kind_or_other(uint8_t kind)
{
    return kind < SV_N_WORK ? kind : SV_WORK_OTHER;
}

/* ---- the innermost slices of a track ---- */

struct open {
    int64_t to_ns;
    uint32_t row;
};

struct walk {
    /* `below`: of a marker the innermost other slice, of others SV_NO_ROW; as is SV_NO_ROW when
     * there is none. */
    void (*meet)(struct walk *w, int64_t from_ns, int64_t to_ns, uint32_t row, uint32_t below);
    void *ctx;
    const struct sv_map *markers; /* rows, NULL: none */
    struct open *open;
    size_t depth, cap;
    int64_t at_ns;
};

/* The innermost slice is a marker: what is open below it, piece by piece. Those that have ended are
 * taken out. */
static void meet_marker(struct walk *w, int64_t until_ns)
{
    while (w->at_ns < until_ns) {
        const struct open top = w->open[w->depth - 1];
        while (w->depth > 1 && w->open[w->depth - 2].to_ns <= w->at_ns)
            w->open[--w->depth - 1] = top;
        const struct open *below = w->depth > 1 ? &w->open[w->depth - 2] : NULL;
        int64_t to = below && below->to_ns < until_ns ? below->to_ns : until_ns;
        w->meet(w, w->at_ns, to, top.row, below ? below->row : SV_NO_ROW);
        w->at_ns = to;
    }
}

/* Leaves the slices that end by `until`, innermost first. */
static void leave(struct walk *w, int64_t until_ns)
{
    while (w->depth && w->at_ns < until_ns) {
        const struct open o = w->open[w->depth - 1];
        int64_t to = o.to_ns < until_ns ? o.to_ns : until_ns;
        if (to > w->at_ns && w->markers && sv_map_find(w->markers, o.row)) {
            meet_marker(w, to);
        } else if (to > w->at_ns) {
            w->meet(w, w->at_ns, to, o.row, SV_NO_ROW);
            w->at_ns = to;
        }
        if (o.to_ns > until_ns)
            return;
        w->depth--;
    }
    w->at_ns = w->at_ns > until_ns ? w->at_ns : until_ns;
}

static void walk_track(struct walk *w, const struct sv_trace *t, sv_track track)
{
    const struct sv_slices *c = &t->slices;
    w->depth = 0;
    w->at_ns = INT64_MIN;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
        if (c->kind[row] != SV_SLICE)
            continue;
        leave(w, c->ts_ns[row]);
        while (w->depth && w->open[w->depth - 1].to_ns <= w->at_ns)
            w->depth--;
        w->open = sv_grow(w->open, &w->cap, w->depth + 1, sizeof *w->open);
        w->open[w->depth++] = (struct open){sv_trace_end_ns(t, row), row};
    }
    leave(w, INT64_MAX);
}

/* ---- a process: its threads and devices ---- */

struct process {
    struct sv_work_line line;                 /* layers 2 to 4 */
    struct sv_spans device_sets[SV_N_DEVICE]; /* when at least one such piece of work was running */
    sv_track busiest;                         /* of its threads, the one with most slices */
};

/* A track of a process, and which one in its order. */
struct member {
    sv_track owner, track;
};

struct division {
    struct sv_step_kinds kinds;
    struct member *members; /* by owner, then track */
    size_t n_members;
    bool *is_set_apart; /* by track: it holds markers and nothing below them */
    struct process now;
    struct sv_thread_states states;
    uint32_t own; /* the thread whose steps are divided; SV_NO_THREAD: its states are not known */
    /* The track that is being walked. */
    bool is_device;
    uint32_t order;
};

static int by_owner(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->owner != y->owner)
        return x->owner < y->owner ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

static void find_members(struct division *d)
{
    const struct sv_trace *t = d->kinds.t;
    d->members = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d->members);
    for (sv_track k = 1; k < t->n_tracks; k++)
        if (d->kinds.owner[k] && t->tracks[k].first < t->tracks[k].end)
            d->members[d->n_members++] = (struct member){d->kinds.owner[k], k};
    if (d->n_members)
        qsort(d->members, d->n_members, sizeof *d->members, by_owner);
}

static size_t first_member(const struct division *d, sv_track owner)
{
    size_t low;
    SV_SEARCH(low, middle, 0, d->n_members, d->members[middle].owner < owner);
    return low;
}

/* -1: in no layer. */
static int layer_of(bool is_device, uint8_t kind)
{
    unsigned bit = KIND(kind);
    if (is_device)
        return kind == SV_WORK_WAIT ? -1 : kind == SV_WORK_COMM ? 2 : kind == SV_WORK_COPY ? 3 : 1;
    return bit & (COMPUTE | KIND(SV_WORK_COPY) | KIND(SV_WORK_COMM)) ? 0 : bit & SUPPLY ? 4 : -1;
}

static void meet_member(struct walk *w, int64_t from_ns, int64_t to_ns, uint32_t row,
                        uint32_t below)
{
    enum { TRACKS = 1u << 28 };
    struct division *d = w->ctx;
    (void)below;
    uint8_t kind = d->kinds.by_row[row];
    int layer = layer_of(d->is_device, kind);
    if (layer < 0)
        return;
    uint32_t order = d->order < TRACKS ? d->order : TRACKS - 1;
    sv_work_line_add(&d->now.line, from_ns, to_ns, kind_or_other(kind),
                     (uint32_t)layer * TRACKS + order);
    if (d->is_device) {
        int set = layer == 2 ? SV_DEVICE_COMM : layer == 3 ? SV_DEVICE_COPY : SV_DEVICE_KERNEL;
        struct sv_span x = {.from_ns = from_ns, .to_ns = to_ns, .row = row, .last = row};
        sv_spans_append(&d->now.device_sets[set], &(struct sv_spans){.items = &x, .n = 1});
    }
}

static uint32_t length_of(const struct sv_trace *t, sv_track k)
{
    return t->tracks[k].end - t->tracks[k].first;
}

static void enter_process(struct division *d, sv_track process)
{
    const struct sv_trace *t = d->kinds.t;
    struct walk w = {.meet = meet_member, .ctx = d};
    d->order = 0;
    for (size_t i = first_member(d, process);
         process && i < d->n_members && d->members[i].owner == process; i++) {
        sv_track k = d->members[i].track;
        d->is_device = d->kinds.is_device[k];
        if (d->is_set_apart[k] && !d->is_device)
            continue;
        walk_track(&w, t, k);
        d->order++;
    }
    free(w.open);
    sv_work_line_settle(&d->now.line);
    for (int k = 0; k < SV_N_DEVICE; k++)
        sv_spans_settle(&d->now.device_sets[k]);
}

static void leave_process(struct division *d)
{
    sv_work_line_fini(&d->now.line);
    for (int k = 0; k < SV_N_DEVICE; k++)
        sv_spans_fini(&d->now.device_sets[k]);
}

/* ---- a thread that has steps ---- */

/* A piece of the thread's time: until the next one begins, its innermost slice is of this kind;
 * SV_WORK_WAIT: it does nothing. */
struct piece {
    int64_t from_ns;
    uint8_t kind;
    int64_t before[SV_N_WORK]; /* the work since the first piece began */
};

struct thread {
    struct division *d;
    struct piece *pieces;
    size_t n, cap;
    int64_t from_ns;       /* nothing before it is asked for */
    struct sv_map *by_row; /* marker → its step and 1 */
    struct sv_steps *steps;
};

/* What the other threads and the devices do; `rest`: what it is where they do nothing. */
static void add_others(const struct division *d, int64_t from_ns, int64_t to_ns, int rest,
                       int64_t sums[SV_N_WORK])
{
    int64_t others[SV_N_WORK] = {0}, left = sv_sat_sub(to_ns, from_ns);
    sv_work_line_sum(&d->now.line, from_ns, to_ns, others);
    for (int k = 0; k < SV_N_WORK; k++) {
        sums[k] += others[k];
        left -= others[k];
    }
    sums[rest] += left;
}

/* The same where the states of the own thread are recorded: running without a slice is work without
 * a name, reading a file is data, and only waiting is idle. */
static void add_states(const struct division *d, int64_t from_ns, int64_t to_ns,
                       int64_t sums[SV_N_WORK])
{
    struct sv_state_cursor c = sv_state_window(&d->states, d->own, from_ns, to_ns);
    for (struct sv_state_piece p; sv_state_next(&c, &p);) {
        bool is_run = p.state == SV_WAIT_STATE_RUNNING;
        bool is_data = p.reason == SV_WAIT_FOR_FAULT ||
                       (p.call != SV_NO_ROW && sv_state_reads_file(&d->states, p.call));
        add_others(d, p.from_ns, p.to_ns,
                   is_data  ? SV_WORK_DATA
                   : is_run ? SV_WORK_OTHER
                            : SV_WORK_IDLE,
                   sums);
    }
}

/* What counts in a stretch in which the own thread's innermost slice is of this kind. */
static void add_work(const struct division *d, uint8_t kind, int64_t from_ns, int64_t to_ns,
                     int64_t sums[SV_N_WORK])
{
    if (kind != SV_WORK_WAIT) {
        int64_t *sum = &sums[kind_or_other(kind)];
        *sum = sv_sat_add(*sum, sv_sat_sub(to_ns, from_ns));
        return;
    }
    if (d->own != SV_NO_THREAD) {
        add_states(d, from_ns, to_ns, sums);
        return;
    }
    add_others(d, from_ns, to_ns, SV_WORK_IDLE, sums);
}

static void add_piece(struct thread *x, int64_t from_ns, uint8_t kind)
{
    struct piece p = {.from_ns = from_ns, .kind = kind};
    if (x->n) {
        const struct piece *last = &x->pieces[x->n - 1];
        memcpy(p.before, last->before, sizeof p.before);
        add_work(x->d, last->kind, last->from_ns, from_ns, p.before);
    }
    x->pieces = sv_grow(x->pieces, &x->cap, x->n + 1, sizeof *x->pieces);
    x->pieces[x->n++] = p;
}

/* In its own step a marker is nothing: what is below it counts, or what others do. */
static void correct_own(struct thread *x, struct sv_step *s, int64_t from_ns, int64_t to_ns,
                        uint32_t below)
{
    const uint8_t *kinds = x->d->kinds.by_row;
    int64_t as_was[SV_N_WORK] = {0};
    add_work(x->d, kinds[s->row], from_ns, to_ns, as_was);
    for (int k = 0; k < SV_N_WORK; k++)
        s->work_ns[k] -= as_was[k];
    add_work(x->d, below != SV_NO_ROW ? kinds[below] : (uint8_t)SV_WORK_WAIT, from_ns, to_ns,
             s->work_ns);
}

static void meet_own(struct walk *w, int64_t from_ns, int64_t to_ns, uint32_t row, uint32_t below)
{
    struct thread *x = w->ctx;
    const struct sv_step_kinds *kinds = &x->d->kinds;
    int64_t until = x->pieces[x->n - 1].from_ns; /* of the gap that may lie before */
    if (to_ns <= x->from_ns)
        return;
    from_ns = from_ns > x->from_ns ? from_ns : x->from_ns;
    if (from_ns == until)
        x->n--; /* no gap; its sums are those of the piece that takes its place */
    add_piece(x, from_ns, kinds->by_row[row]);
    add_piece(x, to_ns, SV_WORK_WAIT);
    const uint64_t *step = sv_map_find(x->by_row, row);
    if (step)
        correct_own(x, &x->steps->steps[*step - 1], from_ns, to_ns, below);
}

/* Adds (sign 1) or takes away (-1) the work before ts_ns. */
static void add_before(const struct thread *x, int64_t ts_ns, int64_t sign, int64_t sums[SV_N_WORK])
{
    /* the first piece that begins at or after ts_ns */
    size_t low;
    SV_SEARCH(low, middle, 1, x->n, x->pieces[middle].from_ns < ts_ns);
    const struct piece *p = &x->pieces[low - 1];
    int64_t work[SV_N_WORK];
    memcpy(work, p->before, sizeof work);
    if (ts_ns > p->from_ns)
        add_work(x->d, p->kind, p->from_ns, ts_ns, work);
    for (int k = 0; k < SV_N_WORK; k++)
        sums[k] += sign * work[k];
}

static void divide(const struct thread *x, struct sv_step *s)
{
    int64_t end = s->ts_ns + s->dur_ns;
    add_before(x, end, 1, s->work_ns);
    add_before(x, s->ts_ns, -1, s->work_ns);
    for (int k = 0; k < SV_N_DEVICE; k++)
        s->device_ns[k] = sv_spans_within(&x->d->now.device_sets[k], s->ts_ns, end);
}

/* ---- who with whom ---- */

/* A step, the process that it is of, and the thread whose time it takes. */
struct todo {
    sv_track process, own;
    size_t step;
};

static int by_process(const void *a, const void *b)
{
    const struct todo *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->own != y->own)
        return x->own < y->own ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* The thread of each process with most slices. */
static sv_track *find_busiest(const struct division *d)
{
    const struct sv_trace *t = d->kinds.t;
    sv_track *busiest = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *busiest);
    for (sv_track k = 1; k < t->n_tracks; k++) {
        if (t->dict->tracks[k].kind != SV_TRACK_THREAD)
            continue;
        sv_track *best = &busiest[sv_dict_process_of(t->dict, k)];
        if (!*best || length_of(t, k) > length_of(t, *best))
            *best = k;
    }
    return busiest;
}

/* A marker on a track of its own has nothing below it: then the thread of the process with most
 * slices is looked at. */
static struct todo *plan(struct division *d, const struct sv_steps *s)
{
    const struct sv_trace *t = d->kinds.t;
    struct todo *all = sv_alloc((s->n + 1) * sizeof *all);
    sv_track *busiest = find_busiest(d);
    for (size_t i = 0; i < s->n; i++) {
        sv_track marker = s->steps[i].track, process = sv_dict_process_of(t->dict, marker);
        sv_track best = process ? busiest[process] : 0;
        bool is_alone = best && t->tracks[marker].depth_max == 0 &&
                        length_of(t, best) > length_of(t, marker);
        all[i] = (struct todo){process, is_alone ? best : marker, i};
        d->is_set_apart[marker] |= is_alone;
    }
    if (s->n)
        qsort(all, s->n, sizeof *all, by_process);
    free(busiest);
    return all;
}

/* The steps todo[0 … n) of one thread. */
static void divide_thread(struct division *d, struct sv_steps *s, const struct todo *todo, size_t n,
                          struct sv_map *by_row)
{
    struct thread x = {.d = d, .by_row = by_row, .steps = s, .from_ns = INT64_MAX};
    d->own = sv_thread_of(&d->states, todo[0].own);
    if (d->own != SV_NO_THREAD && !d->states.threads[d->own].state)
        d->own = SV_NO_THREAD;
    struct walk w = {.meet = meet_own, .ctx = &x, .markers = by_row};
    for (size_t i = 0; i < n; i++)
        if (s->steps[todo[i].step].ts_ns < x.from_ns)
            x.from_ns = s->steps[todo[i].step].ts_ns;
    add_piece(&x, x.from_ns, SV_WORK_WAIT);
    walk_track(&w, d->kinds.t, todo[0].own);
    for (size_t i = 0; i < n; i++)
        divide(&x, &s->steps[todo[i].step]);
    free(w.open);
    free(x.pieces);
}

void sv_steps_divide(struct sv_steps *s, const struct sv_trace *t)
{
    struct division d = {.is_set_apart = sv_alloc((size_t)t->n_tracks + 1)};
    struct sv_map by_row = {0};
    sv_step_kinds_init(&d.kinds, s, t);
    sv_thread_states_init(&d.states, t);
    find_members(&d);
    struct todo *all = plan(&d, s);
    for (size_t i = 0; i < s->n; i++) {
        memset(s->steps[i].work_ns, 0, sizeof s->steps[i].work_ns);
        memset(s->steps[i].device_ns, 0, sizeof s->steps[i].device_ns);
        if (!s->has_no_markers)
            *sv_map_add(&by_row, s->steps[i].row, NULL) = i + 1;
    }
    for (size_t i = 0, end; i < s->n; i = end) {
        if (i == 0 || all[i].process != all[i - 1].process) {
            leave_process(&d);
            enter_process(&d, all[i].process);
        }
        for (end = i + 1;
             end < s->n && all[end].process == all[i].process && all[end].own == all[i].own;
             end++) {}
        divide_thread(&d, s, all + i, end - i, &by_row);
    }
    leave_process(&d);
    sv_step_kinds_fini(&d.kinds);
    sv_thread_states_fini(&d.states);
    sv_map_fini(&by_row);
    free(d.members);
    free(d.is_set_apart);
    free(all);
    if (s->n_tracks > 1)
        sv_steps_judge_stragglers(s);
}

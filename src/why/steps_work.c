/* The division of steps: every nanosecond of a step goes to one kind of work.
 *
 * Called after detection, once per trace. The ledger (why/ledger.h) has the pieces of each step.
 * What it calls data, communication or a copy is that. Other pieces are what the innermost slice of
 * the step's own thread is, by its name. Where no name says so, the piece belongs to the first of
 * these that did something meanwhile:
 *
 *   1  other threads of the process, as far as they compute, communicate or copy: backward on the
 *      autograd thread
 *   2  devices: compute first, then communication, then copies
 *   3  other threads that write checkpoints
 *
 * What is left is running without a name (other), files (disk), waiting (idle), or not traced.
 * What the threads and devices of a process do (1 to 3) becomes one line of time, so that a piece
 * is the difference of two sums. */
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "why/ledger.h"
#include "why/open_slices.h"
#include "why/spans.h"
#include "why/step_kinds.h"
#include "why/work_line.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KIND(work) (1u << (work))
enum { COMPUTE = KIND(SV_WORK_FORWARD) | KIND(SV_WORK_BACKWARD) | KIND(SV_WORK_OPTIMIZER) };

/* Of a device: what it does while a step waits for data is the ledger's to say. */
static uint8_t kind_or_other(uint8_t kind)
{
    return kind < SV_N_WORK && kind != SV_WORK_DATA ? kind : SV_WORK_OTHER;
}

/* ---- the innermost slices of a track ---- */

struct open {
    int64_t to_ns;
    uint32_t row;
};

struct walk {
    void (*meet)(struct walk *w, int64_t from_ns, int64_t to_ns, uint32_t row);
    void *ctx;
    struct open *open;
    size_t depth, cap;
    int64_t at_ns;
};

/* Leaves the slices that end by `until`, innermost first. */
static void leave(struct walk *w, int64_t until_ns)
{
    while (w->depth && w->at_ns < until_ns) {
        const struct open o = w->open[w->depth - 1];
        int64_t to = o.to_ns < until_ns ? o.to_ns : until_ns;
        if (to > w->at_ns) {
            w->meet(w, w->at_ns, to, o.row);
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
    struct sv_ledger ledger; /* its units are the steps */
    struct sv_open_slices open;
    bool has_markers;
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
    return bit & (COMPUTE | KIND(SV_WORK_COPY) | KIND(SV_WORK_COMM)) ? 0
           : kind == SV_WORK_CHECKPOINT                              ? 4
                                                                     : -1;
}

static void meet_member(struct walk *w, int64_t from_ns, int64_t to_ns, uint32_t row)
{
    enum { TRACKS = 1u << 28 };
    struct division *d = w->ctx;
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

/* ---- a step ---- */

/* What the other threads and the devices do; `rest`: what it is where they do nothing. */
static void add_others(const struct division *d, const struct sv_why_piece *p, int rest,
                       int64_t sums[SV_N_WORK])
{
    int64_t left = p->dur_ns, others[SV_N_WORK] = {0};
    sv_work_line_sum(&d->now.line, p->ts_ns, p->ts_ns + p->dur_ns, others);
    for (int k = 0; k < SV_N_WORK; k++) {
        sums[k] += others[k];
        left -= others[k];
    }
    sums[rest] += left;
}

/* The slice that the unit's own thread was in; SV_NO_ROW: none but the marker. */
static uint32_t slice_of(struct division *d, const struct sv_why_unit *u,
                         const struct sv_why_piece *p)
{
    const struct sv_thread_states *s = &d->ledger.states;
    const struct sv_slices *c = &d->kinds.t->slices;
    sv_track track = u->thread != SV_NO_THREAD ? s->threads[u->thread].track : u->track;
    uint32_t row = sv_open_slice(&d->open, track, p->ts_ns + p->dur_ns).row;
    while (row != SV_NO_ROW && sv_state_is_row(s, row))
        row = c->parent[row];
    return d->has_markers && row == u->row ? SV_NO_ROW : row;
}

/* What a piece is where nothing names it and the others of the process do nothing. */
static int rest_of(const struct sv_why_piece *p, bool has_slice)
{
    switch (p->class) {
    case SV_WHY_COMPUTE: return SV_WORK_OTHER;
    case SV_WHY_DISK:
    case SV_WHY_PAGE: return SV_WORK_DISK;
    case SV_WHY_UNKNOWN:
        return has_slice ? SV_WORK_OTHER : p->state != SV_NO_ROW ? SV_WORK_IDLE : SV_WORK_UNTRACED;
    default: return SV_WORK_IDLE;
    }
}

/* The ledger says what is data, communication and copies; names say the rest. */
static void add_piece(struct division *d, const struct sv_why_unit *u, const struct sv_why_piece *p,
                      int64_t sums[SV_N_WORK])
{
    static const uint8_t said[SV_N_WHY_CLASSES] = {
        [SV_WHY_DATA] = SV_WORK_DATA, [SV_WHY_COMM] = SV_WORK_COMM, [SV_WHY_COPY] = SV_WORK_COPY};
    if (said[p->class]) {
        sums[said[p->class]] += p->dur_ns;
        return;
    }
    uint32_t slice = slice_of(d, u, p);
    uint8_t kind = slice != SV_NO_ROW ? d->kinds.by_row[slice] : SV_WORK_UNKNOWN;
    bool is_named = kind < SV_N_WORK && kind != SV_WORK_DATA;
    if (is_named || (slice != SV_NO_ROW && p->class == SV_WHY_COMPUTE))
        sums[is_named ? kind : SV_WORK_OTHER] += p->dur_ns;
    else
        add_others(d, p, rest_of(p, slice != SV_NO_ROW), sums);
}

static void divide_step(struct division *d, struct sv_step *s, const struct sv_why_unit *u)
{
    int64_t end = sv_sat_add(s->ts_ns, s->dur_ns);
    for (size_t i = u->first; i < u->end; i++)
        add_piece(d, u, &d->ledger.pieces[i], s->work_ns);
    for (int k = 0; k < SV_N_DEVICE; k++)
        s->device_ns[k] = sv_spans_within(&d->now.device_sets[k], s->ts_ns, end);
}

/* ---- who with whom ---- */

/* A step, and the process that it is of. */
struct todo {
    sv_track process;
    size_t step;
};

static int by_process(const void *a, const void *b)
{
    const struct todo *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

/* A track that holds markers, while another thread does the work, is not looked at for itself. */
static struct todo *plan(struct division *d, const struct sv_steps *s)
{
    const struct sv_trace *t = d->kinds.t;
    struct todo *all = sv_alloc((s->n + 1) * sizeof *all);
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_step *x = &s->steps[i];
        const struct sv_why_unit *u = &d->ledger.units[i];
        all[i] = (struct todo){sv_dict_process_of(t->dict, x->track), i};
        d->is_set_apart[x->track] |= u->thread != SV_NO_THREAD &&
                                     u->thread != sv_thread_of(&d->ledger.states, x->track);
    }
    if (s->n)
        qsort(all, s->n, sizeof *all, by_process);
    return all;
}

void sv_steps_divide(struct sv_steps *s, const struct sv_trace *t)
{
    struct division d = {.is_set_apart = sv_alloc((size_t)t->n_tracks + 1),
                         .has_markers = !s->has_no_markers};
    sv_step_kinds_init(&d.kinds, s, t);
    sv_ledger_make(&d.ledger, t, &(struct sv_ledger_options){.step = -1, .steps = s});
    assert(d.ledger.n_units == s->n);
    sv_open_slices_init(&d.open, t);
    find_members(&d);
    struct todo *all = plan(&d, s);
    for (size_t i = 0; i < s->n; i++) {
        struct sv_step *x = &s->steps[all[i].step];
        memset(x->work_ns, 0, sizeof x->work_ns);
        if (i == 0 || all[i].process != all[i - 1].process) {
            leave_process(&d);
            enter_process(&d, all[i].process);
        }
        divide_step(&d, x, &d.ledger.units[all[i].step]);
    }
    leave_process(&d);
    sv_open_slices_fini(&d.open);
    sv_ledger_fini(&d.ledger);
    sv_step_kinds_fini(&d.kinds);
    free(d.members);
    free(d.is_set_apart);
    free(all);
    if (s->n_tracks > 1)
        sv_steps_judge_stragglers(s);
}

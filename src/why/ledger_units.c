/* The units of a ledger: steps, epochs, phases, or threads. Called by why/ledger.c. */
#include "why/ledger.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "store/ranks.h"
#include "why/steps.h"

#include <stdlib.h>
#include <string.h>

struct finder {
    struct sv_ledger *l;
    size_t cap;
    uint32_t first_thread;
    uint32_t *busiest; /* by track of a process: number + 1 of the thread with most slices */
};

static void add_unit(struct finder *f, struct sv_why_unit u)
{
    struct sv_ledger *l = f->l;
    /* Two markers of one moment are two steps; others of no length have nothing to explain. */
    if (u.dur_ns <= 0 && u.kind != SV_UNIT_IS_STEP)
        return;
    u.dur_ns = u.dur_ns > 0 ? u.dur_ns : 0;
    if (u.kind != SV_UNIT_IS_REQUEST && u.kind != SV_UNIT_IS_TURN && u.kind != SV_UNIT_IS_WINDOW) {
        u.run_ns = u.ts_ns;
        u.done_ns = u.ts_ns + u.dur_ns;
    }
    l->units = sv_grow(l->units, &f->cap, l->n_units + 1, sizeof *l->units);
    l->units[l->n_units++] = u;
}

static uint32_t n_rows(const struct sv_ledger *l, uint32_t thread)
{
    const struct sv_trace_track *k = &l->trace->tracks[l->states.threads[thread].track];
    return k->end - k->first;
}

static uint32_t *find_busiest(const struct sv_ledger *l)
{
    uint32_t *busiest = sv_alloc(((size_t)l->trace->dict->n_tracks + 1) * sizeof *busiest);
    for (uint32_t i = 0; i < l->states.n; i++) {
        uint32_t *best = &busiest[l->states.threads[i].process];
        if (!*best || n_rows(l, i) > n_rows(l, *best - 1))
            *best = i + 1;
    }
    return busiest;
}

/* A thread that has nothing but markers: of its process the one with most slices. */
static uint32_t who_works(const struct finder *f, uint32_t thread)
{
    const struct sv_ledger *l = f->l;
    const struct sv_thread_rows *x = &l->states.threads[thread];
    uint32_t best = f->busiest[x->process] - 1;
    bool is_alone = !x->state && !x->calls && l->trace->tracks[x->track].depth_max == 0;
    return is_alone && n_rows(l, best) > n_rows(l, thread) ? best : thread;
}

/* The thread whose time a marker's is: its own, or where it has a track of its own the main thread
 * of the process. */
static uint32_t thread_of_marker(const struct finder *f, sv_track track)
{
    const struct sv_thread_states *s = &f->l->states;
    uint32_t thread = sv_thread_of(s, track);
    if (thread != SV_NO_THREAD)
        return who_works(f, thread);
    sv_track process = sv_dict_process_of(f->l->trace->dict, track);
    return process ? sv_thread_main(s, process) : f->first_thread;
}

/* What a phase of no process is of: the first process that nobody of the trace started. */
static uint32_t first_thread(const struct sv_ledger *l)
{
    const struct sv_thread_states *s = &l->states;
    for (uint32_t i = 0; i < s->n; i++)
        if (!l->workers.parent[s->threads[i].process])
            return sv_thread_main(s, s->threads[i].process);
    return SV_NO_THREAD;
}

static void add_steps(struct finder *f, const struct sv_steps *s, int64_t only, bool has_between)
{
    sv_track track = 0;
    uint32_t thread = SV_NO_THREAD;
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_step *x = &s->steps[i], *before = i ? &s->steps[i - 1] : NULL;
        if (x->track != track) {
            track = x->track;
            thread = thread_of_marker(f, track);
            before = NULL;
        }
        if (only >= 0 && x->number != only)
            continue;
        int64_t end = before ? before->ts_ns + before->dur_ns : x->ts_ns;
        struct sv_why_unit u = {.kind = SV_UNIT_IS_BETWEEN,
                                .number = x->number,
                                .row = x->row,
                                .thread = thread,
                                .track = x->track,
                                .ts_ns = end,
                                .dur_ns = sv_sat_sub(x->ts_ns, end)};
        if (has_between)
            add_unit(f, u);
        u.kind = SV_UNIT_IS_STEP;
        u.ts_ns = x->ts_ns;
        u.dur_ns = x->dur_ns;
        add_unit(f, u);
    }
}

/* Slices whose name is that of an epoch, or of category phase, unless they are the steps. */
static void add_phases(struct finder *f, const struct sv_steps *steps)
{
    const struct sv_trace *t = f->l->trace;
    sv_str phase = sv_dict_find_str(t->dict, "phase", 5);
    bool *is_epoch = sv_alloc((size_t)t->dict->n_strings + 1), is_any = phase != 0;
    bool are_steps = steps->n && steps->marker && strstr(steps->marker, "poch");
    for (sv_str s = 1; s < t->dict->n_strings && !are_steps; s++) {
        struct sv_text text = sv_dict_text(t->dict, s);
        is_any |= is_epoch[s] = sv_glob_match("[Ee]poch*", text.bytes, text.len);
    }
    sv_track track = 0;
    uint32_t thread = SV_NO_THREAD;
    for (uint64_t row = 0; is_any && row < t->slices.n; row++) {
        sv_str name = t->slices.name[row];
        bool is_phase = phase && t->slices.cat[row] == phase;
        if (t->slices.kind[row] != SV_SLICE || (!is_phase && !is_epoch[name]))
            continue;
        if (t->slices.track[row] != track) {
            track = t->slices.track[row];
            thread = thread_of_marker(f, track);
        }
        add_unit(f, (struct sv_why_unit){
                        .kind = is_epoch[name] ? SV_UNIT_IS_EPOCH : SV_UNIT_IS_PHASE,
                        .number = -1,
                        .row = (uint32_t)row,
                        .thread = thread,
                        .ts_ns = t->slices.ts_ns[row],
                        .dur_ns = sv_sat_sub(sv_trace_end_ns(t, row), t->slices.ts_ns[row])});
    }
    free(is_epoch);
}

static bool is_loader(const struct sv_ledger *l, uint32_t thread)
{
    sv_track process = l->states.threads[thread].process, parent = l->workers.parent[process];
    return parent && sv_is_data_worker(&l->workers, parent, process);
}

static bool is_main(const struct sv_ledger *l, uint32_t thread)
{
    const struct sv_track_info *info = &l->trace->dict->tracks[l->states.threads[thread].track];
    return info->tid == info->pid;
}

/* Main threads of data workers, or all threads of the others. */
static void add_threads(struct finder *f, enum sv_unit_kind kind)
{
    enum { LOADERS_MAX = 1024 };
    const struct sv_thread_states *s = &f->l->states;
    bool are_loaders = kind == SV_UNIT_IS_LOADER;
    size_t n = 0, most = are_loaders ? LOADERS_MAX : SIZE_MAX;
    for (uint32_t i = 0; i < s->n && n < most; i++) {
        if (is_loader(f->l, i) != are_loaders || (are_loaders && !is_main(f->l, i)))
            continue;
        n++;
        add_unit(f, (struct sv_why_unit){
                        .kind = kind,
                        .number = -1,
                        .row = SV_NO_ROW,
                        .thread = i,
                        .ts_ns = s->threads[i].from_ns,
                        .dur_ns = sv_sat_sub(s->threads[i].to_ns, s->threads[i].from_ns)});
    }
}

void sv_units_find(struct sv_ledger *l, const struct sv_steps *steps,
                   const struct sv_ledger_options *o)
{
    struct finder f = {.l = l, .first_thread = first_thread(l), .busiest = find_busiest(l)};
    for (size_t i = 0; i < o->n_given; i++) {
        const struct sv_given_unit *g = &o->given[i];
        add_unit(&f, (struct sv_why_unit){.kind = o->given_kind,
                                          .number = g->number,
                                          .row = SV_NO_ROW,
                                          .thread = g->track ? sv_thread_of(&l->states, g->track)
                                                             : g->thread,
                                          .track = g->track,
                                          .ts_ns = g->from_ns,
                                          .dur_ns = sv_sat_sub(g->to_ns, g->from_ns),
                                          .left_ns = g->left_ns,
                                          .run_ns = g->run_ns,
                                          .done_ns = g->done_ns,
                                          .busy = g->busy});
    }
    if (o->steps) {
        add_steps(&f, steps, -1, false);
    } else if (!o->n_given) {
        add_steps(&f, steps, o->step, true);
        if (o->step < 0)
            add_phases(&f, steps);
        if (!l->n_units && o->step < 0)
            add_threads(&f, SV_UNIT_IS_THREAD);
    }
    if (o->with_loaders && o->step < 0)
        add_threads(&f, SV_UNIT_IS_LOADER);
    free(f.busiest);
}

/* ---- what counts ---- */

/* Of the main threads of processes that `parent` started (0: nobody of the trace) the one that is
 * there longest; SIZE_MAX: none. */
static size_t longest_child(const struct sv_ledger *l, sv_track parent)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        if (u->kind == SV_UNIT_IS_THREAD &&
            l->workers.parent[l->states.threads[u->thread].process] == parent &&
            is_main(l, u->thread) && (best == SIZE_MAX || u->dur_ns > l->units[best].dur_ns))
            best = i;
    }
    return best;
}

static size_t longest_thread(const struct sv_ledger *l)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < l->n_units; i++)
        if (best == SIZE_MAX || l->units[i].dur_ns > l->units[best].dur_ns)
            best = i;
    return best;
}

static int64_t rank_of(const struct sv_ledger *l, const struct sv_why_unit *u)
{
    return sv_rank_of_track(l->trace, l->states.threads[u->thread].process);
}

/* Of the main threads of ranks the one that runs for the smallest part of its time: others may spin
 * while they wait for it. SIZE_MAX: there are no ranks. */
static size_t idlest_rank(const struct sv_ledger *l)
{
    size_t best = SIZE_MAX;
    double least = 0;
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        if (u->kind != SV_UNIT_IS_THREAD || u->dur_ns <= 0 || !is_main(l, u->thread) ||
            rank_of(l, u) < 0)
            continue;
        double runs = (double)u->class_ns[SV_WHY_COMPUTE] / (double)u->dur_ns;
        if (best == SIZE_MAX || runs < least) {
            best = i;
            least = runs;
        }
    }
    return best;
}

/* The thread that stands for a run without units: the main thread of the first process, unless that
 * does little but wait for one child, as a launcher does; then the child's. A script that waits for
 * one child after the other stands for itself, one that has started ranks does not. SIZE_MAX:
 * none. */
static size_t leading_thread(const struct sv_ledger *l)
{
    enum { DEPTH_MAX = 32 };
    size_t at = longest_child(l, 0), rank = idlest_rank(l);
    if (rank != SIZE_MAX && at != SIZE_MAX && rank_of(l, &l->units[at]) < 0)
        return rank;
    for (int depth = 0; at != SIZE_MAX && depth < DEPTH_MAX; depth++) {
        const struct sv_why_unit *u = &l->units[at];
        if (u->class_ns[SV_WHY_CHILD] < u->dur_ns / 10 * 8)
            return at;
        size_t next = longest_child(l, l->states.threads[u->thread].process);
        if (next == SIZE_MAX || l->units[next].dur_ns < u->dur_ns / 10 * 7)
            return at;
        at = next;
    }
    return at != SIZE_MAX ? at : longest_thread(l);
}

static int by_dur(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sums up the units that count. */
static void sum_units(struct sv_ledger *l)
{
    int64_t *durs = sv_alloc((l->n_units + 1) * sizeof *durs);
    l->dur_ns = 0;
    l->n_counted = 0;
    memset(l->class_ns, 0, sizeof l->class_ns);
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        if (!u->counts)
            continue;
        l->dur_ns = sv_sat_add(l->dur_ns, u->dur_ns);
        if (u->kind == l->kind)
            durs[l->n_counted++] = u->dur_ns;
        for (int k = 0; k < SV_N_WHY_CLASSES; k++)
            l->class_ns[k] = sv_sat_add(l->class_ns[k], u->class_ns[k]);
    }
    if (l->n_counted > 1)
        qsort(durs, l->n_counted, sizeof *durs, by_dur);
    l->median_ns = l->n_counted ? (double)durs[l->n_counted / 2] : 0;
    free(durs);
}

void sv_units_count(struct sv_ledger *l)
{
    bool has[SV_N_UNIT_KINDS] = {0};
    for (size_t i = 0; i < l->n_units; i++)
        has[l->units[i].kind] = true;
    l->kind = has[SV_UNIT_IS_REQUEST]  ? SV_UNIT_IS_REQUEST
              : has[SV_UNIT_IS_TURN]   ? SV_UNIT_IS_TURN
              : has[SV_UNIT_IS_WINDOW] ? SV_UNIT_IS_WINDOW
              : has[SV_UNIT_IS_STEP]   ? SV_UNIT_IS_STEP
              : has[SV_UNIT_IS_EPOCH]  ? SV_UNIT_IS_EPOCH
              : has[SV_UNIT_IS_PHASE]  ? SV_UNIT_IS_PHASE
                                       : SV_UNIT_IS_THREAD;
    size_t one = l->kind == SV_UNIT_IS_THREAD ? leading_thread(l) : SIZE_MAX;
    for (size_t i = 0; i < l->n_units; i++) {
        struct sv_why_unit *u = &l->units[i];
        u->counts =
            (u->kind == l->kind || (l->kind == SV_UNIT_IS_STEP && u->kind == SV_UNIT_IS_BETWEEN)) &&
            (one == SIZE_MAX || i == one);
    }
    sum_units(l);
}

/* ---- units of other kinds ---- */

/* The times of units that count, of all threads. */
static void counted_spans(const struct sv_ledger *l, struct sv_spans *s)
{
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        if (u->counts)
            sv_spans_append(
                s, &(struct sv_spans){.items = &(struct sv_span){.from_ns = u->ts_ns,
                                                                 .to_ns = u->ts_ns + u->dur_ns},
                                      .n = 1});
    }
    sv_spans_settle(s);
}

bool sv_units_count_others(struct sv_ledger *l, int64_t least_ns)
{
    struct sv_spans counted = {0};
    int64_t ns[SV_N_UNIT_KINDS] = {0};
    bool *is_other = sv_alloc((l->n_units + 1) * sizeof *is_other);
    unsigned best = SV_UNIT_IS_EPOCH;
    counted_spans(l, &counted);
    for (size_t i = 0; i < l->n_units && l->kind == SV_UNIT_IS_STEP; i++) {
        const struct sv_why_unit *u = &l->units[i];
        is_other[i] = (u->kind == SV_UNIT_IS_EPOCH || u->kind == SV_UNIT_IS_PHASE) &&
                      sv_spans_within(&counted, u->ts_ns, u->ts_ns + u->dur_ns) < u->dur_ns / 2;
        ns[u->kind] = sv_sat_add(ns[u->kind], is_other[i] ? u->dur_ns : 0);
    }
    best = ns[SV_UNIT_IS_PHASE] > ns[best] ? SV_UNIT_IS_PHASE : best;
    bool has = ns[best] > least_ns;
    for (size_t i = 0; i < l->n_units && has; i++)
        l->units[i].counts = is_other[i] && l->units[i].kind == best;
    if (has) {
        l->kind = best;
        sum_units(l);
    }
    sv_spans_fini(&counted);
    free(is_other);
    return has;
}

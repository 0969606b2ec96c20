/* The report on waits: finds the spans, divides the time of their threads, keeps the longest waits.
 * Called by the commands report and explain.
 *
 * A span walks over the states of its thread once, and over its slices by a search per change:
 * linear in what lies within the span. Only the longest waits are looked into further
 * (why/wait_chain.c). */
#include "why/wait.h"

#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "why/open_slices.h"
#include "why/step_kinds.h"
#include "why/steps.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_wait_class_names[SV_N_WAIT_CLASSES] = {
#define NAME(member, text) text,
    SV_WAIT_CLASSES(NAME)
#undef NAME
};
const char *const sv_wait_span_names[] = {"step",  "between steps", "epoch",
                                          "phase", "thread",        "loader"};

enum { LOADERS_MAX = 1024 };

struct maker {
    struct sv_wait_report *r;
    struct sv_steps steps;
    struct sv_step_kinds kinds;
    struct sv_open_slices open;
    sv_str cat_state, cat_call, cat_runtime;
    size_t cap, keep;
    uint32_t first_thread;     /* of the first process; SV_NO_THREAD: none */
    struct sv_wait_span *span; /* the one that is divided */
    struct sv_wait now;        /* the wait that goes on */
    int64_t now_longest_ns;    /* of its pieces */
};

/* ---- the longest waits ---- */

/* Waits of loaders are what others wait for, those of phases are those of their steps, and helper
 * threads mostly wait for work. */
static bool is_explained(const struct maker *m)
{
    const struct sv_thread_rows *x = &m->r->states.threads[m->span->thread];
    const struct sv_track_info *info = &m->r->trace->dict->tracks[x->track];
    switch (m->span->kind) {
    case SV_SPAN_STEP:
    case SV_SPAN_BETWEEN: return true;
    case SV_SPAN_EPOCH:
    case SV_SPAN_PHASE: return !m->steps.n;
    case SV_SPAN_THREAD: return info->tid == info->pid;
    default: return false;
    }
}

static void keep_wait(struct maker *m)
{
    struct sv_wait_report *r = m->r;
    struct sv_wait w = m->now;
    m->now.dur_ns = 0;
    if (w.dur_ns <= 0)
        return;
    if (w.dur_ns > m->span->longest_ns) {
        m->span->longest_ns = w.dur_ns;
        m->span->longest_class = w.class;
    }
    if (!m->keep || !is_explained(m))
        return;
    if (r->n_waits == m->keep && w.dur_ns <= r->waits[m->keep - 1].dur_ns)
        return;
    size_t at = r->n_waits < m->keep ? r->n_waits++ : m->keep - 1;
    for (; at > 0 && r->waits[at - 1].dur_ns < w.dur_ns; at--)
        r->waits[at] = r->waits[at - 1];
    r->waits[at] = w;
}

static void extend_wait(struct maker *m, const struct sv_state_piece *p, int64_t from_ns,
                        int64_t to_ns, enum sv_wait_class class)
{
    struct sv_wait *w = &m->now;
    if (w->dur_ns && (w->class != class || w->ts_ns + w->dur_ns != from_ns))
        keep_wait(m);
    if (class == SV_TIME_COMPUTE)
        return;
    if (!w->dur_ns) {
        *w = (struct sv_wait){.span = (uint32_t)(m->span - m->r->spans),
                              .ts_ns = from_ns,
                              .class = class,
                              .row = SV_NO_ROW,
                              .call = SV_NO_ROW};
        m->now_longest_ns = 0;
    }
    w->dur_ns += to_ns - from_ns;
    if (to_ns - from_ns > m->now_longest_ns) {
        m->now_longest_ns = to_ns - from_ns;
        w->row = p->row;
        w->call = p->call;
        w->reason = p->reason;
    }
}

/* ---- classes ---- */

/* What the innermost slice of the thread says; SV_N_WAIT_CLASSES: nothing that decides. */
static enum sv_wait_class class_of_slice(const struct maker *m, uint32_t row,
                                         const struct sv_state_piece *p)
{
    const struct sv_trace *t = m->r->trace;
    uint8_t kind = m->kinds.by_row[row];
    if (p->reason == SV_WAIT_FOR_CPU || p->reason == SV_WAIT_FOR_DISK ||
        p->reason == SV_WAIT_FOR_FAULT)
        return SV_N_WAIT_CLASSES;
    /* by_row gives a wait within work of a known kind to that work; here it stays a wait. */
    uint8_t own = m->kinds.by_string[t->slices.name[row]];
    if (own == SV_WORK_WAIT ||
        (own == SV_WORK_COPY && m->cat_runtime && t->slices.cat[row] == m->cat_runtime))
        return SV_TIME_GPU;
    if (kind == SV_WORK_COMM)
        return SV_TIME_RANK;
    if (kind == SV_WORK_DATA)
        return SV_TIME_DATA;
    if (row == m->span->row && p->state == SV_WAIT_NO_STATE && p->reason == SV_WAIT_NO_REASON)
        return SV_TIME_OTHER; /* nothing but the marker */
    /* Without states a slice is all that is known. */
    return p->state == SV_WAIT_NO_STATE && p->reason == SV_WAIT_NO_REASON ? SV_TIME_COMPUTE
                                                                          : SV_N_WAIT_CLASSES;
}

static void count_piece(struct maker *m, const struct sv_state_piece *p, int64_t from_ns,
                        int64_t to_ns, enum sv_wait_class class, bool is_copy)
{
    m->span->class_ns[class] += to_ns - from_ns;
    if (p->reason == SV_WAIT_FOR_GIL)
        m->span->gil_ns += to_ns - from_ns;
    if (p->reason == SV_WAIT_FOR_FAULT)
        m->span->fault_ns += to_ns - from_ns;
    if (is_copy)
        m->span->copy_ns += to_ns - from_ns;
    extend_wait(m, p, from_ns, to_ns, class);
}

/* Nothing but the piece itself says what it is. */
static enum sv_wait_class class_of_piece(const struct maker *m, uint32_t thread,
                                         const struct sv_state_piece *p)
{
    const struct sv_thread_rows *x = &m->r->states.threads[thread];
    if (p->state == SV_WAIT_NO_STATE && p->reason == SV_WAIT_NO_REASON)
        return x->calls && !x->state && p->from_ns >= x->from_ns && p->to_ns <= x->to_ns
                   ? SV_TIME_COMPUTE
                   : SV_TIME_OTHER;
    return sv_wait_class_of(&m->r->workers, thread, p);
}

#define CHANGES_MAX 4096
struct change {
    int64_t from_ns;
    uint32_t row;
};

/* The slices of the thread within a piece. They are found backwards and counted forwards; of a
 * piece with more changes than fit the rest is looked at as one. */
static void divide_piece(struct maker *m, uint32_t thread, const struct sv_state_piece *p,
                         struct change *changes)
{
    const struct sv_thread_rows *x = &m->r->states.threads[thread];
    const struct sv_slices *c = &m->r->trace->slices;
    int64_t at = p->to_ns;
    size_t n = 0;
    enum sv_wait_class own = class_of_piece(m, thread, p);
    while (at > p->from_ns && n < CHANGES_MAX) {
        struct sv_open_view v = sv_open_slice(&m->open, x->track, at);
        int64_t since = v.since_ns > p->from_ns && n + 1 < CHANGES_MAX ? v.since_ns : p->from_ns;
        bool is_known = v.row != SV_NO_ROW && c->cat[v.row] != m->cat_state &&
                        c->cat[v.row] != m->cat_call;
        changes[n++] = (struct change){since, is_known ? v.row : SV_NO_ROW};
        at = since;
    }
    while (n-- > 0) {
        int64_t to = n > 0 ? changes[n - 1].from_ns : p->to_ns;
        enum sv_wait_class class = SV_N_WAIT_CLASSES;
        if (changes[n].row != SV_NO_ROW)
            class = class_of_slice(m, changes[n].row, p);
        bool is_copy = class == SV_TIME_GPU &&
                       m->kinds.by_string[c->name[changes[n].row]] == SV_WORK_COPY;
        count_piece(m, p, changes[n].from_ns, to, class == SV_N_WAIT_CLASSES ? own : class,
                    is_copy);
    }
}

static void divide(struct maker *m, struct sv_wait_span *span, struct change *changes)
{
    m->span = span;
    m->now = (struct sv_wait){0};
    if (span->thread == SV_NO_THREAD) {
        span->class_ns[SV_TIME_OTHER] = span->dur_ns;
        return;
    }
    struct sv_state_cursor c =
        sv_state_window(&m->r->states, span->thread, span->ts_ns, span->ts_ns + span->dur_ns);
    for (struct sv_state_piece p; sv_state_next(&c, &p);)
        divide_piece(m, span->thread, &p, changes);
    keep_wait(m);
}

/* ---- spans ---- */

static void add_span(struct maker *m, struct sv_wait_span s)
{
    struct sv_wait_report *r = m->r;
    if (s.dur_ns <= 0)
        return;
    r->spans = sv_grow(r->spans, &m->cap, r->n_spans + 1, sizeof *r->spans);
    r->spans[r->n_spans++] = s;
}

/* The thread whose time a marker's is: its own, or where it has a track of its own the main thread
 * of the process. */
static uint32_t thread_of_marker(const struct maker *m, sv_track track)
{
    const struct sv_thread_states *s = &m->r->states;
    uint32_t thread = sv_thread_of(s, track);
    if (thread != SV_NO_THREAD)
        return thread;
    sv_track process = sv_dict_process_of(m->r->trace->dict, track);
    if (process)
        return sv_thread_main(s, process);
    return m->first_thread;
}

/* What a phase of no process is of: the first process that nobody of the trace started. */
static uint32_t first_thread(const struct sv_wait_report *r)
{
    const struct sv_thread_states *s = &r->states;
    for (uint32_t i = 0; i < s->n; i++)
        if (!r->workers.parent[s->threads[i].process])
            return sv_thread_main(s, s->threads[i].process);
    return SV_NO_THREAD;
}

static void add_steps(struct maker *m, int64_t only)
{
    const struct sv_steps *s = &m->steps;
    sv_track track = 0;
    uint32_t thread = SV_NO_THREAD;
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_step *x = &s->steps[i], *before = i ? &s->steps[i - 1] : NULL;
        if (x->track != track) {
            track = x->track;
            thread = thread_of_marker(m, track);
            before = NULL;
        }
        if (only >= 0 && x->number != only)
            continue;
        int64_t end = before ? before->ts_ns + before->dur_ns : x->ts_ns;
        add_span(m, (struct sv_wait_span){.kind = SV_SPAN_BETWEEN,
                                          .number = x->number,
                                          .row = x->row,
                                          .thread = thread,
                                          .ts_ns = end,
                                          .dur_ns = sv_sat_sub(x->ts_ns, end)});
        add_span(m, (struct sv_wait_span){.kind = SV_SPAN_STEP,
                                          .number = x->number,
                                          .row = x->row,
                                          .thread = thread,
                                          .ts_ns = x->ts_ns,
                                          .dur_ns = x->dur_ns});
    }
}

/* Slices whose name is that of an epoch, or of category phase, unless they are the steps. */
static void add_phases(struct maker *m)
{
    const struct sv_trace *t = m->r->trace;
    sv_str phase = sv_dict_find_str(t->dict, "phase", 5);
    bool *is_epoch = sv_alloc((size_t)t->dict->n_strings + 1), is_any = phase != 0;
    bool are_steps = m->steps.n && m->steps.marker && strstr(m->steps.marker, "poch");
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
            thread = thread_of_marker(m, track);
        }
        add_span(m, (struct sv_wait_span){
                        .kind = is_epoch[name] ? SV_SPAN_EPOCH : SV_SPAN_PHASE,
                        .number = -1,
                        .row = (uint32_t)row,
                        .thread = thread,
                        .ts_ns = t->slices.ts_ns[row],
                        .dur_ns = sv_sat_sub(sv_trace_end_ns(t, row), t->slices.ts_ns[row])});
    }
    free(is_epoch);
}

static void add_thread(struct maker *m, uint32_t i, enum sv_wait_span_kind kind)
{
    const struct sv_thread_rows *x = &m->r->states.threads[i];
    add_span(m, (struct sv_wait_span){.kind = kind,
                                      .number = -1,
                                      .row = SV_NO_ROW,
                                      .thread = i,
                                      .ts_ns = x->from_ns,
                                      .dur_ns = sv_sat_sub(x->to_ns, x->from_ns)});
}

static bool is_loader(const struct sv_wait_report *r, sv_track process)
{
    return r->workers.parent[process] &&
           sv_is_data_worker(&r->workers, r->workers.parent[process], process);
}

/* Main threads of data workers: workers of a process that has steps, or, without steps, of any. */
static void add_loaders(struct maker *m)
{
    const struct sv_thread_states *s = &m->r->states;
    const struct sv_dict *d = m->r->trace->dict;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n && n < LOADERS_MAX; i++) {
        const struct sv_track_info *track = &d->tracks[s->threads[i].track];
        if (track->tid != track->pid || !is_loader(m->r, s->threads[i].process))
            continue;
        add_thread(m, i, SV_SPAN_LOADER);
        n++;
    }
}

/* Without steps and phases: threads of processes that are no loaders. */
static void add_threads(struct maker *m)
{
    const struct sv_thread_states *s = &m->r->states;
    for (uint32_t i = 0; i < s->n; i++)
        if (!is_loader(m->r, s->threads[i].process))
            add_thread(m, i, SV_SPAN_THREAD);
}

static bool counts(const struct sv_wait_report *r, const struct sv_wait_span *s)
{
    return s->kind == r->kind || (r->kind == SV_SPAN_STEP && s->kind == SV_SPAN_BETWEEN);
}

/* Which processes have data workers, by track. To be freed. */
static bool *find_masters(const struct sv_wait_report *r)
{
    bool *is_master = sv_alloc((size_t)r->trace->dict->n_tracks + 1);
    for (size_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].kind == SV_SPAN_LOADER)
            is_master[r->workers.parent[r->states.threads[r->spans[i].thread].process]] = true;
    return is_master;
}

/* The thread that stands for a run without steps: the one that is longest there without waiting for
 * other processes, as a shell or a launcher does; a process that has data workers comes first.
 * SIZE_MAX: none. */
static size_t leading_thread(const struct sv_wait_report *r)
{
    size_t best = SIZE_MAX;
    int64_t best_ns = -1;
    bool is_master = false, *has_loaders = find_masters(r);
    for (size_t i = 0; i < r->n_spans; i++) {
        const struct sv_wait_span *s = &r->spans[i];
        const struct sv_thread_rows *x = &r->states.threads[s->thread];
        const struct sv_track_info *info = &r->trace->dict->tracks[x->track];
        if (s->kind != SV_SPAN_THREAD)
            continue;
        int64_t ns = s->dur_ns - s->class_ns[SV_TIME_PEER];
        bool is_new = info->tid == info->pid && ns > best_ns / 8 && has_loaders[x->process];
        if (is_new == is_master ? ns > best_ns : is_new) {
            best = i;
            best_ns = ns;
            is_master |= is_new;
        }
    }
    free(has_loaders);
    return best;
}

/* What the whole is: steps, else epochs, else phases, else one thread. */
static void add_up(struct sv_wait_report *r, size_t n_steps)
{
    bool has[8] = {0};
    for (size_t i = 0; i < r->n_spans; i++)
        has[r->spans[i].kind] = true;
    r->kind = n_steps              ? SV_SPAN_STEP
              : has[SV_SPAN_EPOCH] ? SV_SPAN_EPOCH
              : has[SV_SPAN_PHASE] ? SV_SPAN_PHASE
                                   : SV_SPAN_THREAD;
    r->total = (struct sv_wait_span){
        .kind = r->kind, .row = SV_NO_ROW, .number = -1, .thread = SV_NO_THREAD};
    size_t one = r->kind == SV_SPAN_THREAD ? leading_thread(r) : SIZE_MAX;
    for (size_t i = 0; i < r->n_spans; i++) {
        const struct sv_wait_span *s = &r->spans[i];
        if (!counts(r, s) || (one != SIZE_MAX && i != one))
            continue;
        r->total.thread = s->thread;
        r->total.dur_ns = sv_sat_add(r->total.dur_ns, s->dur_ns);
        r->total.gil_ns = sv_sat_add(r->total.gil_ns, s->gil_ns);
        r->total.fault_ns = sv_sat_add(r->total.fault_ns, s->fault_ns);
        r->total.copy_ns = sv_sat_add(r->total.copy_ns, s->copy_ns);
        for (int k = 0; k < SV_N_WAIT_CLASSES; k++)
            r->total.class_ns[k] = sv_sat_add(r->total.class_ns[k], s->class_ns[k]);
    }
}

/* ---- the whole ---- */

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

void sv_wait_report_make(struct sv_wait_report *r, const struct sv_trace *t,
                         const struct sv_wait_options *o)
{
    struct maker m = {.r = r,
                      .keep = o->n_waits,
                      .cat_state = find(t, "thread_state"),
                      .cat_call = find(t, "syscall"),
                      .cat_runtime = find(t, "cuda_runtime")};
    *r =
        (struct sv_wait_report){.trace = t, .waits = sv_alloc((o->n_waits + 1) * sizeof *r->waits)};
    sv_thread_states_init(&r->states, t);
    sv_data_workers_init(&r->workers, &r->states);
    m.first_thread = first_thread(r);
    sv_open_slices_init(&m.open, t);
    sv_steps_find(&m.steps, t, o->marker);
    sv_step_kinds_init(&m.kinds, &m.steps, t);
    add_steps(&m, o->step);
    if (o->step < 0)
        add_phases(&m);
    if (!r->n_spans && o->step < 0)
        add_threads(&m);
    if (o->step < 0)
        add_loaders(&m);
    r->is_assumed = !r->states.has_states;
    struct change *changes = sv_alloc(CHANGES_MAX * sizeof *changes);
    for (size_t i = 0; i < r->n_spans; i++)
        divide(&m, &r->spans[i], changes);
    free(changes);
    add_up(r, m.steps.n);
    sv_wait_explain(r, r->n_waits);
    sv_wait_find_passes(r);
    sv_wait_advise(r);
    sv_step_kinds_fini(&m.kinds);
    sv_steps_fini(&m.steps);
    sv_open_slices_fini(&m.open);
}

void sv_wait_report_fini(struct sv_wait_report *r)
{
    for (size_t i = 0; i < r->n_waits; i++)
        sv_path_fini(&r->waits[i].chain);
    free(r->waits);
    free(r->spans);
    sv_data_workers_fini(&r->workers);
    sv_thread_states_fini(&r->states);
    *r = (struct sv_wait_report){0};
}

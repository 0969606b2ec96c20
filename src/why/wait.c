/* The report on waits: the units of the ledger with their classes, and the longest waits. Called by
 * the command report.
 *
 * Only the longest waits are looked into further (why/wait_chain.c). */
#include "why/wait.h"

#include "core/base/mem.h"
#include "core/base/sat.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_wait_class_names[SV_N_WAIT_CLASSES] = {
#define NAME(member, text) text,
    SV_WAIT_CLASSES(NAME)
#undef NAME
};

static const uint8_t classes[SV_N_WHY_CLASSES] = {
    [SV_WHY_COMPUTE] = SV_TIME_COMPUTE, [SV_WHY_LOCK] = SV_TIME_LOCK,
    [SV_WHY_GIL] = SV_TIME_LOCK,        [SV_WHY_DATA] = SV_TIME_DATA,
    [SV_WHY_DISK] = SV_TIME_DISK,       [SV_WHY_PAGE] = SV_TIME_DISK,
    [SV_WHY_PIPE] = SV_TIME_PEER,       [SV_WHY_SOCKET] = SV_TIME_PEER,
    [SV_WHY_CHILD] = SV_TIME_PEER,      [SV_WHY_SLEEP] = SV_TIME_SLEEP,
    [SV_WHY_CPU] = SV_TIME_CPU,         [SV_WHY_GPU] = SV_TIME_GPU,
    [SV_WHY_COPY] = SV_TIME_GPU,        [SV_WHY_COMM] = SV_TIME_RANK,
    [SV_WHY_QUEUE] = SV_TIME_QUEUE,     [SV_WHY_UNKNOWN] = SV_TIME_OTHER,
};

static void sum_classes(struct sv_wait_span *s, const int64_t class_ns[SV_N_WHY_CLASSES])
{
    for (int k = 0; k < SV_N_WHY_CLASSES; k++)
        s->class_ns[classes[k]] = sv_sat_add(s->class_ns[classes[k]], class_ns[k]);
    s->gil_ns = class_ns[SV_WHY_GIL];
    s->fault_ns = class_ns[SV_WHY_PAGE];
    s->copy_ns = class_ns[SV_WHY_COPY];
}

/* ---- the longest waits ---- */

struct maker {
    struct sv_wait_report *r;
    size_t keep;
    struct sv_wait_span *span;
    struct sv_wait now;     /* the wait that goes on */
    int64_t now_longest_ns; /* of its pieces */
};

/* Waits of loaders are what others wait for, those of phases are those of their steps, and helper
 * threads mostly wait for work. */
static bool is_explained(const struct maker *m)
{
    const struct sv_ledger *l = &m->r->ledger;
    const struct sv_track_info *info =
        &l->trace->dict->tracks[l->states.threads[m->span->thread].track];
    switch (m->span->kind) {
    case SV_UNIT_IS_EPOCH:
    case SV_UNIT_IS_PHASE: return l->kind != SV_UNIT_IS_STEP;
    case SV_UNIT_IS_THREAD: return info->tid == info->pid;
    case SV_UNIT_IS_LOADER: return false;
    default: return true;
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

/* What the unit's own thread waited for in a piece. */
static enum sv_wait_reason reason_of(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    static const uint8_t reasons[SV_N_WHY_CLASSES] = {
        [SV_WHY_LOCK] = SV_WAIT_FOR_LOCK,     [SV_WHY_GIL] = SV_WAIT_FOR_GIL,
        [SV_WHY_DATA] = SV_WAIT_FOR_DATA,     [SV_WHY_DISK] = SV_WAIT_FOR_DISK,
        [SV_WHY_PAGE] = SV_WAIT_FOR_FAULT,    [SV_WHY_PIPE] = SV_WAIT_FOR_PIPE,
        [SV_WHY_SOCKET] = SV_WAIT_FOR_SOCKET, [SV_WHY_CHILD] = SV_WAIT_FOR_CHILD,
        [SV_WHY_SLEEP] = SV_WAIT_FOR_SLEEP,   [SV_WHY_CPU] = SV_WAIT_FOR_CPU,
        [SV_WHY_GPU] = SV_WAIT_FOR_GPU,       [SV_WHY_COPY] = SV_WAIT_FOR_GPU,
        [SV_WHY_COMM] = SV_WAIT_FOR_RANK,     [SV_WHY_QUEUE] = SV_WAIT_FOR_OTHER,
        [SV_WHY_UNKNOWN] = SV_WAIT_FOR_OTHER,
    };
    uint32_t edge = p->edge, first = edge;
    for (; edge != SV_NO_EDGE; edge = l->edges[edge].before)
        first = edge;
    return first != SV_NO_EDGE ? l->edges[first].reason : (enum sv_wait_reason)reasons[p->class];
}

static void extend_wait(struct maker *m, const struct sv_why_piece *p)
{
    const struct sv_ledger *l = &m->r->ledger;
    enum sv_wait_class class = (enum sv_wait_class)classes[p->class];
    struct sv_wait *w = &m->now;
    if (w->dur_ns && (w->class != class || w->ts_ns + w->dur_ns != p->ts_ns))
        keep_wait(m);
    if (class == SV_TIME_COMPUTE)
        return;
    if (!w->dur_ns) {
        *w = (struct sv_wait){.span = (uint32_t)(m->span - m->r->spans),
                              .ts_ns = p->ts_ns,
                              .class = class,
                              .row = SV_NO_ROW,
                              .call = SV_NO_ROW};
        m->now_longest_ns = 0;
    }
    w->dur_ns += p->dur_ns;
    if (p->dur_ns > m->now_longest_ns) {
        uint32_t first = sv_why_first_edge(l, p->edge);
        m->now_longest_ns = p->dur_ns;
        w->row = first != SV_NO_EDGE ? l->edges[first].row : p->state;
        w->call = first != SV_NO_EDGE ? l->edges[first].call : p->row;
        w->reason = reason_of(l, p);
    }
}

static void add_span(struct maker *m, size_t i)
{
    const struct sv_ledger *l = &m->r->ledger;
    const struct sv_why_unit *u = &l->units[i];
    struct sv_wait_span *s = &m->r->spans[i];
    *s = (struct sv_wait_span){.kind = u->kind,
                               .number = u->number,
                               .row = u->row,
                               .thread = u->thread,
                               .ts_ns = u->ts_ns,
                               .dur_ns = u->dur_ns};
    sum_classes(s, u->class_ns);
    m->span = s;
    for (size_t k = u->first; k < u->end; k++)
        if (u->thread != SV_NO_THREAD)
            extend_wait(m, &l->pieces[k]);
    keep_wait(m);
}

/* ---- the whole ---- */

void sv_wait_report_make(struct sv_wait_report *r, const struct sv_trace *t,
                         const struct sv_wait_options *o)
{
    struct maker m = {.r = r, .keep = o->n_waits};
    *r =
        (struct sv_wait_report){.trace = t, .waits = sv_alloc((o->n_waits + 1) * sizeof *r->waits)};
    struct sv_ledger *l = &r->ledger;
    if (o->ledger)
        *l = *o->ledger;
    else
        sv_ledger_make(l, t,
                       &(struct sv_ledger_options){
                           .marker = o->marker, .step = o->step, .with_loaders = true});
    r->is_assumed = !l->states.has_states;
    r->n_spans = l->n_units;
    r->spans = sv_alloc((r->n_spans + 1) * sizeof *r->spans);
    r->kind = l->kind;
    r->total = (struct sv_wait_span){.kind = r->kind,
                                     .row = SV_NO_ROW,
                                     .number = -1,
                                     .thread = SV_NO_THREAD,
                                     .dur_ns = l->dur_ns};
    for (size_t i = 0; i < l->n_units; i++) {
        add_span(&m, i);
        if (l->units[i].counts)
            r->total.thread = l->units[i].thread;
    }
    sum_classes(&r->total, l->class_ns);
    sv_wait_explain(r, r->n_waits);
    sv_wait_find_passes(r);
    sv_wait_advise(r);
}

void sv_wait_report_fini(struct sv_wait_report *r)
{
    for (size_t i = 0; i < r->n_waits; i++)
        sv_path_fini(&r->waits[i].chain);
    free(r->waits);
    free(r->spans);
    sv_ledger_fini(&r->ledger);
    *r = (struct sv_wait_report){0};
}

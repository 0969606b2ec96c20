/* The ledger of time: each unit is walked along its thread, and each wait for somebody is followed
 * into that one. Called by explain, the report on waits and SQL. Units are walked on all cores.
 *
 * A followed wait costs the pieces of the other thread in its window. Many threads may wait for one
 * that does much, so all followed pieces together have a bound, beyond which waits are not
 * followed. */
#include "why/ledger.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/io/words.h"
#include "threads/workers.h"
#include "why/open_slices.h"
#include "why/step_kinds.h"
#include "why/talkers.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_why_class_names[SV_N_WHY_CLASSES] = {
#define WORD(member, word) word,
    SV_WHY_CLASSES(WORD)
#undef WORD
};
const char *const sv_why_doing_names[SV_N_DOINGS] = {
#define WORD(member, word) word,
    SV_WHY_DOINGS(WORD)
#undef WORD
};

const char *const sv_unit_kind_names[SV_N_UNIT_KINDS] = {
    "step", "between steps", "epoch", "phase", "thread", "request", "turn", "window", "loader"};

enum { DEPTH_MAX = 8, NO_CLASS = SV_N_WHY_CLASSES, FOLLOW_PER_ROW = 8, FOLLOW_LEAST = 1 << 20 };
/* A piece and its edge have about as many bytes as a row of the store: a fifth of the store. */
enum { ROWS_PER_PIECE = 10, PIECES_LEAST = 1 << 18, PIECES_OF_UNIT = 256 };

/* Threads that walk units have copies: the ledger and the members from `unit` on are their own. */
struct maker {
    struct sv_ledger *l;
    struct sv_open_slices open;
    struct sv_steps steps;
    struct sv_step_kinds kinds;
    sv_str cat_runtime;
    struct sv_talkers peers;
    size_t pieces_max; /* of all units */
    uint64_t follow_max;
    unsigned threads;
    uint32_t unit;
    uint64_t followed;
    size_t sum_at;     /* pieces: when those of this unit are summed */
    size_t first_edge; /* of the unit */
};

/* How the walk came to a thread. */
struct via {
    uint32_t edge;
    unsigned class; /* NO_CLASS: nothing has decided yet */
    unsigned depth;
    bool is_assumed;
};

static void walk(struct maker *m, uint32_t thread, int64_t from_ns, int64_t to_ns, struct via v);

/* ---- pieces ---- */

static void add_piece(struct maker *m, struct sv_why_piece p)
{
    struct sv_ledger *l = m->l;
    struct sv_why_piece *last = l->n_pieces > l->units[m->unit].first ? &l->pieces[l->n_pieces - 1]
                                                                      : NULL;
    if (p.dur_ns <= 0)
        return;
    p.unit = m->unit;
    l->units[m->unit].class_ns[p.class] += p.dur_ns;
    if (last && !last->is_sum && last->edge == p.edge && last->thread == p.thread &&
        last->row == p.row && last->class == p.class && last->doing == p.doing &&
        last->is_assumed == p.is_assumed && (last->state == p.state || p.doing == SV_DOING_RUNS) &&
        last->ts_ns + last->dur_ns == p.ts_ns) {
        last->dur_ns += p.dur_ns;
        return;
    }
    l->pieces = sv_grow(l->pieces, &l->pieces_cap, l->n_pieces + 1, sizeof *l->pieces);
    l->pieces[l->n_pieces++] = p;
}

/* A piece of a thread: its class is that of the way to it, else `own`. */
static void add(struct maker *m, uint32_t thread, const struct sv_state_piece *p,
                const struct via *v, unsigned own, unsigned doing, uint32_t row)
{
    add_piece(m, (struct sv_why_piece){
                     .ts_ns = p->from_ns,
                     .dur_ns = p->to_ns - p->from_ns,
                     .edge = v->edge,
                     .thread = thread,
                     .row = row,
                     .state = p->row,
                     .class = (uint8_t)(v->class == NO_CLASS ? own : v->class),
                     .doing = (uint8_t)doing,
                     .is_assumed = v->is_assumed,
                 });
}

/* ---- what a thread does by itself ---- */

static bool name_begins(const struct sv_trace *t, uint32_t row, const char *word)
{
    struct sv_text name = sv_dict_text(t->dict, t->slices.name[row]);
    size_t len = strlen(word);
    return name.len >= len && memcmp(name.bytes, word, len) == 0;
}

/* A call on a stored file, or none: SV_N_DOINGS. */
static unsigned doing_of_call(const struct sv_thread_states *s, uint32_t call)
{
    const struct sv_trace *t = s->trace;
    if (call == SV_NO_ROW)
        return SV_N_DOINGS;
    if (!sv_state_is_call(s, call))
        return SV_DOING_FAULTS;
    unsigned class = s->call_class[t->slices.name[call]];
    if (class != SV_CALL_TRANSFER && class != SV_CALL_FILE)
        return SV_N_DOINGS;
    if (class == SV_CALL_TRANSFER && sv_call_file_kind(s, call) != SV_FILE_REGULAR)
        return SV_N_DOINGS;
    if (name_begins(t, call, "fsync") || name_begins(t, call, "fdatasync") ||
        name_begins(t, call, "sync") || name_begins(t, call, "msync"))
        return SV_DOING_WRITES;
    if (class == SV_CALL_FILE)
        return SV_DOING_NAMES;
    return name_begins(t, call, "write") || name_begins(t, call, "pwrite") ||
                   name_begins(t, call, "copy_file_range")
               ? SV_DOING_WRITES
               : SV_DOING_READS;
}

/* The whole call counts as the file's time: running, blocked, and runnable right after it. */
static bool add_file(struct maker *m, uint32_t thread, const struct sv_state_piece *p,
                     const struct via *v)
{
    unsigned doing = doing_of_call(&m->l->states, p->call);
    if (doing == SV_N_DOINGS || p->state == SV_WAIT_STATE_PREEMPTED)
        return false;
    add(m, thread, p, v, doing == SV_DOING_FAULTS ? SV_WHY_PAGE : SV_WHY_DISK, doing, p->call);
    return true;
}

/* ---- whom it waits for ---- */

static bool is_own_unmarked(const struct maker *m, uint32_t thread)
{
    const struct sv_why_unit *u = &m->l->units[m->unit];
    return u->thread == thread && (u->kind == SV_UNIT_IS_THREAD || u->kind == SV_UNIT_IS_TURN);
}

/* A loop over descriptors, in a unit that nobody marked, waits for answers if it has connected to
 * the other one. Otherwise that may be a client, and the wait the time without requests. */
static bool may_be_idle(const struct maker *m, uint32_t thread, sv_track own, sv_track its)
{
    return is_own_unmarked(m, thread) && !sv_talkers_is_client(&m->peers, own, its);
}

/* A server waits for somebody to connect, or for the next request of somebody who has. */
static bool is_unasked(const struct maker *m, uint32_t thread, sv_track own, sv_track its,
                       uint32_t call)
{
    return is_own_unmarked(m, thread) &&
           ((call != SV_NO_ROW && name_begins(m->l->trace, call, "accept")) ||
            (its && sv_talkers_is_client(&m->peers, its, own)));
}

/* Which of several descriptors it was: that of the next call. */
static enum sv_file_kind used_next(const struct sv_ledger *l, uint32_t call)
{
    enum { CALLS = 4 };
    uint32_t end = call != SV_NO_ROW ? l->trace->tracks[l->trace->slices.track[call]].end : 0;
    for (uint32_t row = call; row < end && row <= call + CALLS; row++) {
        enum sv_file_kind kind = row != call && sv_state_is_call(&l->states, row)
                                     ? sv_call_file_kind(&l->states, row)
                                     : SV_FILE_UNKNOWN;
        if (kind != SV_FILE_UNKNOWN)
            return kind;
    }
    return SV_FILE_UNKNOWN;
}

/* What is being waited for, once it is known who had it. */
static unsigned class_of(const struct maker *m, uint32_t thread, uint32_t other,
                         const struct sv_state_piece *p)
{
    const struct sv_ledger *l = m->l;
    sv_track own = l->states.threads[thread].process,
             its = other != SV_NO_THREAD ? l->states.threads[other].process : 0;
    if (p->reason == SV_WAIT_FOR_CHILD)
        return SV_WHY_CHILD;
    if (its && its != own && sv_is_data_worker(&l->workers, own, its))
        return SV_WHY_DATA;
    switch (p->reason) {
    case SV_WAIT_FOR_GIL: return SV_WHY_GIL;
    case SV_WAIT_FOR_PIPE: return SV_WHY_PIPE;
    case SV_WAIT_FOR_DATA: return SV_WHY_DATA;
    case SV_WAIT_FOR_GPU: return SV_WHY_GPU;
    case SV_WAIT_FOR_RANK: return SV_WHY_COMM;
    case SV_WAIT_FOR_SOCKET:
        return is_unasked(m, thread, own, its, p->call) ? SV_WHY_UNKNOWN : SV_WHY_SOCKET;
    case SV_WAIT_FOR_LOCK: return its && its != own ? SV_WHY_DATA : SV_WHY_LOCK;
    case SV_WAIT_FOR_POLL: break;
    default: /* what it waits for is not known, only who had it */
        return !its ? SV_WHY_UNKNOWN : its == own ? SV_WHY_LOCK : SV_WHY_PIPE;
    }
    /* One of several descriptors: what the other one wrote to says which. */
    if (other == SV_NO_THREAD || p->row == SV_NO_ROW) {
        enum sv_file_kind next = used_next(l, p->call);
        return next == SV_FILE_PIPE             ? SV_WHY_PIPE
               : next == SV_FILE_OTHER          ? SV_WHY_UNKNOWN /* an eventfd, a timer … */
               : may_be_idle(m, thread, own, 0) ? SV_WHY_UNKNOWN
                                                : SV_WHY_SOCKET;
    }
    struct sv_state_piece x = sv_state_before(&l->states, other, sv_trace_end_ns(l->trace, p->row));
    enum sv_file_kind kind = x.call != SV_NO_ROW ? sv_call_file_kind(&l->states, x.call)
                                                 : SV_FILE_UNKNOWN;
    if (kind == SV_FILE_PIPE || its == own)
        return kind == SV_FILE_PIPE ? SV_WHY_PIPE : SV_WHY_DATA;
    return may_be_idle(m, thread, own, its) ? SV_WHY_UNKNOWN : SV_WHY_SOCKET;
}

static bool is_on_the_way(const struct sv_ledger *l, uint32_t edge, uint32_t thread)
{
    for (; edge != SV_NO_EDGE; edge = l->edges[edge].before)
        if (l->edges[edge].thread == thread)
            return true;
    return false;
}

/* When the wait of a piece began: with its state, else with its call. */
static int64_t begin_of(const struct maker *m, const struct sv_state_piece *p)
{
    uint32_t row = p->row != SV_NO_ROW ? p->row : p->call;
    return row != SV_NO_ROW ? m->l->trace->slices.ts_ns[row] : p->from_ns;
}

static uint32_t add_edge(struct maker *m, struct sv_why_edge e, const struct sv_state_piece *p,
                         const struct via *v)
{
    struct sv_ledger *l = m->l;
    e.before = v->edge;
    e.row = p->row;
    e.call = p->call;
    e.wait = UINT32_MAX;
    if (e.part != UINT32_MAX)
        e.wait = l->locks.parts[e.part].wait;
    else if (p->row != SV_NO_ROW || p->call != SV_NO_ROW) {
        const struct sv_lock_wait *w =
            sv_lock_wait_at(&l->locks, l->states.threads[e.thread].track, begin_of(m, p));
        e.wait = w ? (uint32_t)(w - l->locks.waits) : UINT32_MAX;
    }
    l->edges = sv_grow(l->edges, &l->edges_cap, l->n_edges + 1, sizeof *l->edges);
    l->edges[l->n_edges] = e;
    return (uint32_t)l->n_edges++;
}

static bool is_own_process(const struct maker *m, uint32_t thread)
{
    uint32_t own = m->l->units[m->unit].thread;
    const struct sv_thread_rows *threads = m->l->states.threads;
    return own != SV_NO_THREAD && threads[own].process == threads[thread].process;
}

/* Goes on in `other` for the time of the piece; class NO_CLASS: the way does not decide. What a
 * thread of the own process makes of what another rank sends is communication. */
static void follow(struct maker *m, struct sv_why_edge e, const struct sv_state_piece *p,
                   const struct via *v, unsigned class)
{
    struct sv_ledger *l = m->l;
    bool is_passed_on = v->class == SV_WHY_DATA && class == SV_WHY_COMM &&
                        is_own_process(m, e.thread);
    struct via next = {.class = v->class == NO_CLASS || is_passed_on ? class : v->class,
                       .depth = v->depth + 1,
                       .is_assumed = v->is_assumed || e.is_assumed};
    if (sv_states_are_of_ranks(&l->states, e.thread, e.to))
        next.class = SV_WHY_COMM; /* whatever the waits on the way were for */
    next.edge = add_edge(m, e, p, v);
    bool is_loop = e.to != SV_NO_THREAD && is_on_the_way(l, v->edge, e.to);
    if (e.to == SV_NO_THREAD || e.to == e.thread || is_loop || next.depth > DEPTH_MAX ||
        m->followed > m->follow_max) {
        if (next.class == NO_CLASS)
            next.class = SV_WHY_UNKNOWN;
        add(m, e.to, p, &next, SV_WHY_UNKNOWN,
            e.to == SV_NO_THREAD ? SV_DOING_AWAY : SV_DOING_WAITS,
            e.to == SV_NO_THREAD ? p->call : SV_NO_ROW);
        return;
    }
    walk(m, e.to, p->from_ns, p->to_ns, next);
}

/* Who held the interpreter lock in a part that does not say so: the holder of a part nearby. */
static int64_t nearby_holder(const struct sv_lock_waits *w, size_t i)
{
    enum { NEAR_PARTS = 16 };
    for (size_t k = 1; k <= NEAR_PARTS; k++) {
        const struct sv_lock_part *after = i + k < w->n_parts ? &w->parts[i + k] : NULL,
                                  *before = i >= k ? &w->parts[i - k] : NULL;
        if (after && after->thread == w->parts[i].thread && after->by.tid &&
            w->waits[after->wait].is_gil)
            return after->by.tid;
        if (before && before->thread == w->parts[i].thread && before->by.tid &&
            w->waits[before->wait].is_gil)
            return before->by.tid;
    }
    return 0;
}

/* What a wait for a futex is for. A join is walked through: NO_CLASS. */
static unsigned class_of_lock(const struct maker *m, const struct sv_lock_wait *wait,
                              uint32_t thread, uint32_t other, const struct sv_state_piece *p)
{
    if (wait && wait->is_gil)
        return SV_WHY_GIL;
    if (wait && wait->use == SV_LOCK_KERNEL)
        return SV_WHY_LOCK;
    if (wait && wait->use != SV_LOCK_MUTEX)
        return wait->use == SV_LOCK_JOIN ? NO_CLASS : SV_WHY_DATA;
    if (wait && wait->function.len && p->reason == SV_WAIT_FOR_LOCK)
        return SV_WHY_LOCK; /* also one that processes share */
    return class_of(m, thread, other, p);
}

/* By the table of locks. What it does not know is left in [p->from_ns, p->to_ns); true: nothing. */
static bool follow_lock(struct maker *m, uint32_t thread, struct sv_state_piece *p,
                        const struct via *v)
{
    const struct sv_ledger *l = m->l;
    const struct sv_lock_waits *w = &l->locks;
    sv_track track = l->states.threads[thread].track;
    size_t i = sv_lock_part_from(w, track, p->from_ns);
    for (; i < w->n_parts && w->parts[i].thread == track && w->parts[i].from_ns < p->to_ns; i++) {
        const struct sv_lock_part *x = &w->parts[i];
        const struct sv_lock_wait *wait = &w->waits[x->wait];
        struct sv_state_piece part = *p;
        int64_t tid = x->by.tid ? x->by.tid : wait->is_gil ? nearby_holder(w, i) : 0;
        if (!tid || sv_sat_sub(x->from_ns, p->from_ns) > SV_WAIT_NEAR_NS)
            break; /* who ended the wait may be known to its state */
        part.to_ns = x->to_ns < p->to_ns ? x->to_ns : p->to_ns;
        uint32_t other = sv_thread_by_tid(&l->states, l->trace->dict->tracks[track].space, tid);
        unsigned class = class_of_lock(m, wait, thread, other, p);
        follow(m,
               (struct sv_why_edge){.thread = thread,
                                    .to = other,
                                    .part = (uint32_t)i,
                                    .reason = p->reason,
                                    .is_assumed = !x->by.tid},
               &part, v, class);
        p->from_ns = part.to_ns;
    }
    return p->from_ns >= p->to_ns;
}

/* The network ended a wait for a peer of this trace, not one of its threads. If one works
 * meanwhile, it is that one; otherwise what was sent is on its way, and nobody's work. */
static bool follow_peer(struct maker *m, uint32_t thread, const struct sv_state_piece *p,
                        const struct via *v)
{
    struct sv_ledger *l = m->l;
    bool runs;
    uint32_t other = sv_talkers_thread(&m->peers, p, &runs);
    if (other == SV_NO_THREAD ||
        l->states.threads[other].process == l->states.threads[thread].process)
        return false;
    struct sv_why_edge e = {
        .thread = thread, .to = other, .part = UINT32_MAX, .reason = p->reason, .is_assumed = runs};
    if (runs) {
        follow(m, e, p, v, SV_WHY_SOCKET);
        return true;
    }
    struct via next = *v;
    next.edge = add_edge(m, e, p, v);
    add(m, other, p, &next,
        sv_states_are_of_ranks(&l->states, thread, other) ? SV_WHY_COMM : SV_WHY_SOCKET,
        SV_DOING_AWAY, p->call);
    return true;
}

static void add_wait(struct maker *m, uint32_t thread, struct sv_state_piece p, const struct via *v)
{
    const struct sv_thread_states *s = &m->l->states;
    bool is_lock = p.reason == SV_WAIT_FOR_LOCK || p.reason == SV_WAIT_FOR_GIL;
    if (v->class == SV_WHY_QUEUE) { /* the worker has nothing to do: it is not why others wait */
        add(m, thread, &p, v, SV_WHY_QUEUE, SV_DOING_WAITS, SV_NO_ROW);
        return;
    }
    if (is_lock && follow_lock(m, thread, &p, v))
        return;
    struct sv_waker w = {.kind = SV_WAKER_UNKNOWN, .thread = SV_NO_THREAD};
    struct sv_state_piece last = p;
    last.row = sv_state_wait_ends(s, &p, v->depth > 0);
    if (last.row != SV_NO_ROW)
        w = sv_state_waker(s, last.row);
    if (w.kind == SV_WAKER_UNKNOWN && p.call != SV_NO_ROW)
        w = sv_call_waker(s, p.call);
    struct via own = *v;
    if (w.kind == SV_WAKER_THREAD) {
        follow(m,
               (struct sv_why_edge){
                   .thread = thread, .to = w.thread, .part = UINT32_MAX, .reason = p.reason},
               &p, v,
               class_of_lock(
                   m, sv_lock_wait_at(&m->l->locks, s->threads[thread].track, begin_of(m, &p)),
                   thread, w.thread, &last));
        return;
    }
    own.is_assumed |= w.kind == SV_WAKER_UNKNOWN;
    unsigned class = class_of(m, thread, SV_NO_THREAD, &p);
    if (sv_waker_is_timer(&w) && (p.reason == SV_WAIT_FOR_POLL || p.reason == SV_WAIT_FOR_LOCK ||
                                  p.reason == SV_WAIT_FOR_OTHER)) {
        add(m, thread, &p, &own, SV_WHY_SLEEP, SV_DOING_SLEEPS, p.call);
        return;
    }
    if (class == SV_WHY_SOCKET && follow_peer(m, thread, &p, &own))
        return;
    if (w.kind == SV_WAKER_OUTSIDE)
        follow(m,
               (struct sv_why_edge){
                   .thread = thread, .to = SV_NO_THREAD, .part = UINT32_MAX, .reason = p.reason},
               &p, &own, class);
    else
        add(m, thread, &p, &own, class,
            class == SV_WHY_SOCKET || class == SV_WHY_PIPE ? SV_DOING_AWAY : SV_DOING_WAITS,
            p.call);
}

/* ---- slices ---- */

/* What the innermost slice of the thread says; NO_CLASS: nothing that decides. */
static unsigned class_of_slice(const struct maker *m, uint32_t row, const struct sv_state_piece *p)
{
    const struct sv_trace *t = m->l->trace;
    uint8_t kind = m->kinds.by_row[row], own = m->kinds.by_string[t->slices.name[row]];
    /* by_row gives a wait within work of a known kind to that work; here it stays a wait. */
    if (own == SV_WORK_WAIT)
        return SV_WHY_GPU;
    if (own == SV_WORK_COPY && m->cat_runtime && t->slices.cat[row] == m->cat_runtime)
        return SV_WHY_COPY;
    if (kind == SV_WORK_COMM)
        return SV_WHY_COMM;
    if (kind == SV_WORK_DATA)
        return SV_WHY_DATA;
    if (row == m->l->units[m->unit].row && p->state == SV_WAIT_NO_STATE &&
        p->reason == SV_WAIT_NO_REASON)
        return SV_WHY_UNKNOWN; /* nothing but the marker */
    return NO_CLASS;
}

/* A flow that arrives at the row leads to the thread that it came from. */
static uint32_t flow_to_row(const struct maker *m, uint32_t row, uint32_t thread)
{
    const struct sv_ledger *l = m->l;
    const struct sv_trace *t = l->trace;
    uint64_t first, n = sv_trace_flows_in(t, row, &first);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t other =
            sv_thread_of(&l->states, t->slices.track[t->flows.from[t->flows.by_to[first + i]]]);
        if (other != SV_NO_THREAD && other != thread)
            return other;
    }
    return SV_NO_THREAD;
}

/* In the slice, or at one of the first instants within it: what a wait gets arrives at its end. */
static uint32_t flow_thread(const struct maker *m, uint32_t row, uint32_t thread)
{
    enum { INSIDE = 8 };
    const struct sv_trace *t = m->l->trace;
    uint32_t other = flow_to_row(m, row, thread), end = t->tracks[t->slices.track[row]].end;
    int64_t end_ns = sv_trace_end_ns(t, row);
    for (uint32_t i = row + 1; other == SV_NO_THREAD && i < end && i <= row + INSIDE; i++) {
        if (t->slices.ts_ns[i] > end_ns)
            break;
        if (t->slices.kind[i] != SV_SLICE)
            other = flow_to_row(m, i, thread);
    }
    return other;
}

/* Stopped by a signal or a debugger: by whoever let it go on, as far as that is known. */
static void add_stopped(struct maker *m, uint32_t thread, const struct sv_state_piece *p,
                        const struct via *v)
{
    struct via next = *v;
    struct sv_waker w = {.kind = SV_WAKER_UNKNOWN, .thread = SV_NO_THREAD};
    if (p->row != SV_NO_ROW)
        w = sv_state_waker(&m->l->states, p->row);
    if (w.kind == SV_WAKER_THREAD)
        next.edge = add_edge(m,
                             (struct sv_why_edge){.thread = thread,
                                                  .to = w.thread,
                                                  .part = UINT32_MAX,
                                                  .reason = SV_WAIT_FOR_STOPPED},
                             p, v);
    add(m, thread, p, &next, SV_WHY_UNKNOWN, SV_DOING_WAITS, p->call);
}

/* A piece in which nothing changes, with the slice that is open (SV_NO_ROW: none). */
static void place(struct maker *m, uint32_t thread, const struct sv_state_piece *p, uint32_t slice,
                  const struct via *v)
{
    struct via own = *v;
    unsigned said = NO_CLASS;
    bool is_wait = p->reason != SV_WAIT_NO_REASON && p->reason != SV_WAIT_FOR_CPU;
    if (slice != SV_NO_ROW && v->class == NO_CLASS && p->reason != SV_WAIT_FOR_CPU &&
        p->reason != SV_WAIT_FOR_DISK && p->reason != SV_WAIT_FOR_FAULT)
        said = class_of_slice(m, slice, p);
    if (said == SV_WHY_GPU || said == SV_WHY_COPY) {
        add(m, thread, p, &own, said, SV_DOING_DEVICE, slice);
        return;
    }
    own.class = said != NO_CLASS ? said : v->class;
    own.is_assumed |= p->state == SV_WAIT_NO_STATE;
    bool is_blind = p->state == SV_WAIT_NO_STATE
                        ? !is_wait
                        : is_wait && p->row != SV_NO_ROW &&
                              sv_state_waker(&m->l->states, p->row).kind == SV_WAKER_UNKNOWN;
    if (is_blind && slice != SV_NO_ROW && v->depth < DEPTH_MAX && thread != SV_NO_THREAD) {
        uint32_t other = said == SV_WHY_DATA ? flow_thread(m, slice, thread) : SV_NO_THREAD;
        if (other != SV_NO_THREAD) {
            own = *v;
            follow(m,
                   (struct sv_why_edge){.thread = thread,
                                        .to = other,
                                        .part = UINT32_MAX,
                                        .by_flow = true,
                                        .reason = SV_WAIT_FOR_DATA},
                   p, &own, said);
            return;
        }
    }
    if (add_file(m, thread, p, &own))
        return;
    switch (p->reason) {
    case SV_WAIT_NO_REASON: {
        const struct sv_thread_rows *x = thread != SV_NO_THREAD ? &m->l->states.threads[thread]
                                                                : NULL;
        bool is_known =
            p->state != SV_WAIT_NO_STATE || slice != SV_NO_ROW ||
            (x && x->calls && !x->state && p->from_ns >= x->from_ns && p->to_ns <= x->to_ns);
        add(m, thread, p, &own, is_known ? SV_WHY_COMPUTE : SV_WHY_UNKNOWN,
            is_known ? SV_DOING_RUNS : SV_DOING_WAITS, slice);
        return;
    }
    case SV_WAIT_FOR_CPU: add(m, thread, p, &own, SV_WHY_CPU, SV_DOING_QUEUED, slice); return;
    case SV_WAIT_FOR_DISK: add(m, thread, p, &own, SV_WHY_DISK, SV_DOING_READS, p->call); return;
    case SV_WAIT_FOR_FAULT: add(m, thread, p, &own, SV_WHY_PAGE, SV_DOING_FAULTS, p->call); return;
    case SV_WAIT_FOR_SLEEP: add(m, thread, p, &own, SV_WHY_SLEEP, SV_DOING_SLEEPS, p->call); return;
    case SV_WAIT_FOR_STOPPED: add_stopped(m, thread, p, &own); return;
    case SV_WAIT_FOR_TERMINAL:
        add(m, thread, p, &own, SV_WHY_UNKNOWN, SV_DOING_WAITS, p->call);
        return;
    default: add_wait(m, thread, *p, &own); return;
    }
}

/* ---- the walk ---- */

#define CHANGES_MAX 4096
struct change {
    int64_t from_ns;
    uint32_t row;
};

/* The slices of the thread within a piece. They are found backwards and counted forwards; of a
 * piece with more changes than fit the rest is looked at as one. */
static void divide(struct maker *m, uint32_t thread, sv_track track, const struct sv_state_piece *p,
                   const struct via *v)
{
    const struct sv_thread_states *s = &m->l->states;
    struct change small[16], *changes = small;
    size_t n = 0, cap = sizeof small / sizeof *small;
    int64_t at = p->to_ns;
    while (at > p->from_ns && n < CHANGES_MAX) {
        struct sv_open_view o = sv_open_slice(&m->open, track, at);
        int64_t since = o.since_ns > p->from_ns && n + 1 < CHANGES_MAX ? o.since_ns : p->from_ns;
        bool is_known = o.row != SV_NO_ROW && !sv_state_is_row(s, o.row);
        if (n == cap) {
            struct change *more = sv_alloc(CHANGES_MAX * sizeof *more);
            memcpy(more, small, sizeof small);
            changes = more;
            cap = CHANGES_MAX;
        }
        changes[n++] = (struct change){since, is_known ? o.row : SV_NO_ROW};
        at = since;
    }
    while (n-- > 0) {
        struct sv_state_piece part = *p;
        part.from_ns = changes[n].from_ns;
        part.to_ns = n > 0 ? changes[n - 1].from_ns : p->to_ns;
        place(m, thread, &part, changes[n].row, v);
    }
    if (changes != small)
        free(changes);
}

/* Makes fewer pieces of the unit so far, if it has many. */
static void sum_unit(struct maker *m)
{
    struct sv_ledger *l = m->l;
    size_t first = l->units[m->unit].first;
    if (l->n_pieces - first > PIECES_OF_UNIT)
        sv_ledger_sum(l, first, m->first_edge);
    size_t n = 2 * (l->n_pieces - first);
    m->sum_at = first + (n > m->pieces_max ? n : m->pieces_max);
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it */
static void walk(struct maker *m, uint32_t thread, int64_t from_ns, int64_t to_ns, struct via v)
{
    struct sv_state_cursor c = sv_state_window(&m->l->states, thread, from_ns, to_ns);
    for (struct sv_state_piece p; sv_state_next(&c, &p);) {
        m->followed += v.depth > 0;
        divide(m, thread, m->l->states.threads[thread].track, &p, &v);
        if (v.depth == 0 && m->l->n_pieces > m->sum_at)
            sum_unit(m);
    }
}

/* A step on a track that is no thread: its slices say what they can. */
static void walk_track(struct maker *m, sv_track track, int64_t from_ns, int64_t to_ns)
{
    divide(m, SV_NO_THREAD, track,
           &(struct sv_state_piece){
               .from_ns = from_ns, .to_ns = to_ns, .row = SV_NO_ROW, .call = SV_NO_ROW},
           &(struct via){.edge = SV_NO_EDGE, .class = NO_CLASS});
}

/* A time of the unit that no thread is known to. */
static void add_plain(struct maker *m, int64_t from_ns, int64_t to_ns, unsigned class,
                      unsigned doing)
{
    const struct sv_why_unit *u = &m->l->units[m->unit];
    add_piece(m, (struct sv_why_piece){.ts_ns = from_ns,
                                       .dur_ns = to_ns - from_ns,
                                       .edge = SV_NO_EDGE,
                                       .thread = SV_NO_THREAD,
                                       .row = u->row,
                                       .state = SV_NO_ROW,
                                       .class = (uint8_t) class,
                                       .doing = (uint8_t)doing,
                                       .is_assumed = true});
}

static void add_unknown(struct maker *m, int64_t from_ns, int64_t to_ns)
{
    add_plain(m, from_ns, to_ns, SV_WHY_UNKNOWN, SV_DOING_WAITS);
}

/* While its worker is free, batching or scheduling holds a request up. Where nothing is known of
 * the worker, the request is in the queue until it leaves that. */
static void add_held(struct maker *m, const struct sv_why_unit *u, int64_t from_ns, int64_t to_ns)
{
    int64_t left = u->busy || u->left_ns < from_ns ? from_ns
                   : u->left_ns > to_ns            ? to_ns
                                                   : u->left_ns;
    add_plain(m, from_ns, left, SV_WHY_QUEUE, SV_DOING_WAITS);
    add_unknown(m, left, to_ns);
}

/* A request before its worker runs it: what that one did for others meanwhile. */
static void walk_queue(struct maker *m, const struct sv_why_unit *u)
{
    struct sv_ledger *l = m->l;
    struct via v = {.edge = (uint32_t)l->n_edges, .class = SV_WHY_QUEUE, .depth = 1};
    int64_t at = u->ts_ns, end = u->run_ns;
    l->edges = sv_grow(l->edges, &l->edges_cap, l->n_edges + 1, sizeof *l->edges);
    l->edges[l->n_edges++] = (struct sv_why_edge){.before = SV_NO_EDGE,
                                                  .thread = u->thread,
                                                  .to = u->thread,
                                                  .wait = UINT32_MAX,
                                                  .part = UINT32_MAX,
                                                  .row = SV_NO_ROW,
                                                  .call = SV_NO_ROW,
                                                  .reason = SV_WAIT_FOR_OTHER};
    struct sv_spans busy = {0};
    if (u->busy)
        busy = sv_spans_part(u->busy, at, end);
    for (size_t i = 0; i < busy.n && at < end; i++) {
        int64_t from = busy.items[i].from_ns > at ? busy.items[i].from_ns : at,
                to = busy.items[i].to_ns < end ? busy.items[i].to_ns : end;
        add_held(m, u, at, from);
        if (u->thread != SV_NO_THREAD)
            walk(m, u->thread, from, to, v);
        else
            add_plain(m, from, to, SV_WHY_QUEUE, SV_DOING_WAITS);
        at = to;
    }
    add_held(m, u, at, end);
}

static void walk_unit(struct maker *m, uint32_t i)
{
    struct sv_ledger *l = m->l;
    struct sv_why_unit u = l->units[i];
    m->unit = i;
    m->first_edge = l->n_edges;
    l->units[i].first = l->n_pieces;
    m->sum_at = l->n_pieces + m->pieces_max;
    if (u.run_ns > u.ts_ns)
        walk_queue(m, &u);
    if (u.thread != SV_NO_THREAD)
        walk(m, u.thread, u.run_ns, u.done_ns, (struct via){.edge = SV_NO_EDGE, .class = NO_CLASS});
    else if (u.kind == SV_UNIT_IS_REQUEST) /* its phases say so */
        add_plain(m, u.run_ns, u.done_ns, SV_WHY_COMPUTE, SV_DOING_RUNS);
    else if (u.track)
        walk_track(m, u.track, u.run_ns, u.done_ns);
    else
        add_unknown(m, u.run_ns, u.done_ns);
    add_unknown(m, u.done_ns, u.ts_ns + u.dur_ns);
    l->units[i].end = l->n_pieces;
}

/* ---- all units, on several threads ---- */

/* Units that one thread walks, one after the other. */
struct part {
    struct maker m;
    struct sv_ledger l; /* what was found for them */
    size_t first, end;  /* units */
    size_t *edges;      /* by unit: its first one; and the end of the last */
    bool *is_summed;    /* by unit */
    size_t cap_edges, cap_summed;
};

/* Two bounds hold for all units together, in their order: when there are too many pieces, those of
 * further units are summed; when too much was followed, nothing more is. Who takes the parts, in
 * order, decides both, so that the result does not depend on the number of threads. */
struct crew {
    struct maker *m;    /* with the ledger that gets everything */
    struct maker usual; /* what each part begins with */
    struct sv_ledger empty;
    size_t next, each; /* units */
    bool is_full;      /* too many pieces: never again false; threads look at it */
    bool is_exhausted; /* too much was followed */
};

static bool fill_part(void *ctx, void *item)
{
    struct crew *c = ctx;
    struct part *x = item;
    x->first = c->next;
    x->end = x->first + c->each < c->empty.n_units ? x->first + c->each : c->empty.n_units;
    c->next = x->end;
    return x->first < x->end;
}

static void walk_part(void *ctx, void *item)
{
    const struct crew *c = ctx;
    struct part *x = item;
    struct sv_ledger kept = x->l;
    x->l = c->empty;
    x->l.pieces = kept.pieces;
    x->l.pieces_cap = kept.pieces_cap;
    x->l.edges = kept.edges;
    x->l.edges_cap = kept.edges_cap;
    x->m = c->usual;
    x->m.l = &x->l;
    x->edges = sv_grow(x->edges, &x->cap_edges, x->end - x->first + 1, sizeof *x->edges);
    x->is_summed = sv_grow(x->is_summed, &x->cap_summed, x->end - x->first, sizeof *x->is_summed);
    for (size_t i = x->first; i < x->end; i++) {
        x->edges[i - x->first] = x->l.n_edges;
        walk_unit(&x->m, (uint32_t)i);
        /* Once it is full, it is for all units that come later. */
        x->is_summed[i - x->first] = __atomic_load_n(&c->is_full, __ATOMIC_RELAXED);
        if (x->is_summed[i - x->first])
            sum_unit(&x->m);
        x->l.units[i].end = x->l.n_pieces;
    }
    x->edges[x->end - x->first] = x->l.n_edges;
}

static void free_part(void *item)
{
    struct part *x = item;
    free(x->l.pieces);
    free(x->l.edges);
    free(x->edges);
    free(x->is_summed);
}

/* Sums the last unit if there are too many pieces, or were before. */
static void settle_unit(struct crew *c, struct sv_why_unit *u, bool is_summed)
{
    struct maker *m = c->m;
    bool is_full = c->is_full || m->l->n_pieces > m->pieces_max;
    __atomic_store_n(&c->is_full, is_full, __ATOMIC_RELAXED);
    if (is_full && !is_summed)
        sum_unit(m);
    u->end = m->l->n_pieces;
}

/* Puts what was found for a unit behind what is there. */
static void take_unit(struct crew *c, const struct part *x, size_t i)
{
    struct sv_ledger *l = c->m->l;
    struct sv_why_unit *u = &l->units[i];
    size_t n = u->end - u->first, edge = x->edges[i - x->first],
           n_edges = x->edges[i - x->first + 1] - edge;
    l->pieces = sv_grow(l->pieces, &l->pieces_cap, l->n_pieces + n, sizeof *l->pieces);
    l->edges = sv_grow(l->edges, &l->edges_cap, l->n_edges + n_edges, sizeof *l->edges);
    c->m->unit = (uint32_t)i;
    c->m->first_edge = l->n_edges;
    for (size_t k = 0; k < n; k++) {
        struct sv_why_piece p = x->l.pieces[u->first + k];
        p.edge += p.edge != SV_NO_EDGE ? (uint32_t)(l->n_edges - edge) : 0;
        l->pieces[l->n_pieces + k] = p;
    }
    for (size_t k = 0; k < n_edges; k++) {
        struct sv_why_edge e = x->l.edges[edge + k];
        e.before += e.before != SV_NO_EDGE ? (uint32_t)(l->n_edges - edge) : 0;
        l->edges[l->n_edges + k] = e;
    }
    u->first = l->n_pieces;
    l->n_pieces += n;
    l->n_edges += n_edges;
    settle_unit(c, u, x->is_summed[i - x->first]);
}

static void take_part(struct crew *c, const struct part *x)
{
    struct maker *m = c->m;
    bool fits = m->followed + x->m.followed <= m->follow_max && !c->is_exhausted;
    c->is_exhausted = !fits;
    m->followed += fits ? x->m.followed : 0;
    m->l->is_summed |= fits && x->l.is_summed;
    for (size_t i = x->first; i < x->end; i++) {
        struct sv_why_unit *u = &m->l->units[i];
        if (fits) {
            take_unit(c, x, i);
            continue;
        }
        memset(u->class_ns, 0, sizeof u->class_ns);
        walk_unit(m, (uint32_t)i);
        settle_unit(c, u, false);
    }
}

static void walk_units(struct maker *m)
{
    enum { THREADS_FROM = 1 << 16, PARTS = 256 };
    struct sv_ledger *l = m->l;
    struct crew c = {.m = m, .usual = *m, .empty = *l, .each = l->n_units / PARTS + 1};
    bool is_small = l->trace->slices.n < THREADS_FROM && !m->threads;
    struct sv_workers *w = is_small ? NULL : sv_workers_new(m->threads);
    c.empty.pieces = NULL;
    c.empty.edges = NULL;
    c.empty.pieces_cap = c.empty.edges_cap = 0;
    c.usual.followed = 0;
    struct sv_line *line = sv_line_new(
        w, &(struct sv_line_ops){fill_part, walk_part, free_part, sizeof(struct part)}, &c);
    for (const struct part *x; (x = sv_line_next(line));)
        take_part(&c, x);
    sv_line_free(line);
    sv_workers_free(w);
    sv_units_count(l);
}

/* Nothing is marked: what repeats in the thread that leads takes its place. */
static void walk_again(struct maker *m, bool with_loaders)
{
    struct sv_ledger *l = m->l;
    struct sv_ledger_options o = {.step = -1, .with_loaders = with_loaders};
    struct sv_given_unit *found;
    size_t lead = 0;
    while (!l->units[lead].counts)
        lead++;
    o.n_given = sv_units_repeat(l, l->units[lead].thread, &o.given_kind, &found);
    o.given = found;
    if (o.n_given) {
        free(l->units);
        l->units = NULL;
        l->n_units = l->n_pieces = l->n_edges = 0;
        l->is_found = true;
        sv_units_find(l, &m->steps, &o);
        walk_units(m);
    }
    free(found);
}

void sv_ledger_make(struct sv_ledger *l, const struct sv_trace *t,
                    const struct sv_ledger_options *o)
{
    struct maker m = {.l = l,
                      .cat_runtime = sv_dict_find_str(t->dict, "cuda_runtime", 12),
                      .follow_max = t->slices.n * FOLLOW_PER_ROW + FOLLOW_LEAST};
    *l = (struct sv_ledger){.trace = t};
    m.threads = o->threads;
    m.pieces_max = o->pieces_max                                 ? o->pieces_max
                   : t->slices.n / ROWS_PER_PIECE > PIECES_LEAST ? t->slices.n / ROWS_PER_PIECE
                                                                 : PIECES_LEAST;
    sv_thread_states_init(&l->states, t);
    sv_data_workers_init(&l->workers, &l->states);
    sv_lock_waits_make(&l->locks, t);
    sv_open_slices_init(&m.open, t);
    if (o->steps)
        m.steps = *o->steps;
    else
        sv_steps_find(&m.steps, t, o->marker);
    sv_step_kinds_init(&m.kinds, &m.steps, t);
    sv_talkers_init(&m.peers, &l->states);
    sv_units_find(l, &m.steps, o);
    walk_units(&m);
    if (l->kind == SV_UNIT_IS_THREAD && o->step < 0 && l->n_counted)
        walk_again(&m, o->with_loaders);
    for (size_t i = 0; i < l->n_units; i++)
        l->units[i].busy = NULL; /* the caller's */
    sv_talkers_fini(&m.peers);
    sv_step_kinds_fini(&m.kinds);
    if (!o->steps)
        sv_steps_fini(&m.steps);
    sv_open_slices_fini(&m.open);
}

void sv_ledger_fini(struct sv_ledger *l)
{
    free(l->units);
    free(l->pieces);
    free(l->edges);
    sv_lock_waits_fini(&l->locks);
    sv_data_workers_fini(&l->workers);
    sv_thread_states_fini(&l->states);
    *l = (struct sv_ledger){0};
}

const struct sv_lock_wait *sv_why_wait(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    bool is_call = p->state == SV_NO_ROW && p->row != SV_NO_ROW &&
                   sv_state_is_call(&l->states, p->row);
    if ((p->state == SV_NO_ROW && !is_call) || p->thread == SV_NO_THREAD)
        return NULL;
    return sv_lock_wait_at(&l->locks, l->states.threads[p->thread].track,
                           l->trace->slices.ts_ns[is_call ? p->row : p->state]);
}

struct sv_text sv_why_path(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    const struct sv_thread_states *s = &l->states;
    struct sv_text ring = {"anon_inode:[io_uring]", 21}, path = {"", 0};
    uint32_t row = SV_NO_ROW;
    if (p->row != SV_NO_ROW && sv_state_has_file(s, p->row))
        path = sv_call_path(s, p->row);
    if (path.len == ring.len && memcmp(path.bytes, ring.bytes, ring.len) == 0 &&
        p->thread != SV_NO_THREAD)
        row = sv_state_request(s, p->thread, sv_sat_add(p->ts_ns, p->dur_ns));
    return row != SV_NO_ROW ? sv_call_path(s, row) : path;
}

const struct sv_lock_wait *sv_why_edge_wait(const struct sv_ledger *l, uint32_t edge)
{
    uint32_t wait = edge != SV_NO_EDGE ? l->edges[edge].wait : UINT32_MAX;
    return wait != UINT32_MAX ? &l->locks.waits[wait] : NULL;
}

struct sv_text sv_why_released_in(const struct sv_ledger *l, uint32_t edge)
{
    const struct sv_lock_wait *wait = sv_why_edge_wait(l, edge);
    if (!wait)
        return (struct sv_text){"", 0};
    uint32_t part = l->edges[edge].part;
    struct sv_text frame = part != UINT32_MAX ? l->locks.parts[part].by.frame : wait->by.frame;
    return frame.len ? frame : (struct sv_text){"", 0};
}

uint32_t sv_why_first_edge(const struct sv_ledger *l, uint32_t edge)
{
    uint32_t first = SV_NO_EDGE;
    for (; edge != SV_NO_EDGE; edge = l->edges[edge].before) {
        const struct sv_lock_wait *wait = sv_why_edge_wait(l, edge);
        first = wait && wait->use == SV_LOCK_JOIN ? first : edge;
    }
    return first;
}

struct sv_text sv_why_frame(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    const struct sv_lock_wait *wait = p->doing != SV_DOING_RUNS ? sv_why_wait(l, p) : NULL;
    if (wait && wait->frame.len)
        return wait->frame;
    struct sv_text released = sv_why_released_in(l, p->edge);
    if (released.len)
        return released;
    if (p->row != SV_NO_ROW && !sv_state_has_file(&l->states, p->row) &&
        p->row != l->units[p->unit].row)
        return sv_dict_text(l->trace->dict, l->trace->slices.name[p->row]);
    return (struct sv_text){"", 0};
}

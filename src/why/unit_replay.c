/* Units without something: a replay of all threads. Called by explain, for gains, and by whatif.
 *
 * Threads are run in the order of the measured ends of their pieces. For each pick a thread has its
 * own new time. A piece that is a thread's own doing takes its length; a wait that another thread
 * ended lasts until that one's new time. */
#include "why/unit_replay.h"

#include "core/base/glob.h"
#include "core/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The begin or the end of a unit on its thread. */
struct edge {
    uint32_t thread;
    int64_t ts_ns;
    bool is_end;
};

/* A thread at work for another one, which woke it, or woke who woke it. */
struct helper {
    uint32_t thread;
    int64_t since_ns;
};

struct runner {
    struct sv_state_cursor cursor;
    struct sv_state_piece piece;
    bool has_begun, is_over, is_producer;
    int64_t begin_ns;       /* of the wait that its piece is, or is a part of */
    uint32_t works_for;     /* SV_NO_THREAD: nobody */
    struct helper *helpers; /* who works for it */
    size_t n_helpers, cap_helpers;
    uint64_t woken;         /* how often a unit's own thread ended its wait */
    size_t edge, end_edges; /* of units */
    size_t at, end;         /* pieces of the ledger that it did: the next one to look at */
};

struct replay {
    const struct sv_ledger *l;
    const struct sv_without *picks;
    size_t n; /* picks */
    int64_t from_ns, to_ns;
    struct runner *runners;    /* by thread */
    double *now, *keep, *work; /* by thread, then pick */
    uint32_t *heap;
    size_t n_heap;
    struct edge *edges;
    uint8_t *is_picked;  /* by thread, then pick: its name */
    struct sv_map files; /* path → bits of picks */
    uint32_t *pieces;    /* of the ledger, those of units that count, by doer and time */
    struct sv_replayed *to;
    bool is_lone;   /* all units are of one thread */
    bool has_files; /* a pick names some */
};

/* ---- the heap of threads, by the end of their pieces ---- */

static int64_t due(const struct replay *r, uint32_t thread)
{
    const struct runner *x = &r->runners[thread];
    int64_t begins = r->l->states.threads[thread].from_ns;
    return x->has_begun ? x->piece.to_ns : begins > r->from_ns ? begins : r->from_ns;
}

static bool is_before(const struct replay *r, uint32_t a, uint32_t b)
{
    int64_t x = due(r, a), y = due(r, b);
    return x != y ? x < y : a < b;
}

static void sink(struct replay *r, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t k = 2 * at + 1; k <= 2 * at + 2 && k < r->n_heap; k++)
            if (is_before(r, r->heap[k], r->heap[least]))
                least = k;
        if (least == at)
            return;
        uint32_t x = r->heap[at];
        r->heap[at] = r->heap[least];
        r->heap[least] = x;
        at = least;
    }
}

/* ---- what is gone ---- */

static bool is_called(const char *glob, struct sv_text text)
{
    return sv_glob_match(glob, text.bytes, text.len);
}

static uint8_t is_thread_picked(const struct replay *r, const char *glob, uint32_t thread)
{
    const struct sv_dict *d = r->l->trace->dict;
    const struct sv_thread_rows *x = &r->l->states.threads[thread];
    char tid[24], pid[24];
    int n_tid = snprintf(tid, sizeof tid, "%" PRId64, d->tracks[x->track].tid),
        n_pid = snprintf(pid, sizeof pid, "%" PRId64, d->tracks[x->track].pid);
    return is_called(glob, sv_dict_text(d, d->tracks[x->track].name)) ||
           is_called(glob, sv_dict_text(d, d->tracks[x->process].name)) ||
           is_called(glob, (struct sv_text){tid, (uint32_t)n_tid}) ||
           is_called(glob, (struct sv_text){pid, (uint32_t)n_pid});
}

/* Bits of the picks that the call's file is of. */
static uint64_t files_of(struct replay *r, uint32_t call)
{
    struct sv_text path = sv_call_path(&r->l->states, call);
    bool is_new;
    if (!path.len)
        return 0;
    uint64_t *bits = sv_map_add(&r->files, sv_hash_bytes(path.bytes, path.len, 9), &is_new);
    const char *slash = memrchr(path.bytes, '/', path.len);
    struct sv_text name = path;
    if (slash)
        name = (struct sv_text){slash + 1, path.len - (uint32_t)(slash + 1 - path.bytes)};
    for (size_t k = 0; is_new && k < r->n; k++)
        if (r->picks[k].file &&
            (is_called(r->picks[k].file, path) || is_called(r->picks[k].file, name)))
            *bits |= 1ull << k;
    return *bits;
}

static bool is_lock(const struct sv_lock_wait *w, const char *glob)
{
    char address[24];
    if (!w)
        return false;
    int n = snprintf(address, sizeof address, "0x%" PRIx64, w->lock);
    return is_called(glob, (struct sv_text){address, (uint32_t)n}) ||
           (w->lock_name.len && is_called(glob, w->lock_name)) ||
           (w->is_gil && strcmp(glob, "gil") == 0);
}

/* Which part of the thread's piece the ledger gives to the pick: 0 to 1. */
static double part_of_ledger(const struct replay *r, uint32_t thread,
                             const struct sv_state_piece *p, const struct sv_without *w)
{
    const struct sv_ledger *l = r->l;
    int64_t ns = 0;
    for (size_t i = r->runners[thread].at; i < r->runners[thread].end; i++) {
        const struct sv_why_piece *x = &l->pieces[r->pieces[i]];
        if (x->ts_ns >= p->to_ns)
            break;
        bool is_it = w->of ? w->of[r->pieces[i]] == w->number : x->class == w->class;
        int64_t from = x->ts_ns > p->from_ns ? x->ts_ns : p->from_ns,
                to = x->ts_ns + x->dur_ns < p->to_ns ? x->ts_ns + x->dur_ns : p->to_ns;
        ns += is_it && to > from ? to - from : 0;
    }
    double part = (double)ns / (double)(p->to_ns - p->from_ns);
    return part < 1 ? part : 1; /* several units may wait for the same */
}

static bool has_ledger_pick(const struct sv_without *w)
{
    return w->of || w->class != SV_N_WHY_CLASSES;
}

/* How much of the thread's piece stays, by pick. */
static void weigh(struct replay *r, uint32_t thread)
{
    const struct sv_ledger *l = r->l;
    struct runner *x = &r->runners[thread];
    const struct sv_state_piece *p = &x->piece;
    bool is_work = sv_state_is_work(p) && p->from_ns < l->states.threads[thread].to_ns;
    for (; x->at < x->end; x->at++) { /* pieces that ended before */
        const struct sv_why_piece *y = &l->pieces[r->pieces[x->at]];
        if (y->ts_ns + y->dur_ns > p->from_ns)
            break;
    }
    uint64_t files = r->has_files && p->call != SV_NO_ROW && sv_state_has_file(&l->states, p->call)
                         ? files_of(r, p->call)
                         : 0;
    for (size_t k = 0; k < r->n; k++) {
        const struct sv_without *w = &r->picks[k];
        double gone = 0;
        if (w->file && files >> k & 1)
            gone = 1;
        else if (w->thread && is_work)
            gone = r->is_picked[thread * r->n + k];
        else if (w->lock && p->row != SV_NO_ROW)
            gone = is_lock(sv_lock_wait_at(&l->locks, l->states.threads[thread].track,
                                           l->trace->slices.ts_ns[p->row]),
                           w->lock);
        else if (x->at < x->end && has_ledger_pick(w))
            gone = part_of_ledger(r, thread, p, w);
        r->keep[thread * r->n + k] = 1 - gone * (1 - w->keep);
        r->to[k].gone_ns += gone * (1 - w->keep) * (double)(p->to_ns - p->from_ns);
    }
}

/* ---- the run ---- */

/* The new time of a thread at a measured one that lies in its piece. */
static double new_time(const struct replay *r, uint32_t thread, size_t k, int64_t ts_ns)
{
    const struct runner *x = &r->runners[thread];
    double now = r->now[thread * r->n + k];
    int64_t passed = ts_ns > x->piece.from_ns ? ts_ns - x->piece.from_ns : 0;
    return x->is_over ? now : now + r->keep[thread * r->n + k] * (double)passed;
}

/* Loads the thread's next piece; false: it has none. */
static bool next_piece(struct replay *r, uint32_t thread)
{
    struct runner *x = &r->runners[thread];
    const struct sv_state_piece *p = &x->piece;
    x->is_over = !sv_state_next(&x->cursor, &x->piece);
    if (x->is_over)
        return false;
    x->begin_ns = p->row != SV_NO_ROW ? r->l->trace->slices.ts_ns[p->row] : p->from_ns;
    weigh(r, thread);
    return true;
}

static bool begin_thread(struct replay *r, uint32_t thread)
{
    struct runner *x = &r->runners[thread];
    const struct sv_thread_rows *rows = &r->l->states.threads[thread];
    int64_t at = due(r, thread);
    uint32_t starter = rows->starter;
    bool is_started = at > r->from_ns && starter != SV_NO_THREAD && starter != thread &&
                      r->runners[starter].has_begun;
    for (size_t k = 0; k < r->n; k++)
        r->now[thread * r->n + k] = is_started ? new_time(r, starter, k, at) : (double)at;
    x->has_begun = true;
    x->cursor = sv_state_window(&r->l->states, thread, at, r->to_ns);
    return next_piece(r, thread);
}

/* Adds what lies between the units' begins and ends. */
static void count_units(struct replay *r, uint32_t thread, size_t k, double from, double to)
{
    const struct runner *x = &r->runners[thread];
    double len = (double)(x->piece.to_ns - x->piece.from_ns);
    for (size_t i = x->edge; i < x->end_edges && r->edges[i].ts_ns <= x->piece.to_ns; i++) {
        double part = (double)(r->edges[i].ts_ns - x->piece.from_ns) / len;
        double at = from + (part > 0 ? part : 0) * (to - from);
        r->to[k].ns += r->edges[i].is_end ? at : -at;
    }
}

/* ---- who works for whom ---- */

static bool is_wait(const struct sv_state_piece *p)
{
    return !sv_state_is_work(p) && p->reason != SV_WAIT_FOR_CPU;
}

/* `waker` has woken the thread: it now works for that one, if units are its, or for the one that
 * this works for. */
static void begin_help(struct replay *r, uint32_t thread, uint32_t waker, int64_t ts_ns)
{
    enum { HELPERS_MAX = 256 };
    struct runner *x = &r->runners[thread];
    uint32_t to = r->runners[waker].end_edges ? waker : r->runners[waker].works_for;
    struct runner *y = to != SV_NO_THREAD ? &r->runners[to] : NULL;
    if (!y || x->end_edges || x->works_for == to || y->n_helpers == HELPERS_MAX)
        return;
    y->helpers = sv_grow(y->helpers, &y->cap_helpers, y->n_helpers + 1, sizeof *y->helpers);
    y->helpers[y->n_helpers++] = (struct helper){thread, ts_ns};
    x->works_for = to;
}

/* A helper has ended a wait of the thread. Other helpers that became idle while it waited have done
 * their part, too: who comes last ends the wait, which may be another one than it was. Raises `at`,
 * by pick, to the latest of their ends. */
static void end_help(struct replay *r, uint32_t thread, uint32_t waker, double *at)
{
    struct runner *x = &r->runners[thread];
    size_t kept = 0;
    for (size_t i = 0; i < x->n_helpers; i++) {
        const struct helper h = x->helpers[i];
        struct runner *y = &r->runners[h.thread];
        bool is_idle = !y->is_over && is_wait(&y->piece) && y->begin_ns > h.since_ns;
        if (y->works_for != thread)
            continue;
        if (h.thread != waker && !is_idle) {
            x->helpers[kept++] = h;
            continue;
        }
        y->works_for = SV_NO_THREAD;
        for (size_t k = 0; k < r->n && h.thread != waker && y->begin_ns >= x->begin_ns; k++) {
            double done = r->now[h.thread * r->n + k];
            at[k] = done > at[k] ? done : at[k];
        }
    }
    x->n_helpers = kept;
}

/* Does a later wait, which a thread ends, go on with this one? Then it takes that one's time. */
static bool goes_on(const struct replay *r, const struct sv_state_piece *p)
{
    const struct sv_thread_states *s = &r->l->states;
    uint32_t last = is_wait(p) ? sv_state_wait_ends(s, p, false) : p->row;
    return last != p->row && sv_state_waker(s, last).kind == SV_WAKER_THREAD;
}

/* Ends the piece of a thread; false: it was its last. */
static bool end_piece(struct replay *r, uint32_t thread)
{
    const struct sv_thread_states *s = &r->l->states;
    struct runner *x = &r->runners[thread];
    const struct sv_state_piece *p = &x->piece;
    uint32_t waker = SV_NO_THREAD;
    bool is_work = sv_state_is_work(p), is_there = p->from_ns < s->threads[thread].to_ns;
    if (!is_work && p->reason != SV_WAIT_FOR_CPU && p->row != SV_NO_ROW)
        waker = sv_state_waker(s, p->row).thread;
    if (waker != SV_NO_THREAD &&
        (waker == thread || !r->runners[waker].has_begun || r->runners[waker].is_over))
        waker = SV_NO_THREAD;
    double len = goes_on(r, p) ? 0 : (double)(p->to_ns - p->from_ns);
    x->woken += waker != SV_NO_THREAD && r->runners[waker].end_edges;
    double helped[SV_WITHOUT_MAX] = {0};
    if (waker != SV_NO_THREAD && p->to_ns == sv_trace_end_ns(r->l->trace, p->row)) {
        if (r->runners[waker].works_for == thread)
            end_help(r, thread, waker, helped);
        else
            begin_help(r, thread, waker, p->to_ns);
    }
    for (size_t k = 0; k < r->n; k++) {
        double *now = &r->now[thread * r->n + k], keep = r->keep[thread * r->n + k], lasts = len;
        if (waker != SV_NO_THREAD) {
            lasts = new_time(r, waker, k, p->to_ns);
            lasts = (lasts > helped[k] ? lasts : helped[k]) - *now;
            lasts = lasts > 0 ? lasts : 0;
        }
        if (is_work && is_there)
            r->work[thread * r->n + k] += keep * lasts;
        count_units(r, thread, k, *now, *now + keep * lasts);
        *now += keep * lasts;
    }
    while (x->edge < x->end_edges && r->edges[x->edge].ts_ns <= p->to_ns)
        x->edge++;
    return next_piece(r, thread);
}

static void run(struct replay *r)
{
    while (r->n_heap) {
        uint32_t thread = r->heap[0];
        bool goes_on = r->runners[thread].has_begun ? end_piece(r, thread)
                                                    : begin_thread(r, thread);
        if (!goes_on)
            r->heap[0] = r->heap[--r->n_heap];
        sink(r, 0);
    }
}

/* ---- the whole ---- */

static int by_thread(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (int)x->is_end - (int)y->is_end;
}

static void find_units(struct replay *r)
{
    const struct sv_ledger *l = r->l;
    size_t n = 0;
    r->edges = sv_alloc((2 * l->n_units + 1) * sizeof *r->edges);
    r->pieces = sv_alloc((l->n_pieces + 1) * sizeof *r->pieces);
    r->from_ns = INT64_MAX;
    r->to_ns = INT64_MIN;
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        if (!u->counts || u->thread == SV_NO_THREAD)
            continue;
        r->from_ns = u->ts_ns < r->from_ns ? u->ts_ns : r->from_ns;
        r->to_ns = u->ts_ns + u->dur_ns > r->to_ns ? u->ts_ns + u->dur_ns : r->to_ns;
        r->edges[n++] = (struct edge){u->thread, u->ts_ns, false};
        r->edges[n++] = (struct edge){u->thread, u->ts_ns + u->dur_ns, true};
    }
    if (n)
        qsort(r->edges, n, sizeof *r->edges, by_thread);
    r->is_lone = n && r->edges[0].thread == r->edges[n - 1].thread;
    for (size_t i = 0; i < n; i++) {
        struct runner *x = &r->runners[r->edges[i].thread];
        x->edge = x->end_edges ? x->edge : i;
        x->end_edges = i + 1;
    }
}

/* Who did a piece. What nobody of the trace did is the time of the one who waited. */
static uint32_t doer(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    bool is_known = p->thread != SV_NO_THREAD && p->doing != SV_DOING_AWAY &&
                    p->doing != SV_DOING_WAITS;
    return is_known || p->edge == SV_NO_EDGE ? p->thread : l->edges[p->edge].thread;
}

static int by_begin(const void *a, const void *b, void *of)
{
    const struct sv_ledger *l = *(const struct sv_ledger **)of;
    int64_t x = l->pieces[*(const uint32_t *)a].ts_ns, y = l->pieces[*(const uint32_t *)b].ts_ns;
    return (x > y) - (x < y);
}

/* Pieces by their doers; those of several units are put in the order of time. */
static void sort_pieces(struct replay *r)
{
    const struct sv_ledger *l = r->l;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < l->n_pieces; i++) {
            const struct sv_why_piece *p = &l->pieces[i];
            uint32_t by = l->units[p->unit].counts ? doer(l, p) : SV_NO_THREAD;
            if (by == SV_NO_THREAD)
                continue;
            if (pass)
                r->pieces[r->runners[by].end] = (uint32_t)i;
            r->runners[by].end++;
        }
        for (uint32_t i = 0; i < l->states.n && !pass; i++) {
            r->runners[i].at = n;
            n += r->runners[i].end;
            r->runners[i].end = r->runners[i].at;
        }
    }
    for (uint32_t i = 0; i < l->states.n; i++) {
        struct runner *x = &r->runners[i];
        bool is_sorted = true;
        for (size_t k = x->at + 1; k < x->end && is_sorted; k++)
            is_sorted = l->pieces[r->pieces[k - 1]].ts_ns <= l->pieces[r->pieces[k]].ts_ns;
        if (!is_sorted)
            qsort_r(&r->pieces[x->at], x->end - x->at, sizeof *r->pieces, by_begin, &r->l);
    }
}

/* Those that a unit's own thread waited for, for what they make. */
static void find_producers(struct replay *r)
{
    const struct sv_ledger *l = r->l;
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        bool is_made =
            l->units[p->unit].counts &&
            (p->class == SV_WHY_DATA || p->class == SV_WHY_PIPE || p->class == SV_WHY_SOCKET);
        uint32_t edge = is_made ? sv_why_first_edge(l, p->edge) : SV_NO_EDGE,
                 to = edge != SV_NO_EDGE ? l->edges[edge].to : SV_NO_THREAD;
        if (to != SV_NO_THREAD && to != l->units[p->unit].thread)
            r->runners[to].is_producer = true;
    }
}

/* The units of one thread take at least as long as each of its producers works: of those that it
 * waited for, and of those that waited for it, as who works ahead waits for room. */
static void bound(struct replay *r)
{
    enum { OFTEN = 4 };
    for (uint32_t i = 0; r->is_lone && i < r->l->states.n; i++)
        for (size_t k = 0; k < r->n && (r->runners[i].is_producer ||
                                        r->runners[i].woken > r->l->n_counted / OFTEN);
             k++)
            if (r->to[k].ns < r->work[i * r->n + k])
                r->to[k].ns = r->work[i * r->n + k];
}

void sv_units_replay(const struct sv_ledger *l, const struct sv_without *picks, size_t n,
                     struct sv_replayed *to)
{
    size_t threads = l->states.n, cells = (threads + 1) * n;
    struct replay r = {.l = l,
                       .picks = picks,
                       .n = n < SV_WITHOUT_MAX ? n : SV_WITHOUT_MAX,
                       .runners = sv_alloc((threads + 1) * sizeof *r.runners),
                       .now = sv_alloc(cells * sizeof *r.now),
                       .keep = sv_alloc(cells * sizeof *r.keep),
                       .work = sv_alloc(cells * sizeof *r.work),
                       .is_picked = sv_alloc(cells),
                       .heap = sv_alloc((threads + 1) * sizeof *r.heap),
                       .to = to};
    memset(to, 0, n * sizeof *to);
    for (size_t i = 0; i < threads; i++)
        r.runners[i].works_for = SV_NO_THREAD;
    find_units(&r);
    sort_pieces(&r);
    find_producers(&r);
    for (size_t k = 0; k < r.n; k++)
        r.has_files |= picks[k].file != NULL;
    for (uint32_t i = 0; i < threads; i++) {
        const struct sv_thread_rows *x = &l->states.threads[i];
        for (size_t k = 0; k < r.n; k++)
            r.is_picked[i * r.n + k] = picks[k].thread && is_thread_picked(&r, picks[k].thread, i);
        if (x->to_ns > r.from_ns && x->from_ns < r.to_ns)
            r.heap[r.n_heap++] = i;
    }
    for (size_t i = r.n_heap / 2; i-- > 0;)
        sink(&r, i);
    run(&r);
    bound(&r);
    sv_map_fini(&r.files);
    free(r.pieces);
    free(r.edges);
    free(r.heap);
    free(r.is_picked);
    free(r.work);
    free(r.keep);
    free(r.now);
    for (size_t i = 0; i < threads; i++)
        free(r.runners[i].helpers);
    free(r.runners);
}

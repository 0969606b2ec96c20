/* What units wait for, and who had it: groups of pieces of the ledger, largest first. Called by
 * explain/explain.c; what is behind data and files is in explain/explain_files.c.
 *
 * A group is what one cause would be: the waits for one lock, for one peer, for the loaders. Its
 * culprit is whoever had most of its time, with the function and file that had most of that. */
#include "explain/waits.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "store/ranks.h"
#include "why/coverage.h"
#include "why/unit_replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 8, CLASS_BITS = 4 };
_Static_assert(SV_N_WHY_CLASSES <= 1 << CLASS_BITS, "a key has room for the class");

/* ---- groups ---- */

static uint64_t hash_text(struct sv_text t)
{
    return sv_hash_bytes(t.bytes, t.len, 7);
}

/* Does who is waited for only pass on what comes through a pipe, or from a child? */
static bool passes_on(const struct sv_ledger *l, const struct sv_why_edge *e, uint32_t own)
{
    return (e->reason == SV_WAIT_FOR_PIPE || e->reason == SV_WAIT_FOR_CHILD) &&
           e->to != SV_NO_THREAD &&
           l->states.threads[e->to].process != l->states.threads[own].process;
}

/* The process or thread that the unit's own thread waited for; SV_NO_THREAD: none is known. What a
 * shell, a stage of a pipeline or a thread that only receives waits for in turn is that one's. */
uint32_t sv_waited_for(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint32_t first = sv_why_first_edge(l, p->edge), to;
    bool is_passed_on = p->class == SV_WHY_DATA || p->class == SV_WHY_PIPE ||
                        p->class == SV_WHY_CHILD;
    if (first == SV_NO_EDGE)
        return SV_NO_THREAD;
    if (!is_passed_on)
        return l->edges[first].to;
    to = l->edges[p->edge].to;
    for (uint32_t e = p->edge; e != first; e = l->edges[e].before)
        if (!passes_on(l, &l->edges[e], l->edges[first].thread))
            to = l->edges[e].thread;
    return to;
}

bool sv_is_of_loader(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint32_t edge = sv_why_first_edge(l, p->edge), to = sv_waited_for(l, p);
    return to != SV_NO_THREAD &&
           l->states.threads[to].process != l->states.threads[l->edges[edge].thread].process;
}

/* Threads of a process with one name, or names that end in numbers, are a pool: who of them does it
 * is chance. */
static uint64_t pool_of(const struct sv_ledger *l, uint32_t thread)
{
    if (thread == SV_NO_THREAD)
        return (uint64_t)thread + 1;
    const struct sv_thread_rows *x = &l->states.threads[thread];
    struct sv_text name = sv_dict_text(l->trace->dict, l->trace->dict->tracks[x->track].name);
    while (name.len && strchr("0123456789_-", name.bytes[name.len - 1]))
        name.len--;
    return name.len ? sv_mix64(hash_text(name) ^ x->process) : (uint64_t)thread + 1;
}

/* By the name of another process, as sentences have it: processes of one name are one cause. */
static uint64_t name_key(const struct sv_ledger *l, const struct sv_why_piece *p, uint32_t to)
{
    const struct sv_thread_rows *threads = l->states.threads;
    const struct sv_track_info *tracks = l->trace->dict->tracks;
    uint32_t waiter = l->units[p->unit].thread;
    sv_str own = tracks[threads[to].track].name,
           its = waiter != SV_NO_THREAD ? tracks[threads[waiter].track].name : 0;
    return own && own != its ? own : tracks[threads[to].process].name;
}

/* What makes two pieces of a class one cause. */
static uint64_t part_of_class(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint32_t edge = sv_why_first_edge(l, p->edge), to = sv_waited_for(l, p);
    const struct sv_lock_wait *wait = sv_why_edge_wait(l, edge);
    switch (p->class) {
    case SV_WHY_LOCK: return !wait ? 0 : wait->lock ? wait->lock : pool_of(l, to);
    case SV_WHY_DATA: return sv_is_of_loader(l, p) ? 0 : pool_of(l, to);
    case SV_WHY_PIPE:
    case SV_WHY_SOCKET:
    case SV_WHY_CHILD:
        return to != SV_NO_THREAD ? name_key(l, p, to) : hash_text(sv_why_path(l, p));
    default: return 0;
    }
}

static bool is_stopped(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    return p->class == SV_WHY_UNKNOWN && p->state != SV_NO_ROW &&
           l->states.state_of[l->trace->slices.name[p->state]] == SV_WAIT_STATE_STOPPED;
}

static uint64_t key_of_part(unsigned class, uint64_t part)
{
    return sv_mix64(part) << CLASS_BITS | class;
}

/* Computing is divided by the slice that it is in. */
static uint64_t key_of(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint64_t part = p->class != SV_WHY_COMPUTE ? part_of_class(l, p)
                    : p->row != SV_NO_ROW && p->row != l->units[p->unit].row
                        ? l->trace->slices.name[p->row]
                        : 0;
    part = is_stopped(l, p) ? 1 : part;
    return key_of_part(p->class, part);
}

/* Looks often miss who made the data that a thread waits for: where loaders are known to make it,
 * they are taken to make all of it. */
static void give_to_loaders(struct sv_wait_groups *g, const struct sv_ledger *l,
                            const struct sv_map *by_key)
{
    const uint64_t *loaders = sv_map_find(by_key, key_of_part(SV_WHY_DATA, 0)),
                   *nobody =
                       sv_map_find(by_key, key_of_part(SV_WHY_DATA, pool_of(l, SV_NO_THREAD)));
    if (!loaders || !nobody || !sv_coverage_is_looked(l->trace->dict))
        return;
    for (size_t i = 0; i < l->n_pieces; i++)
        if (g->of[i] == *nobody)
            g->of[i] = (uint32_t)*loaders;
    g->items[*loaders].ns = sv_sat_add(g->items[*loaders].ns, g->items[*nobody].ns);
    g->items[*nobody].ns = 0;
}

/* The group of each piece, and the time of each group. */
static void find_groups(struct sv_wait_groups *g, const struct sv_ledger *l)
{
    struct sv_map by_key = {0};
    size_t cap = 0;
    bool is_new;
    *g = (struct sv_wait_groups){.of = sv_alloc((l->n_pieces + 1) * sizeof *g->of)};
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (!l->units[p->unit].counts) {
            g->of[i] = UINT32_MAX;
            continue;
        }
        uint64_t key = key_of(l, p), *at = sv_map_add(&by_key, key, &is_new);
        if (is_new) {
            g->items = sv_grow(g->items, &cap, g->n + 1, sizeof *g->items);
            g->items[g->n] =
                (struct sv_wait_sum){.class = p->class, .is_stopped = is_stopped(l, p)};
            *at = g->n++;
        }
        g->of[i] = (uint32_t)*at;
        g->items[*at].ns = sv_sat_add(g->items[*at].ns, p->dur_ns);
    }
    give_to_loaders(g, l, &by_key);
    sv_map_fini(&by_key);
}

bool sv_waits_has(const struct sv_wait_group *w, size_t piece)
{
    const struct sv_explaining *x = w->x;
    return x->groups->of[piece] == w->number &&
           (!x->asked || x->asked[x->ledger->pieces[piece].unit]);
}

/* ---- what a group is made of ---- */

void sv_why_sums_add(struct sv_why_sums *t, uint64_t key, uint32_t piece, int64_t ns)
{
    bool is_new;
    uint64_t *at = sv_map_add(&t->by_key, key, &is_new);
    if (is_new) {
        t->items = sv_grow(t->items, &t->cap, t->n + 1, sizeof *t->items);
        t->items[t->n] = (struct sv_why_sum){.key = key, .piece = piece};
        *at = t->n++;
    }
    struct sv_why_sum *x = &t->items[*at];
    x->ns = sv_sat_add(x->ns, ns);
    x->n++;
    if (ns > x->longest_ns) {
        x->longest_ns = ns;
        x->piece = piece;
    }
}

const struct sv_why_sum *sv_why_sums_most(const struct sv_why_sums *t)
{
    const struct sv_why_sum *best = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (!best || t->items[i].ns > best->ns ||
            (t->items[i].ns == best->ns && t->items[i].key < best->key))
            best = &t->items[i];
    return best;
}

void sv_why_sums_fini(struct sv_why_sums *t)
{
    sv_map_fini(&t->by_key);
    free(t->items);
    *t = (struct sv_why_sums){0};
}

static void keep_worst(struct sv_answer *a, const struct sv_why_unit *u, int64_t ns)
{
    struct sv_worst w = {.number = u->number, .ts_ns = u->ts_ns, .dur_ns = ns};
    size_t at = a->n_worst;
    a->n_units++;
    while (at > 0 && a->worst[at - 1].dur_ns < ns)
        at--;
    if (at == SV_EXPLAIN_WORST)
        return;
    a->n_worst += a->n_worst < SV_EXPLAIN_WORST;
    memmove(&a->worst[at + 1], &a->worst[at], (a->n_worst - at - 1) * sizeof *a->worst);
    a->worst[at] = w;
}

/* The thread that a piece is charged to: who had what was waited for. In communication that is the
 * first one in another rank: threads of the own one only pass on. */
uint32_t sv_waits_holder(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint32_t to = sv_waited_for(l, p), own = l->units[p->unit].thread;
    for (uint32_t e = p->class == SV_WHY_COMM && own != SV_NO_THREAD ? p->edge : SV_NO_EDGE;
         e != SV_NO_EDGE; e = l->edges[e].before)
        if (l->edges[e].to != SV_NO_THREAD &&
            l->states.threads[l->edges[e].to].process != l->states.threads[own].process)
            to = l->edges[e].to;
    return to != SV_NO_THREAD ? to : p->thread;
}

static bool is_moment(const struct sv_why_piece *p, unsigned doing)
{
    return p->doing == doing &&
           (p->is_sum ? p->is_sum == SV_WHY_SUM_OF_MOMENTS : p->dur_ns < SV_WHY_MOMENT_NS);
}

/* Does the thread read right before the piece? A sum has no place in time, but stays near the sums
 * of what came between its own. */
static bool is_after_read(const struct sv_ledger *l, size_t i)
{
    enum { NEAR = 8 };
    const struct sv_why_piece *p = &l->pieces[i];
    const struct sv_why_unit *u = &l->units[p->unit];
    if (!p->is_sum)
        return i > 0 && p[-1].doing == SV_DOING_READS;
    for (size_t k = i > u->first + NEAR ? i - NEAR : u->first; k < u->end && k <= i + NEAR; k++)
        if (l->pieces[k].thread == p->thread && is_moment(&l->pieces[k], SV_DOING_READS))
            return true;
    return false;
}

static void collect(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    uint32_t unit = UINT32_MAX;
    int64_t in_unit = 0;
    struct sv_why_sums unknown = {0}; /* nobody is known to have it */
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (!sv_waits_has(w, i))
            continue;
        bool is_read = is_moment(p, SV_DOING_READS),
             is_between = is_moment(p, SV_DOING_RUNS) && is_after_read(l, i);
        w->rapid_ns += is_read || is_between ? p->dur_ns : 0;
        w->rapid_reads_ns += is_read ? p->dur_ns : 0;
        if (p->unit != unit) {
            if (unit != UINT32_MAX)
                keep_worst(&w->answer, &l->units[unit], in_unit);
            unit = p->unit;
            in_unit = 0;
        }
        in_unit += p->dur_ns;
        w->ns += p->dur_ns;
        w->doing_ns[p->doing] += p->dur_ns;
        w->assumed_ns += p->is_assumed ? p->dur_ns : 0;
        uint32_t holder = sv_waits_holder(l, p);
        bool is_unknown = p->class == SV_WHY_DATA && sv_waited_for(l, p) == SV_NO_THREAD;
        sv_why_sums_add(is_unknown ? &unknown : &w->holders, holder, (uint32_t)i, p->dur_ns);
        struct sv_text path = sv_why_path(l, p);
        if (path.len && p->doing <= SV_DOING_FAULTS)
            sv_why_sums_add(&w->paths, hash_text(path), (uint32_t)i, p->dur_ns);
    }
    if (unit != UINT32_MAX)
        keep_worst(&w->answer, &l->units[unit], in_unit);
    if (w->holders.n) {
        sv_why_sums_fini(&unknown);
    } else {
        sv_why_sums_fini(&w->holders);
        w->holders = unknown;
    }
}

/* ---- words ---- */

unsigned sv_waits_doing(const struct sv_wait_group *w)
{
    unsigned best = 0;
    for (unsigned i = 1; i < SV_N_DOINGS; i++)
        if (w->doing_ns[i] > w->doing_ns[best])
            best = i;
    return best;
}

/* The same, of who is in the trace. */
static unsigned waits_doing_of_others(const struct sv_wait_group *w)
{
    struct sv_wait_group rest = *w;
    rest.doing_ns[SV_DOING_AWAY] = 0;
    return sv_waits_doing(&rest);
}

/* Who waits: the unit's own thread, or the one whose end it waits for. */
static uint32_t waiter_of(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint32_t edge = sv_why_first_edge(l, p->edge);
    if (edge != SV_NO_EDGE)
        return l->edges[edge].thread;
    return p->edge != SV_NO_EDGE ? p->thread : l->units[p->unit].thread;
}

static const char *subject(const struct sv_wait_group *w, char to[120])
{
    const struct sv_ledger *l = w->x->ledger;
    if (l->kind == SV_UNIT_IS_REQUEST)
        return "A worker";
    if (l->kind == SV_UNIT_IS_WINDOW)
        return "The launching thread";
    const struct sv_why_sum *any = sv_why_sums_most(&w->holders);
    uint32_t thread = any ? waiter_of(l, &l->pieces[any->piece]) : SV_NO_THREAD;
    if (thread == SV_NO_THREAD)
        return "The program";
    const struct sv_track_info *info = &l->trace->dict->tracks[l->states.threads[thread].track];
    char name[96];
    if (info->tid == info->pid)
        return l->kind == SV_UNIT_IS_STEP ? "The training thread" : "The main thread";
    sv_explain_name(l->trace, l->states.threads[thread].track, name, sizeof name);
    snprintf(to, 120, "Thread %s", name);
    return to;
}

/* In which rank the units are that have most of it. */
static void find_rank(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_trace *t = w->x->trace;
    struct sv_why_sums ranks = {0};
    for (size_t i = 0; i < w->holders.n; i++) {
        const struct sv_why_sum *x = &w->holders.items[i];
        uint32_t thread = l->units[l->pieces[x->piece].unit].thread;
        int64_t rank =
            thread != SV_NO_THREAD ? sv_rank_of_track(t, l->states.threads[thread].process) : -1;
        sv_why_sums_add(&ranks, (uint64_t)rank, x->piece, x->ns);
    }
    const struct sv_why_sum *most = sv_why_sums_most(&ranks);
    if (most && (int64_t)most->key >= 0 && most->ns > w->ns / 10 * 7) {
        uint32_t thread = l->units[l->pieces[most->piece].unit].thread;
        const char *host = sv_host_of_track(t, l->states.threads[thread].process);
        w->answer.in_rank = (int64_t)most->key;
        snprintf(w->answer.in_host, sizeof w->answer.in_host, "%s", host ? host : "");
    }
    sv_why_sums_fini(&ranks);
}

/* ---- sentences ---- */

const char *sv_waits_of(const struct sv_wait_group *w)
{
    return w->x->asked                               ? "what they take longer"
           : w->x->ledger->kind == SV_UNIT_IS_WINDOW ? "the GPU's time"
                                                     : "the time";
}

/* Where it computes: only asked of slow units. */
static void say_compute(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120];
    a->cause = SV_CAUSE_COMPUTE;
    sv_waits_name(w);
    a->n_chain = 0;
    a->culprit.kind = a->culprit.function[0] ? "function" : "thread";
    sv_answer_say(a, "%s computes for %.0f %% of %s%s%s.", subject(w, who), a->share * 100,
                  sv_waits_of(w), a->culprit.function[0] ? ", in " : "", a->culprit.function);
}

static void say_lock(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120], where[200], does[520];
    bool is_gil = w->class == SV_WHY_GIL;
    a->cause = is_gil ? SV_CAUSE_GIL : SV_CAUSE_LOCK;
    sv_waits_name(w);
    sv_culprit_where(&a->culprit, where, sizeof where);
    sv_answer_say(a, "%s waits %.0f %% of %s for ", subject(w, who), a->share * 100,
                  sv_waits_of(w));
    if (is_gil)
        sv_answer_say(a, "Python's interpreter lock");
    else if (a->culprit.lock[0] && strncmp(a->culprit.lock, "0x", 2) != 0)
        sv_answer_say(a, "the lock %s", a->culprit.lock);
    else
        sv_answer_say(a, "a lock");
    if (!w->piece || w->piece->thread == SV_NO_THREAD || a->culprit.tid < 0) {
        sv_answer_say(a, "; who holds it is not known.");
        return;
    }
    unsigned doing = w->piece->doing;
    sv_waits_tell_doing(w, w->doing_ns[doing] < w->ns / 4 ? sv_waits_doing(w) : doing, does,
                        sizeof does);
    sv_answer_say(a, ", which thread %s (tid %" PRId64 ") holds%s while it %s.", a->culprit.name,
                  a->culprit.tid, where, does);
    if (w->holders.n > 1) {
        const struct sv_why_sum *most = sv_why_sums_most(&w->holders);
        double part = (double)most->ns / (double)(w->ns > 0 ? w->ns : 1);
        if (part < 0.9)
            sv_answer_say(a, " %zu threads hold it in turn; this one has it for %.0f %%.",
                          w->holders.n, part * 100);
    }
}

/* What was waited on: of a wait for several descriptors the socket that is used next. */
static uint32_t socket_of(const struct sv_ledger *l, uint32_t call)
{
    enum { CALLS = 8 };
    const struct sv_trace *t = l->trace;
    uint32_t end = t->tracks[t->slices.track[call]].end;
    for (uint32_t row = call; row < end && row <= call + CALLS; row++)
        if (sv_call_file_kind(&l->states, row) == SV_FILE_SOCKET)
            return row;
    return call;
}

/* The other end of a socket, as the call says: its address, and the process where it is known. */
static void name_peer(struct sv_wait_group *w)
{
    const struct sv_trace *t = w->x->trace;
    struct sv_culprit *c = &w->answer.culprit;
    uint32_t row = w->piece ? w->piece->row : SV_NO_ROW;
    sv_str peer = sv_dict_find_str(t->dict, "peer", 4),
           pid = sv_dict_find_str(t->dict, "peer_pid", 8);
    struct sv_arg a;
    c->pid = c->tid = -1;
    c->name[0] = 0;
    if (row == SV_NO_ROW || w->class == SV_WHY_CHILD)
        return;
    row = socket_of(w->x->ledger, row);
    enum sv_file_kind kind = sv_call_file_kind(&w->x->ledger->states, row);
    struct sv_text name = {"", 0};
    if (kind == SV_FILE_SOCKET || kind == SV_FILE_PIPE)
        name = sv_call_path(&w->x->ledger->states, row);
    if (peer && sv_trace_arg(t, t->slices.args[row], peer, &a) && a.type == SV_ARG_TEXT)
        name = (struct sv_text){a.text, a.size};
    if (pid && sv_trace_arg(t, t->slices.args[row], pid, &a) && a.type == SV_ARG_INT)
        c->pid = a.i;
    snprintf(c->name, sizeof c->name, "%.*s", (int)(name.len < 90 ? name.len : 90), name.bytes);
}

/* Neither end worked: what was sent was on its way. The kernel holds back an acknowledgement for
 * 40 ms, and a sender with Nagle's algorithm waits for it. */
static void say_network(struct sv_wait_group *w)
{
    enum { DELAYED_FROM_NS = 35000000, DELAYED_TO_NS = 45000000 };
    const struct sv_ledger *l = w->x->ledger;
    int64_t ns = 0, delayed_ns = 0;
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (p->doing != SV_DOING_AWAY || p->thread == SV_NO_THREAD || !sv_waits_has(w, i))
            continue;
        ns += p->dur_ns;
        delayed_ns += p->dur_ns >= DELAYED_FROM_NS && p->dur_ns <= DELAYED_TO_NS ? p->dur_ns : 0;
    }
    if (ns < w->ns / 10 || w->x->e->observed.is_looked) /* looks do not show who works */
        return;
    sv_answer_say(&w->answer, " For %.0f %% of that neither end works%s.",
                  100 * (double)ns / (double)w->ns,
                  delayed_ns > ns / 2 ? ": in waits of about 40 ms, the time of a delayed "
                                        "acknowledgement (TCP_NODELAY at the sender avoids it)"
                                      : ": the network has what was sent");
}

/* What the wait at a pipe or socket is for, by the call that it is in. */
static const char *what_for(const struct sv_wait_group *w)
{
    enum { READS, WRITES, CONNECTS };
    static const char *const words[][3] = {
        {"for what another process sends through a pipe",
         "until another process reads what it wrote to a pipe", ""},
        {"for an answer over a socket", "until the other end takes what it sends over a socket",
         "to connect to a server"},
    };
    const struct sv_ledger *l = w->x->ledger;
    uint32_t edge = w->piece ? sv_why_first_edge(l, w->piece->edge) : SV_NO_EDGE,
             call = edge != SV_NO_EDGE ? l->edges[edge].call
                    : w->piece         ? w->piece->row
                                       : SV_NO_ROW;
    struct sv_text name = {"", 0};
    if (call != SV_NO_ROW)
        name = sv_dict_text(l->trace->dict, l->trace->slices.name[call]);
    int way = memmem(name.bytes, name.len, "write", 5) || memmem(name.bytes, name.len, "send", 4)
                  ? WRITES
              : memmem(name.bytes, name.len, "connect", 7) ? CONNECTS
                                                           : READS;
    if (w->class == SV_WHY_CHILD)
        return "for the end of another process";
    if (w->class == SV_WHY_PIPE && edge != SV_NO_EDGE && l->edges[edge].reason == SV_WAIT_FOR_OTHER)
        return "for another process";
    if (w->class == SV_WHY_PIPE && edge != SV_NO_EDGE && l->edges[edge].reason == SV_WAIT_FOR_QUEUE)
        return "for a message queue";
    return words[w->class == SV_WHY_SOCKET]
                [w->class == SV_WHY_PIPE && way == CONNECTS ? READS : way];
}

/* Pipe, socket, child: another process. */
static void say_other(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120], where[200], does[520];
    a->cause = w->class == SV_WHY_PIPE     ? SV_CAUSE_PIPE
               : w->class == SV_WHY_SOCKET ? SV_CAUSE_PEER
                                           : SV_CAUSE_CHILD;
    sv_waits_name(w);
    sv_culprit_where(&a->culprit, where, sizeof where);
    a->culprit.kind = w->class == SV_WHY_SOCKET ? "peer" : "process";
    sv_answer_say(a, "%s waits %.0f %% of %s %s", subject(w, who), a->share * 100, sv_waits_of(w),
                  what_for(w));
    bool is_known =
        w->piece && w->piece->edge != SV_NO_EDGE &&
        (w->piece->thread != SV_NO_THREAD || sv_waited_for(w->x->ledger, w->piece) != SV_NO_THREAD);
    if (is_known) {
        unsigned doing = waits_doing_of_others(w);
        sv_waits_tell_doing(w, doing, does, sizeof does);
        sv_answer_say(a, ": %s (pid %" PRId64 "), which %s%s.", a->culprit.name, a->culprit.pid,
                      does, w->last || doing == SV_DOING_RUNS ? "" : where);
        say_network(w);
    } else {
        name_peer(w);
        bool is_seen = !w->x->e->observed.is_looked || a->culprit.name[0];
        sv_answer_say(a, is_seen ? ", from outside of this trace%s%s." : "; whose is not known.",
                      a->culprit.name[0] ? ": " : "", a->culprit.name);
    }
}

static void say_sleep(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120], where[200];
    a->cause = SV_CAUSE_SLEEP;
    sv_waits_name(w);
    a->culprit.kind = "function";
    sv_culprit_where(&a->culprit, where, sizeof where);
    sv_answer_say(a, "%s sleeps %.0f %% of %s, for a time that it chose itself%s.", subject(w, who),
                  a->share * 100, sv_waits_of(w), where);
}

static void say_cpu(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120];
    a->cause = SV_CAUSE_CPU;
    sv_answer_say(a, "%s could run, and waits %.0f %% of %s for a CPU", subject(w, who),
                  a->share * 100, sv_waits_of(w));
    if (!sv_waits_rival(w))
        a->share = 0;
    sv_answer_command(a, "report wait", w->x->path, " --by span");
}

/* For how much of the wait who is waited for could go on, and others have the CPU: what it does is
 * not at fault. Looks do not show it, but the kernel's count does. */
static double queued_part(const struct sv_wait_group *w)
{
    bool is_of_others = w->class == SV_WHY_LOCK || w->class == SV_WHY_GIL ||
                        w->class == SV_WHY_DATA || w->class == SV_WHY_PIPE ||
                        w->class == SV_WHY_SOCKET || w->class == SV_WHY_CHILD;
    return !is_of_others                 ? 0
           : w->x->e->observed.is_looked ? sv_waits_delayed(w)
                                         : (double)w->doing_ns[SV_DOING_QUEUED] / (double)w->ns;
}

static bool say_starved(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer, before = *a;
    bool is_counted = w->x->e->observed.is_looked;
    char who[120];
    double queued = queued_part(w);
    if (queued < 0.4)
        return false;
    a->cause = SV_CAUSE_CPU;
    sv_waits_name(w);
    sv_answer_say(a,
                  "%s waits %.0f %% of %s for %s%s (pid %" PRId64
                  "), which could run for %.0f %% of %s, and waits for a CPU",
                  subject(w, who), a->share * 100, sv_waits_of(w),
                  w->class == SV_WHY_DATA ? "data from " : "", a->culprit.name, a->culprit.pid,
                  queued * 100, is_counted ? "its time by the kernel's own count" : "that");
    if (is_counted) /* who has the CPU is not known */
        a->culprit = SV_NOBODY;
    if (!sv_waits_rival(w)) {
        *a = before;
        return false;
    }
    a->gain = a->share * queued;
    return true;
}

static void say_queue(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char where[200];
    a->cause = SV_CAUSE_QUEUE;
    sv_waits_name(w);
    a->n_chain = 0;
    sv_culprit_where(&a->culprit, where, sizeof where);
    sv_answer_say(a, "Requests spend %.0f %% of %s in the queue while their worker", a->share * 100,
                  w->x->asked ? sv_waits_of(w) : "their time");
    if (a->culprit.name[0])
        sv_answer_say(a, ", thread %s (tid %" PRId64 "),", a->culprit.name, a->culprit.tid);
    sv_answer_say(a, " works for others%s.", where);
    sv_answer_command(a, "report batch", w->x->path, "");
}

/* For which rank, if the others' threads are in the trace and that one has most of it. */
static void say_rank(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    struct sv_answer *a = &w->answer;
    const struct sv_why_sum *most = sv_why_sums_most(&w->holders);
    uint32_t other = most && most->ns > w->ns / 2 ? (uint32_t)most->key : SV_NO_THREAD,
             own = most ? l->units[l->pieces[most->piece].unit].thread : SV_NO_THREAD;
    char does[520], where[200];
    if (other == SV_NO_THREAD || own == SV_NO_THREAD ||
        l->states.threads[other].process == l->states.threads[own].process) {
        sv_answer_say(a, ".");
        return;
    }
    sv_waits_name(w);
    sv_culprit_where(&a->culprit, where, sizeof where);
    a->culprit.kind = "rank";
    a->culprit.rank = sv_rank_of_track(l->trace, l->states.threads[other].process);
    a->advice = "Look at that rank: at what it does meanwhile.";
    sv_waits_tell_doing(w, waits_doing_of_others(w), does, sizeof does);
    sv_answer_say(a, ", mostly for rank %" PRId64 " (pid %" PRId64 "), which %s%s.",
                  a->culprit.rank, a->culprit.pid, does, w->last ? "" : where);
}

static void say_comm(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120];
    a->cause = SV_CAUSE_COMM;
    sv_answer_say(a, "%s is %.0f %% of %s in communication with other ranks", subject(w, who),
                  a->share * 100, sv_waits_of(w));
    say_rank(w);
    sv_answer_command(a, "report comm", w->x->path, "");
}

static void say_stopped(struct sv_wait_group *w)
{
    struct sv_answer *a = &w->answer;
    char who[120];
    a->cause = SV_CAUSE_STOPPED;
    sv_waits_name(w);
    bool is_known = w->piece && w->piece->edge != SV_NO_EDGE;
    if (!is_known)
        a->culprit = SV_NOBODY;
    a->n_chain = 0;
    sv_answer_say(a, "%s is stopped %.0f %% of %s, by a signal or a debugger", subject(w, who),
                  a->share * 100, sv_waits_of(w));
    if (is_known)
        sv_answer_say(a, ": %s (pid %" PRId64 ") lets it go on", a->culprit.name, a->culprit.pid);
    sv_answer_say(a, ".");
}

/* The class decides who speaks; none: what the class is of is explained elsewhere. */
static void (*const say[SV_N_WHY_CLASSES])(struct sv_wait_group *) = {
    [SV_WHY_LOCK] = say_lock,          [SV_WHY_GIL] = say_lock,
    [SV_WHY_DATA] = sv_waits_say_data, [SV_WHY_DISK] = sv_waits_say_disk,
    [SV_WHY_PAGE] = sv_waits_say_disk, [SV_WHY_PIPE] = say_other,
    [SV_WHY_SOCKET] = say_other,       [SV_WHY_CHILD] = say_other,
    [SV_WHY_SLEEP] = say_sleep,        [SV_WHY_CPU] = say_cpu,
    [SV_WHY_COMM] = say_comm,          [SV_WHY_QUEUE] = say_queue,
    [SV_WHY_UNKNOWN] = say_stopped,
};

/* One finding: what the group is, in words. */
static void explain_group(struct sv_explaining *x, uint32_t number, double share)
{
    unsigned class = x->groups->items[number].class;
    struct sv_wait_group w = {.x = x,
                              .number = number,
                              .class = class,
                              .answer = sv_answer_of(SV_CAUSE_DATA, share, "high")};
    w.answer.group = number;
    collect(&w);
    if (w.assumed_ns > w.ns / 2)
        w.answer.sure = "low";
    else if (w.assumed_ns > w.ns / 10)
        w.answer.sure = "medium";
    sv_answer_command(&w.answer, "report wait", x->path, " --by wait");
    find_rank(&w);
    if (class == SV_WHY_COMPUTE)
        say_compute(&w);
    else if (!say_starved(&w))
        say[class](&w);
    if (w.answer.share >= SV_EXPLAIN_LEAST)
        sv_explain_add(x, &w.answer);
    sv_why_sums_fini(&w.holders);
    sv_why_sums_fini(&w.paths);
}

/* The largest groups by `shares`, which is used up. */
static void explain_largest(struct sv_explaining *x, double *shares, double least)
{
    const struct sv_wait_groups *g = x->groups;
    for (int k = 0; k < GROUPS_MAX; k++) {
        size_t best = g->n;
        for (size_t i = 0; i < g->n; i++)
            if (shares[i] >= least && (best == g->n || shares[i] > shares[best]))
                best = i;
        if (best == g->n)
            return;
        explain_group(x, (uint32_t)best, shares[best]);
        shares[best] = 0;
    }
}

static bool has_words(const struct sv_wait_sum *s, bool with_compute)
{
    return s->class == SV_WHY_COMPUTE   ? with_compute
           : s->class == SV_WHY_UNKNOWN ? s->is_stopped
                                        : say[s->class] != NULL;
}

/* What the units would save: a replay without each of them. A rule may know that less is gained,
 * because like ones take their time, too. */
static void find_gains(struct sv_explaining *x)
{
    struct sv_without picks[SV_EXPLAIN_MAX + 1] = {SV_WITHOUT_NOTHING};
    struct sv_replayed to[SV_EXPLAIN_MAX + 1];
    struct sv_answer *of[SV_EXPLAIN_MAX];
    size_t n = 0;
    for (size_t i = 0; i < x->e->n; i++) {
        struct sv_answer *a = &x->e->findings[i];
        if (a->group == UINT32_MAX)
            continue;
        of[n++] = a;
        picks[n] = SV_WITHOUT_NOTHING;
        picks[n].of = x->groups->of;
        picks[n].number = a->group;
        a->group = UINT32_MAX;
    }
    /* Pieces without times cannot be replayed, nor threads of which only looks are known. */
    if (!n || x->ledger->is_summed || x->e->observed.is_looked)
        return;
    sv_units_replay(x->ledger, picks, n + 1, to);
    double all = (double)x->ledger->dur_ns, error = to[0].ns / all - 1;
    for (size_t i = 0; i < n && error > -SV_REPLAY_ERROR && error < SV_REPLAY_ERROR; i++) {
        double gain = 1 - to[i + 1].ns / to[0].ns;
        of[i]->gain = gain < of[i]->gain ? gain > 0 ? gain : 0 : of[i]->gain;
    }
}

void sv_waits_of_gaps(struct sv_explaining *x, int64_t all_ns)
{
    struct sv_wait_groups g;
    find_groups(&g, x->ledger);
    double *shares = sv_alloc((g.n + 1) * sizeof *shares);
    x->groups = &g;
    for (size_t i = 0; i < g.n; i++)
        shares[i] = has_words(&g.items[i], false) && g.items[i].class != SV_WHY_COMM
                        ? (double)g.items[i].ns / (double)all_ns
                        : 0;
    explain_largest(x, shares, SV_EXPLAIN_LEAST);
    x->groups = NULL;
    free(shares);
    free(g.items);
    free(g.of);
}

void sv_explain_waits(struct sv_explaining *x)
{
    const struct sv_ledger *l = x->ledger;
    struct sv_wait_groups g;
    find_groups(&g, l);
    double *shares = sv_alloc((g.n + 1) * sizeof *shares);
    x->groups = &g;
    for (size_t i = 0; i < g.n; i++)
        shares[i] = has_words(&g.items[i], false) && l->dur_ns > 0
                        ? (double)g.items[i].ns / (double)l->dur_ns
                        : 0;
    explain_largest(x, shares, SV_EXPLAIN_LEAST);
    find_gains(x);
    if (sv_slow_units_ask(x, shares)) {
        for (size_t i = 0; i < g.n; i++)
            shares[i] = has_words(&g.items[i], true) ? shares[i] : 0;
        sv_slow_units_answer(x, shares, explain_largest);
    }
    x->groups = NULL;
    free(shares);
    free(g.items);
    free(g.of);
}

/* Requests as units of the ledger: when each waited, and which thread worked for it. Called through
 * sv_why_make().
 *
 * A worker (of batches) or an engine (of steps) has times in which it worked. Its thread is the one
 * of the process that ran longest in them. Where only calls and waits are recorded it is the one
 * that waits between them and not within. Without either only the phases are known. */
#include "subjects/engine/request_units.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/serving/life.h"
#include "subjects/engine/llm_figures.h"
#include "why/spans.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- who works for a request ---- */

/* Times in which one worker, or one engine, worked. */
struct worker {
    sv_track process; /* 0: not known */
    struct sv_spans windows;
    uint32_t thread; /* SV_NO_THREAD: none fits */
};

struct workers {
    struct worker *items;
    size_t n, cap;
    struct sv_map by_key;
    sv_track server; /* the process of a server with dynamic batching; 0: not known */
};

static sv_track serving_process(const struct sv_trace *t)
{
    sv_str cat = sv_dict_find_str(t->dict, SV_LIFE_CATEGORY, strlen(SV_LIFE_CATEGORY));
    for (uint64_t row = 0; cat && row < t->slices.n; row++)
        if (t->slices.cat[row] == cat)
            return sv_dict_process_of(t->dict, t->slices.track[row]);
    return 0;
}

static uint64_t key_of(const struct sv_llm *l, const struct sv_llm_step *s)
{
    return l->is_batches ? (uint64_t)(int64_t)s->worker : s->track;
}

static void add_window(struct workers *w, const struct sv_llm *l, const struct sv_llm_step *s)
{
    sv_track process = l->is_batches ? w->server
                       : s->track    ? sv_dict_process_of(l->trace->dict, s->track)
                                     : 0;
    bool is_new;
    if (s->dur_ns <= 0 || (l->is_batches ? s->worker < 0 : !s->track))
        return;
    uint64_t *at = sv_map_add(&w->by_key, key_of(l, s), &is_new);
    if (is_new) {
        w->items = sv_grow(w->items, &w->cap, w->n + 1, sizeof *w->items);
        w->items[w->n] = (struct worker){.process = process, .thread = SV_NO_THREAD};
        *at = w->n++;
    }
    struct sv_span x = {.from_ns = s->ts_ns, .to_ns = sv_sat_add(s->ts_ns, s->dur_ns)};
    sv_spans_append(&w->items[*at].windows, &(struct sv_spans){.items = &x, .n = 1});
}

enum { WINDOWS_MAX = 200 }; /* that are looked at */

/* How long a thread ran in the first of these times. */
static int64_t ran_within(const struct sv_thread_states *s, uint32_t thread,
                          const struct sv_spans *windows)
{
    int64_t ns = 0;
    for (size_t i = 0; i < windows->n && i < WINDOWS_MAX; i++) {
        struct sv_state_cursor c =
            sv_state_window(s, thread, windows->items[i].from_ns, windows->items[i].to_ns);
        for (struct sv_state_piece p; sv_state_next(&c, &p);)
            ns += p.state == SV_WAIT_STATE_RUNNING ? p.to_ns - p.from_ns : 0;
    }
    return ns;
}

/* Of the time between these windows the share in which a thread waits or sleeps, less that of the
 * time within them: 1 for one that waits for nothing but work. Where the worker always works there
 * is no time between. */
static double waits_between(const struct sv_thread_states *s, uint32_t thread,
                            const struct sv_spans *windows)
{
    enum { ROOM_PART = 50 };
    size_t n = windows->n < WINDOWS_MAX ? windows->n : WINDOWS_MAX;
    int64_t from = windows->items[0].from_ns, to = windows->items[n - 1].to_ns, waits[2] = {0};
    int64_t all = sv_spans_within(windows, from, to);
    struct sv_state_cursor c = sv_state_window(s, thread, from, to);
    bool is_always = n < 2 || to - from - all < (to - from) / ROOM_PART;
    for (struct sv_state_piece p; sv_state_next(&c, &p);) {
        if (p.reason == SV_WAIT_NO_REASON || p.reason == SV_WAIT_FOR_CPU ||
            p.reason == SV_WAIT_FOR_DISK || p.reason == SV_WAIT_FOR_FAULT)
            continue;
        int64_t within = sv_spans_within(windows, p.from_ns, p.to_ns);
        waits[1] += within;
        waits[0] += p.to_ns - p.from_ns - within;
    }
    double between = is_always ? 1 : (double)waits[0] / (double)(to - from - all);
    return all > 0 ? between - (double)waits[1] / (double)all : 0;
}

/* libstave's own threads work for no request. */
static bool is_own(const struct sv_thread_states *s, uint32_t thread)
{
    const struct sv_dict *d = s->trace->dict;
    struct sv_text name = sv_dict_text(d, d->tracks[s->threads[thread].track].name);
    return name.len > 6 && memcmp(name.bytes, "stave-", 6) == 0;
}

/* The one thread that is busy when the worker is; SV_NO_THREAD: none, or two are. */
static uint32_t who_is_busy(const struct sv_thread_states *s, const struct worker *w)
{
    const double least = 0.3;
    double best = 0, second = 0;
    uint32_t who = SV_NO_THREAD;
    for (uint32_t k = 0; k < s->n && w->windows.n; k++) {
        if (s->threads[k].process != w->process || !s->threads[k].calls || is_own(s, k))
            continue;
        double fits = waits_between(s, k, &w->windows);
        second = fits > best ? best : fits > second ? fits : second;
        who = fits > best ? k : who;
        best = fits > best ? fits : best;
    }
    return best > least && best > second + least ? who : SV_NO_THREAD;
}

static void find_threads(struct workers *w, const struct sv_thread_states *s)
{
    for (size_t i = 0; i < w->n; i++) {
        struct worker *x = &w->items[i];
        int64_t best = 0;
        sv_spans_settle(&x->windows);
        for (uint32_t k = 0; k < s->n && x->process; k++) {
            if (s->threads[k].process != x->process || !s->threads[k].state || is_own(s, k))
                continue;
            int64_t ns = ran_within(s, k, &x->windows);
            if (ns > best) {
                best = ns;
                x->thread = k;
            }
        }
        if (x->process && x->thread == SV_NO_THREAD)
            x->thread = who_is_busy(s, x);
    }
}

static void find_workers(struct workers *w, const struct sv_llm *l)
{
    struct sv_thread_states states;
    w->server = l->is_batches ? serving_process(l->trace) : 0;
    for (size_t i = 0; i < l->n_steps; i++)
        if (!l->steps[i].is_warmup)
            add_window(w, l, &l->steps[i]);
    sv_thread_states_init(&states, l->trace);
    find_threads(w, &states);
    sv_thread_states_fini(&states);
}

static void free_workers(struct workers *w)
{
    for (size_t i = 0; i < w->n; i++)
        sv_spans_fini(&w->items[i].windows);
    free(w->items);
    sv_map_fini(&w->by_key);
}

/* ---- the requests ---- */

static int64_t within(int64_t ns, int64_t from_ns, int64_t to_ns)
{
    return ns < from_ns ? from_ns : ns > to_ns ? to_ns : ns;
}

static bool is_unit(const struct sv_llm_request *q)
{
    return !q->is_warmup && q->fate == SV_FATE_RESPONDED && sv_llm_e2e(q) >= 0;
}

/* A batch has begun when its worker has, an engine works for a request from its first step on. */
static struct sv_given_unit unit_of(const struct sv_llm *l, const struct sv_llm_request *q,
                                    const struct workers *w)
{
    int64_t from = q->arrival_ns, to = q->end_ns;
    int64_t left = within(q->scheduled_ns != SV_LLM_UNKNOWN ? q->scheduled_ns : to, from, to);
    struct sv_given_unit u = {.number = (int64_t)q->id,
                              .from_ns = from,
                              .left_ns = left,
                              .run_ns = left,
                              .done_ns = to,
                              .to_ns = to,
                              .thread = SV_NO_THREAD};
    if (!q->n_members)
        return u;
    const struct sv_llm_step *s = &l->steps[l->members[l->by_request[q->first_member]].step];
    if (l->is_batches) {
        u.run_ns = within(s->ts_ns, left, to);
        u.done_ns = within(sv_sat_add(s->ts_ns, s->dur_ns), u.run_ns, to);
    }
    const uint64_t *at = q->is_untimed ? NULL : sv_map_find(&w->by_key, key_of(l, s));
    if (at) {
        assert(*at < w->n);
        u.thread = w->items[*at].thread;
        u.busy = &w->items[*at].windows;
    }
    return u;
}

void sv_why_make(struct sv_ledger *l, const struct sv_trace *t, const struct sv_ledger_options *o)
{
    struct sv_ledger_options own = *o;
    struct sv_llm llm;
    struct workers w = {0};
    struct sv_given_unit *units = NULL;
    size_t n = 0;
    if (o->marker || o->step >= 0) {
        sv_ledger_make(l, t, o);
        return;
    }
    sv_llm_make(&llm, t);
    for (size_t i = 0; i < llm.n_requests; i++)
        n += is_unit(&llm.requests[i]);
    if (n >= SV_REQUESTS_LEAST) {
        find_workers(&w, &llm);
        units = sv_alloc(n * sizeof *units);
        for (size_t i = 0; i < llm.n_requests; i++)
            if (is_unit(&llm.requests[i]))
                units[own.n_given++] = unit_of(&llm, &llm.requests[i], &w);
        own.given = units;
        own.given_kind = SV_UNIT_IS_REQUEST;
    }
    sv_ledger_make(l, t, &own);
    free_workers(&w);
    free(units);
    sv_llm_fini(&llm);
}

/* ---- tokens ---- */

/* The longest part of the longest class of waiting. */
static void take_wait(const struct sv_ledger *l, const struct sv_why_unit *u,
                      struct sv_llm_slow *slow)
{
    unsigned most = SV_N_WHY_CLASSES;
    const struct sv_why_piece *longest = NULL;
    for (unsigned k = 0; k < SV_N_WHY_CLASSES; k++)
        if (k != SV_WHY_COMPUTE && k != SV_WHY_UNKNOWN && u->class_ns[k] > 0 &&
            (most == SV_N_WHY_CLASSES || u->class_ns[k] > u->class_ns[most]))
            most = k;
    if (most == SV_N_WHY_CLASSES)
        return;
    slow->wait = sv_why_class_names[most];
    slow->wait_ns = u->class_ns[most];
    for (size_t i = u->first; i < u->end; i++)
        if (l->pieces[i].class == most && (!longest || l->pieces[i].dur_ns > longest->dur_ns))
            longest = &l->pieces[i];
    uint32_t edge = longest ? sv_why_first_edge(l, longest->edge) : SV_NO_EDGE,
             by = edge != SV_NO_EDGE ? l->edges[edge].to : SV_NO_THREAD;
    if (longest)
        slow->wait_in = sv_why_frame(l, longest);
    if (by == SV_NO_THREAD)
        return;
    const struct sv_dict *d = l->trace->dict;
    const struct sv_thread_rows *x = &l->states.threads[by];
    struct sv_text own = sv_dict_text(d, d->tracks[x->track].name);
    struct sv_text held = sv_why_released_in(l, edge);
    slow->wait_by = own.len ? own : sv_dict_text(d, d->tracks[x->process].name);
    slow->wait_in = held.len ? held : slow->wait_in;
}

static uint32_t engine_of(const struct workers *w, const struct sv_llm *llm,
                          const struct sv_llm_slow *slow)
{
    const uint64_t *at =
        sv_map_find(&w->by_key, key_of(llm, &llm->steps[llm->tokens[slow->token].step]));
    return at ? w->items[*at].thread : SV_NO_THREAD;
}

void sv_why_of_tokens(const struct sv_llm *llm, struct sv_llm_slow *slow, size_t n)
{
    struct workers w = {0};
    struct sv_ledger l;
    struct sv_given_unit *units = sv_alloc((n + 1) * sizeof *units);
    size_t given = 0;
    find_workers(&w, llm);
    for (size_t i = 0; i < n; i++) {
        int64_t to = llm->tokens[slow[i].token].ts_ns, from = sv_sat_sub(to, slow[i].gap_ns);
        uint32_t thread = engine_of(&w, llm, &slow[i]);
        if (thread == SV_NO_THREAD || to <= from)
            continue;
        units[given] = sv_given_window(thread, 0, from, to);
        units[given++].number = (int64_t)i;
    }
    if (given) {
        sv_ledger_make(
            &l, llm->trace,
            &(struct sv_ledger_options){
                .step = -1, .given = units, .n_given = given, .given_kind = SV_UNIT_IS_WINDOW});
        for (size_t i = 0; i < l.n_units; i++)
            take_wait(&l, &l.units[i], &slow[l.units[i].number]);
        for (size_t i = 0; i < n; i++) { /* texts of waits live as long as the ledger */
            slow[i].wait_in = sv_dict_text(
                llm->strings,
                sv_dict_str(llm->strings, slow[i].wait_in.bytes ? slow[i].wait_in.bytes : "",
                            slow[i].wait_in.len));
        }
        sv_ledger_fini(&l);
    }
    free_workers(&w);
    free(units);
}

/* Requests that wait, or are refused. Called by explain/explain.c. */
#include "explain/explain.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/serving/life.h"
#include "subjects/engine/llm_figures.h"
#include "why/spans.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_LEAST = 20 };

static void explain_rejected(struct sv_explaining *x, uint64_t rejected, uint64_t all)
{
    double share = all ? (double)rejected / (double)all : 0;
    if (share < SV_EXPLAIN_LEAST)
        return;
    struct sv_answer a = sv_answer_of(SV_CAUSE_REJECTED, share, "high");
    a.culprit.kind = "queue";
    snprintf(a.culprit.name, sizeof a.culprit.name, "queue");
    a.n_units = rejected;
    sv_answer_say(&a, "The server refuses %.0f %% of the requests: %" PRIu64 " of %" PRIu64 ".",
                  share * 100, rejected, all);
    sv_answer_command(&a, "report batch", x->path, "");
    sv_explain_add(x, &a);
}

static void set_units(struct sv_explanation *e, uint64_t n, double median_ns, int64_t dur_ns)
{
    e->unit_kind = "request";
    e->of = "the requests";
    e->is_found = false;
    e->n_units = n;
    e->median_ns = median_ns;
    e->dur_ns = dur_ns;
}

/* ---- who works for a request ---- */

/* Times in which one worker, or one engine, worked. */
struct worker {
    uint64_t key;
    sv_track process;
    struct sv_spans windows;
    uint32_t thread; /* SV_NO_THREAD: none fits */
};

struct workers {
    struct worker *items;
    size_t n, cap;
    struct sv_map by_key;
};

static struct worker *worker_of(struct workers *w, uint64_t key, sv_track process)
{
    bool is_new;
    uint64_t *at = sv_map_add(&w->by_key, key, &is_new);
    if (is_new) {
        w->items = sv_grow(w->items, &w->cap, w->n + 1, sizeof *w->items);
        w->items[w->n] = (struct worker){.key = key, .process = process, .thread = SV_NO_THREAD};
        *at = w->n++;
    }
    return &w->items[*at];
}

/* How long a thread ran in the first of these times. */
static int64_t ran_within(const struct sv_thread_states *s, uint32_t thread,
                          const struct sv_spans *windows)
{
    enum { WINDOWS_MAX = 200 };
    int64_t ns = 0;
    for (size_t i = 0; i < windows->n && i < WINDOWS_MAX; i++) {
        struct sv_state_cursor c =
            sv_state_window(s, thread, windows->items[i].from_ns, windows->items[i].to_ns);
        for (struct sv_state_piece p; sv_state_next(&c, &p);)
            ns += p.state == SV_WAIT_STATE_RUNNING ? p.to_ns - p.from_ns : 0;
    }
    return ns;
}

/* libstave's own threads work for no request. */
static bool is_own(const struct sv_thread_states *s, uint32_t thread)
{
    const struct sv_dict *d = s->trace->dict;
    struct sv_text name = sv_dict_text(d, d->tracks[s->threads[thread].track].name);
    return name.len > 6 && memcmp(name.bytes, "stave-", 6) == 0;
}

/* The thread of the process that ran longest while the worker worked. */
static void find_threads(struct workers *w, const struct sv_thread_states *s)
{
    for (size_t i = 0; i < w->n; i++) {
        int64_t best = 0;
        sv_spans_settle(&w->items[i].windows);
        for (uint32_t k = 0; k < s->n; k++) {
            if (s->threads[k].process != w->items[i].process || !s->threads[k].state ||
                is_own(s, k))
                continue;
            int64_t ns = ran_within(s, k, &w->items[i].windows);
            if (ns > best) {
                best = ns;
                w->items[i].thread = k;
            }
        }
    }
}

/* ---- the requests as units ---- */

struct units {
    struct sv_given_unit *items;
    uint64_t *workers; /* key of each one's worker */
    size_t n, cap, cap_workers;
};

static void add_unit(struct units *u, uint64_t worker, struct sv_given_unit g)
{
    if (g.to_ns <= g.from_ns || g.run_ns < g.from_ns || g.done_ns < g.run_ns || g.to_ns < g.done_ns)
        return;
    u->items = sv_grow(u->items, &u->cap, u->n + 1, sizeof *u->items);
    u->workers = sv_grow(u->workers, &u->cap_workers, u->n + 1, sizeof *u->workers);
    u->workers[u->n] = worker;
    u->items[u->n++] = g;
}

static sv_track serving_process(const struct sv_trace *t)
{
    sv_str cat = sv_dict_find_str(t->dict, SV_LIFE_CATEGORY, strlen(SV_LIFE_CATEGORY));
    for (uint64_t row = 0; cat && row < t->slices.n; row++)
        if (t->slices.cat[row] == cat)
            return sv_dict_process_of(t->dict, t->slices.track[row]);
    return 0;
}

/* Of a server with dynamic batching. */
static void add_batches(struct units *u, struct workers *w, const struct sv_trace *t)
{
    struct sv_serving_report r;
    sv_track process = serving_process(t);
    sv_serving_report_tables(&r, t);
    for (size_t i = 0; i < r.n_batches && process; i++) {
        const struct sv_served_batch *b = &r.batches[i];
        if (!b->is_warmup && !b->is_untimed && b->finished_ns > b->started_ns)
            sv_spans_append(&worker_of(w, (uint64_t)(int64_t)b->worker, process)->windows,
                            &(struct sv_spans){.items = &(struct sv_span){.from_ns = b->started_ns,
                                                                          .to_ns = b->finished_ns},
                                               .n = 1});
    }
    for (size_t i = 0; i < r.n_requests && process; i++) {
        const struct sv_served_request *q = &r.requests[i];
        if (!q->is_warmup && q->fate == SV_FATE_RESPONDED && q->batch != SV_SERVED_NONE)
            add_unit(u, (uint64_t)(int64_t)r.batches[q->batch].worker,
                     (struct sv_given_unit){.number = (int64_t)q->id,
                                            .from_ns = q->edges[0],
                                            .run_ns = q->edges[SV_PHASE_RUN],
                                            .done_ns = q->edges[SV_PHASE_RUN + 1],
                                            .to_ns = q->edges[SV_N_PHASES],
                                            .thread = SV_NO_THREAD});
    }
    sv_serving_report_fini(&r);
}

/* Of an engine with continuous batching. */
static void add_engines(struct units *u, struct workers *w, const struct sv_llm *l)
{
    const struct sv_dict *d = l->trace->dict;
    for (size_t i = 0; i < l->n_steps; i++)
        if (l->steps[i].track && l->steps[i].dur_ns > 0)
            sv_spans_append(
                &worker_of(w, l->steps[i].track, sv_dict_process_of(d, l->steps[i].track))->windows,
                &(struct sv_spans){
                    .items = &(struct sv_span){.from_ns = l->steps[i].ts_ns,
                                               .to_ns = l->steps[i].ts_ns + l->steps[i].dur_ns},
                    .n = 1});
    for (size_t i = 0; i < l->n_requests; i++) {
        const struct sv_llm_request *q = &l->requests[i];
        if (q->is_warmup || q->is_untimed || q->fate != SV_FATE_RESPONDED || !q->n_members ||
            q->scheduled_ns == SV_LLM_UNKNOWN)
            continue;
        add_unit(u, l->steps[l->members[l->by_request[q->first_member]].step].track,
                 (struct sv_given_unit){.number = (int64_t)q->id,
                                        .from_ns = q->arrival_ns,
                                        .run_ns = q->scheduled_ns,
                                        .done_ns = q->end_ns,
                                        .to_ns = q->end_ns,
                                        .thread = SV_NO_THREAD});
    }
}

/* Explains the requests by what the threads of their workers did; false: these are not known. */
static bool explain_requests(struct sv_explaining *x, const struct sv_llm *llm)
{
    struct workers w = {0};
    struct units u = {0};
    struct sv_ledger ledger;
    bool is_known = false;
    if (llm->is_batches)
        add_batches(&u, &w, x->trace);
    else
        add_engines(&u, &w, llm);
    find_threads(&w, &x->ledger->states);
    for (size_t i = 0; i < u.n; i++) {
        const uint64_t *at = sv_map_find(&w.by_key, u.workers[i]);
        if (!at)
            continue;
        assert(*at < w.n);
        u.items[i].thread = w.items[*at].thread;
        u.items[i].busy = &w.items[*at].windows;
        is_known |= u.items[i].thread != SV_NO_THREAD;
    }
    if (is_known) {
        struct sv_explaining own = *x;
        own.ledger = &ledger;
        sv_ledger_make(
            &ledger, x->trace,
            &(struct sv_ledger_options){
                .step = -1, .given = u.items, .n_given = u.n, .given_kind = SV_UNIT_IS_REQUEST});
        for (int k = 0; k < SV_N_WHY_CLASSES; k++)
            x->e->shares[k] = ledger.dur_ns > 0 ? (double)ledger.class_ns[k] / (double)ledger.dur_ns
                                                : 0;
        sv_explain_waits(&own);
        sv_ledger_fini(&ledger);
    }
    for (size_t i = 0; i < w.n; i++)
        sv_spans_fini(&w.items[i].windows);
    free(w.items);
    sv_map_fini(&w.by_key);
    free(u.items);
    free(u.workers);
    return is_known;
}

/* Without threads only the phases are known. */
static void explain_phases(struct sv_explaining *x, const struct sv_llm *l,
                           const struct sv_llm_figures *f)
{
    const struct sv_latency *queue = &f->phases[SV_ENGINE_QUEUE], *whole = &f->measures[SV_LLM_E2E];
    double in_queue = queue->mean_ns * (double)queue->n, all = whole->mean_ns * (double)whole->n;
    if (all <= 0 || in_queue < 6 * SV_EXPLAIN_LEAST * all)
        return;
    struct sv_answer a = sv_answer_of(SV_CAUSE_QUEUE, in_queue / all, "medium");
    a.culprit.kind = "queue";
    snprintf(a.culprit.name, sizeof a.culprit.name, "queue");
    a.n_units = whole->n;
    sv_answer_say(&a,
                  "Requests spend %.0f %% of their time in the queue: %.1f of %.1f ms on average, "
                  "of %" PRIu64 " requests.",
                  a.share * 100, in_queue / (double)whole->n / 1e6, whole->mean_ns / 1e6, whole->n);
    sv_answer_command(&a, l->is_batches ? "report batch" : "report llm", x->path, "");
    sv_explain_add(x, &a);
}

void sv_explain_serving(struct sv_explaining *x)
{
    struct sv_llm l;
    struct sv_llm_figures f;
    sv_llm_make(&l, x->trace);
    sv_llm_figures_make(&f, &l);
    uint64_t all = f.answered + f.rejected + f.failed + f.cancelled;
    if (all >= REQUESTS_LEAST) {
        const struct sv_latency *whole = &f.measures[SV_LLM_E2E];
        x->e->observed.has_requests = true;
        set_units(x->e, all, whole->p50_ns, (int64_t)(whole->mean_ns * (double)whole->n));
        explain_rejected(x, f.rejected, all);
        if (!explain_requests(x, &l))
            explain_phases(x, &l, &f);
    }
    sv_llm_figures_fini(&f);
    sv_llm_fini(&l);
}

/* What a slow token waited for. The time since the token before it (since the arrival, of the first
 * one) is divided: each nanosecond has one cause, and the largest part names it. Called by report
 * llm --why. */
#include "subjects/engine/llm_figures.h"

#include "core/base/mem.h"
#include "core/base/sat.h"

#include <stdlib.h>

const char *const sv_llm_cause_names[SV_N_LLM_CAUSES] = {
    "queue", "preemption", "transfer", "cold load", "step", "other steps", "no step", "delivery"};

enum { QUEUE_STEPS = 100000 }; /* that are looked at for one token */

struct window {
    int64_t from_ns, to_ns;
};

static int64_t overlap(const struct window *w, int64_t from_ns, int64_t to_ns)
{
    int64_t from = from_ns > w->from_ns ? from_ns : w->from_ns;
    int64_t to = to_ns < w->to_ns ? to_ns : w->to_ns;
    return to > from ? sv_sat_sub(to, from) : 0;
}

/* ---- parts ---- */

static void blame(struct sv_llm_slow *s, enum sv_llm_cause cause, int64_t ns)
{
    s->cause_ns[cause] = sv_sat_add(s->cause_ns[cause], ns);
}

/* Phases in which it was not computed. Decode and prefill are left for the steps; a prefill after
 * the first token is one that a preemption made necessary. */
static void add_phases(const struct sv_llm *l, const struct sv_llm_request *r, bool is_first,
                       const struct window *w, struct sv_llm_slow *s)
{
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct sv_llm_span *p = &l->spans[r->first_span + i];
        int64_t ns = overlap(w, p->start_ns, p->end_ns);
        if (p->phase == SV_ENGINE_QUEUE)
            blame(s, SV_LLM_BY_QUEUE, ns);
        else if (p->phase == SV_ENGINE_PREEMPTED || (p->phase == SV_ENGINE_PREFILL && !is_first))
            blame(s, SV_LLM_BY_PREEMPTION, ns);
        else if (p->phase == SV_ENGINE_TRANSFER)
            blame(s, SV_LLM_BY_TRANSFER, ns);
    }
}

static bool is_computing(const struct sv_llm_span *p, bool is_first)
{
    return p->phase == SV_ENGINE_DECODE || (p->phase == SV_ENGINE_PREFILL && is_first);
}

/* The first step that ends after ts_ns; steps are in the order of their begins, and few overlap. */
static size_t first_step(const struct sv_llm *l, int64_t ts_ns)
{
    size_t low = 0, high = l->n_steps;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->steps[mid].ts_ns < ts_ns)
            low = mid + 1;
        else
            high = mid;
    }
    for (int back = 0; low > 0 && back < 64; back++)
        low--;
    return low;
}

/* Members of a request are in the order of their steps. */
static bool is_in_step(const struct sv_llm *l, const struct sv_llm_request *r, uint32_t step)
{
    uint32_t low = r->first_member, high = low + r->n_members;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2, at = l->members[l->by_request[mid]].step;
        if (at == step)
            return true;
        if (at < step)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Time in [from, to) that no earlier call has seen is the step's. */
static void add_steps(const struct sv_llm *l, uint32_t request, const struct window *w,
                      struct sv_llm_slow *slow, int64_t *longest)
{
    int64_t seen = w->from_ns;
    for (size_t i = first_step(l, w->from_ns); i < l->n_steps && l->steps[i].ts_ns < w->to_ns;
         i++) {
        const struct sv_llm_step *s = &l->steps[i];
        struct window rest = {seen, w->to_ns};
        int64_t ns = overlap(&rest, s->ts_ns, sv_sat_add(s->ts_ns, s->dur_ns));
        bool is_own = is_in_step(l, &l->requests[request], (uint32_t)i);
        if (ns > 0)
            seen = sv_sat_add(s->ts_ns, s->dur_ns);
        blame(slow, is_own ? SV_LLM_BY_STEP : SV_LLM_BY_OTHERS, ns);
        int64_t whole = overlap(w, s->ts_ns, sv_sat_add(s->ts_ns, s->dur_ns));
        if (is_own && whole > *longest) {
            *longest = whole;
            slow->step = (uint32_t)i;
        }
    }
}

static void blame_member(const struct sv_llm *l, uint32_t request, struct sv_llm_slow *slow)
{
    const struct sv_llm_step *s = &l->steps[slow->step];
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_llm_member *m = &l->members[s->first_member + i];
        if (m->request != request && m->m.tokens_in > most) {
            most = m->m.tokens_in;
            slow->blame = s->first_member + i;
        }
    }
}

/* A load explains the wait for it: it takes from the other parts, the queue first. */
static void add_loads(const struct sv_llm *l, const struct window *w, struct sv_llm_slow *slow)
{
    int64_t seen = w->from_ns, longest = 0, all = 0;
    for (size_t i = 0; i < l->n_loads && l->loads[i].start_ns < w->to_ns; i++) {
        struct window rest = {seen, w->to_ns};
        int64_t ns = overlap(&rest, l->loads[i].start_ns, l->loads[i].end_ns);
        seen = l->loads[i].end_ns > seen ? l->loads[i].end_ns : seen;
        all = sv_sat_add(all, ns);
        if (ns > longest) {
            longest = ns;
            slow->load = (uint32_t)i;
        }
    }
    static const enum sv_llm_cause order[] = {SV_LLM_BY_QUEUE,      SV_LLM_BY_IDLE,
                                              SV_LLM_BY_OTHERS,     SV_LLM_BY_STEP,
                                              SV_LLM_BY_PREEMPTION, SV_LLM_BY_TRANSFER};
    for (size_t i = 0; i < sizeof order / sizeof *order && all > 0; i++) {
        int64_t part = slow->cause_ns[order[i]] < all ? slow->cause_ns[order[i]] : all;
        slow->cause_ns[order[i]] -= part;
        slow->cause_ns[SV_LLM_BY_LOAD] += part;
        all -= part;
    }
}

/* Of one that was in the queue, the longest step that ran meanwhile is named instead of its own. */
static void name_queue_step(const struct sv_llm *l, const struct window *w,
                            struct sv_llm_slow *slow)
{
    int64_t longest = 0;
    size_t first = first_step(l, w->from_ns);
    for (size_t i = first; i < l->n_steps && i - first < QUEUE_STEPS; i++) {
        const struct sv_llm_step *s = &l->steps[i];
        if (s->ts_ns >= w->to_ns)
            break;
        int64_t ns = overlap(w, s->ts_ns, sv_sat_add(s->ts_ns, s->dur_ns));
        if (ns > longest) {
            longest = ns;
            slow->step = (uint32_t)i;
        }
    }
}

/* ---- one token ---- */

static void explain(const struct sv_llm *l, struct sv_llm_slow *slow)
{
    const struct sv_llm_token *k = &l->tokens[slow->token];
    const struct sv_llm_request *r = &l->requests[k->request];
    bool is_first = k->number == 0;
    int64_t made = k->made_ns < k->ts_ns ? k->made_ns : k->ts_ns;
    int64_t from = sv_sat_sub(k->ts_ns, slow->gap_ns);
    struct window w = {from, made > from ? made : from};
    const struct sv_llm_step *own = &l->steps[k->step];
    int64_t longest = overlap(&w, own->ts_ns, sv_sat_add(own->ts_ns, own->dur_ns));
    slow->step = k->step;
    slow->blame = slow->load = SV_LLM_NONE;
    add_phases(l, r, is_first, &w, slow);
    for (uint32_t i = 0; i < r->n_spans; i++) {
        const struct sv_llm_span *p = &l->spans[r->first_span + i];
        struct window part = {p->start_ns > w.from_ns ? p->start_ns : w.from_ns,
                              p->end_ns < w.to_ns ? p->end_ns : w.to_ns};
        if (is_computing(p, is_first) && part.to_ns > part.from_ns)
            add_steps(l, k->request, &part, slow, &longest);
    }
    slow->cause_ns[SV_LLM_BY_DELIVERY] = sv_sat_sub(k->ts_ns, w.to_ns);
    int64_t left = slow->gap_ns;
    for (int c = 0; c < SV_N_LLM_CAUSES; c++)
        left = sv_sat_sub(left, slow->cause_ns[c]);
    slow->cause_ns[SV_LLM_BY_IDLE] += left > 0 ? left : 0;
    add_loads(l, &w, slow);
    for (int c = 0; c < SV_N_LLM_CAUSES; c++)
        if (slow->cause_ns[c] > slow->cause_ns[slow->cause])
            slow->cause = (enum sv_llm_cause)c;
    if (slow->cause == SV_LLM_BY_QUEUE && r->scheduled_ns != SV_LLM_UNKNOWN)
        name_queue_step(l, &(struct window){w.from_ns, r->scheduled_ns}, slow);
    blame_member(l, k->request, slow);
}

/* ---- the slowest ---- */

static int by_gap(const void *a, const void *b)
{
    const struct sv_llm_slow *x = a, *y = b;
    return x->gap_ns != y->gap_ns ? (x->gap_ns < y->gap_ns) - (x->gap_ns > y->gap_ns)
                                  : (x->token > y->token) - (x->token < y->token);
}

/* A heap whose root is the fastest of those that are kept. */
static void sift(struct sv_llm_slow *heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = i, left = 2 * i + 1;
        for (size_t k = left; k < left + 2 && k < n; k++)
            if (by_gap(&heap[k], &heap[least]) > 0)
                least = k;
        if (least == i)
            return;
        struct sv_llm_slow x = heap[i];
        heap[i] = heap[least];
        heap[least] = x;
        i = least;
    }
}

static size_t keep_slowest(const struct sv_llm *l, bool is_first, size_t most,
                           struct sv_llm_slow *heap)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_tokens && most; i++) {
        const struct sv_llm_token *k = &l->tokens[i];
        struct sv_llm_slow s = {.token = (uint32_t)i, .gap_ns = sv_llm_gap(l, k)};
        if ((k->number == 0) != is_first || s.gap_ns <= 0 || l->requests[k->request].is_warmup)
            continue;
        if (n < most) {
            heap[n++] = s;
            for (size_t at = n; n == most && at-- > 0;)
                sift(heap, n, at);
        } else if (by_gap(&s, &heap[0]) < 0) {
            heap[0] = s;
            sift(heap, n, 0);
        }
    }
    return n;
}

struct sv_llm_slow *sv_llm_slowest(const struct sv_llm *l, size_t most, size_t *n)
{
    most = most < l->n_tokens ? most : l->n_tokens;
    struct sv_llm_slow *slow = sv_alloc((2 * most + 1) * sizeof *slow);
    *n = keep_slowest(l, true, most, slow);
    *n += keep_slowest(l, false, most, slow + *n);
    for (size_t i = 0; i < *n; i++)
        explain(l, &slow[i]);
    qsort(slow, *n, sizeof *slow, by_gap);
    return slow;
}

/* Figures from the tables of subjects/engine/llm.h. Everything is n log n at most. Called by report
 * llm and by the plots. */
#include "subjects/engine/llm_figures.h"

#include "core/base/mem.h"
#include "core/base/sat.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_llm_measure_names[SV_N_LLM_MEASURES] = {"ttft", "tpot", "itl", "e2e"};

enum { BUCKETS = 33 };

/* ---- values ---- */

struct values {
    int64_t *items;
    size_t n, cap;
};

static void add(struct values *v, int64_t value)
{
    if (value < 0)
        return;
    SV_APPEND(v->items, v->n, v->cap) = value;
}

static struct sv_latency take(struct values *v)
{
    struct sv_latency l = sv_latency_of(v->items, v->n);
    free(v->items);
    *v = (struct values){0};
    return l;
}

static bool counts(const struct sv_llm_request *r)
{
    return r->fate == SV_FATE_RESPONDED && !r->is_warmup;
}

/* A token that left together with the one before it is part of that delivery. */
static bool is_delivery(const struct sv_llm *l, const struct sv_llm_token *k)
{
    return k->number > 0 && k->ts_ns != (k - 1)->ts_ns && counts(&l->requests[k->request]);
}

static int64_t measure_of(const struct sv_llm_request *r, enum sv_llm_measure m)
{
    return m == SV_LLM_TTFT ? sv_llm_ttft(r) : m == SV_LLM_TPOT ? sv_llm_tpot(r) : sv_llm_e2e(r);
}

/* ---- requests ---- */

static void count_requests(struct sv_llm_figures *f, const struct sv_llm *l)
{
    uint64_t *const fates[SV_N_FATES] = {&f->open, &f->answered, &f->rejected, &f->failed,
                                         &f->cancelled};
    bool has_time = false;
    for (size_t i = 0; i < l->n_requests; i++) {
        const struct sv_llm_request *r = &l->requests[i];
        f->warmup += r->is_warmup;
        if (r->is_warmup)
            continue;
        ++*fates[r->fate];
        f->prompt_tokens += r->prompt;
        f->cached_tokens += r->cached;
        f->output_tokens += r->output;
        f->preemptions += r->preemptions;
        f->proposed += r->proposed;
        f->accepted += r->accepted;
        if (r->arrival_ns == SV_LLM_UNKNOWN)
            continue;
        int64_t end = r->end_ns != SV_LLM_UNKNOWN ? r->end_ns : r->arrival_ns;
        f->first_ns = !has_time || r->arrival_ns < f->first_ns ? r->arrival_ns : f->first_ns;
        f->last_ns = !has_time || end > f->last_ns ? end : f->last_ns;
        has_time = true;
    }
    if (!has_time && l->n_steps) {
        const struct sv_llm_step *last = &l->steps[l->n_steps - 1];
        f->first_ns = l->steps[0].ts_ns;
        f->last_ns = sv_sat_add(last->ts_ns, last->dur_ns);
    }
}

static void measure_requests(struct sv_llm_figures *f, const struct sv_llm *l)
{
    struct values v = {0};
    for (int m = 0; m < SV_N_LLM_MEASURES; m++) {
        if (m == SV_LLM_ITL) {
            for (size_t i = 0; i < l->n_tokens; i++)
                if (is_delivery(l, &l->tokens[i]))
                    add(&v, sv_llm_gap(l, &l->tokens[i]));
        } else {
            for (size_t i = 0; i < l->n_requests; i++)
                if (counts(&l->requests[i]))
                    add(&v, measure_of(&l->requests[i], (enum sv_llm_measure)m));
        }
        f->measures[m] = take(&v);
    }
    for (int p = SV_ENGINE_QUEUE; p < SV_N_ENGINE_PHASES; p++) {
        for (size_t i = 0; i < l->n_requests; i++)
            if (counts(&l->requests[i]))
                add(&v, l->requests[i].phase_ns[p]);
        f->phases[p] = take(&v);
    }
}

/* ---- steps ---- */

static uint64_t size_of(const struct sv_llm_step *s)
{
    return (uint64_t)s->n_prefill + s->n_decode;
}

static void count_steps(struct sv_llm_figures *f, const struct sv_llm *l)
{
    int64_t until = INT64_MIN;
    f->kv_peak = -1;
    for (size_t i = 0; i < l->n_steps; i++) {
        const struct sv_llm_step *s = &l->steps[i];
        if (s->is_warmup)
            continue;
        int64_t from = s->ts_ns > until ? s->ts_ns : until, end = sv_sat_add(s->ts_ns, s->dur_ns);
        f->steps++;
        f->members += size_of(s);
        f->tokens_in += s->tokens_in;
        f->kernel_ns = sv_sat_add(f->kernel_ns, s->kernel_ns);
        f->io_ns = sv_sat_add(f->io_ns, s->io_ns);
        f->busy_ns = sv_sat_add(f->busy_ns, end > from ? sv_sat_sub(end, from) : 0);
        until = end > until ? end : until;
        if (s->kv_total > 0 && s->kv_used >= 0) {
            double share = (double)s->kv_used / (double)s->kv_total;
            f->kv_peak = share > f->kv_peak ? share : f->kv_peak;
        }
    }
}

/* ---- groups: 0, 1, 2 … 3, 4 … 7, … ---- */

static unsigned bucket_of(uint64_t n)
{
    return n == 0 ? 0 : n > UINT32_MAX ? BUCKETS - 1 : 64u - (unsigned)__builtin_clzll(n);
}

struct bucket {
    struct sv_llm_group g;
    struct values dur, ttft, tpot, itl, e2e;
};

static void take_groups(struct sv_llm_groups *to, struct bucket *buckets)
{
    to->groups = sv_alloc(BUCKETS * sizeof *to->groups);
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct bucket *b = &buckets[i];
        struct sv_llm_group g = b->g;
        g.from = i ? (uint64_t)1 << (i - 1) : 0;
        g.to = i ? ((uint64_t)1 << i) - 1 : 0;
        g.dur = take(&b->dur);
        g.ttft = take(&b->ttft);
        g.tpot = take(&b->tpot);
        g.itl = take(&b->itl);
        g.e2e = take(&b->e2e);
        if (g.n)
            to->groups[to->n++] = g;
    }
}

static void group_steps(struct sv_llm_figures *f, const struct sv_llm *l)
{
    struct bucket *buckets = sv_alloc(BUCKETS * sizeof *buckets);
    for (size_t i = 0; i < l->n_steps; i++) {
        const struct sv_llm_step *s = &l->steps[i];
        struct bucket *b = &buckets[bucket_of(size_of(s))];
        if (s->is_warmup)
            continue;
        b->g.n++;
        b->g.tokens_in += s->tokens_in;
        b->g.tokens_out += s->tokens_out;
        b->g.dur_ns = sv_sat_add(b->g.dur_ns, s->dur_ns);
        add(&b->dur, s->dur_ns);
    }
    for (size_t i = 0; i < l->n_tokens; i++)
        if (is_delivery(l, &l->tokens[i]))
            add(&buckets[bucket_of(size_of(&l->steps[l->tokens[i].step]))].itl,
                sv_llm_gap(l, &l->tokens[i]));
    take_groups(&f->by_size, buckets);
    free(buckets);
}

static void group_requests(struct sv_llm_figures *f, const struct sv_llm *l)
{
    struct bucket *buckets = sv_alloc(BUCKETS * sizeof *buckets);
    for (size_t i = 0; i < l->n_requests; i++) {
        const struct sv_llm_request *r = &l->requests[i];
        struct bucket *b = &buckets[bucket_of(r->load)];
        if (!counts(r) || r->is_whole)
            continue;
        b->g.n++;
        b->g.tokens_in += r->prompt;
        b->g.tokens_out += r->output;
        add(&b->ttft, sv_llm_ttft(r));
        add(&b->tpot, sv_llm_tpot(r));
        add(&b->e2e, sv_llm_e2e(r));
    }
    take_groups(&f->by_load, buckets);
    free(buckets);
}

void sv_llm_figures_make(struct sv_llm_figures *f, const struct sv_llm *l)
{
    memset(f, 0, sizeof *f);
    count_requests(f, l);
    measure_requests(f, l);
    count_steps(f, l);
    group_steps(f, l);
    group_requests(f, l);
}

void sv_llm_figures_fini(struct sv_llm_figures *f)
{
    free(f->by_size.groups);
    free(f->by_load.groups);
}

/* ---- goodput ---- */

static bool keeps(const struct sv_llm *l, const struct sv_llm_request *r, enum sv_llm_measure m,
                  int64_t limit_ns)
{
    if (!limit_ns)
        return true;
    if (m != SV_LLM_ITL) {
        int64_t v = measure_of(r, m);
        return v <= limit_ns && (v >= 0 || m == SV_LLM_TPOT); /* one token: nothing to wait for */
    }
    for (uint32_t i = 1; i < r->n_tokens; i++)
        if (sv_llm_gap(l, &l->tokens[r->first_token + i]) > limit_ns)
            return false;
    return true;
}

struct sv_llm_goodput sv_llm_goodput(const struct sv_llm *l, const struct sv_llm_slo *slo)
{
    struct sv_llm_goodput g = {0};
    for (size_t i = 0; i < l->n_requests; i++) {
        const struct sv_llm_request *r = &l->requests[i];
        bool is_good = true;
        if (r->is_warmup || r->fate == SV_FATE_OPEN || r->fate == SV_FATE_CANCELLED)
            continue;
        g.all++;
        for (int m = 0; m < SV_N_LLM_MEASURES; m++) {
            bool is_kept = counts(r) && keeps(l, r, (enum sv_llm_measure)m, slo->limit_ns[m]);
            g.within[m] += is_kept;
            is_good &= is_kept;
        }
        g.good += is_good;
    }
    return g;
}

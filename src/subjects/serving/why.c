/* What requests waited for in each of their phases: pieces of the ledger, cut at the ends of the
 * phases, as sums of those that are alike. Called by report batch --why. */
#include "subjects/serving/why.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "subjects/engine/request_units.h"

#include <stdlib.h>
#include <string.h>

struct summing {
    struct sv_serving_why *w;
    const struct sv_serving_report *r;
    struct sv_map by_key, by_id; /* request → its row in the report */
};

static uint64_t key_of(const struct sv_serving_why_row *x)
{
    uint64_t key = sv_hash_bytes(x->in.bytes, x->in.len, x->thread);
    return sv_mix64(key ^ ((uint64_t)x->phase << 16 | (uint64_t)x->class << 8 | x->doing));
}

static void add(struct summing *s, const struct sv_serving_why_row *like, size_t unit, int64_t ns)
{
    struct sv_serving_why *w = s->w;
    bool is_new;
    uint64_t *at = sv_map_add(&s->by_key, key_of(like), &is_new);
    if (is_new) {
        *at = w->n;
        w->rows = sv_grow(w->rows, &w->cap, w->n + 1, sizeof *w->rows);
        w->rows[w->n++] = *like;
    }
    struct sv_serving_why_row *x = &w->rows[*at];
    x->ns += ns;
    x->n += x->last != unit + 1;
    x->last = unit + 1;
    if (ns > x->longest_ns) {
        x->longest_ns = ns;
        x->longest = (uint64_t)w->ledger.units[unit].number;
    }
    w->phase_ns[like->phase] += ns;
    w->ns += ns;
}

/* A sum of pieces has one time for all of them: it belongs to the phase in which that begins. */
static void add_piece(struct summing *s, const struct sv_served_request *q, size_t unit,
                      const struct sv_why_piece *p)
{
    const struct sv_ledger *l = &s->w->ledger;
    struct sv_text path = sv_why_path(l, p);
    struct sv_serving_why_row like = {.class = p->class,
                                      .doing = p->doing,
                                      .thread = p->thread,
                                      .in = path.len ? path : sv_why_frame(l, p)};
    int64_t end = p->ts_ns + p->dur_ns, left = p->dur_ns;
    for (int k = 0; k < SV_N_PHASES && left > 0; k++) {
        int64_t from = p->ts_ns > q->edges[k] ? p->ts_ns : q->edges[k],
                to = end < q->edges[k + 1] || k + 1 == SV_N_PHASES ? end : q->edges[k + 1];
        int64_t ns = p->is_sum && to > from ? left : to - from;
        like.phase = (uint8_t)k;
        if (ns > 0)
            add(s, &like, unit, ns);
        left -= ns > 0 ? ns : 0;
    }
}

static int most_first(const void *a, const void *b)
{
    const struct sv_serving_why_row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static bool is_asked(const struct sv_served_request *q, const struct sv_served_request *only)
{
    return only ? q == only : q->fate == SV_FATE_RESPONDED && !q->is_warmup;
}

void sv_serving_why_make(struct sv_serving_why *w, const struct sv_serving_report *r,
                         const struct sv_trace *t, const struct sv_served_request *only)
{
    struct summing s = {.w = w, .r = r};
    *w = (struct sv_serving_why){0};
    sv_why_make(&w->ledger, t, &(struct sv_ledger_options){.step = -1});
    w->is_other = w->ledger.kind != SV_UNIT_IS_REQUEST;
    for (size_t i = 0; i < r->n_requests; i++)
        *sv_map_add(&s.by_id, r->requests[i].id, NULL) = i;
    for (size_t i = 0; i < w->ledger.n_units && !w->is_other; i++) {
        const struct sv_why_unit *u = &w->ledger.units[i];
        const uint64_t *at = sv_map_find(&s.by_id, (uint64_t)u->number);
        const struct sv_served_request *q = at ? &r->requests[*at] : NULL;
        if (u->kind != SV_UNIT_IS_REQUEST || !q || !is_asked(q, only))
            continue;
        w->n_requests++;
        w->has_threads |= u->thread != SV_NO_THREAD;
        for (size_t k = u->first; k < u->end; k++)
            add_piece(&s, q, i, &w->ledger.pieces[k]);
    }
    if (w->n)
        qsort(w->rows, w->n, sizeof *w->rows, most_first);
    sv_map_fini(&s.by_key);
    sv_map_fini(&s.by_id);
}

void sv_serving_why_fini(struct sv_serving_why *w)
{
    sv_ledger_fini(&w->ledger);
    free(w->rows);
    *w = (struct sv_serving_why){0};
}

/* What each request had of a step: of its time, and of the kernels and I/O that ran inside it.
 *
 * The rule: by the tokens that the step computed for the request (core/serving/engine.h), to the
 * nanosecond, so that shares sum to the whole. A kernel or a call of I/O belongs to the step that
 * runs at that time: of its own process, or of any where the trace has one engine only; where steps
 * overlap, to the one that began last. Each nanosecond of it is in one step at most. Called by
 * sv_llm_make(). */
#include "subjects/engine/llm.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/sort.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps by process ---- */

struct place {
    sv_track process;
    uint32_t step;
    int64_t ts_ns, end_ns; /* until the next one begins */
};

struct places {
    struct place *items;
    size_t n;
    struct sv_map first; /* process → index + 1 of its first one */
    bool is_any;         /* one engine: whatever the process */
};

static inline bool is_before(const struct place *a, const struct place *b, const void *ctx)
{
    (void)ctx;
    return a->process != b->process ? a->process < b->process : a->ts_ns < b->ts_ns;
}
SV_SORT_DEFINE(sort_places, struct place, is_before)

static sv_track process_of(const struct sv_llm *l, const struct places *p, sv_track track)
{
    return p->is_any ? 0 : sv_dict_process_of(l->trace->dict, track);
}

static void find_places(struct places *p, const struct sv_llm *l)
{
    memset(p, 0, sizeof *p);
    p->is_any = l->n_engines <= 1;
    p->items = sv_realloc(NULL, (l->n_steps + 1) * sizeof *p->items);
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct sv_llm_step *s = &l->steps[i];
        if (s->dur_ns > 0)
            p->items[p->n++] = (struct place){process_of(l, p, s->track), i, s->ts_ns,
                                              sv_sat_add(s->ts_ns, s->dur_ns)};
    }
    struct place *spare = sv_realloc(NULL, SV_SORT_SPARE(p->n) * sizeof *spare);
    sort_places(p->items, p->n, spare, NULL);
    free(spare);
    for (size_t i = 0; i < p->n; i++) {
        struct place *a = &p->items[i];
        if (i == 0 || a->process != a[-1].process)
            *sv_map_add(&p->first, a->process, NULL) = i + 1;
        if (i + 1 < p->n && a[1].process == a->process && a[1].ts_ns < a->end_ns)
            a->end_ns = a[1].ts_ns;
    }
}

/* The last place of the process that begins at or before ts_ns, else its first one; p->n: none. */
static size_t place_at(const struct places *p, sv_track process, int64_t ts_ns)
{
    const uint64_t *first = sv_map_find(&p->first, process);
    if (!first)
        return p->n;
    size_t low = (size_t)*first - 1, high = p->n;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (p->items[mid].process == process && p->items[mid].ts_ns <= ts_ns)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* ---- kernels and I/O ---- */

enum kind { NEITHER, KERNEL, IO };

struct kinds {
    uint8_t *of; /* by string */
    uint32_t n;
};

static void find_kinds(struct kinds *k, const struct sv_dict *d)
{
    static const struct {
        const char *cat;
        enum kind kind;
    } cats[] = {{"kernel", KERNEL}, {"gpu_kernel", KERNEL}, {"Kernel", KERNEL}, {"io", IO},
                {"vfs", IO},        {"syscall", IO},        {"io_uring", IO}};
    k->n = d->n_strings;
    k->of = sv_alloc(k->n + 1);
    for (size_t i = 0; i < sizeof cats / sizeof *cats; i++) {
        sv_str s = sv_dict_find_str(d, cats[i].cat, strlen(cats[i].cat));
        if (s)
            k->of[s] = (uint8_t)cats[i].kind;
    }
}

static enum kind kind_of(const struct kinds *k, const struct sv_slices *s, uint32_t row)
{
    sv_str cat = s->cat[row];
    return s->kind[row] == SV_SLICE && cat < k->n ? (enum kind)k->of[cat] : NEITHER;
}

static void add_slice(struct sv_llm *l, const struct places *p, uint32_t row, enum kind kind)
{
    int64_t from = l->trace->slices.ts_ns[row], to = sv_trace_end_ns(l->trace, row);
    sv_track process = process_of(l, p, l->trace->slices.track[row]);
    for (size_t i = place_at(p, process, from);
         i < p->n && p->items[i].process == process && p->items[i].ts_ns < to; i++) {
        const struct place *a = &p->items[i];
        int64_t begin = from > a->ts_ns ? from : a->ts_ns, end = to < a->end_ns ? to : a->end_ns;
        int64_t *sum = kind == KERNEL ? &l->steps[a->step].kernel_ns : &l->steps[a->step].io_ns;
        if (end > begin)
            *sum = sv_sat_add(*sum, sv_sat_sub(end, begin));
    }
}

/* Inside another one of its kind it counts already. */
static void find_work(struct sv_llm *l)
{
    const struct sv_slices *s = &l->trace->slices;
    struct places p;
    struct kinds k;
    if (l->n_steps == 0)
        return;
    find_places(&p, l);
    find_kinds(&k, l->trace->dict);
    for (uint32_t row = 0; row < s->n; row++) {
        enum kind kind = kind_of(&k, s, row);
        if (kind == NEITHER ||
            (s->parent[row] != SV_NO_ROW && kind_of(&k, s, s->parent[row]) == kind))
            continue;
        add_slice(l, &p, row, kind);
    }
    free(k.of);
    free(p.items);
    sv_map_fini(&p.first);
}

/* ---- shares ---- */

struct room {
    uint64_t *weights, *scratch;
    int64_t *shares;
    size_t cap;
};

static void need(struct room *r, size_t n)
{
    if (n <= r->cap)
        return;
    r->cap = 2 * n;
    r->weights = sv_realloc(r->weights, r->cap * sizeof *r->weights);
    r->scratch = sv_realloc(r->scratch, 2 * r->cap * sizeof *r->scratch);
    r->shares = sv_realloc(r->shares, r->cap * sizeof *r->shares);
}

static void give(int64_t *to_request, int64_t *to_member, int64_t ns)
{
    *to_member = ns;
    *to_request = sv_sat_add(*to_request, ns);
}

static void divide_step(struct sv_llm *l, const struct sv_llm_step *s, struct room *r)
{
    struct sv_llm_member *m = &l->members[s->first_member];
    need(r, s->n);
    for (uint32_t i = 0; i < s->n; i++)
        r->weights[i] = sv_engine_weight(&m[i].m);
    sv_engine_shares(s->dur_ns, r->weights, s->n, r->shares, r->scratch);
    for (uint32_t i = 0; i < s->n; i++)
        give(&l->requests[m[i].request].share_ns, &m[i].share_ns, r->shares[i]);
    if (s->kernel_ns) {
        sv_engine_shares(s->kernel_ns, r->weights, s->n, r->shares, r->scratch);
        for (uint32_t i = 0; i < s->n; i++)
            give(&l->requests[m[i].request].kernel_ns, &m[i].kernel_ns, r->shares[i]);
    }
    if (s->io_ns) {
        sv_engine_shares(s->io_ns, r->weights, s->n, r->shares, r->scratch);
        for (uint32_t i = 0; i < s->n; i++)
            give(&l->requests[m[i].request].io_ns, &m[i].io_ns, r->shares[i]);
    }
}

void sv_llm_divide(struct sv_llm *l)
{
    struct room r = {0};
    find_work(l);
    for (size_t i = 0; i < l->n_steps; i++)
        if (l->steps[i].n)
            divide_step(l, &l->steps[i], &r);
    free(r.weights);
    free(r.scratch);
    free(r.shares);
}

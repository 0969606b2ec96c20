/* Kinds of work along the line of time. Used by the division of steps.
 *
 * Settling goes over the spans in the order of their beginnings with a heap of those that are open,
 * the lowest rank on top; each span enters and leaves it once. */
#include "why/work_line.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "core/base/sort.h"

#include <stdlib.h>
#include <string.h>

void sv_work_line_fini(struct sv_work_line *l)
{
    free(l->spans);
    free(l->before);
    *l = (struct sv_work_line){0};
}

void sv_work_line_add(struct sv_work_line *l, int64_t from_ns, int64_t to_ns, uint8_t kind,
                      uint32_t rank)
{
    struct sv_work_span *last = l->n ? &l->spans[l->n - 1] : NULL;
    if (from_ns >= to_ns)
        return;
    if (last && last->to_ns == from_ns && last->kind == kind && last->rank == rank) {
        last->to_ns = to_ns;
        return;
    }
    l->spans = sv_grow(l->spans, &l->cap, l->n + 1, sizeof *l->spans);
    l->spans[l->n++] = (struct sv_work_span){from_ns, to_ns, rank, kind};
}

static bool begins_before(const struct sv_work_span *a, const struct sv_work_span *b,
                          const void *unused)
{
    (void)unused;
    return a->from_ns < b->from_ns;
}
SV_SORT_DEFINE(sort_spans, struct sv_work_span, begins_before)

/* ---- the open ones ---- */

struct heap {
    struct sv_work_span *v;
    size_t n;
};

static bool is_above(const struct sv_work_span *a, const struct sv_work_span *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->from_ns < b->from_ns);
}

static void push(struct heap *h, const struct sv_work_span *x)
{
    size_t at = h->n++;
    for (; at > 0 && is_above(x, &h->v[(at - 1) / 2]); at = (at - 1) / 2)
        h->v[at] = h->v[(at - 1) / 2];
    h->v[at] = *x;
}

static void pop(struct heap *h)
{
    struct sv_work_span moved = h->v[--h->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && is_above(&h->v[child + 1], &h->v[child]))
            child++;
        if (!is_above(&h->v[child], &moved))
            break;
        h->v[at] = h->v[child];
    }
    if (h->n)
        h->v[at] = moved;
}

/* What counts from at_ns until `until`, into the line; what has ended leaves the heap when it comes
 * to the top. */
static void add_span(struct sv_work_line *to, struct heap *open, int64_t at_ns, int64_t until_ns)
{
    while (open->n && at_ns < until_ns) {
        const struct sv_work_span top = open->v[0];
        int64_t end = top.to_ns < until_ns ? top.to_ns : until_ns;
        if (top.to_ns <= at_ns) {
            pop(open);
            continue;
        }
        sv_work_line_add(to, at_ns, end, top.kind, 0);
        at_ns = end;
    }
}

static void sum_up(struct sv_work_line *l)
{
    l->before = sv_alloc((l->n + 1) * sizeof *l->before);
    for (size_t i = 0; i < l->n; i++) {
        memcpy(l->before[i + 1], l->before[i], sizeof *l->before);
        int64_t *sum = &l->before[i + 1][l->spans[i].kind];
        *sum = sv_sat_add(*sum, sv_sat_sub(l->spans[i].to_ns, l->spans[i].from_ns));
    }
}

void sv_work_line_settle(struct sv_work_line *l)
{
    struct sv_work_line settled = {0};
    struct sv_work_span *spare = sv_alloc(SV_SORT_SPARE(l->n) * sizeof *spare);
    struct heap open = {.v = sv_alloc((l->n + 1) * sizeof *open.v)};
    sort_spans(l->spans, l->n, spare, NULL);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            add_span(&settled, &open, l->spans[i - 1].from_ns, l->spans[i].from_ns);
        push(&open, &l->spans[i]);
    }
    if (l->n)
        add_span(&settled, &open, l->spans[l->n - 1].from_ns, INT64_MAX);
    free(spare);
    free(open.v);
    sv_work_line_fini(l);
    *l = settled;
    sum_up(l);
}

/* Adds (sign 1) or takes away (-1) the time of each kind before ts_ns. */
static void add_before(const struct sv_work_line *l, int64_t ts_ns, int64_t sign,
                       int64_t sums[SV_N_WORK])
{
    /* the first span that ends after ts_ns */
    size_t low;
    SV_SEARCH(low, middle, 0, l->n, l->spans[middle].to_ns <= ts_ns);
    for (size_t k = 0; k < SV_N_WORK; k++)
        sums[k] += sign * l->before[low][k];
    if (low < l->n && l->spans[low].from_ns < ts_ns)
        sums[l->spans[low].kind] += sign * (ts_ns - l->spans[low].from_ns);
}

void sv_work_line_sum(const struct sv_work_line *l, int64_t from_ns, int64_t to_ns,
                      int64_t sums[SV_N_WORK])
{
    if (from_ns >= to_ns || l->n == 0)
        return;
    add_before(l, to_ns, 1, sums);
    add_before(l, from_ns, -1, sums);
}

/* What slow units have more of than the others. Called by explain/explain_waits.c.
 *
 * A mean hides them: users ask why the slowest take ten times as long. A unit is slow that takes
 * more than 1.5 times as long as the one in the middle. What it takes longer is divided by causes:
 * what it has of each beyond what the middle half of the units have. */
#include "explain/waits.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS_LEAST = 20, SLOW_LEAST = 3, LONE_TIMES = 3, SLOW_PART = 4 };
#define SLOW_TIMES  1.5
#define SHARE_LEAST 0.1

/* A step and the time before it are one. */
struct whole {
    size_t first, n;
    int64_t ns;
};

static struct whole *find_wholes(const struct sv_ledger *l, size_t *n)
{
    struct whole *all = sv_alloc((l->n_units + 1) * sizeof *all);
    *n = 0;
    for (size_t i = 0; i < l->n_units; i++) {
        const struct sv_why_unit *u = &l->units[i];
        bool is_rest = i && u->kind == SV_UNIT_IS_STEP && u[-1].kind == SV_UNIT_IS_BETWEEN &&
                       u[-1].row == u->row && u[-1].counts;
        if (!u->counts)
            continue;
        if (is_rest) {
            all[*n - 1].ns += u->dur_ns;
            all[*n - 1].n++;
        } else {
            all[(*n)++] = (struct whole){i, 1, u->dur_ns};
        }
    }
    return all;
}

static int by_time(const void *a, const void *b)
{
    const struct whole *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? 1 : -1;
    return x->first > y->first ? 1 : -1;
}

enum { OTHER, MIDDLE, SLOW };

/* Says of each unit what it is; false: none is slow. */
static bool divide(struct sv_slow_units *s, const struct sv_ledger *l, uint8_t *is, size_t *middle)
{
    size_t n;
    struct whole *all = find_wholes(l, &n);
    if (n > 1)
        qsort(all, n, sizeof *all, by_time);
    double median = n ? (double)all[n / 2].ns : 0, slow_ns = 0, middle_ns = 0;
    *middle = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_slow = (double)all[i].ns > SLOW_TIMES * median,
             is_middle = i >= n / 4 && i < n - n / 4 && !is_slow;
        for (size_t k = 0; k < all[i].n; k++)
            is[all[i].first + k] = is_slow ? SLOW : is_middle ? MIDDLE : OTHER;
        s->n += is_slow;
        *middle += is_middle;
        slow_ns += is_slow ? (double)all[i].ns : 0;
        middle_ns += is_middle ? (double)all[i].ns : 0;
    }
    s->of = n;
    s->longest_ns = n ? (double)all[n - 1].ns : 0;
    s->mean_ns = s->n ? slow_ns / (double)s->n : 0;
    s->usual_ns = *middle ? middle_ns / (double)*middle : 0;
    free(all);
    return n >= UNITS_LEAST && s->n && *middle && s->n <= n / SLOW_PART &&
           (s->n >= SLOW_LEAST || s->longest_ns > LONE_TIMES * median);
}

bool sv_slow_units_ask(struct sv_explaining *x, double *shares)
{
    const struct sv_ledger *l = x->ledger;
    struct sv_slow_units s = {0};
    uint8_t *is = sv_alloc(l->n_units + 1);
    size_t middle, n = x->groups->n;
    bool is_any = divide(&s, l, is, &middle);
    if (is_any) {
        double all = s.mean_ns - s.usual_ns, positive = 0;
        memset(shares, 0, n * sizeof *shares);
        for (size_t i = 0; i < l->n_pieces; i++) {
            unsigned kind = x->groups->of[i] != UINT32_MAX ? is[l->pieces[i].unit] : OTHER;
            if (kind != OTHER)
                shares[x->groups->of[i]] += (double)l->pieces[i].dur_ns /
                                            (kind == SLOW ? (double)s.n : -(double)middle);
        }
        for (size_t i = 0; i < n; i++)
            positive += shares[i] > 0 ? shares[i] : 0;
        all = positive > all ? positive : all;
        for (size_t i = 0; i < n; i++)
            shares[i] = all > 0 ? shares[i] / all : 0;
        x->e->slow = s;
    }
    free(is);
    return is_any;
}

void sv_slow_units_answer(struct sv_explaining *x, double *shares,
                          void (*explain)(struct sv_explaining *, double *, double))
{
    const struct sv_ledger *l = x->ledger;
    struct sv_slow_units *s = &x->e->slow;
    struct sv_explanation *found = sv_alloc(sizeof *found);
    struct sv_explaining own = *x;
    uint8_t *is = sv_alloc(l->n_units + 1);
    bool *asked = sv_alloc((l->n_units + 1) * sizeof *asked);
    size_t middle;
    divide(&(struct sv_slow_units){0}, l, is, &middle);
    for (size_t i = 0; i < l->n_units; i++)
        asked[i] = is[i] == SLOW;
    own.e = found;
    own.asked = asked;
    explain(&own, shares, SHARE_LEAST);
    double longer = (s->mean_ns - s->usual_ns) * (double)s->n;
    for (; s->n_findings < found->n && s->n_findings < SV_EXPLAIN_SLOW; s->n_findings++) {
        struct sv_answer *a = &s->findings[s->n_findings];
        *a = found->findings[s->n_findings];
        a->gain = l->dur_ns > 0 ? a->share * longer / (double)l->dur_ns : 0;
    }
    free(asked);
    free(is);
    free(found);
}

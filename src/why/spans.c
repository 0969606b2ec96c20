/* Sets of time. Used by the reports; linear but for settling, which sorts, and the look into a
 * window, which is a binary search: each stretch knows what is before it. */
#include "why/spans.h"

#include "core/base/mem.h"
#include "core/base/search.h"
#include "core/base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void sv_spans_fini(struct sv_spans *s)
{
    free(s->items);
    *s = (struct sv_spans){0};
}

static void add(struct sv_spans *s, const struct sv_span *x)
{
    struct sv_span *end = s->n ? &s->items[s->n - 1] : NULL;
    if (x->from_ns >= x->to_ns)
        return;
    if (!end || x->from_ns > end->to_ns) {
        struct sv_span new = *x;
        new.before_ns = end ? end->before_ns + (end->to_ns - end->from_ns) : 0;
        s->items = sv_grow(s->items, &s->cap, s->n + 1, sizeof *s->items);
        s->items[s->n++] = new;
    } else if (x->to_ns > end->to_ns) {
        end->to_ns = x->to_ns;
        end->last = x->last;
    }
}

void sv_spans_add(struct sv_spans *s, int64_t from_ns, int64_t to_ns, uint32_t row)
{
    add(s, &(struct sv_span){.from_ns = from_ns, .to_ns = to_ns, .row = row, .last = row});
}

void sv_spans_unite(struct sv_spans *s, const struct sv_spans *with)
{
    struct sv_spans sum = {0};
    size_t i = 0, k = 0;
    if (!with->n)
        return;
    while (i < s->n || k < with->n) {
        bool is_first = k == with->n || (i < s->n && s->items[i].from_ns <= with->items[k].from_ns);
        add(&sum, is_first ? &s->items[i++] : &with->items[k++]);
    }
    sv_spans_fini(s);
    *s = sum;
}

void sv_spans_append(struct sv_spans *s, const struct sv_spans *with)
{
    if (!with->n)
        return;
    s->items = sv_grow(s->items, &s->cap, s->n + with->n, sizeof *s->items);
    memcpy(s->items + s->n, with->items, with->n * sizeof *s->items);
    s->n += with->n;
}

static bool begins_before(const struct sv_span *a, const struct sv_span *b, const void *unused)
{
    (void)unused;
    return a->from_ns < b->from_ns;
}
SV_SORT_DEFINE(sort_spans, struct sv_span, begins_before)

void sv_spans_settle(struct sv_spans *s)
{
    struct sv_spans all = *s;
    struct sv_span *spare = sv_alloc(SV_SORT_SPARE(all.n) * sizeof *spare);
    sort_spans(all.items, all.n, spare, NULL);
    free(spare);
    s->n = 0; /* it cannot get longer, so it is made where it lies */
    for (size_t i = 0; i < all.n; i++) {
        struct sv_span x = all.items[i];
        add(s, &x);
    }
}

int64_t sv_spans_length(const struct sv_spans *s)
{
    const struct sv_span *last = s->n ? &s->items[s->n - 1] : NULL;
    return last ? last->before_ns + (last->to_ns - last->from_ns) - s->items[0].before_ns : 0;
}

static int64_t overlap(const struct sv_span *a, const struct sv_span *b)
{
    int64_t from = a->from_ns > b->from_ns ? a->from_ns : b->from_ns;
    int64_t to = a->to_ns < b->to_ns ? a->to_ns : b->to_ns;
    return to > from ? to - from : 0;
}

int64_t sv_spans_common(const struct sv_spans *a, const struct sv_spans *b)
{
    int64_t sum = 0;
    for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
        sum += overlap(&a->items[i], &b->items[k]);
        if (a->items[i].to_ns < b->items[k].to_ns)
            i++;
        else
            k++;
    }
    return sum;
}

/* The first stretch that ends after ts_ns. */
static size_t first_after(const struct sv_spans *s, int64_t ts_ns)
{
    size_t low;
    SV_SEARCH(low, middle, 0, s->n, s->items[middle].to_ns <= ts_ns);
    return low;
}

struct sv_spans sv_spans_part(const struct sv_spans *s, int64_t from_ns, int64_t to_ns)
{
    size_t first = first_after(s, from_ns), end = first_after(s, to_ns);
    end += end < s->n && s->items[end].from_ns < to_ns;
    return (struct sv_spans){.items = s->n ? s->items + first : NULL, .n = end - first};
}

/* How much of the time before ts_ns it covers. */
static int64_t length_before(const struct sv_spans *s, int64_t ts_ns)
{
    size_t i = first_after(s, ts_ns);
    if (i == s->n)
        return s->n ? s->items[0].before_ns + sv_spans_length(s) : 0;
    const struct sv_span *x = &s->items[i];
    return x->before_ns + (ts_ns > x->from_ns ? ts_ns - x->from_ns : 0);
}

int64_t sv_spans_within(const struct sv_spans *s, int64_t from_ns, int64_t to_ns)
{
    return from_ns < to_ns ? length_before(s, to_ns) - length_before(s, from_ns) : 0;
}

/* The longest or shortest slices, for ORDER BY dur LIMIT n: called by slice.c.
 *
 * One pass over the durations with a heap of the n best so far, the worst of them on top. Slices of
 * one length are in the order of time, which is the order in which a stable sort would leave
 * them. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/heap.h"
#include "core/base/mem.h"
#include "core/base/sort.h"
#include "sql/impl.h"

#include <stdlib.h>

struct timed {
    int64_t key, ts_ns; /* key: the smaller, the better */
    uint32_t row;
};

static bool is_better(const struct timed *a, const struct timed *b, const void *ctx)
{
    (void)ctx;
    if (a->key != b->key)
        return a->key < b->key;
    return a->ts_ns < b->ts_ns || (a->ts_ns == b->ts_ns && a->row < b->row);
}
SV_SORT_DEFINE(sort_best, struct timed, is_better)

static void sink_top(struct timed *heap, size_t n, size_t at)
{
    SV_HEAP_SINK(heap, n, at, a, b, is_better(b, a, NULL));
}

uint32_t *sv_sql_longest(const struct sv_sql *q, bool is_down, uint64_t want, uint64_t *n)
{
    const struct sv_slices *s = &q->trace->slices;
    *n = want < s->n ? want : s->n;
    struct timed *best = sv_alloc_aligned((*n + 1) * sizeof *best, 64);
    for (uint64_t row = 0; row < s->n && *n; row++) {
        /* ~x turns the order around, also at the ends of the range. */
        struct timed t = {is_down ? ~s->dur_ns[row] : s->dur_ns[row], 0, (uint32_t)row};
        if (row >= *n && t.key > best[0].key)
            continue;
        t.ts_ns = s->ts_ns[row];
        if (row < *n) {
            best[row] = t;
            for (size_t i = *n / 2; row + 1 == *n && i-- > 0;)
                sink_top(best, *n, i);
        } else if (is_better(&t, &best[0], NULL)) {
            best[0] = t;
            sink_top(best, *n, 0);
        }
    }
    struct timed *spare = sv_alloc_aligned(SV_SORT_SPARE(*n) * sizeof *spare, 64);
    sort_best(best, *n, spare, NULL);
    free(spare);
    uint32_t *rows = sv_alloc((*n + 1) * sizeof *rows);
    for (uint64_t i = 0; i < *n; i++)
        rows[i] = best[i].row;
    free(best);
    return rows;
}
#endif

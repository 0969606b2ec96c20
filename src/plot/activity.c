/* The part of a trace in which something happens. Called by the time line. See activity.h.
 *
 * By a histogram of the times at which slices begin and counters have values: a few strays before
 * and after may be left out. */
#include "plot/activity.h"

#define BINS        4096u
#define STRAYS      200u /* one of so many slices may lie outside … */
#define STRAYS_FEW  3u   /* … or these few, if they are not more than … */
#define STRAYS_OF   20u  /* … one of so many */
#define GAP_PART    16u  /* of the trace: what is empty for so long is a gap */
#define MOST        0.5  /* of the trace: then all of it is shown */
#define MARGIN_PART 50   /* of the part, on either side */

struct bins {
    int64_t first_ns;
    uint64_t bin_ns;
    uint32_t used;
    uint64_t n[BINS];
};

static uint64_t strays_of(uint64_t n)
{
    uint64_t few = n / STRAYS_OF < STRAYS_FEW ? n / STRAYS_OF : STRAYS_FEW;
    return n / STRAYS > few ? n / STRAYS : few;
}

static void add(struct bins *b, const int64_t *ts_ns, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        b->n[((uint64_t)ts_ns[i] - (uint64_t)b->first_ns) / b->bin_ns]++;
}

static void count(struct bins *b, const struct sv_trace *t)
{
    b->first_ns = t->first_ns;
    b->bin_ns = ((uint64_t)t->last_ns - (uint64_t)t->first_ns) / BINS + 1;
    b->used = (uint32_t)(((uint64_t)t->last_ns - (uint64_t)t->first_ns) / b->bin_ns) + 1;
    add(b, t->slices.ts_ns, t->slices.n);
    add(b, t->counters.ts_ns, t->counters.n);
}

/* The events at one side of [first, last] up to a large gap, if they are few: moves the side to
 * behind the gap. `step`: 1 from the left, -1 from the right. */
static bool drop_strays(const struct bins *b, uint32_t *side, uint32_t other, int step,
                        uint64_t *strays)
{
    uint64_t n = 0;
    uint32_t empty = 0;
    for (uint32_t at = *side; at != other; at += (uint32_t)step) {
        n += b->n[at];
        empty = b->n[at] ? 0 : empty + 1;
        if (n > *strays)
            return false;
        if (empty >= b->used / GAP_PART && b->n[at + (uint32_t)step]) {
            *side = at + (uint32_t)step;
            *strays -= n;
            return true;
        }
    }
    return false;
}

/* Until the end of what begins in it, but not of what spans everything. */
static int64_t last_end(const struct sv_trace *t, int64_t from_ns, int64_t to_ns)
{
    uint64_t span = (uint64_t)to_ns - (uint64_t)from_ns;
    int64_t last = to_ns;
    for (uint64_t i = 0; i < t->slices.n; i++) {
        int64_t begin = t->slices.ts_ns[i], end = sv_trace_end_ns(t, i);
        if (begin >= from_ns && begin < to_ns && end > last &&
            (uint64_t)end - (uint64_t)begin <= span)
            last = end;
    }
    return last;
}

bool sv_activity_find(const struct sv_trace *t, struct sv_activity *a)
{
    struct bins b = {0};
    uint64_t n = t->slices.n + t->counters.n, strays = strays_of(n), inside = 0, margin;
    if (n == 0)
        return false;
    count(&b, t);
    uint32_t first = 0, last = b.used - 1;
    while (drop_strays(&b, &first, last, 1, &strays) || drop_strays(&b, &last, first, -1, &strays))
        ;
    if (last - first + 1 > MOST * b.used)
        return false;
    for (uint32_t i = first; i <= last; i++)
        inside += b.n[i];
    a->n_outside = n - inside;
    a->from_ns = (int64_t)((uint64_t)t->first_ns + first * b.bin_ns);
    a->to_ns = (int64_t)((uint64_t)t->first_ns + ((uint64_t)last + 1) * b.bin_ns);
    a->to_ns = a->to_ns > a->from_ns && a->to_ns <= t->last_ns ? a->to_ns : t->last_ns;
    a->to_ns = last_end(t, a->from_ns, a->to_ns);
    margin = ((uint64_t)a->to_ns - (uint64_t)a->from_ns) / MARGIN_PART;
    if ((uint64_t)a->from_ns - (uint64_t)t->first_ns > margin)
        a->from_ns -= (int64_t)margin;
    if ((uint64_t)t->last_ns - (uint64_t)a->to_ns > margin)
        a->to_ns += (int64_t)margin;
    return a->to_ns > a->from_ns;
}

/* See record/when/window.h. Called by the conditions on durations. */
#include "record/when/window.h"

#include "core/base/mem.h"

#include <string.h>

/* Values below 32 have a bucket each, others 32 for each power of two. */
static unsigned bucket_of(int64_t value)
{
    uint64_t v = value > 0 ? (uint64_t)value : 0;
    if (v < SV_WINDOW_FINE)
        return (unsigned)v;
    unsigned power = 63 - (unsigned)__builtin_clzll(v); /* at least 5 */
    return (power - 4) * SV_WINDOW_FINE + (unsigned)(v >> (power - 5)) - SV_WINDOW_FINE;
}

/* Its middle. */
static int64_t value_of(unsigned bucket)
{
    if (bucket < SV_WINDOW_FINE)
        return bucket;
    unsigned shift = bucket / SV_WINDOW_FINE - 1;
    uint64_t low = (uint64_t)(SV_WINDOW_FINE + bucket % SV_WINDOW_FINE) << shift;
    return (int64_t)(low + ((uint64_t)1 << shift) / 2);
}

struct sv_when_window *sv_window_new(int64_t span_ns)
{
    struct sv_when_window *w = sv_alloc(sizeof *w);
    w->slot_ns = span_ns / SV_WINDOW_SLOTS > 0 ? span_ns / SV_WINDOW_SLOTS : 1;
    w->newest = INT64_MIN;
    return w;
}

void sv_window_clear(struct sv_when_window *w)
{
    int64_t slot_ns = w->slot_ns;
    memset(w, 0, sizeof *w);
    w->slot_ns = slot_ns;
    w->newest = INT64_MIN;
}

static void empty(struct sv_when_window *w, unsigned slot)
{
    for (unsigned i = 0; i < SV_WINDOW_BUCKETS; i++) {
        w->sums[i] -= w->slots[slot][i];
        w->n -= w->slots[slot][i];
    }
    memset(w->slots[slot], 0, sizeof w->slots[slot]);
    w->changes++;
}

static int64_t number_of(const struct sv_when_window *w, int64_t ts_ns)
{
    return ts_ns / w->slot_ns - (ts_ns % w->slot_ns < 0);
}

void sv_window_turn(struct sv_when_window *w, int64_t ts_ns)
{
    int64_t number = number_of(w, ts_ns);
    if (w->newest == INT64_MIN || number > w->newest + SV_WINDOW_SLOTS) {
        if (w->n)
            sv_window_clear(w);
        w->newest = number;
    }
    while (w->newest < number)
        empty(w, (unsigned)((uint64_t)++w->newest % SV_WINDOW_SLOTS));
}

void sv_window_add(struct sv_when_window *w, int64_t ts_ns, int64_t value)
{
    sv_window_turn(w, ts_ns);
    int64_t number = number_of(w, ts_ns);
    unsigned bucket = bucket_of(value);
    if (number <= w->newest - SV_WINDOW_SLOTS || bucket >= SV_WINDOW_BUCKETS)
        return;
    w->slots[(uint64_t)number % SV_WINDOW_SLOTS][bucket]++;
    w->sums[bucket]++;
    w->n++;
    w->changes++;
}

/* Among very many values one more changes little: it is computed again for every 64th part of
 * them. */
int64_t sv_window_at(struct sv_when_window *w, double share)
{
    uint64_t want = (uint64_t)(share * (double)w->n), seen = 0;
    if (w->known_changes && share == w->known_share && w->changes - w->known_changes <= w->n / 64)
        return w->known;
    w->known = 0;
    for (unsigned i = 0; i < SV_WINDOW_BUCKETS && w->n; i++) {
        seen += w->sums[i];
        if (seen > want) {
            w->known = value_of(i);
            break;
        }
    }
    w->known_share = share;
    w->known_changes = w->changes;
    return w->known;
}

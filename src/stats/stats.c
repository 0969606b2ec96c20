/* Statistics over the store. Called by the commands stats and diff, after loading.
 *
 * Two passes: the first finds each slice's group and counts, the second lays the durations of each
 * group side by side. Percentiles are then found by selection, not by sorting. Groups by one column
 * are found by index, by several through a map. In a large trace each thread takes a range of
 * rows. */
#include "stats/stats.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "threads/workers.h"

#include <stdlib.h>
#include <string.h>

#define NO_GROUP     UINT32_MAX
#define THREADS_FROM ((uint64_t)1 << 18) /* slices */

/* ---- grouping ---- */

struct grouping {
    const struct sv_trace *t;
    const struct sv_select *select;
    struct sv_meanwhile left_out;
    unsigned by;
    uint32_t *direct; /* by string or track, for one column */
    struct sv_map pairs, all;
    struct sv_stats *s;
    size_t cap;
};

static uint32_t add_group(struct grouping *g, uint64_t row)
{
    const struct sv_slices *c = &g->t->slices;
    g->s->groups = sv_grow(g->s->groups, &g->cap, g->s->n + 1, sizeof *g->s->groups);
    g->s->groups[g->s->n] = (struct sv_stat){
        .name = g->by & SV_BY_NAME ? c->name[row] : 0,
        .cat = g->by & SV_BY_CAT ? c->cat[row] : 0,
        .track = g->by & SV_BY_TRACK ? c->track[row] : 0,
        .min_ns = INT64_MAX,
        .max_ns = INT64_MIN,
    };
    return (uint32_t)g->s->n++;
}

/* Two columns are numbered by a map, the third joins that number in a second one. */
static uint32_t mapped_group(struct grouping *g, uint64_t row)
{
    const struct sv_slices *c = &g->t->slices;
    uint64_t name = g->by & SV_BY_NAME ? c->name[row] : 0,
             cat = g->by & SV_BY_CAT ? c->cat[row] : 0;
    bool is_new;
    uint64_t *pair = sv_map_add(&g->pairs, name << 32 | cat, &is_new);
    if (is_new)
        *pair = g->pairs.n;
    uint64_t key = *pair << 32 | (g->by & SV_BY_TRACK ? c->track[row] : 0);
    uint64_t *group = sv_map_add(&g->all, key, &is_new);
    if (is_new)
        *group = add_group(g, row);
    return (uint32_t)*group;
}

static uint32_t group_of(struct grouping *g, uint64_t row)
{
    const struct sv_slices *c = &g->t->slices;
    if (c->kind[row] != SV_SLICE || (g->select && !sv_select_has(g->select, row)) ||
        sv_is_meanwhile(&g->left_out, c->cat[row]))
        return NO_GROUP;
    if (!g->direct)
        return mapped_group(g, row);
    uint32_t *group = &g->direct[g->by == SV_BY_NAME  ? c->name[row]
                                 : g->by == SV_BY_CAT ? c->cat[row]
                                                      : c->track[row]];
    if (*group == NO_GROUP)
        *group = add_group(g, row);
    return *group;
}

static void grouping_init(struct grouping *g)
{
    unsigned by = g->by;
    if (!g->select || !g->select->is_named)
        g->left_out = sv_meanwhile_of(g->t->dict);
    if (by != SV_BY_NAME && by != SV_BY_CAT && by != SV_BY_TRACK)
        return;
    size_t n = (size_t)(by == SV_BY_TRACK ? g->t->n_tracks : g->t->dict->n_strings) + 1;
    g->direct = sv_alloc_aligned(n * sizeof *g->direct, 64);
    memset(g->direct, 0xff, n * sizeof *g->direct);
}

static void grouping_fini(struct grouping *g)
{
    sv_map_fini(&g->pairs);
    sv_map_fini(&g->all);
    free(g->direct);
}

static void count(struct sv_stat *k, int64_t dur, int64_t self, bool is_unfinished)
{
    k->count++;
    k->unfinished += is_unfinished;
    k->total_ns = sv_sat_add(k->total_ns, dur);
    k->self_ns = sv_sat_add(k->self_ns, self);
    k->min_ns = dur < k->min_ns ? dur : k->min_ns;
    k->max_ns = dur > k->max_ns ? dur : k->max_ns;
}

static void count_all(struct sv_stat *k, const struct sv_stat *more)
{
    k->count += more->count;
    k->unfinished += more->unfinished;
    k->total_ns = sv_sat_add(k->total_ns, more->total_ns);
    k->self_ns = sv_sat_add(k->self_ns, more->self_ns);
    k->min_ns = more->min_ns < k->min_ns ? more->min_ns : k->min_ns;
    k->max_ns = more->max_ns > k->max_ns ? more->max_ns : k->max_ns;
}

static int64_t length(const struct sv_trace *t, uint64_t row)
{
    int64_t dur = t->slices.dur_ns[row];
    return dur == SV_UNFINISHED ? t->last_ns - t->slices.ts_ns[row] : dur;
}

/* ---- by all threads ---- */

/* A range of rows with groups of its own. */
struct share {
    struct grouping g;
    struct sv_stats s;
    uint64_t *first; /* the first row of each group, then where its next duration goes */
    size_t cap_first;
};

struct making {
    const struct sv_trace *t;
    const int64_t *self;
    struct share *shares;
    size_t n_shares;
    uint32_t *groups; /* by row; of its share */
    struct sv_stats *s;
    int64_t *values; /* durations, group by group */
    uint64_t *ends;  /* of each group in them */
};

static void count_share(void *ctx, size_t i)
{
    struct making *m = ctx;
    struct share *h = &m->shares[i];
    size_t row, end;
    grouping_init(&h->g);
    sv_workers_share(m->t->slices.n, i, m->n_shares, &row, &end);
    for (; row < end; row++) {
        size_t n = h->s.n;
        uint32_t group = m->groups[row] = group_of(&h->g, row);
        if (group == NO_GROUP)
            continue;
        if (h->s.n > n) {
            h->first = sv_grow(h->first, &h->cap_first, h->s.n, sizeof *h->first);
            h->first[n] = row;
        }
        count(&h->s.groups[group], length(m->t, row), m->self[row],
              m->t->slices.dur_ns[row] == SV_UNFINISHED);
    }
    grouping_fini(&h->g);
}

static void place_share(void *ctx, size_t i)
{
    struct making *m = ctx;
    uint64_t *next = m->shares[i].first;
    size_t row, end;
    sv_workers_share(m->t->slices.n, i, m->n_shares, &row, &end);
    for (; row < end; row++)
        if (m->groups[row] != NO_GROUP)
            m->values[next[m->groups[row]]++] = length(m->t, row);
}

static void find_percentiles(void *ctx, size_t group)
{
    struct making *m = ctx;
    struct sv_stat *k = &m->s->groups[group];
    int64_t *v = m->values + m->ends[group] - k->count;
    k->p50_ns = sv_percentile(v, k->count, 0.5);
    k->p90_ns = sv_percentile(v, k->count, 0.9);
    k->p99_ns = sv_percentile(v, k->count, 0.99);
}

/* The groups of all shares, in the order of their first rows. Says of each share where its
 * durations go: before those of the shares after it. */
static void join_shares(struct making *m, struct grouping *g)
{
    grouping_init(g);
    for (size_t i = 0; i < m->n_shares; i++)
        for (size_t k = 0; k < m->shares[i].s.n; k++) {
            uint32_t group = group_of(g, m->shares[i].first[k]);
            count_all(&g->s->groups[group], &m->shares[i].s.groups[k]);
        }
    m->ends = sv_alloc((g->s->n + 1) * sizeof *m->ends);
    for (size_t k = 1; k < g->s->n; k++)
        m->ends[k] = m->ends[k - 1] + g->s->groups[k - 1].count;
    for (size_t i = 0; i < m->n_shares; i++)
        for (size_t k = 0; k < m->shares[i].s.n; k++) {
            uint64_t *at = &m->ends[group_of(g, m->shares[i].first[k])];
            m->shares[i].first[k] = *at;
            *at += m->shares[i].s.groups[k].count;
        }
    grouping_fini(g);
}

static void *alloc_large(size_t size)
{
    void *p = sv_alloc_aligned(size, 64);
    sv_advise_huge(p, size);
    return p;
}

void sv_stats_make(struct sv_stats *s, const struct sv_trace *t, const int64_t *self,
                   const struct sv_select *select, unsigned by)
{
    struct grouping g = {.t = t, .select = select, .by = by, .s = s};
    struct sv_workers *w = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    struct making m = {.t = t, .self = self, .n_shares = sv_workers_count(w), .s = s};
    *s = (struct sv_stats){0};
    m.shares = sv_alloc(m.n_shares * sizeof *m.shares);
    for (size_t i = 0; i < m.n_shares; i++) {
        m.shares[i].g = g;
        m.shares[i].g.s = &m.shares[i].s;
    }
    m.groups = alloc_large((t->slices.n + 1) * sizeof *m.groups);
    sv_workers_each(w, m.n_shares, count_share, &m);
    join_shares(&m, &g);
    m.values = alloc_large((t->slices.n + 1) * sizeof *m.values);
    sv_workers_each(w, m.n_shares, place_share, &m);
    sv_workers_each(w, s->n, find_percentiles, &m);
    sv_workers_free(w);
    for (size_t i = 0; i < m.n_shares; i++) {
        free(m.shares[i].s.groups);
        free(m.shares[i].first);
    }
    free(m.shares);
    free(m.groups);
    free(m.values);
    free(m.ends);
}

void sv_stats_fini(struct sv_stats *s)
{
    free(s->groups);
    *s = (struct sv_stats){0};
}

/* ---- sorting ---- */

static double column_value(const struct sv_stat *k, unsigned column)
{
    switch (column) {
    case 0: return (double)k->count;
    case 1: return (double)k->total_ns;
    case 2: return (double)k->self_ns;
    case 3: return (double)k->min_ns;
    case 4: return (double)k->total_ns / (double)k->count;
    case 5: return k->p50_ns;
    case 6: return k->p90_ns;
    case 7: return k->p99_ns;
    default: return (double)k->max_ns;
    }
}

struct sorted {
    double value;
    const char *name;
    struct sv_stat stat;
};

static int by_value(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    int c = strcmp(x->name, y->name);
    if (c)
        return c;
    if (x->stat.track != y->stat.track)
        return x->stat.track < y->stat.track ? -1 : 1;
    return x->stat.cat < y->stat.cat ? -1 : x->stat.cat > y->stat.cat;
}

int sv_stats_sort(struct sv_stats *s, const struct sv_dict *dict, const char *column,
                  struct sv_err *err)
{
    static const char *const columns[] = {"count", "total", "self", "min", "mean",
                                          "p50",   "p90",   "p99",  "max", "name"};
    unsigned c = 0, n_columns = sizeof columns / sizeof *columns;
    while (c < n_columns && strcmp(column, columns[c]) != 0)
        c++;
    if (c == n_columns)
        return sv_error(
            err, SV_EUSAGE,
            "--sort: '%s' is not count, total, self, min, mean, p50, p90, p99, max or name",
            column);
    struct sorted *rows = sv_alloc((s->n + 1) * sizeof *rows);
    for (size_t i = 0; i < s->n; i++) {
        sv_str text = s->groups[i].name ? s->groups[i].name : s->groups[i].cat;
        rows[i] = (struct sorted){c + 1 == n_columns ? 0 : column_value(&s->groups[i], c),
                                  sv_dict_text(dict, text).bytes, s->groups[i]};
    }
    qsort(rows, s->n, sizeof *rows, by_value);
    for (size_t i = 0; i < s->n; i++)
        s->groups[i] = rows[i].stat;
    free(rows);
    return 0;
}

/* ---- counters ---- */

struct sv_counter_stat *sv_counter_stats(const struct sv_trace *t, const struct sv_select *select,
                                         size_t *n)
{
    struct sv_counter_stat *stats = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *stats);
    *n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        const struct sv_trace_track *track = &t->tracks[k];
        if (track->counter_first == track->counter_end || (select && !select->tracks[k]))
            continue;
        const double *v = t->counters.value;
        const int64_t *ts = t->counters.ts_ns;
        uint32_t first = track->counter_first, last = track->counter_end - 1;
        struct sv_counter_stat *c = &stats[(*n)++];
        *c =
            (struct sv_counter_stat){k, last - first + 1, v[first], v[last], v[first], v[first], 0};
        double area = 0, span = (double)sv_sat_sub(ts[last], ts[first]);
        for (uint32_t row = first; row <= last; row++) {
            c->min = v[row] < c->min ? v[row] : c->min;
            c->max = v[row] > c->max ? v[row] : c->max;
            if (row < last)
                area += v[row] * (double)sv_sat_sub(ts[row + 1], ts[row]);
        }
        c->mean = span > 0 ? area / span : v[last];
    }
    return stats;
}

/* Replay of a job: order of operations, their lengths, and the replays. Called by
 * subjects/comm/job.c, in the order of the header. Nothing here knows what an operation is. */
#include "why/replay.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_replay_by_names[SV_N_REPLAY_BY] = {"rank", "worker", "stage", "host", "kind"};

/* Operations that are replayed for one list: of very large jobs fewer parts are tried. */
enum { REPLAYED_MAX = 50000000 };

struct edge {
    uint32_t later, earlier;
};

struct sv_replay_impl {
    struct edge *edges;
    size_t n_edges, cap_edges, cap_ops;
    /* By operation in the order of replay: */
    uint32_t *first, *before; /* first[i] … first[i + 1]: what it follows, in `before` */
    uint32_t *together;       /* how many from here on end together */
    int64_t *len_ns, *ideal_ns;
    /* For one replay at a time: */
    int64_t *trial_ns, *end_ns, *segment_ns;
};

/* ---- operations ---- */

static struct sv_replay_impl *impl_of(struct sv_replay *r)
{
    if (!r->impl)
        r->impl = sv_alloc(sizeof *r->impl);
    return r->impl;
}

static void count(uint32_t number, uint32_t *n)
{
    if (number != SV_REPLAY_NONE && number >= *n)
        *n = number + 1;
}

uint32_t sv_replay_add(struct sv_replay *r, const struct sv_replay_op *op)
{
    struct sv_replay_impl *m = impl_of(r);
    r->ops = sv_grow(r->ops, &m->cap_ops, r->n + 1, sizeof *r->ops);
    r->ops[r->n] = *op;
    count(op->segment, &r->n_segments);
    count(op->same, &r->n_same);
    count(op->group, &r->n_groups);
    for (unsigned by = 0; by < SV_N_REPLAY_BY; by++)
        count(op->at[by], &r->n_at[by]);
    return (uint32_t)r->n++;
}

void sv_replay_after(struct sv_replay *r, uint32_t later, uint32_t earlier)
{
    struct sv_replay_impl *m = impl_of(r);
    m->edges = sv_grow(m->edges, &m->cap_edges, m->n_edges + 1, sizeof *m->edges);
    m->edges[m->n_edges++] = (struct edge){later, earlier};
}

/* ---- order ---- */

/* Lists of numbers by owner: of[first[i]] … of[first[i + 1]]. */
struct lists {
    uint32_t *first, *of;
};

static struct lists lists_new(size_t owners, size_t items)
{
    return (struct lists){sv_alloc((owners + 2) * sizeof(uint32_t)),
                          sv_alloc((items + 1) * sizeof(uint32_t))};
}

/* After the counts stand at [owner + 2], the items can be put in with of[first[owner + 1]++]. */
static void lists_begin(struct lists *l, size_t owners)
{
    for (size_t i = 2; i < owners + 2; i++)
        l->first[i] += l->first[i - 1];
}

static void lists_fini(struct lists *l)
{
    free(l->first);
    free(l->of);
}

struct ordering {
    struct lists next, members;
    uint32_t *waits_for, *arrived; /* by operation, by group */
    uint32_t *order;
    size_t n;
};

static void begin_order(struct ordering *o, const struct sv_replay *r)
{
    const struct sv_replay_impl *m = r->impl;
    o->next = lists_new(r->n, m->n_edges);
    o->members = lists_new(r->n_groups, r->n);
    o->waits_for = sv_alloc((r->n + 1) * sizeof *o->waits_for);
    o->arrived = sv_alloc(((size_t)r->n_groups + 1) * sizeof *o->arrived);
    o->order = sv_alloc((r->n + 1) * sizeof *o->order);
    for (size_t i = 0; i < m->n_edges; i++) {
        o->next.first[m->edges[i].earlier + 2]++;
        o->waits_for[m->edges[i].later]++;
    }
    lists_begin(&o->next, r->n);
    for (size_t i = 0; i < m->n_edges; i++)
        o->next.of[o->next.first[m->edges[i].earlier + 1]++] = m->edges[i].later;
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i].group != SV_REPLAY_NONE)
            o->members.first[r->ops[i].group + 2]++;
    lists_begin(&o->members, r->n_groups);
    for (uint32_t i = 0; i < r->n; i++)
        if (r->ops[i].group != SV_REPLAY_NONE)
            o->members.of[o->members.first[r->ops[i].group + 1]++] = i;
}

/* It may begin: alone it ends, too; of a group all end when the last one has begun. */
static void arrive(struct ordering *o, const struct sv_replay *r, uint32_t op)
{
    uint32_t group = r->ops[op].group;
    if (group == SV_REPLAY_NONE) {
        o->order[o->n++] = op;
        return;
    }
    uint32_t first = o->members.first[group], end = o->members.first[group + 1];
    if (++o->arrived[group] < end - first)
        return;
    for (uint32_t i = first; i < end; i++)
        o->order[o->n++] = o->members.of[i];
}

/* Operations and edges by the place in the order of replay. */
static void renumber(struct sv_replay *r, const struct ordering *o)
{
    struct sv_replay_impl *m = r->impl;
    uint32_t *place = sv_alloc((r->n + 1) * sizeof *place);
    struct sv_replay_op *ops = sv_alloc((r->n + 1) * sizeof *ops);
    struct lists before = lists_new(r->n, m->n_edges);
    m->together = sv_alloc((r->n + 1) * sizeof *m->together);
    for (uint32_t i = 0; i < r->n; i++) {
        ops[i] = r->ops[o->order[i]];
        place[o->order[i]] = i;
        m->together[i] = ops[i].group == SV_REPLAY_NONE
                             ? 1
                             : o->members.first[ops[i].group + 1] - o->members.first[ops[i].group];
    }
    for (size_t i = 0; i < m->n_edges; i++)
        before.first[place[m->edges[i].later] + 2]++;
    lists_begin(&before, r->n);
    for (size_t i = 0; i < m->n_edges; i++)
        before.of[before.first[place[m->edges[i].later] + 1]++] = place[m->edges[i].earlier];
    m->first = before.first;
    m->before = before.of;
    free(place);
    free(r->ops);
    r->ops = ops;
    m->cap_ops = r->n + 1;
}

bool sv_replay_order(struct sv_replay *r)
{
    struct ordering o = {0};
    impl_of(r);
    begin_order(&o, r);
    for (uint32_t i = 0; i < r->n; i++)
        if (o.waits_for[i] == 0)
            arrive(&o, r, i);
    for (size_t at = 0; at < o.n; at++)
        for (uint32_t i = o.next.first[o.order[at]]; i < o.next.first[o.order[at] + 1]; i++)
            if (--o.waits_for[o.next.of[i]] == 0)
                arrive(&o, r, o.next.of[i]);
    bool is_whole = o.n == r->n;
    if (is_whole)
        renumber(r, &o);
    lists_fini(&o.next);
    lists_fini(&o.members);
    free(o.waits_for);
    free(o.arrived);
    free(o.order);
    return is_whole;
}

/* ---- lengths ---- */

/* The transfer of a member: its end − the latest begin, or without common clocks the shortest
 * stay: who came last did not wait. */
static void find_transfers(struct sv_replay *r, size_t at, size_t end)
{
    int64_t latest = INT64_MIN, shortest = INT64_MAX;
    for (size_t i = at; i < end; i++) {
        int64_t stay = sv_sat_sub(r->ops[i].end_ns, r->ops[i].begin_ns);
        latest = r->ops[i].begin_ns > latest ? r->ops[i].begin_ns : latest;
        shortest = stay < shortest ? stay : shortest;
    }
    for (size_t i = at; i < end; i++) {
        int64_t ns = r->has_no_clocks ? shortest : sv_sat_sub(r->ops[i].end_ns, latest);
        r->impl->len_ns[i] = ns > 0 ? ns : 0;
    }
}

static void measure(struct sv_replay *r)
{
    int64_t *from = sv_alloc(((size_t)r->n_segments + 1) * sizeof *from);
    int64_t *to = sv_alloc(((size_t)r->n_segments + 1) * sizeof *to);
    for (uint32_t s = 0; s < r->n_segments; s++) {
        from[s] = INT64_MAX;
        to[s] = INT64_MIN;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_replay_op *op = &r->ops[i];
        from[op->segment] = op->begin_ns < from[op->segment] ? op->begin_ns : from[op->segment];
        to[op->segment] = op->end_ns > to[op->segment] ? op->end_ns : to[op->segment];
    }
    for (uint32_t s = 0; s < r->n_segments; s++)
        if (to[s] > from[s])
            r->measured_ns = sv_sat_add(r->measured_ns, sv_sat_sub(to[s], from[s]));
    free(from);
    free(to);
}

static int64_t rounded(double ns)
{
    return ns < 9.2e18 ? (int64_t)llround(ns) : INT64_MAX;
}

static int64_t mean_of(const int64_t *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)v[i];
    return n ? rounded(sum / (double)n) : 0;
}

static void find_ideal(struct sv_replay *r)
{
    struct sv_replay_impl *m = r->impl;
    size_t *at = sv_alloc(((size_t)r->n_same + 2) * sizeof *at);
    int64_t *v = sv_alloc((r->n + 1) * sizeof *v);
    int64_t *ideal = sv_alloc(((size_t)r->n_same + 1) * sizeof *ideal);
    bool *is_comm = sv_alloc((size_t)r->n_same + 1);
    for (size_t i = 0; i < r->n; i++)
        at[r->ops[i].same + 1]++;
    for (uint32_t s = 0; s < r->n_same; s++)
        at[s + 1] += at[s];
    for (size_t i = 0; i < r->n; i++) {
        v[at[r->ops[i].same]++] = m->len_ns[i];
        is_comm[r->ops[i].same] = r->ops[i].is_comm;
    }
    for (uint32_t s = 0; s < r->n_same; s++) {
        size_t first = s ? at[s - 1] : 0, n = at[s] - first;
        ideal[s] = !is_comm[s] ? mean_of(v + first, n)
                   : n         ? rounded(sv_percentile(v + first, n, 0.5))
                               : 0;
    }
    for (size_t i = 0; i < r->n; i++)
        m->ideal_ns[i] = ideal[r->ops[i].same];
    free(at);
    free(v);
    free(ideal);
    free(is_comm);
}

/* ---- replays ---- */

static int64_t begin_at(const struct sv_replay_impl *m, size_t i)
{
    int64_t begin = 0;
    for (uint32_t k = m->first[i]; k < m->first[i + 1]; k++) {
        int64_t end = m->end_ns[m->before[k]];
        begin = end > begin ? end : begin;
    }
    return begin;
}

static int64_t run(const struct sv_replay *r, const int64_t *len_ns)
{
    struct sv_replay_impl *m = r->impl;
    int64_t all = 0;
    memset(m->segment_ns, 0, ((size_t)r->n_segments + 1) * sizeof *m->segment_ns);
    for (size_t i = 0, end; i < r->n; i = end) {
        int64_t latest = INT64_MIN;
        end = i + m->together[i];
        for (size_t k = i; k < end; k++) {
            int64_t begin = begin_at(m, k);
            latest = begin > latest ? begin : latest;
        }
        int64_t *segment = &m->segment_ns[r->ops[i].segment];
        for (size_t k = i; k < end; k++) {
            m->end_ns[k] = sv_sat_add(latest, len_ns[k]);
            *segment = m->end_ns[k] > *segment ? m->end_ns[k] : *segment;
        }
    }
    for (uint32_t s = 0; s < r->n_segments; s++)
        all = sv_sat_add(all, m->segment_ns[s]);
    return all;
}

void sv_replay_solve(struct sv_replay *r)
{
    struct sv_replay_impl *m = r->impl;
    int64_t **each[] = {&m->len_ns, &m->ideal_ns, &m->trial_ns, &m->end_ns};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        *each[i] = sv_alloc((r->n + 1) * sizeof **each[i]);
    m->segment_ns = sv_alloc(((size_t)r->n_segments + 1) * sizeof *m->segment_ns);
    measure(r);
    for (size_t i = 0; i < r->n; i += m->together[i])
        if (r->ops[i].group == SV_REPLAY_NONE) {
            int64_t ns = sv_sat_sub(r->ops[i].end_ns, r->ops[i].begin_ns);
            m->len_ns[i] = ns > 0 ? ns : 0;
        } else
            find_transfers(r, i, i + m->together[i]);
    find_ideal(r);
    r->replayed_ns = run(r, m->len_ns);
    r->ideal_ns = run(r, m->ideal_ns);
}

/* The lengths of a trial: those of one part from here, of all others from there. */
static int64_t run_mixed(const struct sv_replay *r, enum sv_replay_by by, uint32_t number,
                         const int64_t *own, const int64_t *others)
{
    for (size_t i = 0; i < r->n; i++)
        r->impl->trial_ns[i] = (r->ops[i].at[by] == number ? own : others)[i];
    return run(r, r->impl->trial_ns);
}

/* The time of the job if the computing of one part took the mean of the others' like. */
static int64_t run_as_peers(const struct sv_replay *r, enum sv_replay_by by, uint32_t number)
{
    const struct sv_replay_impl *m = r->impl;
    struct {
        double ns;
        size_t n;
    } *peers = sv_alloc(((size_t)r->n_same + 1) * sizeof *peers);
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i].at[by] != number) {
            peers[r->ops[i].same].ns += (double)m->len_ns[i];
            peers[r->ops[i].same].n++;
        }
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_replay_op *op = &r->ops[i];
        m->trial_ns[i] = op->at[by] != number ? m->len_ns[i]
                         : op->is_comm || peers[op->same].n == 0
                             ? m->ideal_ns[i]
                             : rounded(peers[op->same].ns / (double)peers[op->same].n);
    }
    free(peers);
    return run(r, m->trial_ns);
}

struct candidate {
    uint32_t number;
    int64_t beyond_ns;
};

static int by_excess(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->beyond_ns != y->beyond_ns)
        return x->beyond_ns > y->beyond_ns ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_slowdown(const void *a, const void *b)
{
    const struct sv_replay_part *x = a, *y = b;
    if (x->slowdown != y->slowdown)
        return x->slowdown > y->slowdown ? -1 : 1;
    if (x->explains != y->explains)
        return x->explains > y->explains ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

struct sv_replay_part *sv_replay_parts(const struct sv_replay *r, enum sv_replay_by by, size_t *n,
                                       size_t *left_off)
{
    const struct sv_replay_impl *m = r->impl;
    uint32_t all = r->n_at[by];
    struct candidate *c = sv_alloc(((size_t)all + 1) * sizeof *c);
    for (uint32_t i = 0; i < all; i++)
        c[i].number = i;
    for (size_t i = 0; i < r->n; i++)
        if (r->ops[i].at[by] != SV_REPLAY_NONE && m->len_ns[i] > m->ideal_ns[i]) {
            int64_t *to = &c[r->ops[i].at[by]].beyond_ns;
            *to = sv_sat_add(*to, m->len_ns[i] - m->ideal_ns[i]);
        }
    qsort(c, all, sizeof *c, by_excess);
    size_t most = r->n < REPLAYED_MAX / SV_REPLAY_PARTS   ? SV_REPLAY_PARTS
                  : r->n > REPLAYED_MAX / SV_REPLAY_LEAST ? SV_REPLAY_LEAST
                                                          : REPLAYED_MAX / r->n;
    *n = all < most ? all : most;
    *left_off = all - *n;
    struct sv_replay_part *parts = sv_alloc((*n + 1) * sizeof *parts);
    double slow = (double)r->replayed_ns - (double)r->ideal_ns;
    for (size_t i = 0; i < *n; i++) {
        int64_t with = run_mixed(r, by, c[i].number, m->len_ns, m->ideal_ns);
        int64_t without = run_mixed(r, by, c[i].number, m->ideal_ns, m->len_ns);
        int64_t as_peers = run_as_peers(r, by, c[i].number);
        parts[i] = (struct sv_replay_part){
            .number = c[i].number,
            .slowdown = r->ideal_ns > 0 ? (double)with / (double)r->ideal_ns : 1,
            .explains = slow > 0 ? ((double)r->replayed_ns - (double)without) / slow : 0,
            .gain = r->replayed_ns > 0 ? 1 - (double)as_peers / (double)r->replayed_ns : 0,
        };
    }
    qsort(parts, *n, sizeof *parts, by_slowdown);
    free(c);
    return parts;
}

/* ---- as the median ---- */

struct peer {
    uint64_t key;
    size_t op;
};

static int by_key(const void *a, const void *b)
{
    const struct peer *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static uint64_t key_of(const struct sv_replay_op *op, enum sv_replay_by by)
{
    uint32_t key[] = {op->same, op->step, op->nth,
                      op->at[by == SV_REPLAY_STAGE ? SV_REPLAY_RANK : SV_REPLAY_STAGE]};
    return sv_hash_bytes(key, by == SV_REPLAY_KIND ? sizeof *key : sizeof key, 0);
}

int64_t sv_replay_as_median(const struct sv_replay *r, enum sv_replay_by by)
{
    struct sv_replay_impl *m = r->impl;
    struct peer *peers = sv_alloc((r->n + 1) * sizeof *peers);
    int64_t *v = sv_alloc((r->n + 1) * sizeof *v);
    for (size_t i = 0; i < r->n; i++)
        peers[i] = (struct peer){key_of(&r->ops[i], by), i};
    if (r->n)
        qsort(peers, r->n, sizeof *peers, by_key);
    for (size_t i = 0, end; i < r->n; i = end) {
        for (end = i; end < r->n && peers[end].key == peers[i].key; end++)
            v[end - i] = m->len_ns[peers[end].op];
        int64_t median = rounded(sv_percentile(v, end - i, 0.5));
        for (size_t k = i; k < end; k++)
            m->trial_ns[peers[k].op] = median;
    }
    free(peers);
    free(v);
    return run(r, m->trial_ns);
}

void sv_replay_fini(struct sv_replay *r)
{
    struct sv_replay_impl *m = r->impl;
    if (m) {
        void *each[] = {m->edges,    m->first,    m->before, m->together,  m->len_ns,
                        m->ideal_ns, m->trial_ns, m->end_ns, m->segment_ns};
        for (size_t i = 0; i < sizeof each / sizeof *each; i++)
            free(each[i]);
    }
    free(m);
    free(r->ops);
    *r = (struct sv_replay){0};
}

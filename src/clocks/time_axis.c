/* Relations between hosts become what relate.c understands: an input of a related host gets the
 * machine number of the host it is related to, and clocks of its own in which its trace clock is a
 * private one that is known at points of that host's BOOTTIME.
 *
 * Hosts are nodes, relations edges; each connected part has its first input's clock as root, and
 * the others are reached over the fewest relations. */
#include "clocks/time_axis.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum {
    PRIVATE_CLOCK = 128, /* no machine's: relate.c takes what an input itself says about it */
    HOPS_MAX = 8,
    WALL_POINTS =
        64 /* of the root's wall clock: for the case that another part must be reached over it */
};

struct edge {
    uint32_t to, next; /* node, and the next edge from the same node */
    uint32_t sync;     /* in syncs */
};

struct node {
    uint32_t machine; /* NONE: no input is of it */
    uint32_t first_input, edges;
    uint32_t root, by; /* the node it is reached from, and the edge's sync; its own: a root */
    uint32_t hops;
    bool is_seen;
    bool has_others; /* it is the root of them */
    /* Of its inputs whose trace clock is the one that relations are about, made here; none: it is a
     * root, or there are none. */
    struct sv_clocks direct;
};

/* One direction of a relation. */
struct way {
    struct sv_sync sync;
    bool is_estimate;
};

struct span {
    int64_t from_ns, to_ns;
};

struct graph {
    struct sv_time_axis *axis;
    uint32_t clock; /* that relations are about */
    struct sv_dict *texts;
    struct sv_map boots; /* boot id → machine */
    struct sv_map keys;  /* clock → node */
    struct node *nodes;
    size_t n_nodes, cap_nodes;
    struct edge *edges;
    size_t n_edges, cap_edges;
    struct way *ways;
    size_t n_ways, cap_ways;
    uint32_t *of_input; /* node of each input */
    uint32_t *order;    /* inputs by node: those of node k are order[first[k] … first[k + 1]] */
    uint32_t *first;
    struct span *spans;    /* [n] of their events, on that clock */
    struct sv_clocks *own; /* [n] of inputs with another trace clock, made here; none: as it was */
};

/* ---- nodes ---- */

static uint64_t text(struct graph *g, const char *s)
{
    return sv_dict_str(g->texts, s, strlen(s));
}

static uint32_t node_of(struct graph *g, const char *key)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&g->keys, text(g, key), &is_new);
    if (is_new) {
        *slot = g->n_nodes;
        SV_APPEND(g->nodes, g->n_nodes, g->cap_nodes) =
            (struct node){.machine = NONE, .first_input = NONE, .edges = NONE};
    }
    return (uint32_t)*slot;
}

static void learn_inputs(struct graph *g)
{
    const struct sv_time_axis *a = g->axis;
    bool is_new;
    char key[128];
    g->of_input = sv_alloc((a->n + 1) * sizeof *g->of_input);
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_time_axis_input *in = &a->inputs[i];
        if (in->boot)
            *sv_map_add(&g->boots, text(g, in->boot), &is_new) = in->is.machine;
        snprintf(key, sizeof key, "%" PRIu32 "/%.80s", in->is.machine, in->times ? in->times : "");
        uint32_t node = node_of(g, key);
        g->of_input[i] = node;
        if (g->nodes[node].first_input == NONE)
            g->nodes[node].first_input = (uint32_t)i;
        g->nodes[node].machine = in->is.machine;
    }
}

static void order_inputs(struct graph *g)
{
    size_t n = g->axis->n;
    g->order = sv_alloc((n + 1) * sizeof *g->order);
    g->first = sv_alloc((g->n_nodes + 2) * sizeof *g->first);
    for (size_t i = 0; i < n; i++)
        g->first[g->of_input[i] + 2]++;
    for (size_t k = 2; k < g->n_nodes + 2; k++)
        g->first[k] += g->first[k - 1];
    for (size_t i = 0; i < n; i++)
        g->order[g->first[g->of_input[i] + 1]++] = (uint32_t)i;
}

/* The end of a relation: a clock of an input's machine, or one that only relations know. */
static uint32_t end_of(struct graph *g, const struct sv_clock_owner *o)
{
    char key[160];
    const uint64_t *machine = sv_map_find(&g->boots, text(g, o->boot));
    if (machine)
        snprintf(key, sizeof key, "%" PRIu32 "/%s", (uint32_t)*machine, o->times);
    else
        snprintf(key, sizeof key, "?%s/%s", o->boot, o->times);
    return node_of(g, key);
}

/* ---- edges ---- */

static void add_edge(struct graph *g, uint32_t from, uint32_t to, struct way *way)
{
    g->ways = sv_grow(g->ways, &g->cap_ways, g->n_ways + 1, sizeof *g->ways);
    g->ways[g->n_ways] = *way;
    g->edges = sv_grow(g->edges, &g->cap_edges, g->n_edges + 1, sizeof *g->edges);
    g->edges[g->n_edges] =
        (struct edge){.to = to, .next = g->nodes[from].edges, .sync = (uint32_t)g->n_ways++};
    g->nodes[from].edges = (uint32_t)g->n_edges++;
}

/* The same seen from the other end. */
static struct sv_sync reversed(const struct sv_sync *s)
{
    struct sv_sync r = *s;
    r.points = sv_alloc(s->n * sizeof *r.points);
    r.n = 0;
    r.drift = -s->drift;
    for (size_t i = 0; i < s->n; i++) {
        struct sv_sync_point p = s->points[i];
        p.at_ns += p.offset_ns;
        p.offset_ns = -p.offset_ns;
        if (r.n == 0 || p.at_ns > r.points[r.n - 1].at_ns) /* a step back: the times before it */
            r.points[r.n++] = p;
    }
    return r;
}

static void connect(struct graph *g, uint32_t local, uint32_t reference, struct sv_relation *all)
{
    struct way there = {.is_estimate = all->is_estimate}, back = there;
    sv_sync_fit(&there.sync, all->rounds, all->n);
    if (there.sync.n == 0)
        return;
    back.sync = reversed(&there.sync);
    add_edge(g, local, reference, &there);
    add_edge(g, reference, local, &back);
}

struct pair {
    uint32_t local, reference;
    size_t relation;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    if (x->reference != y->reference)
        return x->reference < y->reference ? -1 : 1;
    return x->relation < y->relation ? -1 : x->relation > y->relation;
}

/* One machine's wall clock relates all of its clocks, better than pings do. */
static bool has_one_wall_clock(const struct sv_time_axis *a)
{
    int64_t ns;
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_clocks *c = a->inputs[i].is.clocks;
        bool has_wall = false;
        for (size_t s = 0; s < c->n && !has_wall; s++)
            has_wall = sv_snapshot_get(&c->snapshots[s], SV_CLOCK_REALTIME, &ns);
        if (!has_wall || a->inputs[i].is.machine != a->inputs[0].is.machine)
            return false;
    }
    return true;
}

/* Relations of the same two clocks are one: before the run and after it, or several ranks of a
 * host. Pings and estimates do not mix. */
static void learn_relations(struct graph *g)
{
    const struct sv_time_axis *a = g->axis;
    struct pair *pairs = sv_alloc((a->n_relations + 1) * sizeof *pairs);
    bool is_one_machine = has_one_wall_clock(a);
    for (size_t i = 0; i < a->n_relations; i++)
        pairs[i] = (struct pair){end_of(g, &a->relations[i].local),
                                 end_of(g, &a->relations[i].reference), i};
    bool has_pings = g->clock == SV_CLOCK_BOOTTIME;
    if (a->n_relations > 1)
        qsort(pairs, a->n_relations, sizeof *pairs, compare_pairs);
    for (size_t i = 0, to; i < a->n_relations; i = to) {
        struct sv_relation all = {.is_estimate = true};
        for (to = i; to < a->n_relations && pairs[to].local == pairs[i].local &&
                     pairs[to].reference == pairs[i].reference;
             to++)
            all.is_estimate &= a->relations[pairs[to].relation].is_estimate;
        for (size_t k = i; k < to; k++) {
            const struct sv_relation *r = &a->relations[pairs[k].relation];
            for (size_t m = 0; r->is_estimate == all.is_estimate && m < r->n; m++)
                sv_relation_add(&all, &r->rounds[m]);
        }
        if (pairs[i].local != pairs[i].reference && !is_one_machine &&
            (has_pings || all.is_estimate))
            connect(g, pairs[i].local, pairs[i].reference, &all);
        sv_relation_fini(&all);
    }
    free(pairs);
}

/* ---- ways ---- */

/* Breadth first from a node; pings before estimates, however long the way. */
static void reach_from(struct graph *g, uint32_t root, uint32_t *queue)
{
    size_t head = 0, tail = 0;
    queue[tail++] = root;
    g->nodes[root].is_seen = true;
    g->nodes[root].root = root;
    for (int estimates = 0; estimates < 2; estimates++)
        for (head = 0; head < tail; head++) {
            uint32_t at = queue[head];
            for (uint32_t e = g->nodes[at].edges; e != NONE; e = g->edges[e].next) {
                struct node *to = &g->nodes[g->edges[e].to];
                bool is_estimate = g->ways[g->edges[e].sync].is_estimate;
                if (to->is_seen || is_estimate > estimates || g->nodes[at].hops == HOPS_MAX)
                    continue;
                *to = (struct node){.machine = to->machine,
                                    .first_input = to->first_input,
                                    .edges = to->edges,
                                    .root = at,
                                    .by = g->edges[e].sync ^ 1u, /* the other direction */
                                    .hops = g->nodes[at].hops + 1,
                                    .is_seen = true};
                g->nodes[root].has_others = true;
                queue[tail++] = g->edges[e].to;
            }
        }
}

static void find_ways(struct graph *g)
{
    uint32_t *queue = sv_alloc((g->n_nodes + 1) * sizeof *queue);
    for (size_t i = 0; i < g->axis->n; i++)
        if (!g->nodes[g->of_input[i]].is_seen)
            reach_from(g, g->of_input[i], queue);
    free(queue);
}

static uint32_t root_of(const struct graph *g, uint32_t node)
{
    while (g->nodes[node].root != node)
        node = g->nodes[node].root;
    return node;
}

/* From the clock of the node to that of its root. */
static int64_t follow(const struct graph *g, uint32_t node, int64_t ns)
{
    for (; g->nodes[node].root != node; node = g->nodes[node].root) {
        int64_t offset = sv_sync_at(&g->ways[g->nodes[node].by].sync, ns).offset_ns;
        if (__builtin_add_overflow(ns, offset, &ns))
            return offset < 0 ? INT64_MIN : INT64_MAX;
    }
    return ns;
}

/* The bounds of all relations on the way, over the time of the input's events. */
static int64_t bound_of(const struct graph *g, uint32_t node, int64_t from_ns, int64_t to_ns,
                        bool *is_estimate)
{
    int64_t sum = 0;
    assert(g->nodes && g->ways); /* there is such a node, and it is no root */
    for (; g->nodes[node].root != node; node = g->nodes[node].root) {
        const struct way *w = &g->ways[g->nodes[node].by];
        *is_estimate |= w->is_estimate;
        if (__builtin_add_overflow(sum, sv_sync_bound(&w->sync, from_ns, to_ns), &sum))
            return INT64_MAX;
        int64_t a = sv_sync_at(&w->sync, from_ns).offset_ns,
                b = sv_sync_at(&w->sync, to_ns).offset_ns;
        if (__builtin_add_overflow(from_ns, a, &from_ns) ||
            __builtin_add_overflow(to_ns, b, &to_ns))
            return INT64_MAX;
    }
    return sum;
}

/* ---- clocks of an input that is reached over relations ---- */

/* All that a clock's inputs read, or so many of it, evenly. */
static void gather(const struct graph *g, uint32_t node, size_t most, struct sv_clocks *all)
{
    size_t n = 0, at = 0;
    for (uint32_t k = g->first[node]; k < g->first[node + 1]; k++)
        n += g->axis->inputs[g->order[k]].is.clocks->n;
    size_t step = n / most + 1;
    for (uint32_t k = g->first[node]; k < g->first[node + 1]; k++) {
        const struct sv_clocks *c = g->axis->inputs[g->order[k]].is.clocks;
        for (size_t s = 0; s < c->n; s++)
            if (at++ % step == 0)
                sv_clocks_add(all, &c->snapshots[s]);
    }
}

static struct sv_clock_point followed(const struct graph *g, uint32_t node, int64_t ns)
{
    return (struct sv_clock_point){ns, follow(g, node, ns)};
}

static void add_point(const struct graph *g, struct sv_clocks *to, const struct sv_clocks *root,
                      struct sv_clock_point at, int64_t uncertainty_ns)
{
    struct sv_snapshot s = {.readings = {{PRIVATE_CLOCK, at.from_ns}, {g->clock, at.to_ns}},
                            .n = 2,
                            .uncertainty_ns = uncertainty_ns};
    int64_t wall;
    if (g->clock != SV_CLOCK_REALTIME &&
        sv_clocks_convert(root, g->clock, SV_CLOCK_REALTIME, at.to_ns, &wall))
        s.readings[s.n++] = (struct sv_reading){SV_CLOCK_REALTIME, wall};
    sv_clocks_add(to, &s);
    to->trace_clock = PRIVATE_CLOCK;
}

/* At each round, and where the first of its events begins and the last one ends. */
static void make_direct(const struct graph *g, uint32_t node, const struct sv_clocks *root)
{
    const struct sv_sync *s = &g->ways[g->nodes[node].by].sync;
    struct sv_clocks *to = &g->nodes[node].direct;
    for (size_t k = 0; k < s->n; k++)
        add_point(g, to, root, followed(g, node, s->points[k].at_ns), 0);
    int64_t first = s->points[0].at_ns, last = s->points[s->n - 1].at_ns, from = first,
            until = last;
    for (uint32_t k = g->first[node]; k < g->first[node + 1]; k++) {
        const struct span *span = &g->spans[g->order[k]];
        from = span->from_ns < from ? span->from_ns : from;
        until = span->to_ns > until ? span->to_ns : until;
    }
    if (from < first)
        add_point(g, to, root, followed(g, node, from), 0);
    if (until > last)
        add_point(g, to, root, followed(g, node, until), 0);
}

/* Another clock: wherever a snapshot of its host has both. */
static void make_by_snapshots(const struct graph *g, size_t i, const struct sv_clocks *host,
                              const struct sv_clocks *root)
{
    uint32_t clock = g->axis->inputs[i].is.clocks->trace_clock;
    int64_t from, on_clock;
    for (size_t s = 0; s < host->n; s++)
        if (sv_snapshot_get(&host->snapshots[s], clock, &from) &&
            sv_snapshot_get(&host->snapshots[s], g->clock, &on_clock))
            add_point(g, &g->own[i], root,
                      (struct sv_clock_point){from, follow(g, g->of_input[i], on_clock)},
                      host->snapshots[s].uncertainty_ns);
}

/* What stands for the clocks of an input that is reached over relations; NULL: it is not, and its
 * own do. */
static const struct sv_clocks *made_for(const struct graph *g, size_t i)
{
    assert(g->nodes); /* there is an input */
    const struct node *node = &g->nodes[g->of_input[i]];
    if (g->axis->inputs[i].is.clocks->trace_clock == g->clock)
        return node->direct.n ? &node->direct : NULL;
    return g->own[i].n ? &g->own[i] : NULL;
}

/* When its events were, on that clock; without any, when it was related. */
static struct span span_of(const struct graph *g, size_t i, const struct sv_clocks *host)
{
    const struct sv_time_axis_input *in = &g->axis->inputs[i];
    uint32_t clock = in->is.clocks->trace_clock;
    struct span s;
    if (in->first_ns <= in->last_ns &&
        sv_clocks_convert(host, clock, g->clock, in->first_ns, &s.from_ns) &&
        sv_clocks_convert(host, clock, g->clock, in->last_ns, &s.to_ns))
        return s;
    int64_t at = g->ways[g->nodes[g->of_input[i]].by].sync.points[0].at_ns;
    return (struct span){at, at};
}

static void make_clocks(struct graph *g, uint32_t node)
{
    struct sv_clocks host = {0}, root = {0};
    bool is_direct = false;
    gather(g, node, SIZE_MAX - 1, &host);
    gather(g, root_of(g, node), WALL_POINTS, &root);
    for (uint32_t k = g->first[node]; k < g->first[node + 1]; k++) {
        size_t i = g->order[k];
        uint32_t clock = g->axis->inputs[i].is.clocks->trace_clock;
        g->spans[i] = span_of(g, i, &host);
        is_direct |= clock == g->clock;
        if (clock != g->clock && clock != SV_CLOCK_UNKNOWN && clock < 64)
            make_by_snapshots(g, i, &host, &root);
    }
    if (is_direct)
        make_direct(g, node, &root);
    sv_clocks_fini(&host);
    sv_clocks_fini(&root);
}

/* ---- what is known about the result ---- */

/* The greatest error that the host's kernel stated, -1: it did not, or nothing synchronised its
 * clock. */
static int64_t wall_error(const struct sv_clocks *c, int64_t worst)
{
    for (size_t s = 0; s < c->n && worst != -1; s++) {
        const struct sv_snapshot *x = &c->snapshots[s];
        if (x->wall_state == SV_WALL_FREE)
            return -1;
        if (x->wall_state == SV_WALL_SYNCHRONISED && x->wall_error_ns > worst)
            worst = x->wall_error_ns;
    }
    return worst;
}

/* By machine: -1 unknown, also when no snapshot says anything. */
static int64_t *wall_errors(const struct sv_time_axis *a, size_t n_machines)
{
    int64_t *errors = sv_alloc((n_machines + 1) * sizeof *errors);
    bool *said = sv_alloc((n_machines + 1) * sizeof *said);
    for (size_t i = 0; i < a->n; i++) {
        const struct sv_clocks *c = a->inputs[i].is.clocks;
        uint32_t m = a->inputs[i].is.machine;
        for (size_t s = 0; s < c->n && !said[m]; s++)
            said[m] = c->snapshots[s].wall_state != SV_WALL_UNKNOWN;
        errors[m] = wall_error(c, errors[m]);
    }
    for (size_t m = 0; m < n_machines; m++)
        if (!said[m])
            errors[m] = -1;
    free(said);
    return errors;
}

/* The relations on the way, and the wall clock of their root where that is the common one. */
static void judge_related(const struct graph *g, size_t i, const int64_t *errors,
                          struct sv_time_axis_place *p)
{
    const struct sv_time_axis *a = g->axis;
    uint32_t node = g->of_input[i];
    bool is_estimate = false;
    int64_t sum = bound_of(g, node, g->spans[i].from_ns, g->spans[i].to_ns, &is_estimate);
    int64_t wall = a->clock == SV_CLOCK_REALTIME ? errors[g->nodes[root_of(g, node)].machine] : 0;
    int64_t steady = a->shifts[i].n == 1 ? SV_RELATE_STEADY_NS : 0;
    p->by = is_estimate ? SV_BY_COLLECTIVES : SV_BY_PINGS;
    if (is_estimate || wall < 0 || __builtin_add_overflow(sum, wall + steady, &sum) ||
        sum == INT64_MAX)
        sum = -1;
    p->between_ns = sum;
}

static void judge_one(const struct graph *g, size_t i, const int64_t *errors, size_t n_machines,
                      uint32_t whose)
{
    struct sv_time_axis *a = g->axis;
    const struct sv_time_axis_input *in = &a->inputs[i];
    const struct sv_shift *s = &a->shifts[i];
    struct sv_time_axis_place *p = &a->places[i];
    *p =
        (struct sv_time_axis_place){.within_ns = s->n ? s->uncertainty_ns : 0,
                                    .has_common_clock = !made_for(g, i) && g->of_input[i] == whose};
    if (s->is_assumed || in->is.has_offset) {
        p->by = s->is_assumed ? SV_BY_ASSUMPTION : SV_BY_HAND;
        p->between_ns = -1;
    } else if (made_for(g, i)) {
        judge_related(g, i, errors, p);
    } else if (a->clock == SV_CLOCK_REALTIME && n_machines > 1 &&
               !(g->clock == SV_CLOCK_REALTIME && g->nodes[g->of_input[i]].has_others)) {
        p->by = SV_BY_WALL;
        p->between_ns = errors[in->is.machine];
    }
}

static void judge(const struct graph *g, uint32_t whose)
{
    struct sv_time_axis *a = g->axis;
    size_t n_machines = 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->inputs[i].is.machine >= n_machines)
            n_machines = (size_t)a->inputs[i].is.machine + 1;
    int64_t *errors = wall_errors(a, n_machines);
    a->places = sv_alloc((a->n + 1) * sizeof *a->places);
    for (size_t i = 0; i < a->n; i++)
        judge_one(g, i, errors, n_machines, whose);
    free(errors);
}

/* ---- all of it ---- */

static void let_go(struct graph *g)
{
    for (size_t i = 0; i < g->n_ways; i++)
        sv_sync_fini(&g->ways[i].sync);
    for (size_t i = 0; i < g->axis->n; i++)
        sv_clocks_fini(&g->own[i]);
    for (size_t k = 0; k < g->n_nodes; k++)
        sv_clocks_fini(&g->nodes[k].direct);
    sv_map_fini(&g->boots);
    sv_map_fini(&g->keys);
    sv_dict_free(g->texts);
    free(g->nodes);
    free(g->edges);
    free(g->ways);
    free(g->of_input);
    free(g->order);
    free(g->first);
    free(g->spans);
    free(g->own);
}

/* For relate.c a machine is whoever shares clocks. */
static struct sv_relate_input *prepare(const struct graph *g)
{
    const struct sv_time_axis *a = g->axis;
    struct sv_relate_input *inputs = sv_alloc((a->n + 1) * sizeof *inputs);
    for (size_t i = 0; i < a->n; i++) {
        uint32_t node = g->of_input[i];
        inputs[i] = a->inputs[i].is;
        inputs[i].host = a->inputs[i].host;
        const struct sv_clocks *made = made_for(g, i);
        inputs[i].machine = made ? root_of(g, node) : node;
        if (made)
            inputs[i].clocks = made;
    }
    return inputs;
}

int sv_time_axis_relate(struct sv_time_axis *a, struct sv_err *err)
{
    struct graph g = {
        .axis = a, .clock = a->measured ? a->measured : SV_CLOCK_BOOTTIME, .texts = sv_dict_new()};
    uint32_t whose;
    g.own = sv_alloc((a->n + 1) * sizeof *g.own);
    g.spans = sv_alloc((a->n + 1) * sizeof *g.spans);
    learn_inputs(&g);
    learn_relations(&g);
    find_ways(&g);
    order_inputs(&g);
    for (uint32_t k = 0; k < g.n_nodes; k++)
        if (g.nodes[k].first_input != NONE && g.nodes[k].is_seen && g.nodes[k].root != k)
            make_clocks(&g, k);
    struct sv_relate_input *inputs = prepare(&g);
    a->shifts = sv_alloc((a->n + 1) * sizeof *a->shifts);
    int code = sv_relate(inputs, a->n, a->assume, a->shifts, &a->clock, &whose, err);
    if (code == 0)
        judge(&g, a->clock == SV_CLOCK_REALTIME ? g.of_input[0] : whose);
    free(inputs);
    let_go(&g);
    return code;
}

void sv_time_axis_fini(struct sv_time_axis *a)
{
    for (size_t i = 0; a->shifts && i < a->n; i++)
        sv_shift_fini(&a->shifts[i]);
    free(a->shifts);
    free(a->places);
    a->shifts = NULL;
    a->places = NULL;
}

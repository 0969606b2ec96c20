/* A directed graph and its levels. Called by readers of task graphs.
 *
 * The index is made by counting, the levels by taking away nodes that nothing precedes (Kahn). Must
 * not look at what nodes mean. */
#include "formats/starpu/digraph.h"

#include "core/base/mem.h"
#include "core/base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void sv_digraph_fini(struct sv_digraph *g)
{
    free(g->edges);
    free(g->after);
    free(g->before);
    free(g->after_at);
    free(g->before_at);
    memset(g, 0, sizeof *g);
}

void sv_digraph_edge(struct sv_digraph *g, uint32_t from, uint32_t to)
{
    assert(!g->after_at);
    SV_APPEND(g->edges, g->n_edges, g->cap_edges) = (struct sv_digraph_edge){from, to};
}

/* Counts become places: at[i + 1] holds the count of node i before, at[i] its first place after. */
static void sum_up(size_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        at[i + 1] += at[i];
}

/* Where the lists were filled by moving each place forward, they begin where the one before
 * ends. */
static void move_back(size_t *at, uint32_t n)
{
    memmove(at + 1, at, n * sizeof *at);
    at[0] = 0;
}

/* Each neighbour once, the first time it was named. `mark` has a place for each node. */
static void drop_doubles(struct sv_digraph *g, uint32_t *mark)
{
    size_t kept = 0, k = 0;
    memset(mark, 0xff, g->n_nodes * sizeof *mark);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        size_t end = g->after_at[i + 1];
        g->after_at[i] = kept;
        for (; k < end; k++) {
            uint32_t to = g->after[k];
            if (mark[to] != i)
                g->after[kept++] = to;
            mark[to] = i;
        }
    }
    g->after_at[g->n_nodes] = kept;
}

static void index_before(struct sv_digraph *g)
{
    for (size_t k = 0; k < g->after_at[g->n_nodes]; k++)
        g->before_at[g->after[k] + 1]++;
    sum_up(g->before_at, g->n_nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (size_t k = g->after_at[i]; k < g->after_at[i + 1]; k++)
            g->before[g->before_at[g->after[k]]++] = i;
    move_back(g->before_at, g->n_nodes);
}

size_t sv_digraph_index(struct sv_digraph *g, uint32_t n_nodes)
{
    assert(!g->after_at);
    size_t own = 0;
    g->n_nodes = n_nodes;
    g->after_at = sv_alloc(((size_t)n_nodes + 1) * sizeof *g->after_at);
    g->before_at = sv_alloc(((size_t)n_nodes + 1) * sizeof *g->before_at);
    g->after = sv_alloc((g->n_edges + 1) * sizeof *g->after);
    for (size_t k = 0; k < g->n_edges; k++) {
        assert(g->edges[k].from < n_nodes && g->edges[k].to < n_nodes);
        if (g->edges[k].from == g->edges[k].to)
            own++;
        else
            g->after_at[g->edges[k].from + 1]++;
    }
    sum_up(g->after_at, n_nodes);
    for (size_t k = 0; k < g->n_edges; k++)
        if (g->edges[k].from != g->edges[k].to)
            g->after[g->after_at[g->edges[k].from]++] = g->edges[k].to;
    move_back(g->after_at, n_nodes);
    free(g->edges);
    g->edges = NULL;
    uint32_t *mark = sv_alloc(((size_t)n_nodes + 1) * sizeof *mark);
    drop_doubles(g, mark);
    free(mark);
    g->before = sv_alloc((g->after_at[n_nodes] + 1) * sizeof *g->before);
    index_before(g);
    return own;
}

/* ---- levels ---- */

struct ordering {
    const struct sv_digraph *g;
    uint32_t *queue,
        n_queue;         /* nodes in an order in which every edge leads forward, but for circles */
    uint32_t *waits_for; /* nodes before it that are not placed; SV_NO_NODE: it is placed */
    uint32_t *floor;     /* that it has in the end */
    uint32_t *level;     /* above its floor's first */
};

static void place(struct ordering *o, uint32_t node)
{
    o->waits_for[node] = SV_NO_NODE;
    o->queue[o->n_queue++] = node;
}

/* Passes the level of a placed node to its successors. */
static void pass_on(struct ordering *o, uint32_t node)
{
    for (size_t k = o->g->after_at[node]; k < o->g->after_at[node + 1]; k++) {
        uint32_t to = o->g->after[k];
        if (o->waits_for[to] == SV_NO_NODE)
            continue; /* placed against this edge: a circle */
        if (o->floor[to] < o->floor[node]) {
            o->floor[to] = o->floor[node];
            o->level[to] = 0;
        }
        if (o->floor[to] == o->floor[node] && o->level[to] <= o->level[node])
            o->level[to] = o->level[node] + 1;
        if (--o->waits_for[to] == 0)
            place(o, to);
    }
}

static void order_nodes(struct ordering *o, struct sv_levels *out)
{
    uint32_t n = o->g->n_nodes, done = 0, next = 0;
    for (uint32_t i = 0; i < n; i++) {
        o->waits_for[i] = (uint32_t)(o->g->before_at[i + 1] - o->g->before_at[i]);
        if (o->waits_for[i] == 0)
            place(o, i);
    }
    while (done < n) {
        if (done == o->n_queue) {
            while (o->waits_for[next] == SV_NO_NODE)
                next++;
            if (out->n_circles++ == 0)
                out->first_circle = next;
            place(o, next);
        }
        pass_on(o, o->queue[done++]);
    }
}

/* Levels count from the floor's first: now each floor begins after the last level of the one below.
 * Floors may be any numbers. */
static void stack_floors(const struct ordering *o, struct sv_levels *out)
{
    uint32_t n = o->g->n_nodes, n_floors = 0;
    uint32_t *floors = o->waits_for, *starts = o->queue; /* not needed any more */
    memcpy(floors, o->floor, n * sizeof *floors);
    qsort(floors, n, sizeof *floors, sv_compare_u32);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || floors[i] != floors[n_floors - 1])
            floors[n_floors++] = floors[i];
    memset(starts, 0, n * sizeof *starts);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *at =
            bsearch(&o->floor[i], floors, n_floors, sizeof *floors, sv_compare_u32);
        o->floor[i] = (uint32_t)(at - floors);
        if (starts[o->floor[i]] <= o->level[i])
            starts[o->floor[i]] = o->level[i] + 1; /* its height, first */
    }
    for (uint32_t f = 0; f < n_floors; f++) {
        uint32_t height = starts[f];
        starts[f] = out->n_levels;
        out->n_levels += height;
    }
    for (uint32_t i = 0; i < n; i++)
        out->level[i] = o->level[i] + starts[o->floor[i]];
}

static void sort_by_level(const struct sv_digraph *g, struct sv_levels *out)
{
    size_t *at = sv_alloc(((size_t)out->n_levels + 1) * sizeof *at);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        at[out->level[i] + 1]++;
    sum_up(at, out->n_levels);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        out->sorted[at[out->level[i]]++] = i;
    free(at);
}

void sv_digraph_levels(const struct sv_digraph *g, const uint32_t *floors, struct sv_levels *out)
{
    size_t bytes = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
    *out = (struct sv_levels){.first_circle = SV_NO_NODE};
    out->level = sv_alloc(bytes);
    out->sorted = sv_alloc(bytes);
    struct ordering o = {g, out->sorted, 0, sv_alloc(bytes), sv_alloc(bytes), sv_alloc(bytes)};
    if (floors)
        memcpy(o.floor, floors, g->n_nodes * sizeof *floors);
    order_nodes(&o, out);
    stack_floors(&o, out);
    free(o.waits_for);
    free(o.floor);
    free(o.level);
    sort_by_level(g, out);
}

void sv_levels_fini(struct sv_levels *l)
{
    free(l->level);
    free(l->sorted);
}

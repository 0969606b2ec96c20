/* A directed graph of numbered nodes, and the order that its edges ask for.
 *
 *     sv_digraph_edge(&g, from, to);           // as often as needed, in any order
 *     sv_digraph_index(&g, n_nodes);           // equal edges once; neighbours in the order in
 *                                              which they were added
 *     sv_digraph_levels(&g, floors, &levels);  // every edge leads to a higher level; cycles are
 *                                              reported
 *
 * All of it takes time and memory in proportion to nodes and edges, whatever the shape; nothing
 * recurses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SV_NO_NODE UINT32_MAX

struct sv_digraph_edge {
    uint32_t from, to;
};

struct sv_digraph {
    uint32_t n_nodes;
    struct sv_digraph_edge *edges; /* until the index is made */
    size_t n_edges, cap_edges;
    /* Neighbours of node i: after[after_at[i]] up to after[after_at[i + 1]], before[] in the same
     * way. */
    uint32_t *after, *before;
    size_t *after_at, *before_at;
};

void sv_digraph_fini(struct sv_digraph *g); /* a zeroed struct is a valid empty graph */
void sv_digraph_edge(struct sv_digraph *g, uint32_t from, uint32_t to);
/* Nodes are 0 … n_nodes - 1. Edges of a node to itself are left out; returns their number. */
size_t sv_digraph_index(struct sv_digraph *g, uint32_t n_nodes);

struct sv_levels {
    uint32_t *level;  /* of each node */
    uint32_t *sorted; /* all nodes by level; within a level by number */
    uint32_t n_levels;
    uint32_t n_circles;    /* nodes that were placed although one before them was not */
    uint32_t first_circle; /* the first of them, SV_NO_NODE: the graph has no circle */
};

/* The longest way to each node. floors[i] (NULL: none): node i comes after every node whose floor
 * is lower; a node before which one with a higher floor must come gets that one's. Where edges go
 * in a circle, the first node of it (by number) is placed as if nothing came before. */
void sv_digraph_levels(const struct sv_digraph *g, const uint32_t *floors, struct sv_levels *out);
void sv_levels_fini(struct sv_levels *l);

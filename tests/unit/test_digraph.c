/* Levels of a graph against a definition that is slow and plain, on random graphs; circles,
 * doubles, floors. */
#include "formats/starpu/digraph.h"
#include "tests/harness/test.h"

#include <string.h>

enum { NODES = 40 };

/* The longest way to each node by going through all edges until nothing changes; false in a
 * circle. */
static bool plain_levels(bool edges[NODES][NODES], uint32_t n, uint32_t *level)
{
    memset(level, 0, n * sizeof *level);
    for (uint32_t round = 0; round <= n; round++) {
        bool changed = false;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < n; k++)
                if (edges[i][k] && level[k] <= level[i]) {
                    level[k] = level[i] + 1;
                    changed = true;
                }
        if (!changed)
            return true;
    }
    return false;
}

TEST(levels_are_the_longest_ways)
{
    uint64_t random = 7;
    int with_circle = 0;
    for (int turn = 0; turn < 400; turn++) {
        bool edges[NODES][NODES] = {{false}};
        uint32_t expected[NODES], n = 1 + (uint32_t)turn % NODES;
        struct sv_digraph g = {0};
        struct sv_levels l;
        for (uint32_t e = 0; e < n + n / 2; e++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint32_t a = (uint32_t)(random >> 33) % n, b = (uint32_t)(random >> 13) % n;
            if (turn % 2 && a > b) {
                uint32_t c = a;
                a = b;
                b = c;
            }
            edges[a][b] |= a != b;
            sv_digraph_edge(&g, a, b);
        }
        bool has_order = plain_levels(edges, n, expected);
        sv_digraph_index(&g, n);
        sv_digraph_levels(&g, NULL, &l);
        CONTEXT("turn %d", turn);
        CHECK_INT_EQ(l.first_circle == SV_NO_NODE, has_order);
        CHECK_INT_EQ(l.n_circles == 0, has_order);
        with_circle += !has_order;
        for (uint32_t i = 0; has_order && i < n; i++)
            CHECK_INT_EQ(l.level[i], expected[i]);
        for (uint32_t i = 1; i < n; i++)
            CHECK(l.level[l.sorted[i - 1]] < l.level[l.sorted[i]] ||
                  (l.level[l.sorted[i - 1]] == l.level[l.sorted[i]] &&
                   l.sorted[i - 1] < l.sorted[i]));
        sv_levels_fini(&l);
        sv_digraph_fini(&g);
    }
    CHECK(with_circle > 20 && with_circle < 380);
}

TEST(equal_edges_count_once_and_own_ones_are_reported)
{
    struct sv_digraph g = {0};
    static const uint32_t edges[][2] = {{0, 2}, {0, 1}, {0, 2}, {1, 1}, {1, 2}, {0, 1}};
    for (size_t i = 0; i < TEST_COUNT(edges); i++)
        sv_digraph_edge(&g, edges[i][0], edges[i][1]);
    CHECK_INT_EQ(sv_digraph_index(&g, 3), 1);
    REQUIRE(g.after_at[3] == 3);
    CHECK_INT_EQ(g.after_at[1], 2);
    CHECK_INT_EQ(g.after[0], 2);
    CHECK_INT_EQ(g.after[1], 1);
    CHECK_INT_EQ(g.before_at[3] - g.before_at[2], 2);
    CHECK_INT_EQ(g.before[g.before_at[2]], 0);
    CHECK_INT_EQ(g.before[g.before_at[2] + 1], 1);
    sv_digraph_fini(&g);
}

TEST(floors_come_one_behind_the_other)
{
    struct sv_digraph g = {0};
    struct sv_levels l;
    static const uint32_t floors[] = {0, 0, 9, 0, 9}, expected[] = {0, 1, 2, 3, 2};
    sv_digraph_edge(&g, 0, 1);
    sv_digraph_edge(&g, 2, 3); /* against the floors: it goes up */
    sv_digraph_index(&g, 5);
    sv_digraph_levels(&g, floors, &l);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_INT_EQ(l.level[i], expected[i]);
    CHECK_INT_EQ(l.n_levels, 4);
    sv_levels_fini(&l);
    sv_digraph_fini(&g);
}

TEST(a_graph_of_nothing)
{
    struct sv_digraph g = {0};
    struct sv_levels l;
    CHECK_INT_EQ(sv_digraph_index(&g, 0), 0);
    sv_digraph_levels(&g, NULL, &l);
    CHECK_INT_EQ(l.n_levels, 0);
    sv_levels_fini(&l);
    sv_digraph_fini(&g);
}

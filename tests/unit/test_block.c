/* Blocks and the sort template: both are used where mistakes would be hard to see. */
#include "core/base/block.h"
#include "core/base/sort.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdlib.h>

TEST(growing_keeps_what_is_there_and_adds_zeros)
{
    struct sv_block b = {0};
    size_t n = 0;
    for (size_t bytes = 1; bytes < (size_t)40 << 20; bytes *= 3) {
        REQUIRE(sv_block_reserve(&b, bytes));
        uint8_t *p = b.at;
        for (size_t i = 0; i < n; i += 997)
            CHECK_UINT_EQ(p[i], (uint8_t)(i * 7));
        CHECK_UINT_EQ(p[bytes - 1], 0);
        for (; n < bytes; n++)
            p[n] = (uint8_t)(n * 7);
    }
    sv_block_trim(&b, 5000);
    CHECK(b.bytes >= 5000 && b.bytes < 16384);
    CHECK_UINT_EQ(((uint8_t *)b.at)[4999], (uint8_t)(4999 * 7));
    CHECK(!sv_block_reserve(&b, SIZE_MAX / 2));
    CHECK_UINT_EQ(((uint8_t *)b.at)[4999], (uint8_t)(4999 * 7));
    sv_block_trim(&b, 0);
    CHECK(b.at == NULL);
}

struct item {
    uint32_t key, place;
};

static bool smaller(const struct item *a, const struct item *b, const void *unused)
{
    (void)unused;
    return a->key < b->key;
}
SV_SORT_DEFINE(sort_items, struct item, smaller)

/* Random, sorted, reversed, sawtooth, few values; then the order and the stability are looked
 * at. */
TEST(sort_is_stable_whatever_the_runs)
{
    struct rng r = {.state = 5};
    for (unsigned turn = 0; turn < 400; turn++) {
        size_t n = turn < 60 ? turn : rng_below(&r, 3000);
        struct item *a = calloc(n + SV_SORT_SPARE(n), sizeof *a);
        REQUIRE(a);
        CONTEXT("turn %u, %zu items", turn, n);
        for (uint32_t i = 0; i < n; i++) {
            uint64_t x = rng_next(&r);
            uint32_t keys[] = {(uint32_t)x,       i,
                               (uint32_t)n - i,   i % 50,
                               (uint32_t)(x % 4), i < n / 2 ? i : (uint32_t)x,
                               i / 7 * 7 ^ 1};
            a[i] = (struct item){.key = keys[turn % 7], .place = i};
        }
        sort_items(a, n, a + n, NULL);
        for (size_t i = 1; i < n; i++)
            REQUIRE(a[i - 1].key < a[i].key ||
                    (a[i - 1].key == a[i].key && a[i - 1].place < a[i].place));
        free(a);
    }
}

/* The pool: blocks apart, blocks reused, no growth. */
#include "core/base/pool.h"

#include "tests/harness/test.h"

#include <string.h>

TEST(blocks_of_all_sizes_are_apart_and_reused)
{
    struct sv_pool p;
    sv_pool_init(&p);
    static const size_t sizes[] = {0, 1, 31, 32, 33, 64, 65, 4095, 4096, 4097, 100000};
    unsigned char *blocks[TEST_COUNT(sizes)];
    for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
        blocks[i] = sv_pool_get(&p, sizes[i]);
        CHECK_UINT_EQ((uintptr_t)blocks[i] & 15, 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
        CONTEXT("size %zu", sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            if (!CHECK_UINT_EQ(blocks[i][k], i + 1))
                break;
        sv_pool_put(&p, blocks[i], sizes[i]);
    }
    CHECK_UINT_EQ(p.used_bytes, 0);
    void *again = sv_pool_get(
        &p, 65); /* the same class as 100, the block of 65 bytes is the only one in it */
    CHECK(again == blocks[6]);
    sv_pool_put(&p, again, 65);
    sv_pool_fini(&p);
}

TEST(a_long_stream_does_not_grow_it)
{
    struct sv_pool p;
    sv_pool_init(&p);
    size_t after_first = 0;
    for (unsigned round = 0; round < 1000; round++) {
        void *blocks[100];
        for (size_t i = 0; i < 100; i++)
            blocks[i] = sv_pool_get(&p, 40 + i * 17);
        for (size_t i = 0; i < 100; i++)
            sv_pool_put(&p, blocks[i], 40 + i * 17);
        if (round == 0)
            after_first = p.chunks.used_bytes;
    }
    CHECK_UINT_EQ(p.chunks.used_bytes, after_first);
    sv_pool_fini(&p);
}

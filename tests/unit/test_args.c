/* Copies of argument lists, live and packed. */
#include "core/stream/args.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

static const struct sv_arg sample[] = {
    {.key = 1, .type = SV_ARG_INT, .i = -5},
    {.key = 2, .type = SV_ARG_DICT, .size = 2},
    {.key = 3, .type = SV_ARG_TEXT, .size = 5, .text = "hello"},
    {.key = 4, .type = SV_ARG_TEXT, .size = 0, .text = NULL},
    {.type = SV_ARG_FLOW, .u = 77},
    {.key = 5, .type = SV_ARG_TEXT, .size = 3, .text = "a\0b"},
};

static void check_sample(const struct sv_arg *a)
{
    CHECK_INT_EQ(a[0].i, -5);
    CHECK_UINT_EQ(a[1].size, 2);
    CHECK_MEM_EQ(a[2].text, "hello", 5);
    CHECK_UINT_EQ(a[3].size, 0);
    CHECK_UINT_EQ(a[4].u, 77);
    CHECK_MEM_EQ(a[5].text, "a\0b", 3);
}

TEST(a_copy_stands_alone)
{
    bool has_text = false;
    size_t bytes = sv_args_bytes(sample, TEST_COUNT(sample), &has_text);
    CHECK_UINT_EQ(bytes, TEST_COUNT(sample) * 16 + 8);
    CHECK(has_text);
    char *block = malloc(bytes);
    struct sv_arg *a = sv_args_copy(block, sample, TEST_COUNT(sample));
    check_sample(a);
    CHECK((const char *)a[2].text >= block && a[2].text < block + bytes);
    free(block);
}

TEST(a_packed_copy_may_move)
{
    size_t bytes = sv_args_bytes(sample, TEST_COUNT(sample), NULL);
    char *block = malloc(bytes), *moved = malloc(bytes);
    sv_args_pack(block, sample, TEST_COUNT(sample));
    memcpy(moved, block, bytes);
    memset(block, 0xee, bytes);
    free(block);
    sv_args_unpack(moved, TEST_COUNT(sample));
    check_sample((const struct sv_arg *)(const void *)moved);
    free(moved);
}

TEST(nothing_is_zero_bytes)
{
    bool has_text = true;
    CHECK_UINT_EQ(sv_args_bytes(NULL, 0, &has_text), 0);
    CHECK(!has_text);
}

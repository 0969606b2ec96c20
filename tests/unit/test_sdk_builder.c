/* The builder of nested arguments: limits, counts of what was left out, and no way to overrun it. */
#include "tests/harness/test.h"

#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

static bool has(const struct stave_args *a, const char *text)
{
    return memmem(a->bytes, a->len, text, strlen(text)) != NULL;
}

TEST(long_lists_end_with_how_many_more)
{
    static const struct {
        int n;
        uint32_t limit;
        const char *expected; /* NULL: nothing */
    } rows[] = {{255, 256, NULL},
                {256, 256, NULL},
                {257, 256, "(1 more items)"},
                {1000, 256, "(744 more items)"},
                {5, 2, "(3 more items)"}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        for (int is_dict = 0; is_dict < 2; is_dict++) {
            CONTEXT("row %zu, dict %d", i, is_dict);
            struct stave_args a;
            stave_args_init(&a);
            stave_args_limit(&a, rows[i].limit);
            if (is_dict)
                stave_args_dict(&a, "d");
            else
                stave_args_list(&a, "l");
            for (int k = 0; k < rows[i].n; k++)
                stave_args_int(&a, is_dict ? "k" : NULL, k);
            stave_args_end(&a);
            if (rows[i].expected)
                CHECK(has(&a, rows[i].expected));
            else
                CHECK(!has(&a, "more items"));
            CHECK_UINT_EQ(a.depth, 0);
        }
    }
}

TEST(items_that_were_not_added_are_counted)
{
    struct stave_args a;
    stave_args_init(&a);
    stave_args_list(&a, "l");
    stave_args_int(&a, NULL, 1);
    stave_args_more(&a, 999);
    stave_args_end(&a);
    stave_args_more(&a, 7); /* nothing is open: ignored */
    CHECK(has(&a, "(999 more items)"));
    CHECK(!has(&a, "(7 more"));
}

TEST(never_writes_past_its_bytes)
{
    struct {
        struct stave_args a;
        uint8_t guard[64];
    } s;
    memset(s.guard, 0x5a, sizeof s.guard);
    char text[3000];
    memset(text, 'x', sizeof text);
    stave_args_init(&s.a);
    stave_args_limit(&s.a, 1000000);
    for (int i = 0; i < 40; i++) {
        stave_args_list(&s.a, "deeper");
        stave_args_text_n(&s.a, NULL, text, sizeof text);
        stave_args_double(&s.a, NULL, 1.5);
    }
    for (int i = 0; i < 5000; i++)
        stave_args_int(&s.a, "number", i);
    for (int i = 0; i < 60; i++)
        stave_args_end(&s.a);
    CHECK(s.a.len <= sizeof s.a.bytes);
    for (size_t i = 0; i < sizeof s.guard; i++)
        CHECK_INT_EQ(s.guard[i], 0x5a);
    CHECK(has(&s.a, "more items"));
}

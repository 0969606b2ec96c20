/* The builder of nested arguments: limits, counts of what was left out, and no way to overrun
 * it. */
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

/* Bytes that are reserved for the last items of open containers, and the head of an item: type and
 * length of the key. */
enum { RESERVED = 64 * 32, HEAD = 3 };

/* So many bytes are in use, without an open container. */
static void fill(struct stave_args *a, uint32_t bytes)
{
    char text[STAVE_ARGS_BYTES];
    memset(text, 'x', sizeof text);
    stave_args_init(a);
    stave_args_text_n(a, NULL, text, bytes - HEAD - 4);
    CHECK_UINT_EQ(a->len, bytes);
}

TEST(the_last_item_fits_to_the_byte)
{
    static const struct {
        uint32_t payload, bytes; /* that must be free, besides head and key; that it takes */
    } rows[] = {{8, HEAD + 8}, {4 + 10, HEAD + 4 + 10}, {8, HEAD}, {8, HEAD}, {0, HEAD}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        for (uint32_t missing = 0; missing < 2; missing++) {
            static struct stave_args a;
            CONTEXT("row %zu, %u", i, missing);
            uint32_t before = STAVE_ARGS_BYTES - RESERVED - HEAD - 1 - rows[i].payload + missing;
            fill(&a, before);
            if (i == 0)
                stave_args_int(&a, "k", 1);
            else if (i == 1)
                stave_args_text(&a, "k", "0123456789");
            else if (i == 2)
                stave_args_list(&a, "k");
            else if (i == 3)
                stave_args_dict(&a, "k");
            else
                stave_args_null(&a, "k");
            CHECK_UINT_EQ(a.len, missing ? before : before + rows[i].bytes + 1);
            CHECK_UINT_EQ(a.count[0], 2);
            CHECK_UINT_EQ(a.kept[0], missing ? 1 : 2);
            CHECK_UINT_EQ(a.dropped, missing && (i == 2 || i == 3) ? 1 : 0);
            CHECK_UINT_EQ(a.depth, !missing && (i == 2 || i == 3) ? 1 : 0);
            stave_args_int(&a, "after", 1); /* nothing follows what was left out */
            stave_args_end(&a);
            CHECK_UINT_EQ(a.depth, 0);
            CHECK_UINT_EQ(a.dropped, 0);
            if (missing)
                CHECK_UINT_EQ(a.len, before);
        }
    }
}

/* Of a long text a part is kept, unless that were less than 64 bytes. */
TEST(long_texts_are_cut)
{
    static char text[20000];
    memset(text, 'y', sizeof text);
    for (uint32_t left = 62; left <= 66; left++) {
        static struct stave_args a;
        CONTEXT("%u", left);
        uint32_t before = STAVE_ARGS_BYTES - RESERVED - HEAD - 1 - 4 - left;
        fill(&a, before);
        stave_args_text_n(&a, "k", text, 1000);
        CHECK_UINT_EQ(a.len, left < 64 ? before : STAVE_ARGS_BYTES - RESERVED);
        CHECK_UINT_EQ(a.kept[0], left < 64 ? 1 : 2);
        fill(&a, before);
        stave_args_text_n(&a, "k", text, left); /* as long as there is space */
        CHECK_UINT_EQ(a.len, STAVE_ARGS_BYTES - RESERVED);
    }
    static struct stave_args a;
    stave_args_init(&a);
    stave_args_text(&a, "none", NULL);
    CHECK(has(&a, "(null)") && a.len == HEAD + 4 + 4 + 6);
    text[sizeof text - 1] = '\0';
    stave_args_init(&a);
    stave_args_int(&a, text, 1); /* a key that is too long for all of it */
    CHECK(a.len == 0 && a.count[0] == 1 && a.kept[0] == 0);
}

TEST(containers_are_as_deep_as_allowed)
{
    static struct stave_args a;
    stave_args_init(&a);
    for (int i = 1; i < 40; i++) {
        stave_args_list(&a, i == 1 ? "l" : NULL);
        CHECK_UINT_EQ(a.depth, i < 32 ? i : 31);
        CHECK_UINT_EQ(a.dropped, i < 32 ? 0 : i - 31);
    }
    uint32_t len = a.len;
    stave_args_int(&a, NULL, 1);
    stave_args_more(&a, 5);
    CHECK_UINT_EQ(a.len, len);
    for (int i = 39; i > 0; i--) {
        stave_args_end(&a);
        CHECK_UINT_EQ(a.depth, i > 32 ? 31 : i - 1);
    }
    CHECK_UINT_EQ(a.len, len + 31 * HEAD);
}

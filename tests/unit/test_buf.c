/* Number printing and escaping: the texts every writer shares. */
#include "core/base/buf.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

TEST(numbers_in_microseconds_keep_every_nanosecond)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0, "0.000"},
        {1, "0.001"},
        {999, "0.999"},
        {1000, "1.000"},
        {-1, "-0.001"},
        {-123456, "-123.456"},
        {1234567890123456789, "1234567890123456.789"},
        {INT64_MAX, "9223372036854775.807"},
        {INT64_MIN, "-9223372036854775.808"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        sv_buf_init(&b, 1000);
        sv_buf_us3(&b, rows[i].ns);
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].text);
        sv_buf_fini(&b);
    }
}

TEST(integers_print_their_extremes)
{
    struct sv_buf b;
    sv_buf_init(&b, 1000);
    sv_buf_u64(&b, UINT64_MAX);
    sv_buf_byte(&b, ' ');
    sv_buf_i64(&b, INT64_MIN);
    sv_buf_byte(&b, ' ');
    sv_buf_u64(&b, 100);
    CHECK_STR_EQ(sv_buf_cstr(&b), "18446744073709551615 -9223372036854775808 100");
    sv_buf_fini(&b);
}

TEST(doubles_read_back_as_themselves)
{
    static const double rows[] = {
        0.1, 1.0 / 3, 1e300, 5e-324, -2.5, 123456789.0, 1e15, 1e22, 0.30000000000000004};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        sv_buf_init(&b, 1000);
        sv_buf_double(&b, rows[i]);
        CHECK_DOUBLE_EQ(strtod(sv_buf_cstr(&b), NULL), rows[i]);
        CHECK(strpbrk(sv_buf_cstr(&b), ".e") != NULL);
        sv_buf_fini(&b);
    }
}

TEST(doubles_print_shortest)
{
    static const struct {
        double d;
        const char *text;
    } rows[] = {{0.1, "0.1"},    {2, "2.0"},        {-0.0, "-0.0"},
                {1e22, "1e+22"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        sv_buf_init(&b, 1000);
        sv_buf_double(&b, rows[i].d);
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].text);
        sv_buf_fini(&b);
    }
}

/* The fast way gives the text that the slow one would. */
TEST(doubles_of_all_sizes_print_shortest)
{
    uint64_t x = 7;
    for (int i = 0; i < 200000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        double d;
        if (i % 3 == 0)
            d = (double)(int64_t)(x >> 30) / (double)(1u << (i % 31));
        else if (i % 3 == 1)
            d = (double)(int64_t)(x >> 34) / 1e6 * (i % 2 ? -1 : 1);
        else
            memcpy(&d, &x, sizeof d);
        if (isnan(d) || isinf(d) || d == (double)(int64_t)(fabs(d) < 1e15 ? d : 0))
            continue;
        char text[40];
        for (int precision = 15; precision <= 17; precision++) {
            snprintf(text, sizeof text, "%.*g", precision, d);
            if (strtod(text, NULL) == d)
                break;
        }
        struct sv_buf b;
        sv_buf_init(&b, 1000);
        sv_buf_double(&b, d);
        b.len -= strpbrk(text, ".e") == NULL ? 2 : 0; /* the ".0" */
        if (!CHECK_STR_EQ(sv_buf_cstr(&b), text))
            i = 200000;
        sv_buf_fini(&b);
    }
}

TEST(the_limit_is_sticky)
{
    struct sv_buf b;
    sv_buf_init(&b, 8);
    sv_buf_str(&b, "12345678");
    CHECK(!b.failed);
    sv_buf_str(&b, "9");
    CHECK(b.failed);
    sv_buf_clear(&b);
    CHECK(!b.failed);
    sv_buf_fini(&b);
}

TEST(escaping_keeps_text_and_shows_bytes)
{
    struct sv_buf b;
    sv_buf_init(&b, 1000);
    sv_buf_escaped(&b, "a\n\\\x01\xff\xc3\xa9\x7f", 8);
    CHECK_STR_EQ(sv_buf_cstr(&b), "a\\n\\\\\\x01\\xff\xc3\xa9\\x7f");
    sv_buf_fini(&b);
}

/* JSON scanning: every vector version against a plain loop, skipping in pieces, the validator,
 * escapes, exact numbers. */
#include "core/base/json_scan.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PADDED 512

/* Text in a buffer whose pad is full of bytes that would be found if anybody believed them. */
static const uint8_t *padded(const char *text, size_t len, char pad)
{
    static uint8_t buffers[4][PADDED + SV_JSON_PAD];
    static unsigned turn;
    uint8_t *b = buffers[turn++ % 4];
    memset(b, pad, sizeof buffers[0]);
    memcpy(b, text, len);
    return b;
}

static size_t plain_special(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20 && p[i] < 0x80)
        i++;
    return i;
}

static size_t plain_any(const uint8_t *p, size_t n, const char *set)
{
    size_t i = 0;
    while (i < n && (p[i] == 0 || !strchr(set, p[i])))
        i++;
    return i;
}

TEST(all_versions_find_the_same_byte)
{
    static const uint8_t marks[] = {'"',  '\\', 0,   0x1f, 0x20, 0x7f, 0x80,
                                    0xff, '{',  '}', '[',  ']',  ':',  ','};
    for (unsigned v = 0; sv_json_scan_at(v); v++) {
        const struct sv_json_scan *scan = sv_json_scan_at(v);
        for (size_t m = 0; m < TEST_COUNT(marks); m++) {
            for (size_t at = 0; at < 140; at++) {
                uint8_t b[140 + SV_JSON_PAD];
                memset(b, 'a', sizeof b);
                b[at] = marks[m];
                for (size_t n = at > 3 ? at - 3 : 0; n < at + 3 && n <= 140; n++) {
                    CONTEXT("%s: byte %02x at %zu of %zu", scan->name, marks[m], at, n);
                    CHECK_UINT_EQ(scan->special(b, b + n) - b, plain_special(b, n));
                    CHECK_UINT_EQ(scan->quote(b, b + n) - b, plain_any(b, n, "\"\\"));
                    CHECK_UINT_EQ(scan->structure(b, b + n) - b, plain_any(b, n, "\"{}[]"));
                    CHECK_UINT_EQ(sv_json_special(scan, b, b + n) - b, plain_special(b, n));
                }
            }
        }
    }
    CHECK(sv_json_scan_at(0) == sv_json_scan_best());
}

TEST(blanks_end_at_the_first_other_byte)
{
    for (size_t n = 0; n < 80; n++) {
        uint8_t b[80 + SV_JSON_PAD];
        for (size_t i = 0; i < sizeof b; i++)
            b[i] = (uint8_t) " \n\r\t"[i % 4];
        CHECK(sv_json_solid(b, b + n) == b + n); /* never past the end */
        b[n] = n % 2 ? 0 : 'x';
        CONTEXT("%zu blanks", n);
        CHECK(sv_json_solid(b, b + 80) == b + n);
    }
}

TEST(sixteen_bytes_compare_equal_up_to_n)
{
    const uint8_t *a = padded("0123456789abcdef", 16, 'x');
    for (unsigned n = 0; n <= 16; n++) {
        uint8_t b[16];
        memcpy(b, a, 16);
        if (n < 16)
            b[n] = '!';
        CONTEXT("%u", n);
        CHECK(sv_json_same16(a, b, n));
        CHECK(n == 16 || !sv_json_same16(a, b, n + 1));
    }
}

TEST(skips_values_in_any_pieces)
{
    static const struct {
        const char *text;
        size_t len; /* of the value; 0: not complete */
    } rows[] = {{"1,", 1},           {"-12.5e3]", 7},    {"true}", 4},
                {"\"\" ", 2},        {"\"a\\\"b\",", 6}, {"\"a\\\\\",", 5},
                {"{}x", 2},          {"[]x", 2},         {"{\"a\":[1,{\"]\":\"}\"}]}x", 19},
                {"[\"\\\"]\"]x", 7}, {"N/A}", 3},        {"12", 0},
                {"\"abc", 0},        {"[1,2", 0},        {"\"a\\\"", 0},
                {"{\"a\":\"}\"", 0}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        size_t n = strlen(rows[i].text);
        const uint8_t *p = padded(rows[i].text, n, '}');
        for (unsigned v = 0; sv_json_scan_at(v); v++) {
            for (size_t cut = 0; cut <= n; cut++) {
                CONTEXT("%s in pieces at %zu", rows[i].text, cut);
                struct sv_json_skip s = {0};
                const uint8_t *q = sv_json_skip(&s, sv_json_scan_at(v), p, p + cut);
                if (!q)
                    q = sv_json_skip(&s, sv_json_scan_at(v), p + cut, p + n);
                CHECK_UINT_EQ(q ? q - p : 0, rows[i].len);
            }
        }
    }
}

TEST(tells_valid_json)
{
    static const char *const good[] = {"1",
                                       " -0.5e+3 ",
                                       "\"a\\u00e9\\n\"",
                                       "null",
                                       "{}",
                                       "[]",
                                       "[1, [2, {\"a\": {}}], \"\"]",
                                       "{\"a\":1,\"b\":[true,false]}"};
    static const char *const bad[] = {
        "",          " ",        "[1,]", "{\"a\":1,}", "{\"a\"}",   "{a:1}",    "[1 2]",
        "01",        "1.",       ".5",   "+1",         "NaN",       "\"a",      "\"\\x\"",
        "\"\\u12\"", "[1]]",     "[1",   "{\"a\":}",   "tru",       "\"\x01\"", "1 2",
        "{]",        "\"\xff\"", "[}",   "{\"a\":1]",  "{\"a\" 1}", "[,1]"};
    for (size_t i = 0; i < TEST_COUNT(good); i++) {
        CONTEXT("%s", good[i]);
        CHECK(sv_json_valid(padded(good[i], strlen(good[i]), '}'), strlen(good[i])));
    }
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        CONTEXT("%s", bad[i]);
        CHECK(!sv_json_valid(padded(bad[i], strlen(bad[i]), '}'), strlen(bad[i])));
    }
    uint8_t deep[600 + SV_JSON_PAD];
    memset(deep, '[', 300);
    memset(deep + 300, ']', 300);
    CHECK(!sv_json_valid(deep, 600));
    CHECK(sv_json_valid(deep + 100, 400));
}

TEST(resolves_escapes)
{
    static const struct {
        const char *in, *out;
        unsigned oddities;
    } rows[] = {{"plain", "plain", 0},
                {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 0},
                {"\\u0041\\u00e9\\u20ac", "A\xc3\xa9\xe2\x82\xac", 0},
                {"\\ud83d\\ude00!", "\xf0\x9f\x98\x80!", 0},
                {"\\ud83d!", "\xef\xbf\xbd!", SV_JSON_LONE_SURROGATE},
                {"\\ude00", "\xef\xbf\xbd", SV_JSON_LONE_SURROGATE},
                {"\\ud83d\\u0041",
                 "\xef\xbf\xbd"
                 "A",
                 SV_JSON_LONE_SURROGATE},
                {"\\x41", "\\x41", SV_JSON_BAD_ESCAPE},
                {"\\u12", "\\u12", SV_JSON_BAD_ESCAPE},
                {"end\\", "end\\", SV_JSON_BAD_ESCAPE},
                {"a\nb", "a\nb", SV_JSON_CONTROL},
                {"a\xff", "a\xff", SV_JSON_BAD_UTF8}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char out[64] = {0};
        unsigned oddities = 0;
        size_t len = strlen(rows[i].in);
        size_t n = sv_json_unescape(padded(rows[i].in, len, 'u'), len, out, &oddities);
        CONTEXT("%s", rows[i].in);
        CHECK_UINT_EQ(n, strlen(rows[i].out));
        CHECK_STR_EQ(out, rows[i].out);
        CHECK_UINT_EQ(oddities, rows[i].oddities);
    }
}

TEST(reads_numbers_exactly)
{
    static const struct {
        const char *text;
        int shift;
        int64_t value;
        enum sv_json_exactness exactness;
        bool is_integer, is_odd;
    } rows[] = {{"0", 3, 0, SV_JSON_EXACT, true, false},
                {"-0", 3, 0, SV_JSON_EXACT, true, false},
                {"1", 3, 1000, SV_JSON_EXACT, true, false},
                {"1712195495519689.047", 3, 1712195495519689047, SV_JSON_EXACT, false, false},
                {"-1712195495519689.047", 3, -1712195495519689047, SV_JSON_EXACT, false, false},
                {"9223372036854775.807", 3, INT64_MAX, SV_JSON_EXACT, false, false},
                {"9223372036854775.808", 3, 0, SV_JSON_OVERFLOW, false, false},
                {"-9223372036854775.808", 3, INT64_MIN, SV_JSON_EXACT, false, false},
                {"9007199254740993", 0, 9007199254740993, SV_JSON_EXACT, true, false},
                {"9223372036854775807", 0, INT64_MAX, SV_JSON_EXACT, true, false},
                {"9223372036854775808", 0, 0, SV_JSON_OVERFLOW, true, false},
                {"18446744073709551616", 0, 0, SV_JSON_OVERFLOW, true, false},
                {"123456789012345678901234567890", 0, 0, SV_JSON_OVERFLOW, true, false},
                {"1e3", 3, 1000000, SV_JSON_EXACT, false, false},
                {"1.5E+2", 0, 150, SV_JSON_EXACT, false, false},
                {"1500e-3", 3, 1500, SV_JSON_EXACT, false, false},
                {"1.6612034625987e+15", 3, 1661203462598700000, SV_JSON_EXACT, false, false},
                {"0.0005", 3, 0, SV_JSON_ROUNDED, false, false}, /* ties to even */
                {"0.0015", 3, 2, SV_JSON_ROUNDED, false, false},
                {"0.0025", 3, 2, SV_JSON_ROUNDED, false, false},
                {"0.00250000000000000000000001", 3, 3, SV_JSON_ROUNDED, false, false},
                {"-0.0015", 3, -2, SV_JSON_ROUNDED, false, false},
                {"0.0014999999999999999999999999999", 3, 1, SV_JSON_ROUNDED, false, false},
                {"1234567890123456.7895", 3, 1234567890123456790, SV_JSON_ROUNDED, false, false},
                {"1234567890123456.7885", 3, 1234567890123456788, SV_JSON_ROUNDED, false, false},
                {"1234567890123456.78850", 3, 1234567890123456788, SV_JSON_ROUNDED, false, false},
                {"1234567890123456.78851", 3, 1234567890123456789, SV_JSON_ROUNDED, false, false},
                {"2345678901234567.7885", 3, 2345678901234567788, SV_JSON_ROUNDED, false, false},
                {"1.000000", 3, 1000, SV_JSON_EXACT, false, false},
                {"1.000000000000000000000000000000", 3, 1000, SV_JSON_EXACT, false, false},
                {"1e-30", 3, 0, SV_JSON_ROUNDED, false, false},
                {"1e30", 0, 0, SV_JSON_OVERFLOW, false, false},
                {"1e999999999999", 0, 0, SV_JSON_OVERFLOW, false, false},
                {"0e999999999999", 0, 0, SV_JSON_EXACT, false, false},
                {"007", 0, 7, SV_JSON_EXACT, true, true},
                {"+5", 0, 5, SV_JSON_EXACT, true, true},
                {".75", 2, 75, SV_JSON_EXACT, false, true},
                {"246.", 0, 246, SV_JSON_EXACT, false, true}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        const uint8_t *p = padded(rows[i].text, len, '7'); /* digits in the pad must not count */
        struct sv_json_number n;
        int64_t v = -77;
        CONTEXT("%s", rows[i].text);
        CHECK(sv_json_number(p, p + len, &n) == p + len);
        CHECK_INT_EQ(sv_json_number_int(&n, rows[i].shift, &v), rows[i].exactness);
        CHECK_INT_EQ(v, rows[i].value);
        CHECK_INT_EQ(n.is_integer, rows[i].is_integer);
        CHECK_INT_EQ(n.is_odd, rows[i].is_odd);
    }
    static const char *const bad[] = {"", "-", "+", ".", "e5", "1e", "1.5e+", "-.", "x", "-x"};
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        struct sv_json_number n;
        const uint8_t *p = padded(bad[i], strlen(bad[i]), '7');
        CONTEXT("%s", bad[i]);
        CHECK(sv_json_number(p, p + strlen(bad[i]), &n) == NULL);
    }
}

TEST(reads_large_integers_as_unsigned_digits)
{
    struct sv_json_number n;
    const uint8_t *p = padded("18446744073709551615,", 21, '7');
    CHECK(sv_json_number(p, p + 21, &n) == p + 20);
    CHECK(n.digits == UINT64_MAX && n.exp10 == 0 && n.cut == 0);
}

TEST(reads_the_nearest_double)
{
    static const struct {
        const char *text;
        double value;
    } rows[] = {{"0.1", 0.1},
                {"814.2150101419878", 814.2150101419878},
                {"0.004901960784313725", 0.004901960784313725},
                {"-1e-5", -1e-5},
                {"1.7976931348623157e308", 1.7976931348623157e308},
                {"5e-324", 5e-324},
                {"9007199254740993.0", 9007199254740992.0},
                {"123456789012345678901234567890", 123456789012345678901234567890.0},
                {"1e22", 1e22},
                {"1e23", 1e23},
                {"0", 0}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        const uint8_t *p = padded(rows[i].text, len, '7');
        struct sv_json_number n;
        CONTEXT("%s", rows[i].text);
        REQUIRE(sv_json_number(p, p + len, &n));
        double d = sv_json_number_double(&n, p, len);
        CHECK(d >= rows[i].value && d <= rows[i].value);
    }
    struct sv_json_number n;
    const uint8_t *p = padded("1e999", 5, '7');
    REQUIRE(sv_json_number(p, p + 5, &n));
    CHECK(isinf(sv_json_number_double(&n, p, 5)));
    static uint8_t many[3000 + SV_JSON_PAD];
    memset(many, '1', 3000);
    many[1] = '.';
    memcpy(many + 2996, "e-20", 4);
    REQUIRE(sv_json_number(many, many + 3000, &n));
    double d = sv_json_number_double(&n, many, 3000);
    CHECK(d > 1.11e-20 && d < 1.12e-20);
}

TEST(reads_eight_digits_at_once)
{
    for (unsigned n = 0; n <= 8; n++) {
        char text[9] = "98765432";
        text[n] = n < 8 ? '/' : 0; /* the byte before 0 */
        unsigned count;
        uint32_t expected = 0;
        for (unsigned i = 0; i < n; i++)
            expected = expected * 10 + (unsigned)(text[i] - '0');
        CONTEXT("%u digits", n);
        CHECK_UINT_EQ(sv_json_digits8(padded(text, 8, '\xff'), &count), expected);
        CHECK_UINT_EQ(count, n);
        text[n < 8 ? n : 7] = ':'; /* the byte after 9 */
        sv_json_digits8(padded(text, 8, '\xff'), &count);
        CHECK_UINT_EQ(count, n < 8 ? n : 7);
    }
}

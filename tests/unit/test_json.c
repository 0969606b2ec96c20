/* base/json: whatever goes in, valid JSON comes out. */
#include "core/base/json.h"
#include "core/base/json_scan.h"
#include "core/base/utf8.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>

TEST(escapes)
{
    static const struct {
        const char *in;
        size_t len;
        const char *out;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x01\x0b\x1f\x7f", 5, "\"\\u0000\\u0001\\u000b\\u001f\\u007f\""},
        {"0123456789abcde\x7f", 16, "\"0123456789abcde\\u007f\""},
        {"01234567\x7f", 9, "\"01234567\\u007f\""},
        {"01\x7f"
         "34567",
         8, "\"01\\u007f34567\""},
        {"\xc2\x9b\xe2\x80\xae\xe2\x81\xa9\xe2\x80\xa8", 11, "\"\\u009b\\u202e\\u2069\\u2028\""},
        {"grüße €😀", 15, "\"grüße €😀\""},
        {"\xff", 1, "\"\\\\xff\""},
        {"a\xc3", 2, "\"a\\\\xc3\""},                     /* cut character */
        {"\xc0\x80", 2, "\"\\\\xc0\\\\x80\""},            /* overlong */
        {"\xed\xa0\x80", 3, "\"\\\\xed\\\\xa0\\\\x80\""}, /* surrogate */
        {"0123456789abcdef", 16, "\"0123456789abcdef\""},
        {"0123456789abcdef0123456789abcde\"", 32, "\"0123456789abcdef0123456789abcde\\\"\""},
        {"0123456789abcde\n0", 17, "\"0123456789abcde\\n0\""},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        sv_buf_init(&b, SIZE_MAX);
        CONTEXT("row %zu", i);
        sv_json_escape(&b, rows[i].in, rows[i].len);
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].out);
        sv_buf_fini(&b);
    }
}

/* Any bytes, at any length, from a block that ends where the text ends. */
TEST(any_bytes_give_valid_json)
{
    uint64_t x = 1;
    for (unsigned turn = 0; turn < 20000; turn++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t len = (size_t)(x >> 58);
        unsigned style = x >> 40 & 3;
        char *text = malloc(len + 1);
        REQUIRE(text != NULL);
        for (size_t i = 0; i < len; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            text[i] = (char)(style == 0 ? 'a' + (x >> 60) : x >> 56);
        }
        struct sv_buf b;
        sv_buf_init(&b, SIZE_MAX);
        sv_json_escape(&b, text, len);
        size_t n = b.len;
        sv_buf_reserve(&b, SV_JSON_PAD);
        if (!CHECK(sv_json_valid(b.data, n)))
            return;
        char back[256];
        unsigned odd = 0;
        size_t got = sv_json_unescape(b.data + 1, n - 2, back, &odd);
        if (sv_utf8_valid(text, len) == len)
            CHECK(got == len && memcmp(back, text, len) == 0);
        sv_buf_fini(&b);
        free(text);
    }
}

TEST(documents)
{
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, SIZE_MAX);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "list");
    sv_json_begin(&j, '[');
    sv_json_i64(&j, INT64_MIN);
    sv_json_u64(&j, UINT64_MAX);
    sv_json_double(&j, 0.1);
    sv_json_double(&j, 3);
    sv_json_double(&j, (double)NAN);
    sv_json_double(&j, HUGE_VAL);
    sv_json_double(&j, -HUGE_VAL);
    sv_json_us3(&j, -1234567);
    sv_json_hex(&j, 0);
    sv_json_hex(&j, UINT64_MAX);
    sv_json_bool(&j, true);
    sv_json_bool(&j, false);
    sv_json_null(&j);
    sv_json_end(&j);
    sv_json_lit(&j, "empty");
    sv_json_begin(&j, '{');
    sv_json_end(&j);
    sv_json_line(&j);
    sv_json_lit(&j, "raw");
    sv_json_raw(&j, "[1]", 3);
    sv_json_members(&j, "", 0);
    sv_json_members(&j, "\"a\":1,\"b\":2", 11);
    sv_json_key(&j, "t\"", 2);
    sv_json_text(&j, "x", 1);
    sv_json_line(&j);
    sv_json_end(&j);
    CHECK_STR_EQ(
        sv_buf_cstr(&b),
        "{\"list\":[-9223372036854775808,18446744073709551615,0.1,3.0,\"NaN\",\"Infinity\","
        "\"-Infinity\",-1234.567,\"0x0\",\"0xffffffffffffffff\",true,false,null],"
        "\"empty\":{},\n\"raw\":[1],\"a\":1,\"b\":2,\"t\\\"\":\"x\"\n}");
    sv_buf_fini(&b);
}

TEST(too_deep_becomes_null)
{
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, SIZE_MAX);
    sv_json_init(&j, &b);
    for (unsigned i = 0; i < SV_JSON_DEPTH_MAX + 3; i++) {
        sv_json_begin(&j, '{');
        sv_json_key(&j, "k", 1);
    }
    sv_json_i64(&j, 1);
    for (unsigned i = 0; i < SV_JSON_DEPTH_MAX + 3; i++)
        sv_json_end(&j);
    size_t n = b.len;
    sv_buf_reserve(&b, SV_JSON_PAD);
    CHECK(sv_json_valid(b.data, n));
    CHECK_UINT_EQ(n, SV_JSON_DEPTH_MAX * 6 + 4); /* {"k": … } and one null */
    sv_buf_fini(&b);
}

TEST(a_full_buffer_is_no_trouble)
{
    struct sv_buf b;
    struct sv_json j;
    for (size_t limit = 0; limit < 35; limit++) {
        sv_buf_init(&b, limit);
        sv_json_init(&j, &b);
        sv_json_begin(&j, '[');
        sv_json_text(&j, "0123456789\n\xff\"0123456789", 23);
        sv_json_double(&j, 1.5);
        sv_json_end(&j);
        CHECK(b.failed && b.len <= limit);
        sv_buf_fini(&b);
    }
}

/* Metadata of a file is written as the JSON that it was: what acts in it keeps its meaning. */
TEST(raw_json_does_not_act)
{
    struct sv_buf b;
    struct sv_json j;
    const char *raw = "{\r\n \"a\x7f\xc2\x9b\xe2\x80\xae\": \"\xc3\xa9\"}";
    sv_buf_init(&b, SIZE_MAX);
    sv_json_init(&j, &b);
    sv_json_raw(&j, raw, strlen(raw));
    CHECK_STR_EQ(sv_buf_cstr(&b), "{ \n \"a\\u007f\\u009b\\u202e\": \"\xc3\xa9\"}");
    sv_buf_fini(&b);
}

/* What has no place in UTF-8 can be read off the result, and the rest stays. */
TEST(bytes_that_are_no_utf8_are_escaped_alike)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"gr\xc3\xbc\xc3\x9f \\x41", "gr\xc3\xbc\xc3\x9f \\x41"},
        {"0123456\xff", "0123456\\xff"},
        {"\xff"
         "0123456789",
         "\\xff0123456789"},
        {"01234567\xc3", "01234567\\xc3"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
    };
    for (size_t i = 0; i < TEST_COUNT(cases); i++) {
        struct sv_buf b;
        size_t len = strlen(cases[i].text);
        sv_buf_init(&b, 1000);
        sv_buf_utf8(&b, cases[i].text, len);
        CHECK_STR_EQ(sv_buf_cstr(&b), cases[i].want);
        CHECK_UINT_EQ(sv_utf8_escaped(cases[i].text, len), strlen(cases[i].want));
        CHECK(sv_utf8_valid(sv_buf_cstr(&b), b.len) == b.len);
        bool is_ascii = true;
        for (size_t k = 0; k < len; k++)
            is_ascii = is_ascii && (uint8_t)cases[i].text[k] < 0x80;
        CHECK(sv_is_ascii(cases[i].text, len) == is_ascii);
        sv_buf_fini(&b);
    }
}

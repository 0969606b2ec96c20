/* Text for people: nothing that acts on a terminal comes out of it. */
#include "core/base/err.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"
#include "tests/harness/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *text, *shown;
} rows[] = {
    {"", ""},
    {"plain ~ text", "plain ~ text"},
    {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
    {"\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"},
    {"\x7f", "\\x7f"},
    {"\xc2\x9b"
     "2J",
     "\\u009b2J"},
    {"\xc2\xa0", "\xc2\xa0"}, /* no-break space: a character like others */
    {"\x9b"
     "2J",
     "\\x9b2J"}, /* no UTF-8 */
    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"x\xe2\x80\xae"
     "cod.exe",
     "x\\u202ecod.exe"},
    {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad", "\\u202a\\u202b\\u202c\\u202d"},
    {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9", "\\u2066\\u2067\\u2068\\u2069"},
    {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
    {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c"},
    {"\xc3", "\\xc3"},                   /* cut */
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
    {"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
    {"C:\\new \\x1b", "C:\\new \\x1b"},  /* a backslash is a character like others */
};

TEST(what_acts_is_shown_and_the_rest_kept)
{
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_buf b;
        char array[200];
        sv_buf_init(&b, 1000);
        sv_buf_printable(&b, rows[i].text, strlen(rows[i].text));
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].shown);
        CHECK_UINT_EQ(sv_printable(array, sizeof array, rows[i].text), strlen(rows[i].shown));
        CHECK_STR_EQ(array, rows[i].shown);
        sv_buf_fini(&b);
    }
}

TEST(a_second_time_changes_nothing)
{
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char once[200], twice[200];
        sv_printable(once, sizeof once, rows[i].text);
        sv_printable(twice, sizeof twice, once);
        CHECK_STR_EQ(twice, once);
    }
}

TEST(zero_bytes_are_shown)
{
    struct sv_buf b;
    sv_buf_init(&b, 100);
    sv_buf_printable(&b, "a\0b", 3);
    CHECK_STR_EQ(sv_buf_cstr(&b), "a\\x00b");
    sv_buf_fini(&b);
}

/* Every text of two bytes, and every character: what comes out is valid UTF-8 without controls. */
TEST(no_control_comes_out)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        char text[8], shown[64];
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = sv_utf8_encode(text, c);
        struct sv_buf b;
        uint8_t bytes[64];
        b = (struct sv_buf){.data = bytes, .cap = sizeof bytes, .limit = sizeof bytes};
        sv_buf_printable(&b, text, n);
        memcpy(shown, b.data, b.len);
        bool is_kept = b.len == n && memcmp(shown, text, n) == 0;
        bool is_bad = c < 0x20 || (c >= 0x7f && c < 0xa0);
        if (!CHECK(!(is_kept && is_bad)) || !CHECK(sv_utf8_valid(shown, b.len) == b.len))
            return;
    }
}

TEST(a_small_array_is_cut_at_a_character)
{
    char out[6];
    CHECK_UINT_EQ(sv_printable(out, sizeof out, "ab\x1b"), 2);
    CHECK_STR_EQ(out, "ab");
    CHECK_UINT_EQ(sv_printable(out, sizeof out, "abc\xe2\x82\xac"), 3);
    CHECK_STR_EQ(out, "abc");
    CHECK_UINT_EQ(sv_printable(out, 1, "abc"), 0);
    CHECK_STR_EQ(out, "");
}

#define CHECK_FORMAT(expected, ...)               \
    do {                                          \
        struct sv_buf b;                          \
        sv_buf_init(&b, 4096);                    \
        sv_buf_printable_format(&b, __VA_ARGS__); \
        CHECK_STR_EQ(sv_buf_cstr(&b), expected);  \
        sv_buf_fini(&b);                          \
    } while (0)

TEST(formats_keep_their_own_text_and_escape_what_they_bring)
{
    CHECK_FORMAT("\033[1ma\\nb\033[0m\n", "\033[1m%s\033[0m\n", "a\nb");
    CHECK_FORMAT("[\\x1b  ]", "[%-6s]", "\x1b");
    CHECK_FORMAT("[  \\x1b]", "[%6s]", "\x1b");
    CHECK_FORMAT("[  \xc3\xa9]", "[%3s]", "\xc3\xa9");
    CHECK_FORMAT("[abc]", "[%.3s]", "abcdef");
    CHECK_FORMAT("[ab   ]", "[%-*.*s]", 5, 2, "abcdef");
    CHECK_FORMAT("[ab]", "[%.*s]", 2, "abcdef");
    CHECK_FORMAT("-3 4294967295 7 -9 18446744073709551615 3 %",
                 "%d %u %zu %" PRId64 " %" PRIu64 " %ld %%", -3, UINT32_MAX, (size_t)7, (int64_t)-9,
                 UINT64_MAX, 3L);
    CHECK_FORMAT("  1.50 +2.5 0x1f 00ff 1e+20 x\\x07", "%6.2f %+.1f %#x %04x %g %c%c", 1.5, 2.5,
                 31u, 255u, 1e20, 'x', '\a');
    CHECK_FORMAT("-5 65535 12", "%hd %hu %lld", (short)-5, (unsigned short)65535, 12LL);
}

TEST(errors_are_one_printable_line)
{
    struct sv_err err;
    sv_err_clear(&err);
    sv_err_set(&err, SV_EINPUT, 7, "'%s' is no trace", "a\n\x1b[2J\xe2\x80\xae");
    CHECK_STR_EQ(err.msg, "'a\\n\\x1b[2J\\u202e' is no trace");
}

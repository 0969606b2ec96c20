/* Fields of CSV: quoted, not run by spreadsheets, printable, and the same text when they are read
 * back. */
#include "core/base/csv_text.h"
#include "core/base/printable.h"
#include "formats/csv_line.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

TEST(fields)
{
    static const struct {
        const char *text, *field;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"a,b", "\"a,b\""},
        {"a;b", "\"a;b\""},
        {"a\"b", "\"a\"\"b\""},
        {"a\nb", "\"a\nb\""},
        {"a\tb", "\"a\tb\""},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"=1+1", "'=1+1"},
        {"=A1,B1", "\"'=A1,B1\""},
        {"+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"},
        {"-2+3", "'-2+3"},
        {"@SUM(1)", "'@SUM(1)"},
        {"\t=1", "\"'\t=1\""},
        {"\xef\xbc\x9d"
         "1",
         "'\xef\xbc\x9d"
         "1"},
        {"-", "'-"},
        {"-5", "-5"},
        {"+5", "+5"},
        {"-1.5e-3", "-1.5e-3"},
        {"-.5", "-.5"},
        {"-1e", "'-1e"},
        {"-1.2.3", "'-1.2.3"},
        {"1-1", "1-1"},
        {"'quoted'", "'quoted'"},
        {"'=1", "''=1"},
        {"'-5", "''-5"},
        {"a\x1b[0m", "a\\x1b[0m"},
        {"\r=1", "\\x0d=1"},
        {"C:\\dir", "C:\\dir"},
        {"C:\\dir\a", "C:\\\\dir\\x07"},
        {"\\x41", "\\\\x41"},
        {"x\xe2\x80\xae", "x\\xe2\\x80\\xae"},
        {"\xff", "\\xff"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        CONTEXT("row %zu", i);
        sv_buf_init(&b, 1000);
        sv_buf_csv(&b, rows[i].text, strlen(rows[i].text));
        CHECK_STR_EQ(sv_buf_cstr(&b), rows[i].field);
        sv_buf_fini(&b);
    }
}

static void check_round_trip(const char *text, size_t len)
{
    struct sv_buf b;
    struct sv_csv_line line = {0};
    sv_buf_init(&b, 1000);
    sv_buf_str(&b, "1,");
    sv_buf_csv_line(&b, text, len);
    sv_buf_str(&b, ",2");
    size_t n = sv_printable_run((const char *)b.data, b.len);
    while (n < b.len && b.data[n] == '\t')
        n += 1 + sv_printable_run((const char *)b.data + n + 1, b.len - n - 1);
    CHECK_UINT_EQ(n, b.len); /* nothing that acts, no line break */
    if (CHECK(sv_csv_split(&line, sv_buf_cstr(&b), b.len)) && CHECK_UINT_EQ(line.n, 3)) {
        struct sv_text back = sv_csv_own_text(&line, 1);
        if (CHECK_UINT_EQ(back.len, len))
            CHECK_MEM_EQ(back.bytes, text, len);
        CHECK(line.fields[1].len == 0 || !strchr("=+-@\t", line.fields[1].bytes[0]) ||
              !strpbrk(sv_buf_cstr(&b), "=@"));
    }
    sv_csv_fini(&line);
    sv_buf_fini(&b);
}

/* All texts of up to four signs that the rules speak of. */
TEST(every_text_comes_back)
{
    static const char *const signs[] = {"'",    "=", "-",  "\t",          "\n",   "\r",
                                        "\\",   "x", "41", "\"",          "\x1b", "\xff",
                                        "\xe2", ",", "5",  "\xef\xbc\x9d"};
    enum { N = TEST_COUNT(signs) };
    for (size_t i = 0; i < (size_t)N * N * N * N; i++) {
        char text[32] = "";
        size_t at = 0;
        for (size_t rest = i + 1; rest > 0; rest /= N) {
            const char *sign = signs[(rest - 1) % N];
            memcpy(text + at, sign, strlen(sign));
            at += strlen(sign);
        }
        CONTEXT("text %zu", i);
        check_round_trip(text, at);
    }
}

TEST(a_field_without_marks_is_not_changed)
{
    CHECK(!sv_csv_text_is_changed("C:\\dir", 6));
    CHECK(!sv_csv_text_is_changed("'quoted'", 8));
    CHECK(sv_csv_text_is_changed("'=1", 3));
    CHECK(sv_csv_text_is_changed("\\x1b", 4));
}

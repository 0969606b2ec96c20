/* Globs: rows of pattern, text, answer; and that hostile ones stay cheap. */
#include "core/base/glob.h"
#include "core/base/globs.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

TEST(patterns)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"abc", "abcd", false},
        {"abcd", "abc", false},
        {"*", "", true},
        {"*", "any/thing", true},
        {"a*", "a", true},
        {"a*c", "abbbc", true},
        {"a*c", "abbb", false},
        {"*a*b*", "xxaxxbxx", true},
        {"*a*b*", "xxbxxaxx", false},
        {"*abc", "ababc", true},
        {"**", "x", true},
        {"?", "x", true},
        {"?", "", false},
        {"?", "\xc3\xa9", true}, /* one character, two bytes */
        {"??", "\xc3\xa9", false},
        {"??", "\xc3\x28", true}, /* two broken bytes */
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[a-c]x", "bx", true},
        {"[!a-c]", "b", false},
        {"[!a-c]", "z", true},
        {"[^a-c]", "z", true},
        {"[]]", "]", true},
        {"[]a]", "a", true},
        {"[a-]", "-", true},
        {"[\\]]", "]", true},
        {"[\\]]", "\\", false},
        {"[\xc3\xa0-\xc3\xbf]", "\xc3\xa9", true},
        {"[\xc3\xa0-\xc3\xbf]", "z", false},
        {"[abc", "[abc", true}, /* no end: itself */
        {"[abc", "a", false},
        {"[", "[", true},
        {"[!", "[!", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\[a]", "[a]", true},
        {"a\\", "a\\", true},
        {"aten::*", "aten::mm", true},
        {"*[0-9]", "stream 7", true},
        {"python*/*loader*", "python 12/dataloader 3", true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("\"%s\" on \"%s\"", rows[i].pattern, rows[i].text);
        CHECK(sv_glob_match(rows[i].pattern, rows[i].text, strlen(rows[i].text)) ==
              rows[i].matches);
    }
}

TEST(text_may_hold_nul)
{
    CHECK(sv_glob_match("a?b", "a\0b", 3));
    CHECK(!sv_glob_match("a", "a\0b", 3));
}

TEST(hostile_patterns_end)
{
    enum { N = 20000 };
    char *text = malloc(N + 1);
    memset(text, 'a', N);
    text[N] = '\0';
    CHECK(!sv_glob_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text, N));
    CHECK(!sv_glob_match("*[a*[a*[a*[a*[a*b", text, N));
    free(text);
}

TEST(lists_of_globs)
{
    static const struct {
        const char *globs, *text;
        bool is_match;
    } rows[] = {
        {"*", "nn", true},        {"", "nn", true},          {"nn", "nn", true},
        {"nn", "nnx", false},     {"io,nn", "nn", true},     {"io,nn.*", "nn.fw", true},
        {"io,nn.*", "nn", false}, {"-nn", "nn", false},      {"-nn", "io", true},
        {"-nn,*", "nn", false},   {"*,-nn", "nn", false},    {"*,-nn", "nnx", true},
        {"io,-nn*", "x", false},  {"?o", "io", true},        {"?o", "o", false},
        {"a*b*c", "aXbYc", true}, {"a*b*c", "aXcYb", false}, {"a[b]", "a[b]", true},
        {"a[b]", "ab", false},    {",", "", true},           {"**", "", true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("'%s' of '%s'", rows[i].text, rows[i].globs);
        CHECK(sv_globs_match(rows[i].globs, rows[i].text, sv_globs_plain) == rows[i].is_match);
    }
}

/* YAML for configurations: what is read, what is refused and with which line, and the table that
 * checks it. */
#include "cli/yaml.h"
#include "core/base/buf.h"
#include "core/base/mem.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

/* The tree as one line: maps {k:v}, lists [a], texts <t>, quoted ones "t", nothing ~. */
static void show(struct sv_buf *b, const struct sv_yaml_node *node) // NOLINT(misc-no-recursion)
{
    static const char open[] = {'~', '<', '{', '['}, close[] = {0, '>', '}', ']'};
    if (node->key)
        sv_buf_printf(b, "%s:", node->key);
    sv_buf_byte(b, node->is_quoted ? '"' : (uint8_t)open[node->kind]);
    sv_buf_escaped(b, node->text, strlen(node->text));
    for (const struct sv_yaml_node *m = node->first; m; m = m->next) {
        if (m != node->first)
            sv_buf_byte(b, ' ');
        show(b, m);
    }
    if (close[node->kind])
        sv_buf_byte(b, node->is_quoted ? '"' : (uint8_t)close[node->kind]);
}

static void check_text(const char *text, const char *expected)
{
    struct sv_yaml *y;
    struct sv_err err = {0};
    struct sv_buf b;
    CONTEXT("%s", text);
    sv_buf_init(&b, 1 << 20);
    if (sv_yaml_parse(text, strlen(text), "f", &y, &err) < 0) {
        CHECK_STR_EQ(err.msg, expected);
        sv_buf_fini(&b);
        return;
    }
    show(&b, sv_yaml_root(y));
    CHECK_STR_EQ(sv_buf_cstr(&b), expected);
    sv_yaml_free(y);
    sv_buf_fini(&b);
}

TEST(yaml_reads)
{
    static const struct {
        const char *text, *tree;
    } rows[] = {
        {"", "~"},
        {"# only a comment\n\n", "~"},
        {"---\n", "~"},
        {"a: 1", "{a:<1>}"},
        {"\xef\xbb\xbf"
         "a: 1\r\nb: 2\r\n",
         "{a:<1> b:<2>}"},
        {"--- # begins\na: 1\n", "{a:<1>}"},
        {"a: x y  # why\nb: c#d\n", "{a:<x y> b:<c#d>}"},
        {"url: http://host:80/x\n", "{url:<http://host:80/x>}"},
        {"a:\nb: ~\nc: null\nd: ''\n", "{a:~ b:~ c:~ d:\"\"}"},
        {"a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", "{a:{b:{c:<1>} d:<2>} e:<3>}"},
        {"a:\n  - 1\n  - 2\nb: 3\n", "{a:[<1> <2>] b:<3>}"},
        {"a:\n- 1\n- 2\nb: 3\n", "{a:[<1> <2>] b:<3>}"},
        {"- a: 1\n  b: 2\n- c: 3\n", "[{a:<1> b:<2>} {c:<3>}]"},
        {"- - 1\n  - 2\n- - 3\n", "[[<1> <2>] [<3>]]"},
        {"-\n  a: 1\n-\n- x\n", "[{a:<1>} ~ <x>]"},
        {"- a:\n  - 1\n  b: 2\n", "[{a:[<1>] b:<2>}]"},
        {"a: [1, 'x, y', \"z\"]\n", "{a:[<1> \"x, y\" \"z\"]}"},
        {"a: [1,\n  2, # two\n# three\n  3,\n]\nb: 1\n", "{a:[<1> <2> <3>] b:<1>}"},
        {"a: {b: 1, \"c\":[2], d: }\n", "{a:{b:<1> c:[<2>] d:~}}"},
        {"[a, [b], {}]", "[<a> [<b>] {}]"},
        {"a: 'it''s'\n", "{a:\"it's\"}"},
        {"a: \"\\t\\\"\\\\\\x41\\u00e9\\U0001F600\"\n",
         "{a:\"\\t\"\\\\A\xc3\xa9\xf0\x9f\x98\x80\"}"},
        {"'a b': 1\n\"c\": 2\n", "{a b:<1> c:<2>}"},
        {"a b: -1\n", "{a b:<-1>}"},
        {"command: [python3, train.py, --epochs, 3]\n",
         "{command:[<python3> <train.py> <--epochs> <3>]}"},
        {"just a text\n", "<just a text>"},
        {"\"a\": b # \"c\": d\n", "{a:<b>}"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_text(rows[i].text, rows[i].tree);
}

TEST(yaml_refuses_with_the_line)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"a: 1\na: 2\n", "f:2: 'a' is given twice (first in line 1)"},
        {"a: {b: 1, b: 2}\n", "f:1: 'b' is given twice (first in line 1)"},
        {"a:\n\tb: 1\n", "f:2: a tab in the indentation; use spaces"},
        {"a: b: c\n", "f:1: unexpected text after the value (texts with ': ' or after quotes need "
                      "quotes around all of it)"},
        {"a: 'b' c\n", "f:1: unexpected text after the value (texts with ': ' or after quotes "
                       "need quotes around all of it)"},
        {"a: 1\n  b: 2\n", "f:2: indented more than the lines before it (texts over several lines "
                           "are not supported; use quotes on one line)"},
        {"a:\n    b: 1\n  c: 2\n", "f:3: indented more than the lines before it (texts over "
                                   "several lines are not supported; use quotes on one line)"},
        {"  a: 1\nb: 2\n", "f:2: indented less than the lines before it, or of another kind"},
        {"- 1\nb: 2\n", "f:2: indented less than the lines before it, or of another kind"},
        {"a: 1\n- b\n", "f:2: expected 'key: value'"},
        {"a: 1\nb\n", "f:2: expected 'key: value'"},
        {"a: |\n  x\n", "f:1: texts over several lines are not supported; use quotes and \\n"},
        {"a: &x 1\n",
         "f:1: anchors and aliases are not supported; texts that start like one need quotes"},
        {"a: *x\n",
         "f:1: anchors and aliases are not supported; texts that start like one need quotes"},
        {"a: !!int 1\n", "f:1: tags are not supported; texts that start like one need quotes"},
        {"<<: 1\n", "f:1: merging (<<) and empty keys are not supported"},
        {"? a\n", "f:1: a list or key cannot begin here"},
        {"%YAML 1.2\n---\n", "f:1: directives (%) are not supported"},
        {"a: 1\n---\nb: 1\n", "f:2: expected 'key: value'"},
        {"[a]\n---\nb: 1\n", "f:2: only one document per file"},
        {"a: \"x\n", "f:1: a quote is not closed on its line"},
        {"a: \"\\q\"\n", "f:1: unknown escape after '\\' in a text in double quotes"},
        {"a: \"\\x00\"\n", "f:1: unknown escape after '\\' in a text in double quotes"},
        {"a: \"\\ud800\"\n", "f:1: unknown escape after '\\' in a text in double quotes"},
        {"a:\n b: [1,\n 2\n", "f:2: a bracket is not closed"},
        {"a: [1 2]]\n", "f:1: unexpected text after the value (texts with ': ' or after quotes "
                        "need quotes around all of it)"},
        {"a: [b: 1]\n", "f:1: expected ',' or ']'"},
        {"a: {b}\n", "f:1: expected 'key: value' between { and }"},
        {"a: {b: 1 [\n", "f:1: expected ',' or '}'"},
        {"a: [,]\n", "f:1: unexpected bracket or comma; texts that start with one need quotes"},
        {"a: - b\n", "f:1: a list or key cannot begin here"},
        {"a: 1\nb: \x01\n", "f:2: a control character"},
        {"a: 1\nb: \xff\n", "f:2: not valid UTF-8"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_text(rows[i].text, rows[i].message);
}

TEST(yaml_refuses_a_nul)
{
    struct sv_yaml *y;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_yaml_parse("a: \0", 4, "f", &y, &err), SV_EFORMAT);
    CHECK_STR_EQ(err.msg, "f:1: a control character");
}

/* What many times the same text becomes: refused, and soon. */
static void check_many(const char *unit, size_t times, const char *message)
{
    size_t len = strlen(unit);
    char *text = sv_alloc(len * times + 1);
    struct sv_yaml *y;
    struct sv_err err = {0};
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * len, unit, len);
    CONTEXT("%s", unit);
    CHECK_INT_EQ(sv_yaml_parse(text, len * times, "f", &y, &err), SV_EFORMAT);
    CHECK_STR_EQ(err.msg, message);
    free(text);
}

TEST(yaml_is_bounded)
{
    check_many("[", 100000, "f:1: nested too deeply");
    check_many("- ", 100000, "f:1: nested too deeply");
    check_many("{a: ", 100000, "f:1: nested too deeply");
    check_many("- x\n", 200000, "f:100000: too many values");
    check_many("#", SV_YAML_BYTES_MAX + 1, "f:1: too large for a configuration (1 MiB)");
    struct sv_buf b;
    sv_buf_init(&b, 1 << 20);
    for (int i = 0; i < 600; i++)
        sv_buf_printf(&b, "key%d: 1\n", i);
    check_many(sv_buf_cstr(&b), 1, "f:501: too many keys in one map");
    sv_buf_fini(&b);
}

/* ---- by table ---- */

struct part {
    int64_t port;
};

struct values {
    bool flag;
    int64_t count;
    double ratio;
    const char *name, *mode;
    struct sv_yaml_texts words;
    struct part part;
    const struct sv_yaml_node *any;
};

#define AT(member) offsetof(struct values, member)

static const struct sv_yaml_field part_fields[] = {
    {"port", SV_YAML_INT, 1, 65535, "", offsetof(struct part, port), NULL, NULL, true}, {0}};
static const struct sv_yaml_field fields[] = {
    {"flag", SV_YAML_BOOL, 0, 0, "", AT(flag), NULL, NULL, false},
    {"count", SV_YAML_INT, 0, 9e18, "", AT(count), NULL, NULL, false},
    {"ratio", SV_YAML_NUMBER, 0, 1, "", AT(ratio), NULL, NULL, false},
    {"name", SV_YAML_TEXT, 0, 0, "", AT(name), NULL, NULL, true},
    {"mode", SV_YAML_TEXT, 0, 0, "", AT(mode), "fixed adaptive", NULL, false},
    {"words", SV_YAML_TEXTS, 0, 0, "", AT(words), NULL, NULL, false},
    {"part", SV_YAML_PART, 0, 0, "", AT(part), NULL, part_fields, false},
    {"any", SV_YAML_ANY, 0, 0, "", AT(any), NULL, NULL, false},
    {0}};

TEST(yaml_table_reads)
{
    static const char text[] = "flag: yes\ncount: 12\nratio: 5e-1\nname: \"12\"\nmode: fixed\n"
                               "words: [a, b]\npart: {port: 80}\nany: [{x: 1}]\n";
    struct values v = {0};
    struct sv_yaml *y;
    struct sv_err err = {0};
    REQUIRE(sv_yaml_parse(text, strlen(text), "f", &y, &err) == 0);
    CHECK_INT_EQ(sv_yaml_read(y, sv_yaml_root(y), fields, &v, &err), 0);
    CHECK(v.flag);
    CHECK_INT_EQ(v.count, 12);
    CHECK_DOUBLE_EQ(v.ratio, 0.5);
    CHECK_STR_EQ(v.name, "12");
    CHECK_STR_EQ(v.mode, "fixed");
    CHECK_UINT_EQ(v.words.n, 2);
    CHECK_STR_EQ(v.words.items[1], "b");
    CHECK_INT_EQ(v.part.port, 80);
    CHECK(v.any && v.any->kind == SV_YAML_LIST && v.any->n == 1);
    CHECK_INT_EQ(sv_yaml_fail(y, v.any, &err, "no %s", "way"), SV_EUSAGE);
    CHECK_STR_EQ(err.msg, "f:8: no way");
    sv_yaml_free(y);
}

TEST(yaml_table_keeps_what_is_not_given)
{
    struct values v = {.count = 7, .words = {NULL, 0}};
    struct sv_yaml *y;
    struct sv_err err = {0};
    REQUIRE(sv_yaml_parse("name: x\nwords: one\n", 19, "f", &y, &err) == 0);
    CHECK_INT_EQ(sv_yaml_read(y, sv_yaml_root(y), fields, &v, &err), 0);
    CHECK_INT_EQ(v.count, 7);
    CHECK_UINT_EQ(v.words.n, 1);
    sv_yaml_free(y);
}

TEST(yaml_table_refuses)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"name: x\nflg: yes\n", "f:2: unknown key 'flg'; did you mean 'flag'?"},
        {"name: x\nzzzzzzzzzz: 1\n",
         "f:2: unknown key 'zzzzzzzzzz'; known keys: flag, count, ratio, "
         "name, mode, words, part, any"},
        {"count: 1\n", "f:1: missing: name"},
        {"", "f:1: missing: name"},
        {"- a\n", "f:1: expected a map of keys ('key: value'), found a list"},
        {"flag: maybe\n", "f:1: flag: expected true or false, found maybe"},
        {"flag: 'yes'\n", "f:1: flag: expected true or false, found yes in quotes"},
        {"count: -1\n", "f:1: count: -1 is too small; at least 0"},
        {"count: 1.5\n", "f:1: count: expected a whole number, found 1.5"},
        {"count: 99999999999999999999\n",
         "f:1: count: expected a whole number, found 99999999999999999999"},
        {"count:\n", "f:1: count: expected a whole number, found nothing"},
        {"\nratio: 1.5\n", "f:2: ratio: 1.5 is not within 0 and 1"},
        {"ratio: nan\n", "f:1: ratio: expected a number, found nan"},
        {"ratio: 0x1\n", "f:1: ratio: expected a number, found 0x1"},
        {"ratio: 1e999\n", "f:1: ratio: expected a number, found 1e999"},
        {"name: [a]\n", "f:1: name: expected a text, found a list"},
        {"name: ''\n", "f:1: name: the text is empty"},
        {"mode: fixe\n", "f:1: mode: 'fixe' is none of: fixed adaptive"},
        {"words: [a, {b: 1}]\n", "f:1: words: expected a text, found a map"},
        {"part: 1\n", "f:1: part: expected a map of keys, found 1"},
        {"part:\n  prt: 1\n", "f:2: unknown key 'prt'; did you mean 'port'?"},
        {"part:\n  port: 0\n", "f:2: port: 0 is not within 1 and 65535"},
        {"name: x\npart: {}\n", "f:2: missing: port"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct values v = {0};
        struct sv_yaml *y;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].text);
        REQUIRE(sv_yaml_parse(rows[i].text, strlen(rows[i].text), "f", &y, &err) == 0);
        CHECK_INT_EQ(sv_yaml_read(y, sv_yaml_root(y), fields, &v, &err), SV_EUSAGE);
        CHECK_STR_EQ(err.msg, rows[i].message);
        sv_yaml_free(y);
    }
}

TEST(yaml_open_says_when_there_is_no_file)
{
    struct sv_yaml *y;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_yaml_open("/nonexistent.yml", &y, &err), SV_EIO);
    CHECK(strstr(err.msg, "/nonexistent.yml") != NULL);
}

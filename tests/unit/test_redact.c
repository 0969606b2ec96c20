/* What becomes of one text: paths, files of frames, SQL in several dialects. */
#include "files/redact.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

static struct sv_redact_plan plan(const char *list)
{
    struct sv_redact_plan p;
    struct sv_err err = {0};
    REQUIRE(sv_redact_parse(list, &p, &err) >= 0);
    return p;
}

/* "*" in `expected` is a token. */
static void check(const struct sv_redact_plan *p, const char *key, const char *text,
                  const char *expected)
{
    size_t len = strlen(text);
    char *new = sv_redact_text(p, key, text, len, &len);
    const char *at = new ? new : text, *end = at + (new ? len : strlen(text));
    CONTEXT("%s", text);
    for (; *expected; expected++) {
        if (*expected != '*') {
            CHECK(at < end && *at++ == *expected);
            continue;
        }
        for (int i = 0; i < SV_REDACT_TOKEN; i++)
            CHECK(at < end && strchr("abcdefghijklmnopqrstuvwxyz234567", *at++));
    }
    CHECK(at == end);
    free(new);
}

TEST(redact_files)
{
    struct sv_redact_plan p = plan("paths");
    check(&p, "path", "secret.txt", "*");
    check(&p, "path", "/srv/secret/x", "/*/*/*");
    check(&p, "", "open /srv/secret twice", "open /*/* twice");
    check(&p, "peer", "secret.sock", "*");
    check(&p, "peer", "10.0.0.7:443", "10.0.0.7:443");
    check(&p, "peer", "[::1]:443", "[::1]:443");
    check(&p, "peer", "socket:[17]", "socket:[17]");
    check(&p, "note", "no path here", "no path here");
    check(&p, "code.filepath", "secret.py", "*");
}

TEST(redact_frames)
{
    struct sv_redact_plan p = plan("paths");
    check(&p, "", "step (secret.py:41)", "step (*:41)");
    check(&p, "", "step (secret.py)", "step (*)");
    check(&p, "", "step (pkg/secret.py:41)", "step (*/*:41)");
    check(&p, "", "[libsecret.so.6+0x1f0]", "[*+0x1f0]");
    check(&p, "", "f(int) (a.c:7)", "f(int) (*:7)");
    check(&p, "", "cat f (pid 7 in pid namespace 4026532180)",
          "cat f (pid 7 in pid namespace 4026532180)");
    check(&p, "", "[unknown]", "[unknown]");
}

TEST(redact_sql)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"SELECT a FROM t1 WHERE b = 'it''s' AND c=17", "SELECT a FROM t1 WHERE b = ? AND c=?"},
        {"select a from t where n = \"secret\"", "select a from t where n = ?"},
        {"  (select 'secret')", "  (select ?)"},
        {"/* user=secret */ UPDATE t SET a = 0x1F -- secret\nWHERE b = 2.5e3",
         "  UPDATE t SET a = ?  WHERE b = ?"},
        {"INSERT INTO t VALUES ($$secret$$, $a$se$$cret$a$, $1)",
         "INSERT INTO t VALUES (?, ?, $?)"},
        {"SELECT 'it\\'s secret', 'secret'", "SELECT ?"},
        {"EXPLAIN SELECT 'x", "EXPLAIN SELECT ?"},
        {"PRAGMA key='secret'", "PRAGMA key=?"},
        {"CALL f('secret')", "CALL f(?)"},
        {"selection of 17 things", "selection of 17 things"},
        {"with", "with"},
        {"copy 4096", "copy 4096"},
        {"copy t from '/secret'", "copy t from ?"},
    };
    struct sv_redact_plan p = plan("sql");
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check(&p, "", rows[i].text, rows[i].expected);
    check(&p, "db.statement", "GET user:4711", "GET user:?");
}

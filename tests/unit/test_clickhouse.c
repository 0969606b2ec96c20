/* ClickHouse without a server: URLs, statements, answers in pieces of any size, words of failures,
 * the statements that make the tables. */
#include "clickhouse/answer.h"
#include "clickhouse/schema.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(urls)
{
    static const struct {
        const char *url, *host, *database, *cluster;
        unsigned port;
        bool is_secure;
    } good[] = {
        {"clickhouse://db1:8124/traces", "db1", "traces", "", 8124, false},
        {"clickhouse://db1/t", "db1", "t", "", 8123, false},
        {"clickhouses://db1/t", "db1", "t", "", 8443, true},
        {"clickhouse://db1/t?secure=1", "db1", "t", "", 8443, true},
        {"clickhouse://[::1]:1/t?cluster=a-b.c", "[::1]", "t", "a-b.c", 1, false},
        {"clickhouse://10.0.0.1/_T9?cluster=x&secure=1", "10.0.0.1", "_T9", "x", 8443, true},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct sv_ch_target t;
        struct sv_err err;
        sv_err_clear(&err);
        CHECK_INT_EQ(sv_ch_target_parse(good[i].url, &t, &err), 0);
        CHECK_STR_EQ(t.host, good[i].host);
        CHECK_STR_EQ(t.database, good[i].database);
        CHECK_STR_EQ(t.cluster, good[i].cluster);
        CHECK_UINT_EQ(t.port, good[i].port);
        CHECK(t.is_secure == good[i].is_secure);
    }
}

TEST(bad_urls)
{
    static const char *const bad[] = {
        "http://db1/t",
        "clickhouse://",
        "clickhouse:///t",
        "clickhouse://db1",
        "clickhouse://db1/",
        "clickhouse://db1/a.b",
        "clickhouse://db1/9a",
        "clickhouse://db1/a;DROP",
        "clickhouse://db1:0/t",
        "clickhouse://db1:65536/t",
        "clickhouse://db1:/t",
        "clickhouse://db1:99999999999999999999/t",
        "clickhouse://d b/t",
        "clickhouse://db1/t?cluster=",
        "clickhouse://db1/t?cluster=a'b",
        "clickhouse://db1/t?secure=2",
        "clickhouse://db1/t?skip_unavailable_shards=1",
        "clickhouse://db1/t#x",
        "clickhouse://me:hunter2@db1/t",
        "clickhouse://hunter2@db1/t",
        "clickhouse://db1/t?password=hunter2",
        "clickhouse://db1/t?user=hunter2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sv_ch_target t;
        struct sv_err err;
        sv_err_clear(&err);
        CHECK_INT_EQ(sv_ch_target_parse(bad[i], &t, &err), SV_EUSAGE);
        CHECK(!strstr(err.msg, "hunter2"));
        CHECK(!strstr(bad[i], "hunter2") || strstr(err.msg, "STAVE_CLICKHOUSE_PASSWORD"));
    }
}

TEST(statements)
{
    static const struct {
        const char *sql;
        size_t n;
        bool is_empty;
    } rows[] = {
        {"", 0, true},
        {"SELECT 1", 8, false},
        {"SELECT 1; SELECT 2", 9, false},
        {"SELECT ';'; x", 11, false},
        {"SELECT 'a\\';'; x", 14, false},
        {"SELECT \";\", `;`; x", 16, false},
        {" -- ;\n ; x", 8, true},
        {"/* ; */; x", 8, true},
        {"SELECT 'open; x", 15, false},
        {"/* open ;", 9, true},
        {"- ;", 3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_empty;
        CHECK_UINT_EQ(sv_ch_statement(rows[i].sql, &is_empty), rows[i].n);
        CHECK(is_empty == rows[i].is_empty);
    }
}

/* ---- answers ---- */

struct written {
    struct sv_rows_sink rows;
    struct sv_buf text;
};

static int write_head(struct sv_rows_sink *r, const char *const *names, size_t n,
                      struct sv_err *err)
{
    struct written *w = (struct written *)r;
    (void)err;
    for (size_t i = 0; i < n; i++)
        sv_buf_printf(&w->text, "[%s]", names[i]);
    return 0;
}

static int write_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                     struct sv_err *err)
{
    struct written *w = (struct written *)r;
    (void)err;
    sv_buf_byte(&w->text, '/');
    for (size_t i = 0; i < n; i++) {
        const struct sv_cell *c = &cells[i];
        sv_buf_str(&w->text, i ? "," : "");
        if (c->type == SV_CELL_INT)
            sv_buf_i64(&w->text, c->i);
        else if (c->type == SV_CELL_REAL)
            sv_buf_double(&w->text, c->d);
        else if (c->type == SV_CELL_TEXT) {
            sv_buf_byte(&w->text, '"');
            sv_buf_escaped(&w->text, c->text, c->len);
            CHECK_INT_EQ(c->text[c->len], 0);
        } else
            sv_buf_str(&w->text, "NULL");
    }
    return 0;
}

static int write_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)err;
    sv_buf_byte(&((struct written *)r)->text, '.');
    return 0;
}

/* Feeds the answer in pieces; what was written, or the code of the failure as text. free() it. */
static char *parse(const char *answer, size_t n, size_t piece)
{
    struct written w = {.rows = {write_head, write_row, write_end}};
    struct sv_ch_answer a;
    struct sv_err err;
    int code = 0;
    sv_err_clear(&err);
    sv_buf_init(&w.text, 1u << 20);
    sv_ch_answer_init(&a, &w.rows);
    for (size_t i = 0; i < n && code >= 0; i += piece)
        code = a.take.bytes(&a.take, answer + i, n - i < piece ? n - i : piece, &err);
    if (code >= 0)
        code = sv_ch_answer_end(&a, &err);
    sv_ch_answer_fini(&a);
    if (code < 0) {
        sv_buf_clear(&w.text);
        sv_buf_i64(&w.text, code);
    }
    char *text = strdup(sv_buf_cstr(&w.text));
    sv_buf_fini(&w.text);
    return text;
}

TEST(answers)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"a\nUInt8\n", "[a]."},
        {"a\tb\nInt64\tString\n-9223372036854775808\tx\\ty\\\\\\n\\0\\'\n",
         "[a][b]/-9223372036854775808,\"x\\ty\\\\\\n\\x00'."},
        {"a\nNullable(Float64)\n\\N\n0.5\nnan\n-inf\n", "[a]/NULL/0.5/nan/-inf."},
        {"a\nUInt64\n18446744073709551615\n7\n", "[a]/\"18446744073709551615/7."},
        {"a\nLowCardinality(Nullable(String))\n\\N\n\\\\N\n\n", "[a]/NULL/\"\\\\N/\"."},
        {"a\nBool\ntrue\nfalse\n", "[a]/1/0."},
        {"a\\tb\nArray(UInt8)\n[1,2]\n", "[a\tb]/\"[1,2]."},
        /* damage */
        {"a\n", "-2"},
        {"a\nUInt8\n1", "-2"},
        {"a\nUInt8\n1\t2\n", "-2"},
        {"a\tb\nUInt8\tUInt8\n1\n", "-2"},
        {"a\tb\nUInt8\n", "-2"},
        {"a\nInt64\nabc\n", "-2"},
        {"a\nInt64\n\n", "-2"},
        {"a\nInt64\n1x\n", "-2"},
        {"a\nInt64\n-9223372036854775809\n", "-2"},
        {"a\nInt64\n99999999999999999999\n", "-2"},
        {"a\nFloat64\n1.5z\n", "-2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece < 40; piece += 4) {
            char *text = parse(rows[i][0], strlen(rows[i][0]), piece);
            CHECK_STR_EQ(text, rows[i][1]);
            free(text);
        }
}

TEST(too_many_columns)
{
    char *answer = calloc(1, SV_CH_COLUMNS_MAX + 10);
    memset(answer, '\t', SV_CH_COLUMNS_MAX);
    answer[SV_CH_COLUMNS_MAX] = '\n';
    char *text = parse(answer, SV_CH_COLUMNS_MAX + 1, 1000);
    CHECK_STR_EQ(text, "-2");
    free(text);
    free(answer);
}

TEST(words)
{
    static const struct {
        const char *body, *words;
        int number;
    } rows[] = {
        {"Code: 62, e.displayText() = DB::Exception: Syntax error, e.what() = DB::Exception",
         "DB::Exception: Syntax error (code 62)", 62},
        {"Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED)\n",
         "Code: 516. DB::Exception: default: Authentication failed. (AUTHENTICATION_FAILED) ", 516},
        {"<html>\n\n no</html>", "<html> no</html>", 0},
        {"", "no reason given", 0},
    };
    char words[400];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT_EQ(sv_ch_words(rows[i].body, strlen(rows[i].body), words, sizeof words),
                     rows[i].number);
        CHECK_STR_EQ(words, rows[i].words);
    }
    char *big = malloc(100000);
    memset(big, 'x', 100000);
    sv_ch_words(big, 100000, words, sizeof words);
    CHECK(strlen(words) < sizeof words);
    free(big);
}

TEST(tables)
{
    struct sv_ch_target t = {.database = "d"};
    struct sv_buf sql;
    sv_buf_init(&sql, 1u << 20);
    for (int is_cluster = 0; is_cluster < 2; is_cluster++) {
        size_t n = 0;
        snprintf(t.cluster, sizeof t.cluster, "%s", is_cluster ? "c" : "");
        for (sv_buf_clear(&sql); sv_ch_ddl(&t, n, &sql); n++) {
            const char *text = sv_buf_cstr(&sql);
            CHECK(strstr(text, "CREATE ") == text && strstr(text, "IF NOT EXISTS"));
            CHECK(!strchr(text, '@') && !strchr(text, '#'));
            CHECK(is_cluster || !strstr(text, "Distributed"));
            sv_buf_clear(&sql);
        }
        CHECK_UINT_EQ(n, sv_ch_n_made(&t) + 1);
    }
    sv_ch_quote(&sql, "a'b\\c");
    CHECK_STR_EQ(sv_buf_cstr(&sql), "'a\\'b\\\\c'");
    sv_buf_fini(&sql);
}

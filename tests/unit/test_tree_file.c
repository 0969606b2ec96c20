/* Pages written past SQLite must be what SQLite would have written: its own check finds nothing,
 * and every entry is found through tables and indexes. Sizes around those at which a page or a
 * level is full, where the last page could be left empty. */
#include "sql/tree_file.h"
#include "tests/harness/test.h"

#ifdef SV_HAVE_SQLITE
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Texts of `len` characters that begin with their number, so that they sort by it; in an index the
 * number of the row follows. */
struct texts {
    size_t len;
    bool is_index;
};

static size_t text_record(void *ctx, uint64_t i, uint8_t *out)
{
    const struct texts *t = ctx;
    int64_t row = (int64_t)i + 1;
    unsigned type = sv_tree_int_type(row);
    size_t n = 1 + sv_tree_put_varint(out + 1, 13 + 2 * t->len);
    if (t->is_index)
        n += sv_tree_put_varint(out + n, type);
    out[0] = (uint8_t)n;
    memset(out + n, 'x', t->len);
    for (size_t k = 8; k-- > 0; i /= 10)
        out[n + k] = (uint8_t)('0' + i % 10);
    n += t->len;
    return t->is_index ? n + sv_tree_put_int(out + n, type, row) : n;
}

static char *ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    char *text = NULL;
    REQUIRE(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK);
    if (sqlite3_step(s) == SQLITE_ROW)
        text = sqlite3_mprintf("%s", sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return text;
}

static void check_answer(sqlite3 *db, const char *sql, const char *expected)
{
    char *text = ask(db, sql);
    CHECK_STR_EQ(text, expected);
    sqlite3_free(text);
}

static uint32_t root_of(sqlite3 *db, const char *name)
{
    char *sql = sqlite3_mprintf("SELECT rootpage FROM sqlite_schema WHERE name = %Q", name);
    char *text = ask(db, sql);
    uint32_t root = (uint32_t)strtoul(text, NULL, 10);
    sqlite3_free(text);
    sqlite3_free(sql);
    return root;
}

static void check_size(const char *path, uint64_t n, size_t len)
{
    struct sv_tree_file *f;
    struct sv_err err;
    sqlite3 *db;
    char expected[64];
    sv_err_clear(&err);
    unlink(path);
    CONTEXT("%llu entries of %zu characters", (unsigned long long)n, len);
    REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db,
                         "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                         "CREATE TABLE t(x TEXT); CREATE INDEX i ON t(x)",
                         NULL, NULL, NULL) == SQLITE_OK);
    uint32_t table = root_of(db, "t"), index = root_of(db, "i");
    sqlite3_close(db);
    struct texts rows = {len, false}, entries = {len, true};
    REQUIRE(sv_tree_file_open(path, &f, &err) == 0);
    CHECK(sv_tree_fill(f, table, &(struct sv_page_tree){false, n, text_record, &rows}, &err) == 0);
    CHECK(sv_tree_fill(f, index, &(struct sv_page_tree){true, n, text_record, &entries}, &err) ==
          0);
    CHECK(sv_tree_file_close(f, &err) == 0);
    REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
    check_answer(db, "PRAGMA integrity_check", "ok");
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)n);
    check_answer(db, "SELECT count(*) FROM t NOT INDEXED", expected);
    check_answer(
        db, "SELECT count(*) FROM t a JOIN t b INDEXED BY i ON b.x = a.x AND b.rowid = a.rowid",
        expected);
    sqlite3_close(db);
    unlink(path);
}

TEST(pages_are_what_sqlite_would_write)
{
    char path[] = "/tmp/stave-tree-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    /* Four entries of an index per page: three levels soon. */
    for (uint64_t n = 0; n < 130; n++)
        check_size(path, n, 960);
    for (uint64_t n = 360; n < 400; n++)
        check_size(path, n, 10);
    check_size(path, 60000, 14);
}

TEST(files_of_other_kinds_are_refused)
{
    char path[] = "/tmp/stave-tree-XXXXXX";
    struct sv_tree_file *f;
    struct sv_err err;
    sqlite3 *db;
    sv_err_clear(&err);
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    CHECK(sv_tree_file_open(path, &f, &err) == SV_ELIMIT);
    REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_exec(db, "PRAGMA auto_vacuum = FULL; CREATE TABLE t(x)", NULL, NULL, NULL);
    sqlite3_close(db);
    CHECK(sv_tree_file_open(path, &f, &err) == SV_ELIMIT);
    unlink(path);
    CHECK(sv_tree_file_open(path, &f, &err) == SV_EIO);
}
#else
TEST(pages_are_what_sqlite_would_write)
{
    SKIP("built without SQLite");
}
#endif

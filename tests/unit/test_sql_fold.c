/* Statements that are rewritten over groups of slices must answer as over a plain copy of the
 * slices in an ordinary table, which nothing is rewritten for. */
#include "core/base/mem.h"
#include "sql/fold.h"
#include "sql/sql.h"
#include "tests/harness/test.h"
#include "tests/unit/sql_world.h"

#include <stdlib.h>
#include <string.h>

/* In the statements '@' is the table slice, '#' the same with an alias behind it, '$' the table
 * thread_slice. */
static char *with_tables(const char *pattern, bool is_plain)
{
    struct sv_buf b;
    sv_buf_init(&b, 1u << 16);
    for (; *pattern; pattern++) {
        if (*pattern == '@')
            sv_buf_str(&b, is_plain ? "plain_slice AS slice" : "slice");
        else if (*pattern == '#')
            sv_buf_str(&b, is_plain ? "plain_slice" : "slice");
        else if (*pattern == '$')
            sv_buf_str(&b, is_plain ? "plain_thread_slice AS thread_slice" : "thread_slice");
        else
            sv_buf_byte(&b, (uint8_t)*pattern);
    }
    char *text = sv_strndup(sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
    return text;
}

static void check_same(struct sv_sql *q, const char *pattern, bool is_folded)
{
    char *fast = with_tables(pattern, false), *plain = with_tables(pattern, true);
    char *a = sql_text(q, fast), *b = sql_text(q, plain);
    char *rewritten = sv_sql_fold(q, fast, fast + strlen(fast));
    char *untouched = sv_sql_fold(q, plain, plain + strlen(plain));
    CONTEXT("%s -> %s", fast, rewritten ? rewritten : "(as it is)");
    CHECK_STR_EQ(a, b);
    CHECK((rewritten != NULL) == is_folded);
    CHECK(untouched == NULL);
    free(rewritten);
    free(untouched);
    free(a);
    free(b);
    free(fast);
    free(plain);
}

/* Lines that the formatter broke. NOLINTBEGIN(bugprone-suspicious-missing-comma) */
static const char *const folded[] = {
    "SELECT name, count(*), sum(dur) FROM @ GROUP BY name",
    "select NAME, COUNT(*) from @ group by NAME;",
    "SELECT count(*), count(1), count(dur), sum(dur), avg(dur), min(dur), max(dur), min(ts), "
    "max(ts) FROM @",
    "SELECT count(*), sum(dur), avg(dur), max(dur) FROM @ WHERE name = 'no slice has this'",
    "SELECT count(*) FROM @ WHERE track_id = 2 AND ts >= 2000 AND ts < 9000",
    "SELECT count(*), max(dur) FROM @ WHERE ts BETWEEN 1000 AND 4000.5 AND dur > 7.5",
    "SELECT count(*) FROM @ WHERE ts > trace_start() + 100 AND ts <= trace_end() - 1",
    "SELECT name, category, track_id, depth, count(*) FROM @ GROUP BY 1, 2, 3, 4",
    "SELECT cat, avg(dur) AS mean FROM @ GROUP BY cat ORDER BY mean DESC, cat",
    "SELECT name, sum(dur) AS dur FROM @ GROUP BY name ORDER BY dur DESC, name LIMIT 3",
    "SELECT name, sum(dur) / 1e6 ms FROM @ GROUP BY name HAVING count(*) > 2 ORDER BY name",
    "SELECT name FROM @ GROUP BY name",
    "SELECT count(DISTINCT name), count(DISTINCT slice.track_id) FROM @",
    "SELECT substr(name, 1, 1) AS letter, max(dur) FROM @ GROUP BY letter",
    "SELECT substr(name, 1, 1), max(dur) FROM @ GROUP BY substr(name, 1, 1)",
    "SELECT name, percentile(dur, 50), percentile(dur, 99.5), percentile(dur, 0) FROM @ "
    "GROUP BY name",
    "SELECT depth % 2, percentile(dur, 90) FROM @ GROUP BY 1",
    "SELECT percentile(dur, 50) FROM @ WHERE name = 'no slice has this'",
    "SELECT name, count(*) FROM @ WHERE name GLOB '*a*' OR depth = 1 GROUP BY name",
    "SELECT name, count(*) FROM @ WHERE name IN ('a', 'b') AND name NOT LIKE 'x%' GROUP BY name",
    "SELECT s.name, sum(s.dur), max(name) FROM # s GROUP BY s.name",
    "SELECT t.name, t.tid, count(*), sum(s.dur) FROM # AS s JOIN thread_track k ON "
    "s.track_id = k.id JOIN thread t USING (utid) GROUP BY t.utid",
    "SELECT t.utid, s.name, percentile(s.dur, 50) FROM thread t JOIN thread_track k USING (utid) "
    "JOIN # s ON s.track_id = k.id GROUP BY t.utid, s.name",
    "SELECT k.kind, count(*), max(s.ts) FROM # s, track k WHERE s.track_id = k.id GROUP BY k.kind",
    "SELECT p.upid, count(*) FROM # s LEFT JOIN process_track k ON s.track_id = k.id LEFT JOIN "
    "process p ON p.upid = k.upid GROUP BY p.upid",
    "SELECT thread_name, name, count(*), sum(dur), avg(dur) FROM $ GROUP BY thread_name, name",
    "SELECT utid, thread_name, tid, max(dur) FROM $ WHERE depth < 2 AND dur >= 5 GROUP BY utid",
    "SELECT count(*), percentile(dur, 75) FROM $",
};
/* NOLINTEND(bugprone-suspicious-missing-comma) */

/* Right answers, too, but slice by slice: something differs within a group, or might. */
static const char *const unfolded[] = {
    "SELECT name, sum(dur + 1) FROM @ GROUP BY name",
    "SELECT sum(ts - ts) FROM @",
    "SELECT count(*) FROM @ WHERE dur > 5 OR depth = 1",
    "SELECT count(*) FROM @ WHERE depth = 1 OR depth = 2 AND dur > 5",
    "SELECT count(*) FROM @ WHERE CASE WHEN depth = 1 AND dur > 5 AND depth < 3 THEN 1 END",
    "SELECT count(*) FROM @ WHERE NOT dur > 5",
    "SELECT count(*) FROM @ WHERE dur NOT BETWEEN 5 AND 50",
    "SELECT count(*) FROM @ WHERE dur > '5'",
    "SELECT count(*) FROM @ WHERE dur > depth",
    "SELECT count(*) FROM @ WHERE parent_id IS NULL",
    "SELECT name, count(*) FROM @ WHERE id < 10 GROUP BY name",
    "SELECT dur, count(*) FROM @ GROUP BY dur",
    "SELECT name, count(*) FROM @ GROUP BY name COLLATE NOCASE HAVING count(*) < 0",
    "SELECT name, count(*) FILTER (WHERE depth = 0) FROM @ GROUP BY name",
    "SELECT name, count(parent_id), sum(DISTINCT dur), total(dur) FROM @ GROUP BY name",
    "SELECT name, sum(depth) FROM @ GROUP BY name",
    "SELECT name, count(name), group_concat(DISTINCT depth) IS NULL FROM @ GROUP BY name",
    "SELECT a.name, count(*) FROM # a JOIN # b ON b.parent_id = a.id GROUP BY a.name",
    "SELECT count(*) FROM track k LEFT JOIN # s ON s.track_id = k.id",
    "SELECT count(*) FROM (SELECT name FROM @)",
    "SELECT count(*) FROM @ UNION ALL SELECT 1",
    "SELECT name, \"dur\" > 0, count(*) FROM @ GROUP BY 1, 2",
    "SELECT DISTINCT name FROM @ ORDER BY name",
    "SELECT name FROM @ ORDER BY id LIMIT 3",
    "SELECT max(dur) OVER () FROM @ LIMIT 1",
    "SELECT k.id, count(*) FROM # s JOIN track k ON k.id = s.track_id AND s.dur > 5 GROUP BY k.id",
    "SELECT percentile(dur / 2, 50) FROM @",
    "SELECT id FROM @ WHERE dur > 3 GROUP BY id",
    /* LIMIT is handed down. */
    "SELECT id, dur, name FROM @ ORDER BY dur DESC LIMIT 7",
    "SELECT id, dur FROM @ ORDER BY dur LIMIT 5 OFFSET 30",
    "SELECT id, dur FROM @ ORDER BY dur DESC LIMIT 400 OFFSET 2",
    "SELECT id, dur FROM @ ORDER BY dur LIMIT -1",
    "SELECT id, dur FROM @ ORDER BY dur LIMIT 0",
    "SELECT id, dur FROM @ ORDER BY dur DESC LIMIT 9223372036854775807 OFFSET 3",
    "SELECT id, dur FROM @ WHERE depth = 1 ORDER BY dur DESC LIMIT 3",
    "SELECT id, dur FROM @ WHERE track_id = 2 ORDER BY dur DESC LIMIT 3",
    "SELECT DISTINCT name FROM @ ORDER BY name DESC",
    "SELECT DISTINCT name, depth FROM @ ORDER BY name, depth",
};

static void check_world(const struct gen_options *options)
{
    struct sql_world w;
    sql_world_make(&w, options);
    free(sql_text(w.q, "CREATE TABLE plain_slice AS SELECT * FROM slice; CREATE TABLE "
                       "plain_thread_slice AS SELECT * FROM thread_slice"));
    for (size_t i = 0; i < TEST_COUNT(folded); i++)
        check_same(w.q, folded[i], true);
    for (size_t i = 0; i < TEST_COUNT(unfolded); i++)
        check_same(w.q, unfolded[i], false);
    /* The second time the index of names is there. */
    free(sql_text(w.q, "SELECT count(*) FROM slice s WHERE s.name = 'a' AND s.id > 0"));
    check_same(w.q, "SELECT track_id, count(*), sum(dur) FROM @ WHERE name = 'a' GROUP BY track_id",
               true);
    check_same(
        w.q,
        "SELECT track_id, percentile(dur, 50) FROM @ WHERE name = 'a' AND ts > 2000 GROUP BY 1",
        true);
    sql_world_fini(&w);
}

TEST(groups_answer_as_slices_do)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        check_world(&(struct gen_options){
            .seed = seed, .n = 300 * seed, .shape = SV_HAS_EDGES, .extras = GEN_ALL});
    check_world(&(struct gen_options){
        .seed = 9, .n = 900, .shape = SV_HAS_SLICES | SV_IN_NO_ORDER, .extras = GEN_ALL});
    check_world(&(struct gen_options){.seed = 5, .n = 0, .shape = SV_HAS_EDGES});
}

/* Who gives a name of Stave's another meaning gets that. */
TEST(other_meanings_of_names_are_kept)
{
    struct sql_world w;
    sql_world_make(&w, &(struct gen_options){.seed = 3, .n = 50, .shape = SV_HAS_EDGES});
    char *text = sql_text(w.q, "CREATE TABLE slice(name, dur); INSERT INTO slice VALUES ('x', 7); "
                               "SELECT name, sum(dur) FROM slice GROUP BY name");
    CHECK_STR_EQ(text, "x|7\n\n");
    free(text);
    text = sql_text(w.q, "DROP TABLE slice; CREATE PERFETTO FUNCTION max(a LONG) RETURNS LONG AS "
                         "SELECT $a * 0; SELECT max(max(dur)) FROM slice WHERE id = 1");
    CHECK_STR_EQ(text, "0\n\n");
    free(text);
    sql_world_fini(&w);
}

/* The table and the functions behind it have names that anyone can write. */
TEST(groups_can_be_asked_directly)
{
    struct sql_world w;
    struct text_rows rows;
    struct sv_err err;
    sv_err_clear(&err);
    sql_world_make(&w, &(struct gen_options){.seed = 3, .n = 200, .shape = SV_HAS_EDGES});
    char *text = sql_text(w.q, "SELECT stave_percentile(77, 50), stave_percentile(-1, 50), "
                               "stave_mean(9223372036854775807, 1), stave_count(-1)");
    CHECK_STR_EQ(text, "NULL|NULL|1.0842021724855044e-19|-1\n\n");
    free(text);
    text = sql_text(w.q, "SELECT stave_percentile(stave_dur_values, 900) FROM stave_slice_groups");
    CHECK(strstr(text, "not within 0") != NULL);
    free(text);
    text = sql_text(w.q, "SELECT dur FROM stave_slice_groups");
    CHECK(strstr(text, "has no such value") != NULL);
    free(text);
    /* A run that ends early leaves nothing that refers to freed groups. */
    text_rows_init(&rows);
    rows.fail_at = 2;
    CHECK(sv_sql_run(w.q, "SELECT name, stave_dur_values FROM stave_slice_groups", &rows.rows,
                     &err) == SV_EIO);
    sv_buf_fini(&rows.text);
    sql_world_fini(&w);
}

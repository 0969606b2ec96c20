/* SQL over the store: whatever is pushed down must give the rows that a full scan with the same
 * conditions gives. */
#include "sql/sql.h"

#include "core/base/mem.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"
#include "tests/unit/sql_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_ANSWER(q, sql, expected)  \
    do {                                \
        char *text_ = sql_text(q, sql); \
        CONTEXT("%s", sql);             \
        CHECK_STR_EQ(text_, expected);  \
        free(text_);                    \
    } while (0)

/* `sql` with a condition that the table can use, and the same behind a unary plus, which SQLite
 * hides from it. */
static void check_law(struct sv_sql *q, const char *before, const char *condition,
                      const char *hidden, const char *after)
{
    struct sv_buf a, b;
    sv_buf_init(&a, 1u << 16);
    sv_buf_init(&b, 1u << 16);
    sv_buf_printf(&a, "%s %s %s", before, condition, after);
    sv_buf_printf(&b, "%s %s %s", before, hidden, after);
    char *with = sql_text(q, sv_buf_cstr(&a)), *without = sql_text(q, sv_buf_cstr(&b));
    CONTEXT("%s", sv_buf_cstr(&a));
    CHECK_STR_EQ(with, without);
    free(with);
    free(without);
    sv_buf_fini(&a);
    sv_buf_fini(&b);
}

static const struct {
    const char *condition, *hidden;
} laws[] = {
    {"id = 17", "+id = 17"},
    {"id = 17.0", "+id = 17.0"},
    {"id = 17.5", "+id = 17.5"},
    {"id = -1", "+id = -1"},
    {"id = 99999999", "+id = 99999999"},
    {"slice_id IN (3, 1, 400, 2, NULL)", "+slice_id IN (3, 1, 400, 2, NULL)"},
    {"track_id = 2", "+track_id = 2"},
    {"track_id = 4000", "+track_id = 4000"},
    {"track_id IN (1, 2, 3)", "+track_id IN (1, 2, 3)"},
    {"track_id = 2 AND ts >= 2000 AND ts < 9000", "+track_id = 2 AND +ts >= 2000 AND +ts < 9000"},
    {"ts > 3000", "+ts > 3000"},
    {"ts >= 3000.5 AND ts <= 3400.25", "+ts >= 3000.5 AND +ts <= 3400.25"},
    {"ts BETWEEN 100 AND 90", "+ts BETWEEN 100 AND 90"},
    {"ts = (SELECT ts FROM slice WHERE id = 9)", "+ts = (SELECT ts FROM slice WHERE id = 9)"},
    {"ts < 1e30", "+ts < 1e30"},
    {"ts > -1e30", "+ts > -1e30"},
    {"ts > 'x'", "+ts > 'x'"},
    {"name = (SELECT name FROM slice WHERE id = 30)",
     "+name = (SELECT name FROM slice WHERE id = 30)"},
    {"name = 'nothing has this name'", "+name = 'nothing has this name'"},
    {"name = 'A' COLLATE NOCASE", "+name = 'A' COLLATE NOCASE"},
    {"name IS NULL", "+name IS NULL"},
    {"name GLOB '*a*'", "+name GLOB '*a*'"},
    {"name LIKE '%E%'", "+name LIKE '%E%'"},
    {"name GLOB '*' AND ts > 4000", "+name GLOB '*' AND +ts > 4000"},
    {"name = (SELECT name FROM slice WHERE id = 30) AND track_id = 2 AND ts > 10",
     "+name = (SELECT name FROM slice WHERE id = 30) AND +track_id = 2 AND +ts > 10"},
    {"parent_id = (SELECT parent_id FROM slice WHERE parent_id IS NOT NULL LIMIT 1)",
     "+parent_id = (SELECT parent_id FROM slice WHERE parent_id IS NOT NULL LIMIT 1)"},
    {"parent_id IS NULL", "+parent_id IS NULL"},
    {"ts = NULL", "+ts = NULL"},
    {"dur = 0", "+dur = 0"},
    {"dur > 40", "+dur > 40"},
    {"dur BETWEEN 3.5 AND 90 AND track_id = 2", "+dur BETWEEN 3.5 AND 90 AND +track_id = 2"},
    {"dur >= 10 AND ts > 3000", "+dur >= 10 AND +ts > 3000"},
    {"category = (SELECT max(category) FROM slice)",
     "+category = (SELECT max(category) FROM slice)"},
    {"category = 'nothing'", "+category = 'nothing'"},
    {"category IN (SELECT category FROM slice WHERE id < 40) AND cat != 'x'",
     "+category IN (SELECT category FROM slice WHERE id < 40) AND +cat != 'x'"},
    {"cat IN ('a', 'b', NULL, 7) AND category IN ('b', 'c')",
     "+cat IN ('a', 'b', NULL, 7) AND +category IN ('b', 'c')"},
    {"category IN (SELECT max(category) FROM slice) AND dur < 900 AND ts < 9000",
     "+category IN (SELECT max(category) FROM slice) AND +dur < 900 AND +ts < 9000"},
    {"name = NULL", "+name = NULL"},
};

static void check_laws(const struct gen_options *options)
{
    static const char *const orders[] = {"ORDER BY id",
                                         "ORDER BY ts, id",
                                         "ORDER BY id DESC",
                                         "ORDER BY ts DESC, id DESC",
                                         "ORDER BY track_id, ts, id",
                                         "ORDER BY track_id DESC, ts DESC, id DESC",
                                         "ORDER BY name, id",
                                         "ORDER BY dur, id LIMIT 7"};
    struct sql_world w;
    sql_world_make(&w, options);
    for (size_t i = 0; i < TEST_COUNT(laws); i++)
        for (size_t k = 0; k < TEST_COUNT(orders); k++)
            check_law(w.q, "SELECT * FROM slice WHERE", laws[i].condition, laws[i].hidden,
                      orders[k]);
    for (size_t k = 0; k < TEST_COUNT(orders); k++)
        check_law(w.q, "SELECT id FROM slice", "", "WHERE +id >= 0", orders[k]);
    sql_world_fini(&w);
}

TEST(slices_that_nest_obey_conditions)
{
    check_laws(
        &(struct gen_options){.seed = 1, .n = 900, .shape = SV_HAS_EDGES, .extras = GEN_ALL});
}

TEST(slices_that_overlap_obey_conditions)
{
    check_laws(&(struct gen_options){
        .seed = 2, .n = 900, .shape = SV_HAS_SLICES | SV_IN_NO_ORDER, .extras = GEN_ALL});
}

TEST(groups_by_name_stream_and_agree)
{
    struct sql_world w;
    sql_world_make(
        &w, &(struct gen_options){.seed = 3, .n = 2000, .shape = SV_HAS_NESTED, .extras = GEN_ALL});
    static const char *const tails[] = {"GROUP BY name ORDER BY name",
                                        "GROUP BY name ORDER BY name DESC",
                                        "GROUP BY category ORDER BY 1"};
    for (size_t i = 0; i < TEST_COUNT(tails); i++)
        check_law(w.q, "SELECT name, count(*), sum(dur), min(ts), max(id) FROM slice", "",
                  "WHERE +id >= 0", tails[i]);
    check_law(w.q, "SELECT DISTINCT name FROM slice", "", "WHERE +id >= 0", "ORDER BY name");
    check_law(w.q, "SELECT count(*) FROM slice", "", "WHERE +id >= 0", "");
    sql_world_fini(&w);
}

TEST(counters_flows_and_joins_obey_conditions)
{
    static const struct {
        const char *before, *condition, *hidden, *after;
    } rows[] = {
        {"SELECT * FROM counter WHERE", "ts > 3000", "+ts > 3000", "ORDER BY ts, id"},
        {"SELECT ts, value FROM counter WHERE", "track_id = 8 AND ts < 5000",
         "+track_id = 8 AND +ts < 5000", "ORDER BY ts, id"},
        {"SELECT ts FROM counter WHERE", "id = 3", "+id = 3", ""},
        {"SELECT ts FROM counter", "", "WHERE +id >= 0", "ORDER BY ts DESC"},
        {"SELECT f.* FROM slice s JOIN flow f ON", "f.slice_out = s.id", "+f.slice_out = +s.id",
         "ORDER BY f.id"},
        {"SELECT f.* FROM slice s JOIN flow f ON", "f.slice_in = s.id", "+f.slice_in = +s.id",
         "ORDER BY f.id"},
        {"SELECT a.key, s.id FROM slice s JOIN args a ON", "a.arg_set_id = s.arg_set_id",
         "+a.arg_set_id = +s.arg_set_id", "ORDER BY s.id, a.id"},
        {"SELECT c.id, p.id FROM slice p JOIN slice c ON", "c.parent_id = p.id",
         "+c.parent_id = +p.id", "ORDER BY c.id"},
        {"SELECT s.id, t.utid FROM slice s JOIN thread_track k ON", "s.track_id = k.id",
         "+s.track_id = +k.id", "JOIN thread t USING (utid) ORDER BY s.id"},
        {"SELECT * FROM track WHERE", "owner_upid = 1", "+owner_upid = 1", "ORDER BY id"},
        {"SELECT * FROM process WHERE", "upid = 1", "+upid = 1", ""},
    };
    struct sql_world w;
    sql_world_make(
        &w, &(struct gen_options){.seed = 4, .n = 400, .shape = SV_HAS_EDGES, .extras = GEN_ALL});
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        check_law(w.q, rows[i].before, rows[i].condition, rows[i].hidden, rows[i].after);
    sql_world_fini(&w);
}

/* ---- a trace made by hand ---- */

static void add_slice(struct sv_sink *s, sv_track k, int64_t ts, int64_t dur, sv_str name,
                      const struct sv_arg *args, size_t n)
{
    struct sv_event e = {.ts_ns = ts,
                         .dur_ns = dur,
                         .track = k,
                         .name = name,
                         .kind = SV_SLICE,
                         .n_args = (uint16_t)n,
                         .args = args};
    struct sv_err err;
    sv_err_clear(&err);
    REQUIRE(s->write(s, &e, 1, &err) == 0);
}

/* main: step [100, 200) with load [110, 130) and run [140, 190), idle later; worker: job [120, 180)
 * by flow 7 from load. */
static void make_small(struct sql_world *w)
{
    if (!sv_sql_is_built_in())
        SKIP("built without SQLite");
    struct sv_dict *d = w->g.dict = sv_dict_new();
    sv_track main = sv_dict_thread(d, 0, 10, 10), worker = sv_dict_thread(d, 0, 10, 11);
    d->tracks[main].name = sv_dict_cstr(d, "main");
    d->tracks[sv_dict_process(d, 0, 10)].name = sv_dict_cstr(d, "train");
    sv_str a = sv_dict_cstr(d, "a"), b = sv_dict_cstr(d, "b"), dotted = sv_dict_cstr(d, "x.y");
    struct sv_arg out[] = {{.type = SV_ARG_FLOW, .u = 7}};
    struct sv_arg args[] = {{.key = a, .type = SV_ARG_DICT, .size = 4},
                            {.key = b, .type = SV_ARG_ARRAY, .size = 2},
                            {.type = SV_ARG_INT, .i = 5},
                            {.type = SV_ARG_TEXT, .size = 2, .text = "hi"},
                            {.key = b, .type = SV_ARG_BOOL, .i = 1},
                            {.key = dotted, .type = SV_ARG_DOUBLE, .d = 0.5},
                            {.type = SV_ARG_CORRELATION, .u = 99}};
    struct sv_err err;
    sv_err_clear(&err);
    sv_report_init(&w->report);
    w->t = sv_trace_new(d, &w->report, 0);
    struct sv_sink *s = sv_trace_sink(w->t);
    add_slice(s, main, 100, 100, sv_dict_cstr(d, "step"), args, 7);
    add_slice(s, main, 110, 20, sv_dict_cstr(d, "load"), out, 1);
    add_slice(s, main, 140, 50, sv_dict_cstr(d, "run"), NULL, 0);
    add_slice(s, main, 250, SV_UNFINISHED, sv_dict_cstr(d, "idle"), NULL, 0);
    add_slice(s, worker, 120, 60, sv_dict_cstr(d, "job"), out, 1);
    REQUIRE(s->close(s, false, &err) == 0);
    REQUIRE(sv_sql_open(w->t, &(struct sv_sql_options){.report = &w->report}, &w->q, &err) == 0);
}

static void small_fini(struct sql_world *w)
{
    sv_sql_close(w->q);
    sv_trace_free(w->t);
    sv_report_fini(&w->report);
    sv_dict_free(w->g.dict);
}

TEST(a_small_trace_answers_as_computed_by_hand)
{
    static const struct {
        const char *sql, *expected;
    } rows[] = {
        {"SELECT id, ts, dur, name, depth, parent_id FROM slice",
         "0|100|100|step|0|NULL\n1|110|20|load|1|0\n2|120|60|job|0|NULL\n3|140|50|run|1|0\n"
         "4|250|-1|idle|0|NULL\n\n"},
        {"SELECT name, self_dur, kind FROM slice WHERE depth = 0",
         "step|30|slice\njob|60|slice\nidle|0|slice\n\n"},
        {"SELECT flat_key, key, int_value, string_value, real_value, value_type, display_value "
         "FROM args "
         "JOIN slice USING (arg_set_id)",
         "debug.a.b|debug.a.b[0]|5|NULL|NULL|int|5\ndebug.a.b|debug.a.b[1]|NULL|hi|NULL|string|hi\n"
         "debug.a.b|debug.a.b|1|NULL|NULL|bool|true\ndebug.x_y|debug.x_y|NULL|NULL|0.5|real|0.5\n"
         "correlation_id|correlation_id|99|NULL|NULL|uint|99\n\n"},
        {"SELECT extract_arg(arg_set_id, 'debug.a.b[1]'), extract_arg(arg_set_id, 'args.x.y'), "
         "extract_arg(arg_set_id, 'a.b'), extract_arg(arg_set_id, 'no'), arg_list(arg_set_id, "
         "'a.b') "
         "FROM slice WHERE id = 0",
         "hi|0.5|1|NULL|[5, hi]\n\n"},
        {"SELECT extract_arg(123456, 'x'), extract_arg(NULL, 'x'), extract_arg(-5, 'x'), "
         "extract_arg(1 << 40, 'x'), extract_arg('a', 'x')",
         "NULL|NULL|NULL|NULL|NULL\n\n"},
        {"SELECT slice_out, slice_in, trace_id FROM flow", "1|2|7\n\n"},
        {"SELECT name FROM ancestor_slice(3); SELECT name FROM descendant_slice(0)",
         "step\n\nload\nrun\n\n"},
        {"SELECT slice_in FROM following_flow(0); SELECT slice_out FROM preceding_flow(2); "
         "SELECT count(*) FROM directly_connected_flow(0)",
         "2\n\n1\n\n0\n\n"},
        {"SELECT name FROM slice_during(130, 5); SELECT name FROM slice_during(130, 5, 1)",
         "step\njob\n\nstep\n\n"},
        {"SELECT t.name, p.name, p.pid, t.tid, t.is_main_thread FROM thread t JOIN process p USING "
         "(upid)",
         "swapper|NULL|0|0|1\nmain|train|10|10|1\nNULL|train|10|11|0\n\n"},
        {"SELECT s.name, thread_name, tid FROM thread_slice s WHERE id = 3", "run|main|10\n\n"},
        {"SELECT start_ts, end_ts FROM trace_bounds", "100|250\n\n"},
        {"SELECT percentile(dur, 50), percentile(dur, 0), percentile(dur, 100) FROM slice WHERE "
         "dur >= 0",
         "55.0|20.0|100.0\n\n"},
        {"SELECT log2_bucket(100), log2_bucket(0), time_str(1500000), ts_str(1250), overlap(0, 10, "
         "5, 20)",
         "64|0|1.500 ms|0.000001150|5\n\n"},
        {"INCLUDE PERFETTO MODULE slices.with_context; CREATE PERFETTO TABLE x(n STRING) AS SELECT "
         "name AS n "
         "FROM slice WHERE dur > 55; SELECT * FROM x",
         "step\njob\n\n"},
        {"SELECT name, value FROM stats WHERE value > 0",
         "stave_unfinished_slices|1\nbegin without end|1\n\n"},
        {"-- nothing\n ; ;", ""},
    };
    struct sql_world w;
    make_small(&w);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        CHECK_ANSWER(w.q, rows[i].sql, rows[i].expected);
    small_fini(&w);
}

TEST(what_perfetto_adds_is_there)
{
    static const struct {
        const char *sql, *expected;
    } rows[] = {
        {"SELECT utid, tid, upid, is_main_thread, is_idle FROM thread; SELECT upid, pid FROM "
         "process; SELECT utid, id FROM thread_track ORDER BY id",
         "0|0|0|1|1\n1|10|1|1|0\n2|11|1|0|0\n\n0|0\n1|10\n\n1|1\n2|3\n\n"},
        {"SELECT name FROM _slice_ancestor_and_self(3); SELECT name FROM "
         "_slice_descendant_and_self(0)",
         "run\nstep\n\nstep\nload\nrun\n\n"},
        {"SELECT slice_is_ancestor(0, 3), slice_is_ancestor(3, 0), slice_is_ancestor(0, 2), "
         "slice_is_ancestor(0, 99)",
         "1|0|0|NULL\n\n"},
        {"SELECT time_from_ms(2), time_to_us(5999), time_from_s(NULL), "
         "time_to_days(86400000000000)",
         "2000000|5|NULL|1\n\n"},
        {"SELECT id, self_dur FROM slice_self_dur WHERE id < 2", "0|30\n1|20\n\n"},
        {"SELECT count(*) FROM sched; SELECT count(*) FROM thread_state; SELECT count(*) FROM "
         "state; SELECT count(*) FROM cpu; SELECT count(*) FROM cpu_counter_track",
         "0\n\n0\n\n0\n\n0\n\n0\n\n"},
    };
    struct sql_world w;
    make_small(&w);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        CHECK_ANSWER(w.q, rows[i].sql, rows[i].expected);
    small_fini(&w);
}

TEST(statements_of_perfetto_are_understood_or_refused)
{
    static const struct {
        const char *sql, *expected;
    } rows[] = {
        {"CREATE PERFETTO FUNCTION twice(x LONG) RETURNS LONG AS SELECT $x * 2; "
         "SELECT twice(21), twice(NULL), twice(twice(1))",
         "42|NULL|4\n\n"},
        {"CREATE OR REPLACE PERFETTO FUNCTION twice(x LONG -- a; comment\n, y JOINID(slice.id)) "
         "RETURNS STRING AS SELECT $x || ';' || $y; SELECT twice(1, 2)",
         "1;2\n\n"},
        {"create perfetto function name_of(i LONG) returns STRING as select name from slice where "
         "id = $i; select id, name_of(id) from slice where id < 2; select name_of(99)",
         "0|step\n1|load\n\nNULL\n\n"},
        {"CREATE PERFETTO FUNCTION again(x LONG) RETURNS LONG AS SELECT again($x); SELECT again(1)",
         "line 1: a function is called too deeply"},
        {"CREATE PERFETTO FUNCTION bad(x LONG) RETURNS LONG AS SELECT nope; SELECT bad(1)",
         "line 1: no such column: nope"},
        {"CREATE PERFETTO FUNCTION t(x LONG) RETURNS TABLE(y LONG) AS SELECT 1",
         "t: functions that return tables are not supported: use a view"},
        {"CREATE PERFETTO FUNCTION t(x LONG) SELECT 1",
         "CREATE PERFETTO FUNCTION needs name(argument TYPE, …) RETURNS TYPE AS SELECT …"},
        {"CREATE PERFETTO FUNCTION t(", "CREATE PERFETTO FUNCTION needs name(argument TYPE, …) "
                                        "RETURNS TYPE AS SELECT …"},
        {"CREATE PERFETTO MACRO m(x Expr) RETURNS Expr AS $x",
         "macros are not supported: write the statement out"},
        {"SELECT m!(1)", "line 1: unrecognized token: \"!\", at '!(1)' (macros are not "
                         "supported: write the statement out)"},
        {"CREATE PERFETTO VIEW v(a LONG, /* b; */ b STRING) AS SELECT 1 AS a, ';' AS b; "
         "CREATE PERFETTO INDEX i ON v(a); SELECT * FROM v; DROP PERFETTO VIEW v; SELECT * FROM v",
         "line 1: no such table: v"},
        {"INCLUDE PERFETTO MODULE time.conversion; SELECT time_to_ns(3)", "3\n\n"},
        {"/* one */ INCLUDE PERFETTO MODULE android.startup; SELECT * FROM android_startups",
         "line 1: no such table: android_startups (included modules are not available in "
         "Stave, see docs/sql.md)"},
    };
    struct sql_world w;
    make_small(&w);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        CHECK_ANSWER(w.q, rows[i].sql, rows[i].expected);
    small_fini(&w);
}

/* Every slice below the one before it: what walks down or along must not look at all pairs. */
TEST(deep_nests_are_walked_in_one_pass)
{
    enum { DEEP = 60000 };
    struct sql_world w = {0};
    struct sv_err err;
    sv_err_clear(&err);
    if (!sv_sql_is_built_in())
        SKIP("built without SQLite");
    struct sv_dict *d = w.g.dict = sv_dict_new();
    sv_track track = sv_dict_thread(d, 0, 1, 1);
    sv_report_init(&w.report);
    w.t = sv_trace_new(d, &w.report, 0);
    struct sv_sink *s = sv_trace_sink(w.t);
    for (int64_t i = 0; i < DEEP; i++)
        add_slice(s, track, i, 2 * DEEP - 2 * i, sv_dict_cstr(d, "x"), NULL, 0);
    REQUIRE(s->close(s, false, &err) == 0);
    REQUIRE(sv_sql_open(w.t, &(struct sv_sql_options){.report = &w.report}, &w.q, &err) == 0);
    CHECK_ANSWER(w.q,
                 "SELECT count(*) FROM descendant_slice(0); SELECT count(*) FROM "
                 "ancestor_slice(59999); SELECT count(*) FROM following_flow(0)",
                 "59999\n\n59999\n\n0\n\n");
    small_fini(&w);
}

/* a: [0, 10) and [20, 30) in partition 1, [0, 100) in 2; b: [5, 25) in 1, [10, 20) and [30, 40) in
 * 2, [0, 9) in 3. */
#define SPANS                                                                                   \
    "CREATE TABLE a(ts, dur, p, x); INSERT INTO a VALUES (0, 10, 1, 'a1'), (20, 10, 1, 'a2'), " \
    "(0, 100, 2, 'a3'); CREATE TABLE b(ts, dur, p, y); INSERT INTO b VALUES (5, 20, 1, 'b1'), " \
    "(10, 10, 2, 'b2'), (30, 10, 2, 'b3'), (0, 9, 3, 'b4'); "

TEST(spans_are_joined)
{
    struct sql_world w;
    make_small(&w);
    CHECK_ANSWER(w.q,
                 SPANS "CREATE VIRTUAL TABLE s USING SPAN_JOIN(a PARTITIONED p, b PARTITIONED p); "
                       "SELECT ts, dur, p, x, y FROM s",
                 "5|5|1|a1|b1\n20|5|1|a2|b1\n10|10|2|a3|b2\n30|10|2|a3|b3\n\n");
    CHECK_ANSWER(w.q,
                 "CREATE VIRTUAL TABLE l USING SPAN_LEFT_JOIN(a PARTITIONED p, b PARTITIONED p); "
                 "SELECT ts, dur, p, x, y FROM l",
                 "0|5|1|a1|NULL\n5|5|1|a1|b1\n20|5|1|a2|b1\n25|5|1|a2|NULL\n0|10|2|a3|NULL\n"
                 "10|10|2|a3|b2\n20|10|2|a3|NULL\n30|10|2|a3|b3\n40|60|2|a3|NULL\n\n");
    CHECK_ANSWER(w.q, "CREATE VIRTUAL TABLE y USING SPAN_JOIN(a, nothing)",
                 "line 1: SPAN_JOIN: nothing lacks ts, dur or the partition");
    small_fini(&w);
}

/* What SQLite has besides SQL: addresses of its own code, parsers of raw pages, files. */
TEST(sql_has_only_what_is_listed)
{
    static const char *const refused[] = {
        "SELECT hex(fts3_tokenizer('simple'))",
        "SELECT fts3_tokenizer('simple', x'4141414141414141')",
        "CREATE VIRTUAL TABLE temp.x USING fts3(a)",
        "CREATE VIRTUAL TABLE x USING fts4(a)",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "CREATE VIRTUAL TABLE x USING rtree(i, a, b)",
        "SELECT rtreenode(2, zeroblob(100))",
        "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_stmt",
        "SELECT load_extension('x')",
        "SELECT sqlite_log(1, 'x')",
        "CREATE TEMP TRIGGER r AFTER INSERT ON one BEGIN SELECT 1; END",
        "CREATE TABLE u AS SELECT 1 AS a; ALTER TABLE u RENAME TO w",
        "ANALYZE",
        "DETACH main",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_journal_mode",
        "UPDATE sqlite_schema SET sql = ''",
        ("CREATE PERFETTO FUNCTION f(a STRING, b STRING) RETURNS LONG AS SELECT fts3_tokenizer($a, "
         "$b); SELECT f('simple', x'4141414141414141')"),
        "CREATE PERFETTO FUNCTION fts3_tokenizer(a LONG) RETURNS LONG AS SELECT 1",
        "SELECT zeroblob(300000000)",
    };
    struct sql_world w;
    make_small(&w);
    free(sql_text(w.q, "CREATE TABLE one(a)"));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct text_rows rows;
        struct sv_err err;
        sv_err_clear(&err);
        text_rows_init(&rows);
        CONTEXT("%s", refused[i]);
        CHECK(sv_sql_run(w.q, refused[i], &rows.rows, &err) < 0);
        sv_buf_fini(&rows.text);
    }
    CHECK_ANSWER(
        w.q,
        "CREATE VIEW j AS SELECT json_valid('[1]') AS ok; SELECT ok FROM j; SELECT value FROM "
        "json_each('[7]'); SELECT sum(a) OVER (), round(sqrt(a), 1) FROM (SELECT 4 AS a)",
        "1\n\n7\n\n4|2.0\n\n");
    small_fini(&w);
}

TEST(sql_recursion_has_an_end)
{
    struct sql_world w;
    struct sv_buf sql;
    make_small(&w);
    CHECK_ANSWER(w.q,
                 "CREATE PERFETTO FUNCTION ping(a LONG) RETURNS LONG AS SELECT pong($a); CREATE "
                 "PERFETTO FUNCTION pong(a LONG) RETURNS LONG AS SELECT ping($a); SELECT ping(1)",
                 "line 1: a function is called too deeply");
    sv_buf_init(&sql, 4 << 20);
    sv_buf_str(&sql, "CREATE VIEW chain0 AS SELECT 1 AS a;");
    for (int i = 1; i < 20000; i++)
        sv_buf_printf(&sql, "CREATE VIEW chain%d AS SELECT a FROM chain%d;", i, i - 1);
    sv_buf_str(&sql, "SELECT * FROM chain19999");
    CHECK_ANSWER(w.q, sv_buf_cstr(&sql),
                 "line 1: at most 500 views can be made: make tables of some");
    CHECK_ANSWER(w.q, "SELECT * FROM chain499", "1\n\n");
    sv_buf_fini(&sql);
    small_fini(&w);
}

TEST(bad_sql_is_refused_with_its_line)
{
    static const struct {
        const char *sql, *expected;
    } rows[] = {
        {"SELECT 1;\nSELEC 2", "line 2: near \"SELEC\": syntax error, at 'SELEC 2'"},
        {"SELECT nope FROM slice", "line 1: no such column: nope, at 'nope FROM slice'"},
        {"SELECT * FROM nowhere", "line 1: no such table: nowhere"},
        {"DELETE FROM slice", "line 1: table slice may not be modified"},
        {"ATTACH '/tmp/x' AS y",
         "line 1: traces are read-only: files and settings cannot be used (not authorized)"},
        {"PRAGMA journal_mode = WAL",
         "line 1: traces are read-only: files and settings cannot be used (not authorized)"},
        {"VACUUM INTO '/tmp/x'",
         "line 1: traces are read-only: files and settings cannot be used (authorization denied)"},
        {"SELECT * FROM ancestor_slice", "line 1: no query solution"},
        {"SELECT percentile(dur, 101) FROM slice",
         "line 1: percentile: the second argument is not within 0 … 100"},
    };
    struct sql_world w;
    make_small(&w);
    for (size_t i = 0; i < TEST_COUNT(rows); i++)
        CHECK_ANSWER(w.q, rows[i].sql, rows[i].expected);
    small_fini(&w);
}

TEST(a_failing_sink_ends_the_run)
{
    struct sql_world w;
    struct text_rows t;
    struct sv_err err;
    make_small(&w);
    sv_err_clear(&err);
    text_rows_init(&t);
    t.fail_at = 2;
    CHECK_INT_EQ(sv_sql_run(w.q, "SELECT * FROM slice", &t.rows, &err), SV_EIO);
    sv_buf_fini(&t.text);
    small_fini(&w);
}

TEST(an_empty_trace_has_all_tables)
{
    struct sql_world w;
    sql_world_make(&w, &(struct gen_options){.seed = 5, .n = 0, .shape = SV_HAS_NESTED});
    for (const char *const *name = sv_sql_tables(); *name; name++) {
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT count(*) >= 0 FROM %s", *name);
        CHECK_ANSWER(w.q, sql, "1\n\n");
    }
    sql_world_fini(&w);
}

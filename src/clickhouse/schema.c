/* The statements that make the tables and views. Called by load.c before a load; pure text, nothing
 * is sent here. */
#include "clickhouse/schema.h"

#include <string.h>

/* ---- columns ---- */

static bool has(const struct sv_typed_table *t, const char *name)
{
    struct sv_typed_column c[SV_TYPED_COLUMNS_MAX];
    for (size_t i = 0, n = sv_typed_columns(t, c); i < n; i++)
        if (strcmp(c[i].name, name) == 0)
            return true;
    return false;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Requests and batches of servers have no track, and steps that are batches have none. */
static bool is_event_table(const struct sv_typed_table *t)
{
    return has(t, "ts") && has(t, "track_id") && !is(t->name, "request") && !is(t->name, "batch") &&
           !is(t->name, "engine_step");
}

/* What every table has in front, and what the view makes from another column. */
static bool is_left_out(const struct sv_typed_table *t, const char *name)
{
    static const char *const front[] = {"run", "host", "rank", "file", "load_id"};
    for (size_t i = 0; i < sizeof front / sizeof *front; i++)
        if (is(name, front[i]))
            return true;
    return is(t->name, "slice") && (is(name, "cat") || is(name, "slice_id"));
}

static bool is_never_null(const struct sv_typed_table *t, const char *first, const char *name)
{
    if (is_event_table(t))
        return is(name, "id") || is(name, "ts") || is(name, "dur") || is(name, "track_id");
    return is(name, first) || (is(t->name, "args") && is(name, "arg_set_id"));
}

size_t sv_ch_columns(const struct sv_typed_table *t, struct sv_ch_column to[SV_TYPED_COLUMNS_MAX])
{
    struct sv_typed_column c[SV_TYPED_COLUMNS_MAX];
    size_t n = 0, n_typed = sv_typed_columns(t, c);
    for (size_t i = 0; i < n_typed; i++) {
        if (is_left_out(t, c[i].name))
            continue;
        to[n] = (struct sv_ch_column){.type = c[i].type,
                                      .is_nullable = !is_never_null(t, c[0].name, c[i].name)};
        memcpy(to[n++].name, c[i].name, sizeof c[i].name);
    }
    if (is(t->name, "step")) { /* for `stave steps` */
        to[n++] = (struct sv_ch_column){"track", SV_COLUMN_TEXT, false, true};
        to[n++] = (struct sv_ch_column){"start_ns", SV_COLUMN_INT, false, true};
    }
    return n;
}

static void add_type(struct sv_buf *sql, const struct sv_ch_column *c)
{
    const char *type = c->type == SV_COLUMN_INT    ? "Int64"
                       : c->type == SV_COLUMN_REAL ? "Float64"
                                                   : "String";
    sv_buf_printf(sql, c->is_nullable ? "Nullable(%s)" : "%s", type);
}

void sv_ch_quote(struct sv_buf *sql, const char *text)
{
    sv_buf_byte(sql, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            sv_buf_byte(sql, '\\');
        sv_buf_byte(sql, (uint8_t)*text);
    }
    sv_buf_byte(sql, '\'');
}

/* ---- tables ---- */

static void add_rows_table(const struct sv_ch_target *t, const struct sv_typed_table *table,
                           struct sv_buf *sql)
{
    struct sv_ch_column columns[SV_TYPED_COLUMNS_MAX];
    size_t n = sv_ch_columns(table, columns);
    const char *key = columns[0].name;
    sv_buf_printf(sql,
                  "CREATE TABLE IF NOT EXISTS %s.%s_rows (run String, host String, rank Int32, "
                  "file String, load_id UInt64",
                  t->database, table->name);
    for (size_t i = 0; i < n; i++) {
        sv_buf_printf(sql, ", `%s` ", columns[i].name);
        add_type(sql, &columns[i]);
    }
    if (is_event_table(table))
        key = "track_id, ts";
    else if (is(table->name, "args"))
        key = "arg_set_id";
    sv_buf_printf(sql, ") ENGINE = MergeTree() PARTITION BY (run, load_id) ORDER BY (rank, %s)",
                  key);
}

static void add_ledger(const struct sv_ch_target *t, struct sv_buf *sql)
{
    sv_buf_printf(
        sql,
        "CREATE TABLE IF NOT EXISTS %s.load_rows (run String, host String, rank Int32, file "
        "String, load_id UInt64, state String, version UInt64, sha256 String, size_bytes UInt64, "
        "start_ts Int64, end_ts Int64, realtime_offset Nullable(Int64), world_size "
        "Nullable(Int64), slices UInt64, writer String, stave String, at DateTime DEFAULT now()) "
        "ENGINE = MergeTree() PARTITION BY run ORDER BY (run, load_id)",
        t->database);
}

void sv_ch_current(const struct sv_ch_target *t, struct sv_buf *sql)
{
    sv_buf_printf(
        sql,
        "(SELECT argMax(load_id, newest) FROM (SELECT run, host, rank, file, load_id, "
        "max(version) AS newest FROM %s.load_rows GROUP BY run, host, rank, file, load_id "
        "HAVING sum(state = 'done') > 0 AND sum(state = 'dropped') = 0) GROUP BY run, host, rank, "
        "file)",
        t->database);
}

static const char *shard_suffix(const struct sv_ch_target *t)
{
    return *t->cluster ? "_local" : "";
}

static void begin_view(const struct sv_ch_target *t, const char *name, struct sv_buf *sql)
{
    sv_buf_printf(sql, "CREATE VIEW IF NOT EXISTS %s.%s%s AS ", t->database, name, shard_suffix(t));
}

static void add_seen(const struct sv_ch_target *t, const struct sv_typed_table *table,
                     struct sv_buf *sql)
{
    struct sv_ch_column columns[SV_TYPED_COLUMNS_MAX];
    size_t n = sv_ch_columns(table, columns);
    begin_view(t, table->name, sql);
    sv_buf_str(sql, "SELECT run, host, rank, file, load_id");
    for (size_t i = 0; i < n; i++)
        sv_buf_printf(sql, ", `%s`", columns[i].name);
    if (is(table->name, "slice"))
        sv_buf_str(sql, ", category AS cat, id AS slice_id");
    sv_buf_printf(sql, " FROM %s.%s_rows WHERE load_id IN ", t->database, table->name);
    sv_ch_current(t, sql);
}

static void add_loads(const struct sv_ch_target *t, struct sv_buf *sql)
{
    begin_view(t, "trace", sql);
    sv_buf_printf(sql,
                  "SELECT run, host, rank, file, load_id, sha256, size_bytes, start_ts, end_ts, "
                  "realtime_offset, world_size, slices, stave, at FROM %s.load_rows "
                  "WHERE state = 'done' AND load_id IN ",
                  t->database);
    sv_ch_current(t, sql);
}

#define FRONT "run, host, rank, file, load_id"
#define SLICE "id, ts, dur, category, name, track_id"

/* Views with joins: they are made on each shard. @ is the database, # the suffix of what is on the
 * shard. What is joined has each key once. ALL is what standard SQL does, and must be said to
 * 18.16; ANY means another join since 19.14. Newer engines want an alias for each subquery that is
 * joined. */
static const struct {
    const char *name, *sql;
} joined[] = {
    {"thread_slice",
     "SELECT " FRONT ", " SLICE ", track_name, thread_name, utid, tid, is_main_thread, "
     "process_name, upid, pid, depth, parent_id, arg_set_id, thread_ts, thread_dur "
     "FROM @.slice# ALL INNER JOIN (SELECT load_id, track_id, track_name, utid, "
     "thread_name, tid, is_main_thread, upid, process_name, pid FROM (SELECT load_id, track_id, "
     "track_name, utid, thread_name, tid, is_main_thread, upid FROM (SELECT load_id, id AS "
     "track_id, name AS track_name, assumeNotNull(owner_utid) AS utid FROM @.track# WHERE "
     "owner_utid IS NOT NULL AND is_counter = 0) AS k ALL INNER JOIN (SELECT load_id, utid, name "
     "AS thread_name, tid, is_main_thread, upid FROM @.thread#) AS h USING (load_id, utid)) AS o "
     "ALL LEFT JOIN (SELECT load_id, upid, name AS process_name, pid FROM @.process#) AS p USING "
     "(load_id, upid)) AS t USING (load_id, track_id)"},
    {"process_slice",
     "SELECT " FRONT ", " SLICE ", track_name, process_name, upid, pid, depth, parent_id, "
     "arg_set_id, thread_ts, thread_dur FROM @.slice# ALL INNER JOIN (SELECT load_id, "
     "track_id, track_name, upid, process_name, pid FROM (SELECT load_id, id AS track_id, name AS "
     "track_name, assumeNotNull(owner_upid) AS upid FROM @.track# WHERE owner_upid IS NOT "
     "NULL AND owner_utid IS NULL AND is_counter = 0) AS k ALL INNER JOIN (SELECT load_id, upid, "
     "name AS process_name, pid FROM @.process#) AS p USING (load_id, upid)) AS t USING "
     "(load_id, track_id)"},
    {"counters",
     "SELECT " FRONT ", id, ts, track_id, value, arg_set_id, name, unit FROM @.counter# ALL "
     "INNER JOIN (SELECT load_id, id AS track_id, name, unit FROM @.track# WHERE is_counter "
     "= 1) AS t USING (load_id, track_id)"},
};

/* Views of one table, over what is seen. @ is the database. */
#define TRACK "id, name, type, parent_id, source_arg_set_id, machine_id"
static const struct {
    const char *name, *sql;
} plain[] = {
    {"slices", "SELECT * FROM @.slice"},
    {"instant", "SELECT " FRONT ", ts, track_id, name, arg_set_id FROM @.slice WHERE dur = 0"},
    {"instants", "SELECT * FROM @.instant"},
    {"thread_track", "SELECT " FRONT ", " TRACK ", owner_utid AS utid FROM @.track WHERE "
                     "owner_utid IS NOT NULL AND is_counter = 0"},
    {"process_track", "SELECT " FRONT ", " TRACK ", owner_upid AS upid FROM @.track WHERE "
                      "owner_upid IS NOT NULL AND owner_utid IS NULL AND is_counter = 0"},
    {"counter_track", "SELECT " FRONT ", id, name, parent_id, type, dimension_arg_set_id, "
                      "source_arg_set_id, machine_id, unit, description FROM @.track WHERE "
                      "is_counter = 1"},
    {"thread_counter_track",
     "SELECT " FRONT ", " TRACK ", unit, description, owner_utid AS utid FROM @.track WHERE "
     "is_counter = 1 AND owner_utid IS NOT NULL"},
    {"process_counter_track",
     "SELECT " FRONT ", " TRACK ", unit, description, owner_upid AS upid FROM @.track WHERE "
     "is_counter = 1 AND owner_upid IS NOT NULL AND owner_utid IS NULL"},
    {"cpu_track", "SELECT " FRONT ", " TRACK ", cpu FROM @.track WHERE kind = 'cpu'"},
    {"gpu_track", "SELECT " FRONT ", " TRACK ", dimension_arg_set_id, kind AS scope, description "
                  "FROM @.track WHERE kind IN ('gpu', 'stream')"},
    {"state_track", "SELECT " FRONT ", " TRACK " FROM @.track WHERE is_state = 1"},
    {"file",
     "SELECT run, path, ops, opens, reads, writes, bytes_read, bytes_written, whole AS dur, "
     "max_dur, first_ts, last_ts, errors FROM ("
     "SELECT run, path, count() AS ops, sum(op LIKE 'open%' OR op = 'creat') AS opens, sum(op "
     "LIKE '%read%') AS reads, sum(op LIKE '%write%') AS writes, sum(if(op LIKE '%read%', "
     "bytes, NULL)) AS bytes_read, sum(if(op LIKE '%write%', bytes, NULL)) AS bytes_written, "
     "sum(dur) AS whole, max(dur) AS max_dur, min(ts) AS first_ts, max(ts + dur) AS last_ts, "
     "sum(ifNull(errno, 0) != 0) AS errors FROM (SELECT run, path, if(op IN (" SV_CALLS_COPY
     "), 'read', "
     "op) AS op, bytes, dur, ts, errno FROM @.io UNION ALL SELECT run, path2 AS path, 'write' AS "
     "op, bytes, toInt64(0) AS dur, ts, errno FROM @.io WHERE op IN (" SV_CALLS_COPY ")) "
     "WHERE path IS NOT NULL GROUP BY run, path)"},
};

enum { N_JOINED = sizeof joined / sizeof *joined, N_PLAIN = sizeof plain / sizeof *plain };

static void add_template(const struct sv_ch_target *t, const char *text, struct sv_buf *sql)
{
    for (; *text; text++)
        if (*text == '@')
            sv_buf_str(sql, t->database);
        else if (*text == '#')
            sv_buf_str(sql, shard_suffix(t));
        else
            sv_buf_byte(sql, (uint8_t)*text);
}

static void add_distributed(const struct sv_ch_target *t, const char *name, struct sv_buf *sql)
{
    sv_buf_printf(sql,
                  "CREATE TABLE IF NOT EXISTS %s.%s AS %s.%s_local ENGINE = "
                  "Distributed(`%s`, %s, %s_local, rank)",
                  t->database, name, t->database, name, t->cluster, t->database, name);
}

/* The database, then the stored tables, what is seen of them on the shard, in a cluster what is
 * seen of all, and the views of one table. */
bool sv_ch_ddl(const struct sv_ch_target *t, size_t n, struct sv_buf *sql)
{
    size_t n_tables = sv_n_typed_tables, n_shard = n_tables + 1 + N_JOINED;
    size_t n_all = *t->cluster ? n_shard : 0;
    if (n == 0)
        sv_buf_printf(sql, "CREATE DATABASE IF NOT EXISTS %s", t->database);
    else if ((n -= 1) == 0)
        add_ledger(t, sql);
    else if ((n -= 1) < n_tables)
        add_rows_table(t, &sv_typed_tables[n], sql);
    else if ((n -= n_tables) < n_tables)
        add_seen(t, &sv_typed_tables[n], sql);
    else if (n == n_tables)
        add_loads(t, sql);
    else if (n < n_shard) {
        begin_view(t, joined[n - n_tables - 1].name, sql);
        add_template(t, joined[n - n_tables - 1].sql, sql);
    } else if ((n -= n_shard) < n_all)
        add_distributed(t,
                        n < n_tables    ? sv_typed_tables[n].name
                        : n == n_tables ? "trace"
                                        : joined[n - n_tables - 1].name,
                        sql);
    else if ((n -= n_all) < N_PLAIN) {
        sv_buf_printf(sql, "CREATE VIEW IF NOT EXISTS %s.%s AS ", t->database, plain[n].name);
        add_template(t, plain[n].sql, sql);
    } else
        return false;
    return true;
}

bool sv_ch_old_view(const struct sv_ch_target *t, size_t n, struct sv_buf *find,
                    struct sv_buf *drop)
{
    if (n >= N_JOINED)
        return false;
    sv_buf_printf(find,
                  "SELECT count() FROM system.tables WHERE database = '%s' AND name = '%s%s' AND "
                  "create_table_query LIKE '%%ANY INNER JOIN%%'",
                  t->database, joined[n].name, shard_suffix(t));
    sv_buf_printf(drop, "DROP TABLE IF EXISTS %s.%s%s", t->database, joined[n].name,
                  shard_suffix(t));
    return true;
}

size_t sv_ch_n_made(const struct sv_ch_target *t)
{
    size_t n_shard = sv_n_typed_tables + 1 + N_JOINED;
    return 1 + sv_n_typed_tables + n_shard * (*t->cluster ? 2 : 1) + N_PLAIN;
}

void sv_ch_insert_into(const struct sv_ch_target *t, const struct sv_typed_table *table,
                       struct sv_buf *sql)
{
    struct sv_ch_column columns[SV_TYPED_COLUMNS_MAX];
    size_t n = sv_ch_columns(table, columns);
    sv_buf_printf(sql, "INSERT INTO %s.%s_rows (run, file, load_id, host, rank", t->database,
                  table->name);
    for (size_t i = 0; i < n; i++)
        sv_buf_printf(sql, ", `%s`", columns[i].name);
    sv_buf_str(sql, ") FORMAT RowBinary");
}

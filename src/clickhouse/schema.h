/* The tables in ClickHouse: how they are stored, and the names under which they are seen.
 *
 * Each table of sql/typed.h is stored as NAME_rows, one partition per load of a file: (run,
 * load_id). It is seen as NAME, a view of the loads that are complete and current by the ledger
 * `load_rows`; in a cluster that view is NAME_local on each shard and NAME is a Distributed table
 * over it. A file is always on one shard, so that the views with joins join on their shard. All of
 * it is SQL that ClickHouse 18.16 and 26.5 understand alike; both are tested. */
#pragma once

#include "clickhouse/target.h"
#include "sql/typed.h"

/* A column as it is stored. Those before it are always the same: run, file, load_id, host, rank. */
struct sv_ch_column {
    char name[32];
    enum sv_column_type type;
    bool is_nullable;
    bool is_extra; /* not one of SQL: made by the export */
};

/* The stored columns of a table, in order; returns how many. */
size_t sv_ch_columns(const struct sv_typed_table *t, struct sv_ch_column to[SV_TYPED_COLUMNS_MAX]);

/* "'text'", as a literal of ClickHouse; any bytes. */
void sv_ch_quote(struct sv_buf *sql, const char *text);

/* The statements that make the database on one server, in order: `n` from 0; false: there are no
 * more. */
bool sv_ch_ddl(const struct sv_ch_target *t, size_t n, struct sv_buf *sql);
/* Views that an older Stave made: on an engine newer than 18.16 their joins leave rows out. `n`
 * from 0: what counts view `n` if it is such a one, and what removes it. */
bool sv_ch_old_view(const struct sv_ch_target *t, size_t n, struct sv_buf *find,
                    struct sv_buf *drop);
/* How many tables and views they make. */
size_t sv_ch_n_made(const struct sv_ch_target *t);

/* "INSERT INTO db.NAME_rows (…) FORMAT RowBinary" */
void sv_ch_insert_into(const struct sv_ch_target *t, const struct sv_typed_table *table,
                       struct sv_buf *sql);

/* "(SELECT …)": the ids of the loads that are seen, from the server's own ledger. */
void sv_ch_current(const struct sv_ch_target *t, struct sv_buf *sql);

/* The rows of `load_rows`, written as values of SQL. */
#define SV_CH_LOAD_COLUMNS                                                           \
    "run, host, rank, file, load_id, state, version, sha256, size_bytes, start_ts, " \
    "end_ts, realtime_offset, world_size, slices, writer, stave"

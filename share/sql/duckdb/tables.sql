-- The tables of `stave export --to parquet -o LAKE` as views, all ranks of all runs together: run, host, rank and the columns of docs/sql.md.
-- Ids (of slices, tracks, threads, argument sets) are numbers within one rank: join by (run, host, rank, id).
--
--     duckdb
--     SET VARIABLE lake = 'lake';
--     .read /usr/share/stave/sql/duckdb/tables.sql
--     .read /usr/share/stave/sql/duckdb/stragglers.sql
CREATE OR REPLACE MACRO stave_table(name) AS TABLE
  SELECT run, host, rank, * EXCLUDE (run, host, rank)
  FROM read_parquet(getvariable('lake') || '/run=*/host=*/rank=*/' || name || '.parquet',
                    hive_partitioning = true, hive_types = {'run': VARCHAR, 'host': VARCHAR, 'rank': BIGINT});
CREATE OR REPLACE VIEW slice AS FROM stave_table('slice');
CREATE OR REPLACE VIEW track AS FROM stave_table('track');
CREATE OR REPLACE VIEW thread AS FROM stave_table('thread');
CREATE OR REPLACE VIEW process AS FROM stave_table('process');
CREATE OR REPLACE VIEW counter AS FROM stave_table('counter');
CREATE OR REPLACE VIEW args AS FROM stave_table('args');
CREATE OR REPLACE VIEW flow AS FROM stave_table('flow');
CREATE OR REPLACE VIEW loss AS FROM stave_table('loss');
CREATE OR REPLACE VIEW io AS FROM stave_table('io');
CREATE OR REPLACE VIEW kernel AS FROM stave_table('kernel');
CREATE OR REPLACE VIEW memcpy AS FROM stave_table('memcpy');
CREATE OR REPLACE VIEW step AS FROM stave_table('step');
CREATE OR REPLACE VIEW batch AS FROM stave_table('batch');
CREATE OR REPLACE VIEW request AS FROM stave_table('request');
CREATE OR REPLACE VIEW engine_step AS FROM stave_table('engine_step');
CREATE OR REPLACE VIEW engine_step_member AS FROM stave_table('engine_step_member');
CREATE OR REPLACE VIEW token AS FROM stave_table('token');
CREATE OR REPLACE VIEW collective AS FROM stave_table('collective');
CREATE OR REPLACE VIEW clock_snapshot AS FROM stave_table('clock_snapshot');
CREATE OR REPLACE VIEW machine AS FROM stave_table('machine');
CREATE OR REPLACE VIEW metadata AS FROM stave_table('metadata');
CREATE OR REPLACE VIEW stats AS FROM stave_table('stats');
CREATE OR REPLACE VIEW trace_bounds AS FROM stave_table('trace_bounds');
-- Each rank has the times of its own clock. to_wall is what to add to them for the wall clock: from the first snapshot that read both; NULL: the trace does
-- not say. A host's wall clock has an error of its own: between hosts compare no less than that.
CREATE OR REPLACE VIEW rank_clock AS
  SELECT run, host, rank, first(clock_value - ts ORDER BY snapshot_id) FILTER (clock_name = 'realtime') AS to_wall
  FROM clock_snapshot GROUP BY ALL;

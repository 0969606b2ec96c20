/* The views: Perfetto's shapes of the tables, and Stave's own tables where a view is enough.
 *
 * Created in this order when a connection opens. Conditions pass through them to the tables below.
 * The views over slices of a kind of work go by category and by the argument names that recorders
 * and importers use; docs/sql.md lists both. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "sql/impl.h"
#include "sql/typed.h"

#define SLICE_COLUMNS \
    "s.id, s.ts, s.dur, s.track_id, s.category, s.name, s.depth, s.parent_id, s.arg_set_id"

const char *const sv_sql_views[] = {
    /* Perfetto's other names. */
    "CREATE VIEW slices AS SELECT * FROM slice",
    "CREATE VIEW instant AS SELECT ts, track_id, name, arg_set_id FROM slice WHERE dur = 0",
    "CREATE VIEW instants AS SELECT * FROM instant",
    "CREATE VIEW slice_self_dur AS SELECT id, self_dur FROM slice",
    "CREATE VIEW trace_bounds AS SELECT trace_start() AS start_ts, trace_end() AS end_ts",

    /* Tracks by what they belong to. */
    "CREATE VIEW thread_track AS SELECT id, name, type, parent_id, source_arg_set_id, machine_id, "
    "owner_utid AS utid FROM track WHERE owner_utid IS NOT NULL AND NOT is_counter",
    "CREATE VIEW process_track AS SELECT id, name, type, parent_id, source_arg_set_id, machine_id, "
    "owner_upid AS upid FROM track "
    "WHERE owner_upid IS NOT NULL AND owner_utid IS NULL AND NOT is_counter",
    "CREATE VIEW counter_track AS SELECT id, name, parent_id, type, dimension_arg_set_id, "
    "source_arg_set_id, machine_id, unit, description FROM track WHERE is_counter",
    "CREATE VIEW counters AS SELECT v.*, t.name, t.unit FROM counter v JOIN counter_track t ON "
    "v.track_id = t.id",
    "CREATE VIEW thread_counter_track AS SELECT id, name, type, parent_id, source_arg_set_id, "
    "machine_id, unit, description, owner_utid AS utid FROM track "
    "WHERE is_counter AND owner_utid IS NOT NULL",
    "CREATE VIEW process_counter_track AS SELECT id, name, type, parent_id, source_arg_set_id, "
    "machine_id, unit, description, owner_upid AS upid FROM track "
    "WHERE is_counter AND owner_upid IS NOT NULL AND owner_utid IS NULL",
    "CREATE VIEW cpu_counter_track AS SELECT c.id, c.name, c.type, c.parent_id, "
    "c.source_arg_set_id, c.machine_id, c.unit, c.description, p.cpu FROM track c "
    "JOIN track p ON p.id = c.parent_id WHERE c.is_counter AND p.kind = 'cpu'",
    "CREATE VIEW cpu_track AS SELECT id, name, type, parent_id, source_arg_set_id, machine_id, cpu "
    "FROM track WHERE kind = 'cpu'",
    "CREATE VIEW gpu_track AS SELECT id, name, type, parent_id, source_arg_set_id, "
    "dimension_arg_set_id, machine_id, kind AS scope, description, NULL AS context_id "
    "FROM track WHERE kind IN ('gpu', 'stream')",

    /* Slices with what they belong to. */
    "CREATE VIEW thread_slice AS SELECT s.id, s.ts, s.dur, s.category, s.name, "
    "s.track_id, " SV_SQL_THREAD_SLICE_OWNERS ", s.depth, s.parent_id, s.arg_set_id, s.thread_ts, "
    "s.thread_dur FROM slice s " SV_SQL_THREAD_SLICE_JOIN,
    "CREATE VIEW process_slice AS SELECT s.id, s.ts, s.dur, s.category, s.name, s.track_id, "
    "k.name AS track_name, p.name AS process_name, p.upid, p.pid, s.depth, s.parent_id, "
    "s.arg_set_id, s.thread_ts, s.thread_dur FROM slice s "
    "JOIN process_track k ON s.track_id = k.id JOIN process p USING (upid)",
    "CREATE VIEW thread_or_process_slice AS SELECT id, ts, dur, category, name, track_id, "
    "track_name, "
    "thread_name, utid, tid, process_name, upid, pid, depth, parent_id, arg_set_id FROM "
    "thread_slice "
    "UNION ALL SELECT id, ts, dur, category, name, track_id, track_name, NULL, NULL, NULL, "
    "process_name, upid, pid, depth, parent_id, arg_set_id FROM process_slice",
    "CREATE VIEW gpu_slice AS SELECT " SLICE_COLUMNS ", extract_arg(s.arg_set_id, 'context') AS "
    "context_id, NULL AS render_target, NULL AS render_target_name, NULL AS render_pass, "
    "NULL AS render_pass_name, NULL AS command_buffer, NULL AS command_buffer_name, NULL AS "
    "frame_id, "
    "extract_arg(s.arg_set_id, 'correlation') AS submission_id, "
    "extract_arg(s.arg_set_id, 'stream') AS hw_queue_id, k.owner_upid AS upid, "
    "NULL AS render_subpasses, s.category AS render_stage_category "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE has_gpu_slices() AND (k.kind IN ('gpu', "
    "'stream') OR s.category IN (" SV_CATEGORIES_GPU_SLICE "))",
    /* Scheduling, when a recording has it: slices of category sched on a CPU's track, or those of
     * category thread_state on a thread's, of which the running ones say where. States have
     * Perfetto's letters. */
    "CREATE VIEW thread_state AS SELECT s.id, s.ts, s.dur, extract_arg(s.arg_set_id, 'cpu') AS "
    "cpu, k.owner_utid AS utid, CASE s.name WHEN 'Runnable' THEN 'R' WHEN 'Preempted' THEN 'R+' "
    "WHEN 'Sleeping' THEN 'S' WHEN 'Blocked on I/O' THEN 'D' WHEN 'Blocked' THEN 'D' "
    "WHEN 'Stopped' THEN 'T' ELSE s.name END AS state, "
    "extract_arg(s.arg_set_id, 'io_wait') AS io_wait, "
    "extract_arg(s.arg_set_id, 'blocked_function') AS blocked_function, "
    "(SELECT w.utid FROM thread w WHERE w.tid = extract_arg(s.arg_set_id, 'waker_tid')) AS "
    "waker_utid, NULL AS waker_id, CASE WHEN s.name = 'Runnable' THEN "
    "extract_arg(s.arg_set_id, 'interrupt') END AS irq_context, extract_arg(s.arg_set_id, 'cpu') "
    "AS ucpu "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'thread_state'",
    "CREATE VIEW sched AS SELECT s.id, s.ts, s.dur, k.cpu, t.utid, "
    "extract_arg(s.arg_set_id, 'end_state') AS end_state, "
    "extract_arg(s.arg_set_id, 'priority') AS priority, k.cpu AS ucpu, s.ts + s.dur AS ts_end "
    "FROM slice s JOIN track k ON s.track_id = k.id "
    "LEFT JOIN thread t ON t.tid = extract_arg(s.arg_set_id, 'tid') "
    "WHERE k.kind = 'cpu' AND s.category = 'sched' "
    "UNION ALL SELECT id, ts, dur, cpu, utid, NULL, NULL, ucpu, ts + dur FROM thread_state "
    "WHERE state = 'Running' AND cpu IS NOT NULL",
    "CREATE VIEW sched_slice AS SELECT id, ts, dur, cpu, utid, end_state, priority, ucpu FROM "
    "sched",
    "CREATE VIEW cpu AS SELECT cpu AS id, cpu AS ucpu, cpu, NULL AS cluster_id, NULL AS processor, "
    "machine_id, NULL AS capacity, NULL AS arg_set_id FROM (SELECT cpu, machine_id FROM track "
    "WHERE kind = 'cpu' AND cpu IS NOT NULL UNION SELECT cpu, 0 FROM thread_state WHERE cpu IS "
    "NOT NULL)",

    /* Stacks: of samples, and of everything else that has one. */
    "CREATE VIEW cpu_sample AS SELECT s.id, s.ts, k.owner_utid AS utid, "
    "extract_arg(s.arg_set_id, 'cpu') AS cpu, s.name, s.arg_set_id "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'cpu_sample'",
    "CREATE VIEW offcpu AS SELECT s.id, s.ts, s.dur, "
    "k.owner_utid AS utid, s.name AS reason, extract_arg(s.arg_set_id, 'queued') AS queued, "
    "extract_arg(s.arg_set_id, 'lock') AS lock, extract_arg(s.arg_set_id, 'lock_name') AS "
    "lock_name, extract_arg(s.arg_set_id, 'waker_tid') AS waker_tid, "
    "extract_arg(s.arg_set_id, 'waker') AS waker, extract_arg(s.arg_set_id, 'interrupt') AS "
    "interrupt, s.arg_set_id "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'offcpu_sample'",
    "CREATE VIEW lock_wait AS SELECT o.id, o.ts, o.dur, o.reason, o.lock, o.lock_name, o.utid, "
    "t.tid, t.name AS thread_name, o.waker_tid, o.waker, o.interrupt, o.arg_set_id "
    "FROM offcpu o JOIN thread t ON t.utid = o.utid WHERE o.reason IN ('lock', 'gil')",
    "CREATE VIEW cpu_rival AS SELECT s.id, s.ts, k.owner_utid AS utid, "
    "extract_arg(s.arg_set_id, 'rival') AS rival, extract_arg(s.arg_set_id, 'rival_pid') AS "
    "rival_pid, extract_arg(s.arg_set_id, 'rival_tid') AS rival_tid, "
    "extract_arg(s.arg_set_id, 'dur') AS dur, extract_arg(s.arg_set_id, 'n') AS n, "
    "extract_arg(s.arg_set_id, 'cgroup') AS cgroup, "
    "coalesce(extract_arg(s.arg_set_id, 'outside'), 0) AS outside, s.arg_set_id "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'cpu_rival'",
    "CREATE VIEW schedstat AS SELECT s.id, s.ts, k.owner_utid AS utid, "
    "extract_arg(s.arg_set_id, 'run_ns') AS run_ns, extract_arg(s.arg_set_id, 'delay_ns') AS "
    "delay_ns, extract_arg(s.arg_set_id, 'switches') AS switches, s.arg_set_id "
    "FROM slice s JOIN track k ON s.track_id = k.id WHERE s.category = 'schedstat'",
    "CREATE VIEW stack_frame AS SELECT s.id AS slice_id, cast(substr(a.key, 7) AS INTEGER) AS "
    "depth, frame_function(a.string_value) AS function, frame_file(a.string_value) AS file, "
    "frame_line(a.string_value) AS line, a.string_value AS text "
    "FROM slice s JOIN args a ON a.arg_set_id = s.arg_set_id WHERE a.flat_key = 'stack'",

    /* States: tracks on which each value ends the one before it. */
    "CREATE VIEW state AS SELECT s.id, s.ts, s.dur, s.track_id, s.category, s.name AS value, "
    "s.arg_set_id FROM slice s JOIN track k ON s.track_id = k.id WHERE k.is_state",
    "CREATE VIEW state_track AS SELECT id, name, parent_id, type, dimension_arg_set_id, "
    "source_arg_set_id, machine_id FROM track WHERE is_state",
    "CREATE VIEW process_state_track AS SELECT id, name, type, parent_id, source_arg_set_id, "
    "machine_id, owner_upid AS upid FROM track WHERE is_state AND owner_upid IS NOT NULL AND "
    "owner_utid IS NULL",
    "CREATE VIEW thread_state_track AS SELECT id, name, type, parent_id, source_arg_set_id, "
    "machine_id, owner_utid AS utid FROM track WHERE is_state AND owner_utid IS NOT NULL",

    /* What a JSON file says about itself, member by member. */
    "CREATE VIEW metadata AS SELECT * FROM trace_metadata UNION ALL "
    "SELECT 1000000 + j.id, 'json_metadata.' || j.key, 'single', "
    "CASE WHEN j.type IN ('integer', 'true', 'false') THEN j.value END, "
    "CASE WHEN j.type NOT IN ('integer', 'true', 'false') THEN j.value END, NULL, NULL "
    "FROM trace_metadata m, json_each(CASE WHEN json_valid(m.str_value) THEN m.str_value END) j "
    "WHERE m.name = 'chrome.metadata'",

    /* Stave's own. */
    "CREATE VIEW io AS SELECT s.id, s.name AS op, s.ts, s.dur, "
    "coalesce(p.pid, extract_arg(s.arg_set_id, 'pid')) AS pid, t.tid, "
    "extract_arg(s.arg_set_id, 'path') AS path, extract_arg(s.arg_set_id, 'fd') AS fd, "
    "extract_arg(s.arg_set_id, 'bytes') AS bytes, extract_arg(s.arg_set_id, 'offset') AS "
    "\"offset\", "
    "extract_arg(s.arg_set_id, 'ret') AS ret, extract_arg(s.arg_set_id, 'errno') AS errno, "
    "extract_arg(s.arg_set_id, 'device') AS device, s.category, s.track_id, "
    "extract_arg(s.arg_set_id, 'path2') AS path2, extract_arg(s.arg_set_id, 'fd2') AS fd2, "
    "extract_arg(s.arg_set_id, 'offset2') AS offset2 FROM slice s "
    "JOIN track k ON s.track_id = k.id LEFT JOIN thread t ON t.utid = k.owner_utid "
    "LEFT JOIN process p ON p.upid = k.owner_upid "
    "WHERE s.category IN (" SV_CATEGORIES_IO ")",
    /* A copy reads one file and writes another; its time is that of the first. */
    "CREATE VIEW file AS SELECT path, count(*) AS ops, "
    "sum(op GLOB 'open*' OR op = 'creat') AS opens, "
    "sum(op GLOB '*read*') AS reads, sum(op GLOB '*write*') AS writes, "
    "sum(CASE WHEN op GLOB '*read*' THEN bytes END) AS bytes_read, "
    "sum(CASE WHEN op GLOB '*write*' THEN bytes END) AS bytes_written, "
    "sum(dur) AS dur, max(dur) AS max_dur, min(ts) AS first_ts, max(ts + dur) AS last_ts, "
    "sum(errno IS NOT NULL AND errno != 0) AS errors FROM ("
    "SELECT path, CASE WHEN op IN (" SV_CALLS_COPY
    ") THEN 'read' ELSE op END AS op, bytes, dur, ts, "
    "errno FROM io UNION ALL "
    "SELECT path2, 'write', bytes, 0, ts, errno FROM io WHERE op IN (" SV_CALLS_COPY ")) "
    "WHERE path IS NOT NULL GROUP BY path",
    "CREATE VIEW kernel AS SELECT s.id, s.name, s.ts, s.dur, "
    "extract_arg(s.arg_set_id, 'device') AS device, extract_arg(s.arg_set_id, 'stream') AS stream, "
    "coalesce(extract_arg(s.arg_set_id, 'grid'), extract_arg(s.arg_set_id, 'grid_dim'), "
    "arg_list(s.arg_set_id, 'grid')) AS grid, "
    "coalesce(extract_arg(s.arg_set_id, 'block'), extract_arg(s.arg_set_id, 'block_dim'), "
    "arg_list(s.arg_set_id, 'block')) AS block, "
    "coalesce(extract_arg(s.arg_set_id, 'correlation'), extract_arg(s.arg_set_id, "
    "'correlation_id')) "
    "AS correlation, extract_arg(s.arg_set_id, 'context') AS context, s.track_id, s.arg_set_id "
    "FROM slice s WHERE s.category IN (" SV_CATEGORIES_KERNEL ")",
    "CREATE VIEW memcpy AS SELECT s.id, s.name, s.ts, s.dur, "
    "extract_arg(s.arg_set_id, 'device') AS device, extract_arg(s.arg_set_id, 'stream') AS stream, "
    "coalesce(extract_arg(s.arg_set_id, 'bytes'), extract_arg(s.arg_set_id, 'size_bytes')) AS "
    "bytes, "
    "extract_arg(s.arg_set_id, 'memory bandwidth (GB/s)') AS gb_per_s, "
    "coalesce(extract_arg(s.arg_set_id, 'correlation'), extract_arg(s.arg_set_id, "
    "'correlation_id')) "
    "AS correlation, s.track_id, s.arg_set_id "
    "FROM slice s WHERE s.category IN (" SV_CATEGORIES_MEMCPY ")",
    /* Of an inference server: as the reports find them, whatever the form of the trace, without
     * warm-up. Slices of other programs, too; those of a server's own JSON are what the rows above
     * were made of. */
    "CREATE VIEW batch AS SELECT id, 'batch' AS name, ts, dur, batch_id, model, size, requests, "
    "worker, NULL AS track_id, NULL AS arg_set_id FROM served_batch WHERE NOT is_warmup "
    "UNION ALL SELECT s.id, s.name, s.ts, s.dur, "
    "coalesce(extract_arg(s.arg_set_id, 'batch_id'), extract_arg(s.arg_set_id, 'batch')), "
    "extract_arg(s.arg_set_id, 'model_name'), "
    "coalesce(extract_arg(s.arg_set_id, 'batch_size'), extract_arg(s.arg_set_id, 'size')), NULL, "
    "extract_arg(s.arg_set_id, 'worker_id'), s.track_id, s.arg_set_id FROM slice s "
    "WHERE s.category IN (" SV_CATEGORIES_BATCH_SLICE ") AND s.name NOT LIKE '%request%' AND "
    "s.dur != 0 AND (s.category != 'batching' OR NOT is_served())",
    "CREATE VIEW request AS SELECT s.id, s.name, s.ts, s.dur, "
    "coalesce(extract_arg(s.arg_set_id, 'request_id'), extract_arg(s.arg_set_id, 'id')) AS "
    "request_id, "
    "extract_arg(s.arg_set_id, 'batch_id') AS batch_id, "
    "extract_arg(s.arg_set_id, 'model_name') AS model, s.track_id, s.arg_set_id, "
    "NULL AS outcome, NULL AS scheduled_ts, NULL AS first_token_ts, NULL AS last_token_ts, "
    "NULL AS ttft_ns, NULL AS tpot_ns, NULL AS queue_ns, NULL AS prefill_ns, NULL AS "
    "decode_ns, NULL AS preempted_ns, NULL AS transfer_ns, NULL AS respond_ns, NULL AS "
    "prompt_tokens, NULL AS cached_tokens, NULL AS output_tokens, NULL AS proposed, NULL AS "
    "accepted, NULL AS preemptions, NULL AS steps, NULL AS load, NULL AS share_ns, NULL AS "
    "kernel_ns, NULL AS io_ns, NULL AS is_warmup, NULL AS read_ns, NULL AS parse_ns, "
    "NULL AS serialise_ns, NULL AS write_ns "
    "FROM slice s "
    "WHERE s.category IN (" SV_CATEGORIES_REQUEST ") AND (s.category = 'request' OR s.name LIKE "
    "'%request%') AND ((s.category != 'batching' AND s.name NOT IN ('request', "
    "'warming_request')) OR NOT is_served()) "
    "UNION ALL SELECT id, 'request', ts, dur, request_id, batch_id, model, NULL, NULL, "
    "outcome, scheduled_ts, first_token_ts, last_token_ts, ttft_ns, tpot_ns, queue_ns, "
    "prefill_ns, decode_ns, preempted_ns, transfer_ns, respond_ns, prompt_tokens, "
    "cached_tokens, output_tokens, proposed, accepted, preemptions, steps, load, share_ns, "
    "kernel_ns, io_ns, is_warmup, read_ns, parse_ns, serialise_ns, write_ns "
    "FROM engine_request WHERE NOT is_warmup",
    NULL,
};
#endif

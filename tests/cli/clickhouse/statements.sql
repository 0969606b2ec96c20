SELECT name, count(*) AS n, sum(dur) AS total, min(ts) AS first, max(ts) AS last FROM slice WHERE name IS NOT NULL GROUP BY name ORDER BY name
SELECT category, count(*) AS n, avg(dur) AS a FROM slice WHERE dur > 0 GROUP BY category ORDER BY category
SELECT count(*) AS n, sum(depth) AS d, count(parent_id) AS p, count(arg_set_id) AS a, count(thread_ts) AS t FROM slice
SELECT ts, dur, name, cat FROM slice WHERE category = 'cpu_op' AND ts >= 1711964651100000000 ORDER BY ts, dur LIMIT 20
SELECT op, path, count(*) AS n, sum(bytes) AS b, max(dur) AS longest, count(errno) AS failed FROM io GROUP BY op, path ORDER BY op, path
SELECT path, ops, opens, reads, writes, bytes_read, bytes_written, dur, max_dur, first_ts, last_ts, errors FROM file ORDER BY path
SELECT name, device, stream, grid, block, count(*) AS n, sum(dur) AS d, min(correlation) AS c FROM kernel GROUP BY name, device, stream, grid, block ORDER BY name
SELECT name, sum(bytes) AS b, count(*) AS n FROM memcpy GROUP BY name ORDER BY name
SELECT number, count(*) AS n, sum(dur) AS d, sum(comm_ns) AS c, sum(idle_ns) AS i, sum(device_kernel_ns) AS k FROM step GROUP BY number ORDER BY number
SELECT op, "group", seq, count(*) AS n, max(ts) - min(ts) AS skew, sum(bytes) AS b FROM collective GROUP BY op, "group", seq ORDER BY seq
SELECT model, size, count(*) AS n, sum(dur) AS d FROM batch GROUP BY model, size ORDER BY model
SELECT request_id, batch_id, model, dur FROM request ORDER BY ts, request_id LIMIT 30
SELECT value, count(*) AS n FROM counter GROUP BY value ORDER BY value
SELECT name, count(*) AS n, sum(value) AS s FROM counters GROUP BY name ORDER BY name
SELECT count(*) AS n, count(DISTINCT trace_id) > 0 AS some FROM flow
SELECT thread_name, process_name, count(*) AS n, sum(dur) AS d FROM thread_slice GROUP BY thread_name, process_name ORDER BY thread_name, process_name
SELECT name, tid, is_main_thread FROM thread WHERE tid > 0 AND name = 'main' ORDER BY tid
SELECT rank, pid, name FROM process WHERE pid > 0 ORDER BY rank
SELECT type, count(*) AS n FROM thread_track GROUP BY type ORDER BY type
SELECT name, count(*) AS n FROM instant GROUP BY name ORDER BY name

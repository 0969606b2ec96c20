-- How far apart the ranks arrive at a collective: by group and number of the collective.
-- Columns: run, group, seq, op, n (ranks that took part), first_ts, last_ts (first and last begin on the wall clocks, ns), skew (ns), last_rank, method.
-- method is `begins` where all ranks are of one host: its wall clock is one clock. Elsewhere it is `durations`, whose error is the shortest one: who arrives last at a collective
-- that all leave together stays shortest, whatever the clocks say. NULL: cannot tell, by the rules of docs/comm.md (ranks are missing, kinds differ, it did not end, the skew is within
-- the error, ranks may leave before others arrive, or did). last_rank is NULL where the last two are closer than that error.
SELECT run, "group", seq, op, n, first_ts, last_ts,
       CASE method WHEN 'begins' THEN last_ts - first_ts WHEN 'durations' THEN durs[n].dur - durs[1].dur END AS skew,
       CASE WHEN method = 'begins' AND walls[n - 1].ts < last_ts THEN walls[n].rank
            WHEN method = 'durations' AND durs[2].dur - durs[1].dur > durs[1].dur THEN durs[1].rank END AS last_rank, method
FROM (SELECT *, CASE WHEN n < 2 OR n < members OR kinds > 1 OR open > 0 THEN NULL
                     WHEN hosts = 1 AND host != 'unknown' AND first_ts IS NOT NULL
                       THEN CASE WHEN NOT waits OR first_end >= last_ts THEN 'begins' END
                     WHEN waits AND durs[n].dur - durs[1].dur > durs[1].dur THEN 'durations' END AS method
      FROM (SELECT run, "group", seq, any_value(op) AS op, count(*) AS n, max(members) AS members, max(kinds) + count(DISTINCT op) - 1 AS kinds,
                   sum(open) AS open, count(DISTINCT host) AS hosts, min(host) AS host,
                   bool_and(op IN ('allreduce', 'allgather', 'alltoall', 'barrier', 'reduce_scatter')) AS waits,
                   CASE WHEN count(wall) = count(*) THEN min(wall) END AS first_ts, CASE WHEN count(wall) = count(*) THEN max(wall) END AS last_ts,
                   min(wall + dur) AS first_end, list_sort(list({'dur': dur, 'rank': rank})) AS durs, list_sort(list({'ts': wall, 'rank': rank})) AS walls
            FROM (SELECT c.run, c."group", c.seq, c.host, c.rank, any_value(c.op) AS op, count(DISTINCT c.op) AS kinds, max(c.group_size) AS members,
                         count(*) FILTER (c.dur < 0) AS open, min(c.ts) + any_value(k.to_wall) AS wall, max(c.ts + c.dur) - min(c.ts) AS dur
                  FROM collective c LEFT JOIN rank_clock k USING (run, host, rank)
                  WHERE c.seq IS NOT NULL GROUP BY c.run, c."group", c.seq, c.host, c.rank)
            GROUP BY run, "group", seq))
ORDER BY run, "group", seq;

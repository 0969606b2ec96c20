-- How far apart the ranks arrive at a collective: by group and number of the collective, on the wall clock.
-- Columns: run, group, seq, op, n (ranks that took part), first_ts, last_ts (wall clock, ns), skew (ns), last_rank.
-- Ranks whose trace has no wall clock are left out: n says how many are in. Between hosts the skew has the error of their wall clocks.
SELECT run, "group", seq, any(op) AS op, count() AS n, min(wall) AS first_ts, max(wall) AS last_ts, max(wall) - min(wall) AS skew,
       arraySort(groupArray((wall, rank)))[count()].2 AS last_rank
FROM (SELECT run, "group", seq, op, rank, ts + assumeNotNull(realtime_offset) AS wall
      FROM collective GLOBAL ANY INNER JOIN (SELECT load_id, realtime_offset FROM trace WHERE realtime_offset IS NOT NULL) USING load_id
      WHERE seq IS NOT NULL)
GROUP BY run, "group", seq
ORDER BY run, "group", seq;

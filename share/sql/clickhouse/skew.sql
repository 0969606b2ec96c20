-- How far apart the ranks arrive at a collective: by group and number of the collective.
-- Columns: run, group, seq, op, n (ranks that took part), first_ts, last_ts (first and last begin on the wall clocks, ns), skew (ns), last_rank, method.
-- method is `begins` where all ranks are of one host: its wall clock is one clock. Elsewhere it is `durations`, whose error is the shortest one: who arrives last at a collective
-- that all leave together stays shortest, whatever the clocks say. NULL: cannot tell, by the rules of docs/comm.md (ranks are missing, kinds differ, it did not end, the skew is within
-- the error, ranks may leave before others arrive, or did). last_rank is NULL where the last two are closer than that error.
SELECT run, "group", seq, kind AS op, n, if(has_wall, walls[1].1, NULL) AS first_ts, if(has_wall, walls[n].1, NULL) AS last_ts,
       multiIf(how = 'begins', walls[n].1 - walls[1].1, how = 'durations', durs[n].1 - durs[1].1, NULL) AS skew,
       multiIf(how = 'begins' AND walls[n - 1].1 < walls[n].1, walls[n].2, how = 'durations' AND durs[2].1 - durs[1].1 > durs[1].1, durs[1].2, NULL) AS last_rank,
       if(how = '', NULL, how) AS method
FROM (SELECT run, "group", seq, kind, n, has_wall, walls, durs,
             multiIf(n < 2 OR n < members OR kinds > 1 OR open > 0, '', hosts = 1 AND host != 'unknown' AND has_wall, if(waits = 0 OR first_end >= walls[n].1, 'begins', ''),
                     waits = 1 AND durs[n].1 - durs[1].1 > durs[1].1, 'durations', '') AS how
      FROM (SELECT run, "group", seq, any(one) AS kind, toInt64(count()) AS n, max(size) AS members, max(ops) + uniqExact(one) - 1 AS kinds, sum(unended) AS open,
                   uniqExact(place) AS hosts, any(place) AS host, min(one IN ('allreduce', 'allgather', 'alltoall', 'barrier', 'reduce_scatter')) AS waits,
                   min(known) = 1 AS has_wall, min(wall + long) AS first_end, arraySort(groupArray((long, who))) AS durs, arraySort(groupArray((wall, who))) AS walls
            FROM (SELECT run, "group", seq, host AS place, rank AS who, any(ifNull(op, '')) AS one, uniqExact(op) AS ops, ifNull(max(group_size), 0) AS size,
                         sum(dur < 0) AS unended, min(realtime_offset IS NOT NULL) AS known, min(ts + ifNull(realtime_offset, 0)) AS wall,
                         max(ts + dur) - min(ts) AS long
                  FROM collective GLOBAL ALL INNER JOIN (SELECT load_id, realtime_offset FROM trace) AS t USING (load_id)
                  WHERE seq IS NOT NULL GROUP BY run, "group", seq, host, rank)
            GROUP BY run, "group", seq))
ORDER BY run, "group", seq;

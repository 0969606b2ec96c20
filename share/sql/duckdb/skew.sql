-- How far apart the ranks arrive at a collective: by group and number of the collective, on the wall clock.
-- Columns: run, group, seq, op, n (ranks that took part), first_ts, last_ts (wall clock, ns), skew (ns), last_rank.
-- Ranks whose trace has no wall clock are left out: n says how many are in. Between hosts the skew has the error of their wall clocks.
SELECT c.run, c."group", c.seq, any_value(c.op) AS op, count(*) AS n,
       min(c.ts + k.to_wall) AS first_ts, max(c.ts + k.to_wall) AS last_ts,
       max(c.ts + k.to_wall) - min(c.ts + k.to_wall) AS skew,
       max(struct_pack(ts := c.ts + k.to_wall, rank := c.rank)).rank AS last_rank
FROM collective c JOIN rank_clock k USING (run, host, rank)
WHERE k.to_wall IS NOT NULL AND c.seq IS NOT NULL
GROUP BY c.run, c."group", c.seq
ORDER BY c.run, c."group", c.seq;

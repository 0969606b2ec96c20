-- Which rank holds the others up: of the steps with one number the one that works longest, where it is by a tenth over the middle one (of an even number the lower of the two).
-- What counts is the step without its time in communication (own): where a step ends in a collective, all ranks take equally long, and those that wait are not slow.
-- The rule of `stave steps`. Columns: run, number (of the step), host, rank, dur, own, middle (of own; ns).
-- One row per such step; GROUP BY rank over it counts how often each rank was the slowest.
SELECT run, number, last.host AS host, last.rank AS rank, last.dur AS dur, last.own AS own, middle
FROM (SELECT run, number, count(*) AS n, max(struct_pack(own := own, dur := dur, rank := rank, host := host)) AS last,
             list_sort(list(own))[(count(*) - 1) // 2 + 1] AS middle
      FROM (SELECT run, number, host, rank, dur, dur - coalesce(comm_ns, 0) AS own FROM step) GROUP BY run, number)
WHERE n > 1 AND last.own > 1.1 * middle
ORDER BY run, number;

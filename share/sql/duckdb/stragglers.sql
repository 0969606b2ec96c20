-- Which rank holds the others up: of the steps with one number the longest, where it is by a tenth over the middle one (of an even number the lower of the two).
-- The rule of `stave steps`. Columns: run, number (of the step), host, rank, dur, middle (ns).
-- One row per such step; GROUP BY rank over it counts how often each rank was the slowest.
SELECT run, number, last.host AS host, last.rank AS rank, last.dur AS dur, middle
FROM (SELECT run, number, count(*) AS n, max(struct_pack(dur := dur, rank := rank, host := host)) AS last,
             list_sort(list(dur))[(count(*) - 1) // 2 + 1] AS middle
      FROM step GROUP BY run, number)
WHERE n > 1 AND last.dur > 1.1 * middle
ORDER BY run, number;

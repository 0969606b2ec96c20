-- Which rank holds the others up: of the steps with one number the longest, where it is by a tenth over the middle one (of an even number the lower of the two).
-- The rule of `stave steps`. Columns: run, number (of the step), host, rank, dur, middle (ns).
-- One row per such step; GROUP BY rank over it counts how often each rank was the slowest.
SELECT run, number, last.3 AS host, last.2 AS rank, last.1 AS dur, middle
FROM (SELECT run, number, n, sorted[n] AS last, sorted[intDiv(n - 1, 2) + 1].1 AS middle
      FROM (SELECT run, number, count() AS n, arraySort(groupArray((dur, rank, host))) AS sorted FROM step GROUP BY run, number))
WHERE n > 1 AND dur > 1.1 * middle
ORDER BY run, number;

-- Which rank holds the others up: of the steps with one number the one that works longest, where it is by a tenth over the middle one (of an even number the lower of the two).
-- What counts is the step without its time in communication (own): where a step ends in a collective, all ranks take equally long, and those that wait are not slow.
-- The rule of `stave steps`. Columns: run, number (of the step), host, rank, dur, own, middle (of own; ns).
-- One row per such step; GROUP BY rank over it counts how often each rank was the slowest.
SELECT run, number, last.4 AS host, last.3 AS rank, last.2 AS dur, last.1 AS own, middle
FROM (SELECT run, number, n, sorted[n] AS last, sorted[intDiv(n - 1, 2) + 1].1 AS middle
      FROM (SELECT run, number, count() AS n, arraySort(groupArray((dur - ifNull(comm_ns, 0), dur, rank, host))) AS sorted FROM step GROUP BY run, number))
WHERE n > 1 AND own > 1.1 * middle
ORDER BY run, number;

-- How long steps take, by rank. Columns: run, host, rank, n, p50, p90, p99 (interpolated, ns), max.
SELECT run, host, rank, n,
       s[intDiv(50 * (n - 1), 100) + 1] + (50 * (n - 1) % 100) / 100 * (s[least(n, intDiv(50 * (n - 1), 100) + 2)] - s[intDiv(50 * (n - 1), 100) + 1]) AS p50,
       s[intDiv(90 * (n - 1), 100) + 1] + (90 * (n - 1) % 100) / 100 * (s[least(n, intDiv(90 * (n - 1), 100) + 2)] - s[intDiv(90 * (n - 1), 100) + 1]) AS p90,
       s[intDiv(99 * (n - 1), 100) + 1] + (99 * (n - 1) % 100) / 100 * (s[least(n, intDiv(99 * (n - 1), 100) + 2)] - s[intDiv(99 * (n - 1), 100) + 1]) AS p99,
       s[n] AS max
FROM (SELECT run, host, rank, count() AS n, arraySort(groupArray(dur)) AS s FROM step GROUP BY run, host, rank)
ORDER BY run, rank, host;
